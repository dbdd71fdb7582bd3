"""Python's collector of cycles, off while a program is compiled.

A compile makes objects that live until its end. The collector looks at them, and at all modules,
again and again: 100 to 170 times in a compile, 4 to 8 % of its Python.
"""

from __future__ import annotations

import gc
import os

from mgx_mlir.core import forks


class _Resting:
    """The context of calls without collections, from any threads; the last one to end turns the
    collector on again, if the first one found it on."""

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
        """End the calls of a parent's threads, which a forked child does not have."""
        if self._calls and self._was_on:
            gc.enable()
        self._calls = 0


_RESTING = _Resting()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_RESTING.forget)


def resting() -> _Resting:
    """Return the context of a call without collections of cycles."""
    return _RESTING


__all__ = ["resting"]
