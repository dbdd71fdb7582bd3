"""Measuring: the memory of a process tree, and files of figures."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


def write_json(path: Path, content: object) -> None:
    """Write figures as JSON, under a temporary name and renamed."""
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(content, indent=1, default=str))
    os.replace(temporary, path)


def descendants(pid: int) -> list[int]:
    """A process and everything it started, whichever of its threads started it."""
    found, todo = [], [pid]
    while todo:
        current = todo.pop()
        found.append(current)
        with contextlib.suppress(OSError):
            for task in os.listdir(f"/proc/{current}/task"):
                with contextlib.suppress(OSError):
                    text = Path(f"/proc/{current}/task/{task}/children").read_text()
                    todo += [int(child) for child in text.split()]
    return found


def proportional_bytes(pid: int) -> int:
    """PSS of one process: its own memory and its share of what it shares; 0 if it is gone."""
    with contextlib.suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


class PeakMemory:
    """Samples the sum of PSS over a process tree while it lives; `peak` in bytes (Linux)."""

    def __init__(self, pid: int, interval: float = 0.03) -> None:
        self.pid, self.interval = pid, interval
        self.peak = 0
        self.largest: dict[int, int] = {}  # the processes at the moment of the peak
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.is_set():
            now = {pid: proportional_bytes(pid) for pid in descendants(self.pid)}
            if sum(now.values()) > self.peak:
                self.peak, self.largest = sum(now.values()), now
            self._stop.wait(self.interval)


@dataclass(frozen=True)
class Ran:
    """A finished child: exit code, output, seconds, peak memory of it and all it started."""

    code: int
    stdout: str
    stderr: str
    seconds: float
    peak: int
    processes: int


def run_measured(
    arguments: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    timeout: float = 1200,
    cwd: Path | None = None,
) -> Ran:
    """Run a command to its end under memory sampling; subprocess.TimeoutExpired past `timeout`."""
    start = time.perf_counter()
    with subprocess.Popen(
        list(arguments),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **(environment or {})},
        cwd=cwd,
    ) as process:
        with PeakMemory(process.pid) as memory, killed_on_error(process):
            out, err = process.communicate(timeout=timeout)
            seconds = time.perf_counter() - start
        return Ran(process.returncode, out, err, seconds, memory.peak, len(memory.largest))


@contextlib.contextmanager
def killed_on_error(process: subprocess.Popen[str]) -> Iterator[None]:
    """End the child and what it started if we leave early."""
    try:
        yield
    except BaseException:
        for pid in reversed(descendants(process.pid)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, 9)
        raise
