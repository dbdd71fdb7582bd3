"""Random programs for propagate_constant."""

from pattern_graphs import case

UNARY = ("neg", "abs", "exp", "tanh", "sqrt", "log", "recip")


@case("propagate_constant", fires=0.8)
def constant_expressions(g):
    """Ops on constants, on broadcasts of them, and on an argument."""
    m, n = g.dims(2, low=0)
    kind = g.pick("f32", "f32", "f16", "f64", "i32")
    x = g.argument((m, n), kind)
    values = [g.constant((m, n), kind), g.b.multibroadcast(g.constant((1, n), kind), (m, n))]
    for _ in range(6):
        if g.coin(0.3):
            name = g.pick(*UNARY) if kind[0] == "f" else g.pick("neg", "abs")
            values.append(g.b.op(name, g.random.choice(values)))
        elif g.coin(0.2):
            turned = g.b.op("transpose", g.random.choice(values), permutation=[1, 0])
            values.append(g.b.op("reshape", turned, dims=[m, n]) if m * n else values[0])
        else:
            values.append(g.b.op(g.pick("add", "mul", "sub"), *g.random.choices(values, k=2)))
    return g.b.op("add", x, g.maybe_used(values[-1])), g.b.op("mul", values[-2], x)
