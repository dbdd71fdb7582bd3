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
from mgx_mlir.passes.lowering.ops.convolution import pad_spatial, padding_of, trim_windows
from mgx_mlir.passes.lowering.ops.linear import store
from mgx_mlir.passes.lowering.ops.reduce import start_value
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
    # elements that the last window reads past the padded input are padded too
    reach = [
        e.sub(
            e.add(e.mul(e.sub(w, 1), s), e.mul(e.sub(k, 1), d)),
            e.sub(e.add(i, lo), 1),
        )
        for w, k, s, d, i, lo in zip(windows, lengths, strides, dilations, size, low, strict=True)
    ]
    extra = [_at_least(e, r, hi) for r, hi in zip(reach, high, strict=True)]
    acc = computed(out.dtype)
    how = "max" if op.mode == "max" else "add"
    neutral = start_value(how, out.dtype)
    padded = pad_spatial(e, x, low, extra, first, neutral)
    padded = trim_windows(e, padded, first, windows, lengths, dilations)
    power = op.lp_order if op.mode == "lpnorm" else None
    total = _window_reduce(
        e, padded, out.dtype, own, lengths, strides, dilations, first, how, acc, power
    )
    if op.mode == "average":
        total = _average(
            e, total, acc, out, windows, lengths, strides, dilations, low, high, size, first, op
        )
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
    low, high = padding_of(e, op, size, op.lengths)
    return [
        _windows(e, i, lo, hi, k, s, d, op.ceil_mode)
        for i, lo, hi, k, s, d in zip(
            size, low, high, op.lengths, op.stride, op.dilations, strict=True
        )
    ]


def _windows(
    e: LoweringContext,
    size: Extent,
    low: Extent,
    high: Extent,
    kernel: Extent,
    stride: int,
    dilation: int,
    ceil: bool,
) -> Extent:
    """Return the output extent.

    With ceil_mode a last window must start inside the input or its begin padding.
    """
    reach = e.add(e.mul(e.sub(kernel, 1), dilation), 1)
    padded = e.add(e.add(size, low), high)
    rest = e.sub(padded, reach)
    if isinstance(rest, int) and isinstance(size, int) and isinstance(low, int):
        count = (-(-rest // stride) if ceil else rest // stride) + 1
        if ceil and (count - 1) * stride >= size + low:
            count -= 1
        return max(count, 0)
    value = e.index(rest)
    step = e.index(stride)
    op = arith.CeilDivSIOp if ceil else arith.FloorDivSIOp
    count = arith.AddIOp(op(value, step).result, e.index(1)).result
    if ceil:
        start = arith.MulIOp(arith.SubIOp(count, e.index(1)).result, step).result
        limit = e.index(e.add(size, low))
        outside = arith.CmpIOp(5, start, limit).result  # sge
        fewer = arith.SubIOp(count, e.index(1)).result
        count = arith.SelectOp(outside, fewer, count).result
    return arith.MaxSIOp(count, e.index(0)).result


def _window_reduce(
    e: LoweringContext,
    x: ir.Value,
    dtype: DType,
    own: Sequence[Extent],
    lengths: Sequence[Extent],
    strides: Sequence[int],
    dilations: Sequence[int],
    first: int,
    how: str,
    acc: DType,
    power: int | None = None,
) -> ir.Value:
    rank, spatial = len(own), len(lengths)
    d = [ir.AffineDimExpr.get(i) for i in range(rank + spatial)]
    where: list[ir.AffineExpr] = list(d[:rank])
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
    window = e.empty(list(lengths), acc)
    iterators = [PARALLEL] * rank + [REDUCTION] * spatial
    found = e.generic([x, window], [init], maps, iterators, body)[0]
    if first == 1:
        compilation_info.give(
            e, found, lambda arch: compilation_info.window_info(arch, own, spatial)
        )
    return found


def _average(
    e: LoweringContext,
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
    op: Pooling,
) -> ir.Value:
    """Divide sums by the number of elements counted in each window."""
    spatial = len(windows)
    shape = TensorType(acc, tuple(ir.RankedTensorType(total.type).shape))
    include = op.count_include_pad
    static = all(isinstance(v, int) for v in [*windows, *lengths, *low, *high, *size])
    if static:
        counts = np.ones((), np.int64)
        for w, k, s, d, lo, hi, i in zip(
            windows, lengths, strides, dilations, low, high, size, strict=True
        ):
            counts = np.multiply.outer(counts, counted_taps(w, k, s, d, lo, hi, i, include))
        if counts.size and (counts == counts.flat[0]).all():
            number = max(int(counts.flat[0]), 1)
            return e.map_elements([total], [acc], shape, lambda b, v: b.div(v, number))
        tables = [e.constant(np.maximum(counts, 1).astype(acc.np))]
        maps = [tuple(range(first, first + spatial))]
    else:
        tables = [
            _count_at_run_time(e, acc, w, k, s, d, lo, hi, i, include)
            for w, k, s, d, lo, hi, i in zip(
                windows, lengths, strides, dilations, low, high, size, strict=True
            )
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


def counted_taps(
    w: int, k: int, s: int, d: int, lo: int, hi: int, i: int, include: bool
) -> np.ndarray:
    """Return how many taps of each window along one axis are counted."""
    taps = np.arange(w)[:, None] * s - lo + np.arange(k)[None, :] * d
    inside = (taps >= -lo) & (taps < i + hi) if include else (taps >= 0) & (taps < i)
    return inside.sum(1)


def _count_at_run_time(
    e: LoweringContext,
    acc: DType,
    windows: Extent,
    length: Extent,
    stride: int,
    dilation: int,
    low: Extent,
    high: Extent,
    size: Extent,
    include: bool,
) -> ir.Value:
    """Compute counted_taps in closed form: the last tap inside less the first one, plus 1."""

    def body(where: list[ir.Value]) -> ir.Value:
        start = e.sub(e.mul(where[0], stride), low)
        begin = e.sub(0, low) if include else 0
        end = e.add(size, high) if include else size
        before = e.max(e.sub(begin, start), 0)
        first = index.ceil_div(e, before, dilation)
        # one more than the last tap: no negative number is divided
        room = e.max(e.sub(end, start), 0)
        last = e.min(index.ceil_div(e, room, dilation), length)
        count = e.max(e.sub(last, first), 0)
        number = TypedScalar(index.as_i64(e, count), dtypes.INT64)
        return ArithScalars(acc, acc).cast(number, acc).value

    return index.from_positions(e, [windows], acc, body)
