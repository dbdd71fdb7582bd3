"""Random programs for dead_code_elimination."""

from pattern_graphs import case


@case("dead_code_elimination", fires=0.8)
def unused_ops(g):
    """Many values, two results: what does not lead to them goes."""
    dims = g.dims(g.pick(0, 1, 3), low=0)
    values = [g.argument(dims), g.constant(dims)]
    for _ in range(8):
        if g.coin():
            values.append(g.b.op(g.pick("neg", "relu"), g.random.choice(values)))
        else:
            values.append(g.b.op("add", *g.random.choices(values, k=2)))
    return g.random.sample(values, 2)
