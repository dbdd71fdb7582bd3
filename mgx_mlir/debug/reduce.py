"""Reduction of an input that makes a command fail: the user's test, the best candidate, bisection.

A candidate is accepted if it costs less and the command ends with the status of the original input,
or the status that the user requires. Each accepted candidate is on disk before the next is tried.
Nothing is random.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from mgx_mlir.core.errors import MgxError, UsageError
from mgx_mlir.core.ir import ir

INTERESTING = ("same", "zero", "nonzero")
_TIMED_OUT = "no end"


class Candidate(Protocol):
    """One form of the input: its cost (smaller is better), its text, and its files."""

    @property
    def cost(self) -> tuple[int, ...]: ...

    @property
    def digest(self) -> bytes: ...

    @property
    def is_empty(self) -> bool: ...

    def describe(self) -> str: ...

    def write(self, path: Path) -> None:
        """Write it, and the files beside it, to `path` atomically."""
        ...


C = TypeVar("C", bound=Candidate)


class OutOfTime(Exception):
    """The total time limit is reached."""


class Tester:
    """Runs the user's command on a file.

    `{}` in the command stands for the file (appended when absent); a shell runs the command.
    `interesting`: "same" is the status on the original input, "nonzero" mlir-reduce's convention,
    "zero" llvm-reduce's.
    """

    def __init__(
        self, command: str, name: str, *, timeout: float, interesting: str = "same"
    ) -> None:
        if interesting not in INTERESTING:
            raise UsageError(f"expected one of {', '.join(INTERESTING)}, got '{interesting}'")
        self.command, self.timeout, self.interesting = command, timeout, interesting
        self.folder = tempfile.TemporaryDirectory(prefix="mgx-reduce-")
        self.file = Path(self.folder.name) / name
        self.wanted: str | None = None
        self.runs = 0
        self.seen: dict[bytes, bool] = {}

    def first(self, candidate: Candidate) -> str:
        """Run on the original input; return in words what counts as interesting from now on.

        UsageError where the input is not interesting.
        """
        status = self._status(candidate)
        if self.interesting == "same":
            self.wanted = status
            return f"the command ends with {status}, and must keep doing so"
        if not self._holds(status):
            raise UsageError(
                f"the input is not interesting: the command ends with {status}, "
                f"expected {self.interesting}"
            )
        return f"the command ends with {status}, and must go on to end with {self.interesting}"

    def __call__(self, candidate: Candidate) -> bool:
        key = hashlib.sha256(candidate.digest).digest()
        if key not in self.seen:
            self.seen[key] = self._holds(self._status(candidate))
        return self.seen[key]

    def _holds(self, status: str) -> bool:
        if self.interesting == "same":
            return status == self.wanted
        return (status == "status 0") == (self.interesting == "zero") and status != _TIMED_OUT

    def _status(self, candidate: Candidate) -> str:
        self.runs += 1
        candidate.write(self.file)
        path = shlex.quote(str(self.file))
        command = self.command.replace("{}", path)
        if command == self.command:
            command = f"{command} {path}"
        # a separate process group, so that a timeout ends all processes of the command
        process = subprocess.Popen(
            ["/bin/sh", "-c", command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            code = process.wait(self.timeout)
        except subprocess.TimeoutExpired:
            return _TIMED_OUT
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        return f"signal {-code}" if code < 0 else f"status {code}"


class Reduction(Generic[C]):
    """The best candidate so far, and the steps to a better one."""

    def __init__(
        self,
        start: C,
        test: Callable[[C], bool],
        keep: Callable[[C], None],
        say: Callable[[str], None],
        *,
        seconds: float,
    ) -> None:
        self.best, self.test, self.keep, self.say = start, test, keep, say
        self.started = time.monotonic()
        self.ends = self.started + seconds
        self.tried = 0

    def offer(self, candidate: C | None, how: str) -> bool:
        """Accept a candidate if it costs less and is interesting. OutOfTime at the limit."""
        if time.monotonic() > self.ends:
            raise OutOfTime
        if candidate is None or candidate.cost >= self.best.cost:
            return False
        self.tried += 1
        if not self.test(candidate):
            return False
        self.best = candidate
        self.keep(candidate)
        elapsed = time.monotonic() - self.started
        self.say(f"[{elapsed:6.1f} s] {candidate.describe()}: {how}")
        return True

    def halve(
        self,
        count: Callable[[C], int],
        without: Callable[[C, Sequence[int]], C | None],
        how: str,
    ) -> bool:
        """Remove as many of `count` items as possible, in chunks from half down to one, last first.

        `without(best, indices)` makes the candidate. Returns whether anything was removed.
        """
        improved = False
        part = max(1, count(self.best))
        while True:
            end = count(self.best)
            while end > 0:
                begin = max(0, end - part)
                indices = range(begin, end)
                if self.offer(made(without, self.best, indices), f"{how} ({len(indices)})"):
                    improved = True
                    end = min(end, count(self.best))
                    end = min(begin, end) if begin else end
                else:
                    end = begin
            if part == 1:
                return improved
            part = (part + 1) // 2 if part > 2 else 1

    def each(
        self, options: Callable[[C], Sequence[Any]], made_by: Callable[[C, Any], C | None], how: str
    ) -> bool:
        """Try every option of the best candidate, one by one; return whether one was accepted."""
        improved = False
        at = 0
        while at < len(found := options(self.best)):
            if self.offer(made(made_by, self.best, found[at]), how):
                improved = True
            else:
                at += 1
        return improved


def made(make: Callable[..., C | None], *arguments: object) -> C | None:
    """Make a candidate; None if it would be invalid."""
    try:
        return make(*arguments)
    except (MgxError, ir.MLIRError, ValueError, LookupError, TypeError, RuntimeError):
        # an edit that the program does not allow is no error, only no candidate
        return None
