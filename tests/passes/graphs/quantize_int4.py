"""Random programs for quantize_int4."""

from pattern_graphs import case


# half a step of (3 - 0) / 15 in each of the weights, which are 1 to 3
@case("quantize_int4", rtol=0.1, fires=0.2)
def quantize_int4(g):
    """Constants and arguments, odd and even extents."""
    m, k, n = g.dims(3)
    kind = g.pick("f32", "f32", "f16", "bf16", "f64")
    x = g.argument((m, k), kind, low=1, high=2)
    w = g.constant((k, n + n % 2), kind, low=1, high=3)
    if g.coin(0.2):
        w = g.argument((k, n), kind, low=1, high=3)
    return g.b.op("dot", x, g.maybe_used(w))


@case("quantize_int4", rtol=0.1, fires=0.9)
def twice(g):
    """A weight that two dots share is quantised once."""
    x, y = g.argument((3, 2), low=1, high=2), g.argument((3, 2), low=1, high=2)
    w = g.constant((2, 4), low=1, high=3)
    return [g.b.op("dot", x, w), g.b.op("dot", y, w)]
