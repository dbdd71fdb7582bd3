"""Child processes under watch: time limit, memory limit, and an end for the whole group."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, Literal

from mgx_mlir.core import interrupts

DEFAULT_MEMORY_LIMIT = 12 << 30  # bytes; the default of a compile
HAS_PROC = Path("/proc/self/statm").exists()
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096

# select() refuses descriptors from 1024 on, and epoll takes one of its own
_Selector: Any = getattr(selectors, "PollSelector", selectors.SelectSelector)

# seconds between two polls of a process's memory, which take half a millisecond; without /proc,
# between two polls of its end
_LONGEST_STEP = 0.1 if HAS_PROC else 0.03

Outcome = Literal["done", "timeout", "memory"]


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
    except (OSError, ValueError, IndexError):
        return 0


def _children(pid: int) -> list[int]:
    try:
        return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (OSError, ValueError):
        return []


def tree_memory(pid: int) -> int:
    """Return the resident bytes of a process and its descendants; 0 if unknown."""
    total, todo = 0, [pid]
    while todo:
        p = todo.pop()
        total += _resident(p)
        todo += _children(p)
    return total


def peak_memory(pid: int) -> int:
    """Return the most resident bytes a process ever had (its own, without children)."""
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    return 0


def readable(stream: int | IO[Any], seconds: float) -> bool:
    """Wait until there is something to read, or the other end has closed; False after `seconds`."""
    with _Selector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        return bool(selector.select(seconds))


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """End a child started in its own session, with everything it started."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    process.wait()


class Watch:
    """Waits for a condition while holding a process to its limits.

    timeout: seconds or None. memory_limit: resident bytes of the process tree or None.
    `peak` is the most that was seen.
    """

    def __init__(self, pid: int, timeout: float | None, memory_limit: int | None) -> None:
        self.pid = pid
        self.start = time.monotonic()
        self.timeout = timeout
        self.memory_limit = memory_limit if HAS_PROC else None
        self.peak = 0

    def wait(self, poll: Callable[[float], bool]) -> Outcome:
        """Call poll(seconds) until it is true; poll may block for the seconds given."""
        step = 0.01
        while True:
            if poll(step):
                return "done"
            interrupts.check()
            passed = self.passed()
            if passed is not None:
                return passed
            step = min(1.3 * step, _LONGEST_STEP)
            if self.timeout is not None:
                spent = time.monotonic() - self.start
                step = min(step, max(0.001, self.timeout - spent))

    def passed(self) -> Literal["timeout", "memory"] | None:
        """Return the limit that the process has passed, if any."""
        if HAS_PROC:
            now = tree_memory(self.pid)
            self.peak = max(self.peak, now, peak_memory(self.pid))
            if self.memory_limit is not None and now > self.memory_limit:
                return "memory"
        if self.timeout is not None and time.monotonic() - self.start > self.timeout:
            return "timeout"
        return None


@contextlib.contextmanager
def exit_poll(process: subprocess.Popen[bytes]) -> Iterator[Callable[[float], bool]]:
    """Yield a poll for `Watch.wait` that is true once the process has ended."""
    opener = getattr(os, "pidfd_open", None)
    fd = -1
    if opener is not None:
        with contextlib.suppress(OSError):
            fd = opener(process.pid)

    def by_sleep(seconds: float) -> bool:
        if process.poll() is None:
            time.sleep(seconds)
        return process.poll() is not None

    def by_pidfd(seconds: float) -> bool:
        if process.returncode is None and readable(fd, seconds):
            process.wait()
        return process.returncode is not None

    try:
        yield by_pidfd if fd >= 0 else by_sleep
    finally:
        if fd >= 0:
            os.close(fd)
