"""Random programs for the patterns of rewrite_reduce."""

from pattern_graphs import case


def shape(g, rank_low=1):
    rank = g.random.randint(rank_low, 4)
    return ["n", *g.dims(rank - 1)] if g.coin(0.2) else g.dims(rank)


def repeated(g, row, x):
    """`row` broadcast to `x`, of static dims or not."""
    if g.b.type(x).is_static:
        return g.b.op("multibroadcast", [row], out_lens=list(g.b.dims(x)))
    return g.b.op("multibroadcast", [row, x])


def scores(g, kind):
    """A dot of 16 bits, and what attention does to it before the softmax."""
    b, m, k, n = g.dims(4)
    batch = [b] if g.coin() else []
    x, w = g.argument((*batch, m, k), kind), g.argument((*batch, k, n), kind)
    y = g.maybe_used(g.b.op("dot", x, w), 0.15)
    if g.coin():
        y = g.b.mul(y, 0.5)
    if g.coin():
        y = g.b.op(g.pick("add", "sub"), y, g.argument((*batch, m, n), kind))
    if g.coin(0.3):
        y = g.b.where(g.argument((*batch, m, n), "i1"), y, -100)
    return y


@case("find_dot_softmax_fp32", rtol=4e-3)
def find_dot_softmax_fp32(g):
    """The scores are rounded to 16 bits before: 2 steps of a score of 4 change its exponential."""
    y = scores(g, "f16" if g.coin(0.9) else "f32")
    return g.b.op("softmax", y, axis=g.pick(-1, -1, -2))


@case("find_softmax_dot_fp32", rtol=2e-3, options={"wide_values": True})
def find_softmax_dot_fp32(g):
    m, k, n = g.dims(3)
    kind = g.pick("f16", "f16", "bf16")
    x = g.argument((m, k), "f32")
    s = g.b.op("softmax", x, axis=1) if g.coin(0.85) else g.b.op("sigmoid", x)
    s = g.maybe_used(g.b.op("convert", s, target_type=g.b.dtype(g.constant((1,), kind))), 0.2)
    return g.b.op("dot", s, g.argument((k, n), kind, low=0.5, high=2))  # nothing cancels


@case("find_logsoftmax", rtol=1e-5, options={"logsoftmax": True})
def find_logsoftmax(g):
    x = g.argument(shape(g), g.pick("f32", "f64", "f16"))
    name = "logsoftmax" if g.coin(0.9) else "softmax"
    return g.b.op(name, x, axis=g.pick(0, -1))


@case("find_softmax", rtol=1e-6, options={"softmax": True})
def find_softmax(g):
    x = g.argument(shape(g), g.pick("f32", "f64", "f16"))
    return g.b.op("softmax" if g.coin(0.9) else "logsoftmax", x, axis=g.pick(0, -1))


@case("find_softmax_base_ops", rtol=4e-3, fires=0.4)
def find_softmax_base_ops(g):
    x = g.argument(shape(g), g.pick("f16", "f16", "bf16", "f32"))
    rank = len(g.b.dims(x))
    axis = g.pick(0, rank - 1)
    other = axis if g.coin(0.9) else 0
    of = x if g.coin(0.95) else g.b.neg(x)
    e = g.b.op("sub", x, repeated(g, g.b.op("reduce_max", of, axes=[other]), x))
    e = g.maybe_used(g.b.op("exp", g.maybe_used(e, 0.05)), 0.1)
    return g.b.op("div", e, repeated(g, g.b.op("reduce_sum", e, axes=[axis]), x))


@case("find_reduce_mean_variance", rtol=1e-4, fires=0.4, options={"variance": True})
def find_reduce_mean_variance(g):
    """Deviations of the size of the mean: the difference loses a digit or two."""
    x = g.argument(shape(g), g.pick("f32", "f32", "f64"))
    rank = len(g.b.dims(x))
    axes = sorted(g.random.sample(range(rank), g.random.randint(1, rank)))
    other = axes if g.coin(0.9) else [0]
    mean = repeated(g, g.b.op("reduce_mean", x, axes=other), x)
    if g.coin(0.2):
        square = g.b.op("sqdiff", x, mean)
    else:
        d = g.maybe_used(g.b.op("sub", x, mean))
        square = g.b.mul(d, d) if g.coin() else g.b.pow(d, g.pick(2, 2, 2, 3))
    minus = g.pick(0, rank)
    return g.b.op("reduce_mean", g.maybe_used(square, 0.1), axes=[a - minus for a in axes])


@case("find_reduce_mean", options={"mean": True})
def find_reduce_mean(g):
    kind = g.pick("f32", "f64", "f16", "bf16", "i8", "ui8", "i32", "i64")
    wide = {"low": 0 if kind[0] == "u" else -120, "high": 120} if kind[0] != "f" else {}
    dims = g.dims(g.random.randint(1, 4), low=0 if g.coin(0.1) else 1)
    x = g.argument(dims, kind, **(wide if kind[0] in "iu" else {}))
    rank = len(dims)
    return g.b.op("reduce_mean", x, axes=g.random.sample(range(rank), g.random.randint(0, rank)))
