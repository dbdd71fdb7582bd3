"""Operands of matmuls as IREE can pack them for a CPU's data tiling.

IREE 3.13 packs an operand in the kernel that computes it, where it may. Of rows of several batches
that are computed with a reduction it packs others, and elements at computed indices it refuses
(docs/iree-hazards.md, hazard 30). Behind a barrier an operand is packed by a kernel of its own.
"""

from __future__ import annotations

from mgx_mlir.core import dtypes
from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import OPS, is_a
from mgx_mlir.dialects.migraphx.linear import Dot
from mgx_mlir.passes.lowering import index
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.expr import Compute, Expr, Leaf, View
from mgx_mlir.passes.lowering.iree.linalg_ext import source_of

_GIVEN = ("arith.constant", "ml_program.global_load_const")


def operand(e: LoweringContext, op: ir.Operation, x: Expr) -> Expr:
    """Return the operand `x` of the kernel `op`, in a region where the target has them.

    What follows a matmul is packed with it, and IREE 3.13 packs bools with padding of another type:
    a bool operand is read from bytes. One that a loop computes stands behind a barrier.
    """
    leaf = x.source if isinstance(x, View) else x
    if not isinstance(leaf, Leaf) or e.in_kernel:
        return x
    if not any(is_a(o, Dot) for o in op.regions[0].blocks[0].operations):
        return x
    source = source_of(leaf.value)
    found: Expr
    if leaf.type.dtype.is_bool:
        # made by a dispatch of its own: IREE would move a mere extension into the kernel
        stored = index.cast_alone(e, leaf.value, dtypes.BOOL, dtypes.INT8)
        args = [Leaf(leaf.type.with_dtype(dtypes.INT8), stored)]
        found = Compute(leaf.type, OPS["convert"], {"target_type": dtypes.BOOL}, args)
    elif e.options.target == "cpu" and source is not None and source.name == "linalg.generic":
        found = Leaf(leaf.type, e.barrier(leaf.value, e.extents(leaf.value)))
    else:
        return x
    return View(x.type, found, x.map, x.extents) if isinstance(x, View) else found


def made_ahead(e: LoweringContext, x: ir.Value) -> ir.Value:
    """Return an operand of a matmul that is in no region.

    Behind a barrier where regions are off.
    """
    if e.options.regions or e.options.target != "cpu":
        return x
    source = source_of(x)
    if source is None or source.name in _GIVEN:
        return x
    return e.barrier(x, e.extents(x))
