"""Growers of reductions, norms and products."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchmarks.fuzzing.graph import Graph, Rejected, Value
from benchmarks.fuzzing.growers import grows
from benchmarks.fuzzing.pointwise import made_safe, whole
from benchmarks.fuzzing.views import axes_of, axis_of

REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")


@grows(5)
def reduce(g: Graph) -> Any:
    op = "Reduce" + g.pick(*REDUCTIONS)
    # onnxruntime's ReduceLogSumExp of integers adds the truncated logarithm to the largest element
    integers = g.coin(0.12) and op != "ReduceLogSumExp"
    x = g.value(kinds=(np.int32, np.int64)) if integers else g.floats()
    if op == "ReduceLogSum":
        x = made_safe(g, x, "positive")
    axes: Any = axes_of(g, x.rank, 0)
    if g.opset < 11:
        axes = [a % x.rank for a in axes]
    if not axes and g.coin():
        axes = None
    if any(math.prod(d) == 0 for d in x.dims):
        raise Rejected("a reduction of nothing")
    more: dict[str, Any] = {"keepdims": g.size(0, 1)}
    exact = (
        op in ("ReduceMax", "ReduceMin")
        or integers
        or (op in ("ReduceSum", "ReduceL1") and whole(x))
    )
    if g.opset >= (13 if op == "ReduceSum" else 18):
        if g.coin(0.3):
            more["noop_with_empty_axes"] = g.size(0, 1)
        return g.node(
            op,
            x,
            None if axes is None else g.numbers_of(np.array(axes, np.int64)),
            exact=exact,
            **more,
        )
    return g.node(op, x, axes=axes or None, exact=exact, **more)


@grows(3)
def softmax(g: Graph) -> Any:
    x = g.floats(low=1)
    op = g.pick("Softmax", "Softmax", "LogSoftmax", "Hardmax")
    axis = axis_of(g, x.rank) if g.opset >= 11 else g.size(0, x.rank - 1)
    if op == "Hardmax":
        from benchmarks.fuzzing.views import apart

        apart(x, axis if g.opset >= 13 else None)
        if 0 in x.smallest:
            raise Rejected("empty")
        return g.node(op, x, axis=axis, exact=True)
    return g.node(op, x, axis=axis if g.coin(0.8) else None)


def weight(g: Graph, dims: list[int], dtype: Any = np.float32, scale: float = 0.5) -> Value:
    return g.operand((g.rng.normal(0, scale, dims)).astype(dtype))


def channels(g: Graph, low: int = 2, high: int = 5, **more: Any) -> Value:
    """A value whose channels are fixed."""
    x = g.floats(low=low, high=high, test=lambda v: v.extent(1) and 0 not in v.smallest, **more)
    return x


@grows(1.5)
def batch_norm(g: Graph) -> Any:
    x = channels(g)
    c = x.extent(1) or 1
    given = [weight(g, [c], x.dtype) for _ in range(3)]
    var = g.operand(g.rng.uniform(0.2, 2, c).astype(x.dtype))
    return g.node("BatchNormalization", x, *given, var, epsilon=g.pick(1e-5, 1e-3, 0.1))


@grows(1)
def instance_norm(g: Graph) -> Any:
    x = channels(g, 3)
    c = x.extent(1) or 1
    if any(math.prod(d[2:]) < 2 for d in x.dims):
        raise Rejected("one element")
    given = [weight(g, [c], x.dtype) for _ in range(2)]
    return g.node("InstanceNormalization", x, *given, epsilon=g.pick(1e-5, 1e-2))


@grows(1, since=18)
def group_norm(g: Graph) -> Any:
    x = channels(g, 3)
    c = x.extent(1) or 1
    groups = g.pick(*[d for d in range(1, c + 1) if c % d == 0])
    n = c if g.opset >= 21 else groups
    if any(math.prod(d[2:]) * c // groups < 2 for d in x.dims):
        raise Rejected("one element")
    given = [weight(g, [n], x.dtype) for _ in range(2)]
    return g.node("GroupNormalization", x, *given, num_groups=groups, epsilon=g.pick(1e-5, 1e-2))


@grows(3)
def layer_norm(g: Graph) -> Any:
    x = g.floats(low=1)
    axis = g.size(0, x.rank - 1)
    tail = [x.extent(a) for a in range(axis, x.rank)]
    if any(t is None for t in tail) or math.prod(tail) < 2:
        raise Rejected("dynamic or short rows")
    at = axis - x.rank if g.coin() else axis
    s = weight(g, tail, x.dtype, 1)
    if g.has("RMSNormalization") and g.coin(0.4):
        return g.node("RMSNormalization", x, s, axis=at, epsilon=g.pick(1e-5, 1e-2))
    if g.has("LayerNormalization") and g.coin(0.7):
        b = weight(g, tail, x.dtype, 1) if g.coin(0.7) else None
        return g.node("LayerNormalization", x, s, b, axis=at, epsilon=g.pick(1e-5, 1e-2))
    # spelled out
    axes = list(range(axis, x.rank))
    mean = (
        g.node("ReduceMean", x, g.const(np.array(axes)))
        if g.opset >= 18
        else g.node("ReduceMean", x, axes=axes)
    )
    d = g.node("Sub", x, mean)
    sq = g.node("Mul", d, d)
    var = (
        g.node("ReduceMean", sq, g.const(np.array(axes)))
        if g.opset >= 18
        else g.node("ReduceMean", sq, axes=axes)
    )
    std = g.node("Sqrt", g.node("Add", var, g.const(np.asarray(1e-2, x.dtype))))
    return g.node("Mul", g.node("Div", d, std), s)


@grows(2)
def other_norms(g: Graph) -> Any:
    op = g.pick("LRN", "LpNormalization", "MeanVarianceNormalization")
    if op == "LRN":
        x = channels(g, 4, 4)
        return g.node(
            op,
            x,
            size=g.pick(1, 3, 5),
            alpha=g.pick(1e-4, 0.1),
            beta=g.pick(0.75, 0.5),
            bias=g.pick(1.0, 2.0),
        )
    if op == "LpNormalization":
        x = g.floats(low=1)
        axis = axis_of(g, x.rank)
        if not x.all(lambda a: np.linalg.norm(a.astype(np.float64), axis=axis) > 0.1):
            raise Rejected("a norm near 0")
        return g.node(op, x, axis=axis, p=g.size(1, 2))
    x = g.floats(low=2, test=lambda v: 0 not in v.smallest)
    axes = sorted(a % x.rank for a in axes_of(g, x.rank))
    if not x.all(lambda a: a.astype(np.float64).std(axis=tuple(axes)) > 0.05):
        raise Rejected("no variance")
    return g.node(op, x, axes=axes)


# ---- products ------------------------------------------------------------------------------------


@grows(3)
def matmul(g: Graph) -> Any:
    x = g.floats(low=1)
    mates = [
        v for v in g.seen
        if v.dtype == x.dtype and v.rank >= 1 and all(
            a[-1] == b[max(0, len(b) - 2)] for a, b in zip(x.dims, v.dims, strict=True))
    ]  # fmt: skip
    if mates and g.coin(0.5):
        return g.node("MatMul", x, g.pick(*mates))
    k = x.extent(-1)
    if k is None:
        if x.rank >= 2:
            perm = [*range(x.rank - 2), x.rank - 1, x.rank - 2]
            return g.node("MatMul", x, g.node("Transpose", x, perm=perm, exact=True))
        raise Rejected("a dynamic depth")
    dims = g.pick([k], [k, g.extent()], [k, g.extent()], [k, g.pick(16, 32, 33)])
    if len(dims) == 2 and x.rank >= 3 and g.coin(0.4):
        dims = [x.extent(0) or 1, *dims] if x.rank == 3 else [1, *dims]
    return g.node("MatMul", x, weight(g, dims, x.dtype))


@grows(2)
def gemm(g: Graph) -> Any:
    x = g.floats(low=2, high=2)
    a, b = g.size(0, 1), g.size(0, 1)
    k = x.extent(0 if a else 1)
    if k is None:
        raise Rejected("a dynamic depth")
    n = g.extent()
    m = x.extent(1 if a else 0)
    w = weight(g, [n, k] if b else [k, n], x.dtype)
    c = g.pick(None, [n], [1, n], [1], [], *([[m, n], [m, 1]] if m else []))
    if c is None and g.opset < 11:
        c = [n]
    bias = None if c is None else weight(g, c, x.dtype)
    return g.node(
        "Gemm",
        x,
        w,
        bias,
        transA=a,
        transB=b,
        alpha=g.pick(None, 0.5),
        beta=g.pick(None, 0.25, 0.0),
    )


@grows(1, since=12)
def einsum(g: Graph) -> Any:
    x = g.value(kinds=(np.float32,), low=1, high=4)
    own = "abcd"[: x.rank]
    known = [c for i, c in enumerate(own) if x.extent(i)]
    other = g.some([*known, "e", "f"], 1)[:3]
    extents = {c: x.extent(i) for i, c in enumerate(own)} | {"e": g.extent(), "f": g.extent()}
    w = weight(g, [extents[c] or 1 for c in other])
    out = "".join(g.some(sorted({*own, *other})))
    return g.node("Einsum", x, w, equation=f"{own},{''.join(other)}->{out}")


@grows(1.5)
def attention_spelled(g: Graph) -> Any:
    """Scores, mask, softmax, values, as exporters write them."""
    b, h, m, n, d = (
        g.size(1, 2),
        g.size(1, 3),
        g.pick(1, 4, 9, 16),
        g.pick(1, 5, 9, 16),
        g.pick(2, 4, 8),
    )
    if g.open and len(g.scopes) == 1:
        m = g.pick(*sorted(g.worlds[0]))
        n = g.pick(m, n)
    q, k, v = (g.input([b, h, t, d]) for t in (m, n, n))
    if any(0 in w.smallest for w in (q, k, v)):
        raise Rejected("empty")
    s = g.node("MatMul", q, g.node("Transpose", k, perm=[0, 1, 3, 2], exact=True))
    s = g.node(g.pick("Mul", "Div"), s, g.const(np.float32(g.pick(0.5, 2.0))))
    if g.coin() and not isinstance(n, str):
        mask = np.where(g.rng.random((1, 1, 1, n)) < 0.3, -1e4, 0).astype(np.float32)
        s = g.node("Add", s, g.const(mask))
    p = g.node("Softmax", s, axis=3)
    y = g.node("MatMul", p, v)
    if g.coin():
        y = g.node("Transpose", y, perm=[0, 2, 1, 3], exact=True)
    return y
