"""Operands of matmuls in a form that IREE can pack for data tiling on CPUs.

IREE 3.13 packs an operand in the kernel that computes it, if it can. For batched rows computed with
a reduction it packs wrong rows, and it refuses elements at computed indices (docs/iree-hazards.md,
hazard 30). After a barrier an operand is packed by a separate kernel.
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

    Operands of a matmul's epilogue are packed too, and IREE 3.13 packs bools with padding of
    another type, so a bool operand is read from bytes. An operand that a loop computes gets a
    barrier.
    """
    leaf = x.source if isinstance(x, View) else x
    if not isinstance(leaf, Leaf) or e.in_kernel:
        return x
    if not any(is_a(o, Dot) for o in op.regions[0].blocks[0].operations):
        return x
    source = source_of(leaf.value)
    found: Expr
    if leaf.type.dtype.is_bool:
        # in a separate dispatch, as IREE would move a plain extension into the kernel
        stored = index.cast_alone(e, leaf.value, dtypes.BOOL, dtypes.INT8)
        args = [Leaf(leaf.type.with_dtype(dtypes.INT8), stored)]
        found = Compute(leaf.type, OPS["convert"], {"target_type": dtypes.BOOL}, args)
    elif e.options.target == "cpu" and source is not None and source.name == "linalg.generic":
        found = Leaf(leaf.type, e.barrier(leaf.value, e.extents(leaf.value)))
    else:
        return x
    return View(x.type, found, x.map, x.extents) if isinstance(x, View) else found


def made_ahead(e: LoweringContext, x: ir.Value) -> ir.Value:
    """Return an operand of a matmul outside of regions; with a barrier where regions are off."""
    if e.options.regions or e.options.target != "cpu":
        return x
    source = source_of(x)
    if source is None or source.name in _GIVEN:
        return x
    return e.barrier(x, e.extents(x))
