"""Random programs for the patterns of rewrite_gelu."""

import math

from pattern_graphs import case


def multiplied(g, *factors):
    """A product in any order and grouping; a factor that is a number may divide by its inverse."""
    factors = g.random.sample(factors, len(factors))
    while not hasattr(factors[0], "type"):
        factors = g.random.sample(factors, len(factors))
    y, *rest = factors
    for f in rest:
        if not hasattr(f, "type") and g.coin(0.3):
            y = g.b.div(y, 1 / f)
        else:
            y = g.b.mul(y, f) if g.coin() else g.b.mul(f, y)
    return y


def one_plus(g, y):
    return g.b.add(y, 1) if g.coin() else g.b.add(1, y)


@case("find_gelu_erf", rtol=2e-3, fires=0.4, options={"fast_math": True})
def find_gelu_erf(g):
    """2e-3 is two steps of f16. The two forms differ by half of one at 1, which is added."""
    x = g.argument(g.dims(g.random.randint(0, 3)), g.pick("f16", "f16", "f16", "bf16", "f32"))
    inner = g.b.erf(multiplied(g, x, math.sqrt(0.5) if g.coin(0.9) else 0.8))
    half = 0.5 if g.coin(0.9) else 1.5
    return g.b.add(multiplied(g, x, one_plus(g, g.maybe_used(inner, 0.1)), half), 1)


@case("find_tanh_fast_gelu", rtol=1e-5, fires=0.4)
def find_tanh_fast_gelu(g):
    """1 + tanh loses digits below -2 that the exponential keeps: seen from 1, which is added."""
    rank = g.random.randint(0, 3)
    dims = ["n", *g.dims(rank)] if g.coin(0.2) else g.dims(rank)
    x = g.argument(dims, g.pick("f32", "f32", "f64", "f16"))
    cube = g.b.pow(x, 3) if g.coin() else g.b.mul(g.b.mul(x, x), x)
    y = g.b.mul(g.b.add(x, g.b.mul(cube, 0.044715)), math.sqrt(2 / math.pi))
    if g.coin(0.2):
        y = g.argument(dims, g.b.dtype(x)) if g.coin() else g.b.mul(x, g.pick(0.1, -0.7))
    f = g.maybe_used(g.b.tanh(y), 0.1)
    half = 0.5 if g.coin(0.9) else 0.25
    if g.coin(0.2):
        return g.b.add(multiplied(g, x, g.b.add(g.b.mul(f, half), half)), 1)
    return g.b.add(multiplied(g, x, one_plus(g, f), half), 1)
