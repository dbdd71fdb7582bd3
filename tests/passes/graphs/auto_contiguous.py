"""Random programs for auto_contiguous."""

from pattern_graphs import case


@case("auto_contiguous", fires=0.5)
def results_of_views(g):
    """Transposes, slices and broadcasts with ops behind them."""
    m, n, k = g.dims(3, low=2)
    x = g.argument((m, n, k), g.pick("f32", "i64"))
    y = g.b.op("transpose", x, permutation=g.random.sample(range(3), 3))
    if g.coin():
        y = g.b.op("slice", y, axes=[1], starts=[0], ends=[1])
    return g.b.op(g.pick("neg", "identity", "abs"), g.maybe_used(y))
