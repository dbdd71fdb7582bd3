"""Random programs for the patterns of eliminate_identity."""

from pattern_graphs import case


@case("find_identity")
def find_identity(g):
    x = g.argument(g.dims(g.pick(0, 1, 3), low=0), g.pick("f32", "f16", "i64", "bool", "ui8"))
    y = g.b.op("identity", g.maybe_used(g.b.op("identity", x)))
    return g.pick(y, g.b.op("identity", y), x)
