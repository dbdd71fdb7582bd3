"""Kernels that the backend refuses: those alone are lowered in a plainer form."""

from __future__ import annotations

from collections.abc import Sequence

from mgx_mlir.programs.lowered import KernelInfo
from mgx_mlir.targets.base import source_of
from mgx_mlir.targets.diagnostics import CompileFailed

# Parts that the next form lacks; a kernel that is refused without any of them is refused.
LEVELS = {"cpu": ("vector loops", "boundary"), "gpu": ("tile", "boundary")}
MOST = 6  # compiles for them, each of the whole program
MOST_HALVES = 8  # compiles that halve the kernels of a crash: one of 256 is found


class PlainerKernels:
    """Source locations of refused kernels, and the count of refusals.

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


class CrashSearch:
    """The kernels that a crash of the backend comes from; it names none of them.

    All kernels lose a form, and the next one where that crashes too. Then half of those that are
    suspected lose it, as long as the others compile with it: one kernel is found in the end.
    """

    def __init__(self, target: str, kernels: Sequence[KernelInfo]) -> None:
        self.forms = LEVELS[target]
        self.names = {k.location.replace('"', ""): k.name for k in kernels}
        self.level = 1
        self.suspects = list(self.names)
        self.lost: list[str] = []  # locations without the form, in the compile that succeeded
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
        """Take in whether the compile of the last trial succeeded."""
        if compiled:
            self.lost = self.suspects = self._trial
        elif not self.lost:
            self.level += 1
        elif self._trial == self.suspects:  # several kernels crash: the last that compiled counts
            self.suspects, self._left = self.lost, 0
        else:
            self.suspects = self.suspects[len(self._trial) :]

    def reason(self, message: str) -> str:
        """Return which kernels lost which form, and why."""
        shown = [f"{self.names[place]} ({place})" for place in self.lost[:3]]
        more = [f"{len(self.lost) - 3} more"] if len(self.lost) > 3 else []
        return f"{self.forms[self.level - 1]} of {', '.join([*shown, *more])}: {message}"
