"""Growers of operators that move elements: views, slices, gathers, scatters, shape arithmetic."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from onnx import numpy_helper

from benchmarks.fuzzing.graph import FLOATS, INTEGERS, Graph, Rejected, Value
from benchmarks.fuzzing.growers import grows
from benchmarks.fuzzing.pointwise import GAP, TYPES

ANY = (np.float32, np.float32, np.float32, *TYPES)


def any_value(g: Graph, **more: Any) -> Value:
    kinds = (np.float32,) if g.coin(0.7) else (g.pick(*ANY),)
    return g.value(kinds=kinds, **more)


def axes_of(g: Graph, rank: int, low: int = 1) -> list[int]:
    """Some axes in random order, counted from either end."""
    return [a - rank if g.coin(0.3) else a for a in g.some(range(rank), low)]


def axis_of(g: Graph, rank: int) -> int:
    if not rank:
        raise Rejected("rank 0")
    return g.size(-rank, rank - 1)


def with_axes(g: Graph, op: str, x: Value, axes: list[int] | None, since: int, **more: Any) -> Any:
    """An operator whose axes are an attribute before opset `since`, an input from then on."""
    if g.opset < since:
        return g.node(op, x, axes=axes, **more)
    return g.node(op, x, None if axes is None else g.numbers_of(axes), **more)


@grows(2)
def reshape(g: Graph) -> Any:
    x = any_value(g)
    if x.static and g.coin(0.7):
        left, dims = math.prod(x.dims[0]), []
        if not left:
            raise Rejected("empty")
        while len(dims) < g.size(0, 3):
            dims.append(g.pick(*[d for d in range(1, left + 1) if left % d == 0]))
            left //= dims[-1]
        dims.insert(g.size(0, len(dims)), left)
        if g.coin(0.4):
            dims[g.size(0, len(dims) - 1)] = -1
        for i, d in enumerate(dims):
            if i < x.rank and d == x.dims[0][i] and g.coin(0.2):
                dims[i] = 0
        if dims == [1] and g.coin():
            dims = []
        return g.node("Reshape", x, g.numbers_of(np.array(dims, np.int64)), exact=True)
    # neighbours joined, those that stay are 0 or computed
    if not x.rank:
        return g.node("Reshape", x, g.numbers_of([1] * g.size(1, 3)), exact=True)
    how = g.pick("join", "computed", "split")
    if how == "join":
        at = g.size(0, x.rank - 1)
        dims = [0] * at + [-1]
        keep = g.size(0, x.rank - 1 - at)
        tail = [x.extent(a) for a in range(x.rank - keep, x.rank)]
        if any(t is None or t == 0 for t in tail) or 0 in x.smallest:
            raise Rejected("a dynamic tail")
        return g.node("Reshape", x, g.numbers_of([*dims, *tail]), exact=True)
    if g.opset < 13:
        raise Rejected("computed shapes are drawn from opset 13 on")
    shape = g.node("Shape", x, exact=True)
    if how == "split":
        axis = g.size(0, x.rank - 1)
        n = x.extent(axis)
        if not n:
            raise Rejected("a dynamic extent")
        factor = g.pick(*[d for d in range(1, n + 1) if n % d == 0])
        parts = [part(g, shape, i) for i in range(x.rank)]
        parts[axis : axis + 1] = [g.const(np.array([factor])), g.const(np.array([n // factor]))]
        return g.node("Reshape", x, g.node("Concat", *parts, axis=0, exact=True), exact=True)
    first = part(g, shape, 0)
    if 0 in (d[0] for d in x.dims):
        raise Rejected("empty")
    dims = g.node("Concat", first, g.const(np.array([-1])), axis=0, exact=True)
    return g.node("Reshape", x, dims, exact=True)


def part(g: Graph, shape: Value, i: int) -> Value:
    """One number of a shape, as a vector."""
    if g.coin():
        return g.node("Gather", shape, g.const(np.array([i])), axis=0, exact=True)
    return g.node("Slice", shape, g.const(np.array([i])), g.const(np.array([i + 1])), exact=True)


@grows(2)
def transpose(g: Graph) -> Any:
    x = any_value(g, low=1)
    perm = [int(a) for a in g.rng.permutation(x.rank)]
    return g.node("Transpose", x, perm=perm if g.coin(0.85) else None, exact=True)


@grows(3)
def squeeze(g: Graph) -> Any:
    if g.coin(0.55):
        x = any_value(g, high=4)
        n = g.size(1, 2)
        axes = g.some(range(x.rank + n), n)[:n]
        axes = [a - x.rank - n if g.coin(0.3) and g.opset >= 11 else a for a in axes]
        return with_axes(g, "Unsqueeze", x, axes, 13, exact=True)
    x = any_value(g, test=lambda v: any(v.extent(a) == 1 for a in range(v.rank)))
    ones = [a for a in range(x.rank) if x.extent(a) == 1]
    axes = g.some(ones, 1)
    if g.opset >= 11:
        axes = [a - x.rank if g.coin(0.3) else a for a in axes]
    if x.static and g.coin(0.3):
        return with_axes(g, "Squeeze", x, None, 13, exact=True)
    return with_axes(g, "Squeeze", x, axes, 13, exact=True)


@grows(1)
def flatten(g: Graph) -> Any:
    x = any_value(g, low=1)
    return g.node("Flatten", x, axis=g.size(0 if g.opset < 11 else -x.rank, x.rank), exact=True)


@grows(2, since=8)
def expand(g: Graph) -> Any:
    x = any_value(g, high=4)
    others = [v for v in g.seen if v.rank >= 1]
    if others and g.coin(0.35):
        like = g.pick(*others)
        for a, b in zip(x.dims, like.dims, strict=True):
            try:
                np.broadcast_shapes(a, b)
            except ValueError:
                raise Rejected("not broadcastable") from None
        return g.node("Expand", x, g.node("Shape", like, exact=True), exact=True)
    dims = [g.size(1, 4) if x.extent(a) == 1 and g.coin() else 1 for a in range(x.rank)]
    dims = [g.size(1, 3)] * g.size(0, 2) + dims
    if x.static and g.coin(0.3) and x.rank:
        dims[-x.rank :] = [max(a, b) for a, b in zip(dims[-x.rank :], x.dims[0], strict=True)]
    return g.node("Expand", x, g.numbers_of(np.array(dims, np.int64)), exact=True)


@grows(1.5)
def tile(g: Graph) -> Any:
    x = any_value(g, low=1, high=4)
    repeats = [g.pick(1, 1, 2, 3) for _ in range(x.rank)]
    if g.coin(0.04):
        repeats[0] = 0
    return g.node("Tile", x, g.numbers_of(repeats), exact=True)


@grows(3)
def slice_(g: Graph) -> Any:
    x = any_value(g, low=1)
    axes = axes_of(g, x.rank) if g.opset >= 10 else g.some(range(x.rank), 1)
    steps = [g.pick(1, 1, 1, 2, 3, -1, -2) for _ in axes]
    starts, ends = [], []
    for a, s in zip(axes, steps, strict=True):
        n = max(d[a] for d in x.dims)
        low, high = sorted((g.size(-n - 1, n + 1), g.size(-n - 1, n + 1)))
        far = g.pick(2**31 - 1, 2**63 - 1, 1000)
        if s > 0:
            starts.append(g.pick(0, low))
            ends.append(g.pick(far, high))
        else:
            starts.append(g.pick(-1, high, far if g.opset >= 10 else -1))
            ends.append(g.pick(-(2**31), low, -(2**63)))
    if g.opset < 10:
        longest = [max(d[a] for d in x.dims) for a in axes]
        starts = [max(-n, s) for s, n in zip(starts, longest, strict=True)]
        return g.node("Slice", x, axes=axes, starts=starts, ends=ends, exact=True)
    kind = g.pick(np.int64, np.int64, np.int32)
    if kind is np.int32:
        starts, ends = (np.clip(v, -(2**31), 2**31 - 1).tolist() for v in (starts, ends))
    given: list[Any] = [g.numbers_of(v, kind) for v in (starts, ends, axes, steps)]
    if axes == list(range(len(axes))) and g.coin():
        given[2] = None
    if all(s == 1 for s in steps) and g.coin():
        given[3] = None
    return g.node("Slice", x, *given, exact=True)


@grows(1.5)
def split(g: Graph) -> Any:
    x = any_value(g, test=lambda v: any(v.extent(a) for a in range(v.rank)), low=1)
    axis = g.pick(*[a for a in range(x.rank) if x.extent(a)])
    n = x.extent(axis) or 1
    at = axis - x.rank if g.opset >= 11 and g.coin(0.3) else axis
    if g.coin(0.4):
        parts = g.pick(*[d for d in range(1, min(n, 4) + 1) if n % d == 0 or g.opset >= 18])
        more = {"num_outputs": parts} if g.opset >= 18 else {}
        if g.opset >= 18 and -(-n // parts) * (parts - 1) >= n:
            raise Rejected("an empty part")
        return g.node("Split", x, axis=at, outputs=parts, exact=True, **more)
    cuts = sorted(g.size(0 if g.coin(0.1) else min(1, n), n) for _ in range(g.size(0, 2)))
    sizes = np.diff([0, *cuts, n]).tolist()
    if g.opset < 13:
        return g.node("Split", x, axis=at, split=sizes, outputs=len(sizes), exact=True)
    return g.node("Split", x, g.numbers_of(sizes), axis=at, outputs=len(sizes), exact=True)


@grows(3)
def concat(g: Graph) -> Any:
    x = any_value(g, low=1)
    axis = g.size(0, x.rank - 1)

    def fits(v: Value) -> bool:
        return (
            v.dtype == x.dtype
            and v.rank == x.rank
            and all(
                a[:axis] + a[axis + 1 :] == b[:axis] + b[axis + 1 :]
                for a, b in zip(v.dims, x.dims, strict=True)
            )
        )

    values = [x]
    for _ in range(g.size(0, 3)):
        found = [v for v in g.seen if fits(v)]
        if g.coin(0.3) and x.static:
            dims = list(x.dims[0])
            dims[axis] = g.size(0 if g.coin(0.1) else 1, 3)
            values.append(g.const(g.numbers(dims, x.dtype)))
        else:
            values.append(g.pick(*found))
    values = [values[int(i)] for i in g.rng.permutation(len(values))]
    at = axis - x.rank if g.opset >= 11 and g.coin(0.3) else axis
    return g.node("Concat", *values, axis=at, exact=True)


@grows(2)
def pad(g: Graph) -> Any:
    x = any_value(g, low=1, high=4) if g.opset >= 13 else g.value(low=1, high=4)
    mode = g.pick("constant", "constant", "reflect", "edge", *(["wrap"] if g.opset >= 19 else []))
    least = x.smallest
    if mode != "constant" and 0 in least:
        raise Rejected("nothing to repeat")
    low = -1 if g.coin(0.2) and mode == "constant" and min(least) > 2 else 0
    top = [min(3, n - 1) if mode != "constant" else 3 for n in least]
    pads = [g.size(low, t) if g.coin(0.7) else 0 for t in top * 2]
    if g.opset < 11:
        return g.node("Pad", x, mode=mode, pads=pads, value=g.pick(0.0, 1.5), exact=True)
    value = g.const(np.asarray(g.pick(0, 1, 3), x.dtype)) if g.coin(0.6) else None
    if g.opset >= 18 and g.coin(0.4):
        axes = axes_of(g, x.rank)
        pads = [pads[a % x.rank] for a in axes] + [pads[x.rank + a % x.rank] for a in axes]
        return g.node(
            "Pad", x, g.numbers_of(pads), value, g.numbers_of(axes), mode=mode, exact=True
        )
    return g.node("Pad", x, g.numbers_of(pads), value, mode=mode, exact=True)


def indices(g: Graph, n: int, dims: list[int], negative: bool = True) -> Value:
    if n < 1:
        raise Rejected("nothing to index")
    kind = g.pick(np.int64, np.int64, np.int32)
    found = g.numbers(dims, kind, low=-n if negative and g.opset >= 11 else 0, high=n - 1)
    return g.operand(found)


@grows(2)
def gather(g: Graph) -> Any:
    x = any_value(g, low=1)
    axis = g.size(0, x.rank - 1)
    at = axis - x.rank if g.coin(0.3) else axis
    dims = [g.size(1, 4) for _ in range(g.size(0, 2))]
    return g.node("Gather", x, indices(g, x.smallest[axis], dims), axis=at, exact=True)


@grows(2, since=11)
def gather_elements(g: Graph) -> Any:
    x = any_value(g, low=1, high=4)
    axis = g.size(0, x.rank - 1)
    dims = [g.size(1, max(1, n)) for n in x.smallest]
    if 0 in x.smallest:
        raise Rejected("empty")
    dims[axis] = g.size(1, 5)
    return g.node(
        "GatherElements", x, indices(g, x.smallest[axis], dims),
        axis=axis - x.rank if g.coin(0.3) else axis, exact=True,
    )  # fmt: skip


@grows(1.5, since=11)
def gather_nd(g: Graph) -> Any:
    x = any_value(g, low=1, high=4)
    batch = g.size(0, x.rank - 1) if g.opset >= 12 and x.static and g.coin(0.3) else 0
    depth = g.size(1, x.rank - batch)
    bounds = x.smallest[batch : batch + depth]
    if 0 in x.smallest:
        raise Rejected("empty")
    dims = [*x.smallest[:batch], *(g.size(1, 3) for _ in range(g.size(0, 2)))]
    index = np.stack([g.numbers(dims, np.int64, low=-n, high=n - 1) for n in bounds], -1)
    more = {"batch_dims": batch} if g.opset >= 12 else {}
    return g.node("GatherND", x, g.operand(index), exact=True, **more)


@grows(2, since=9)
def scatter(g: Graph) -> Any:
    x = g.value(
        kinds=(g.pick(np.float32, np.float32, np.int64, np.int32, np.float64),), low=1, high=4
    )
    axis = g.size(0, x.rank - 1)
    dims = [g.size(1, max(1, n)) for n in x.smallest]
    if 0 in x.smallest:
        raise Rejected("empty")
    full = [g.rng.permutation(x.smallest[axis])[: dims[axis]] for _ in range(
        math.prod(dims) // dims[axis])]  # fmt: skip
    rows = np.array(full, np.int64).reshape([*dims[:axis], *dims[axis + 1 :], dims[axis]])
    index = np.moveaxis(rows, -1, axis)
    n = x.smallest[axis]
    if g.opset >= 11 and x.static and g.coin(0.3):
        index = np.where(g.rng.random(index.shape) < 0.4, index - n, index)
    updates = g.operand(g.numbers(dims, x.dtype))
    op = "ScatterElements" if g.opset >= 11 else "Scatter"
    more: dict[str, Any] = {}
    if g.opset >= 16 and g.coin(0.5):
        more["reduction"] = g.pick("add", "mul", *(["max", "min"] if g.opset >= 18 else []))
    return g.node(op, x, g.operand(index), updates, axis=axis, exact=True, **more)


@grows(1.5, since=11)
def scatter_nd(g: Graph) -> Any:
    x = g.value(kinds=(g.pick(np.float32, np.float32, np.int64, np.int32),), low=1, high=4)
    if 0 in x.smallest:
        raise Rejected("empty")
    depth = g.size(1, x.rank)
    if any(x.extent(a) is None for a in range(depth, x.rank)):
        raise Rejected("updates of dynamic dims")
    places = math.prod(x.smallest[:depth])
    flat = g.rng.permutation(places)[: g.size(1, min(places, 5))]
    index = np.stack(np.unravel_index(flat, x.smallest[:depth]), -1).astype(np.int64)
    updates = g.operand(g.numbers([len(flat), *x.dims[0][depth:]], x.dtype))
    more: dict[str, Any] = {}
    if g.opset >= 16 and g.coin(0.5):
        more["reduction"] = g.pick("add", "mul", *(["max", "min"] if g.opset >= 18 else []))
    return g.node("ScatterND", x, g.operand(index), updates, exact=True, **more)


@grows(1.5)
def depth_to_space(g: Graph) -> Any:
    block = g.size(1, 3)
    x = g.value(low=4, high=4)
    if g.coin():
        if not x.extent(1) or x.extent(1) % (block * block):
            c = block * block * g.size(1, 2)
            x = g.input([g.size(1, 2), c, *g.dims(2)])
        more = {"mode": g.pick("DCR", "CRD")} if g.opset >= 11 else {}
        return g.node("DepthToSpace", x, blocksize=block, exact=True, **more)
    if not all(x.extent(a) and not x.extent(a) % block for a in (2, 3)):
        x = g.input([*g.dims(2), block * g.size(1, 3), block * g.size(1, 3)])
    return g.node("SpaceToDepth", x, blocksize=block, exact=True)


@grows(1, since=14)
def trilu(g: Graph) -> Any:
    x = any_value(g, low=2)
    k = g.numbers_of(g.size(-3, 3)) if g.coin(0.6) else None
    return g.node("Trilu", x, k, upper=g.size(0, 1), exact=True)


@grows(1, since=10)
def reverse_sequence(g: Graph) -> Any:
    x = any_value(g, low=2)
    time = g.size(0, 1)
    batch = x.extent(1 - time)
    if not batch or not x.smallest[time]:
        raise Rejected("a dynamic batch")
    lengths = g.operand(g.numbers([batch], np.int64, low=1, high=x.smallest[time]))
    return g.node("ReverseSequence", x, lengths, time_axis=time, batch_axis=1 - time, exact=True)


@grows(1, since=9)
def compress(g: Graph) -> Any:
    x = any_value(g, low=1)
    axis = g.pick(None, *(range(-x.rank, x.rank) if g.opset >= 11 else range(x.rank)))
    n = math.prod(x.smallest) if axis is None else x.smallest[axis]
    if n < 1:
        raise Rejected("empty")
    keep = g.numbers([g.size(1, min(n, 8))], np.bool_)
    return g.node("Compress", x, g.const(keep), axis=axis, exact=True)


@grows(1, since=9)
def one_hot(g: Graph) -> Any:
    x = g.value(kinds=(np.int64, np.int32), high=3)
    depth = g.size(1, 6)
    values = g.numbers([2], g.pick(np.float32, np.int64, np.int32))
    d = g.pick(g.numbers_of(depth), g.numbers_of([depth]))
    return g.node("OneHot", x, d, g.operand(values), axis=g.size(-x.rank - 1, x.rank), exact=True)


@grows(1, since=9)
def eye_like(g: Graph) -> Any:
    x = any_value(g, low=2, high=2)
    return g.node("EyeLike", x, k=g.size(-2, 2), dtype=g.pick(None, 1, 7, 11, 6), exact=True)


@grows(1, since=9)
def non_zero(g: Graph) -> Any:
    """NonZero of values that are the same on every machine."""
    x = g.value(kinds=(np.float32, np.int64, np.bool_), low=1, high=3, test=lambda v: v.exact)
    found = g.node("NonZero", x, exact=True)
    if g.coin(0.5):
        return g.node("ReduceSum", g.node("Cast", found, to=1, exact=True), keepdims=0)
    return found


@grows(1, since=11)
def unique(g: Graph) -> Any:
    x = g.value(kinds=(np.float32, np.int64), low=1, high=3, test=lambda v: v.exact)
    axis = g.pick(None, *range(-x.rank, x.rank)) if g.coin(0.6) else None
    if 0 in x.smallest:
        raise Rejected("empty")
    return g.node("Unique", x, outputs=g.size(1, 4), axis=axis, sorted=g.size(0, 1), exact=True)


def apart(x: Value, axis: int | None) -> None:
    """Reject a rounded value two of whose elements along the axis are nearly equal."""
    if x.exact:
        return
    for a in x.arrays:
        wide = np.sort(a.astype(np.float64), axis=axis)
        if (
            np.diff(wide, axis=-1 if axis is None else axis)
            < GAP * (1 + np.abs(wide).max(initial=0))
        ).any():
            raise Rejected("nearly equal elements")


@grows(2)
def top_k(g: Graph) -> Any:
    x = g.value(
        kinds=(g.pick(np.float32, np.float32, np.int64, np.int32, np.float64),), low=1, high=4
    )
    axis = g.size(0, x.rank - 1)
    apart(x, axis)
    n = x.smallest[axis]
    if n < 1:
        raise Rejected("empty")
    k = g.size(1, n)
    at = axis - x.rank if g.opset >= 11 and g.coin(0.3) else axis
    if g.opset < 10:
        return g.node("TopK", x, axis=at, k=k, outputs=2, exact=True)
    more = {"largest": g.size(0, 1)} if g.opset >= 11 else {}
    return g.node("TopK", x, g.numbers_of([k]), axis=at, outputs=2, exact=True, **more)


@grows(2)
def arg_max(g: Graph) -> Any:
    x = g.value(
        kinds=(g.pick(np.float32, np.float32, np.int32, np.float64, np.int8, np.uint8),), low=1
    )
    axis = g.size(0, x.rank - 1)
    apart(x, axis)
    if 0 in x.smallest:
        raise Rejected("empty")
    more: dict[str, Any] = {"select_last_index": g.size(0, 1)} if g.opset >= 12 and g.coin() else {}
    at = axis - x.rank if g.opset >= 11 and g.coin(0.3) else axis
    return g.node(g.pick("ArgMax", "ArgMin"), x, axis=at, keepdims=g.size(0, 1), exact=True, **more)


@grows(2, since=11)
def cumulative(g: Graph) -> Any:
    op = "CumProd" if g.has("CumProd") and g.coin(0.4) else "CumSum"
    x = g.value(
        kinds=(g.pick(np.float32, np.float32, np.int64, np.int32, np.float64),), low=1, high=4
    )
    axis = g.numbers_of(axis_of(g, x.rank), g.pick(np.int64, np.int32))
    more = {k: g.size(0, 1) for k in ("exclusive", "reverse")}
    return g.node(op, x, axis, exact=not x.is_float, **more)


@grows(1, since=18)
def center_crop_pad(g: Graph) -> Any:
    x = any_value(g, low=1, high=4)
    axes = axes_of(g, x.rank)
    dims = g.numbers_of([g.size(1, 9) for _ in axes])
    return g.node("CenterCropPad", x, dims, axes=axes, exact=True)


# ---- shape arithmetic ----------------------------------------------------------------------------


@grows(4)
def shapes(g: Graph) -> Any:
    """Numbers computed of dims; what they are used for."""
    x = any_value(g, low=1)
    if g.opset >= 15 and g.coin(0.4):
        s = g.node(
            "Shape", x, start=g.size(-x.rank, x.rank), end=g.size(-x.rank, x.rank), exact=True
        )
    else:
        s = g.node("Shape", x, exact=True)
    if g.coin(0.15):
        return g.node("Size", x, exact=True)
    if not s.extent(0):
        raise Rejected("no dims")
    op = g.pick("", "Add", "Mul", "Div", "Sub", "Gather", "Max", "ReduceProd", "Where")
    one = g.const(np.array(g.pick(1, 2, 3)))
    if op == "Gather":
        s = g.node(
            "Gather",
            s,
            g.const(np.array([g.size(0, (s.extent(0) or 1) - 1)] * g.size(1, 2))),
            exact=True,
        )
    elif op == "ReduceProd":
        s = g.node("ReduceProd", s, keepdims=1, exact=True)
    elif op == "Where":
        s = g.node("Where", g.node("Greater", s, one, exact=True), one, s, exact=True)
    elif op:
        if op == "Max" and g.opset < 12:
            raise Rejected("no Max of integers")
        s = g.node(op, s, one, exact=True)
    if not s.all(lambda a: (a >= 0) & (a < 40)) or any(int(np.prod(a)) > 3000 for a in s.arrays):
        return s
    use = g.pick("ConstantOfShape", "Expand", "Range", "Cast", "", "Reshape", "Tile")
    if use == "ConstantOfShape":
        value = numpy_helper.from_array(
            g.numbers([1], g.pick(np.float32, np.int64, np.bool_, np.int32))
        )
        return g.node(use, s, value=g.pick(None, value), exact=True)
    if use == "Expand":
        y = g.const(g.numbers([1] * g.size(0, 1)))
        return g.node(use, y, s, exact=True)
    if use == "Range":
        n = g.node("ReduceSum", g.node("Cast", s, to=1, exact=True), keepdims=0)
        n = g.node("Cast", n, to=7, exact=True)
        return g.node(
            use, g.const(np.array(g.size(-2, 2))), n, g.const(np.array(g.size(1, 3))), exact=True
        )
    if use == "Cast":
        return g.node(use, s, to=1, exact=True)
    if use == "Tile":
        y = any_value(g, low=s.extent(0) or 0, high=s.extent(0) or 0)
        return g.node(use, y, s, exact=True)
    if use == "Reshape":
        y = g.node("ConstantOfShape", s, exact=True)
        return g.node(use, y, g.const(np.array([-1])), exact=True)
    return s


@grows(1.5, since=11)
def range_(g: Graph) -> Any:
    kind = g.pick(np.int64, np.int64, np.int32, np.float32)
    start, step = g.size(-3, 3), g.pick(1, 2, -1, 3)
    limit = start + step * g.size(0, 6) + g.pick(0, 1 if step > 1 else 0)
    ends = [g.operand(np.asarray(v, kind)) for v in (start, limit, step)]
    return g.node("Range", *ends, exact=True)


@grows(1)
def constants(g: Graph) -> Any:
    array = g.numbers(
        [g.extent() for _ in range(g.size(0, 3))], g.pick(np.float32, *FLOATS, *INTEGERS)
    )
    if g.opset >= 12 and g.coin(0.3):
        if array.dtype == np.float32 and array.ndim == 1:
            return g.node("Constant", value_floats=array.tolist(), exact=True)
        if array.dtype == np.int64 and array.ndim == 0:
            return g.node("Constant", value_int=int(array), exact=True)
    return g.node("Constant", value=numpy_helper.from_array(array), exact=True)
