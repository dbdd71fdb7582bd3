"""Random programs for simplify_algebra."""

from pattern_graphs import case

FLOATS = ("f32", "f32", "f32", "f16", "f64")
NUMBERS = (*FLOATS, "i32", "i8", "i64")
# for sums that are taken in another order: what cancels in 16 bits leaves nothing to compare
WIDE = ("f32", "f32", "f64", "i32", "i8", "i64")


def repeated(g, dims, dtype="f32", along=None, value=None):
    """A constant of `dims` that varies along the axes `along` (any choice by default)."""
    if along is None:
        along = [i for i in range(len(dims)) if g.coin()]
    small = [d if i in along else 1 for i, d in enumerate(dims)]
    c = g.constant(small, dtype, value=value)
    if g.coin(0.3) and len(along) == 1:
        flat = g.b.op("reshape", c, dims=[dims[along[0]]])
        return g.b.op("broadcast", flat, axis=along[0], out_lens=list(dims))
    return g.b.multibroadcast(c, dims)


def swapped(g, name, a, b):
    """A commutative op with its operands in either order."""
    return g.b.op(name, *((a, b) if g.coin() else (b, a)))


def extents(g, low=1):
    return g.dims(g.pick(1, 2, 3), low=low, high=4)


# ---- single ops ----------------------------------------------------------------------------------


@case("find_unit_ops", rtol=1e-7, special=True, fires=0.4)
def find_unit_ops(g):
    dims, kind = extents(g), g.pick(*NUMBERS, "ui8")
    name = g.pick("mul", "add", "sub", "div")
    x = g.argument(dims, kind, 1 if kind[0] != "f" and name == "div" else None)
    unit = repeated(g, dims, kind, value=(name in ("mul", "div")) ^ g.coin(0.1))
    return swapped(g, name, x, unit) if name in ("mul", "add") else g.b.op(name, x, unit)


@case("find_where_const", fires=0.6)
def find_where_const(g):
    dims, kind = extents(g), g.pick(*NUMBERS)
    value = g.pick(True, False, None)
    condition = repeated(g, dims, "bool", value=value)
    return g.b.op("where", condition, g.argument(dims, kind), g.argument(dims, kind))


@case("find_neg_unit_ops", rtol=1e-7, special=True, fires=0.5)
def find_neg_unit_ops(g):
    dims, kind, name = extents(g), g.pick(*NUMBERS), g.pick("mul", "div", "sub")
    x = g.argument(dims, kind)
    if name == "sub":
        return g.b.op("sub", repeated(g, dims, kind, value=g.pick(0, 0, 1)), x)
    c = repeated(g, dims, kind, value=-1)
    return swapped(g, "mul", x, c) if name == "mul" else g.b.op("div", x, c)


@case("find_zero_ops", fires=0.3)
def find_zero_ops(g):
    """Integers always, floats never."""
    dims, kind, name = extents(g), g.pick("f32", "i32", "ui8", "i64"), g.pick("mul", "div")
    x = g.argument(dims, kind, *((1, 5) if kind != "f32" and name == "div" else ()))
    zero = repeated(g, dims, kind, value=0)
    return swapped(g, "mul", x, zero) if name == "mul" else g.b.op("div", zero, x)


@case("find_zero_ops", rtol=1e-7, options={"fast_math": True}, special=False)
def zeros_of_floats(g):
    dims, kind = extents(g), g.pick(*FLOATS)
    return swapped(g, "mul", g.argument(dims, kind), repeated(g, dims, kind, value=0))


@case("find_idempotent", fires=0.6)
def find_idempotent(g):
    dims, kind = extents(g, 0), g.pick(*NUMBERS, "ui8")
    x = g.argument(dims, kind)
    return g.b.op(g.pick("max", "min"), x, g.argument(dims, kind) if g.coin(0.2) else x)


@case("eliminate_zero_point", fires=0.5)
def eliminate_zero_point(g):
    dims, kind, wide = extents(g), g.pick("i8", "ui8", "i32"), g.pick("f32", "f16", "f64")
    scale = repeated(g, dims, wide, value=g.pick(0.5, 0.1, 2))
    value = g.pick(0, 0, 0, 3, None)
    z = repeated(g, dims, kind, value=value)
    if g.coin():
        return g.b.op("quantizelinear", g.argument(dims, wide, -50, 50), scale, z)
    return g.b.op("dequantizelinear", g.argument(dims, kind), scale, z)


@case("find_sub_const", fires=0.5)
def find_sub_const(g):
    dims, kind = extents(g), g.pick(*NUMBERS, "ui8")
    return g.b.op("sub", g.argument(dims, kind), g.maybe_used(repeated(g, dims, kind)))


@case("find_div_const", special=True, fires=0.3)
def find_div_const(g):
    """Powers of two: to the last bit."""
    dims, kind = extents(g), g.pick(*FLOATS, "i32")
    c = repeated(g, dims, kind, value=g.pick(2, 4, 8, 3))
    return g.b.op("div", g.argument(dims, kind), c)


@case("find_div_const", rtol=1e-5, options={"fast_math": True}, special=False)
def quotients_by_any_constant(g):
    dims, kind = extents(g), g.pick(*FLOATS, "i32")
    return g.b.op("div", g.argument(dims, kind), g.constant(dims, kind, 1, 5))


@case("find_div_const", options={"fast_math": True}, special=True, fires=0)
def quotients_ahead_of_steps(g):
    """Not one element may differ."""
    dims, kind = extents(g), g.pick("f32", "f64")
    x = g.b.op("div", g.argument(dims, kind, -99, 99), g.constant(dims, kind, 1, 99))
    if g.coin(0.5):
        x = g.b.op("add", x, g.argument(dims, kind))
    return g.b.op(g.pick("floor", "ceil", "nearbyint"), x)


@case("find_recip", rtol=1e-6, special=True, fires=0.5)
def find_recip(g):
    dims, kind = extents(g), g.pick(*FLOATS, "i32")
    one = repeated(g, dims, kind, value=g.pick(1, 1, 1, 2))
    return g.b.op("div", one, g.argument(dims, kind, 1, 5))


@case("find_rsqrt", rtol=1e-5, special=False)
def find_rsqrt(g):
    x = g.argument(extents(g), g.pick(*FLOATS), 0.1, 9)
    return g.b.op("recip", g.maybe_used(g.b.op("sqrt", x)))


@case("find_pow2", rtol=1e-5, special=True, fires=0.5)
def find_pow2(g):
    dims, kind = extents(g), g.pick(*FLOATS)
    return g.b.op("pow", g.argument(dims, kind), repeated(g, dims, kind, value=g.pick(2, 2, 2, 3)))


@case("find_pow_const", rtol=1e-5, special=False, fires=0.5)
def find_pow_const(g):
    dims, kind = extents(g), g.pick(*FLOATS)
    n = g.pick(1, 3, 4, -1, 0.5)
    return g.b.op("pow", g.argument(dims, kind, 0.5, 3), repeated(g, dims, kind, value=n))


@case("find_log_exp", rtol=1e-5, options={"fast_math": True}, special=False)
def find_log_exp(g):
    x = g.argument(extents(g), g.pick("f32", "f64"), -3, 3)
    return g.b.op("log", g.maybe_used(g.b.op("exp", x)))


@case("find_log_div", rtol=1e-5, options={"fast_math": True}, special=False)
def find_log_div(g):
    dims = extents(g)
    kind = g.pick("f32", "f64")
    x = g.argument(dims, kind, -3, 3)
    exp = g.b.op("exp", x)
    below = exp
    if g.coin(0.3):
        below = g.b.op("exp", g.argument(dims, kind, -3, 3))
    elif g.coin(0.8):
        axes = [g.random.randrange(len(dims))]
        below = g.b.multibroadcast(g.b.op("reduce_sum", exp, axes=axes), dims)
    above = exp if g.coin(0.8) else g.argument(dims, kind, 1, 5)
    log = g.b.op("log", g.maybe_used(g.b.op("div", above, below)))
    return g.b.op("add", log, x)  # what is left of a difference is as exact as what it is of


# ---- constants in sums and products --------------------------------------------------------------


def product(g, dims, kind):
    """A value that is rounded; an argument that is exact now and then."""
    x = g.argument(dims, kind)
    return x if g.coin(0.1) else g.b.op("mul", x, g.argument(dims, kind))


@case("find_add_lit_broadcast", rtol=1e-5, special=False)
def find_add_lit_broadcast(g):
    dims, kind = extents(g), g.pick(*WIDE)
    inner = swapped(g, "add", product(g, dims, kind), repeated(g, dims, kind))
    return swapped(g, "add", g.maybe_used(inner, 0.2), repeated(g, dims, kind))


@case("find_double_add_lit_broadcast", rtol=1e-5, special=False)
def find_double_add_lit_broadcast(g):
    dims, kind = extents(g), g.pick(*WIDE)
    left = swapped(g, "add", product(g, dims, kind), repeated(g, dims, kind))
    right = swapped(g, "add", product(g, dims, kind), repeated(g, dims, kind))
    return g.b.op("add", g.maybe_used(left, 0.1), g.maybe_used(right, 0.1))


@case("find_mul_add", rtol=1e-5, special=False)
def find_mul_add(g):
    dims, kind = extents(g), g.pick(*WIDE)
    total = swapped(g, "add", product(g, dims, kind), repeated(g, dims, kind))
    return swapped(g, "mul", g.maybe_used(total, 0.2), repeated(g, dims, kind))


@case("find_inner_broadcast", fires=0.4)
def find_inner_broadcast(g):
    dims, kind = extents(g), g.pick(*NUMBERS)

    def operand():
        if g.coin(0.2):
            return repeated(g, dims, kind)
        small = [d if g.coin(0.4) else 1 for d in dims]
        return g.b.multibroadcast(g.argument(small, kind), dims)

    if g.coin(0.3):
        return g.b.op(g.pick("neg", "abs"), operand())
    return g.b.op(g.pick("add", "mul", "sub", "max"), g.maybe_used(operand()), operand())


# ---- constants into weights ----------------------------------------------------------------------


def convolution(g, x=None, kind="f32", weights=None, *, padded=None, group=None, last=None):
    """A 2-D convolution (or 1-D) of random attributes, with constant weights."""
    spatial = g.pick(1, 2, 2)
    group = group or g.pick(1, 1, 2)
    last = g.coin(0.3) if last is None else last
    kernel, outs = g.dims(spatial, high=3), group * g.pick(1, 2)
    channels = group * g.pick(1, 2)
    stride, dilation = g.dims(spatial, high=2), g.dims(spatial, high=2)
    size = [d * (k - 1) + 1 + g.random.randint(0, 3) for k, d in zip(kernel, dilation, strict=True)]
    padding = g.dims(2 * spatial, low=0, high=1) if g.coin() and padded is not False else [0, 0]
    if len(padding) != 2 * spatial:
        padding = [0] * spatial
    batch = g.pick(1, 2)
    dims = (batch, *size, channels) if last else (batch, channels, *size)
    inner = channels // group
    wdims = (*kernel, inner, outs) if last else (outs, inner, *kernel)
    attributes = {
        "stride": stride, "dilation": dilation, "padding": padding, "group": group,
        "channels_last": last,
    }  # fmt: skip
    if g.coin(0.2) and padded is None:
        attributes |= {"padding_mode": g.pick("same_upper", "same_lower"), "padding": [0] * spatial}
    x = g.argument(dims, kind) if x is None else x(dims)
    w = g.constant(wdims, kind) if weights is None else weights(wdims)
    return g.b.op("convolution", x, w, **attributes), (len(dims) - 1 if last else 1)


@case("find_mul_conv", rtol=1e-5, special=False, fires=0.4)
def find_mul_conv(g):
    kind = g.pick(*FLOATS, "i32")
    y, channel = convolution(g, kind=kind)
    dims = g.b.dims(y)
    along = g.pick([channel], [channel], [channel], [], [len(dims) - channel])
    return swapped(g, "mul", g.maybe_used(y, 0.2), repeated(g, dims, kind, along))


@case("find_mul_slice_conv", rtol=1e-5, special=False, fires=0.3)
def find_mul_slice_conv(g):
    kind = g.pick(*WIDE[:4])
    y, channel = convolution(g, kind=kind)
    outs = g.b.dims(y)[channel]
    at = sorted(g.random.randint(0, outs) for _ in range(2))
    bounds = [(0, at[0]), tuple(at), (at[1], outs)]
    if g.coin(0.1):
        bounds.append((0, outs))
    parts = [
        g.b.op("slice", y, axes=[channel], starts=[low], ends=[high])
        for low, high in bounds if high > low
    ]  # fmt: skip
    some = g.random.randrange(len(parts))
    dims = g.b.dims(parts[some])
    along = g.pick([channel], [channel], [channel], [], [0])
    parts[some] = swapped(g, "mul", g.maybe_used(parts[some], 0.1), repeated(g, dims, kind, along))
    return parts


def matrices(g, kind="f32", batch=None):
    """The dims of the sides of a dot, with a batch sometimes."""
    m, k, n = g.dims(3)
    lead = g.dims(g.pick(0, 0, 1, 2), high=3) if batch is None else batch
    return (*lead, m, k), (*lead, k, n)


@case("find_mul_dot", rtol=1e-5, special=False, fires=0.4)
def find_mul_dot(g):
    kind = g.pick(*FLOATS, "i32")
    a, b = matrices(g)
    left = g.coin(0.3)
    x = g.constant(a, kind) if left else g.argument(a, kind)
    y = g.argument(b, kind) if left else g.constant(b, kind)
    z = g.b.op("dot", x, y)
    dims = g.b.dims(z)
    own = len(dims) - (2 if left else 1)
    scale = repeated(g, dims, kind, g.pick([own], [own], [own], [], [len(dims) - 1]))
    return swapped(g, "mul", g.maybe_used(z, 0.2), scale)


@case("find_dot_mul", rtol=1e-5, special=False, fires=0.4, options={"all_forms": True})
def find_dot_mul(g):
    kind = g.pick(*FLOATS, "i32")
    a, b = matrices(g)
    left = g.coin(0.3)  # the constant matrix is on the left
    dims = b if left else a
    summed = len(dims) - (2 if left else 1)
    along = g.pick([summed], [summed], [summed], [], [len(dims) - 2])
    z = swapped(g, "mul", g.argument(dims, kind), repeated(g, dims, kind, along))
    z = g.maybe_used(z, 0.1)
    w = g.maybe_used(g.constant(a if left else b, kind), 0.1)
    return g.b.op("dot", w, z) if left else g.b.op("dot", z, w)


def sum_into_dot(g, along):
    kind = g.pick(*WIDE[:4])
    a, b = matrices(g)
    left = g.coin(0.3)
    dims = b if left else a
    total = swapped(g, "add", product(g, dims, kind), repeated(g, dims, kind, along(dims, left)))
    total = g.maybe_used(total, 0.2)
    w = g.constant(a if left else b, kind) if g.coin(0.8) else repeated(g, a if left else b, kind)
    return g.b.op("dot", w, total) if left else g.b.op("dot", total, w)


@case("find_dot_add", rtol=1e-5, special=False, fires=0.4)
def find_dot_add(g):
    return sum_into_dot(
        g, lambda dims, left: [len(dims) - (2 if left else 1)] if g.coin(0.8) else None
    )


@case("find_dot_add", rtol=1e-5, special=False, fires=0.4, options={"all_forms": True})
def matrices_into_dots(g):
    return sum_into_dot(g, lambda dims, left: None)


def sum_into_convolution(g, along, **of):
    kind = g.pick(*WIDE[:4])
    last = g.coin(0.3)

    def x(dims):
        channel = len(dims) - 1 if last else 1
        c = repeated(g, dims, kind, along(channel))
        return g.maybe_used(swapped(g, "add", product(g, dims, kind), c), 0.1)

    return convolution(g, x, kind, last=last, **of)[0]


@case("find_conv_add", rtol=1e-5, special=False, fires=0.4)
def find_conv_add(g):
    return sum_into_convolution(
        g, lambda channel: [channel] if g.coin(0.9) else None, padded=g.pick(False, False, True)
    )


@case("find_conv_add", rtol=1e-5, special=False, fires=0.5, options={"all_forms": True})
def images_into_convolutions(g):
    return sum_into_convolution(g, lambda channel: None)


@case("find_dot_slice", rtol=1e-5, special=True, fires=0.5)
def find_dot_slice(g):
    kind = g.pick(*FLOATS, "i32")
    a, b = matrices(g)
    rows = -1 if g.coin(0.2) else a[-2]
    x = g.argument((*a[:-2], rows, a[-1]), kind)
    z = g.maybe_used(g.b.op("dot", x, g.argument(b, kind)), 0.2)
    dims = (*a[:-1], b[-1])
    axes = [i for i in range(len(dims)) if g.coin(0.6)] or [0]
    starts = [g.random.randint(-2, dims[i]) for i in axes]
    ends = [g.random.randint(0, dims[i] + 1) for i in axes]
    axes = [i - len(dims) if g.coin(0.2) else i for i in axes]
    return g.b.op("slice", z, axes=axes, starts=starts, ends=ends)


# ---- repeated operands ---------------------------------------------------------------------------


@case("find_dot_broadcast", rtol=1e-6, special=True, fires=0.4)
def find_dot_broadcast(g):
    kind = g.pick(*FLOATS, "i32")
    a, b = matrices(g, batch=g.dims(g.pick(1, 2), low=2, high=3))
    shared = [g.coin(0.7) for _ in a[:-2]]

    def side(dims):
        small = [1 if s and g.coin(0.9) else d for d, s in zip(dims, shared, strict=False)]
        return g.b.multibroadcast(g.argument((*small, *dims[-2:]), kind), dims)

    return g.b.op("dot", side(a), g.maybe_used(side(b)))


@case("find_conv_broadcast_input", rtol=1e-5, special=False, fires=0.2)
def find_conv_broadcast_input(g):
    kind = g.pick("f32", "f64", "i32")
    last = g.coin(0.3)

    def x(dims):
        spatial = range(1, len(dims) - 1) if last else range(2, len(dims))
        small = [1 if i in spatial and g.coin(0.95) else d for i, d in enumerate(dims)]
        return g.b.multibroadcast(g.argument(small, kind), dims)

    return convolution(g, x, kind, last=last, group=g.pick(None, 1, 1))[0]


@case("find_conv_broadcast_input", rtol=1e-5, special=False, fires=0.5)
def padded_images_of_one_pixel(g):
    spatial = g.pick(1, 2, 3)
    kernel = g.dims(spatial, high=3)
    size = [k + g.random.randint(0, 4) for k in kernel]
    x = g.b.multibroadcast(g.argument((g.pick(1, 2), 2) + (1,) * spatial), (2, 2, *size))
    attributes = {
        "padding": g.dims(2 * spatial, low=0, high=3), "stride": [1] * spatial,
        "dilation": [1] * spatial,
    }  # fmt: skip
    return g.b.op("convolution", x, g.constant((3, 2, *kernel)), **attributes)


# ---- several products as one ---------------------------------------------------------------------


@case("find_conv_dot_horiz_fusion", rtol=1e-6, special=True, fires=0.4)
def find_conv_dot_horiz_fusion(g):
    """Dots of one input; weights may be broadcast, used twice, dead, or of a call."""
    return dots_of_one_input(g)


@case("find_conv_dot_horiz_fusion", rtol=1e-6, special=True, options={"all_forms": True})
def dots_of_any_epilogue(g):
    return dots_of_one_input(g)


def dots_of_one_input(g):
    kind = g.pick(*FLOATS, "i32")
    lead, (m, k) = g.dims(g.pick(0, 0, 1, 2), high=3), g.dims(2)
    open_rows = g.coin(0.2)
    x = g.argument((*lead, -1 if open_rows else m, k), kind)
    out = []
    for _ in range(g.pick(2, 3, 4)):
        dims = (*lead, k, *g.dims(1))
        if g.coin(0.15):
            w = g.argument(dims, kind)
        else:
            small = [1 if i < len(lead) and g.coin() else d for i, d in enumerate(dims)]
            w = g.b.multibroadcast(g.constant(small, kind), dims)
            w = g.maybe_used(w, 0.1)
        y = g.b.op("dot", x, w)
        if not open_rows and g.coin(0.4):
            y = g.maybe_used(y, 0.1)
            y = swapped(g, "add", y, repeated(g, g.b.dims(y), kind, [len(lead) + 1]))
        if g.coin(0.3):
            y = g.b.op("abs", y)
        if g.coin(0.9):
            out.append(y)
    return out or [x]


@case("find_conv_dot_horiz_fusion", fires=0.7)
def quantized_dots(g):
    kind, (m, k) = g.pick("i8", "ui8"), g.dims(2)
    x = g.argument((m, k), kind)
    return [
        g.b.op("quant_dot", x, g.constant((k, g.dims(1)[0]), g.pick(kind, kind, "i8")))
        for _ in range(3)
    ]


@case("find_conv_dot_horiz_fusion", rtol=1e-6, special=True, options={"all_forms": True})
def convolutions_side_by_side(g):
    kernel, last = g.dims(2, high=3), g.coin(0.3)
    stride = g.dims(2, high=2)
    x = g.argument((2, 5, 4, 2) if last else (2, 2, 5, 4))
    out = []
    for _ in range(g.pick(2, 3)):
        outs = g.pick(1, 2, 3)
        own = kernel if g.coin(0.9) else (1, 1)
        w = g.constant((*own, 2, outs) if last else (outs, 2, *own))
        y = g.b.op("convolution", x, w, stride=stride, channels_last=last)
        out.append(g.maybe_used(y))
    return out


@case("find_add_convs", rtol=1e-5, special=False, fires=0.4, options={"all_forms": True})
def find_add_convs(g):
    last, kernel = g.coin(0.3), g.pick((1, 1), (1, 1), (3, 2))
    strides = [g.pick(1, 2), g.pick(1, 2)]
    if kernel != (1, 1):
        strides[1] = strides[0]
    height, outs = g.random.randint(3, 4), g.pick(1, 2)
    out = []
    for s in strides:
        h, w = (height - 1) * s + g.random.randint(1, s), 3 * s
        h, w = h + kernel[0] - 1, w + kernel[1] - 1
        channels = g.pick(1, 2)
        x = g.argument((2, h, w, channels) if last else (2, channels, h, w))
        weights = g.constant((*kernel, channels, outs) if last else (outs, channels, *kernel))
        y = g.b.op("convolution", x, weights, stride=[s, s], channels_last=last)
        out.append(g.maybe_used(y, 0.1))
    return g.b.op("add", *out)


@case("find_concat_conv", rtol=1e-6, special=True, fires=0.4, options={"all_forms": True})
def find_concat_conv(g):
    last, group, n = g.coin(0.3), g.pick(1, 2), g.pick(2, 3)
    attributes = {"stride": g.dims(2, high=2), "group": group, "channels_last": last}
    out = []
    for _ in range(n):
        x = g.argument((2, 4, 5, 2) if last else (2, 2, 4, 5))
        own = 2 // group
        outs = 2 * group if g.coin(0.9) else group
        wdims = (2, 3, own, outs) if last else (outs, own, 2, 3)
        w = g.constant(wdims) if g.coin() else g.argument(wdims)
        out.append(g.maybe_used(g.b.op("convolution", x, w, **attributes), 0.1))
    return g.b.op("concat", out, axis=3 if last else 1)


# ---- concatenations ------------------------------------------------------------------------------


@case("find_concat_same_input", fires=0.4)
def find_concat_same_input(g):
    dims, kind = list(extents(g)), g.pick(*NUMBERS)
    axis = g.random.randrange(len(dims))
    dims[axis] = g.pick(1, 1, 1, 2)
    x = g.argument(dims, kind)
    values = [x] * g.pick(2, 3)
    if g.coin(0.2):
        values.append(g.argument(dims, kind))
    return g.b.op("concat", values, axis=axis - (len(dims) if g.coin(0.3) else 0))


@case("find_concat_op", fires=0.4)
def find_concat_op(g):
    """Broadcasts and packed weights."""
    if g.coin(0.3):
        kind, axis = g.pick("i8", "ui8"), g.pick(0, 1)
        along = g.pick(0, 1)
        values = []
        for _ in range(2):
            dims = [2, 2]
            dims[axis] = g.dims(1)[0]
            values.append(g.b.op("unpack_int4", g.argument(dims, kind), axis=along))
        return g.b.op("concat", values, axis=axis)
    dims, kind = list(g.dims(3, high=3)), g.pick(*NUMBERS)
    axis, kept = g.random.randrange(3), [g.coin(0.5) for _ in range(3)]
    values = []
    for _ in range(g.pick(2, 3)):
        dims[axis] = g.dims(1)[0]
        small = [d if k else 1 for d, k in zip(dims, kept, strict=True)]
        x = g.argument(small, kind) if g.coin(0.7) else g.constant(small, kind)
        values.append(g.maybe_used(g.b.multibroadcast(x, dims), 0.1))
    return g.b.op("concat", values, axis=axis)


@case("find_concat_op", fires=0.4, options={"all_forms": True})
def concat_of_pointwise_ops(g):
    dims, kind = list(extents(g)), g.pick(*NUMBERS)
    axis, name = g.random.randrange(len(dims)), g.pick("neg", "abs", "add", "mul", "sub")
    values = []
    for _ in range(g.pick(2, 3)):
        dims[axis] = g.dims(1)[0]
        own = name if g.coin(0.9) else g.pick("neg", "add")
        count = 1 if own in ("neg", "abs") else 2
        operands = [g.argument(dims, kind) for _ in range(count)]
        values.append(g.maybe_used(g.b.op(own, *operands), 0.1))
    return g.b.op("concat", values, axis=axis)


@case("find_split_concat", fires=0.35)
def find_split_concat(g):
    dims, kind = list(g.dims(g.pick(1, 2), low=2, high=6)), g.pick(*NUMBERS)
    axis = g.random.randrange(len(dims))
    x = g.argument(dims, kind)
    values, at = [], 0
    while at < dims[axis]:
        low = at if g.coin(0.8) else g.random.randrange(dims[axis])
        high = g.random.randint(low + 1, dims[axis])
        part = g.b.op("slice", x, axes=[axis], starts=[low], ends=[high])
        values.append(g.maybe_used(part, 0.2))
        at = max(high, at + 1)
    if g.coin(0.3):
        values.insert(g.random.randint(0, len(values)), x)
    return g.b.op("concat", values, axis=axis)


# ---- all parts of one tensor ---------------------------------------------------------------------


def cut(g, x, axis, chance=0.95):
    """Slices that cut `x` along `axis`, in any order; seldom with a gap or an overlap."""
    extent = g.b.dims(x)[axis]
    places = sorted(g.random.sample(range(1, extent), min(extent - 1, g.pick(1, 1, 2))))
    bounds = list(zip([0, *places], [*places, extent], strict=True))
    if g.coin(1 - chance):
        low, high = bounds[-1]
        bounds[-1] = (max(low - 1, 0), high) if g.coin() else (low, max(high - 1, low))
    g.random.shuffle(bounds)
    return [g.b.op("slice", x, axes=[axis], starts=[a], ends=[b]) for a, b in bounds], bounds


@case("find_splits", fires=0.5)
def find_splits(g):
    dims, kind = list(g.dims(g.pick(1, 2, 3), low=2, high=5)), g.pick(*NUMBERS)
    axis = g.random.randrange(len(dims))
    if len(dims) > 1 and g.coin(0.2):
        dims[axis - 1] = "n"
    x = g.argument(dims, kind)
    parts, bounds = cut(g, x, axis)
    kinds = ("constant", "unary", "tensor", "twice", "shared", "reduce")
    how = g.pick(*kinds[1:2], *kinds[2:4]) if "n" in dims else g.pick(*kinds)
    name = g.pick("add", "sub", "mul")
    y = g.argument(dims, kind)
    shared = g.argument([1] * len(dims), kind) if "n" not in dims else None
    number = g.pick(None, None, 0, 2)
    others = [i for i in range(len(dims)) if i != axis]
    out = []
    for part, (low, high) in zip(parts, bounds, strict=True):
        own = g.b.dims(part)
        flip = g.coin(0.05)
        if how == "unary" or flip:
            out.append(g.b.op(g.pick("neg", "abs") if flip else "neg", part))
        elif how == "reduce" and others:
            out.append(g.b.op("reduce_max", part, axes=others[:1]))
        elif how == "twice":
            out.append(g.b.op("mul", part, part))
        elif how == "tensor":
            z = g.b.op("slice", y, axes=[axis], starts=[low], ends=[high])
            out.append(g.b.op(name, *((z, part) if g.coin(0.1) else (part, z))))
        elif how == "shared":
            out.append(g.b.op(name, g.b.multibroadcast(shared, own), part))
        else:
            out.append(g.b.op(name, part, repeated(g, own, kind, value=number)))
    return [*out, *(p for p in parts if g.coin(0.1))]


@case("find_split_reshape", fires=0.35)
def find_split_reshape(g):
    dims, kind = list(g.dims(g.pick(1, 2, 3), low=1, high=3)), g.pick("f32", "i8")
    axis, unit = g.random.randrange(len(dims)), g.pick(1, 2)
    n = g.random.randint(2, 4)
    dims[axis] = n * unit
    open_axis = len(dims) > 1 and axis > 0 and g.coin(0.2)
    x = g.argument([-1 if open_axis and not i else d for i, d in enumerate(dims)], kind)
    places = sorted(g.random.sample(range(1, n), g.pick(1, min(2, n - 1))))
    form = g.pick("split", "join", "left", "ones")
    out = []
    for low, high in zip([0, *places], [*places, n], strict=True):
        part = g.b.op("slice", x, axes=[axis], starts=[low * unit], ends=[high * unit])
        own = [-1 if open_axis and not i else d for i, d in enumerate(dims)]
        own[axis] = (high - low) * unit
        if form == "split":
            own[axis : axis + 1] = [high - low, unit]
        elif form == "join" and axis + 1 < len(own):
            own[axis : axis + 2] = [own[axis] * own[axis + 1]]
        elif form == "left" and axis > 0 and not open_axis:
            own[axis - 1 : axis + 1] = [own[axis - 1] * own[axis]]
        else:
            own.insert(g.pick(0, len(own)), 1)
        part = g.maybe_used(part, 0.05)
        out.append(g.b.op("reshape", part, dims=own))
    return out


@case("find_split_transpose", fires=0.5)
def find_split_transpose(g):
    dims, kind = list(g.dims(g.pick(2, 3, 4), low=2, high=4)), g.pick(*NUMBERS)
    axis = g.random.randrange(len(dims))
    if g.coin(0.2):
        dims[axis - 1] = "n"
    x = g.argument(dims, kind)
    permutation = g.random.sample(range(len(dims)), len(dims))
    parts, _ = cut(g, x, axis)
    out = []
    for part in parts:
        own = permutation if g.coin(0.95) else list(reversed(range(len(dims))))
        out.append(g.b.op("transpose", g.maybe_used(part, 0.05), permutation=own))
    return out
