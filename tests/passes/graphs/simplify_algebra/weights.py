"""Random programs for simplify_algebra: of weights and products."""

from pattern_graphs import case

from graphs.simplify_algebra.shared import FLOATS, WIDE, product, repeated, swapped

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
    dynamic_rows = g.coin(0.2)
    x = g.argument((*lead, -1 if dynamic_rows else m, k), kind)
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
        if not dynamic_rows and g.coin(0.4):
            y = g.maybe_used(y, 0.1)
            y = swapped(g, "add", y, repeated(g, g.b.dims(y), kind, [len(lead) + 1]))
        if g.coin(0.3):
            y = g.b.op("abs", y)
        if g.coin(0.9):
            out.append(y)
    return out or [x]


@case("find_conv_dot_horiz_fusion", rtol=1e-6, fires=0.6)
def packed_dots(g):
    """Codes of 4 bits; rows in one dim or several, zero points or none, an epilogue or none."""
    block = 8
    x = g.argument((*g.dims(g.pick(1, 2, 3), high=3), 16))
    has_zeros = g.coin()
    out = []
    for _ in range(g.pick(2, 3)):
        n = g.pick(3, 4)
        weights = [g.constant((8, n), "ui8", low=0, high=255), g.constant((2, n))]
        if has_zeros or g.coin(0.1):
            weights.append(g.constant((2, n)))
        own = block if g.coin(0.9) else 16
        weights[1:] = [w if own == block else g.constant((1, n)) for w in weights[1:]]
        y = g.b.op("blocked_dot", x, *weights, block_size=own)
        out.append(g.b.op("abs", y) if g.coin(0.1) else y)
    return out


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
