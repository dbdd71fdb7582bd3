"""Models whose batch, length, height and width are dynamic or fixed, as torch exports them.

Two layers of the full width each, random weights; `sizes` are what they are timed at.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from onnx import ModelProto

from zoo.made import FLOAT, INT64, Dims, Graph, layer_norm, rope

Size = int | str
LAYERS = 2


@dataclass(frozen=True)
class DynamicModel:
    """A model that takes its dynamic dims as arguments, their names, and the sizes to time it
    at."""

    build: Callable[..., ModelProto]
    names: Sequence[str]
    sizes: Sequence[tuple[int, ...]]


class Exported(Graph):
    """A graph with the shape arithmetic of torch's exporters."""

    def size(self, x: str, axis: int) -> str:
        """One extent as torch.onnx.export writes it: Shape, Gather."""
        return self.op("Gather", self.op("Shape", x), self.const(axis, np.int64), axis=0)

    def dims(self, *parts: str | int) -> str:
        """A shape for Reshape or Expand: the parts unsqueezed and joined."""
        found = (self.const(p, np.int64) if isinstance(p, int) else p for p in parts)
        joined = [self.op("Unsqueeze", p, self.ints(0)) for p in found]
        return self.op("Concat", *joined, axis=0)

    def split(self, x: str, heads: int, perm: Sequence[int] = (0, 2, 1, 3), size: int = 64) -> str:
        """(batch, length, width) -> (batch, heads, length, size)."""
        wanted = self.dims(self.size(x, 0), self.size(x, 1), heads, size)
        return self.op("Transpose", self.op("Reshape", x, wanted), perm=list(perm))

    def join(self, x: str, width: int) -> str:
        """(batch, heads, length, size) -> (batch, length, width)."""
        y = self.op("Transpose", x, perm=[0, 2, 1, 3])
        return self.op("Reshape", y, self.dims(self.size(y, 0), self.size(y, 1), width))

    def attend(self, q: str, k: str, v: str, mask: str | None, scale: float | None = None) -> str:
        """Attention as it is decomposed; `k` has its last two axes changed over."""
        scores = self.op("MatMul", q, k)
        if scale is not None:
            scores = self.op("Div", scores, self.const(scale))
        if mask is not None:
            scores = self.op("Add", scores, mask)
        return self.op("MatMul", self.op("Softmax", scores, axis=-1), v)

    def old_norm(self, x: str, width: int) -> str:
        """A layer norm as exports below operator set 17 have it."""
        x = self.op("Sub", x, self.op("ReduceMean", x, self.ints(-1), keepdims=1))
        square = self.op("Pow", x, self.const(2.0))
        mean = self.op("ReduceMean", square, self.ints(-1), keepdims=1)
        x = self.op("Div", x, self.op("Sqrt", self.op("Add", mean, self.const(1e-5))))
        return self.op("Add", self.op("Mul", x, self.vector(width, 0.5, 1.5)), self.vector(width))

    def tanh_gelu(self, x: str) -> str:
        cube = self.op("Mul", self.op("Pow", x, self.const(3.0)), self.const(0.044715))
        inner = self.op("Mul", self.op("Add", x, cube), self.const(math.sqrt(2 / math.pi)))
        y = self.op("Add", self.op("Tanh", inner), self.const(1.0))
        return self.op("Mul", self.op("Mul", x, self.const(0.5)), y)


def bert(batch: Size, length: Size) -> ModelProto:
    g = Exported(1)
    width, heads = 768, 12
    ids = g.input("ids", [batch, length], INT64)
    mask = g.input("mask", [batch, length], INT64)
    x = g.op("Gather", g.const(0.1 * g.rng.standard_normal((500, width))), ids)
    place = g.const(0.1 * g.rng.standard_normal((1, 512, width)))
    end = g.op("Unsqueeze", g.size(ids, 1), g.ints(0))
    x = g.op("Add", x, g.op("Slice", place, g.ints(0), end, g.ints(1)))
    x = layer_norm(g, x, width)
    seen = g.op("Cast", g.op("Unsqueeze", mask, g.ints(1, 2)), to=FLOAT)
    bias = g.op("Mul", g.op("Sub", g.const(1.0), seen), g.const(-1e4))
    for _ in range(LAYERS):
        q, v = (g.split(g.linear(x, width, width), heads) for _ in range(2))
        k = g.split(g.linear(x, width, width), heads, (0, 2, 3, 1))
        y = g.linear(g.join(g.attend(q, k, v, bias, 8.0), width), width, width)
        x = layer_norm(g, g.op("Add", y, x), width)
        y = g.linear(g.gelu(g.linear(x, width, 4 * width)), 4 * width, width)
        x = layer_norm(g, g.op("Add", y, x), width)
    g.output(x, "hidden", [batch, length, width])
    return g.model()


def gpt2(batch: Size, length: Size) -> ModelProto:
    """The causal mask comes from a constant of 1024 x 1024, as in the older exports."""
    g = Exported(2)
    width, heads = 768, 12
    ids = g.input("ids", [batch, length], INT64)
    size = g.size(ids, 1)
    steps = g.op("Range", g.const(0, np.int64), size, g.const(1, np.int64))
    places = g.op("Gather", g.const(0.1 * g.rng.standard_normal((1024, width))), steps)
    x = g.op("Gather", g.const(0.1 * g.rng.standard_normal((500, width))), ids)
    x = g.op("Add", x, places)
    causal = g.const(np.tri(1024, dtype=bool)[None, None], bool)
    end = g.op("Unsqueeze", size, g.ints(0))
    causal = g.op("Slice", causal, g.ints(0), end, g.ints(2))
    causal = g.op("Slice", causal, g.ints(0), end, g.ints(3))
    for _ in range(LAYERS):
        y = g.old_norm(x, width)
        flat = g.op("Reshape", y, g.ints(-1, width))
        rows = g.op("Gemm", flat, g.weight(width, 3 * width), g.vector(3 * width))
        y = g.op("Reshape", rows, g.dims(g.size(x, 0), g.size(x, 1), 3 * width))
        q, k, v = g.op("Split", y, g.ints(width, width, width), outputs=3, axis=2)
        q, k, v = g.split(q, heads), g.split(k, heads, (0, 2, 3, 1)), g.split(v, heads)
        scores = g.op("Div", g.op("MatMul", q, k), g.const(8.0))
        scores = g.op("Where", causal, scores, g.const(-3.4028235e38))
        y = g.join(g.op("MatMul", g.op("Softmax", scores, axis=-1), v), width)
        x = g.op("Add", x, g.linear(y, width, width))
        y = g.tanh_gelu(g.linear(g.old_norm(x, width), width, 4 * width))
        x = g.op("Add", x, g.linear(y, 4 * width, width))
    g.output(x, "hidden", [batch, length, width])
    return g.model()


def vit(batch: Size, side: Size) -> ModelProto:
    """Patches of 16 x 16, a class token that is expanded to the batch; the side is dynamic or
    not."""
    g = Exported(3)
    width, heads = 768, 12
    image = g.input("image", [batch, 3, side, side])
    w = g.weight(width, 3, 16, 16, fan_in=768)
    y = g.op("Conv", image, w, g.vector(width), kernel_shape=[16, 16], strides=[16, 16])
    y = g.op("Reshape", y, g.dims(g.size(y, 0), width, -1))
    y = g.op("Transpose", y, perm=[0, 2, 1])
    token = g.op("Expand", g.weight(1, 1, width), g.dims(g.size(image, 0), 1, width))
    x = g.op("Concat", token, y, axis=1)
    for _ in range(LAYERS):
        y = layer_norm(g, x, width)
        q, v = (g.split(g.linear(y, width, width), heads) for _ in range(2))
        k = g.split(g.linear(y, width, width), heads, (0, 2, 3, 1))
        y = g.join(g.attend(q, k, v, None, 8.0), width)
        x = g.op("Add", g.linear(y, width, width), x)
        y = g.gelu(g.linear(layer_norm(g, x, width), width, 4 * width))
        x = g.op("Add", g.linear(y, 4 * width, width), x)
    x = layer_norm(g, x, width)
    first = g.op("Gather", x, g.const(0, np.int64), axis=1)
    g.output(g.op("Gemm", first, g.weight(width, 1000), g.vector(1000)), "logits", [batch, 1000])
    return g.model()


def t5(batch: Size, length: Size) -> ModelProto:
    """RMS norms, position biases looked up by distance, no scale of the scores."""
    g = Exported(4)
    width, heads = 512, 8
    ids = g.input("ids", [batch, length], INT64)
    mask = g.input("mask", [batch, length], INT64)
    x = g.op("Gather", g.const(g.rng.standard_normal((500, width))), ids)
    steps = g.op("Range", g.const(0, np.int64), g.size(ids, 1), g.const(1, np.int64))
    columns, rows = g.op("Unsqueeze", steps, g.ints(0)), g.op("Unsqueeze", steps, g.ints(1))
    far = g.op("Min", g.op("Abs", g.op("Sub", columns, rows)), g.const(31, np.int64))
    bias = g.op("Gather", g.const(g.rng.standard_normal((32, heads))), far)
    bias = g.op("Unsqueeze", g.op("Transpose", bias, perm=[2, 0, 1]), g.ints(0))
    seen = g.op("Cast", g.op("Unsqueeze", mask, g.ints(1, 2)), to=FLOAT)
    bias = g.op("Add", bias, g.op("Mul", g.op("Sub", g.const(1.0), seen), g.const(-1e9)))
    for _ in range(LAYERS):
        y = g.rms_norm(x, width)
        q, v = (g.split(g.op("MatMul", y, g.weight(width, width)), heads) for _ in range(2))
        k = g.split(g.op("MatMul", y, g.weight(width, width, fan_in=64 * width)), heads,
                    (0, 2, 3, 1))  # fmt: skip
        y = g.join(g.attend(q, k, v, bias), width)
        x = g.op("Add", x, g.op("MatMul", y, g.weight(width, width)))
        y = g.op("Relu", g.op("MatMul", g.rms_norm(x, width), g.weight(width, 4 * width)))
        x = g.op("Add", x, g.op("MatMul", y, g.weight(4 * width, width)))
    g.output(g.rms_norm(x, width), "hidden", [batch, length, width])
    return g.model()


def llama(batch: Size, length: Size) -> ModelProto:
    """RoPE from the positions, 12 heads over 4 of keys and values, SwiGLU, a causal mask."""
    g = Exported(5)
    width, heads, kv, size = 768, 12, 4, 64
    ids = g.input("ids", [batch, length], INT64)
    x = g.op("Gather", g.const(g.rng.standard_normal((500, width))), ids)
    n = g.size(ids, 1)
    steps = g.op("Range", g.const(0, np.int64), n, g.const(1, np.int64))
    place = g.op("Cast", g.op("Unsqueeze", steps, g.ints(1)), to=FLOAT)
    angle = g.op("Mul", place, g.const(10000.0 ** -(np.arange(0, size, 2) / size)[None]))
    angle = g.op("Unsqueeze", g.op("Concat", angle, angle, axis=-1), g.ints(0, 1))
    cos, sin = g.op("Cos", angle), g.op("Sin", angle)
    full = g.op("Expand", g.const(-3.4028235e38), g.dims(n, n))
    causal = g.op("Unsqueeze", g.op("Trilu", full, g.const(1, np.int64), upper=1), g.ints(0, 1))

    def repeated(x: str) -> str:
        b, s = g.size(x, 0), g.size(x, 2)
        wide = g.op("Expand", g.op("Unsqueeze", x, g.ints(2)),
                    g.dims(b, kv, heads // kv, s, size))  # fmt: skip
        return g.op("Reshape", wide, g.dims(b, heads, s, size))

    for _ in range(LAYERS):
        y = g.rms_norm(x, width)
        q = g.split(g.op("MatMul", y, g.weight(width, width)), heads)
        k, v = (g.split(g.op("MatMul", y, g.weight(width, kv * size)), kv) for _ in range(2))
        q, k = rope(g, q, cos, sin, size // 2), rope(g, k, cos, sin, size // 2)
        k = g.op("Transpose", repeated(k), perm=[0, 1, 3, 2])
        y = g.join(g.attend(q, k, repeated(v), causal, 8.0), width)
        x = g.op("Add", x, g.op("MatMul", y, g.weight(width, width)))
        y = g.rms_norm(x, width)
        gate = g.silu(g.op("MatMul", y, g.weight(width, 2048)))
        y = g.op("Mul", gate, g.op("MatMul", y, g.weight(width, 2048)))
        x = g.op("Add", x, g.op("MatMul", y, g.weight(2048, width)))
    g.output(g.rms_norm(x, width), "hidden", [batch, length, width])
    return g.model()


def cnn(batch: Size, side: Size) -> ModelProto:
    """A stem, two residual blocks, a depthwise block, the head."""
    g = Exported(6)
    x = g.input("image", [batch, 3, side, side])
    y = g.op("Relu", g.conv_bn(x, 3, 64, 7, 2))
    y = g.op("MaxPool", y, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    for stride in (1, 2):
        z = g.op("Relu", g.conv_bn(y, 64 if stride == 1 else 128, 64 * stride, 1))
        z = g.op("Relu", g.conv_bn(z, 64 * stride, 64 * stride, 3, stride))
        z = g.conv_bn(z, 64 * stride, 128 * stride, 1)
        short = g.conv_bn(y, 64 * stride, 128 * stride, 1, stride)
        y = g.op("Relu", g.op("Add", z, short))
    y = g.op("Clip", g.conv_bn(y, 256, 256, 3, 1, group=256), g.const(0.0), g.const(6.0))
    y = g.op("Relu", g.conv_bn(y, 256, 256, 1))
    y = g.op("GlobalAveragePool", y)
    y = g.op("Reshape", y, g.dims(g.size(y, 0), -1))
    y = g.op("Gemm", y, g.weight(256, 100), g.vector(100))
    g.output(y, "logits", [batch, 100])
    return g.model()


def chain(a: Size, b: Size, c: Size, d: Size) -> ModelProto:
    """transpose, MatMul, Softmax, Mul, ReduceMean: no dim is known."""
    g = Exported(7)
    x, y = g.input("x", [a, c, b]), g.input("y", [a, c, d])
    z = g.op("MatMul", g.op("Transpose", x, perm=[0, 2, 1]), y)
    z = g.op("Mul", g.op("Softmax", z, axis=-1), z)
    g.output(g.op("ReduceMean", z, g.ints(-1), keepdims=0), "out", [a, b])
    return g.model()


TOKENS = ((1, 1), (1, 64), (1, 128), (3, 37), (4, 128))
MODELS: dict[str, DynamicModel] = {
    "bert": DynamicModel(bert, ("batch", "length"), TOKENS),
    "gpt2": DynamicModel(gpt2, ("batch", "length"), TOKENS),
    "vit": DynamicModel(lambda batch: vit(batch, 224), ("batch",), ((1,), (3,))),
    "vit_any": DynamicModel(vit, ("batch", "side"), ((1, 224), (2, 160))),
    "t5": DynamicModel(t5, ("batch", "length"), TOKENS),
    "llama": DynamicModel(llama, ("batch", "length"), TOKENS),
    "cnn": DynamicModel(lambda batch: cnn(batch, 112), ("batch",), ((1,), (3,), (8,))),
    "cnn_any": DynamicModel(cnn, ("batch", "side"), ((1, 112), (2, 65))),
    "chain": DynamicModel(chain, ("a", "b", "c", "d"), ((4, 128, 64, 96), (1, 33, 64, 200))),
}


def inputs_of(model: ModelProto, sizes: dict[str, int], seed: int = 0) -> dict[str, np.ndarray]:
    """Random inputs at these sizes; ids stay inside the vocabulary, masks end in zeros."""
    rng = np.random.default_rng(seed)
    out: dict[str, np.ndarray] = {}
    for value in model.graph.input:
        kind = value.type.tensor_type
        dims: Dims = [d.dim_param or d.dim_value for d in kind.shape.dim]
        shape = [sizes[d] if isinstance(d, str) else d for d in dims]
        if kind.elem_type == FLOAT:
            out[value.name] = rng.standard_normal(shape, np.float32)
        elif value.name == "mask":
            out[value.name] = np.ones(shape, np.int64)
            out[value.name][:, max(1, shape[1] - 3) :] = 0
        else:
            out[value.name] = rng.integers(0, 500, shape)
    return out
