"""Random programs for the pattern of rewrite_low_precision."""

from pattern_graphs import case


@case("find_pow2_div", rtol=2e-3)
def find_pow2_div(g):
    x = g.argument(g.dims(g.random.randint(0, 3)), "f16" if g.coin(0.9) else "f32")
    y = g.b.pow(x, 2) if g.coin() else g.b.mul(x, x if g.coin(0.95) else 3)
    y = g.maybe_used(y, 0.1)
    n = g.pick(2.0, 7.0, 64.0, -3.0, 1.5) if g.coin(0.9) else 0.5
    if g.coin():
        return g.b.div(y, n)
    return g.b.mul(y, 1 / n) if g.coin() else g.b.mul(1 / n, y)
