"""The time limit of --timeout for reading and compiling a model."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from mgx_mlir.core.errors import CompileError, UsageError

GRACE = 5.0  # seconds, so that the compile's own limit, with a better message, comes first


class _OutOfTime(BaseException):
    """Not an Exception, so that no `except Exception` catches it."""


@contextmanager
def within(seconds: float | None) -> Iterator[None]:
    """End the block with a CompileError once it took `seconds`; None sets no limit.

    A call into numpy or MLIR ends first. Only the main thread can be interrupted: in another one
    there is no limit.
    """
    if seconds is None or threading.current_thread() is not threading.main_thread():
        yield
        return

    if not hasattr(signal, "setitimer"):
        raise UsageError("a time limit needs timers, which this system does not have: leave it out")

    def stop(*_: object) -> None:
        raise _OutOfTime

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds + GRACE)
    try:
        yield
    except _OutOfTime:
        raise CompileError(f"the model was not compiled within {seconds:g} s") from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
