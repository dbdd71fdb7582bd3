"""Decoders with a branch for their cache, and what Paddle's converter writes: drawn networks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from zoo.drawn import Drawn, branch, cut
from zoo.made import BOOL, FLOAT, INT64, repeat_heads, rope

INT32 = TensorProto.INT32
LEAST = float(np.finfo(np.float32).min)
LAST = 2**63 - 1


def extent_of(g: Drawn, x: str, axis: int) -> str:
    """Return an extent as torch's older exporter takes it: a number without dims."""
    return g.op("Gather", g.op("Shape", x), g.const(axis, np.int64), axis=0)


def joined(g: Drawn, *parts: str | int) -> str:
    """Return dims of extents and numbers."""
    rows = [g.ints(p) if isinstance(p, int) else g.op("Unsqueeze", p, g.ints(0)) for p in parts]
    return g.op("Concat", *rows, axis=0)


def choose(g: Drawn, cached: str, layer: Any) -> Sequence[str]:
    """Add an If of a layer with its cache and without it; `layer(True)` adds the nodes."""
    graphs = []
    for with_cache in (True, False):
        mark = len(g.nodes)
        graphs.append(branch(g, mark, *layer(with_cache)))
    return g.op("If", cached, outputs=3, then_branch=graphs[0], else_branch=graphs[1])


def gpt2_merged(g: Drawn) -> None:
    """A layer of GPT-2 with its weights outside of an If on a cache: Gemm of rows, a slice of a
    buffer of ones as causal mask, and a mask of tokens, all of dynamic dims."""
    heads, size, wide = 2, 4, 8
    batch, length, past = g.extent(1, 2), g.extent(1, 3), g.extent(1, 4)
    ids = g.given(batch, length, kind=INT64)
    keys, values = (g.given(batch, heads, past, size) for _ in "kv")
    # mask of the rows after the cache; rows in the cache are all visible
    seen = g.given(batch, length)
    cached = g.given(1, kind=BOOL)
    buffer = g.const(np.tril(np.ones((1, 1, 16, 16))), np.bool_)
    table, weight, bias = g.weight(5, wide), g.weight(wide, 3 * wide), g.vector(3 * wide)
    scale, shift = g.vector(wide, 0.5, 1.5), g.vector(wide)
    out = g.weight(wide, wide)

    def layer(with_cache: bool) -> list[str]:
        x = g.op("Gather", table, ids)
        x = g.op("LayerNormalization", x, scale, shift, axis=-1, epsilon=1e-5)
        rows = g.op("Reshape", x, g.ints(-1, wide))
        rows = g.op("Gemm", rows, weight, bias)
        y = g.op("Reshape", rows, joined(g, extent_of(g, x, 0), extent_of(g, x, 1), 3 * wide))
        parts = g.op("Split", y, g.ints(wide, wide, wide), outputs=3, axis=2)
        parts = [
            g.op("Reshape", p, joined(g, extent_of(g, p, 0), extent_of(g, p, 1), heads, size))
            for p in parts
        ]
        q, k, v = (g.op("Transpose", p, perm=[0, 2, 1, 3]) for p in parts)
        if with_cache:
            k, v = (g.op("Concat", a, b, axis=-2) for a, b in ((keys, k), (values, v)))
        score = g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2]))
        score = g.op("Div", score, g.op("Sqrt", g.const(float(size))))
        total, new = extent_of(g, k, -2), extent_of(g, q, -2)
        first = g.op("Unsqueeze", g.op("Sub", total, new), g.ints(0))
        end = g.op("Unsqueeze", total, g.ints(0))
        causal = g.op("Slice", buffer, first, end, g.ints(2), g.ints(1))
        causal = g.op("Slice", causal, g.ints(0), end, g.ints(3), g.ints(1))
        score = g.op("Where", causal, score, g.const(LEAST))
        mask = seen
        if with_cache:
            before = joined(g, extent_of(g, keys, 0), extent_of(g, keys, 2))
            mask = g.op("Concat", g.op("Expand", g.const([[1.0]]), before), seen, axis=1)
        # drawn numbers: a token is masked where they are negative
        mask = g.op("Cast", g.op("Less", mask, g.const(-0.5)), to=FLOAT)
        mask = g.op("Mul", g.op("Unsqueeze", mask, g.ints(1, 2)), g.const(-50.0))
        p = g.op("Softmax", g.op("Add", score, mask), axis=-1)
        y = g.op("Transpose", g.op("MatMul", p, v), perm=[0, 2, 1, 3])
        y = g.op("Reshape", y, joined(g, extent_of(g, y, 0), extent_of(g, y, 1), wide))
        return [g.op("Add", x, g.op("MatMul", y, out)), k, v]

    for found, rank in zip(choose(g, cached, layer), (3, 4, 4), strict=True):
        g.result(found, rank)


def llama_merged(g: Drawn) -> None:
    """A layer of Llama, likewise: positions from a mask, shared heads, a causal mask of Range."""
    heads, shared, size, wide = 4, 2, 4, 8
    batch, length, past = g.extent(1, 2), g.extent(1, 3), g.extent(1, 4)
    x = g.given(batch, length, wide)
    keys, values = (g.given(batch, shared, past, size) for _ in "kv")
    cached = g.given(1, kind=BOOL)
    weights = [g.weight(wide, n * size) for n in (heads, shared, shared)]
    out, gate, up = g.weight(heads * size, wide), g.weight(wide, 12), g.weight(wide, 12)
    down, frequency = g.weight(12, wide), g.const([[[1.0], [0.1]]])

    def layer(with_cache: bool) -> list[str]:
        y = g.rms_norm(x, wide)
        q, k, v = (
            g.heads(g.op("MatMul", y, w), (0, -1, n, size))
            for w, n in zip(weights, (heads, shared, shared), strict=True)
        )
        new = extent_of(g, x, 1)
        first = extent_of(g, keys, 2) if with_cache else g.const(0, np.int64)
        place = g.op("Range", first, g.op("Add", first, new), g.const(1, np.int64))
        rows = g.op("Unsqueeze", g.op("Cast", place, to=FLOAT), g.ints(0, 1))
        wanted = joined(g, extent_of(g, x, 0), -1, 1)
        minus = g.op("Mul", g.op("ConstantOfShape", g.ints(3), value=ones()), g.ints(-1))
        equal = g.op("Equal", wanted, minus)
        wanted = g.op("Where", equal, g.op("ConstantOfShape", g.ints(3), value=ones()), wanted)
        angle = g.op("MatMul", g.op("Expand", frequency, wanted), rows)
        angle = g.op("Transpose", angle, perm=[0, 2, 1])
        angle = g.op("Unsqueeze", g.op("Concat", angle, angle, axis=-1), g.ints(1))
        cos, sin = g.op("Cos", angle), g.op("Sin", angle)
        q, k = rope(g, q, cos, sin, size // 2), rope(g, k, cos, sin, size // 2)
        if with_cache:
            k, v = (g.op("Concat", a, b, axis=-2) for a, b in ((keys, k), (values, v)))
        wide_k, wide_v = (repeat_heads(g, p, heads // shared, size) for p in (k, v))
        total = g.op("Range", g.const(0, np.int64), extent_of(g, k, 2), g.const(1, np.int64))
        later = g.op("Greater", g.op("Unsqueeze", total, g.ints(0)),
                     g.op("Unsqueeze", place, g.ints(1)))  # fmt: skip
        mask = g.op("Where", later, g.const(LEAST), g.const(0.0))
        score = g.op("MatMul", q, g.op("Transpose", wide_k, perm=[0, 1, 3, 2]))
        score = g.op("Add", g.op("Mul", score, g.const(size**-0.5)), mask)
        y = g.op("MatMul", g.op("Softmax", score, axis=-1), wide_v)
        y = g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 1, 3]), g.ints(0, 0, -1))
        h = g.op("Add", x, g.op("MatMul", y, out))
        y = g.rms_norm(h, wide)
        y = g.op("Mul", g.silu(g.op("MatMul", y, gate)), g.op("MatMul", y, up))
        return [g.op("Add", h, g.op("MatMul", y, down)), k, v]

    for found, rank in zip(choose(g, cached, layer), (3, 4, 4), strict=True):
        g.result(found, rank)


def ones() -> TensorProto:
    return helper.make_tensor("", INT64, [1], [1])


def paddle_shapes(g: Drawn) -> None:
    """Shape, Slice, Concat and Reshape in i32, sizes of a Resize computed in floats, places."""
    n, h, w = g.extent(1, 3), g.extent(2, 4), g.extent(2, 5)
    x = g.given(n, 4, h, w)
    y = g.conv_bn(x, 4, 8, 3)
    y = g.op("Div", g.op("Mul", y, g.op("Clip", g.op("Add", y, g.const(3.0)), g.const(0.0),
                                        g.const(6.0))), g.const(6.0))  # fmt: skip
    shape = g.op("Cast", g.op("Shape", x), to=INT32)
    hw = g.op("Slice", shape, g.ints(2), g.ints(4), g.ints(0), g.ints(1))
    sizes = g.op("Mul", g.op("Cast", hw, to=FLOAT), g.const(g.one_of([1.5, 2.0], [0.5, 1.0])))
    sizes = g.op("Cast", g.op("Floor", sizes), to=INT64)
    front = g.op("Slice", g.op("Shape", y), g.ints(0), g.ints(2), g.ints(0))
    way = g.one_of("align_corners", "half_pixel", "asymmetric")
    y = g.op("Resize", y, "", "", g.op("Concat", front, sizes, axis=0), mode="linear",
             coordinate_transformation_mode=way)  # fmt: skip
    if g.one_of(True, False):  # flatten, a linear layer, and back
        rows = g.op("Transpose", y, perm=[0, 2, 3, 1])
        flat = g.op("Reshape", rows, g.dims_of(rows, (0, 1), -1, (3, 4)))
        flat = g.op("Add", g.op("MatMul", flat, g.weight(8, 6)), g.vector(6))
        place = g.op("Squeeze", g.op("Slice", g.op("Shape", flat), g.ints(1), g.ints(2)), g.ints(0))
        place = g.op("Range", g.const(0, np.int64), place, g.const(1, np.int64))
        place = g.op("Cast", g.op("Cast", place, to=INT32), to=FLOAT)
        flat = g.op("Add", flat, g.op("Unsqueeze", g.op("Sin", place), g.ints(0, 2)))
        y = g.op(
            "Reshape", g.op("Transpose", flat, perm=[0, 2, 1]), g.dims_of(y, (0, 1), 6, (2, 4))
        )
    else:  # tiles of a start, as many as images
        start = g.op(
            "Tile", g.weight(1, 5), g.op("Concat", g.dims_of(x, (0, 1)), g.ints(1), axis=0)
        )
        pooled = g.op("Squeeze", g.op("GlobalAveragePool", y), g.ints(2, 3))
        full = g.op("ConstantOfShape", g.dims_of(pooled, (0, 1), 2),
                    value=helper.make_tensor("", FLOAT, [1], [0.5]))  # fmt: skip
        y = g.op("Concat", start, pooled, full, axis=-1)
        low, high = g.op("Split", y, g.ints(7, 8), outputs=2, axis=-1)
        high = g.op("Slice", high, g.ints(-7), g.ints(LAST), g.ints(1))
        g.result(g.op("Where", g.op("Greater", low, high), low, high), 2)
        return
    g.result(y, 4)


def paddle_boxes(g: Drawn) -> None:
    """multiclass_nms3: chosen boxes by their places in all scores, the best of them in order."""
    classes, n = g.one_of(2, 3), g.extent(4, 9)
    boxes, scores = g.given(1, n, 4), g.given(1, classes, n)
    corner, size = (g.op("Slice", boxes, g.ints(a), g.ints(a + 2), g.ints(2)) for a in (0, 2))
    boxes = g.op("Concat", corner, g.op("Add", corner, g.op("Abs", size)), axis=2)
    scores = g.op("Sigmoid", scores)
    kept = g.op("NonMaxSuppression", boxes, scores, g.ints(g.one_of(2, 100)), g.const([0.4]),
                g.const([0.3]))  # fmt: skip
    columns = [g.op("Squeeze", g.op("Gather", kept, g.ints(i), axis=1), g.ints(1)) for i in (1, 2)]
    kind, place = columns
    count = g.op("Slice", g.op("Shape", scores), g.ints(2), g.ints(3), g.ints(0))
    at = g.op("Add", g.op("Mul", kind, count), place)
    found = g.op("Gather", g.op("Reshape", scores, g.ints(-1)), at, axis=0)
    most = g.op("ReduceMin", g.op("Concat", g.op("Shape", found), g.ints(g.one_of(3, 50)), axis=0),
                g.ints(0), keepdims=1)  # fmt: skip
    best, order = g.op("TopK", found, most, outputs=2, axis=0, largest=1, sorted=1)
    kind = g.op("Cast", g.op("Gather", kind, order, axis=0), to=FLOAT)
    place = g.op("Gather", place, order, axis=0)
    rows = g.op("Gather", g.op("Squeeze", boxes, g.ints(0)), place, axis=0)
    parts = [g.op("Unsqueeze", p, g.ints(1)) for p in (kind, best)]
    g.result(g.op("Concat", *parts, rows, axis=1), 2)
    g.result(g.op("Cast", g.op("Shape", place), to=INT32), 1, INT32)


def paddle_steps(g: Drawn) -> None:
    """A while of Paddle: a Loop whose condition is computed, which writes a row of a list."""
    width = g.one_of(3, 4)
    x = g.given(g.extent(1, 2), width)
    steps = g.op("Cast", g.op("Cast", g.const(g.one_of(2, 4), np.int64), to=INT32), to=INT64)
    go = g.op("Less", g.const([0], np.int64), steps)
    weight, start = g.weight(width, width), g.op("Unsqueeze", x, g.ints(1))
    names = [f"p{len(g.nodes)}_{n}" for n in ("i", "go", "at", "h", "all")]
    _, _, at, h, rows = names
    mark = len(g.nodes)
    new = g.op("Tanh", g.op("MatMul", h, weight))
    after = g.op("Add", at, g.ints(1))
    longer = g.op("Concat", rows, g.op("Unsqueeze", new, g.ints(1)), axis=1)
    outs = [g.op("Less", after, steps), after, new, longer]
    nodes, told = cut(g, mark, at)
    kinds, dims = [INT64, BOOL, INT64, FLOAT, FLOAT], [[], [1], [1], None, None]
    given = zip(names, kinds, dims, strict=True)
    body = helper.make_graph(
        nodes, "body",
        [helper.make_tensor_value_info(n, k, d) for n, k, d in given],
        [helper.make_tensor_value_info(told[n], k, None)
         for n, k in zip(outs, kinds[1:], strict=True)],
    )  # fmt: skip
    found = g.op("Loop", "", go, g.ints(0), x, start, outputs=3, body=body)
    g.result(found[0], 1, INT64)
    g.result(g.op("Add", found[1], g.const(1.0)), 2)
    g.result(found[2], 3)
