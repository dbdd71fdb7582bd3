"""Held-out models of 8, 4 and 16 bits.

Those in pairs of Q and DQ are compared with f32 arithmetic between the pairs; a sum in another
order may fall on the other side of a code, which is a 255th of a tensor's range.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from benchmarks.emulator.held_out.net import FLOAT, I32, Net, held

F16, BF16 = TensorProto.FLOAT16, TensorProto.BFLOAT16


def pair(g: Net, x: str, step: float, zero: int = 0, kind: type = np.int8) -> str:
    """Quantise a value and turn it back."""
    by = g.const(step), g.const(zero, kind)
    return g.op("DequantizeLinear", g.op("QuantizeLinear", x, *by), *by)


def coded(g: Net, out: int, *rest: int, channel: bool = True) -> str:
    """Weights of 8 bits with a step for each output."""
    w = g.const(g.rng.integers(-127, 128, (out, *rest)), np.int8)
    fan = int(np.prod(rest))
    if not channel:
        return g.op("DequantizeLinear", w, g.const(0.02 / fan**0.5), g.const(0, np.int8))
    steps = g.const(g.rng.uniform(0.01, 0.03, out) / fan**0.5)
    return g.op("DequantizeLinear", w, steps, g.const(np.zeros(out), np.int8), axis=0)


@held({"b": 3}, b=2, oracle="plain", limit=1e-2, narrow=False)
def qdq_images(g: Net) -> None:
    """A residual net in pairs: signed values, a step for each channel."""
    x = pair(g, g.floats("image", "b", 3, 20, 20), 0.03)

    def conv(v: str, cin: int, cout: int, k: int, group: int = 1, **a: object) -> str:
        bias = g.const(g.rng.uniform(-0.1, 0.1, cout))
        return g.op("Conv", v, coded(g, cout, cin // group, k, k), bias, kernel_shape=[k, k],
                    pads=[k // 2] * 4, group=group, **a)  # fmt: skip

    x = pair(g, g.op("Relu", conv(x, 3, 16, 3, strides=[2, 2])), 0.02)
    y = pair(g, g.op("Clip", conv(x, 16, 32, 1), g.const(0.0), g.const(6.0)), 0.02)
    y = pair(g, g.op("Relu", conv(y, 32, 32, 3, group=32)), 0.02)
    y = pair(g, conv(y, 32, 16, 1), 0.02)
    x = pair(g, g.op("Add", x, y), 0.03)
    y = pair(g, g.op("GlobalAveragePool", x), 0.01)
    y = g.op("Flatten", y)
    g.result(g.op("Gemm", y, coded(g, 10, 16, channel=False), g.vector(10), transB=1), 2)


@held({"b": 1, "n": 9}, b=2, n=6, oracle="plain", limit=1e-2, narrow=False)
def qdq_layer(g: Net) -> None:
    """An encoder layer in pairs of unsigned values that have a zero point."""
    width = 32
    x = pair(g, g.floats("x", "b", "n", width), 0.03, 128, np.uint8)

    def dense(v: str, cin: int, cout: int) -> str:
        w = g.op("Transpose", coded(g, cout, cin, channel=False), perm=[1, 0])
        return g.op("Add", g.op("MatMul", v, w), g.vector(cout))

    q, k, v = (
        pair(g, g.split_heads(dense(x, width, width), 4, 8), 0.02, 120, np.uint8) for _ in range(3)
    )
    s = g.op("Mul", g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2])), g.const(8**-0.5))
    p = pair(g, g.op("Softmax", s, axis=-1), 1 / 255, 0, np.uint8)
    y = g.op(
        "Reshape", g.op("Transpose", g.op("MatMul", p, v), perm=[0, 2, 1, 3]), g.ints(0, 0, -1)
    )
    x = g.norm(g.op("Add", x, dense(pair(g, y, 0.02, 128, np.uint8), width, width)), width)
    y = pair(g, g.gelu(dense(pair(g, x, 0.03, 128, np.uint8), width, 64)), 0.02, 20, np.uint8)
    g.result(g.norm(g.op("Add", x, dense(y, 64, width)), width), 3)


@held({"b": 3}, b=1, oracle="exact", narrow=False)
def q_operators(g: Net) -> None:
    """QLinear operators: convolutions, sums and pools of codes."""
    step, zero = g.const(0.03), g.const(128, np.uint8)
    x = g.op("QuantizeLinear", g.floats("image", "b", 3, 16, 16), step, zero)

    def conv(
        v: str, s: str, z: str, cin: int, cout: int, k: int, out: float, **a: object
    ) -> tuple[str, str, str]:
        w = g.const(g.rng.integers(-127, 128, (cout, cin, k, k)), np.int8)
        scale = g.const(g.rng.uniform(0.01, 0.02, cout) / (cin * k * k) ** 0.5)
        bias = g.const(g.rng.integers(-500, 500, cout), np.int32)
        to = g.const(out), g.const(0, np.uint8)
        y = g.op("QLinearConv", v, s, z, w, scale, g.const(np.zeros(cout), np.int8), *to, bias,
                 kernel_shape=[k, k], pads=[k // 2] * 4, **a)  # fmt: skip
        return (y, *to)

    a = conv(x, step, zero, 3, 16, 3, 0.01, strides=[2, 2])
    b = conv(*a, 16, 16, 3, 0.01)
    to = g.const(0.015), g.const(3, np.uint8)
    y = g.typed("QLinearAdd", *a, *b, *to)
    y = g.op("MaxPool", y, kernel_shape=[2, 2], strides=[2, 2])
    y = g.typed(
        "QLinearGlobalAveragePool", y, *to, g.const(0.008), g.const(0, np.uint8), channels_last=0
    )
    y = g.op("Flatten", y)
    # two of its products with u8 fit into 16 bits: onnxruntime's QLinearMatMul saturates otherwise
    w = g.const(g.rng.integers(-60, 61, (16, 8)), np.int8)
    y = g.op("QLinearMatMul", y, g.const(0.008), g.const(0, np.uint8), w, g.const(0.01),
             g.const(0, np.int8), g.const(0.05), g.const(100, np.uint8))  # fmt: skip
    g.result(g.op("DequantizeLinear", y, g.const(0.05), g.const(100, np.uint8)), 2)


@held({"n": 13}, n=6, oracle="exact", narrow=False)
def dynamic_codes(g: Net) -> None:
    """Perceptrons whose rows are quantised as they come (DynamicQuantizeLinear, MatMulInteger)."""
    x = g.floats("x", "n", 32)
    for cin, cout in ((32, 48), (48, 16)):
        q, s, z = g.op("DynamicQuantizeLinear", x, outputs=3)
        w = g.const(g.rng.integers(-60, 61, (cin, cout)), np.int8)
        y = g.op("Cast", g.op("MatMulInteger", q, w, z, g.const(0, np.int8)), to=FLOAT)
        x = g.op(
            "Relu", g.op("Add", g.op("Mul", y, g.op("Mul", s, g.const(0.004))), g.vector(cout))
        )
    g.result(x, 2)


def four_bits(g: Net, x: str, cin: int, cout: int, block: int = 32, *, zeros: bool = False) -> str:
    """A product with weights of 4 bits in blocks."""
    blocks = cin // block
    w = g.const(g.rng.integers(0, 256, (cout, blocks, block // 2)), np.uint8)
    s = g.const(g.rng.uniform(0.02, 0.05, cout * blocks) / (cin / 32) ** 0.5)
    z = [g.const(g.rng.integers(0, 256, cout * ((blocks + 1) // 2)), np.uint8)] if zeros else []
    return g.typed("MatMulNBits", x, w, s, *z, K=cin, N=cout, bits=4, block_size=block)


@held({"n": 1, "p": 11}, n=4, p=7, narrow=False)
def int4_llama(g: Net) -> None:
    """A layer as onnxruntime's builder writes it: GroupQueryAttention, skips, weights of 4 bits."""
    width, heads, size = 64, 4, 16
    ids = g.integers("ids", 40, 1, "n")
    past = [g.floats(f"past_{k}", 1, 2, "p", size) for k in "kv"]
    x = g.op("Gather", g.weight(40, width), ids)
    y = g.typed("SimplifiedLayerNormalization", x, g.vector(width, 0.5, 1.5), axis=-1, epsilon=1e-5)
    g.nodes[-1].domain = ""
    q = four_bits(g, y, width, width)
    k, v = (four_bits(g, y, width, 32, zeros=True) for _ in range(2))
    n = g.op("Cast", g.op("Shape", ids, start=1, end=2), to=I32)
    total = g.op("Add", n, g.op("Cast", g.op("Shape", past[0], start=2, end=3), to=I32))
    last = g.op("Sub", total, g.const([1], np.int32))
    angle = np.outer(np.arange(32), 100.0 ** (-np.arange(size // 2) / (size // 2)))
    y, pk, pv = g.typed(
        "GroupQueryAttention", q, k, v, *past, last, g.op("Squeeze", total), g.const(np.cos(angle)),
        g.const(np.sin(angle)), outputs=3, num_heads=heads, kv_num_heads=2, do_rotary=1,
    )  # fmt: skip
    y = four_bits(g, y, width, width)
    y, _, _, x = g.typed("SkipSimplifiedLayerNormalization", x, y, g.vector(width, 0.5, 1.5),
                         outputs=4, epsilon=1e-5)  # fmt: skip
    y = g.op("Mul", g.silu(four_bits(g, y, width, 96)), four_bits(g, y, width, 96))
    x = g.op("Add", x, four_bits(g, y, 96, width))
    g.result(g.op("MatMul", x, g.weight(width, 40)), 3)
    g.result(pk, 4)
    g.result(pv, 4)


@held({"b": 3}, b=2, limit=2e-3, narrow=False)
def half_with_casts(g: Net) -> None:
    """An f16 net whose norms and softmax are f32, as converters write; f32 inputs and outputs."""

    def half(*dims: int, fan_in: int) -> str:
        return g.const(g.rng.standard_normal(dims) / fan_in**0.5, np.float16)

    x = g.op("Cast", g.floats("x", "b", 12, 32), to=F16)
    for _ in range(2):
        y = g.op("Cast", x, to=FLOAT)
        y = g.op("Cast", g.norm(y, 32), to=F16)
        q, k, v = (
            g.split_heads(g.op("MatMul", y, half(32, 32, fan_in=32)), 2, 16) for _ in range(3)
        )
        s = g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2]))
        s = g.op("Mul", g.op("Cast", s, to=FLOAT), g.const(0.25))
        p = g.op("Cast", g.op("Softmax", s, axis=-1), to=F16)
        y = g.op("Transpose", g.op("MatMul", p, v), perm=[0, 2, 1, 3])
        y = g.op("MatMul", g.op("Reshape", y, g.ints(0, 0, 32)), half(32, 32, fan_in=64))
        x = g.op("Add", x, y)
    g.result(g.op("Cast", x, to=FLOAT), 3)


@held({"n": 3}, n=8, oracle="wide", limit=1e-2, narrow=False)
def brain_floats(g: Net) -> None:
    """A bf16 perceptron with a gate and a norm; f32 at its ends."""

    def weight(*dims: int) -> str:
        value = (g.rng.standard_normal(dims) / dims[0] ** 0.5).astype(np.float32)
        return g.op("Cast", g.const(value), to=BF16)

    x = g.op("Cast", g.floats("x", "n", 32), to=BF16)
    for _ in range(2):
        up, gate = g.op("MatMul", x, weight(32, 64)), g.op("MatMul", x, weight(32, 64))
        y = g.op("MatMul", g.op("Mul", up, g.op("Sigmoid", gate)), weight(64, 32))
        x = g.op("Add", x, y)
    g.result(g.op("Cast", x, to=FLOAT), 2)


@held({"b": 2}, b=1, narrow=False)
def doubles(g: Net) -> None:
    """An f64 net with i32 arithmetic of bits, as scientific exports have."""
    x = g.filled("x", lambda r, s: r.standard_normal(s), "b", 9, kind=TensorProto.DOUBLE)
    w = g.const(g.rng.standard_normal((9, 7)), np.float64)
    y = g.op("MatMul", x, w)
    y = g.op(
        "Div", g.op("Sin", y), g.op("Add", g.op("Exp", g.op("Neg", y)), g.const(1.0, np.float64))
    )
    code = g.op("Cast", g.op("Floor", g.op("Mul", y, g.const(100.0, np.float64))), to=I32)
    bits = g.op("BitwiseXor", code, g.op("BitwiseAnd", code, g.const(0x55, np.int32)))
    g.result(g.op("ReduceProd", y, g.ints(1), keepdims=0), 1, TensorProto.DOUBLE)
    g.result(bits, 2, I32)
    g.result(g.op("Mod", code, g.const(7, np.int32)), 2, I32)
