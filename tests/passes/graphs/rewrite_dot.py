"""Random programs for the patterns of rewrite_dot."""

from pattern_graphs import case


def split(g, rank=None, tail=None, dtype="f32"):
    """A reshape that splits the first dim of a flat value (near misses: other reshapes)."""
    flat = g.pick(2, 2, 3) if rank is None else rank
    tail = g.dims(flat - 1, high=4) if tail is None else tail
    m, n = g.dims(2, high=4)
    x = g.maybe_used(g.argument((m * n, *tail), dtype))
    if g.coin(0.15):
        return g.b.op("reshape", x, dims=[m, n * tail[0], *tail[1:], 1])
    return g.b.op("reshape", x, dims=[m, n, *tail])


@case("find_dot_broadcast_rows", rtol=1e-5)
def find_dot_broadcast_rows(g):
    """The matrix repeated over the batch, as a constant of extents 1, or one for each batch."""
    batch = list(g.dims(g.pick(1, 1, 2), low=0 if g.coin(0.1) else 1, high=4))
    m, k, n = g.dims(3)
    kind = g.pick("f32", "f64")
    a = [*batch, m, k]
    if g.coin(0.15):
        a[0] = "n"
    x = g.argument(a, kind)
    how = g.pick("repeated", "repeated", "repeated", "of rank 3", "own", "ones")
    if how == "own" and isinstance(a[0], int):
        w = g.constant((*batch, k, n), kind)
    elif how == "ones" and isinstance(a[0], int):
        x = g.argument((*[1] * len(batch), m, k), kind)
        w = g.constant((*[1] * len(batch), k, n), kind)
    elif isinstance(a[0], str):
        shape = g.argument(("n", *batch[1:], k, n), kind)
        w = g.b.op("multibroadcast", [g.constant((k, n), kind), shape])
    else:
        w = g.constant((k, n) if how == "repeated" else (1, k, n), kind)
        w = g.b.op("multibroadcast", [w], out_lens=[*batch, k, n])
    return g.b.op("dot", g.maybe_used(x), w)


@case("find_dot_shared_heads", rtol=1e-5, fires=0.2, options={"shared_heads": True})
def find_dot_shared_heads(g):
    """Keys of heads and a batch; near misses: two rows, 16 bits, another axis."""
    kind = g.pick("f32", "f32", "f32", "f16")
    batch, heads, times = g.dims(3, high=3)
    k, n = g.dims(2)
    rows = g.pick(1, 1, 1, 2)
    turned = g.coin(0.5)
    shared = g.argument((batch, heads, n, k) if turned else (batch, heads, k, n), kind)
    last = list(g.b.dims(shared)[2:])
    axis = 2 if g.coin(0.85) else 1
    first = [batch, heads, times] if axis == 2 else [batch, times, heads]
    v = g.b.op("unsqueeze", shared, axes=[axis])
    v = g.b.op("multibroadcast", [v], out_lens=[*first, *last])
    v = g.b.op("reshape", v, dims=[batch, heads * times, *last])
    if turned:
        v = g.b.op("transpose", v, permutation=[0, 1, 3, 2])
    return g.b.op("dot", g.maybe_used(g.argument((batch, heads * times, rows, k), kind)), v)


@case("find_dot_batch", rtol=1e-5)
def find_dot_batch(g):
    batch = g.dims(g.pick(1, 2, 2, 3), low=0 if g.coin(0.1) else 1, high=3)
    m, k, n = g.dims(3) if g.coin(0.8) else (16, 16, 16)
    x = g.maybe_used(g.argument((*batch, m, k)))
    return g.b.op("dot", x, g.argument((*batch, k, n)))


@case("find_pointwise_reshape")
def find_pointwise_reshape(g):
    """The other operand: split too, a constant, a bias, one per batch, one number, whole."""
    kind = g.pick("f32", "i32")
    x = g.maybe_used(split(g, dtype=kind))
    dims = g.b.dims(x)
    other = g.pick("none", "same", "bias", "number", "scalar", "rows", "mixed", "argument")
    if other == "none":
        return g.b.op(g.pick("abs", "neg"), x)
    if other == "same":
        y = x
    elif other == "bias":
        y = g.b.op("multibroadcast", [g.argument(dims[-1:], kind)], out_lens=list(dims))
    elif other == "number":
        y = g.b.op("multibroadcast", [g.constant((1,), kind)], out_lens=list(dims))
    elif other == "scalar":
        y = g.b.op("scalar", g.constant((1,), kind), scalar_bcst_dims=list(dims))
    elif other == "rows":
        y = g.b.op("broadcast", g.argument(dims[:2], kind), axis=0, out_lens=list(dims))
    elif other == "mixed":
        small = [d if g.coin() else 1 for d in dims]
        y = g.b.op("multibroadcast", [g.argument(small, kind)], out_lens=list(dims))
    else:
        y = g.argument(dims, kind)
    return g.b.op(g.pick("add", "sub", "max", "mul"), *g.pick((x, y), (y, x)))


@case("find_reduce_rows", rtol=1e-6, special=True, fires=0.4)
def find_reduce_rows(g):
    """numpy sums the same rows, but may group their elements otherwise."""
    x = split(g)
    rank = len(g.b.dims(x))
    axes = [g.pick(-1, rank - 1)] if g.coin(0.8) else g.random.sample(range(rank), g.pick(1, 2))
    name = g.pick("reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod")
    return g.b.op(name, g.maybe_used(x), axes=axes)


@case("find_softmax_rows", rtol=1e-6, fires=0.4)
def find_softmax_rows(g):
    x = split(g)
    rank = len(g.b.dims(x))
    axis = g.pick(-1, rank - 1) if g.coin(0.8) else g.random.randint(0, rank - 1)
    return g.b.op(g.pick("softmax", "logsoftmax"), g.maybe_used(x), axis=axis)


@case("find_reshape_pair", fires=0.7)
def find_reshape_pair(g):
    """Reshapes, squeezes, unsqueezes and flattens in a row; extents of 0 stay."""
    dims = list(g.dims(g.random.randint(1, 3), low=0 if g.coin(0.1) else 1, high=4))
    if g.coin(0.1):
        dims[0] = "n"
    x = g.argument(dims, g.pick("f32", "i64"))
    for _ in range(g.random.randint(1, 3)):
        own = g.b.dims(x)
        name = g.pick("reshape", "squeeze", "unsqueeze", "flatten")
        if name == "unsqueeze":
            x = g.b.op(name, x, axes=[g.random.randint(-len(own) - 1, len(own))])
        elif name == "squeeze":
            x = g.b.op(name, x, axes=[i for i, d in enumerate(own) if d == 1])
        elif name == "flatten":
            x = g.b.op(name, x, axis=g.random.randint(0, len(own)))
        elif 0 not in own:
            x = g.b.op(name, x, dims=[-1, *[d for d in own[1:] if d > 1]] if g.coin() else [-1])
        x = g.maybe_used(x)
    return g.b.op("reshape", x, dims=[-1]) if 0 not in g.b.dims(x) else x


@case("find_exact_bytes", options={"exact_bytes": True}, fires=0.4)
def find_exact_bytes(g):
    """Bytes of two run-time operands; now and then of constants, or too many for f32."""
    rows, columns = g.dims(2)
    depth = g.pick(1, 3, 64, 400, 600)
    batch = g.dims(g.pick(0, 1))
    kinds = g.pick("i8", "ui8"), g.pick("i8", "ui8")
    x = g.argument((*batch, rows, depth), kinds[0])
    dims = (*batch, depth, columns)
    y = g.argument(dims, kinds[1]) if g.coin(0.9) else g.constant(dims, kinds[1])
    return g.b.op("quant_dot", x, y)


@case("find_1x1_convolution", rtol=1e-5, options={"convolutions": True})
def find_1x1_convolution(g):
    """Either layout; now and then groups, padding, a window of 2 or weights that vary."""
    spatial = g.pick(1, 2, 2, 3)
    n, ci, co = g.dims(3, high=4)
    window = [1 if g.coin(0.95) else 2] * spatial
    group = ci if g.coin(0.1) else 1
    last = g.coin()
    extents = g.dims(spatial, low=2)
    x = (n, *extents, ci) if last else (n, ci, *extents)
    out, own = co * group, ci // group
    w = (*window, own, out) if last else (out, own, *window)
    kind = g.pick("f32", "f32", "f64", "f16")
    weights = g.constant(w, kind) if g.coin(0.9) else g.argument(w, kind)
    return g.b.op(
        "convolution",
        g.argument(x, kind),
        weights,
        padding=[0 if g.coin(0.95) else 1] * spatial,
        stride=[g.random.randint(1, 3) for _ in range(spatial)],
        dilation=[1] * spatial,
        group=group,
        padding_mode=g.pick("default_", "default_", "same_upper"),
        channels_last=last,
    )
