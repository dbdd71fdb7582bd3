"""Lowering of pooling: windows reduced by one generic, averages over counted elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from mgx_mlir.dialects.migraphx.pooling import Pooling

from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import arith, ir
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.passes.lower.emit import PARALLEL, REDUCTION
from mgx_mlir.passes.lower.expr import Extent
from mgx_mlir.passes.lower.linear import pad_spatial, padding_of, store
from mgx_mlir.passes.lower.reduce import start_value
from mgx_mlir.passes.lower.registry import lowers
from mgx_mlir.passes.lower.scalar import ArithScalars, TypedScalar, computed, constant, widen


@lowers(Pooling)
def pooling(op: Any, ins: Sequence[ir.Value], e: Any) -> ir.Value:
    """max, average or lp over windows, any rank, with dilation, ceil_mode and padding."""
    x, out = ins[0], TensorType.of(op.out)
    spatial = out.rank - 2
    first = 1 if op.channels_last else 2
    size = e.extents(x)[first : first + spatial]
    if op.dyn_global:
        lengths: list[Extent] = list(size)
        strides, dilations = [1] * spatial, [1] * spatial
        low: list[Extent] = [0] * spatial
        high: list[Extent] = [0] * spatial
    else:
        lengths = list(op.lengths)
        strides, dilations = list(op.stride), list(op.dilations)
        low, high = padding_of(e, op, size, lengths)
    windows = [
        _windows(e, i, lo, hi, k, s, d, op.ceil_mode)
        for i, lo, hi, k, s, d in zip(size, low, high, lengths, strides, dilations, strict=True)
    ]
    own: list[Extent] = list(e.extents(x))
    own[first : first + spatial] = windows
    if any(isinstance(d, int) and d == 0 for d in own):
        return e.empty(own, out.dtype)
    # what the last window reads past the padded input is padded too
    reach = [
        e.sub_extents(
            e.add_extents(
                e.mul_extents(e.sub_extents(w, 1), s), e.mul_extents(e.sub_extents(k, 1), d)
            ),
            e.sub_extents(e.add_extents(i, lo), 1),
        )
        for w, k, s, d, i, lo in zip(windows, lengths, strides, dilations, size, low, strict=True)
    ]
    extra = [_at_least(e, r, hi) for r, hi in zip(reach, high, strict=True)]
    acc = computed(out.dtype)
    how = "max" if op.mode == "max" else "add"
    neutral = start_value(how, out.dtype)
    padded = pad_spatial(e, x, low, extra, first, out.dtype, neutral)
    power = op.lp_order if op.mode == "lpnorm" else 0
    total = _window_reduce(
        e, padded, out.dtype, own, lengths, strides, dilations, first, how, acc, power
    )
    if op.mode == "average":
        total = _average(
            e, total, acc, out, windows, lengths, strides, dilations, low, high, size, first, op
        )
    elif power > 1:
        shape = TensorType(acc, tuple(ir.RankedTensorType(total.type).shape))
        total = e.map_elements(
            [total],
            [acc],
            shape,
            lambda b, v: b.sqrt(v) if power == 2 else b.pow(v, 1.0 / power),
        )
    return store(e, total, acc, out.dtype)


def _at_least(e: Any, a: Extent, b: Extent) -> Extent:
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b)
    return arith.MaxSIOp(e.as_index(a), e.as_index(b)).result


def _windows(
    e: Any,
    size: Extent,
    low: Extent,
    high: Extent,
    kernel: Extent,
    stride: int,
    dilation: int,
    ceil: bool,
) -> Extent:
    """The output extent; with ceil_mode a last window must start inside the input or its begin
    padding."""
    reach = e.add_extents(e.mul_extents(e.sub_extents(kernel, 1), dilation), 1)
    padded = e.add_extents(e.add_extents(size, low), high)
    rest = e.sub_extents(padded, reach)
    if isinstance(rest, int) and isinstance(size, int) and isinstance(low, int):
        count = (-(-rest // stride) if ceil else rest // stride) + 1
        if ceil and (count - 1) * stride >= size + low:
            count -= 1
        return max(count, 0)
    value = e.as_index(rest)
    step = e.index(stride)
    op = arith.CeilDivSIOp if ceil else arith.FloorDivSIOp
    count = arith.AddIOp(op(value, step).result, e.index(1)).result
    if ceil:
        start = arith.MulIOp(arith.SubIOp(count, e.index(1)).result, step).result
        limit = e.as_index(e.add_extents(size, low))
        outside = arith.CmpIOp(5, start, limit).result  # sge
        fewer = arith.SubIOp(count, e.index(1)).result
        count = arith.SelectOp(outside, fewer, count).result
    return arith.MaxSIOp(count, e.index(0)).result


def _window_reduce(
    e: Any,
    x: ir.Value,
    dtype: DType,
    own: Sequence[Extent],
    lengths: Sequence[Extent],
    strides: Sequence[int],
    dilations: Sequence[int],
    first: int,
    how: str,
    acc: DType,
    power: int = 0,
) -> ir.Value:
    rank, spatial = len(own), len(lengths)
    d = [ir.AffineDimExpr.get(i) for i in range(rank + spatial)]
    where = list(d[:rank])
    for i in range(spatial):
        where[first + i] = d[first + i] * ir.AffineConstantExpr.get(strides[i]) + d[
            rank + i
        ] * ir.AffineConstantExpr.get(dilations[i])
    total = rank + spatial
    maps = [
        ir.AffineMap.get(total, 0, where),
        ir.AffineMap.get(total, 0, d[rank:]),
        ir.AffineMap.get(total, 0, d[:rank]),
    ]
    b = ArithScalars(acc, acc)

    def body(element: ir.Value, _: ir.Value, so_far: ir.Value) -> ir.Value:
        v = widen(TypedScalar(element, dtype))
        if power:
            v = b.abs(v)
            if power == 2:
                v = b.mul(v, v)
            elif power > 2:
                v = b.pow(v, float(power))
        combined = b.max if how == "max" else b.add
        return combined(TypedScalar(so_far, acc), v).value

    init = e.fill(own, acc, start_value(how, acc))
    window = e.empty(list(lengths), acc)
    return e.generic([x, window], [init], maps, [PARALLEL] * rank + [REDUCTION] * spatial, body)[0]


def _average(
    e: Any,
    total: ir.Value,
    acc: DType,
    out: TensorType,
    windows: Sequence[Extent],
    lengths: Sequence[Extent],
    strides: Sequence[int],
    dilations: Sequence[int],
    low: Sequence[Extent],
    high: Sequence[Extent],
    size: Sequence[Extent],
    first: int,
    op: Any,
) -> ir.Value:
    """Sums over the number of elements counted in each window."""
    spatial = len(windows)
    shape = TensorType(acc, tuple(ir.RankedTensorType(total.type).shape))
    include = op.count_include_pad
    static = all(isinstance(v, int) for v in [*windows, *lengths, *low, *high, *size])
    if static:
        counts = np.ones((), np.int64)
        for w, k, s, d, lo, hi, i in zip(
            windows, lengths, strides, dilations, low, high, size, strict=True
        ):
            counts = np.multiply.outer(counts, _counts(w, k, s, d, lo, hi, i, include))
        if counts.size and (counts == counts.flat[0]).all():
            number = max(int(counts.flat[0]), 1)
            return e.map_elements([total], [acc], shape, lambda b, v: b.div(v, number))
        table = e.constant(np.maximum(counts, 1).astype(acc.np))
    else:
        table = _count_at_run_time(
            e, acc, windows, lengths, strides, dilations, low, high, size, include
        )
    entries = tuple(range(first, first + spatial))
    return e.map_elements(
        [total, table],
        [acc, acc],
        shape,
        lambda b, v, n: b.div(v, n),
        maps=[tuple(range(out.rank)), entries],
    )


def _counts(w: Any, k: Any, s: int, d: int, lo: Any, hi: Any, i: Any, include: bool) -> np.ndarray:
    """How many taps of each window along one axis are counted."""
    taps = np.arange(w)[:, None] * s - lo + np.arange(k)[None, :] * d
    inside = (taps >= -lo) & (taps < i + hi) if include else (taps >= 0) & (taps < i)
    return inside.sum(1)


def _count_at_run_time(
    e: Any,
    acc: DType,
    windows: Sequence[Extent],
    lengths: Sequence[Extent],
    strides: Sequence[int],
    dilations: Sequence[int],
    low: Sequence[Extent],
    high: Sequence[Extent],
    size: Sequence[Extent],
    include: bool,
) -> ir.Value:
    """Pooling of a tensor of ones, with the padding counted or not."""
    ones = e.fill(list(size), acc, 1)
    border = 1 if include else 0
    if any(not (isinstance(p, int) and p == 0) for p in [*low, *high]):
        ones = pad_spatial(e, ones, low, high, 0, acc, border)
    have = e.extents(ones)
    extra = []
    for w, k, s, d, i in zip(windows, lengths, strides, dilations, have, strict=True):
        reach = e.add_extents(
            e.mul_extents(e.sub_extents(w, 1), s), e.mul_extents(e.sub_extents(k, 1), d)
        )
        extra.append(_at_least(e, e.sub_extents(reach, e.sub_extents(i, 1)), 0))
    ones = pad_spatial(e, ones, [0] * len(extra), extra, 0, acc, 0)
    counts = _window_reduce(e, ones, acc, list(windows), lengths, strides, dilations, 0, "add", acc)
    shape = TensorType(acc, tuple(ir.RankedTensorType(counts.type).shape))
    return e.map_elements([counts], [acc], shape, lambda b, v: b.max(v, constant(1, acc)))
