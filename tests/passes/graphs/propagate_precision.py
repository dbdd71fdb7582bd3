"""Random programs for the patterns of propagate_precision."""

from pattern_graphs import case

from mgx_mlir.core import dtypes

# nothing that cancels or grows: a value is as precise as its type after each of these
UNARY = ("abs", "relu", "tanh", "sigmoid", "sqrt", "recip")


def step(g, x, kind):
    """One op on `x`: pointwise, with a constant or with another tensor, or a reduction."""
    dims, r = g.b.dims(x), g.random.random()
    if r < 0.35:
        return g.b.op(g.pick(*UNARY), x)
    if r < 0.7:
        c = g.constant(dims, kind, low=0.5, high=2)
        c = c if g.coin() else g.b.multibroadcast(g.constant((1,), kind, low=0.5, high=2), dims)
        return g.b.op(g.pick("add", "max", "mul", "div"), *((x, c) if g.coin() else (c, x)))
    if r < 0.8:
        return g.b.op("mul", x, x)
    if r < 0.9:
        return g.b.op(g.pick("reduce_sum", "reduce_mean", "reduce_max"), x, axes=[len(dims) - 1])
    return g.b.op("add", x, g.argument(dims, kind, low=0.5, high=2))


@case("find_upcast", rtol=1e-2)
def find_upcast(g):
    """Up to three ops were rounded each to 8 bits of bf16, or 11 of f16."""
    kind, wide = g.pick(("f16", "f32"), ("f16", "f32"), ("bf16", "f32"), ("f32", "f64"))
    x = g.argument(g.dims(g.random.randint(1, 3)), kind, low=0.5, high=2)
    for _ in range(g.random.randint(1, 3)):
        x = g.maybe_used(step(g, x, kind), 0.1)
    return g.b.op("convert", x, target_type=dtypes.from_name(wide))


@case("find_downcast", rtol=1e-2)
def find_downcast(g):
    wide, kind = g.pick(("f32", "f16"), ("f32", "f16"), ("f32", "bf16"), ("f64", "f32"))
    x = g.argument(g.dims(g.random.randint(1, 3)), wide, low=0.5, high=2)
    x = g.maybe_used(g.b.op("convert", x, target_type=dtypes.from_name(kind)), 0.2)
    for _ in range(g.random.randint(1, 3)):
        x = g.maybe_used(step(g, x, kind), 0.1)
    return x
