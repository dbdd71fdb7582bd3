"""Kernels that the backend refuses: those alone are lowered in a plainer form."""

from __future__ import annotations

from collections.abc import Sequence

from mgx_mlir.programs.lowered import KernelInfo
from mgx_mlir.targets.base import source_of
from mgx_mlir.targets.diagnostics import CompileFailed

# What the next form is without; a kernel that is refused without any of them is refused.
LEVELS = {"cpu": ("vector loops", "boundary"), "gpu": ("tile", "boundary")}
MOST = 6  # compiles for them, each of the whole program


class PlainerKernels:
    """Which source locations have a kernel that was refused, and how often.

    A location's kernels lose their vector loops, on GPUs the tile that we chose, at the first
    refusal and their boundary at the second. All other kernels of the program stay as they are.
    """

    def __init__(self, target: str, kernels: Sequence[KernelInfo]) -> None:
        self.forms = LEVELS[target]
        self.kernels = kernels
        self.levels: dict[str, int] = {}
        self.reasons: list[str] = []

    def add(self, failed: CompileFailed) -> bool:
        """Note the location of a failure; False where that is not known, or nothing is left."""
        place = failed.place
        if place is None or failed.cause == "other" or len(self.reasons) >= MOST:
            return False
        where = source_of(place, self.kernels)
        level = self.levels.get(place, 0)
        if where == place or level == len(self.forms):
            return False
        self.levels[place] = level + 1
        self.reasons.append(f"{self.forms[level]} of {where}: {failed.message}")
        return True
