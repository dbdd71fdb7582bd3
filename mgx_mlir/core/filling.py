"""Arrays that a thread fills while its caller continues; they must not be read before `wait`."""

from __future__ import annotations

import math
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mgx_mlir.core import interrupts

AT_ONCE = 256 << 10  # bytes; smaller arrays are filled at once, as their caller may read them
_STEP = 0.05  # seconds between two safe points of a wait


@dataclass(frozen=True)
class Packing:
    """Weights in another layout, written directly to their final memory.

    fill: writes each element of an array of this shape and type.
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    fill: Callable[[np.ndarray], None]

    @property
    def nbytes(self) -> int:
        """Bytes of the array."""
        return math.prod(self.shape) * self.dtype.itemsize

    def array(self) -> np.ndarray:
        """Return the weights in newly allocated memory."""
        found = np.empty(self.shape, self.dtype)
        self.fill(found)
        return found


class Filling:
    """The thread of one program's arrays. Use `close` at its end."""

    def __init__(self) -> None:
        self._todo: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self._is_closed = False

    def add(self, work: Callable[[], None]) -> None:
        """Run work on the thread; it should release the GIL often."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="mgx-weights", daemon=True)
            try:
                self._thread.start()
            except RuntimeError:  # no thread can be started
                self._thread = None
                work()
                return
        self._todo.put(work)

    def _run(self) -> None:
        while (work := self._todo.get()) is not None:
            if self._is_closed or self._error is not None:
                continue
            try:
                work()
            except BaseException as e:  # raised by `wait`
                self._error = e

    def wait(self) -> None:
        """Wait until all arrays are filled. Raises the first error of the work."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._todo.put(None)
            while thread.is_alive():
                thread.join(_STEP)
                interrupts.check()
        error, self._error = self._error, None
        if error is not None:
            raise error

    def close(self) -> None:
        """Drop work that has not begun."""
        self._is_closed = True
        if self._thread is not None:
            self._todo.put(None)
            self._thread = None


__all__ = ["AT_ONCE", "Filling", "Packing"]
