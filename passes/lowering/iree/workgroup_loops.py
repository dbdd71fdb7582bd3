"""Loops whose iterations are workgroups of a dispatch, by IREE's attribute."""

from __future__ import annotations

from mgx_mlir.core.ir import ir

_MARK = "mgx.workgroups"


def mark(loop: ir.OpView) -> None:
    """Mark an scf.forall whose iterations are workgroups."""
    loop.operation.attributes[_MARK] = ir.UnitAttr.get()


def give(module: ir.Module) -> None:
    """Put IREE's attribute on all marked loops.

    This is the last step, as the bindings refuse a module with the attribute.
    """

    def visit(op: ir.Operation) -> ir.WalkResult:
        if _MARK in op.attributes:
            del op.attributes[_MARK]
            dims = reversed(range(len(op.regions[0].blocks[0].arguments) - 1))
            each = (f"#iree_linalg_ext.split_reduction_mapping<{i}>" for i in dims)
            op.attributes["mapping"] = ir.Attribute.parse(f"[{', '.join(each)}]")
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)


__all__ = ["give", "mark"]
