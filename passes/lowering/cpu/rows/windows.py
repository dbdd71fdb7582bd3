"""Operands of a row kernel that are columns of a wider tensor, which no copy is made of."""

from __future__ import annotations

from mgx_mlir.core.ir import ir
from mgx_mlir.core.op import is_a
from mgx_mlir.core.shapes import TensorType
from mgx_mlir.dialects.migraphx.movement import Slice, cut_of
from mgx_mlir.passes.lowering.context import LoweringContext
from mgx_mlir.passes.lowering.cpu.frame.sites import KernelSite
from mgx_mlir.passes.lowering.cpu.rows.row_form import Window
from mgx_mlir.passes.lowering.expr import Leaf


def windows_of(e: LoweringContext, site: KernelSite) -> dict[ir.Value, Window]:
    """Return the operands of a kernel that are columns of a tensor, by their own tensors."""
    found: dict[ir.Value, Window] = {}
    for arg, v in zip(site.body.arguments, site.op.operands, strict=True):
        x, owner = e.expr(arg), v.owner
        if not isinstance(x, Leaf) or isinstance(owner, ir.Block) or not is_a(owner, Slice):
            continue
        cut, rank = cut_of(owner.opview), TensorType.of(v).rank
        if cut is None or cut[0] != rank - 1:
            continue
        source = owner.operands[0]
        width = TensorType.of(source).dims[-1]
        found[x.value] = Window(source, width, cut[1])
    return found
