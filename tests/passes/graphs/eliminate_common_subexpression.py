"""Random programs for eliminate_common_subexpression."""

from pattern_graphs import case


@case("eliminate_common_subexpression", fires=0.8)
def equal_ops(g):
    """Chains of few ops over few values: equal ones, with operands swapped, with other axes."""
    m, n = g.dims(2)
    kind = g.pick("f32", "i32")
    values = [g.argument((m, n), kind), g.argument((m, n), kind), g.constant((m, n), kind, 1, 2)]
    for _ in range(16):
        a, b = g.random.choices(values[:5], k=2)
        if g.coin(0.7):
            values.append(g.b.op(g.pick("add", "sub", "max"), a, b))
        else:
            sums = g.b.op("reduce_max", a, axes=[g.pick(0, 1)])
            values.append(g.b.multibroadcast(sums, (m, n)))
    return values[-3:]
