"""Random programs for the pattern of split_reduce."""

from pattern_graphs import case

NAMES = ("reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod")


@case("split_reduce", rtol=1e-5, fires=0.3, options={"split_size": 4, "groups": 6})
def split_reduce(g):
    rank = g.random.randint(1, 4)
    kind = g.pick("f32", "f32", "f32", "f16", "bf16", "i32")
    dims = g.dims(rank, low=2, high=6)
    x = g.argument(dims, kind)
    if g.coin():
        y = g.b.mul(x, x) if g.coin() else g.b.op("add", x, g.argument(dims, kind))
        if g.coin(0.4):
            y = g.b.op("mul", g.b.op("neg", y), g.b.multibroadcast(g.constant((1,), kind), dims))
        x = g.maybe_used(y, 0.2)
    first = g.random.randrange(rank)
    axes = list(range(first, g.random.randint(first + 1, rank)))
    if g.coin(0.15):
        axes = g.random.sample(range(rank), g.random.randint(0, rank))
    return g.b.op(g.pick(*NAMES), x, axes=[a - g.pick(0, rank) for a in axes])
