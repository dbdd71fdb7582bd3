"""Python's garbage collector, switched off during imports and compiles.

A compile makes objects that live until its end. The collector would scan them, and all modules, 100
to 170 times per compile: 4 to 8 % of its Python time. In imports it takes a tenth of theirs.
"""

from __future__ import annotations

import gc
import os

from mgx_mlir.core import forks


class _Resting:
    """The context of calls without garbage collections, in any threads. The last to end
    switches the collector on, if it was on at the first.
    """

    def __init__(self) -> None:
        self._lock = forks.lock()
        self._calls = 0
        self._was_on = self._froze = False

    def __enter__(self) -> None:
        with self._lock:
            if not self._calls:
                self._was_on, self._froze = gc.isenabled(), not gc.get_freeze_count()
                gc.disable()
                if self._froze:
                    gc.freeze()
            self._calls += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._calls = max(self._calls - 1, 0)
            if not self._calls:
                if self._froze:
                    gc.unfreeze()
                if self._was_on:
                    gc.enable()

    def forget(self) -> None:
        """Forget the calls of the parent's threads, which a forked child lacks."""
        if self._calls and self._was_on:
            gc.enable()
        self._calls = 0


_RESTING = _Resting()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_RESTING.forget)


def resting() -> _Resting:
    """Return the context of a call without garbage collections."""
    return _RESTING


__all__ = ["resting"]
