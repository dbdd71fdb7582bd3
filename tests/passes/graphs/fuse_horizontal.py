"""Random programs for fuse_horizontal."""

from pattern_graphs import case


@case("gather_horizontal_fusion")
def gather_horizontal_fusion(g):
    """Four to seven lookups, some of other widths or of what another found; readers between."""
    kind = g.pick("f32", "f16", "i64", "i8")
    index = g.pick("i64", "i64", "i32", "ui8")
    low = 0 if index[0] == "u" else -6
    trailing = g.dims(g.random.randint(0, 2), high=3)
    width = g.random.randint(1, 3)
    out = []
    for _ in range(g.random.randint(4, 7)):
        table = g.constant((g.random.randint(1, 4), width if g.coin(0.95) else 4), kind)
        at = g.argument((g.random.randint(1, 3), *trailing), index, low=low, high=6)
        if g.coin(0.1):
            at = g.b.op("add", at, at)
        table = g.maybe_used(table, 0.05)
        y = g.b.op("gather", table, at, axis=g.pick(0, -2))
        if out and g.coin(0.1) and kind == index == "i64":
            y = g.b.op("gather", g.constant((3, width), kind), out[-1], axis=0)
        out.append(g.b.op("neg", y) if g.coin() and kind != "i8" else y)
    return tuple(out)
