"""Lowering of dynamic_range: a vector whose length comes from three run-time numbers."""

from __future__ import annotations

from collections.abc import Sequence

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import arith, ir
from mgx_mlir.core.shapes import DYN, TensorType
from mgx_mlir.dialects.migraphx.random import DynamicRange
from mgx_mlir.passes.lowering import index
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.expr import Extent
from mgx_mlir.passes.lowering.iree import iree_ops
from mgx_mlir.passes.lowering.registry import lowers
from mgx_mlir.passes.lowering.scalar import ArithScalars, TypedScalar, narrow, widen


@lowers(DynamicRange)
def dynamic_range(
    op: DynamicRange, ins: tuple[ir.Value, ir.Value, ir.Value], e: LoweringContext
) -> ir.Value:
    """start + i delta for i below the count.

    The numbers are read inside of kernels, as the host has no arithmetic for most float types.
    """
    out = TensorType.of(op.out)
    dtype = out.dtype
    maps = [(None,) * ir.RankedTensorType(x.type).rank for x in ins]
    count: Extent = out.dims[0]
    if count == DYN:

        def counted(where: list[ir.Value], *numbers: ir.Value) -> ir.Value:
            return _count(op, [widen(TypedScalar(n, dtype)) for n in numbers]).value

        found = index.from_positions(e, [], dtypes.INT64, counted, ins, maps)
        count = index.to_index(index.read(found, []), dtypes.INT64)
        # equal ends give 0, and IREE 3.13 divides by an extent that it knows is 0
        count = iree_ops.barrier(count)
        length = e.sizes.of(count)
        e.sizes.check((("le", 0, length),), "numbers, and a delta other than 0")
        most = op.max_output
        e.sizes.check((("le", length, most),), f"at most {op.max_output} elements")
    b = ArithScalars(dtype, dtype)

    def element(where: list[ir.Value], *numbers: ir.Value) -> ir.Value:
        start, delta = (widen(TypedScalar(n, dtype)) for n in numbers)
        position = arith.IndexCastOp(ir.IntegerType.get_signless(64), where[0]).result
        i = b.cast(TypedScalar(position, dtypes.INT64), start.dtype)
        return narrow(b.add(start, b.mul(i, delta)), dtype).value

    ends = [0, 2]
    # not fused into a gather that it indexes: the result would be a loop nest without operands,
    # which IREE 3.13 collapses to one dim and cannot distribute with dynamic extents
    return index.from_positions_alone(
        e, [count], dtype, element, [ins[i] for i in ends], [maps[i] for i in ends]
    )


def _count(op: DynamicRange, numbers: Sequence[TypedScalar]) -> TypedScalar:
    """max(0, ceil((limit - start) / delta)), at most one above max_output; -1 for a delta of 0, and
    for NaN."""
    wide = dtypes.DOUBLE if numbers[0].dtype.is_float else dtypes.INT64
    b = ArithScalars(wide, wide)
    low, high, step = (b.cast(v, wide) for v in numbers)
    distance = b.sub(high, low)
    if wide is dtypes.DOUBLE:
        steps = b.ceil(b.div(distance, step))
        inside = b.select(b.cmp("gt", steps, 0.0), steps, 0.0)
        bounded = b.min(inside, float(op.max_output + 1))
        told = b.select(b.cmp("eq", steps, steps), bounded, -1.0)
        return b.cast(b.select(b.cmp("eq", step, 0.0), -1.0, told), dtypes.INT64)
    still = b.cmp("eq", step, 0)
    safe = b.select(still, 1, step)
    whole = b.div(distance, safe)
    rest = b.sub(distance, b.mul(whole, safe))
    # truncation is the ceiling unless the remainder has the divisor's sign
    short = b.cmp("gt", b.mul(b.select(b.cmp("gt", safe, 0), 1, -1), rest), 0)
    steps = b.add(whole, b.select(short, b.const(1), b.const(0)))
    return b.select(still, b.const(-1), b.min(b.max(steps, 0), op.max_output + 1))
