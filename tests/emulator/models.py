"""Small models of what GPUs run most, with their values in float64 where numpy can say them.

Each function returns an ONNX model, its inputs and, for the first outputs, the wanted values;
without them the oracle is onnxruntime.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from onnx import ModelProto, TensorProto

from tests.support.models import Nodes

KINDS = {
    "f32": (TensorProto.FLOAT, np.float32),
    "f16": (TensorProto.FLOAT16, np.float16),
    "bf16": (TensorProto.BFLOAT16, ml_dtypes.bfloat16),
    "i8": (TensorProto.INT8, np.int8),
}


@dataclass
class Case:
    """A model, its inputs, what it computes (None: ask onnxruntime)."""

    model: ModelProto
    inputs: dict[str, np.ndarray]
    wanted: list[np.ndarray] | None = None


class Graph(Nodes):
    """Nodes, weights and inputs of a model under construction; values are names."""

    def __init__(self, seed: int, dtype: str) -> None:
        super().__init__(seed)
        self.kind, self.np = KINDS[dtype]
        self.arrays: dict[str, np.ndarray] = {}
        self.outputs: list[tuple[str, int, tuple[int, ...]]] = []

    def draw(self, *dims: int, scale: float = 1.0) -> np.ndarray:
        if self.np is np.int8:
            return self.rng.integers(-8, 8, dims).astype(np.int8)
        return (self.rng.standard_normal(dims) * scale).astype(self.np)

    def input(self, name: str, *dims: int, scale: float = 1.0) -> str:
        return self.given(name, self.draw(*dims, scale=scale))

    def given(self, name: str, array: np.ndarray) -> str:
        """An input whose array is not drawn from the normal distribution."""
        self.arrays[name] = array
        return name

    def weight(self, *dims: int, scale: float = 1.0, array: Any = None) -> str:
        return self.const(self.draw(*dims, scale=scale) if array is None else array)

    def number(self, value: float) -> str:
        return self.const(value, self.np)

    def ints(self, *values: int) -> str:
        return self.const(values, np.int64)

    def several(self, kind: str, count: int, *inputs: str, **attributes: Any) -> list[str]:
        """A node with `count` outputs."""
        names = [f"v{len(self.nodes)}_{i}" for i in range(count)]
        self.op(kind, *inputs, into=names, **attributes)
        return names

    def output(self, name: str, *dims: int, kind: int | None = None) -> None:
        """One more output, in order."""
        self.outputs.append((name, kind or self.kind, dims))

    def case(self, output: str, *dims: int, kind: int | None = None, wanted: Any = None) -> Case:
        self.output(output, *dims, kind=kind)
        return self.case_of(None if wanted is None else [np.asarray(wanted)])

    def case_of(self, wanted: list[np.ndarray] | None = None) -> Case:
        return Case(self.model(self.arrays, self.outputs), self.arrays, wanted)


def wide(a: np.ndarray) -> np.ndarray:
    """In float64, or int64."""
    return a.astype(np.int64 if a.dtype.kind == "i" else np.float64)


def gemm(dtype: str, seed: int) -> Case:
    """relu(x w + b): a dot with a constant matrix, and what is fused behind it."""
    g = Graph(seed, dtype)
    x = g.input("x", 64, 128)
    if dtype == "i8":
        w = g.weight(128, 96)
        y = g.op("MatMulInteger", x, w)
        want = wide(g.arrays["x"]) @ wide(g.weights[w])
        return g.case(y, 64, 96, kind=TensorProto.INT32, wanted=want)
    w, b = g.weight(128, 96, scale=0.1), g.weight(96)
    y = g.op("Relu", g.op("Add", g.op("MatMul", x, w), b))
    want = np.maximum(wide(g.arrays["x"]) @ wide(g.weights[w]) + wide(g.weights[b]), 0)
    return g.case(y, 64, 96, wanted=want)


def long_gemm(dtype: str, seed: int) -> Case:
    """A dot whose pipelined loop steps back in its buffers: offsets wrap at 32 bits."""
    g = Graph(seed, dtype)
    x, w = g.input("x", 128, 768), g.weight(768, 3072, scale=0.05)
    y = g.op("MatMul", x, w)
    return g.case(y, 128, 3072, wanted=wide(g.arrays["x"]) @ wide(g.weights[w]))


def softmax(dtype: str, seed: int) -> Case:
    g = Graph(seed, dtype)
    y = g.op("Softmax", g.input("x", 12, 33, 100), axis=-1)
    x = wide(g.arrays["x"])
    e = np.exp(x - x.max(-1, keepdims=True))
    return g.case(y, 12, 33, 100, wanted=e / e.sum(-1, keepdims=True))


def layernorm(dtype: str, seed: int) -> Case:
    g = Graph(seed, dtype)
    x, s, b = g.input("x", 40, 96), g.weight(96), g.weight(96)
    y = g.op("LayerNormalization", x, s, b, axis=-1, epsilon=1e-5)
    v = wide(g.arrays["x"])
    v = (v - v.mean(-1, keepdims=True)) / np.sqrt(v.var(-1, keepdims=True) + 1e-5)
    return g.case(y, 40, 96, wanted=v * wide(g.weights[s]) + wide(g.weights[b]))


def convolution(dtype: str, seed: int) -> Case:
    """A 3x3 convolution with padding and stride 2, by a sum over the window's places."""
    g = Graph(seed, dtype)
    x, w = g.input("x", 1, 32, 18, 18), g.weight(48, 32, 3, 3, scale=0.1)
    y = g.op("Conv", x, w, pads=[1, 1, 1, 1], strides=[2, 2], kernel_shape=[3, 3])
    padded = np.pad(wide(g.arrays["x"]), ((0, 0), (0, 0), (1, 1), (1, 1)))
    want = np.zeros((1, 48, 9, 9))
    for i in range(3):
        for j in range(3):
            part = padded[:, :, i : i + 17 : 2, j : j + 17 : 2]
            want += np.einsum("nchw,oc->nohw", part, wide(g.weights[w])[:, :, i, j])
    return g.case(y, 1, 48, 9, 9, wanted=want)


def attention(dtype: str, seed: int) -> Case:
    """softmax(q k^T / sqrt(d)) v of four heads."""
    g = Graph(seed, dtype)
    q, k, v = (g.input(n, 1, 4, 64, 32) for n in "qkv")
    scale = g.weight(array=np.asarray(1 / math.sqrt(32), g.np))
    scores = g.op("Mul", g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2])), scale)
    y = g.op("MatMul", g.op("Softmax", scores, axis=-1), v)
    a, b, c = (wide(g.arrays[n]) for n in "qkv")
    s = a @ b.transpose(0, 1, 3, 2) / math.sqrt(32)
    e = np.exp(s - s.max(-1, keepdims=True))
    return g.case(y, 1, 4, 64, 32, wanted=(e / e.sum(-1, keepdims=True)) @ c)


def bottleneck(dtype: str, seed: int) -> Case:
    """ResNet's block: 1x1, 3x3 with stride 2 and 1x1 convolutions beside a strided shortcut."""
    g = Graph(seed, dtype)
    x = g.input("x", 1, 64, 14, 14)

    def conv(v: str, out: int, into: int, size: int, stride: int) -> str:
        w = g.weight(out, into, size, size, scale=math.sqrt(2 / (into * size * size)))
        b = g.weight(out, scale=0.1)
        return g.op(
            "Conv", v, w, b, pads=[size // 2] * 4, strides=[stride] * 2, kernel_shape=[size] * 2
        )

    h = g.op("Relu", conv(x, 32, 64, 1, 1))
    h = g.op("Relu", conv(h, 32, 32, 3, 2))
    h = conv(h, 128, 32, 1, 1)
    y = g.op("Relu", g.op("Add", h, conv(x, 128, 64, 1, 2)))
    return g.case(y, 1, 128, 7, 7)


def bert(dtype: str, seed: int, width: int = 128, heads: int = 4, length: int = 32) -> Case:
    """An encoder layer: attention, residuals, two norms, a gelu network."""
    g = Graph(seed, dtype)
    x = g.input("x", 1, length, width)
    head = width // heads
    scale = 1 / math.sqrt(width)

    def dense(v: str, into: int, out: int) -> str:
        w, b = g.weight(into, out, scale=scale), g.weight(out, scale=0.1)
        return g.op("Add", g.op("MatMul", v, w), b)

    def split(v: str, perm: list[int]) -> str:
        dims = g.weight(array=np.asarray([1, length, heads, head], np.int64))
        return g.op("Transpose", g.op("Reshape", v, dims), perm=perm)

    def norm(v: str) -> str:
        ones = g.weight(array=np.ones(width, g.np))
        return g.op("LayerNormalization", v, ones, g.weight(width, scale=0.1), axis=-1)

    q = split(dense(x, width, width), [0, 2, 1, 3])
    k = split(dense(x, width, width), [0, 2, 3, 1])
    v = split(dense(x, width, width), [0, 2, 1, 3])
    by = g.weight(array=np.asarray(1 / math.sqrt(head), g.np))
    p = g.op("Softmax", g.op("Mul", g.op("MatMul", q, k), by), axis=-1)
    o = g.op("Transpose", g.op("MatMul", p, v), perm=[0, 2, 1, 3])
    o = g.op("Reshape", o, g.weight(array=np.asarray([1, length, width], np.int64)))
    h = norm(g.op("Add", x, dense(o, width, width)))
    f = dense(h, width, 4 * width)
    half, one, root = (g.weight(array=np.asarray(c, g.np)) for c in (0.5, 1.0, 1 / math.sqrt(2)))
    f = g.op("Mul", g.op("Mul", f, half), g.op("Add", g.op("Erf", g.op("Mul", f, root)), one))
    w, b = g.weight(4 * width, width, scale=scale / 2), g.weight(width, scale=0.1)
    y = norm(g.op("Add", h, g.op("Add", g.op("MatMul", f, w), b)))
    return g.case(y, 1, length, width)


CASES: dict[str, Callable[[str, int], Case]] = {
    f.__name__: f
    for f in (gemm, long_gemm, softmax, layernorm, convolution, attention, bottleneck, bert)
}
