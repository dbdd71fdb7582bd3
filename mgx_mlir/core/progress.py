"""Progress of a compile, for display: its stage, and the number of kernels done.

The compile calls `stage`, `kernels` and `compiled`; `watched` sets a listener. Listeners are in a
context variable, so each thread's compiles have their own.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Progress:
    """State of a compile. Counts of kernels are 0 until they are known."""

    stage: str = ""
    compiled: int = 0  # kernels compiled so far
    total: int = 0  # kernels of the program
    found: int = 0  # kernels found in the cache

    @property
    def done(self) -> int:
        """Kernels compiled or found in the cache."""
        found = self.compiled + self.found
        return min(found, self.total) if self.total else found

    def __str__(self) -> str:
        if not (self.done or self.total):
            return self.stage
        of = f" of {self.total}" if self.total else ""
        plural = "s" * ((self.total or self.done) != 1)
        text = f"{self.stage}: {self.done}{of} kernel{plural}"
        return f"{text}, {self.found} cached" if self.found else text


Listener = Callable[[Progress], None]


class _Watch:
    def __init__(self, listener: Listener, outer: _Watch | None) -> None:
        self.listener, self.outer, self.now = listener, outer, Progress()

    def tell(self, now: Progress) -> None:
        self.now = now
        watch: _Watch | None = self
        while watch is not None:
            watch.listener(now)
            watch = watch.outer


_WATCH: ContextVar[_Watch | None] = ContextVar("mgx_progress", default=None)


@contextmanager
def watched(listener: Listener) -> Generator[None]:
    """Add a listener for the compiles inside the block."""
    token = _WATCH.set(_Watch(listener, _WATCH.get()))
    try:
        yield
    finally:
        _WATCH.reset(token)


def stage(name: str) -> None:
    """Report that a stage begins."""
    watch = _WATCH.get()
    if watch is not None:
        watch.tell(replace(watch.now, stage=name))


def kernels(total: int, found: int) -> None:
    """Report how many kernels a program has, and how many of them the cache had."""
    watch = _WATCH.get()
    if watch is not None:
        watch.tell(replace(watch.now, total=total, found=found))


def compiled(count: int) -> None:
    """Report `count` more compiled kernels."""
    watch = _WATCH.get()
    if watch is not None:
        watch.tell(replace(watch.now, compiled=watch.now.compiled + count))
