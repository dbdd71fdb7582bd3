"""Random programs for the patterns of simplify_qdq."""

import numpy as np
from pattern_graphs import case

from mgx_mlir.core import dtypes


def spread(g, v, dims, axis):
    """A number, or a vector along `axis`, at `dims`."""
    rank = len(g.b.dims(v))
    if rank == 0:
        return g.b.multibroadcast(v, dims)
    return g.b.op("broadcast", v, axis=axis, out_lens=list(dims))


def parameters(g, dims, axis, dtype, affine=0.4, low=0.05):
    """Scale (and sometimes zero point) of a value of `dims`: one, or one for each at `axis`."""
    own = () if axis is None or g.coin() else (dims[axis],)
    scale = spread(g, g.constant(own, low=low, high=0.5), dims, axis)
    if not g.coin(affine):
        return (scale,)
    low, high = (120, 136) if dtype == "ui8" else (-9, 9)
    zero = g.constant(own, dtype, low=low, high=high)
    if dtype == "ui8" and g.coin(0.3):
        zero = g.constant(own, dtype, value=128)
    return scale, spread(g, zero, dims, axis)


def quantised(g, dims, axis, dtype="i8", kind="f32", **options):
    """dequantizelinear of an argument or of a constant, in a float type."""
    make = g.argument if g.coin() else g.constant
    low, high = (0, 255) if dtype == "ui8" else (-128, 127)
    x = make(dims, dtype, low=low, high=high)
    value = g.b.op("dequantizelinear", x, *parameters(g, dims, axis, dtype, **options))
    if kind != "f32":
        value = g.b.op("convert", value, target_type=dtypes.from_name(kind))
    return value


# f32 sums of products against exact ones
@case("match_find_quantizable_ops", rtol=1e-5, fires=0.9)
def dots(g):
    batch = g.dims(g.pick(0, 0, 1, 2), high=3)
    m, k, n = g.dims(3)
    rank = len(batch) + 2
    a = quantised(g, (*batch, m, k), rank - 2)
    b = quantised(g, (*batch, k, n), rank - 1)
    return g.b.op("dot", g.maybe_used(a), g.maybe_used(b))


@case("match_find_quantizable_ops", rtol=1e-5, fires=0.3)
def dots_of_many_kinds(g):
    """Views between, other types, scales along what is summed."""
    m, k, n = g.dims(3, high=4)
    types = [g.pick("i8", "i8", "ui8", "i32") for _ in range(2)]
    kind = g.pick("f32", "f32", "f16", "f64")
    a = quantised(g, (m, k), g.pick(0, 0, 1), types[0], kind)
    w = quantised(g, (n, k), g.pick(0, 0, 1), types[1], kind)
    w = g.b.op("transpose", w, permutation=[1, 0])
    if g.coin():
        a = g.b.multibroadcast(a, (2, m, k))
        w = g.b.multibroadcast(w, (2, k, n))
    return g.b.op("dot", a, w)


@case("match_find_quantizable_ops", rtol=1e-4, fires=0.9)
def dots_of_f8(g):
    m, k, n = g.dims(3)
    kind = g.pick("fp8e4m3fn", "fp8e5m2", "fp8e4m3fnuz")
    sides = []
    for dims, axis in (((m, k), 0), ((k, n), 1)):
        x = g.argument(dims, kind)
        scale = parameters(g, dims, axis, "i8", affine=0)[0]
        zero = spread(g, g.constant((), kind, value=0), dims, None)
        sides.append(g.b.op("dequantizelinear", x, scale, *([zero] if g.coin() else [])))
    return g.b.op("dot", *sides)


@case("match_find_quantizable_ops", rtol=1e-5, fires=0.4)
def convolutions(g):
    spatial = g.pick(1, 2)
    group = g.pick(1, 1, 2)
    channels, out = g.pick(1, 2) * group, g.pick(1, 2, 3) * group
    image = g.dims(spatial, low=3, high=5)
    window = g.dims(spatial, high=2)
    x = quantised(g, (g.pick(1, 2), channels, *image), g.pick(None, None, 1), g.pick("i8", "ui8"))
    w = quantised(
        g, (out, channels // group, *window), g.pick(0, 0, 0, 1), g.pick("i8", "i8", "ui8"),
        affine=0.3,
    )  # fmt: skip
    return g.b.op(
        "convolution",
        x,
        w,
        padding=[g.pick(0, 1) for _ in range(spatial * g.pick(1, 2))],
        stride=[g.pick(1, 2) for _ in range(spatial)],
        dilation=[g.pick(1, 1, 2) for _ in range(spatial)],
        group=group,
        padding_mode=g.pick("default_", "default_", "same_upper", "same_lower"),
    )


def widened(g, dims, axis):
    """An 8-bit integer in i32, often less a zero point: a number, or one for each at an axis."""
    dtype = g.pick("i8", "i8", "ui8", "ui8", "i16")
    make = g.argument if g.coin() else g.constant
    low, high = (0, 255) if dtype == "ui8" else (-128, 127)
    x = g.b.op("convert", make(dims, dtype, low=low, high=high), target_type=dtypes.INT32)
    if g.coin(0.3):
        return x
    own = () if g.coin() else (dims[axis],)
    zero = (g.argument if g.coin() else g.constant)(own, "i32", low=-300, high=300)
    return g.b.sub(x, spread(g, zero, dims, axis))


@case("find_widened_dot", fires=0.5)
def widened_dots(g):
    """Sums in i32, whose bits are equal; other types, zero points along what is summed."""
    m, k, n = g.dims(3, high=5)
    a = widened(g, (m, k), g.pick(0, 0, 0, 1))
    b = widened(g, (n, k), g.pick(0, 0, 0, 1))
    b = g.b.op("transpose", b, permutation=[1, 0])
    if g.coin(0.3):
        a, b = g.b.multibroadcast(a, (2, m, k)), g.b.multibroadcast(b, (2, k, n))
    return g.b.op("dot", g.maybe_used(a), g.maybe_used(b))


@case("find_widened_convolution", fires=0.3)
def widened_convolutions(g):
    """Sums in i32; zero points of the run and of no 8-bit type, along the input's channels."""
    group = g.pick(1, 1, 2)
    x = widened(g, (1, 2, *g.dims(2, low=3, high=5)), g.pick(0, 0, 1))
    if g.coin():  # the form of ConvInteger
        kind, dims = g.pick("i8", "ui8"), (1, 2, *g.dims(2, low=3, high=5))
        low, high = (0, 255) if kind == "ui8" else (-128, 127)
        y = g.b.op("convert", g.argument(dims, kind, low=low, high=high), target_type=dtypes.INT32)
        zero = (g.argument if g.coin() else g.constant)((), kind, low=low, high=high)
        zero = g.b.op("convert", zero, target_type=dtypes.INT32)
        x = g.b.op("sub", y, g.b.multibroadcast(zero, dims))
    w = widened(g, (2 * group, 2 // group, *g.dims(2, high=2)), g.pick(0, 0, 1))
    return g.b.op("convolution", x, w, group=group, padding=[g.pick(0, 1) for _ in range(4)])


def sums(g, dims):
    """i32 sums of a product, dequantised by one scale or one for each at the last axis."""
    own = () if g.coin() else (dims[-1],)
    scale = g.constant(own, low=0.05, high=0.5)
    x = g.argument(dims, "i32", low=-500, high=500)
    last = len(dims) - 1
    return g.b.op("dequantizelinear", x, spread(g, scale, dims, last)), scale


@case("find_integer_bias", rtol=1e-5, fires=0.3)
def integer_biases(g):
    """A bias of another scale, or another type, stays."""
    dims = g.dims(2)
    value, scale = sums(g, dims)
    bias = g.constant((dims[-1],), g.pick("i32", "i32", "i32", "i8"), low=-90, high=90)
    own = scale if g.coin(0.8) else g.constant((), low=0.05, high=0.5)
    bias = g.b.op("dequantizelinear", bias, spread(g, own, (dims[-1],), 0))
    return g.b.add(g.maybe_used(value), spread(g, bias, dims, 1))


def quantise(g, x, scale, zero=None):
    """A value in 8 bits by one scale and zero point."""
    dims = g.b.dims(x)
    given = [] if zero is None else [g.b.multibroadcast(zero, dims)]
    return g.b.op("quantizelinear", x, g.b.multibroadcast(scale, dims), *given)


@case("find_requantised", fires=0.6, options={"requantised": True})
def requantised(g):
    """Scales are powers of two, whose quotients are exact: others may be one step off."""
    dims = g.dims(2)
    x = g.argument(dims, "i32", low=-500, high=500)
    scale = g.constant((), value=g.pick(0.125, 0.25, 0.5))
    value = g.b.op("dequantizelinear", x, spread(g, scale, dims, 1))
    value = g.maybe_used(g.b.relu(value) if g.coin() else value)
    zero = g.constant((), g.pick("i8", "ui8"), value=7) if g.coin() else None
    return quantise(g, value, g.constant((), value=g.pick(0.25, 0.5, 2.0)), zero)


@case("find_quantised_again", fires=0.4)
def quantised_again(g):
    """Through views; other scales and zero points stay."""
    dims, kind = g.dims(2), g.pick("i8", "ui8")
    low, high = (0, 255) if kind == "ui8" else (-128, 127)
    x, scale = g.argument(dims, kind, low=low, high=high), g.constant((), low=0.05, high=0.5)
    zero = g.constant((), kind, value=g.pick(0, 7, 120))
    given = [g.b.multibroadcast(v, dims) for v in (scale, zero)]
    y = g.b.op("dequantizelinear", x, *given)
    if g.coin():
        y = g.b.op("transpose", y, permutation=[1, 0])
    other = g.constant((), low=0.05, high=0.5) if g.coin(0.2) else scale
    return quantise(g, y, other, zero if g.coin(0.8) else g.constant((), kind, value=8))


@case("find_pooled", fires=0.4)
def pooled(g):
    """Averages stay, and what is read as it is."""
    dims, kind = (1, 2, *g.dims(2, low=2, high=5)), g.pick("i8", "ui8")
    low, high = (0, 255) if kind == "ui8" else (-128, 127)
    x, scale = g.argument(dims, kind, low=low, high=high), g.constant((), low=0.05, high=0.5)
    zero = g.constant((), kind, value=g.pick(0, 7))
    y = g.b.op("dequantizelinear", x, *[g.b.multibroadcast(v, dims) for v in (scale, zero)])
    y = g.b.op(
        "pooling", y, mode=g.pick("max", "max", "max", "average"), lengths=[2, 2], stride=[1, 1],
        padding=[0, 0] * 2, dilations=[1, 1],
    )  # fmt: skip
    return quantise(g, g.maybe_used(y), scale, zero)


@case("match_find_mx_quantizable_ops", rtol=1e-4, fires=0.6, options={"mx": True})
def match_find_mx_quantizable_ops(g):
    m, n = g.dims(2)
    blocks, size = g.pick(1, 2, 2, 3), g.pick(2, 4)
    k = blocks * size
    kind = g.pick("fp8e4m3fn", "fp8e5m2")
    sides = []
    for rows in (m, n):
        x = g.argument((rows, k), kind if g.coin(0.9) else "fp8e5m2")
        scale = g.constant((rows, blocks, 1), low=0.25, high=2)
        scale = g.b.multibroadcast(scale, (rows, blocks, size))
        scale = g.b.op("reshape", scale, dims=[rows, k])
        sides.append(g.b.op("dequantizelinear", x, scale))
    if g.coin(0.3):
        sides = [g.b.op("convert", v, target_type=dtypes.HALF) for v in sides]
    return g.b.op("dot", sides[0], g.b.op("transpose", sides[1], permutation=[1, 0]))


# half a step (0.025 at most) of values of 1 and more
@case("remove_qdq_pairs", rtol=0.0125, fires=0.4)
def remove_qdq_pairs(g):
    """Whole pairs, with views between, of other scales, of a value that is used elsewhere."""
    dims = g.dims(g.pick(1, 2, 3))
    kind = g.pick("i8", "ui8", "i16")
    axis = g.pick(None, 0)
    own = () if axis is None else (dims[axis],)
    scale = spread(g, g.constant(own, low=0.01, high=0.05), dims, axis)
    zero = spread(g, g.constant(own, kind, low=0, high=20), dims, axis)
    x = g.argument(dims, low=1, high=5)
    q = g.b.op("quantizelinear", x, scale, zero, out_type=dtypes.from_name(kind))
    if g.coin(0.2):
        q = g.used(q)
    if g.coin(0.3):
        order = g.random.sample(range(len(dims)), len(dims))
        q = g.b.op("transpose", q, permutation=order)
        dims = tuple(dims[i] for i in order)
        if axis is None:
            scale, zero = (
                g.b.multibroadcast(v.owner.operands[0], dims) if v.owner.name != "migraphx.literal"
                else v for v in (scale, zero)
            )  # fmt: skip
        else:
            scale, zero = (g.b.op("transpose", v, permutation=order) for v in (scale, zero))
    if g.coin(0.15):
        scale = g.constant(dims, value=0.04)
    return g.b.op("dequantizelinear", q, scale, *([zero] if g.coin(0.9) else []))


@case("remove_qdq_pairs", rtol=0.0125, fires=0.3)
def padded(g):
    """With padding between: by the zero point, by another number, taken off again."""
    n = g.pick(1, 2, 3)
    zero = g.pick(0, 0, 3)
    x = g.argument((n,), low=1, high=5)

    def scalar(number, dtype, extent):
        return g.b.multibroadcast(g.constant((), dtype, value=number), (extent,))

    q = g.b.op("quantizelinear", x, scalar(0.05, "f32", n), scalar(zero, "i8", n))
    before, after = g.pick(0, 1), g.pick(1, 2)
    q = g.b.op("pad", q, pads=[before, after], value=float(g.pick(0, zero)))
    total = n + before + after
    if g.coin():
        q, total = g.b.op("slice", q, axes=[0], starts=[0], ends=[n]), n
    return g.b.op("dequantizelinear", q, scalar(0.05, "f32", total), scalar(zero, "i8", total))


# half a unit in the last place of three bits, and of one bit for 4-bit values
@case("remove_qdq_pairs", rtol=0.13, fires=0.9)
def of_few_bits(g):
    dims = (g.pick(1, 2), g.pick(2, 4))
    x = g.argument(dims, low=2, high=7)
    scale = g.b.multibroadcast(g.constant((), value=g.pick(0.5, 1.0, 2.0)), dims)
    if g.coin():
        q = g.b.op("quantizelinear", x, scale, out_type=dtypes.FP8E4M3FN)
        if g.coin():
            axis = g.pick(-1, 1)
            q = g.b.op("unpack_fp4", g.b.op("pack_fp4", q, axis=axis), axis=axis)
    else:
        scale = g.b.multibroadcast(g.constant((), value=0.5), dims)
        q = g.b.op("quantizelinear", x, scale, out_type=g.pick(dtypes.INT8, dtypes.UINT8))
        q = g.b.op("unpack_int4", g.b.op("pack_int4", q))
    return g.b.op("dequantizelinear", q, scale)


# half a step of 0.05 (of values of 1 and more), through exp at most 5 times that
@case("match_qlinear_reused", rtol=0.06, fires=0.4, options={"reuse": True})
def match_qlinear_reused(g):
    dims = g.dims(g.pick(1, 2))
    x = g.b.op("abs", g.argument(dims, low=1, high=5))
    scale = g.b.multibroadcast(g.constant((), value=0.05), dims)
    early = [g.b.op("relu", x)] if g.coin(0.2) else []
    q = g.maybe_used(g.b.op("quantizelinear", x, scale, out_type=dtypes.INT8), 0.9)
    late = [g.b.op(g.pick("relu", "sqrt"), x)] if g.coin(0.9) else []
    if g.coin(0.2):
        late.append(g.b.op("reduce_sum", x, axes=[0]))
    return [q, *early, *late]


@case("match_concat_qlinear", fires=0.4)
def match_concat_qlinear(g):
    dims = list(g.dims(g.pick(1, 2, 3), high=3))
    axis = g.random.randrange(len(dims))
    parts = []
    for _ in range(g.pick(1, 2, 3)):
        own = [*dims[:axis], g.pick(1, 2, 3), *dims[axis + 1 :]]
        x = g.argument(own)
        parts.append(g.b.op("relu", x) if g.coin(0.7) else x)
    joined = g.b.op("concat", parts, axis=axis - len(dims) if g.coin() else axis)
    total = g.b.dims(joined)
    at = g.random.randrange(len(dims))
    given = parameters(g, total, at, "i8")
    kind = {"out_type": dtypes.INT8} if len(given) == 2 or g.coin() else {}
    return g.b.op("quantizelinear", g.maybe_used(joined, 0.2), *given, **kind)


@case("remove_zero_point", fires=0.3)
def remove_zero_point(g):
    dims = g.dims(g.pick(0, 1, 2))
    kind = g.pick("i8", "ui8", "i32", "fp8e4m3fn")
    x = g.argument(dims, kind)
    zero = g.constant(g.pick((), dims), kind, value=g.pick(0, 0, 1))
    if g.coin(0.2):
        zero = g.argument((), kind)
    scale = g.b.multibroadcast(g.constant((), g.pick("f32", "f16"), low=0.1, high=1), dims)
    return g.b.op("dequantizelinear", x, scale, g.b.multibroadcast(zero, dims))


# -0 becomes 0: equal numbers, not equal bits
@case("remove_zero_scales", rtol=1e-30, fires=0.3)
def remove_zero_scales(g):
    dims = g.dims(g.pick(0, 1, 2))
    kind = g.pick("i8", "ui8", "i32", "fp8e4m3fn")
    x = g.argument(dims, kind)
    scale = g.constant(g.pick((), dims), g.pick("f32", "f16"), value=g.pick(0, 0, -0.0, 0.5))
    zero = [g.argument(dims, kind)] if g.coin() else []
    return g.b.op("dequantizelinear", x, g.b.multibroadcast(scale, dims), *zero)


@case("add_int4_pack_unpack_pair", fires=0.3, special=False)
def add_int4_pack_unpack_pair(g):
    """Values within 4 bits: there the pair changes nothing."""
    dims = (g.pick(1, 2, 3), g.pick(1, 2, 4, 6))
    kind = g.pick("i8", "ui8")
    packed = g.constant((1, 1), kind, value=np.array([[0x11]]))
    zero = g.b.op("slice", g.b.op("unpack_int4", packed), axes=[1], starts=[0], ends=[1])
    if g.coin(0.7):
        zero = g.b.op("reshape", g.b.op("unpack_int4", packed), dims=[2])
        dims = (dims[0], 2)
    else:
        zero = g.b.op("contiguous", zero)
    if g.coin(0.2):
        zero = g.constant((), kind, value=1)
    zero = g.b.multibroadcast(zero, dims)
    scale = g.b.multibroadcast(g.constant((), value=0.5), dims)
    x = g.argument(dims, low=0 if kind == "ui8" else -3, high=3)
    q = g.b.op("quantizelinear", x, scale, zero)
    return g.b.op("dequantizelinear", g.maybe_used(q), scale, zero)


@case("find_gathered_table", rtol=0, fires=0.6)
def find_gathered_table(g):
    """Scales of one number, by rows, columns, or both; indices from either end and beyond."""
    dims = g.dims(g.pick(1, 2, 3), high=6)
    axis = g.pick(*range(len(dims)))
    along = g.pick(None, axis, *range(len(dims)))
    kind = g.pick("i8", "ui8")
    make = g.constant if g.coin(0.9) else g.argument
    low, high = (0, 255) if kind == "ui8" else (-128, 127)
    x = make(dims, kind, low=low, high=high)
    table = g.b.op("dequantizelinear", x, *parameters(g, dims, along, kind))
    at = g.argument(g.dims(g.pick(1, 2), high=2), "i64", low=-8, high=8)
    return g.b.op("gather", g.maybe_used(table), at, axis=axis)


@case("find_byte_table", rtol=0, fires=0.7, options={"tables": True})
def find_byte_table(g):
    """Chains of pointwise ops, quantised in between or not, that meet or do not."""
    dims = g.dims(g.pick(0, 1, 2))
    kinds = [g.pick("i8", "ui8") for _ in range(3)]
    x = g.argument(dims, kinds[0], low=0, high=127)

    def scale(low=0.05):
        return g.b.multibroadcast(g.constant((), low=low, high=0.5), dims)

    def again(y, kind):
        s, z = scale(), g.b.multibroadcast(g.constant((), kind, low=0, high=9), dims)
        return g.b.op("quantizelinear", y, s, z), (s, z)

    zero = g.b.multibroadcast(g.constant((), kinds[0], low=0, high=9), dims)
    y = g.b.op("dequantizelinear", x, scale(), zero)
    for _ in range(g.pick(0, 1, 3)):
        y = g.b.op(g.pick("relu", "abs", "neg", "floor"), y)
        y = g.b.mul(y, g.pick(y, scale()))
    if g.coin():
        q, parameters = again(y, kinds[1])
        y = g.b.op("add", y, g.b.op("dequantizelinear", q, *parameters))
    if g.coin(0.2):
        y = g.b.op("add", y, g.argument(dims))
    return again(y, kinds[2])[0]
