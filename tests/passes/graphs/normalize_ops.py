"""Random programs for normalize_ops."""

from pattern_graphs import case

AXES = ("reduce_sum", "reduce_max", "softmax", "concat", "gather", "unsqueeze", "squeeze",
        "slice", "argmax", "flatten", "reverse", "prefix_scan_sum")  # fmt: skip


@case("normalize_ops", fires=0.4)
def axes_from_the_back(g):
    """Ops whose axes are counted from either end, and slices beyond the end."""
    rank = g.random.randint(1, 4)
    kind = g.pick("f32", "i32")
    x = g.argument(g.dims(rank, high=4), kind)
    axis = g.random.randint(-rank, rank - 1)
    name = g.pick(*AXES)
    if name in ("reduce_sum", "reduce_max", "reverse"):
        return g.b.op(name, x, axes=[axis])
    if name == "softmax":
        return g.b.op(name, g.argument(g.dims(rank)), axis=axis)
    if name in ("argmax", "prefix_scan_sum"):
        return g.b.op(name, x, axis=axis)
    if name == "concat":
        return g.b.op(name, [x, g.maybe_used(x)], axis=axis)
    if name == "gather":
        indices = g.constant(g.dims(1), "i64", 0, 0)
        return g.b.op(name, x, indices, axis=axis)
    if name == "unsqueeze":
        return g.b.op(name, x, axes=[g.random.randint(-rank - 1, rank)])
    if name == "squeeze":
        ones = [d if i != axis % rank else 1 for i, d in enumerate(g.b.dims(x))]
        return g.b.op(name, g.argument(ones, kind), axes=[axis])
    if name == "slice":
        starts, ends = [g.random.randint(-6, 6)], [g.random.randint(-6, 9)]
        return g.b.op(name, x, axes=[axis], starts=starts, ends=ends)
    return g.b.op("flatten", x, axis=g.random.randint(-rank, rank))


@case("normalize_ops", fires=0.4)
def padding_of_one_side(g):
    """Paddings written once for both sides of an axis, or as begins and ends."""
    spatial = g.pick(1, 2)
    x = g.argument((g.random.randint(1, 2), 2, *g.dims(spatial, low=3)))
    ones, sides = [1] * spatial, spatial * g.pick(1, 2)
    padding = [g.random.randint(0, 1) for _ in range(sides)]
    if g.coin():
        w = g.constant((3, 2, *g.dims(spatial, high=2)))
        return g.b.op("convolution", x, w, padding=padding, stride=ones, dilation=ones)
    return g.b.op(
        "pooling", x, mode=g.pick("max", "average"), padding=padding, stride=ones,
        lengths=[2] * spatial, dilations=ones,
    )  # fmt: skip
