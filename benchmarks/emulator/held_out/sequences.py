"""Held-out models of texts, sound and series."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper

from benchmarks.emulator.held_out.net import FLOAT, I32, INT64, Net, held


def lengths(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """1 up to a line's length, then 0."""
    count = rng.integers(shape[1] // 2, shape[1] + 1, (shape[0], 1))
    return (np.arange(shape[1]) < count).astype(np.int64)


def feed(g: Net, x: str, width: int, inner: int) -> str:
    return g.linear(g.op("Relu", g.linear(x, width, inner)), inner, width)


@held({"b": 1, "n": 21}, b=2, n=12)
def masked_encoder(g: Net) -> None:
    """Embeddings of three kinds, two layers under a mask of padding, a pooler."""
    width = 32
    ids, kinds = g.integers("ids", 60, "b", "n"), g.integers("kinds", 2, "b", "n")
    mask = g.filled("mask", lengths, "b", "n", kind=INT64)
    x = g.op(
        "Add", g.op("Gather", g.weight(60, width), ids), g.op("Gather", g.weight(2, width), kinds)
    )
    n = g.op("Gather", g.op("Shape", ids), g.const(1, np.int64))
    places = g.op("Range", g.const(0, np.int64), n, g.const(1, np.int64))
    x = g.norm(g.op("Add", x, g.op("Gather", g.weight(64, width), places)), width)
    bias = g.op("Cast", g.op("Unsqueeze", mask, g.ints(1, 2)), to=FLOAT)
    bias = g.op("Mul", g.op("Sub", g.const(1.0), bias), g.const(-10000.0))
    for _ in range(2):
        q, k, v = (g.split_heads(g.linear(x, width, width), 4, 8) for _ in range(3))
        x = g.norm(g.op("Add", x, g.linear(g.attend(q, k, v, 8, bias), width, width)), width)
        y = g.linear(g.op("Gelu", g.linear(x, width, 64), approximate="tanh"), 64, width)
        x = g.norm(g.op("Add", x, y), width)
    g.result(x, 3)
    first = g.op("Gather", x, g.const(0, np.int64), axis=1)
    g.result(g.op("Tanh", g.linear(first, width, width)), 2)


@held({"b": 1, "n": 1, "p": 13}, b=2, n=5, p=9)
def cached_decoder(g: Net) -> None:
    """A causal decoder that appends to caches of keys and values, its mask from Trilu."""
    width = 32
    ids = g.integers("ids", 60, "b", "n")
    x = g.op("Gather", g.weight(60, width), ids)
    n, total = g.op("Shape", ids, start=1, end=2), ""
    caches = []
    for layer in range(2):
        past = [g.floats(f"past_{kind}_{layer}", "b", 4, "p", 8) for kind in ("k", "v")]
        y = g.rms_norm(x, width)
        q, k, v = (g.split_heads(g.linear(y, width, width), 4, 8) for _ in range(3))
        k, v = (g.op("Concat", p, s, axis=2) for p, s in zip(past, (k, v), strict=True))
        caches += [k, v]
        if not layer:
            total = g.op("Shape", k, start=2, end=3)
            ones = g.op("ConstantOfShape", g.op("Concat", n, total, axis=0),
                        value=helper.make_tensor("v", FLOAT, [1], [-1e9]))  # fmt: skip
            above = g.op("Add", g.op("Sub", total, n), g.ints(1))
            mask = g.op("Trilu", ones, g.op("Squeeze", above), upper=1)
        x = g.op("Add", x, g.linear(g.attend(q, k, v, 8, mask), width, width))
        y = g.rms_norm(x, width)
        y = g.op("Mul", g.silu(g.linear(y, width, 48)), g.linear(y, width, 48))
        x = g.op("Add", x, g.linear(y, 48, width))
    g.result(g.op("MatMul", g.rms_norm(x, width), g.weight(width, 60)), 3)
    for cache in caches:
        g.result(cache, 4)


@held({"b": 3, "n": 7, "m": 4}, b=1, n=14, m=6)
def translated(g: Net) -> None:
    """Encoder and decoder with cross attention and a bias of places by buckets of distances."""
    width, heads, buckets = 32, 4, 8
    ids, out = g.integers("ids", 60, "b", "n"), g.integers("out", 60, "b", "m")
    mask = g.filled("mask", lengths, "b", "n", kind=INT64)
    table = g.weight(60, width)
    hide = g.op("Cast", g.op("Unsqueeze", mask, g.ints(1, 2)), to=TensorProto.BOOL)
    hide = g.op("Where", hide, g.const(0.0), g.const(-3.4e38))

    def bias(of: str, *, causal: bool) -> str:
        n = g.op("Gather", g.op("Shape", of), g.const(1, np.int64))
        places = g.op("Range", g.const(0, np.int64), n, g.const(1, np.int64))
        far = g.op(
            "Sub", g.op("Unsqueeze", places, g.ints(0)), g.op("Unsqueeze", places, g.ints(1))
        )
        near = g.op("Min", g.op("Abs", far), g.const(3, np.int64))
        real = g.op("Cast", g.op("Max", g.op("Abs", far), g.const(1, np.int64)), to=FLOAT)
        large = g.op("Add", g.op("Cast", g.op("Log", real), to=INT64), g.const(2, np.int64))
        less = g.op("Less", g.op("Abs", far), g.const(3, np.int64))
        bucket = g.op("Where", less, near, g.op("Min", large, g.const(3, np.int64)))
        ahead = g.op("Mul", g.op("Cast", g.op("Greater", far, g.const(0, np.int64)), to=INT64),
                     g.const(4, np.int64))  # fmt: skip
        values = g.op("Gather", g.weight(buckets, heads), g.op("Add", bucket, ahead))
        made = g.op("Unsqueeze", g.op("Transpose", values, perm=[2, 0, 1]), g.ints(0))
        if causal:
            later = g.op("Greater", far, g.const(0, np.int64))
            made = g.op("Add", made, g.op("Where", later, g.const(-3.4e38), g.const(0.0)))
        return made

    def layer(x: str, other: str, mask: str) -> str:
        y = g.rms_norm(x, width)
        q = g.split_heads(g.op("MatMul", y, g.weight(width, width)), heads, 8)
        source = other or y
        k, v = (
            g.split_heads(g.op("MatMul", source, g.weight(width, width)), heads, 8)
            for _ in range(2)
        )
        return g.op("Add", x, g.op("MatMul", g.attend(q, k, v, 8, mask), g.weight(width, width)))

    x = g.op("Gather", table, ids)
    x = layer(x, "", g.op("Add", bias(ids, causal=False), hide))
    x = g.rms_norm(g.op("Add", x, feed(g, g.rms_norm(x, width), width, 64)), width)
    y = g.op("Gather", table, out)
    y = layer(y, "", bias(out, causal=True))
    y = layer(y, x, hide)
    y = g.op("Add", y, feed(g, g.rms_norm(y, width), width, 64))
    y = g.op("Mul", g.rms_norm(y, width), g.const(width**-0.5))
    g.result(g.op("MatMul", y, g.op("Transpose", table, perm=[1, 0])), 3)


def lstm_weights(g: Net, gates: int, inner: int, outer: int, ways: int) -> tuple[str, str, str]:
    return (g.weight(ways, gates * inner, outer, fan_in=2 * outer),
            g.weight(ways, gates * inner, inner, fan_in=2 * inner),
            g.const(g.rng.uniform(-0.2, 0.2, (ways, 2 * gates * inner))))  # fmt: skip


@held({"b": 2, "n": 4}, b=3, n=9)
def tagger(g: Net) -> None:
    """An LSTM of both ways over lines of unlike lengths, then a second one backwards."""
    ids = g.integers("ids", 40, "n", "b")
    size = g.filled(
        "sizes", lambda rng, shape: rng.integers(2, 5, shape).astype(np.int32), "b", kind=I32
    )
    x = g.op("Gather", g.weight(40, 16), ids)
    y, last, _ = g.op("LSTM", x, *lstm_weights(g, 4, 12, 16, 2), size, outputs=3,
                      hidden_size=12, direction="bidirectional")  # fmt: skip
    y = g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 1, 3]), g.ints(0, 0, 24))
    y, _, _ = g.op("LSTM", g.norm(y, 24), *lstm_weights(g, 4, 10, 24, 1), outputs=3,
                   hidden_size=10, direction="reverse")  # fmt: skip
    g.result(g.op("LogSoftmax", g.linear(g.op("Squeeze", y, g.ints(1)), 10, 5), axis=-1), 3)
    g.result(last, 3)


@held({"b": 1, "n": 8}, b=2, n=6)
def pooled_gru(g: Net) -> None:
    """A GRU, rows weighted by attention, another GRU's last state."""
    x = g.floats("x", "n", "b", 10)
    w = (
        g.weight(1, 36, 10, fan_in=20),
        g.weight(1, 36, 12, fan_in=24),
        g.const(g.rng.uniform(-0.2, 0.2, (1, 72))),
    )
    y, _ = g.op("GRU", x, *w, outputs=2, hidden_size=12, linear_before_reset=1)
    y = g.op("Transpose", g.op("Squeeze", y, g.ints(1)), perm=[1, 0, 2])
    p = g.op("Softmax", g.op("MatMul", g.op("Tanh", g.linear(y, 12, 12)), g.weight(12, 1)), axis=1)
    context = g.op("Squeeze", g.op("MatMul", g.op("Transpose", p, perm=[0, 2, 1]), y), g.ints(1))
    w = g.weight(1, 24, 12, fan_in=24), g.weight(1, 24, 8, fan_in=16)
    z = g.op("Transpose", y, perm=[1, 0, 2])
    _, last = g.op("GRU", z, *w, outputs=2, hidden_size=8)
    g.result(g.linear(g.op("Concat", context, g.op("Squeeze", last, g.ints(0)), axis=1), 20, 3), 2)


@held({"b": 1}, b=2, limit=2e-5)
def heard(g: Net) -> None:
    """A wave's spectrum by STFT, mel bands, logarithm, convolutions, and a simple recurrence."""
    n, step, count = 64, 16, 33
    wave = g.floats("wave", "b", 400)
    window = g.const(np.hanning(n))
    s = g.op("STFT", wave, g.const(step, np.int64), window, g.const(n, np.int64), onesided=1)
    power = g.op("ReduceSumSquare", s, g.ints(3), keepdims=0)
    mel = g.op(
        "MelWeightMatrix",
        *(g.const(v, np.int64) for v in (12, n, 8000)),
        g.const(50.0),
        g.const(4000.0),
    )
    x = g.op("Log", g.op("Add", g.op("MatMul", power, mel), g.const(1e-3)))
    x = g.op("Sub", x, g.op("ReduceMean", x, g.ints(1), keepdims=1))
    x = g.op("Transpose", x, perm=[0, 2, 1])
    x = g.op("Relu", g.conv(x, 12, 16, 3, strides=[2]))
    x = g.op("Transpose", x, perm=[2, 0, 1])
    w = g.weight(1, 8, 16, fan_in=32), g.weight(1, 8, 8, fan_in=16)
    y, _ = g.op("RNN", x, *w, outputs=2, hidden_size=8)
    g.result(y, 4)
    g.result(g.op("ReduceMean", power, g.ints(1, 2), keepdims=0), 1)
    assert count == n // 2 + 1


@held({"b": 1, "n": 50}, b=2, n=33)
def gated_waves(g: Net) -> None:
    """Causal dilated convolutions of one dim, gates, sums of residuals and of skips."""
    x = g.floats("wave", "b", 1, "n")
    x, skips = g.conv(x, 1, 12, 1), []
    for dilation in (1, 2, 4, 8):
        y = g.op("Pad", x, g.ints(0, 0, 2 * dilation, 0, 0, 0))
        y = g.conv(y, 12, 24, 3, dilations=[dilation], pads=[0, 0])
        left, right = g.op("Split", y, outputs=2, axis=1, num_outputs=2)
        y = g.op("Mul", g.op("Tanh", left), g.op("Sigmoid", right))
        skips.append(g.conv(y, 12, 16, 1))
        x = g.op("Add", x, g.conv(y, 12, 12, 1))
    y = g.op("Relu", g.op("Sum", *skips))
    g.result(g.op("Softmax", g.conv(y, 16, 10, 1), axis=1), 3)


@held({"b": 1}, b=2)
def scanned(g: Net) -> None:
    """A selective recurrence of a state by Scan, with what depends on each step."""
    inner, state = 8, 4
    x = g.floats("x", "b", 10, inner)
    step = g.op("Softplus", g.linear(x, inner, inner))
    into, out = g.linear(x, inner, state), g.linear(x, inner, state)
    decay = g.op("Neg", g.op("Exp", g.const(g.rng.uniform(-1, 0, (inner, state)))))
    da = g.op("Exp", g.op("Mul", g.op("Unsqueeze", step, g.ints(3)), decay))
    steps = g.op("Mul", g.op("Unsqueeze", step, g.ints(3)), g.op("Unsqueeze", into, g.ints(2)))
    db = g.op("Mul", steps, g.op("Unsqueeze", x, g.ints(3)))

    def body(s: Net) -> None:
        for name, dims in (("h", [None, inner, state]), ("a", [None, inner, state]),
                           ("u", [None, inner, state]), ("c", [None, state])):  # fmt: skip
            s.inputs.append(helper.make_tensor_value_info(name, FLOAT, dims))
        h = s.op("Add", s.op("Mul", "h", "a"), "u")
        y = s.op("Squeeze", s.op("MatMul", h, s.op("Unsqueeze", "c", s.ints(2))), s.ints(2))
        s.output(h, "next", [None, inner, state])
        s.output(y, "row", [None, inner])

    rows = [
        g.op("Transpose", v, perm=p)
        for v, p in ((da, [1, 0, 2, 3]), (db, [1, 0, 2, 3]), (out, [1, 0, 2]))
    ]
    batch = g.op("Shape", x, start=0, end=1)
    start = g.op("ConstantOfShape", g.op("Concat", batch, g.ints(inner, state), axis=0))
    h, y = g.op("Scan", start, *rows, outputs=2, body=g.subgraph(body, "step"), num_scan_inputs=3)
    y = g.op("Add", g.op("Transpose", y, perm=[1, 0, 2]), g.op("Mul", x, g.vector(inner)))
    g.result(g.op("Mul", y, g.silu(g.linear(x, inner, inner))), 3)
    g.result(h, 3)


@held({"b": 1, "n": 19}, b=2, n=11)
def summed_attention(g: Net) -> None:
    """Attention without softmax, by running sums of outer products, and of decays."""
    width = 8
    x = g.floats("x", "b", "n", width)
    q, k, v = (g.linear(x, width, width) for _ in range(3))
    q, k = (g.op("Add", g.op("Elu", p), g.const(1.0)) for p in (q, k))
    outer = g.op("Mul", g.op("Unsqueeze", k, g.ints(3)), g.op("Unsqueeze", v, g.ints(2)))
    outer = g.op("CumSum", outer, g.const(1, np.int64))
    total = g.op("CumSum", k, g.const(1, np.int64))
    y = g.op("Squeeze", g.op("MatMul", g.op("Unsqueeze", q, g.ints(2)), outer), g.ints(2))
    y = g.op("Div", y, g.op("ReduceSum", g.op("Mul", q, total), g.ints(2), keepdims=1))
    left = g.op("CumSum", g.op("Sigmoid", v), g.const(1, np.int64), exclusive=1, reverse=1)
    g.result(g.op("Add", y, g.op("ReduceLogSumExp", left, g.ints(2), keepdims=1)), 3)


@held({"t": 3}, t=10, narrow=False)
def experts(g: Net) -> None:
    """Rows go to two of four experts (TopK), whose weights are scattered; one product for each."""
    width, count = 16, 4
    x = g.floats("x", "t", width)
    logits = g.linear(x, width, count)
    best, where = g.op("TopK", logits, g.ints(2), outputs=2, axis=-1)
    zeros = g.op("Mul", logits, g.const(0.0))
    gate = g.op("ScatterElements", zeros, where, g.op("Softmax", best, axis=-1), axis=1)
    y = g.op("MatMul", g.op("Unsqueeze", x, g.ints(0)), g.weight(count, width, 24, fan_in=width))
    y = g.op("MatMul", g.silu(y), g.weight(count, 24, width, fan_in=24))
    y = g.op("Mul", y, g.op("Unsqueeze", g.op("Transpose", gate, perm=[1, 0]), g.ints(2)))
    g.result(g.op("ReduceSum", y, g.ints(0), keepdims=0), 2)
    hot = g.op("OneHot", where, g.const(count, np.int64), g.const([0.0, 1.0]), axis=-1)
    g.result(g.op("ReduceMean", hot, g.ints(0, 1), keepdims=0), 1)


@held({"b": 3}, b=2, narrow=False)
def beams(g: Net) -> None:
    """A step of beam search: scores of all words, the best, their beams' states gathered."""
    beams_, words, width = 3, 20, 8
    state, score = g.floats("state", "b", beams_, width), g.floats("score", "b", beams_)
    p = g.op("LogSoftmax", g.linear(state, width, words), axis=-1)
    total = g.op(
        "Reshape", g.op("Add", p, g.op("Unsqueeze", score, g.ints(2))), g.ints(0, beams_ * words)
    )
    best, flat = g.op("TopK", total, g.ints(beams_), outputs=2, axis=1)
    beam, word = (
        g.op("Div", flat, g.const(words, np.int64)),
        g.op("Mod", flat, g.const(words, np.int64)),
    )
    taken = g.op("GatherND", state, g.op("Unsqueeze", beam, g.ints(2)), batch_dims=1)
    taken = g.op("Add", taken, g.op("Gather", g.weight(words, width), word))
    done = g.op("Equal", word, g.const(3, np.int64))
    g.result(g.op("Where", done, g.const(-1e9), best), 2)
    g.result(g.op("Where", g.op("Unsqueeze", done, g.ints(2)), state, taken), 3)
    g.result(word, 2, INT64)


@held({"n": 7}, n=5)
def looped(g: Net) -> None:
    """A Loop that ends by its own condition, an If on what it found."""
    x = g.floats("x", "n", 6)
    w = g.weight(6, 6, fan_in=18)

    def body(s: Net) -> None:
        s.inputs.append(helper.make_tensor_value_info("i", INT64, []))
        s.inputs.append(helper.make_tensor_value_info("go", TensorProto.BOOL, []))
        s.inputs.append(helper.make_tensor_value_info("h", FLOAT, [None, 6]))
        h = s.op("Add", s.op("Tanh", s.op("MatMul", "h", w)), s.op("Mul", "h", s.const(0.4)))
        size = s.op("ReduceSumSquare", h, keepdims=0)
        s.output(s.op("Greater", size, s.const(0.5)), "more", [], TensorProto.BOOL)
        s.output(h, "out", [None, 6])
        s.output(size, "size", [])

    h, sizes = g.op("Loop", g.const(6, np.int64), g.const(True, np.bool_), x, outputs=2,
                    body=g.subgraph(body, "turn"))  # fmt: skip
    last = g.op("Gather", sizes, g.const(-1, np.int64))

    def branch(sign: float) -> object:
        def made(s: Net) -> None:
            s.output(s.op("Mul", s.linear(h, 6, 4), s.const(sign)), "r", [None, 4])

        return g.subgraph(made, f"b{int(sign > 0)}")

    y = g.op(
        "If", g.op("Less", last, g.const(1.0)), then_branch=branch(1.0), else_branch=branch(-2.0)
    )
    g.result(y, 2)
    g.result(sizes, 1)


@held({"v": 5, "e": 9}, v=9, e=20)
def graph_net(g: Net) -> None:
    """Messages along edges: gathered, transformed, added where they go; a norm by degrees."""
    x = g.floats("x", "v", 8)
    edges = g.integers("edges", 5, 2, "e")
    source, into = (g.op("Gather", edges, g.const(i, np.int64)) for i in (0, 1))
    for _ in range(2):
        message = g.op(
            "Relu",
            g.linear(
                g.op("Concat", g.op("Gather", x, source), g.op("Gather", x, into), axis=1), 16, 8
            ),
        )
        index = g.op("Expand", g.op("Unsqueeze", into, g.ints(1)), g.op("Shape", message))
        zeros = g.op("ConstantOfShape", g.op("Shape", x))
        total = g.op("ScatterElements", zeros, index, message, axis=0, reduction="add")
        ones = g.op(
            "ConstantOfShape", g.op("Shape", into), value=helper.make_tensor("v", FLOAT, [1], [1.0])
        )
        degree = g.op("ConstantOfShape", g.op("Shape", x, start=0, end=1))
        degree = g.op(
            "ScatterND", degree, g.op("Unsqueeze", into, g.ints(1)), ones, reduction="add"
        )
        mean = g.op("Div", total, g.op("Unsqueeze", g.op("Max", degree, g.const(1.0)), g.ints(1)))
        x = g.op("Add", x, g.linear(mean, 8, 8))
    g.result(g.op("LpNormalization", x, axis=1, p=2), 2)
    g.result(g.op("ReduceMax", x, g.ints(0), keepdims=0), 1)


@held({"b": 1}, b=4)
def clicks(g: Net) -> None:
    """Bags of categories, their products in pairs, and numbers, to one probability."""
    bags, numbers = g.integers("bags", 30, "b", 3, 5), g.floats("numbers", "b", 6)
    x = g.op("ReduceSum", g.op("Gather", g.weight(30, 8), bags), g.ints(2), keepdims=0)
    y = g.op("Relu", g.linear(g.op("Log", g.op("Add", g.op("Abs", numbers), g.const(1.0))), 6, 8))
    rows = g.op("Concat", x, g.op("Unsqueeze", y, g.ints(1)), axis=1)
    pairs = g.op("MatMul", rows, g.op("Transpose", rows, perm=[0, 2, 1]))
    low = [(i, j) for i in range(4) for j in range(i)]
    flat = g.op("Reshape", pairs, g.ints(0, 16))
    taken = g.op("Gather", flat, g.const([4 * i + j for i, j in low], np.int64), axis=1)
    y = g.op("Concat", taken, y, axis=1)
    square = g.op("Sub", g.op("Pow", g.op("ReduceSum", rows, g.ints(1), keepdims=0), g.const(2.0)),
                  g.op("ReduceSumSquare", rows, g.ints(1), keepdims=0))  # fmt: skip
    y = g.op("Concat", y, square, axis=1)
    g.result(g.op("Sigmoid", g.linear(g.op("Relu", g.linear(y, 22, 12)), 12, 1)), 2)


@held({"b": 3}, b=2)
def mixture(g: Net) -> None:
    """Densities of a mixture: inverse of small matrices by steps, Det, logarithms of sums."""
    x = g.floats("x", "b", 3)
    low = g.op("Trilu", g.weight(4, 3, 3), upper=0)
    eye = g.const(np.eye(3))
    a = g.op("Add", g.op("MatMul", low, g.op("Transpose", low, perm=[0, 2, 1])), eye)
    trace = g.op("Einsum", a, equation="kii->k")
    y = g.op("Div", eye, g.op("Unsqueeze", trace, g.ints(1, 2)))
    for _ in range(12):  # Newton and Schulz
        twice = g.op("Sub", g.op("Mul", eye, g.const(2.0)), g.op("MatMul", a, y))
        y = g.op("MatMul", y, twice)
    d = g.op("Sub", g.op("Unsqueeze", x, g.ints(1)), g.weight(4, 3))
    form = g.op("Einsum", d, y, d, equation="bki,kij,bkj->bk")
    log = g.op(
        "Sub",
        g.op("Mul", form, g.const(-0.5)),
        g.op("Mul", g.op("Log", g.op("Det", a)), g.const(0.5)),
    )
    g.result(g.op("ReduceLogSumExp", log, g.ints(1), keepdims=1), 2)
    g.result(g.op("Softmax", log, axis=1), 2)
