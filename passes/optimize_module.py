"""optimize_module: the simplifying passes, in turns, until none finds anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mgx_mlir.core.ir import ir
from mgx_mlir.core.passes import Pass, make_pass, option, run_pass

_SIMPLIFY = ("simplify_reshapes", "eliminate_convert", "dead_code_elimination", "simplify_algebra")
_CLEAN = (
    "eliminate_common_subexpression",
    "dead_code_elimination",
    "propagate_constant",
    "dead_code_elimination",
)


@dataclass(frozen=True)
class OptimizeModule(Pass):
    """Simplify reshapes and algebra, merge equal ops and fold constants until nothing changes."""

    name: ClassVar[str] = "optimize_module"
    rounds: int = option(2, "times that everything is repeated at most")
    inner_rounds: int = option(4, "times that the simplifying passes are repeated at most")
    fast_math: bool = option(False, "as in simplify_algebra")
    skip: tuple[str, ...] = option((), "ops that propagate_constant leaves as they are")

    def run(self, module: ir.Operation) -> bool:
        options = {
            "simplify_algebra": (("fast-math", str(self.fast_math).lower()),),
            "propagate_constant": (("skip", ",".join(self.skip)),),
        }
        simplify = [make_pass(name, options.get(name, ())) for name in _SIMPLIFY]
        clean = [make_pass(name, options.get(name, ())) for name in _CLEAN]
        changed = False
        for i in range(self.rounds):
            simplified = False
            for _ in range(self.inner_rounds):
                if not _run_all(simplify, module):
                    break
                simplified = True
            changed |= simplified
            # what is clean stays clean until something else changes, and the other way round
            if (i and not simplified) or not _run_all(clean, module):
                break
            changed = True
        return changed


def _run_all(steps: Sequence[Pass], module: ir.Operation) -> bool:
    """Run every step; whether one of them changed something."""
    changed = [run_pass(step, module) for step in steps]
    return any(changed)
