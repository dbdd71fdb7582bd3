"""Concatenations that no kernel holds, on GPUs: one loop, in which each element selects its part.

IREE's copies of parts are a kernel each, in which a thread moves one element.
"""

from __future__ import annotations

from collections.abc import Sequence

from mgx_mlir.core.ir import ir
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.axes import axis_of
from mgx_mlir.dialects.migraphx.movement import Concat
from mgx_mlir.passes.lowering import index
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.gpu import pointwise_tiles
from mgx_mlir.passes.lowering.ops import fused_concat
from mgx_mlir.passes.lowering.scalar import signless

MOST_PARTS = 4  # an element reads all parts, each inside of its bounds


def takes(e: LoweringContext, op: Concat, parts: Sequence[ir.Value]) -> bool:
    """Return whether a concatenation that is no kernel's is one loop here."""
    t = TensorType.of(op.out)
    kinds = [TensorType.of(v) for v in parts]
    return (
        e.options.target == "gpu" and e.options.tiles and not e.in_region
        and 1 < len(parts) <= MOST_PARTS
        and t.is_static and 0 not in t.dims and all(k.is_static and 0 not in k.dims for k in kinds)
    )  # fmt: skip


def concat(e: LoweringContext, op: Concat, parts: Sequence[ir.Value]) -> ir.Value:
    """Build the loop of a concatenation that `takes` takes, in its own dispatch."""
    t = TensorType.of(op.out)
    operands = dict(zip(op.operation.operands, parts, strict=True))
    dims = list(t.dims)

    def build() -> list[ir.Value]:
        found = fused_concat.loop_of(e, op.out, operands)
        if axis_of(op.axis, t.rank) < t.rank - 1:  # elements of others are read one by one
            pointwise_tiles.give(e.options, ir.InsertionPoint.current.block)
        return [found]

    return index.alone(e, [ir.RankedTensorType.get(dims, signless(t.dtype))], [dims], build)[0]


__all__ = ["concat", "takes"]
