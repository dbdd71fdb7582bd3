"""The worker processes that run the cases: restarted after a crash, ended at the time limit."""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mgx_mlir.integrations.backend_report.cases import Case, read
from mgx_mlir.integrations.backend_report.results import Result, judge
from mgx_mlir.targets.process import readable

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]  # the folder that holds the package
WORKER = "mgx_mlir.integrations.backend_report.worker"


@dataclass(frozen=True)
class Settings:
    """Settings of the worker processes that run the cases."""

    target: str = "cpu"
    threads: int = 1  # CPU threads of a compiled program
    jobs: int = 2  # worker processes at a time
    timeout: float = 120  # seconds for a case
    memory_gb: float = 12  # GiB of address space for a worker
    cache: bool = False  # programs may come from the compile cache


def environment() -> dict[str, str]:
    """Return a worker's environment: other engines raise, and a compile uses one core."""
    found = dict(os.environ, MGX_COMPILE_THREADS="1")
    paths = [str(HERE / "block"), str(ROOT), found.get("PYTHONPATH", "")]
    found["PYTHONPATH"] = os.pathsep.join(p for p in paths if p)
    return found


class Worker:
    """One worker process, restarted after a crash or a time-out."""

    def __init__(self, settings: Settings, log: Path) -> None:
        self.settings, self.log = settings, log
        self.process: subprocess.Popen[str] | None = None
        self.channel = -1

    def start(self) -> subprocess.Popen[str]:
        """Start the worker's process."""
        s = self.settings
        self.channel, write_end = os.pipe()
        arguments = [write_end, s.target, s.threads, s.memory_gb, "cache" if s.cache else "fresh"]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", WORKER, *map(str, arguments)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                text=True,
                cwd=ROOT,
                env=environment(),
                pass_fds=[write_end],
                start_new_session=True,  # a process group, so that its compile children die with it
            )
        os.close(write_end)
        return self.process

    def stop(self) -> None:
        """Kill the worker and what it started."""
        if self.process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self.channel)
        self.process = None

    def run(self, path: Path) -> dict[str, Any]:
        """Run a case; return the worker's answer, or {"status": "crashed" | "timed out", ...}."""
        process = self.process or self.start()
        start = self.log.stat().st_size if self.log.exists() else 0
        assert process.stdin is not None
        deadline = time.monotonic() + self.settings.timeout
        try:
            process.stdin.write(f"{path}\n")
            process.stdin.flush()
            (size,) = struct.unpack("<Q", self.receive(8, deadline))
            return pickle.loads(self.receive(size, deadline))
        except TimeoutError:
            self.stop()
            return {"status": "timed out", "detail": f"more than {self.settings.timeout} s"}
        except (EOFError, BrokenPipeError):
            code = process.wait()
            tail = self.log.read_bytes()[start:].decode(errors="replace")[-600:]
            self.stop()
            how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            return {"status": "crashed", "detail": f"{how}: {tail}"}

    def receive(self, size: int, deadline: float) -> bytes:
        """Read `size` bytes from the worker. Errors: TimeoutError at the deadline."""
        data = bytearray()
        while len(data) < size:
            left = deadline - time.monotonic()
            if left <= 0 or not readable(self.channel, left):
                raise TimeoutError
            piece = os.read(self.channel, min(size - len(data), 1 << 20))
            if not piece:
                raise EOFError
            data += piece
        return bytes(data)


def run_all(
    paths: Sequence[Path],
    settings: Settings,
    work: Path,
    each: Callable[[list[Result]], None] = lambda results: None,
) -> list[Result]:
    """Run every case over the workers; return results sorted by group and name.

    `each(so far)` is called after each case.
    """
    waiting: queue.SimpleQueue[Path] = queue.SimpleQueue()
    for path in paths:
        waiting.put(path)
    results: list[Result] = []
    lock = threading.Lock()

    def serve(number: int) -> None:
        worker = Worker(settings, work / f"worker{number}.log")
        try:
            while True:
                try:
                    path = waiting.get_nowait()
                except queue.Empty:
                    return
                case = read(path)
                start = time.monotonic()
                answer = worker.run(path)
                seconds = time.monotonic() - start
                with lock:
                    results.append(_row(case, answer, seconds))
                    each(results)
        finally:
            worker.stop()

    threads = [threading.Thread(target=serve, args=(n,)) for n in range(settings.jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(results, key=lambda r: (r["kind"], r["name"]))


def _row(case: Case, answer: dict[str, Any], seconds: float) -> Result:
    status, detail = judge(case, answer)
    return {
        "name": case.name,
        "kind": case.kind,
        "form": case.form,
        "random": case.random,
        "status": status,
        "detail": detail,
        "seconds": round(seconds, 3),
    }
