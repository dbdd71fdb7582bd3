"""nonzero as CPU kernels: indices are compacted part by part, then converted to coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mgx_mlir.core import dtypes
from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import arith, ir, math
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.indexing import NonZero
from mgx_mlir.passes.lowering import index, views
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.cpu.frame import compaction
from mgx_mlir.passes.lowering.cpu.frame.isa import Isa
from mgx_mlir.passes.lowering.cpu.frame.sites import by_form
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import (
    Index,
    ResultTile,
    WorkgroupBuilder,
    dispatch,
)
from mgx_mlir.passes.lowering.expr import Extent
from mgx_mlir.passes.lowering.iree import buffer_views
from mgx_mlir.passes.lowering.scalar import constant_of
from mgx_mlir.passes.lowering.select import KernelRule

_FLOATS = (dtypes.FLOAT, dtypes.DOUBLE, dtypes.HALF, dtypes.BF16)
_PART = 1 << 14  # elements of a workgroup: enough to be worth starting


def refusal(op: NonZero) -> str | None:
    """Return why the kernel does not take an op, None if it does."""
    t = TensorType.of(op.input)
    if t.dtype.is_float and t.dtype not in _FLOATS:
        return f"it reads {t.dtype}"
    if op.padded:
        return "its result is filled up"
    return "it has no elements, or one" if 0 in t.dims or not t.rank else None


def build(e: LoweringContext, op: NonZero, x: ir.Value, isa: Isa) -> list[ir.Value]:
    """Build the indices of each part of the elements, and then their coordinates."""
    dtype, own = TensorType.of(op.input).dtype, e.extents(x)
    if dtype.is_bool:
        x, dtype = e.cast_tensor(x, dtypes.BOOL, dtypes.INT8), dtypes.INT8
    n = e.product(own)
    flat = TensorType(dtype, (n if isinstance(n, int) else DYN,))
    found, counts = _packed(e, views.reshape_tensor(e, x, flat, [n]), dtype, n, isa)
    parts = index.ceil_div(e, n, _PART)
    alone = isinstance(parts, int) and parts == 1
    starts = counts if alone else compaction.starts_of(e, counts, parts)
    total = buffer_views.number(e, buffer_views.memory(e, starts), parts)
    total = index.to_index(total, dtypes.INT64)
    return [_coordinates(e, found, starts, own, total, isa)]


RULE = KernelRule(
    "nonzero", (NonZero,), by_form(refusal),
    lambda e, site, _: build(e, site.op, site.first, site.isa),
)  # fmt: skip


def _packed(
    e: LoweringContext, x: ir.Value, dtype: DType, n: Extent, isa: Isa
) -> tuple[ir.Value, ir.Value]:
    """Return the indices within each part (i32) and their numbers.

    For a single part: its start and end.
    """
    parts = index.ceil_div(e, n, _PART)
    alone = isinstance(parts, int) and parts == 1
    lanes = isa.lanes

    def body(k: WorkgroupBuilder) -> list[ResultTile]:
        start = k.at[0]
        size = k.covered(start, _PART, k.inner(n))
        kind = k.vector_type(lanes, dtypes.INT32)
        numbers: Any = np.arange(lanes, dtype=np.int32)
        lane = constant_of(kind, ir.DenseElementsAttr.get(numbers, type=kind))

        def some(at: Index, masked: bool, c: list[ir.Value]) -> list[ir.Value]:
            read = k.read(k.inputs[0], [k.add(start, at)], lanes, masked=0.0 if masked else None)
            mask = _is_set(k, read, dtype, lanes)
            if masked:  # lanes behind a part are 0 in the last part alone
                inside = compaction.inside(k, k.sub(size, at), lanes)
                mask = arith.AndIOp(mask, inside).result
            first = arith.IndexCastOp(ir.IntegerType.get_signless(32), k.index(at)).result
            positions = arith.AddIOp(lane, k.broadcast(first, lanes)).result
            packed, many = compaction.kept(k, positions, mask)
            made = k.write(packed, c[1], [c[0]], masked=masked)
            return [k.index(k.add(c[0], many)), made]

        many, made = k.along(size, lanes, [k.index(0), k.empty([size], dtypes.INT32)], some)
        counts = k.put(index.as_i64(k, many), k.empty([1 + alone], dtypes.INT64), [int(alone)])
        if alone:
            counts = k.put(k.number(0, dtypes.INT64), counts, [0])
        at = k.div(start, _PART)
        return [ResultTile(made, [start], [size]), ResultTile(counts, [at], [1 + alone])]

    results = [([n], dtypes.INT32), ([e.add(parts, int(alone))], dtypes.INT64)]
    found, counts = dispatch([x], results, [(n, _PART)], body, [n, parts])
    return found, counts


def _is_set(k: WorkgroupBuilder, x: ir.Value, dtype: DType, lanes: int) -> ir.Value:
    """Return which elements are not 0; NaN is not."""
    whole = dtypes.from_name(f"int{dtype.bits}") if dtype.is_float else dtype
    if dtype.is_float:  # without the sign, by which -0 differs
        x = arith.BitcastOp(k.vector_type(lanes, whole), x).result
        x = arith.ShLIOp(x, k.splat(1, lanes, whole)).result
    return arith.CmpIOp(arith.CmpIPredicate.ne, x, k.splat(0, lanes, whole)).result


def _coordinates(
    e: LoweringContext,
    found: ir.Value,
    starts: ir.Value,
    own: Sequence[Extent],
    total: Extent,
    isa: Isa,
) -> ir.Value:
    """Return the coordinates of the elements of all parts, a row for each axis.

    In f64, (index + 1/2) / extent never rounds to an integer, so truncation is exact.
    """
    n = e.product(own)
    rank, lanes = len(own), max(isa.lanes // 2, 2)
    parts = index.ceil_div(e, n, _PART)

    def body(k: WorkgroupBuilder) -> list[ResultTile]:
        part = k.at[0]
        start, end = (
            arith.IndexCastOp(ir.IndexType.get(), k.element(k.inputs[1], [k.add(part, i)])).result
            for i in (0, 1)
        )
        size, base = k.sub(end, start), k.mul(part, _PART)
        i64, f64 = (k.vector_type(lanes, t) for t in (dtypes.INT64, dtypes.DOUBLE))
        ahead = k.broadcast(index.as_i64(k, base), lanes)
        divisors = [_Divisor(k, k.inner(d), lanes) for d in own[1:]]

        def some(at: Index, masked: bool, c: list[ir.Value]) -> list[ir.Value]:
            read = k.read(k.inputs[0], [k.add(base, at)], lanes, masked=0.0 if masked else None)
            position = arith.AddIOp(arith.ExtSIOp(i64, read).result, ahead).result
            if rank == 1:
                return [k.write(position, c[0], [0, at], masked=masked)]
            rest, made = arith.SIToFPOp(f64, position).result, c[0]
            for axis in reversed(range(rank)):
                number = rest
                if axis:
                    rest, number = divisors[axis - 1].divided(rest)
                whole = arith.FPToSIOp(i64, number).result
                made = k.write(whole, made, [axis, at], masked=masked)
            return [made]

        (made,) = k.along(size, lanes, [k.empty([rank, size], dtypes.INT64)], some)
        return [ResultTile(made, [0, start], [rank, size])]

    return dispatch(
        [found, starts], [([rank, total], dtypes.INT64)], [(parts, 1)], body, [n, *own, total]
    )[0]


class _Divisor:
    """A divisor of vectors of integers held in f64."""

    def __init__(self, k: WorkgroupBuilder, extent: Index, lanes: int) -> None:
        one = arith.SIToFPOp(ir.F64Type.get(), index.as_i64(k, extent)).result
        inverse = arith.DivFOp(k.number(1.0, dtypes.DOUBLE), one).result
        self.extent, self.inverse = k.broadcast(one, lanes), k.broadcast(inverse, lanes)
        self.half = k.splat(0.5, lanes, dtypes.DOUBLE)

    def divided(self, x: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Return quotient and remainder."""
        near = arith.MulFOp(arith.AddFOp(x, self.half).result, self.inverse).result
        quotient = math.FloorOp(near).result
        return quotient, arith.SubFOp(x, arith.MulFOp(quotient, self.extent).result).result
