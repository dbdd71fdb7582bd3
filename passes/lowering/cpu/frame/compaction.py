"""Compress the lanes of a vector that satisfy a mask, and count them."""

from __future__ import annotations

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import arith, ir, math, vector
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.cpu.frame.workgroup_builder import (
    Index,
    ResultTile,
    WorkgroupBuilder,
    dispatch,
)
from mgx_mlir.passes.lowering.expr import Extent


def kept(k: WorkgroupBuilder, value: ir.Value, mask: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Return a vector that begins with the lanes set in the mask, and their number.

    An instruction with AVX-512; elsewhere LLVM stores the lanes one after the other.
    """
    packed = k.intrinsic("llvm.experimental.vector.compress", value.type, value, mask, value)
    return packed, count(k, mask)


def count(k: WorkgroupBuilder, mask: ir.Value) -> ir.Value:
    """Return how many lanes of a mask are set, as an index."""
    lanes = ir.VectorType(mask.type).shape[0]
    bits = ir.IntegerType.get_signless(lanes)
    as_vector = vector.BitCastOp(ir.VectorType.get([1], bits), mask).result
    whole = vector.ExtractOp(as_vector, [], [0]).result
    if lanes < 8:
        whole = arith.ExtUIOp(ir.IntegerType.get_signless(8), whole).result
    return arith.IndexCastUIOp(ir.IndexType.get(), math.CtPopOp(whole).result).result


def inside(k: WorkgroupBuilder, left: Index, lanes: int) -> ir.Value:
    """Return the mask of the lanes below `left`."""
    kind = ir.VectorType.get([lanes], ir.IntegerType.get_signless(1))
    return vector.CreateMaskOp(kind, [k.index(left)]).result


def starts_of(e: LoweringContext, counts: ir.Value, parts: Extent) -> ir.Value:
    """Return the start of each part (i64) from the parts' counts, and at last the end of the
    last part.
    """

    def body(k: WorkgroupBuilder) -> list[ResultTile]:
        n = k.inner(parts)
        made = k.put(k.number(0, dtypes.INT64), k.empty([k.add(n, 1)], dtypes.INT64), [0])

        def one(i: ir.Value, c: list[ir.Value]) -> list[ir.Value]:
            total = arith.AddIOp(c[1], k.element(k.inputs[0], [i])).result
            return [k.put(total, c[0], [k.add(i, 1)]), total]

        made, _ = k.loop(0, n, 1, [made, k.number(0, dtypes.INT64)], one)
        return [ResultTile(made, [0], [k.add(n, 1)])]

    more = e.add(parts, 1)
    return dispatch([counts], [([more], dtypes.INT64)], [(1, 1)], body, [parts, more])[0]
