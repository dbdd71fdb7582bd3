"""optimize_module: alternate the simplifying passes until none finds anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mgx_mlir.core.ir import ir
from mgx_mlir.rewrite.passes import Pass, make_pass, option, run_pass

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
    rounds: int = option(4, "most repetitions of all steps")
    inner_rounds: int = option(4, "most repetitions of the simplifying passes")
    fast_math: bool = option(False, "as in simplify_algebra")
    skip: tuple[str, ...] = option((), "ops that propagate_constant leaves as they are")

    def run(self, module: ir.Operation) -> bool:
        fast = (("fast-math", str(self.fast_math).lower()),)
        options = {
            "simplify_algebra": fast,
            "simplify_reshapes": fast,
            "propagate_constant": (("skip", ",".join(self.skip)),),
        }
        simplify = [make_pass(name, options.get(name, ())) for name in _SIMPLIFY]
        clean = [make_pass(name, options.get(name, ())) for name in _CLEAN]
        turns = _Turns(module)
        for _ in range(self.rounds):
            before = turns.changes
            for _ in range(self.inner_rounds):
                if not turns.run(simplify):
                    break
            turns.run(clean)
            if turns.changes == before:
                break
        return turns.changes > 0


class _Turns:
    """Runs passes on a module repeatedly, each only if something changed since its last run.

    Each pass runs to a fixed point, so an unchanged module needs no second run.
    """

    def __init__(self, module: ir.Operation) -> None:
        self.module, self.changes = module, 0
        self.done: dict[Pass, int] = {}  # pass -> count of changes when it ended

    def run(self, steps: Sequence[Pass]) -> bool:
        """Run every step that may find something; return whether one did."""
        before = self.changes
        for step in steps:
            if self.done.get(step) != self.changes:
                self.changes += bool(run_pass(step, self.module))
                self.done[step] = self.changes
        return self.changes > before
