"""Every form of a fused kernel in one ONNX model: each output is one form, alone in its kernels.

The oracle is onnxruntime. Which forms there are is asked of the product (`known_forms`), so that a
new rule, pattern or kind of kernel without a case here fails test_fused.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from onnx import TensorProto

from mgx_mlir.core.op import OPS, Kernel
from mgx_mlir.dialects.migraphx.quant import QuantDot
from mgx_mlir.passes import PASSES
from mgx_mlir.passes.analysis.attention_form import DECODING, TAGS
from mgx_mlir.passes.fusion.plan import OPAQUE
from mgx_mlir.passes.pipelines import pipeline
from mgx_mlir.rewrite.passes import pass_name
from mgx_mlir.rewrite.registry import rewrites_of
from tests.emulator.models import Case, Graph

FLOATS = ("f32", "f16", "bf16")


def known_forms() -> set[str]:
    """`kernel op` or `group tag`, and `pass/rewrite` of the passes that form a GPU's kernels."""
    found = {n for n, cls in OPS.items() if issubclass(cls, Kernel) and n != "group"}
    tags = (*(op.mnemonic for op in (*OPAQUE, QuantDot)), *TAGS, DECODING)
    found |= {f"group {tag}" for tag in tags}
    for step in dict.fromkeys(pass_name(s.partition("{")[0]) for s in pipeline("gpu")):
        if step.startswith(("fuse_", "split_")):
            found |= {f"{step}/{r.name}" for r in rewrites_of(PASSES[step])}
    return found


class Forms(Graph):
    """The outputs of a model, named after what they are."""

    def __init__(self, seed: int, dtype: str) -> None:
        super().__init__(seed, dtype)
        self.names: list[str] = []

    def x(self, *dims: int, scale: float = 1.0) -> str:
        return self.input(f"x{len(self.arrays)}", *dims, scale=scale)

    def result(self, value: str, *dims: int, kind: int | None = None) -> None:
        self.output(value, *dims, kind=kind)

    def gelu(self, x: str) -> str:
        y = self.op(
            "Add", self.op("Erf", self.op("Mul", x, self.number(math.sqrt(0.5)))), self.number(1)
        )
        return self.op("Mul", self.op("Mul", x, self.number(0.5)), y)


def pointwise(g: Forms) -> None:
    x, y = g.x(3, 37, 20), g.x(20)
    g.result(g.op("Tanh", g.op("Add", g.op("Mul", x, g.x(3, 37, 20)), y)), 3, 37, 20)
    # one kernel with two results
    a = g.x(17, 33)
    s = g.op("Sigmoid", g.op("Sub", a, g.number(0.25)))
    g.result(s, 17, 33)
    g.result(g.op("Exp", g.op("Neg", s)), 17, 33)
    # a broadcast of what is computed
    low, wide = g.x(1, 45), g.x(19, 45)
    g.result(g.op("Mul", wide, g.op("Relu", g.op("Add", low, g.number(0.5)))), 19, 45)
    # each by itself
    b = g.x(257)
    for name in ("Erf", "Softplus", "HardSwish", "Sqrt", "Cos", "Floor"):
        g.result(g.op(name, g.op("Abs", b) if name == "Sqrt" else b), 257)
    c = g.x(8, 65)
    g.result(
        g.op("Where", g.op("Greater", c, g.number(0)), c, g.op("Mul", c, g.number(0.1))), 8, 65
    )
    g.result(g.op("Clip", c, g.number(-0.5), g.number(0.75)), 8, 65)


def reductions(g: Forms) -> None:
    x = g.x(6, 40, 72)
    g.result(g.op("ReduceSum", g.op("Mul", x, x), g.ints(2), keepdims=0), 6, 40)
    g.result(g.op("ReduceMax", g.x(6, 40, 72), axes=[1], keepdims=1), 6, 1, 72)
    g.result(g.op("ReduceMean", g.x(12, 5, 9), axes=[0, 2], keepdims=0), 5)
    g.result(g.op("ReduceMin", g.op("Abs", g.x(31, 130)), axes=[1], keepdims=0), 31)
    g.result(g.op("ReduceL2", g.x(21, 50), axes=[1], keepdims=0), 21)
    # the reduced operand is read again
    y = g.x(23, 96)
    mean = g.op("ReduceMean", y, axes=[1], keepdims=1)
    g.result(g.op("Relu", g.op("Sub", y, mean)), 23, 96)
    z = g.x(1, 32, 48)
    g.result(g.op("LayerNormalization", z, g.weight(48), g.weight(48), axis=-1), 1, 32, 48)
    g.result(g.op("Softmax", g.op("Mul", g.x(4, 19, 33), g.number(2)), axis=-1), 4, 19, 33)
    g.result(g.op("Softmax", g.x(4, 19, 33), axis=1), 4, 19, 33)
    g.result(g.op("LogSoftmax", g.x(11, 64), axis=-1), 11, 64)
    root = g.x(9, 128)
    square = g.op("ReduceMean", g.op("Mul", root, root), axes=[1], keepdims=1)
    scaled = g.op("Div", root, g.op("Sqrt", g.op("Add", square, g.number(1e-3))))
    g.result(g.op("Mul", scaled, g.weight(128)), 9, 128)


def many_to_few(g: Forms) -> None:
    """A reduction that is split over groups."""
    x = g.x(2, 70000, scale=0.5)
    g.result(g.op("ReduceMean", g.op("Abs", x), axes=[1], keepdims=0), 2)


def dots(g: Forms) -> None:
    x, w = g.x(48, 64), g.weight(64, 80, scale=0.125)
    g.result(g.gelu(g.op("Add", g.op("MatMul", x, w), g.weight(80))), 48, 80)
    # weights that are no constant, cut tiles, a residual
    a, b = g.x(33, 50), g.x(50, 21, scale=0.15)
    g.result(g.op("Add", g.op("MatMul", a, b), g.x(33, 21)), 33, 21)
    # with a batch, the second transposed
    q, k = g.x(3, 20, 32), g.x(3, 24, 32, scale=0.2)
    g.result(g.op("MatMul", q, g.op("Transpose", k, perm=[0, 2, 1])), 3, 20, 24)
    # one row; two dots of one input
    r = g.x(1, 96)
    g.result(g.op("Relu", g.op("MatMul", r, g.weight(96, 40, scale=0.1))), 1, 40)
    s = g.x(16, 32)
    g.result(g.op("MatMul", s, g.weight(32, 48, scale=0.2)), 16, 48)
    g.result(g.op("Tanh", g.op("MatMul", s, g.weight(32, 16, scale=0.2))), 16, 16)
    g.result(
        g.op("Gemm", g.x(24, 40), g.weight(56, 40, scale=0.15), g.weight(56), transB=1), 24, 56
    )
    # deep: in parts, where the target splits
    g.result(g.op("MatMul", g.x(16, 2048), g.weight(2048, 32, scale=0.02)), 16, 32)


def convolutions(g: Forms) -> None:
    def conv(x: str, w: str, **how: object) -> str:
        return g.op("Conv", x, w, g.weight(g.weights[w].shape[0], scale=0.3), **how)

    x = g.x(1, 32, 14, 14)
    y = conv(x, g.weight(48, 32, 3, 3, scale=0.06), pads=[1] * 4)
    g.result(g.op("Relu", g.op("Add", y, g.x(1, 48, 14, 14))), 1, 48, 14, 14)
    y = conv(g.x(1, 16, 15, 15), g.weight(32, 16, 3, 3, scale=0.08), pads=[1] * 4, strides=[2, 2])
    g.result(g.op("Sigmoid", y), 1, 32, 8, 8)
    g.result(conv(g.x(2, 24, 9, 9), g.weight(40, 24, 1, 1, scale=0.2)), 2, 40, 9, 9)
    g.result(conv(g.x(1, 24, 8, 8), g.weight(32, 24, 1, 1, scale=0.2), strides=[2, 2]), 1, 32, 4, 4)
    # few channels: windows are gathered
    g.result(
        conv(g.x(1, 3, 24, 24), g.weight(32, 3, 7, 7, scale=0.08), pads=[3] * 4, strides=[2, 2]),
        1,
        32,
        12,
        12,
    )
    g.result(
        conv(g.x(1, 16, 12, 12), g.weight(16, 1, 3, 3, scale=0.3), group=16, pads=[1] * 4),
        1,
        16,
        12,
        12,
    )
    g.result(conv(g.x(1, 16, 10, 10), g.weight(24, 8, 3, 3, scale=0.12), group=2), 1, 24, 8, 8)
    g.result(
        conv(g.x(1, 20, 40), g.weight(24, 20, 3, scale=0.13), pads=[1, 1], dilations=[1]), 1, 24, 40
    )
    t = g.op("ConvTranspose", g.x(1, 8, 6, 6), g.weight(8, 12, 2, 2, scale=0.3), strides=[2, 2])
    g.result(t, 1, 12, 12, 12)


def poolings(g: Forms) -> None:
    x = g.x(1, 12, 13, 13)
    g.result(
        g.op("Relu", g.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)),
        1,
        12,
        7,
        7,
    )
    y = g.op("AveragePool", g.x(1, 8, 12, 12), kernel_shape=[2, 2], strides=[2, 2])
    g.result(g.op("Mul", y, g.number(3)), 1, 8, 6, 6)
    g.result(g.op("GlobalAveragePool", g.x(2, 33, 7, 7)), 2, 33, 1, 1)


def movements(g: Forms) -> None:
    g.result(g.op("Transpose", g.x(5, 18, 33), perm=[2, 0, 1]), 33, 5, 18)
    g.result(g.op("Relu", g.op("Transpose", g.x(1, 16, 9, 9), perm=[0, 2, 3, 1])), 1, 9, 9, 16)
    rows = g.weight(array=np.asarray(g.rng.integers(0, 50, (3, 7)), np.int64))
    g.result(g.op("Gather", g.x(50, 24), rows, axis=0), 3, 7, 24)
    g.result(g.op("Add", g.op("Gather", g.weight(60, 32), rows, axis=0), g.x(32)), 3, 7, 32)
    # rows of several tables, looked up side by side
    for n, height in enumerate((20, 31, 45, 12)):
        at = g.given(f"at{n}", g.rng.integers(0, height, 9))
        g.result(g.op("Gather", g.weight(height, 16), at, axis=0), 9, 16)
    s = g.op("Slice", g.x(30, 44), g.ints(3, 4), g.ints(27, 40), g.ints(0, 1), g.ints(2, 3))
    g.result(g.op("Mul", s, g.number(2)), 12, 12)
    g.result(g.op("Pad", g.op("Tanh", g.x(7, 9)), g.ints(1, 0, 2, 3), g.number(0.5)), 10, 12)
    g.result(
        g.op("Pad", g.x(1, 2, 6, 5), g.ints(0, 0, 1, 2, 0, 0, 2, 1), mode="reflect"), 1, 2, 9, 8
    )
    g.result(
        g.op("Resize", g.x(1, 4, 6, 7), "", "", g.ints(1, 4, 12, 14), mode="nearest"), 1, 4, 12, 14
    )
    g.result(
        g.op("Resize", g.x(1, 4, 6, 6), "", "", g.ints(1, 4, 9, 15), mode="linear"), 1, 4, 9, 15
    )
    g.result(g.op("Tile", g.x(3, 5), g.ints(2, 3)), 6, 15)


def concatenations(g: Forms) -> None:
    # halves turned, as in rotary embeddings; parts with ops before and behind them
    x, cos, sin = g.x(1, 2, 12, 32), g.x(1, 1, 12, 32), g.x(1, 1, 12, 32)
    low = g.op("Slice", x, g.ints(0), g.ints(16), g.ints(3))
    high = g.op("Slice", x, g.ints(16), g.ints(32), g.ints(3))
    turned = g.op("Concat", g.op("Neg", high), low, axis=-1)
    g.result(g.op("Add", g.op("Mul", x, cos), g.op("Mul", turned, sin)), 1, 2, 12, 32)
    parts = [g.op("Relu", g.x(5, 16)), g.x(5, 24), g.op("Tanh", g.x(5, 8))]
    g.result(g.op("Concat", *parts, axis=1), 5, 48)
    both = g.op("Concat", g.x(4, 16), g.x(6, 16), axis=0)
    g.result(g.op("Relu", g.op("Mul", both, g.number(1.5))), 10, 16)
    g.result(g.op("Concat", g.x(3, 7), g.x(3, 6), axis=1), 3, 13)  # not in runs: copies


def attentions(g: Forms) -> None:
    def heads(q: str, k: str, v: str, width: int, mask: str = "") -> str:
        s = g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2]))
        s = g.op("Mul", s, g.number(1 / math.sqrt(width)))
        return g.op("MatMul", g.op("Softmax", g.op("Add", s, mask) if mask else s, axis=-1), v)

    g.result(heads(*(g.x(1, 3, 40, 32) for _ in range(3)), 32), 1, 3, 40, 32)
    low = np.triu(np.full((1, 1, 24, 24), -10000.0), 1).astype(g.np)
    y = heads(*(g.x(1, 2, 24, 16) for _ in range(3)), 16, g.weight(array=low))
    y = g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 1, 3]), g.ints(1, 24, 32))
    g.result(y, 1, 24, 32)
    q = g.x(1, 4, 1, 32)  # one query: decoding
    g.result(heads(q, g.x(1, 4, 48, 32), g.x(1, 4, 48, 32), 32), 1, 4, 1, 32)


GROUPS: dict[str, Callable[[Forms], None]] = {
    f.__name__: f
    for f in (
        pointwise, reductions, many_to_few, dots, convolutions, poolings, movements,
        concatenations, attentions,
    )
}  # fmt: skip


def floats(dtype: str, seed: int) -> Case:
    """All groups as one model."""
    g = Forms(seed, dtype)
    for group in GROUPS.values():
        group(g)
    return g.case_of()


def integers(seed: int) -> Case:
    """Products and elements of integers: exact."""
    g = Forms(seed, "i8")
    x, w = g.x(33, 70), g.weight(70, 48)
    s32, u8 = TensorProto.INT32, TensorProto.UINT8
    g.result(g.op("MatMulInteger", x, w), 33, 48, kind=s32)
    # the epilogue of a matmul is in its kernel
    bias = g.weight(array=g.rng.integers(-999, 999, 24).astype(np.int32))
    y = g.op("Add", g.op("MatMulInteger", g.x(16, 64), g.weight(64, 24)), bias)
    g.result(g.op("Max", y, g.weight(array=np.asarray(0, np.int32))), 16, 24, kind=s32)
    g.result(
        g.op("ConvInteger", g.x(1, 16, 9, 9), g.weight(32, 16, 3, 3), pads=[1] * 4),
        1,
        32,
        9,
        9,
        kind=s32,
    )
    a = g.op("Cast", g.x(21, 40), to=s32)
    g.result(g.op("ReduceSum", g.op("Mul", a, a), g.ints(1), keepdims=0), 21, kind=s32)
    g.result(g.op("Transpose", g.x(17, 65), perm=[1, 0]), 65, 17, kind=TensorProto.INT8)
    scale = g.weight(array=np.asarray(0.0125, np.float32))
    f = g.op("DequantizeLinear", g.x(8, 64), scale)
    # a product of what was quantized, with what follows it
    p = g.op("DequantizeLinear", g.x(24, 64), scale)
    q = g.op("DequantizeLinear", g.weight(64, 40), scale)
    y = g.op("Add", g.op("MatMul", p, q), g.weight(array=g.rng.random(40).astype(np.float32)))
    g.result(g.op("Relu", y), 24, 40, kind=TensorProto.FLOAT)
    zero = g.weight(array=np.asarray(7, np.uint8))
    step = g.weight(array=np.asarray(0.02, np.float32))
    g.result(g.op("QuantizeLinear", g.op("Relu", f), step, zero), 8, 64, kind=u8)
    return g.case_of()
