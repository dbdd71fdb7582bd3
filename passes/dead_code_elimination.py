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
    erased = 0
    for region in root.regions:
        for block in region.blocks:
            for view in reversed(list(block.operations)):
                op = view.operation
                if is_removable(op) and not any(True for r in op.results for _ in r.uses):
                    op.erase()
                    erased += 1
                elif len(op.regions):
                    erased += erase_dead(op)
    return erased


def is_removable(op: ir.Operation) -> bool:
    """Whether an op without users can go: it has results and no side effects."""
    if not op.results:
        return False
    name = op.name
    if name.startswith("migraphx."):
        cls = op_class(op)
        return cls is not None and ext.Pure in cls._traits
    return name.startswith(_PURE_PREFIXES)
