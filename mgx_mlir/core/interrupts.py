"""Signals during a call of the API: their handlers run at safe points, where the call can end.

A handler may raise: Ctrl-C does, and so may a caller's time limit. Elsewhere the exception could
leave modules half imported, or processes and folders without an owner. An `except` could take it
for an error of ours, or it could unwind a C++ callback.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Sequence
from types import FrameType, TracebackType
from typing import Any, TypeVar, cast

# `_signal`, as the enumerations of `signal` make reading all handlers take 60 us instead of 2
_signal: Any = importlib.import_module("_signal")
F = TypeVar("F", bound=Callable[..., Any])
Handler = Callable[[int, "FrameType | None"], Any]

_NUMBERS = tuple(sorted(int(s) for s in signal.valid_signals()))
_STEP = 0.05  # seconds between two safe points of a wait

_depth = 0  # nested calls that hold signals
_owner = 0  # the thread of these calls
_open = 0  # depth of nested foreign code, where handlers run at once
_handlers: dict[int, Handler] = {}  # the handlers that `_record` replaces
_pending: list[int] = []  # signals received and not yet handled
_raised: BaseException | None = None  # exception of a handler in foreign code
_stopping: set[int] = set()  # threads asked to end


class Interrupted(BaseException):
    """Carries a handler's exception through a call, past any `except` clause and C++ handler."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


class Stopped(BaseException):
    """Ends the work of a thread without a waiting caller, past any `except` clause of its code."""


class _Hold:
    """The context of a call: outside the main thread, where no handler runs, it does nothing."""

    def __enter__(self) -> None:
        global _depth, _owner, _open
        own = threading.get_ident()
        if _depth:
            if _owner == own:
                _depth += 1
            return
        if threading.current_thread() is threading.main_thread() and _install():
            _owner, _open = own, 0
            _depth = 1  # before this `_record` forwards signals

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        global _depth, _raised
        if not _depth or _owner != threading.get_ident():
            return
        if _depth > 1:
            _depth -= 1
            return
        _depth = 0  # from here on `_record` forwards signals
        try:
            _restore()
        finally:
            raised, _raised = _raised, None
            if isinstance(error, Interrupted):
                raised = error.error
            _run(_taken(), _frame(), raised)


_HOLD = _Hold()


def hold() -> _Hold:
    """Return the context in which signals wait for the next safe point, or for its end."""
    return _HOLD


def held(function: F) -> F:
    """Wrap a function in `hold`."""

    @functools.wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        with _HOLD:
            return function(*args, **named)

    return cast(F, call)


def check() -> None:
    """Mark a safe point: run the handlers of pending signals. Raises Interrupted, Stopped."""
    if _pending and _owner == threading.get_ident():
        _answer(_taken(), _frame())
    if _stopping and threading.get_ident() in _stopping:
        raise Stopped


def stop(thread: int) -> None:
    """Stop a thread at its next safe point. It must call `stopped` when it ends."""
    _stopping.add(thread)


def stopped() -> None:
    """Forget this thread, as its number may be reused."""
    _stopping.discard(threading.get_ident())


class _AtOnce:
    def __enter__(self) -> None:
        global _open
        if _depth and _owner == threading.get_ident():
            check()
            _open += 1

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        global _open
        if not (_depth and _owner == threading.get_ident()):
            return
        _open -= 1
        if _raised is not None and not isinstance(error, Interrupted):
            raise Interrupted(_raised) from None  # foreign code may have wrapped it


_AT_ONCE = _AtOnce()


def at_once() -> _AtOnce:
    """Return the context of long foreign code, which has no safe points: handlers run at once."""
    return _AT_ONCE


@contextlib.contextmanager
def waiting(lock: Any) -> Generator[None]:
    """Acquire a lock that another thread may hold for long; the wait has safe points."""
    while not lock.acquire(timeout=_STEP):
        check()
    try:
        yield
    finally:
        lock.release()


def pause(seconds: float) -> None:
    """Sleep, with safe points."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        check()
        time.sleep(min(left, _STEP))
    check()


class _Later(_Hold):
    """A hold whose end does not raise: pending signals are sent again a moment later."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        came = _taken() if _depth == 1 and _owner == threading.get_ident() else []
        try:
            super().__exit__(kind, error, trace)
        finally:
            if came:
                _send_again(came)


_LATER = _Later()


def later() -> _Later:
    """Return the context of code that must not raise at its end: finalizers, imports."""
    return _LATER


def is_callers(e: BaseException) -> bool:
    """Return whether an exception from a call into C was raised by a signal handler.

    The runtime's errors have a traceback through C, our code and the runtime's package alone.
    """
    trace = e.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return False
    name = str(trace.tb_frame.f_globals.get("__name__", ""))
    return name.partition(".")[0] not in ("mgx_mlir", "iree")


# ---- handlers ------------------------------------------------------------------------------------


def _frame() -> FrameType:
    return sys._getframe(2)  # pyright: ignore[reportPrivateUsage]


def _record(number: int, frame: FrameType | None) -> Any:
    """Record a signal; outside a hold run the handler that this one replaces."""
    global _raised
    if _depth and not _open:
        if number not in _pending:
            _pending.append(number)
        return None
    handler = _handlers.get(number)
    if handler is None:
        return None
    try:
        return handler(number, frame)
    except BaseException as e:
        if _depth:
            _raised = e
        raise


def _install() -> bool:
    """Replace every Python handler by `_record`; False where that is not allowed."""
    for number in _NUMBERS:
        handler = _signal.getsignal(number)
        if callable(handler) and handler is not _record:
            _handlers[number] = handler
            try:
                _signal.signal(number, _record)
            except ValueError:  # an embedding program may have another main thread
                return False
    return True


def _restore() -> None:
    """Restore the handlers, except those replaced since.

    Their table stays, as a caller that saved a handler may install `_record` again.
    """
    for number, handler in _handlers.items():
        if _signal.getsignal(number) is _record:
            _signal.signal(number, handler)


def _taken() -> list[int]:
    found = _pending[:]
    del _pending[: len(found)]
    return found


def _handler(number: int) -> Handler | None:
    found = _signal.getsignal(number)
    if found is _record:
        found = _handlers.get(number)
    return found if callable(found) else None


def _answer(numbers: Sequence[int], frame: FrameType | None) -> None:
    """Run handlers; the first exception is carried on, further signals stay pending."""
    for i, number in enumerate(numbers):
        handler = _handler(number)
        try:
            if handler is not None:
                handler(number, frame)
        except BaseException as e:
            _pending.extend(n for n in numbers[i + 1 :] if n not in _pending)
            raise Interrupted(e) from None


def _run(numbers: Sequence[int], frame: FrameType | None, raised: BaseException | None) -> None:
    """Run the handlers of signals that reached no safe point, then raise their exception."""
    try:
        if numbers:
            handler = _handler(numbers[0])
            try:
                if handler is not None:
                    handler(numbers[0], frame)
            finally:
                _run(numbers[1:], frame, None)
    finally:
        if raised is not None:
            context = raised.__context__
            try:
                raise raised
            finally:
                raised.__context__ = context  # hide Interrupted, which carried it


def _send_again(numbers: Sequence[int]) -> None:
    def send() -> None:
        time.sleep(0.002)
        for number in numbers:
            signal.raise_signal(number)

    threading.Thread(target=send, name="mgx-signals", daemon=True).start()


def _forked() -> None:
    """Forget the calls of a thread that a forked child lacks."""
    global _depth, _open, _raised
    if _depth and _owner != threading.get_ident():
        _depth = _open = 0
        _raised = None
        _pending.clear()
        _restore()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
