"""Random programs for the patterns of rewrite_rnn."""

from pattern_graphs import case

FUNCTIONS = (
    "tanh", "sigmoid", "relu", "leaky_relu{alpha=0.2}", "elu{alpha=0.5}", "hard_sigmoid",
    "affine{alpha=0.5,beta=0.1}", "scaled_tanh{alpha=0.7,beta=0.9}", "softsign", "softplus",
    "thresholded_relu{alpha=0.3}",
)  # fmt: skip
DIRECTIONS = ("forward", "reverse", "bidirectional")


def network(g, name, gates, functions, **attributes):
    """A recurrent op over its operands and attributes, and sometimes what reads its last state."""
    t, b, i, h = g.dims(4)
    kind = g.pick("f32", "f32", "f64")
    steps, batch = (g.pick(n, m) for n, m in ((t, "t"), (b, "b")))
    direction = g.pick(*DIRECTIONS)
    d = 2 if direction == "bidirectional" else 1

    def weights(*dims):
        return g.constant(dims, kind, low=-1, high=1)

    x = g.argument((steps, batch, i), kind, low=-1, high=1)
    w = weights(d, gates * h, i)
    r = g.argument((d, gates * h, h), kind, low=-1, high=1) if g.coin(0.2) else weights(
        d, gates * h, h
    )  # fmt: skip
    bias = weights(d, 2 * gates * h) if g.coin() else None
    lens = g.argument((batch,), g.pick("i32", "i64"), low=-1, high=6) if g.coin(0.4) else None
    first = g.argument((d, batch, h), kind, low=-1, high=1) if g.coin() else None
    more = []
    if name == "lstm":
        more.append(g.argument((d, batch, h), kind, low=-1, high=1) if g.coin() else None)
        more.append(weights(d, 3 * h) if g.coin() else None)
    both = g.coin()
    names = [g.pick(*FUNCTIONS) for _ in range(functions * (2 if both and d == 2 else 1))]
    found = g.b.op(
        name, x, w, r, bias, lens, first, *more, hidden_size=h, direction=direction,
        actv_func=names, clip=g.pick(0.0, 0.0, 0.4), **attributes,
    )  # fmt: skip
    states = list(found) if isinstance(found, tuple) else [found]
    if lens is None and g.coin() and not isinstance(steps, str):
        reads = ("rnn_last_hs_output", "rnn_last_cell_output")
        last = [g.b.op(n, v, direction=direction) for n, v in zip(reads, states, strict=False)]
        return [*last, states[0]] if g.coin() else last
    return states if g.coin() else states[:1]


@case("vanilla_rnn", rtol=1e-5, fires=1.0)
def vanilla_rnn(g):
    return network(g, "rnn", 1, 1)


@case("gru", rtol=1e-5, fires=1.0)
def gru(g):
    return network(g, "gru", 3, 2, linear_before_reset=g.pick(0, 1))


@case("lstm", rtol=1e-5, fires=1.0)
def lstm(g):
    return network(g, "lstm", 4, 3, input_forget=g.pick(0, 0, 1))


@case("input_products", rtol=1e-5, fires=0.5, options={"vector": True})
def input_products(g):
    """A third of the draws is in f64."""
    name, gates, functions = g.pick(("rnn", 1, 1), ("gru", 3, 2), ("lstm", 4, 3))
    attributes = {"linear_before_reset": g.pick(0, 1)} if name == "gru" else {}
    return network(g, name, gates, functions, **attributes)


@case("last_output", fires=1.0)
def last_output(g):
    direction = g.pick(*DIRECTIONS)
    dims = [*g.dims(1), 2 if direction == "bidirectional" else 1, *g.dims(2)]
    if g.coin(0.3):
        dims[g.pick(0, 2, 3)] = "n"
    x = g.argument(dims, g.pick("f32", "f16", "i32"))
    return g.b.op(g.pick("rnn_last_hs_output", "rnn_last_cell_output"), x, direction=direction)


def states_and_lengths(g, direction, rank=4):
    t, b = g.dims(2)
    dynamic_dim = g.pick(None, None, None, None, 0, -2)
    dims = [t, 2 if direction == "bidirectional" else 1, b, g.random.randint(1, 4)]
    if rank == 3:
        del dims[1]
    if dynamic_dim is not None:
        dims[dynamic_dim] = "n"
    x = g.argument(dims, g.pick("f32", "f16", "i32"))
    return x, g.argument((dims[-2],), g.pick("i32", "i64"), low=-1, high=7)


@case("var_sl_last_output", fires=0.3)
def var_sl_last_output(g):
    direction = g.pick(*DIRECTIONS)
    return g.b.op("rnn_var_sl_last_output", *states_and_lengths(g, direction), direction=direction)


@case("var_sl_shift_output", fires=0.3)
def var_sl_shift_output(g):
    direction = g.pick(*DIRECTIONS)
    return g.b.op("rnn_var_sl_shift_output", *states_and_lengths(g, direction), direction=direction)


@case("var_sl_shift_sequence", fires=0.3)
def var_sl_shift_sequence(g):
    return g.b.op("rnn_var_sl_shift_sequence", *states_and_lengths(g, "forward", 3))
