"""Lowering of pooling: windows reduced by one generic, averages over counted elements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import arith, ir
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.pooling import Pooling
from mgx_mlir.passes.lowering import index
from mgx_mlir.passes.lowering.context import PARALLEL, REDUCTION, LoweringContext
from mgx_mlir.passes.lowering.expr import Extent
from mgx_mlir.passes.lowering.gpu.matmul import compilation_info
from mgx_mlir.passes.lowering.ops.linear import store
from mgx_mlir.passes.lowering.ops.reduce import start_value
from mgx_mlir.passes.lowering.ops.windows import (
    WindowAxis,
    axes_of,
    pad_spatial,
    tap_indices,
    trim_windows,
)
from mgx_mlir.passes.lowering.registry import lowers
from mgx_mlir.passes.lowering.scalar import ArithScalars, TypedScalar, computed, widen


@lowers(Pooling)
def pooling(op: Pooling, ins: Sequence[ir.Value], e: LoweringContext) -> ir.Value:
    """max, average or lp over windows, any rank, with dilation, ceil_mode and padding."""
    x, out = ins[0], TensorType.of(op.out)
    spatial = out.rank - 2
    first = 1 if op.channels_last else 2
    size = e.extents(x)[first : first + spatial]
    if op.dyn_global:
        axes = [WindowAxis(d, d, 1, 1) for d in size]
    else:
        axes = axes_of(e, op, size, op.lengths)
    windows = [a.count(e, ceil=op.ceil_mode) for a in axes]
    own: list[Extent] = list(e.extents(x))
    own[first : first + spatial] = windows
    if any(isinstance(d, int) and d == 0 for d in own):
        return e.empty(own, out.dtype)
    # elements that the last window reads past the padded input are padded too
    reach = [
        e.sub(
            e.add(e.mul(e.sub(w, 1), a.stride), e.mul(e.sub(a.length, 1), a.dilation)),
            e.sub(e.add(a.size, a.low), 1),
        )
        for w, a in zip(windows, axes, strict=True)
    ]
    extra = [_at_least(e, r, a.high) for r, a in zip(reach, axes, strict=True)]
    acc = computed(out.dtype)
    how = "max" if op.mode == "max" else "add"
    neutral = start_value(how, out.dtype)
    padded = pad_spatial(e, x, [a.low for a in axes], extra, first, neutral)
    padded = trim_windows(e, padded, first, windows, axes)
    power = op.lp_order if op.mode == "lpnorm" else None
    total = _window_reduce(e, padded, out.dtype, own, axes, first, how, acc, power)
    if op.mode == "average":
        total = _average(e, total, acc, out, windows, axes, first, op)
    elif power is not None and power > 1:
        shape = TensorType(acc, tuple(ir.RankedTensorType(total.type).shape))
        total = e.map_elements(
            [total],
            [acc],
            shape,
            lambda b, v: b.sqrt(v) if power == 2 else b.pow(v, 1.0 / power),
        )
    return store(e, total, acc, out.dtype)


def _at_least(e: LoweringContext, a: Extent, b: Extent) -> Extent:
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b)
    return arith.MaxSIOp(e.index(a), e.index(b)).result


def window_counts(e: LoweringContext, op: Pooling, size: Sequence[Extent]) -> list[Extent]:
    """Return how many windows of stated lengths there are along each axis."""
    return [a.count(e, ceil=op.ceil_mode) for a in axes_of(e, op, size, op.lengths)]


def _window_reduce(
    e: LoweringContext,
    x: ir.Value,
    dtype: DType,
    own: Sequence[Extent],
    axes: Sequence[WindowAxis],
    first: int,
    how: str,
    acc: DType,
    power: int | None = None,
) -> ir.Value:
    rank, spatial = len(own), len(axes)
    d = [ir.AffineDimExpr.get(i) for i in range(rank + spatial)]
    where: list[ir.AffineExpr] = list(d[:rank])
    along = slice(first, first + spatial)
    where[along] = tap_indices(d[along], d[rank:], axes)
    total = rank + spatial
    maps = [
        ir.AffineMap.get(total, 0, where),
        ir.AffineMap.get(total, 0, d[rank:]),
        ir.AffineMap.get(total, 0, d[:rank]),
    ]
    b = ArithScalars(acc, acc)

    def body(element: ir.Value, _: ir.Value, so_far: ir.Value) -> ir.Value:
        v = widen(TypedScalar(element, dtype))
        if power == 0:
            v = b.select(b.cmp("ne", v, 0), b.const(1), b.const(0))
        elif power is not None:
            v = b.abs(v)
            if power == 2:
                v = b.mul(v, v)
            elif power > 2:
                v = b.pow(v, float(power))
        combined = b.max if how == "max" else b.add
        return combined(TypedScalar(so_far, acc), v).value

    init = e.fill(own, acc, start_value(how, acc))
    window = e.empty([a.length for a in axes], acc)
    iterators = [PARALLEL] * rank + [REDUCTION] * spatial
    found = e.generic([x, window], [init], maps, iterators, body)[0]
    planar = first == 2
    compilation_info.give(
        e, found, lambda arch: compilation_info.window_info(arch, own, spatial, planar=planar)
    )
    return found


def _average(
    e: LoweringContext,
    total: ir.Value,
    acc: DType,
    out: TensorType,
    windows: Sequence[Extent],
    axes: Sequence[WindowAxis],
    first: int,
    op: Pooling,
) -> ir.Value:
    """Divide sums by the number of elements counted in each window."""
    spatial = len(windows)
    shape = TensorType(acc, tuple(ir.RankedTensorType(total.type).shape))
    include = op.count_include_pad
    known = [w for w in windows if isinstance(w, int)]
    if len(known) == spatial and all(a.known for a in axes):
        counts = np.ones((), np.int64)
        for w, a in zip(known, axes, strict=True):
            counts = np.multiply.outer(counts, counted_taps(w, a, include=include))
        if counts.size and (counts == counts.flat[0]).all():
            number = max(int(counts.flat[0]), 1)
            return e.map_elements([total], [acc], shape, lambda b, v: b.div(v, number))
        tables = [e.constant(np.maximum(counts, 1).astype(acc.np))]
        maps = [tuple(range(first, first + spatial))]
    else:
        tables = [
            _computed_taps(e, acc, w, a, include=include)
            for w, a in zip(windows, axes, strict=True)
        ]
        maps = [(first + i,) for i in range(spatial)]

    def divide(b: ArithScalars, v: TypedScalar, *counted: TypedScalar) -> TypedScalar:
        number = counted[0]
        for c in counted[1:]:
            number = b.mul(number, c)
        return b.div(v, b.max(number, 1))

    return e.map_elements(
        [total, *tables],
        [acc] * (1 + len(tables)),
        shape,
        divide,
        maps=[tuple(range(out.rank)), *maps],
    )


def counted_taps(windows: int, a: WindowAxis, *, include: bool) -> np.ndarray:
    """Return how many taps of each window along an axis of known extents are counted.

    include: those in the border, too.
    """
    size, length, low, high = a.known
    taps = np.arange(windows)[:, None] * a.stride - low + np.arange(length) * a.dilation
    first, end = (-low, size + high) if include else (0, size)
    return ((taps >= first) & (taps < end)).sum(1)


def _computed_taps(
    e: LoweringContext, acc: DType, windows: Extent, a: WindowAxis, *, include: bool
) -> ir.Value:
    """Compute counted_taps in closed form: the last tap inside less the first one, plus 1."""

    def body(where: list[ir.Value]) -> ir.Value:
        start = e.sub(e.mul(where[0], a.stride), a.low)
        begin = e.sub(0, a.low) if include else 0
        end = e.add(a.size, a.high) if include else a.size
        before = e.max(e.sub(begin, start), 0)
        first = index.ceil_div(e, before, a.dilation)
        # one more than the last tap: no negative number is divided
        room = e.max(e.sub(end, start), 0)
        last = e.min(index.ceil_div(e, room, a.dilation), a.length)
        count = e.max(e.sub(last, first), 0)
        number = TypedScalar(index.as_i64(e, count), dtypes.INT64)
        return ArithScalars(acc, acc).cast(number, acc).value

    return index.from_positions(e, [windows], acc, body)
