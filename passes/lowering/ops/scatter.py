"""Lowerings of scatter_* and scatternd_*: updates one after the other, in their order."""

from __future__ import annotations

from collections.abc import Sequence

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import arith, ir
from mgx_mlir.core.op import Op
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.axes import axis_of
from mgx_mlir.dialects.migraphx.scatter import (
    ScatterAdd,
    ScatterMax,
    ScatterMin,
    ScatterMul,
    ScatterNDAdd,
    ScatterNDMax,
    ScatterNDMin,
    ScatterNDMul,
    ScatterNDNone,
    ScatterNone,
)
from mgx_mlir.passes.lowering import index as indices
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.expr import Extent
from mgx_mlir.passes.lowering.gpu.last_updates import Updates, threads_of_updates
from mgx_mlir.passes.lowering.iree import linalg_ext
from mgx_mlir.passes.lowering.ops.reduce import start_value
from mgx_mlir.passes.lowering.registry import lowers
from mgx_mlir.passes.lowering.scalar import TypedScalar, computed, narrow, widen
from mgx_mlir.passes.lowering.views import reshape_tensor


def _flat(e: LoweringContext, x: ir.Value, dtype: DType, extents: Sequence[Extent]) -> ir.Value:
    t = TensorType(dtype, tuple(e.static_dims(extents)))
    return reshape_tensor(e, x, t, list(extents))


def _scatter(
    e: LoweringContext,
    how: str,
    dtype: DType,
    data: ir.Value,
    updates: ir.Value,
    to: Updates,
) -> ir.Value:
    """Return the scatter in the type that the combination is computed in."""
    # a 16- or 8-bit sum of many updates is rounded once, at its end
    work = computed(dtype) if how in ("add", "mul") else dtype
    if dtype.is_bool:
        work = dtypes.INT8  # bools are stored as bytes, so use i8
    source, values = (indices.cast_alone(e, x, dtype, work) for x in (data, updates))

    def body(update: ir.Value, current: ir.Value) -> ir.Value:
        if how == "none":
            return update
        b = e.scalars(work, work)
        a, c = (widen(TypedScalar(x, work)) for x in (current, update))
        return narrow(getattr(b, how)(a, c), work).value

    mask, info = to.mask, None
    if e.options.target == "gpu" and e.options.tiles:
        info = threads_of_updates(e.options.arch, ir.RankedTensorType(values.type).shape)
    if info is not None and to.count != 1:
        mask = to.are_last(e, e.extent(values, 0))
        if how != "none":
            values = to.combined(e, values, work, start_value(how, work), body)
    axes = range(ir.RankedTensorType(to.where.type).shape[1])
    found = linalg_ext.scatter(e, source, to.where, values, mask, axes, body, info)
    return e.cast_tensor(found, work, dtype)


def _elements(
    how: str, op: Op, ins: tuple[ir.Value, ir.Value, ir.Value], e: LoweringContext
) -> ir.Value:
    data, index, updates = ins
    t, it = TensorType.of(op.data), TensorType.of(op.indices)
    axis = axis_of(op.axis, t.rank)
    own = e.extents(data)
    counts = [
        a if isinstance(a, int) else b
        for a, b in zip(e.extents(index), e.extents(updates), strict=True)
    ]
    if 0 in counts or 0 in own:
        return data
    total = e.product(counts)

    def position(number: ir.Value, value: ir.Value) -> list[Extent]:
        """Return the element that update `number` goes to."""
        parts = e.unraveled(number, counts)
        parts[axis] = indices.wrap(e, indices.to_index(value, it.dtype), own[axis], it.dtype)
        return parts

    flat = _flat(e, index, it.dtype, [total])

    def coordinate(at: list[ir.Value], value: ir.Value) -> ir.Value:
        parts = zip(position(at[0], value), own, strict=True)
        inside = [indices.clamp(e, part, 0, indices.last_of(e, d)) for part, d in parts]
        return indices.as_i64(e, indices.picked(e, at[1], inside))

    where = indices.from_positions_alone(
        e, [total, t.rank], dtypes.INT64, coordinate, [flat], [(0,)]
    )

    def allowed(at: list[ir.Value], value: ir.Value) -> ir.Value:
        # drop an update outside: out of range if the op allows that, or past the axis where dynamic
        # extents differ
        found = indices.true()
        for i, part in enumerate(position(at[0], value)):
            if i == axis and not op.skip_out_of_bounds:
                fits = indices.compare(e, indices.SGT, own[i], 0)
                if isinstance(own[i], int):
                    continue
            elif i != axis and isinstance(own[i], int) and isinstance(counts[i], int):
                continue
            else:
                fits = indices.in_range(e, e.index(part), own[i])
            found = arith.AndIOp(found, fits).result
        return found

    known = e.dynamic_values([*own, *counts]) == []
    mask = None
    if op.skip_out_of_bounds or not known:
        mask = indices.from_positions_alone(e, [total], dtypes.BOOL, allowed, [flat], [(0,)])
    values = _flat(e, updates, t.dtype, [total])
    to = Updates(where, mask, [axis], counts[axis], e.product(counts[axis + 1 :]))
    return _scatter(e, how, t.dtype, data, values, to)


def _slices(
    how: str, op: Op, ins: tuple[ir.Value, ir.Value, ir.Value], e: LoweringContext
) -> ir.Value:
    data, index, updates = ins
    t, it = TensorType.of(op.data), TensorType.of(op.indices)
    k = it.dims[-1]
    own, counts = e.extents(data), e.extents(index)[:-1]
    if 0 in counts or 0 in own:
        return data
    if k == 0:
        # a scalar target: add an axis of extent 1 in front
        own = [1, *own]
        data = _flat(e, data, t.dtype, own)
    total, tail = e.product(counts), own[max(k, 1) :]
    depth = max(k, 1)
    flat = _flat(e, index, it.dtype, [total, k]) if k else None

    def coordinate(at: list[ir.Value]) -> ir.Value:
        if flat is None:
            return indices.as_i64(e, 0)
        end = indices.picked(e, at[1], own[:k])
        value = indices.read(flat, at)
        return indices.as_i64(e, indices.normalized(e, value, end, it.dtype))

    where = indices.from_positions_alone(e, [total, depth], dtypes.INT64, coordinate)

    def allowed(at: list[ir.Value]) -> ir.Value:
        found = indices.true()
        for d in e.dynamic_values(own[:depth]):
            found = arith.AndIOp(found, indices.compare(e, indices.SGT, d, 0)).result
        return found

    mask = None
    if e.dynamic_values(own[:depth]):
        mask = indices.from_positions_alone(e, [total], dtypes.BOOL, allowed)
    values = _flat(e, updates, t.dtype, [total, *tail])
    to = Updates(where, mask, range(depth), total, 1)
    found = _scatter(e, how, t.dtype, data, values, to)
    return found if k else _flat(e, found, t.dtype, own[1:])


@lowers(ScatterNone, ScatterAdd, ScatterMul, ScatterMin, ScatterMax)
def scatter(op: Op, ins: tuple[ir.Value, ir.Value, ir.Value], e: LoweringContext) -> ir.Value:
    """Element updates: every one carries the coordinates of all axes."""
    return _elements(type(op).mnemonic.removeprefix("scatter_"), op, ins, e)


@lowers(ScatterNDNone, ScatterNDAdd, ScatterNDMul, ScatterNDMin, ScatterNDMax)
def scatternd(op: Op, ins: tuple[ir.Value, ir.Value, ir.Value], e: LoweringContext) -> ir.Value:
    """Slice updates at index tuples."""
    return _slices(type(op).mnemonic.removeprefix("scatternd_"), op, ins, e)
