"""Drawn attentions, layers of transformers, recurrences and branches."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper

from benchmarks.emulator.drawn.graph import Drawn, kind
from benchmarks.emulator.held_out.net import Net
from zoo.made import BOOL, FLOAT, INT64, rope

I32 = TensorProto.INT32


def _causal(g: Drawn, like: str, axis: int, past: str = "") -> str:
    """Return [queries, keys] of 0 and a low number; the last query sees all keys."""
    n = g.op("Squeeze", g.op("Shape", like, start=axis, end=axis + 1))
    keys, ahead = n, g.const(0, np.int64)
    if past:
        ahead = g.op("Squeeze", g.op("Shape", past, start=2, end=3))
        keys = g.op("Add", n, ahead)
    zero, one = g.const(0, np.int64), g.const(1, np.int64)
    rows = g.op("Add", g.op("Range", zero, n, one), ahead)
    columns = g.op("Range", zero, keys, one)
    hidden = g.op("Greater", columns, g.op("Unsqueeze", rows, g.ints(1)))
    return g.op("Where", hidden, g.const(-65504.0), g.const(0.0))


@kind
def attention(g: Drawn) -> None:
    """Heads of fixed or dynamic lengths, with a mask of numbers, of holes, a causal one or none."""
    g.narrow("f32", "f16", "f16", "bf16")
    heads, size, deep = g.pick(1, 2, 3, 4), g.pick(16, 32, 40, 64), g.pick(0, 0, 16, 32)
    batch, queries = g.extent("b", 1, 2), g.extent("s", 1, 5, 16, 17, 32, 50)
    mask = g.pick("", "numbers", "causal", "holes")
    own = mask == "causal" or g.coin()
    keys = queries if own else g.extent("t", 4, 16, 33, 64)
    q = g.floats("q", batch, heads, queries, size)
    k, v = g.floats("k", batch, heads, keys, size), g.floats("v", batch, heads, keys, deep or size)
    added = ""
    if mask == "numbers":
        added = g.floats("mask", batch, 1, queries, keys)
    elif mask == "causal":
        added = _causal(g, q, 2)
    elif mask == "holes":
        seen = g.filled(
            "seen", lambda r, s: (np.arange(s[-1]) < r.integers(1, s[-1] + 1, (*s[:-1], 1))),
            batch, 1, 1, keys, kind=BOOL,
        )  # fmt: skip
        added = g.op("Where", seen, g.const(0.0), g.const(-65504.0))
    g.result(g.attend(q, k, v, size, added), 3)


@kind
def shared_heads(g: Drawn) -> None:
    """Heads that share keys: repeated by Expand, or onnxruntime's GroupQueryAttention."""
    kv, times, size = g.pick(1, 2), g.pick(2, 4), g.pick(16, 32, 64)
    heads = kv * times
    batch, n, p = g.extent("b", 1, 2), g.extent("n", 1, 1, 8, 17), g.extent("p", 5, 16, 31, 60)
    if g.coin():
        g.narrow("f32", "f16", "bf16")
        q = g.floats("q", batch, heads, n, size)
        k, v = (g.floats(x, batch, kv, p, size) for x in "kv")

        def repeated(x: str) -> str:
            b, t = g.op("Shape", x, start=0, end=1), g.op("Shape", x, start=2, end=3)
            wide = g.op("Concat", b, g.ints(kv), g.ints(times), t, g.ints(size), axis=0)
            flat = g.op("Concat", b, g.ints(heads), t, g.ints(size), axis=0)
            x = g.op("Expand", g.op("Unsqueeze", x, g.ints(2)), wide)
            return g.op("Reshape", x, flat)

        g.result(g.attend(q, repeated(k), repeated(v), size), 3)
        return
    q = g.floats("q", 1, n, heads * size)
    k, v = (g.floats(x, 1, n, kv * size) for x in "kv")
    past = [g.floats(f"past_{x}", 1, kv, p, size) for x in "kv"]
    count = g.op("Cast", g.op("Shape", q, start=1, end=2), to=I32)
    total = g.op("Add", count, g.op("Cast", g.op("Shape", past[0], start=2, end=3), to=I32))
    last = g.op("Sub", total, g.const([1], np.int32))
    angle = np.outer(np.arange(96), 100.0 ** (-np.arange(size // 2) / (size // 2)))
    made = g.typed(
        "GroupQueryAttention", q, k, v, *past, last, g.op("Squeeze", total), g.const(np.cos(angle)),
        g.const(np.sin(angle)), outputs=3, num_heads=heads, kv_num_heads=kv, do_rotary=1,
    )  # fmt: skip
    for value, rank in zip(made, (3, 4, 4), strict=True):
        g.result(value, rank)


@kind
def one_token(g: Drawn) -> None:
    """A decoder's layer for one token over a cache, in the form of Llama."""
    g.narrow("f32", "f16", "bf16")
    kv, times, size = g.pick(2, 4), g.pick(1, 2, 4), g.pick(16, 32, 64)
    heads, width = kv * times, g.pick(32, 64, 96)
    batch, past = g.extent("b", 1, 2), g.extent("p", 7, 31, 64, 255)
    x = g.floats("x", batch, 1, width)
    cos, sin = (g.floats(n, 1, 1, 1, size) for n in ("cos", "sin"))
    cache = [g.floats(f"past_{n}", batch, kv, past, size) for n in "kv"]

    def split(n: int) -> str:
        y = g.op("MatMul", h, g.weight(width, n * size, fan_in=2 * width))
        return g.heads(y, (0, 0, n, size))

    h = g.rms_norm(x, width)
    q, k, v = split(heads), split(kv), split(kv)
    q, k = (rope(g, y, cos, sin, size // 2) for y in (q, k))
    k, v = (g.op("Concat", c, y, axis=2) for c, y in zip(cache, (k, v), strict=True))
    g.result(k, 4)

    def repeated(y: str) -> str:
        if times == 1:
            return y
        b, t = g.op("Shape", y, start=0, end=1), g.op("Shape", y, start=2, end=3)
        wide = g.op("Concat", b, g.ints(kv), g.ints(times), t, g.ints(size), axis=0)
        flat = g.op("Concat", b, g.ints(heads), t, g.ints(size), axis=0)
        return g.op("Reshape", g.op("Expand", g.op("Unsqueeze", y, g.ints(2)), wide), flat)

    y = g.attend(q, repeated(k), repeated(v), size)
    y = g.op("Add", x, g.op("MatMul", y, g.weight(heads * size, width, fan_in=2 * heads * size)))
    h = g.rms_norm(y, width)
    gate = g.silu(g.op("MatMul", h, g.weight(width, 2 * width)))
    up = g.op("Mul", gate, g.op("MatMul", h, g.weight(width, 2 * width)))
    g.result(g.op("Add", y, g.op("MatMul", up, g.weight(2 * width, width))), 3)


@kind
def layer(g: Drawn) -> None:
    """A layer over a sequence: of an encoder, or a causal decoder whose heads turn and share."""
    g.narrow("f32", "f16", "bf16")
    size, kv, times = g.pick(16, 32, 64), g.pick(2, 3), g.pick(1, 2)
    heads = kv * times
    width = heads * size
    batch, n = g.extent("b", 1, 2), g.extent("s", 9, 16, 33, 50)
    x = g.floats("x", batch, n, width)
    decoder = g.coin()
    h = g.rms_norm(x, width) if decoder else x
    if decoder:
        q, k, v = (
            g.heads(g.op("MatMul", h, g.weight(width, m * size, fan_in=2 * width)), (0, 0, m, size))
            for m in (heads, kv, kv)
        )
        cos, sin = (g.floats(c, 1, 1, n, size) for c in ("cos", "sin"))
        q, k = (rope(g, y, cos, sin, size // 2) for y in (q, k))
        if times > 1:
            b, t = g.op("Shape", k, start=0, end=1), g.op("Shape", k, start=2, end=3)
            wide = g.op("Concat", b, g.ints(kv), g.ints(times), t, g.ints(size), axis=0)
            flat = g.op("Concat", b, g.ints(heads), t, g.ints(size), axis=0)
            k, v = (
                g.op("Reshape", g.op("Expand", g.op("Unsqueeze", y, g.ints(2)), wide), flat)
                for y in (k, v)
            )
        y = g.attend(q, k, v, size, _causal(g, x, 1))
    else:
        q, k, v = (g.heads(g.linear(h, width, width), (0, 0, heads, size)) for _ in range(3))
        y = g.attend(q, k, v, size)
    y = g.op("Add", x, g.linear(y, width, width))
    h = g.rms_norm(y, width) if decoder else g.norm(y, width)
    f = g.linear(h, width, 2 * width)
    f = g.op("Mul", g.silu(f), g.linear(h, width, 2 * width)) if decoder else g.gelu(f)
    y = g.op("Add", y if decoder else h, g.linear(f, 2 * width, width))
    g.result(y if decoder else g.norm(y, width), 3)


@kind
def recurrent(g: Drawn) -> None:
    """LSTM, GRU or RNN, one way or both."""
    op, gates = g.pick(("LSTM", 4), ("GRU", 3), ("RNN", 1))
    into, hidden, way = g.pick(5, 16, 24), g.pick(7, 16, 32), g.pick("forward", "bidirectional")
    ways = 1 + (way == "bidirectional")
    x = g.floats("x", g.extent("s", 1, 4, 9), g.extent("b", 1, 3), into)
    w = g.weight(ways, gates * hidden, into, fan_in=2 * into)
    r = g.weight(ways, gates * hidden, hidden, fan_in=2 * hidden)
    b = g.const(g.rng.uniform(-0.2, 0.2, (ways, 2 * gates * hidden)))
    more = {"linear_before_reset": g.number(0, 1)} if op == "GRU" else {}
    y = g.op(op, x, w, r, b, hidden_size=hidden, direction=way, outputs=2, **more)
    g.result(y[0], 4)
    g.result(y[1], 3)


def _body(g: Drawn, build: object, name: str, inputs: list[onnx.ValueInfoProto]) -> onnx.GraphProto:
    made = g.subgraph(build, name)
    del made.input[:]
    made.input.extend(inputs)
    return made


@kind
def branches(g: Drawn) -> None:
    """If and Loop, with conditions and counts that the run knows."""
    width = g.pick(5, 16, 33)
    n = g.extent("n", 1, 3, 20)
    x = g.floats("x", n, width)
    by = g.weight(width, width, fan_in=2 * width)

    def then(b: Net) -> None:
        b.result(b.op("Tanh", b.op("MatMul", x, by)), 2)

    def other(b: Net) -> None:
        b.result(b.op("Softmax", b.op("Mul", x, b.const(2.0)), axis=-1), 2)

    test = g.op("Greater", g.op("ReduceSum", x, keepdims=0), g.const(0.0))
    y = g.op("If", test, then_branch=g.subgraph(then, "then"),
             else_branch=g.subgraph(other, "else"))  # fmt: skip
    g.result(y, 2)
    count = g.filled("count", lambda r, s: np.asarray(r.integers(0, 4, s), np.int64), kind=INT64)
    info = helper.make_tensor_value_info

    def step(b: Net) -> None:
        b.outputs.append(info("more", BOOL, []))
        b.nodes.append(helper.make_node("Identity", ["go"], ["more"]))
        z = b.op("Add", b.op("Tanh", b.op("MatMul", "state", by)), x)
        b.output(z, "next", [None, width])
        b.output(b.op("ReduceMax", z, b.ints(1), keepdims=0), "seen", [None])

    ports = [info("i", INT64, []), info("go", BOOL, []), info("state", FLOAT, [None, width])]
    state, seen = g.op("Loop", count, "", x, outputs=2, body=_body(g, step, "step", ports))
    g.result(state, 2)
    g.result(seen, 2)
