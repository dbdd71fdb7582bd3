"""Random programs for the patterns of layout_convolution."""

from pattern_graphs import case

from graphs.rewrite_resize import resized
from mgx_mlir.passes.analysis.channels_last import to_first


def image(g, rank=None, channels=None):
    """An N,C,s.. value that is the transpose of a channels-last argument (near misses: an
    argument as it is, another permutation)."""
    rank = g.pick(3, 4, 4, 5) if rank is None else rank
    n, c = g.random.randint(1, 2), channels or g.random.randint(1, 3)
    spatial = g.dims(rank - 2, low=2, high=4)
    if g.coin(0.1):
        return g.argument((n, c, *spatial))
    if g.coin(0.1):
        return g.b.op(
            "transpose", g.argument((n, *spatial, c)[::-1]), permutation=range(rank)[::-1]
        )
    x = g.argument((n, *spatial, c))
    return g.b.op("transpose", g.maybe_used(x), permutation=to_first(rank))


@case("find_convolution_layout", fires=0.5, rtol=1e-5)
def find_convolution_layout(g):
    """Ranks 3 and 4; channels-last ones and rank 5 stay."""
    spatial, group, last = g.pick(1, 2, 2, 2, 3), g.pick(1, 2), g.coin(0.1)
    window, padding = g.dims(spatial, high=3), [g.pick(0, 1) for _ in range(2 * spatial)]
    n, area = g.random.randint(1, 2), g.dims(spatial, low=3)
    x = g.argument((n, *area, 2) if last else (n, 2, *area), g.pick("f32", "f32", "f64"))
    w = (*window, 2 // group, 4) if last else (4, 2 // group, *window)
    return g.b.op(
        "convolution", g.maybe_used(x), g.constant(w, g.b.dtype(x)), group=group,
        padding=padding, stride=[g.pick(1, 2) for _ in range(spatial)],
        dilation=[g.pick(1, 1, 2) if k == 1 else 1 for k in window], channels_last=last,
    )  # fmt: skip


@case("find_quant_convolution_layout", fires=0.5)
def find_quant_convolution_layout(g):
    """Sums in i32 are exact; f8 values with scales, channels-last ones and rank 5 stay."""
    spatial, group, last = g.pick(1, 2, 2, 2, 3), g.pick(1, 2), g.coin(0.1)
    window, area, kind = g.dims(spatial, high=3), g.dims(spatial, low=3), g.pick("i8", "ui8")
    low, high = (0, 255) if kind == "ui8" else (-128, 127)
    x = g.argument((1, *area, 2) if last else (1, 2, *area), kind, low=low, high=high)
    w = (*window, 2 // group, 4) if last else (4, 2 // group, *window)
    return g.b.op(
        "quant_convolution", g.maybe_used(x), g.constant(w, "i8", low=-128, high=127), group=group,
        padding=[g.pick(0, 1) for _ in range(2 * spatial)], pad_value=g.pick(0, 3, high),
        stride=[g.pick(1, 2) for _ in range(spatial)], dilation=[1] * spatial, channels_last=last,
    )  # fmt: skip


@case("find_pooling_layout", rtol=1e-6, special=True)
def find_pooling_layout(g):
    """Sums of a window are in another order: averages and norms may differ in the last bit."""
    x = g.maybe_used(image(g))
    dims = g.b.dims(x)[2:]
    return g.b.op(
        "pooling", x, mode=g.pick("max", "average", "lpnorm"),
        lengths=[g.random.randint(1, d) for d in dims], stride=[g.pick(1, 2) for _ in dims],
        padding=[0] * len(dims), dilations=[1] * len(dims), ceil_mode=g.coin(0.3),
        count_include_pad=g.coin(), lp_order=2,
    )  # fmt: skip


@case("find_pointwise_layout")
def find_pointwise_layout(g):
    """The other operand: channels-last too, a constant, a bias, one number; an argument stays."""
    x = g.maybe_used(image(g))
    dims = g.b.dims(x)
    other = g.pick("none", "same", "constant", "bias", "number", "argument")
    if other == "none":
        return g.b.op(g.pick("relu", "neg", "tanh"), x)
    if other == "same":
        y = x
    elif other == "constant":
        y = g.constant(dims)
    elif other == "bias":
        y = g.b.op("broadcast", g.argument((dims[1],)), axis=1, out_lens=list(dims))
    elif other == "number":
        y = g.b.op("multibroadcast", [g.constant((1,))], out_lens=list(dims))
    else:
        y = g.argument(dims)
    return g.b.op(g.pick("add", "sub", "max", "mul"), *g.pick((x, y), (y, x)))


@case("find_transpose", fires=0.8)
def find_transpose(g):
    rank = g.random.randint(0, 5)
    x = g.argument(g.dims(rank, low=0, high=4), g.pick("f32", "i8"))
    first = g.random.sample(range(rank), rank)
    back = sorted(range(rank), key=lambda i: first[i])
    second = back if g.coin(0.3) else g.random.sample(range(rank), rank)
    y = g.maybe_used(g.b.op("transpose", x, permutation=first))
    return g.b.op("transpose", y, permutation=second)


@case("find_transpose_unit", fires=0.4)
def find_transpose_unit(g):
    """Most extents are 1; a dynamic one is not known to be."""
    rank = g.random.randint(2, 5)
    dims = [g.random.randint(0, 4) if g.coin(0.3) else 1 for _ in range(rank)]
    if g.coin(0.1):
        dims[0] = "n"
    x = g.argument(dims, g.pick("f32", "bool"))
    return g.b.op("transpose", x, permutation=g.random.sample(range(rank), rank))


@case("find_transpose_broadcast", fires=0.4)
def find_transpose_broadcast(g):
    """Each of the three broadcasts below a transpose; a broadcast to dynamic dims stays."""
    rank = g.random.randint(1, 4)
    dims = g.dims(rank, low=0, high=4)
    kind = g.pick("f32", "i32")
    name = g.pick("multibroadcast", "broadcast", "scalar", "dynamic")
    if name == "multibroadcast":
        small = [d if g.coin() else 1 for d in dims][g.random.randint(0, rank - 1) :]
        y = g.b.op(name, [g.argument(small, kind)], out_lens=list(dims))
    elif name == "broadcast":
        length = g.random.randint(1, rank)
        axis = g.random.randint(0, rank - length)
        x = g.argument(dims[axis : axis + length], kind)
        y = g.b.op(name, x, axis=axis, out_lens=list(dims))
    elif name == "scalar":
        y = g.b.op(name, g.argument((1,), kind), scalar_bcst_dims=list(dims))
    else:
        y = g.b.op("multibroadcast", [g.argument((1,), kind), g.argument(["n", *dims], kind)])
        rank += 1
    return g.b.op("transpose", g.maybe_used(y), permutation=g.random.sample(range(rank), rank))


@case("find_reduce_layout", rtol=1e-6, special=True)
def find_reduce_layout(g):
    """A plane is summed in another order: the last bit may differ."""
    x = g.maybe_used(image(g))
    rank = len(g.b.dims(x))
    axes = g.random.sample(range(rank), g.random.randint(1, rank))
    name = g.pick("reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod")
    return g.b.op(name, x, axes=[a - rank if g.coin() else a for a in axes])


@case("find_concat_layout", fires=0.4)
def find_concat_layout(g):
    """All of several inputs of the same dims are channels-last, or one is not."""
    rank = g.pick(3, 4)
    dims = (g.random.randint(1, 2), *g.dims(rank - 2, low=2, high=4), g.random.randint(1, 3))
    axis = g.random.randint(0, rank - 1)
    inputs = []
    for _ in range(g.random.randint(1, 3)):
        own = list(dims)
        own[axis] = g.random.randint(0, 3)
        if g.coin(0.15):
            inputs.append(g.argument([own[p] for p in to_first(rank)]))
        else:
            x = g.maybe_used(g.argument(own))
            inputs.append(g.b.op("transpose", x, permutation=to_first(rank)))
    at = to_first(rank).index(axis)  # the axis as it is after the transpose
    return g.b.op("concat", inputs, axis=g.pick(at, at - rank))


@case("find_pad_layout")
def find_pad_layout(g):
    x = g.maybe_used(image(g))
    rank = len(g.b.dims(x))
    pads = [g.random.randint(0, 1) for _ in range(2 * rank)]
    mode = g.pick("constant", "constant", "reflect", "edge")
    if mode == "reflect":  # needs elements to reflect
        pads = [p * (d > 1) for p, d in zip(pads, g.b.dims(x) * 2, strict=True)]
    return g.b.op("pad", x, mode=mode, pads=pads, value=g.pick(0.0, -1.5))


def normalised(g, b, x, axes):
    """Return x less its mean, over its deviation."""
    d = b.sub(x, b.multibroadcast(b.reduce_mean(x, axes=axes), b.dims(x)))
    v = b.reduce_mean(b.mul(d, d), axes=axes)
    scale = b.rsqrt(b.add(v, b.multibroadcast(b.literal(g.pick(1e-5, 0.1), b.dtype(v)), b.dims(v))))
    return b.mul(d, b.multibroadcast(scale, b.dims(x)))


@case("find_group_norm_layout", rtol=1e-5, fires=0.5, options={"groups": True})
def find_group_norm_layout(g):
    """{N,G,rest}, {N,G,C/G,rest} and with all places; scales within; means, sums, extremes."""
    b, each, groups = g.b, g.random.randint(1, 3), g.random.randint(1, 4)
    x = image(g, g.pick(3, 4, 4, 5), each * groups)
    dims = b.dims(x)
    if dims[1] != each * groups:  # a near miss of image()
        each, groups = 1, dims[1]
    places = dims[2:]
    flat = 1
    for d in places:
        flat *= d
    inner = g.pick(
        (dims[0], groups, each * flat), (dims[0], groups, each, flat),
        (dims[0], groups, each, *places),
    )  # fmt: skip
    if g.coin(0.1):  # a near miss: groups of another kind
        inner = (dims[0], groups * each, flat)
    y = b.reshape(x, dims=inner)
    axes = list(range(2, len(inner)))
    if g.coin(0.1):
        axes = axes[-1:]
    if g.coin(0.7):
        y = normalised(g, b, y, axes)
    else:
        r = g.b.op(g.pick("reduce_sum", "reduce_max"), y, axes=axes)
        y = b.sub(b.multibroadcast(r, inner), y)
    if g.coin(0.3):  # one number for each group
        y = b.mul(y, b.multibroadcast(g.constant((groups, *[1] * (len(inner) - 2))), inner))
    if g.coin(0.3):
        y = b.mul(y, b.op("broadcast", g.constant((inner[1],)), axis=1, out_lens=inner))
    if g.coin(0.3) and len(inner) > 3:  # for each channel
        y = b.add(
            y, b.multibroadcast(g.constant((1, groups, each, *[1] * (len(inner) - 3))), inner)
        )
    if g.coin(0.3):  # for each channel, joined with the places
        scale = b.op("broadcast", g.constant((dims[1],)), axis=1, out_lens=dims)
        y = b.mul(y, b.reshape(scale, dims=inner))
    if g.coin(0.2):
        y = b.add(y, g.argument(inner))  # a near miss: of each element
    return b.reshape(y, dims=dims)


@case("find_group_pointwise_layout", rtol=1e-5, fires=0.5, options={"groups": True})
def find_group_pointwise_layout(g):
    """An activation, numbers of channels, two such norms; a near miss has each element."""
    b, n, each, groups = g.b, g.random.randint(1, 2), g.random.randint(1, 3), g.random.randint(1, 4)
    places = g.dims(g.pick(1, 2, 2), low=2, high=4)
    full, dims = (n, *places, groups, each), (n, *places, groups * each)
    rank = len(full)
    axes = [*range(1, rank - 2), rank - 1]
    if g.coin(0.1):
        axes = [rank - 2, rank - 1]
    y = b.reshape(normalised(g, b, g.argument(full), axes), dims=dims)
    how = g.random.randint(0, 4)
    if how == 0:
        return b.mul(y, b.sigmoid(y))
    if how == 1:
        return b.mul(
            b.relu(y), b.op("broadcast", g.constant(dims[-1:]), axis=rank - 2, out_lens=dims)
        )
    if how == 2:
        return b.add(y, b.multibroadcast(g.argument((n, *[1] * len(places), dims[-1])), dims))
    if how == 3:
        return b.add(y, b.reshape(normalised(g, b, g.argument(full), axes), dims=dims))
    return b.add(y, g.argument(dims))


@case("find_slice_layout")
def find_slice_layout(g):
    x = g.maybe_used(image(g))
    dims = g.b.dims(x)
    axes = g.random.sample(range(len(dims)), g.random.randint(1, len(dims)))
    starts = [g.random.randint(-dims[a], dims[a]) for a in axes]
    ends = [g.random.randint(-dims[a], dims[a]) for a in axes]
    return g.b.op("slice", x, axes=axes, starts=starts, ends=ends)


@case("find_resize_layout", rtol=1e-6)
def find_resize_layout(g):
    """An axis weighs its elements in the same order; the axes follow in another one."""
    return resized(g, g.maybe_used(image(g)), g.pick("nearest", "linear", "cubic"))


@case("find_repeat_layout", fires=0.3)
def find_repeat_layout(g):
    """Elements of some axes are repeated; near misses: whole lines are."""
    x = g.maybe_used(image(g, rank=4))
    dims = g.b.dims(x)
    times = [g.pick(1, 1, 2, 3) for _ in dims]
    lines = g.coin(0.1)
    axes = [
        [d] if k == 1 else [k, d] if lines else [d, k] for d, k in zip(dims, times, strict=True)
    ]
    ones = [[1 if len(a) > 1 and i == (not lines) else n for i, n in enumerate(a)] for a in axes]
    y = g.b.op("reshape", x, dims=[n for a in ones for n in a])
    y = g.b.op("multibroadcast", [g.maybe_used(y)], out_lens=[n for a in axes for n in a])
    return g.b.op("reshape", y, dims=[d * k for d, k in zip(dims, times, strict=True)])
