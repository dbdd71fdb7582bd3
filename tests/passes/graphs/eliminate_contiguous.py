"""Random programs for the patterns of eliminate_contiguous."""

from pattern_graphs import case


@case("find_contiguous")
def find_contiguous(g):
    rank = g.pick(0, 1, 2, 4)
    x = g.argument(g.dims(rank, low=0), g.pick("f32", "bf16", "i32", "bool"))
    x = g.b.op("transpose", x, permutation=g.random.sample(range(rank), rank))
    return g.b.op("contiguous", g.maybe_used(g.b.op("contiguous", x) if g.coin() else x))
