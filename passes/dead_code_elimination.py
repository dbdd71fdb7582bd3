"""dead_code_elimination: erase ops whose results nobody uses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mgx_mlir.core.ir import ext, ir
from mgx_mlir.core.op import op_class
from mgx_mlir.core.passes import Pass

# upstream dialects whose ops on tensors and scalars have no side effects
_PURE_PREFIXES = ("arith.", "math.", "tensor.", "affine.apply", "linalg.", "complex.")


@dataclass(frozen=True)
class DeadCodeElimination(Pass):
    """Erase ops without side effects whose results are unused, in every region."""

    name: ClassVar[str] = "dead_code_elimination"

    def run(self, module: ir.Operation) -> bool:
        return erase_dead(module) > 0


def erase_dead(root: ir.Operation) -> int:
    """Erase dead ops below `root`; users go before their producers, so one walk finds all."""
    ops: list[ir.Operation] = []
    add, advance = ops.append, ir.WalkResult.ADVANCE

    def visit(op: ir.Operation) -> ir.WalkResult:
        add(op)
        return advance

    # in this order the ops of a region come after the op that holds it
    root.walk(visit, ir.WalkOrder.PRE_ORDER)
    erased = 0
    for op in reversed(ops):
        if has_no_use(op) and is_removable(op):
            op.erase()
            erased += 1
    return erased


def has_no_use(op: ir.Operation) -> bool:
    """Whether the op has results, and none is used."""
    results = op.results
    return len(results) > 0 and all(next(r.uses, None) is None for r in results)


def is_removable(op: ir.Operation) -> bool:
    """Whether an op without users can go: it has no side effects."""
    name = op.name
    if name.startswith("migraphx."):
        cls = op_class(op)
        return cls is not None and ext.Pure in cls._traits
    return name.startswith(_PURE_PREFIXES)
