"""Runs functions in worker processes with a limit of memory and time; results as JSON lines."""

from __future__ import annotations

import json
import resource
import selectors
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[4]
MEMORY = 14_000_000_000  # bytes of address space of a worker
SECONDS = 240.0  # limit of one function in one mode
EACH = 60  # functions of a worker: Dynamo keeps what it traced


class Worker:
    """A worker process; `ask` gives a row for a task, whatever becomes of the process."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds, self._process, self._asked = seconds, None, 0

    def ask(self, task: dict[str, str]) -> dict[str, Any]:
        """The row of a function: outcomes, or that the worker died or was too slow."""
        if self._process is None or self._asked >= EACH:
            self.close()
            self._start()
        assert self._process is not None
        self._asked += 1
        self._process.stdin.write(json.dumps(task) + "\n")
        self._process.stdin.flush()
        answer = self._answer(self._seconds)
        if answer is not None:
            return answer
        code = self._process.poll()
        self.close()
        kind = "timeout" if code is None else "died"
        text = f"over {self._seconds:.0f} s" if code is None else f"exit code {code}"
        return {**task, "samples": [{"sample": "all", "kind": kind, "text": text}]}

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
        self._process = None

    def _start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.integrations.torch.opinfo.worker"], cwd=ROOT, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)),
        )  # fmt: skip
        self._asked = 0
        assert self._answer(10 * self._seconds) is not None, "the worker does not start"

    def _answer(self, seconds: float) -> dict[str, Any] | None:
        """A line of the process as JSON; None where it ended, or took longer."""
        with selectors.DefaultSelector() as waiting:
            waiting.register(self._process.stdout, selectors.EVENT_READ)
            if not waiting.select(seconds):
                return None
        line = self._process.stdout.readline()
        return json.loads(line) if line else None


def run(names: Iterable[str], modes: Iterable[str], target: str) -> Iterator[dict[str, Any]]:
    """Yield a row for each function and mode."""
    worker = Worker()
    try:
        for mode in modes:
            for name in names:
                yield worker.ask({"function": name, "mode": mode, "target": target})
    finally:
        worker.close()
