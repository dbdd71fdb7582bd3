"""Drawn convolutions, matmuls in few bits, norms and rows."""

from __future__ import annotations

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper

from benchmarks.emulator.drawn.graph import Drawn, kind
from zoo.made import FLOAT

I32 = TensorProto.INT32


def _after(g: Drawn, y: str) -> str:
    """Append a drawn activation, or none, to a convolution or matmul."""
    how = g.pick("", "Relu", "Sigmoid", "HardSwish", "Silu", "Erf", "Tanh")
    return g.act(y, how) if how else y


def _window(g: Drawn, axes: int, most: int) -> tuple[list[int], dict[str, object]]:
    """A window and its options, for images of at least 5 along each axis."""
    window = [g.pick(1, 2, 3, 3, 5, most) for _ in range(axes)]
    options: dict[str, object] = {"kernel_shape": window}
    if g.coin(0.4):
        options["strides"] = [g.pick(1, 2, 3) for _ in range(axes)]
    dilations = [1 if k > 3 else g.pick(1, 1, 2) for k in window]
    options["dilations"] = dilations
    if g.coin(0.2):
        options["auto_pad"] = g.pick("SAME_UPPER", "SAME_LOWER")
    else:
        reach = [(k - 1) * d for k, d in zip(window, dilations, strict=True)]
        low = [g.number((r + 1) // 2, r) for r in reach]
        options["pads"] = low + [g.number((r + 1) // 2, r) for r in reach]
    return window, options


@kind
def convolution(g: Drawn) -> None:
    """An image of odd extents, and a second window behind the first."""
    g.narrow("f32", "f32", "f16", "bf16")
    group = g.pick(1, 1, 1, 2, 0)
    cin, cout = g.pick(1, 3, 5, 8, 16, 17, 24, 32), g.pick(1, 7, 16, 17, 24, 32, 33)
    if group == 2:
        cin, cout = 2 * cin, 2 * cout
    if group == 0:
        group, cout = cin, cin
    h, w = (g.odd() for _ in range(2))
    dims: list[int | str] = [g.extent("n", 1, 2, 3), cin, h, w]
    if g.is_dynamic and g.coin(0.4):
        dims[2:] = [g.extent("h", 5, 9, 13, 17), g.extent("w", 7, 11, 16)]
    x = g.floats("x", *dims)
    window, options = _window(g, 2, 7)
    w0 = g.weight(cout, cin // group, *window, fan_in=2 * cin // group * int(np.prod(window)))
    bias = [g.vector(cout)] if g.coin() else []
    y = _after(g, g.op("Conv", x, w0, *bias, group=group, **options))
    g.result(y, 4)
    g.result(_after(g, g.conv(y, cout, g.pick(4, 16, 19), g.pick(1, 3), g.pick(1, 3))), 4)


@kind
def line_or_volume(g: Drawn) -> None:
    """A convolution of one or three axes."""
    g.narrow("f32", "f32", "f16", "bf16")
    axes = g.pick(1, 3)
    cin, cout = g.pick(2, 5, 16, 24), g.pick(3, 16, 20, 33)
    side = [g.odd(33 if axes == 1 else 9) for _ in range(axes)]
    x = g.floats("x", g.extent("n", 1, 2), cin, *(max(5, s) for s in side))
    window, options = _window(g, axes, 5 if axes == 1 else 3)
    w = g.weight(cout, cin, *window, fan_in=2 * cin * int(np.prod(window)))
    g.result(_after(g, g.op("Conv", x, w, g.vector(cout), **options)), axes + 2)


@kind
def transposed(g: Drawn) -> None:
    """A transposed convolution."""
    g.narrow("f32", "f16")
    cin, cout, group = g.pick(4, 16, 18), g.pick(2, 16, 24), g.pick(1, 1, 2)
    window, stride = [g.pick(2, 3, 4) for _ in range(2)], [g.pick(1, 2, 3) for _ in range(2)]
    x = g.floats("x", g.extent("n", 1, 2), cin, g.odd(13), g.odd(13))
    w = g.weight(cin, cout // group, *window, fan_in=2 * cin)
    y = g.op("ConvTranspose", x, w, g.vector(cout), kernel_shape=window, strides=stride,
             pads=[g.number(0, k // 2) for k in window * 2], group=group)  # fmt: skip
    g.result(_after(g, y), 4)


@kind
def integer_convolution(g: Drawn) -> None:
    """ConvInteger, or convolutions of codes with a step for each filter."""
    cin, cout = g.pick(3, 8, 16, 20, 24, 32), g.pick(8, 16, 17, 24, 32)
    h, w = g.odd(29), g.odd(29)
    k, stride = g.pick(1, 3, 3, 5), g.pick(1, 1, 2)
    kernel: dict[str, object] = {"kernel_shape": [k, k], "strides": [stride] * 2}
    kernel["pads"] = [g.number(k // 2, k // 2 + (k > 1))] * 4
    unsigned = g.coin()
    code = np.uint8 if unsigned else np.int8
    low, high = int(np.iinfo(code).min), int(np.iinfo(code).max) + 1
    wide = helper.np_dtype_to_tensor_dtype(np.dtype(code))
    x = g.filled("x", lambda r, s: r.integers(low, high, s).astype(code), g.extent("n", 1, 2),
                 cin, h, w, kind=wide)  # fmt: skip
    weights = g.const(g.rng.integers(-127, 128, (cout, cin, k, k)), np.int8)
    zero = g.const(g.number(low, high - 1), code)
    g.oracle = "exact"
    if g.coin() or not unsigned:
        g.result(g.op("ConvInteger", x, weights, zero, g.const(0, np.int8), **kernel), 4, I32)
        return
    steps = g.const(g.rng.uniform(0.01, 0.02, cout) / (cin * k * k) ** 0.5)
    y = g.op("QLinearConv", x, g.const(0.03), zero, weights, steps,
             g.const(np.zeros(cout), np.int8), g.const(0.02), g.const(120, np.uint8),
             g.const(g.rng.integers(-500, 500, cout), np.int32), **kernel)  # fmt: skip
    g.limit = 0.02  # a tie of a sum in f32 goes either way: a step of 0.02 in a few elements
    g.result(g.op("DequantizeLinear", y, g.const(0.02), g.const(120, np.uint8)), 4)


@kind
def integer_matmul(g: Drawn) -> None:
    """Rows that are quantised as they come, or are codes."""
    g.oracle = "exact"
    depth, columns = g.pick(16, 24, 33, 64, 100), g.pick(8, 17, 32, 48)
    weights = g.const(g.rng.integers(-60, 61, (depth, columns)), np.int8)
    if g.coin():
        x = g.floats("x", g.extent("n", 1, 3, 17, 40), depth)
        q, s, z = g.op("DynamicQuantizeLinear", x, outputs=3)
        y = g.op("Cast", g.op("MatMulInteger", q, weights, z, g.const(0, np.int8)), to=FLOAT)
        g.result(_after(g, g.op("Mul", y, g.op("Mul", s, g.const(0.004)))), 2)
        return
    batch = [g.number(1, 3)] if g.coin(0.4) else []
    x = g.filled("x", lambda r, s: r.integers(-128, 128, s).astype(np.int8), *batch,
                 g.extent("n", 1, 2, 15, 33), depth, kind=TensorProto.INT8)  # fmt: skip
    g.result(g.op("MatMulInteger", x, weights, g.const(g.number(-9, 9), np.int8)),
             2 + len(batch), I32)  # fmt: skip


@kind
def few_bits(g: Drawn) -> None:
    """Weights of 4 bits in blocks, with zero points or without; f64 has the wanted values."""
    depth, columns, block = g.pick(64, 96, 128), g.pick(16, 24, 33, 64), g.pick(16, 32)
    blocks, zeros = depth // block, g.coin()
    codes = g.rng.integers(0, 16, (columns, depth))
    steps = g.rng.uniform(0.02, 0.05, (columns, blocks)).astype(np.float32)
    zero = g.rng.integers(0, 16, (columns, blocks)) if zeros else np.full((columns, blocks), 8)
    x = g.floats("x", g.extent("n", 1, 1, 4, 19, 33), depth)
    wide = (codes - np.repeat(zero, block, 1)) * np.repeat(steps, block, 1).astype(np.float64)
    g.wanted = lambda a: [a["x"].astype(np.float64) @ wide.T]
    if g.coin():
        packed = (codes[:, ::2] | codes[:, 1::2] << 4).reshape(columns, blocks, block // 2)
        given = [g.const(packed, np.uint8), g.const(steps.reshape(-1))]
        if zeros:
            both = np.pad(zero, [(0, 0), (0, blocks % 2)])
            given.append(g.const((both[:, ::2] | both[:, 1::2] << 4).reshape(-1), np.uint8))
        g.result(g.typed("MatMulNBits", x, *given, K=depth, N=columns, bits=4, block_size=block), 2)
        return
    codes4 = helper.make_tensor(
        "codes", TensorProto.UINT4, codes.shape, codes.astype(ml_dtypes.uint4).reshape(-1)
    )
    zeros4 = helper.make_tensor(
        "zeros", TensorProto.UINT4, zero.shape, zero.astype(ml_dtypes.uint4).reshape(-1)
    )
    g.weights += [codes4, zeros4]
    w = g.op("DequantizeLinear", "codes", g.const(steps), "zeros", axis=1, block_size=block)
    g.result(g.op("MatMul", x, g.op("Transpose", w, perm=[1, 0])), 2)


@kind
def small_floats(g: Drawn) -> None:
    """A matmul of 8-bit floats between pairs; f64 has the wanted values."""
    code, name = g.pick(
        (ml_dtypes.float8_e4m3fn, TensorProto.FLOAT8E4M3FN),
        (ml_dtypes.float8_e5m2, TensorProto.FLOAT8E5M2),
    )
    depth, columns = g.pick(16, 32, 64), g.pick(16, 24, 32)
    drawn = g.rng.standard_normal((depth, columns)).astype(np.float32).astype(code)
    weights = helper.make_tensor(
        "codes", name, drawn.shape, drawn.view(np.uint8).tobytes(), raw=True
    )
    zero = helper.make_tensor("zero", name, (), b"\0", raw=True)
    g.weights += [weights, zero]
    step, by = 1 / 32, 1 / 16  # powers of two: steps are exact
    x = g.floats("x", g.extent("n", 1, 16, 17, 32), depth)
    q = g.op("QuantizeLinear", x, g.const(step), "zero")
    a = g.op("DequantizeLinear", q, g.const(step), "zero")
    b = g.op("DequantizeLinear", "codes", g.const(by), "zero")
    g.result(g.op("MatMul", a, b), 2)
    wide = drawn.astype(np.float64) * by

    def wanted(inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
        rounded = (inputs["x"] / np.float32(step)).astype(code).astype(np.float64) * step
        return [rounded @ wide]

    g.wanted = wanted


@kind
def quantised_net(g: Drawn) -> None:
    """A convolution and a matmul between pairs of Q and DQ."""
    g.oracle, g.limit = "plain", 1e-2  # a tie goes either way
    cin, cout, k = g.pick(3, 16, 24), g.pick(16, 24, 32), g.pick(1, 3)
    side = g.odd(13)

    def pair(v: str, step: float) -> str:
        by = g.const(step), g.const(0, np.int8)
        return g.op("DequantizeLinear", g.op("QuantizeLinear", v, *by), *by)

    def coded(axis: int, *dims: int) -> str:
        w = g.const(g.rng.integers(-127, 128, dims), np.int8)
        fan = int(np.prod(dims)) / dims[axis]
        steps = g.const(g.rng.uniform(0.01, 0.03, dims[axis]) / fan**0.5)
        return g.op("DequantizeLinear", w, steps, g.const(np.zeros(dims[axis]), np.int8), axis=axis)

    x = pair(g.floats("x", g.extent("n", 1, 3), cin, side, side), 0.03)
    y = g.op("Conv", x, coded(0, cout, cin, k, k), g.vector(cout), pads=[k // 2] * 4)
    y = pair(g.op("Relu", y), 0.02)
    g.result(y, 4)
    y = g.op("Reshape", g.op("GlobalAveragePool", y), g.ints(0, -1))
    g.result(g.op("MatMul", pair(y, 0.01), coded(1, cout, g.pick(10, 24))), 2)


@kind
def matmul(g: Drawn) -> None:
    """A matmul of drawn extents by a weight, one of two inputs, and what follows."""
    g.narrow()
    depth, columns = g.pick(8, 16, 31, 32, 64, 100, 192), g.pick(1, 5, 16, 24, 48, 100)
    rows = g.extent("n", 1, 2, 7, 16, 33, 65)
    y = g.linear(g.floats("x", rows, depth), depth, columns)
    g.result(_after(g, y), 2)
    batch = g.pick(1, 2, 3)
    a = g.floats("a", batch, g.extent("m", 1, 5, 16, 30), g.extent("k", 1, 8, 17, 32))
    b = g.floats("b", batch, g.size("k"), g.pick(1, 12, 16, 33))
    g.result(g.op("MatMul", a, b), 3)


@kind
def norms(g: Drawn) -> None:
    """A norm of layers, roots, groups, instances or batches."""
    g.narrow("f32", "f16")
    width = g.pick(24, 33, 64, 100, 768, 1000)
    x = g.floats("x", g.extent("n", 1, 2, 5), g.extent("s", 1, 3, 7), width)
    y = g.norm(x, width) if g.coin() else g.rms_norm(x, width)
    g.result(_after(g, y), 3)
    groups = g.pick(1, 2, 4)
    channels = groups * g.pick(2, 3, 8)
    image = g.floats("image", g.size("n"), channels, g.odd(17), g.odd(17))
    scale, bias = g.vector(channels, 0.5, 1.5), g.vector(channels)
    how = g.pick("group", "instance", "batch", "lp")
    if how == "group":
        y = g.op("GroupNormalization", image, scale, bias, num_groups=groups)
    elif how == "instance":
        y = g.op("InstanceNormalization", image, scale, bias)
    elif how == "batch":
        stats = g.vector(channels), g.vector(channels, 0.5, 1.5)
        y = g.op("BatchNormalization", image, scale, bias, *stats)
    else:
        y = g.op("LpNormalization", image, axis=1, p=2)
    g.result(y, 4)


@kind
def long_rows(g: Drawn) -> None:
    """Softmax over rows of up to 50,257, and what is made of them."""
    g.narrow("f32", "f16")
    length = g.pick(197, 1000, 1021, 4099, 50257)
    rows = g.extent("n", 1, 2, 3)
    y = g.op(g.pick("Softmax", "LogSoftmax"), g.floats("x", rows, length), axis=-1)
    g.result(y, 2)
    s = g.extent("s", 1, 31, 65, 300)
    g.result(g.op("Softmax", g.floats("z", g.pick(2, 3), s, g.pick(3, 5)), axis=g.pick(1, 2)), 3)


@kind
def reductions(g: Drawn) -> None:
    """Sums and extremes over drawn axes."""
    dims = [g.extent("n", 1, 3, 17, 64), g.odd(), g.pick(5, 64, 100)]
    x = g.floats("x", *dims)
    for how in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceLogSumExp"):
        if g.coin():
            axes = sorted({g.number(0, 2) for _ in range(g.number(1, 2))})
            keep = g.number(0, 1)
            y = g.op(how, x, g.ints(*axes), keepdims=keep)
            g.result(y, 3 if keep else 3 - len(axes))
    g.result(g.op("ReduceProd", g.op("Tanh", x), g.ints(1), keepdims=1), 3)
    i = g.integers("i", 50, *dims)
    g.result(g.op("ReduceMax", i, g.ints(g.number(0, 2)), keepdims=1), 3, TensorProto.INT64)
    at = g.op(g.pick("ArgMax", "ArgMin"), x, axis=g.number(0, 2), keepdims=1)
    g.result(at, 3, TensorProto.INT64)
