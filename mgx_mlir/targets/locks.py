"""Locks between processes: held on open files, waited for with a limit, freed with their holder."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path

from mgx_mlir.core import interrupts
from mgx_mlir.core.files import read_at

REPORTED_AFTER = 2.0  # seconds of waiting that are not reported


class Busy(Exception):
    """The lock was not free in time; `holder` is the process that has it, 0 where it is unknown."""

    def __init__(self, holder: int, waited: float) -> None:
        super().__init__(f"{holder_text(holder)} has it for {waited:.0f} s")
        self.holder, self.waited = holder, waited


class Stopped(Busy):
    """The process that holds the lock is stopped, and may never continue."""


def acquire(
    fd: int, seconds: float | None, say: Callable[[int], None] = lambda holder: None
) -> float:
    """Acquire the lock of an open file; return the seconds waited.

    seconds: the longest wait, None for no limit. say: called once with the holder's pid, when the
    wait is long enough to report. Errors: Busy, Stopped; OSError on a file system without
    locks.
    """
    start, pause, said = time.monotonic(), 0.005, False
    while not _try(fd):
        waited = time.monotonic() - start
        if seconds is not None and waited >= seconds:
            raise Busy(holder_of(fd), waited)
        if waited > REPORTED_AFTER:
            holder = holder_of(fd)
            if _is_stopped(holder):
                raise Stopped(holder, waited)
            if not said:
                said = True
                say(holder)
        left = pause if seconds is None else min(pause, seconds - waited)
        interrupts.pause(max(left, 0.001))
        pause = min(pause * 1.5, 0.2)
    with contextlib.suppress(OSError):  # record the holder, for waiting processes
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()} {_space()}".encode(), 0)
    return time.monotonic() - start


def holder_text(holder: int) -> str:
    """Return `process 12`, or a description where the number is unknown."""
    return f"process {holder}" if holder else "another process"


def holder_of(fd: int) -> int:
    """Return the pid of the lock's holder.

    0 if unknown, as on another machine or in another container.
    """
    try:
        number, space = read_at(fd, 100, 0).decode().split()
        return int(number) if space == _space() else 0
    except (OSError, ValueError):
        return 0


def _space() -> str:
    """Return the identity of the pid namespace: a machine's or a container's."""
    try:
        return f"{os.readlink('/proc/self/ns/pid')}@{os.uname().nodename}".replace(" ", "")
    except (OSError, AttributeError):
        return "-"


def _is_stopped(pid: int) -> bool:
    """Return whether a process is stopped by a signal or a debugger."""
    if not pid:
        return False
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] in "Tt"


if os.name == "posix":
    import fcntl

    def _try(fd: int) -> bool:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def release(fd: int) -> None:
        """Release the lock."""
        fcntl.flock(fd, fcntl.LOCK_UN)

else:
    import msvcrt

    def _try(fd: int) -> bool:
        try:
            os.lseek(fd, 1 << 20, os.SEEK_SET)  # beyond what the holder writes
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        except OSError:
            return False
        return True

    def release(fd: int) -> None:
        """Release the lock."""
        with contextlib.suppress(OSError):
            os.lseek(fd, 1 << 20, os.SEEK_SET)
            msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)  # type: ignore[attr-defined]
