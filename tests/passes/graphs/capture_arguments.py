"""Random programs for capture_arguments."""

from pattern_graphs import case


@case("capture_arguments", fires=0.4)
def capture_arguments(g):
    """Dots of floats, and of integers, which nobody calibrates."""
    m, k, n = g.dims(3)
    kind = g.pick("f32", "f16", "i32")
    x, w = g.argument((m, k), kind), g.constant((k, n), kind)
    return g.b.op("relu", g.b.op(g.pick("dot", "dot"), x, w) if g.coin(0.8) else x)
