"""Bool operands of kernels: read from bytes where IREE cannot pack bools."""

from __future__ import annotations

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import OPS, is_a
from mgx_mlir.dialects.migraphx.linear import Dot
from mgx_mlir.passes.lowering import index
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.expr import Compute, Expr, Leaf, View


def from_bytes(e: LoweringContext, op: ir.Operation, x: Expr) -> Expr:
    """Return the operand `x` of the kernel `op`.

    A bool one of a dot's kernel as bytes that are compared.

    What follows a dot is packed with it, and IREE 3.13 packs bools with padding of another type:
    the program would be compiled without data tiling.
    """
    source = x.source if isinstance(x, View) else x
    if not isinstance(source, Leaf) or not source.type.dtype.is_bool or e.in_kernel:
        return x
    if not any(is_a(o, Dot) for o in op.regions[0].blocks[0].operations):
        return x
    # made by a dispatch of its own: IREE would move a mere extension into the kernel
    stored = Leaf(
        source.type.with_dtype(dtypes.INT8),
        index.cast_alone(e, source.value, dtypes.BOOL, dtypes.INT8),
    )
    found = Compute(source.type, OPS["convert"], {"target_type": dtypes.BOOL}, [stored])
    return View(x.type, found, x.map, x.extents) if isinstance(x, View) else found
