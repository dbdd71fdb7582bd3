"""Random programs for the patterns of rewrite_pooling."""

from pattern_graphs import case


def image(g, high=5):
    spatial = g.pick(1, 2, 2, 3)
    kind = g.pick("f32", "f32", "f64", "f16", "i32")
    return g.argument((*g.dims(2, high=2), *g.dims(spatial, high=high)), kind), spatial


@case("replace_with_reduce", rtol=1e-6, fires=0.4)
def replace_with_reduce(g):
    x, spatial = image(g)
    last = g.coin(0.3)
    dims = g.b.dims(x)
    extents = dims[1:-1] if last else dims[2:]
    return g.b.op(
        "pooling",
        x,
        mode=g.pick("average", "max", "max", "lpnorm"),
        lengths=[d if g.coin(0.9) else 1 for d in extents],
        stride=[g.random.randint(1, 3) for _ in range(spatial)],
        padding=[0 if g.coin(0.9) else 1] * spatial,
        dilations=[1 if g.coin(0.9) else 2 if d < 2 else 1 for d in extents],
        dyn_global=g.coin(0.2),
        channels_last=last,
    )


@case("replace_dilations_with_gather_pooling", rtol=1e-6, fires=0.4,
      options={"rewrite_dilations": True})  # fmt: skip
def replace_dilations_with_gather_pooling(g):
    x, spatial = image(g, high=7)
    last = g.coin(0.3)
    dims = g.b.dims(x)
    extents = dims[1:-1] if last else dims[2:]
    dilations = [g.random.randint(1, 3) for _ in range(spatial)]
    # the window fits into the input
    lengths = [
        g.random.randint(1, (d - 1) // r + 1) for d, r in zip(extents, dilations, strict=True)
    ]
    return g.b.op(
        "pooling",
        x,
        mode=g.pick("average", "max", "max", "lpnorm"),
        lengths=lengths,
        stride=[g.random.randint(1, 3) for _ in range(spatial)],
        padding=[g.random.randint(0, 1) for _ in range(spatial * g.pick(1, 2))],
        padding_mode=g.pick("default_", "default_", "same_upper", "same_lower"),
        dilations=dilations,
        ceil_mode=g.coin(0.3),
        count_include_pad=g.coin(0.7),
        lp_order=g.random.randint(0, 3),
        channels_last=last,
    )


@case("lower_lrn_to_pooling", rtol=1e-5, options={"rewrite_lrn": True})
def lower_lrn_to_pooling(g):
    rank = g.random.randint(2, 5)
    dims = ["n", *g.dims(rank - 1)] if g.coin(0.1) else g.dims(rank)
    return g.b.op(
        "lrn",
        g.argument(dims, g.pick("f32", "f32", "f64", "f16")),
        size=g.random.randint(1, 6),
        alpha=g.pick(1e-4, 0.5),
        beta=g.pick(0.75, 0.5, 1.0),
        bias=g.pick(1.0, 2.0),
    )
