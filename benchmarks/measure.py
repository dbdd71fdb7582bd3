"""Measuring: calls of several engines in interleaved rounds, and the memory of a process tree."""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

CORE_SHARE = 0.8  # of the threads asked for; below it the machine was busy and a time means nothing


@dataclass(frozen=True)
class Sample:
    """One round of one engine: seconds of its best call, and cores it got over the whole round."""

    wall: float
    cpu: float
    cores: float


@dataclass
class Times:
    """The rounds of one engine."""

    samples: list[Sample] = field(default_factory=list)

    def wall(self, rounds: Sequence[int]) -> float:
        return statistics.median(self.samples[i].wall for i in rounds)

    def cpu(self, rounds: Sequence[int]) -> float:
        return statistics.median(self.samples[i].cpu for i in rounds)


def measure_round(call: Callable[[], object], seconds: float) -> Sample:
    """Call for `seconds` (twice at least); the best call's wall clock and process CPU time."""
    best_wall = best_cpu = float("inf")
    start, start_cpu = time.perf_counter(), time.process_time()
    calls = 0
    while calls < 2 or time.perf_counter() - start < seconds:
        before, before_cpu = time.perf_counter(), time.process_time()
        call()
        best_wall = min(best_wall, time.perf_counter() - before)
        best_cpu = min(best_cpu, time.process_time() - before_cpu)
        calls += 1
    elapsed = time.perf_counter() - start
    return Sample(best_wall, best_cpu, (time.process_time() - start_cpu) / elapsed)


def interleave(
    engines: Mapping[str, Callable[[], object]], rounds: int, seconds: float
) -> dict[str, Times]:
    """Every engine once per round, in turn and in alternating order, after one warm-up call each.

    Alternating order and a pause between engines: worker threads of one may still spin when the
    next begins, and that must not always hit the same one.
    """
    result = {name: Times() for name in engines}
    for call in engines.values():
        call()
    order = list(engines)
    for _ in range(rounds):
        for name in order:
            time.sleep(0.01)
            result[name].samples.append(measure_round(engines[name], seconds))
        order.reverse()
    return result


def valid_rounds(times: Mapping[str, Times], threads: int) -> list[int]:
    """The rounds in which every engine got its cores."""
    count = min(len(t.samples) for t in times.values())
    return [
        i
        for i in range(count)
        if all(t.samples[i].cores >= CORE_SHARE * threads for t in times.values())
    ]


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
