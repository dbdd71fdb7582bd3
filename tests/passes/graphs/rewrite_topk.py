"""Random programs for the pattern of rewrite_topk."""

from pattern_graphs import case


@case("find_large_topk", fires=0.4, options={"split_size": 12, "groups": 7})
def find_large_topk(g):
    """Ties and NaN too: few values, and special ones in some draws."""
    dims = list(g.dims(g.random.randint(1, 3), high=3))
    axis = g.random.randrange(len(dims))
    dims[axis] = g.pick(12, 24, 30, 36, 60, 64, 11, 13)
    kind = g.pick("f32", "f16", "i32", "ui8")
    x = g.argument(dims, kind) if kind[0] == "f" else g.argument(dims, kind, low=0, high=4)
    names = [g.argument(dims, "i64", low=0, high=99)] if g.coin(0.3) else []
    return g.b.op(
        "topk",
        x,
        *names,
        k=g.pick(1, 1, 1, 2, 2, 3, 0 if g.coin() else dims[axis]),
        axis=axis - g.pick(0, len(dims)),
        largest=g.coin(),
    )
