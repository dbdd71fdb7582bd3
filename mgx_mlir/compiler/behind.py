"""Background compiles: one thread each, which stops when the process exits.

The thread has the caller's context, so that its progress is reported as the caller's is. A compile
that is cancelled, or still runs at exit, stops at the next safe point of its code; its workers end
with it.
"""

from __future__ import annotations

import atexit
import contextvars
import threading
import time
import weakref
from collections.abc import Callable
from typing import Generic, TypeVar

from mgx_mlir.core import forks, interrupts

T = TypeVar("T")
_STEP = 0.02  # seconds between two polls of a compile
_AT_EXIT = 5.0  # seconds that the exit of the process waits for safe points


class Behind(Generic[T]):
    """Work on a thread. `found` returns its result, or raises its error."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work: Callable[[], T] | None = work
        self._result: list[T] = []
        self._error: BaseException | None = None
        self._ending = forks.lock()
        self._start()

    @classmethod
    def of(cls, result: T) -> Behind[T]:
        """Return finished work with a result."""
        made = cls.__new__(cls)
        made._work, made._result, made._error = None, [result], None
        made._ending, made._done, made._fork = forks.lock(), threading.Event(), forks.count()
        made._done.set()
        return made

    def _start(self) -> None:
        self._done, self._fork = threading.Event(), forks.count()
        context = contextvars.copy_context()
        self._thread = threading.Thread(
            target=lambda: context.run(self._run), name="mgx-compile", daemon=True
        )
        _running.add(self)
        # atexit calls the latest first: before IREE's workers are ended
        atexit.unregister(_end)
        atexit.register(_end)
        self._thread.start()

    def _run(self) -> None:
        try:
            assert self._work is not None
            self._result.append(self._work())
        except interrupts.Stopped:
            pass
        except BaseException as e:
            self._error = e
        finally:
            self._work = None  # frees the model that it holds
            _running.discard(self)
            with self._ending:
                self._done.set()
                interrupts.stopped()

    @property
    def is_done(self) -> bool:
        """Return whether the work has ended, with a result or an error."""
        return self._done.is_set()

    @property
    def result(self) -> T | None:
        """The result; None before the end, and where the work has failed."""
        return self._result[0] if self._result else None

    def found(self) -> T | None:
        """Return the result; None before the end.

        Raises the error of the work. In a forked child, which lacks the thread, the work starts
        again.
        """
        if self._result:
            return self._result[0]
        if self._fork != forks.count() and self._work is not None:
            self._start()
        if self._error is not None:
            raise self._error.with_traceback(None)
        return None

    def wait(self, seconds: float | None = None) -> T | None:
        """Wait for the result, at most `seconds` (None: without limit). None at the timeout.

        Raises the error of the work.
        """
        self.found()
        end = None if seconds is None else time.monotonic() + seconds
        with interrupts.hold():
            while not self._done.wait(_STEP):
                interrupts.check()
                if end is not None and time.monotonic() >= end:
                    break
        return self.found()

    def stop(self) -> None:
        """End the work at its next safe point. It has no result then."""
        with self._ending:
            if not self.is_done and self._fork == forks.count():
                assert self._thread.ident is not None
                interrupts.stop(self._thread.ident)


_running: weakref.WeakSet[Behind] = weakref.WeakSet()


def _end() -> None:
    """Stop all work at exit, and wait for the threads, which run C++ code."""
    left = [b for b in _running if not b.is_done]
    for each in left:
        each.stop()
    end = time.monotonic() + _AT_EXIT
    for each in left:
        each._thread.join(max(0.0, end - time.monotonic()))
