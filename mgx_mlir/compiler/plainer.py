"""Fallback for kernels that the backend refuses: only those are lowered in a plainer form."""

from __future__ import annotations

from collections.abc import Sequence

from mgx_mlir.programs.lowered import KernelInfo
from mgx_mlir.targets.base import source_of
from mgx_mlir.targets.diagnostics import CompileFailed

# Parts that each form drops, in order; after the last one a refusal is final.
LEVELS = {"cpu": ("vector loops", "boundary"), "gpu": ("tile", "boundary")}
MOST = 6  # compiles of the whole program at most
MOST_HALVES = 8  # compiles of a bisection: finds one kernel of 256


class PlainerKernels:
    """Source locations of refused kernels, and the count of refusals.

    At the first refusal the kernels of a location lose their vector loops, or on GPUs the tile that
    we chose. At the second they lose their boundary. All other kernels of the program are
    unchanged.
    """

    def __init__(self, target: str, kernels: Sequence[KernelInfo]) -> None:
        self.forms = LEVELS[target]
        self.kernels = kernels
        self.levels: dict[str, int] = {}
        self.reasons: list[str] = []

    def add(self, failed: CompileFailed) -> bool:
        """Record the location of a failure; False where it is unknown, or no form is left."""
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


class CrashSearch:
    """Bisection for the kernel that crashes the backend, which a crash does not name.

    First all kernels drop a form, then the next one where that crashes too. Then half of the
    suspects drop it: if that compiles, the kernel is among them, else among the others.
    """

    def __init__(self, target: str, kernels: Sequence[KernelInfo]) -> None:
        self.forms = LEVELS[target]
        self.names = {k.location.replace('"', ""): k.name for k in kernels}
        self.level = 1
        self.suspects = list(self.names)
        # locations that dropped the form, in the last compile that succeeded
        self.lost: list[str] = []
        self._trial: list[str] = []
        self._left = MOST_HALVES

    def trial(self) -> dict[str, int] | None:
        """Return the forms to compile with next, by location; None where the search is over."""
        if self.level > len(self.forms) or not self.suspects:
            return None
        if self.lost and len(self.suspects) > 1 and self._left:
            self._left -= 1
            self._trial = self.suspects[: len(self.suspects) // 2]
        elif self.suspects == self.lost:
            return None
        else:
            self._trial = self.suspects
        return dict.fromkeys(self._trial, self.level)

    def note(self, *, compiled: bool) -> None:
        """Record whether the compile of the last trial succeeded."""
        if compiled:
            self.lost = self.suspects = self._trial
        elif not self.lost:
            self.level += 1
        # several kernels crash: keep the last trial that compiled
        elif self._trial == self.suspects:
            self.suspects, self._left = self.lost, 0
        else:
            self.suspects = self.suspects[len(self._trial) :]

    def reason(self, message: str) -> str:
        """Return the message: which kernels dropped which form, and why."""
        shown = [f"{self.names[place]} ({place})" for place in self.lost[:3]]
        more = [f"{len(self.lost) - 3} more"] if len(self.lost) > 3 else []
        return f"{self.forms[self.level - 1]} of {', '.join([*shown, *more])}: {message}"
