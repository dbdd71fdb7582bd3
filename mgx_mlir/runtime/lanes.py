"""Contexts of one module, so that calls from several threads run in parallel.

A context runs one call at a time. The first is made with the module, another when a call finds all
of them busy. They share code and weights.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from mgx_mlir.core import forks


class Lanes:
    """The contexts of a module: up to `most`, made by `make`; further calls wait."""

    def __init__(self, make: Callable[[], Any], most: int) -> None:
        self._make, self._most = make, most
        self._growing = forks.lock(waits=True)
        self._next = 0
        # a fork waits for calls, as the runtime's locks would stay locked in a child; the holder of
        # a lock may call in its context
        self.first: tuple[Any, threading.Lock] = (make(), forks.lock(waits=True))
        self._lanes: list[tuple[Any, threading.Lock]] = [self.first]

    def call(self, function: Any, arguments: Any, results: Any) -> None:
        """Make a call in a free context, or when one becomes free. Errors: those of the runtime."""
        free = (lane for lane in self._lanes if not lane[1].locked())
        context, lock = next(free, None) or self._another()
        # `acquire` in a condition would leave it taken where a signal's handler raises behind it
        with lock:
            context.invoke(function, arguments, results)

    def _another(self) -> tuple[Any, threading.Lock]:
        with self._growing:
            if len(self._lanes) < self._most:
                self._lanes.append((self._make(), forks.lock(waits=True)))
                return self._lanes[-1]
            self._next = (self._next + 1) % len(self._lanes)
            return self._lanes[self._next]
