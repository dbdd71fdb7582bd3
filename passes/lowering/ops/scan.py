"""Lowering of prefix_scan_sum."""

from __future__ import annotations

from collections.abc import Sequence

from mgx_mlir.core.dtypes import DType
from mgx_mlir.core.ir import ir
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.axes import axis_of
from mgx_mlir.dialects.migraphx.reduce import PrefixScanSum
from mgx_mlir.passes.lowering import index
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.expr import Extent
from mgx_mlir.passes.lowering.gpu import scans
from mgx_mlir.passes.lowering.iree import linalg_ext
from mgx_mlir.passes.lowering.ops.movement import flip
from mgx_mlir.passes.lowering.registry import lowers
from mgx_mlir.passes.lowering.scalar import computed


@lowers(PrefixScanSum)
def prefix_scan_sum(op: PrefixScanSum, ins: tuple[ir.Value], e: LoweringContext) -> ir.Value:
    """Build a scan, of the flipped tensor where it runs back; 16- and 8-bit floats sum in f32."""
    t = TensorType.of(op.input)
    work = computed(t.dtype)
    axis = axis_of(op.axis, t.rank)
    extents = e.extents(ins[0])
    if 0 in extents:
        return ins[0]
    x = index.cast_alone(e, ins[0], t.dtype, work)
    if op.reverse:
        x = flip(e, x, work, {axis})
    found = running_sums(e, x, work, axis, extents, inclusive=not op.exclusive)
    if op.reverse:
        found = flip(e, found, work, {axis})
    return e.cast_tensor(found, work, t.dtype)


def running_sums(
    e: LoweringContext,
    x: ir.Value,
    dtype: DType,
    axis: int,
    extents: Sequence[Extent],
    *,
    inclusive: bool = True,
) -> ir.Value:
    """Return running sums along `axis` in `dtype`, by all lanes of a GPU."""
    make = scans.running_sums if e.options.target == "gpu" else linalg_ext.scan
    return make(e, x, dtype, axis, extents, inclusive=inclusive)
