"""A worker process with limits of memory and time, which is started again when it dies."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import time
from typing import Any

MEMORY = 10 << 30  # bytes of address space


def _serve(pipe: Any) -> None:
    """Answer tasks until the pipe closes. Each stage is told ahead of it."""
    import resource
    import warnings

    os.setsid()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")
    os.environ["MGX_CACHE"] = "0"
    from benchmarks.fuzzing.tasks import run

    while True:
        try:
            task = pipe.recv()
        except EOFError:
            return
        for answer in run(task):
            pipe.send(answer)
        pipe.send(None)


class Worker:
    """Runs tasks one by one; `seconds` is the limit of each stage of a task."""

    def __init__(self, seconds: float = 600.0) -> None:
        self.seconds = seconds
        self.process: Any = None
        self.pipe: Any = None
        self.starts = 0

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs,), daemon=False)
        self.process.start()
        theirs.close()
        self.starts += 1

    def run(self, task: Any) -> tuple[list[Any], str, str]:
        """The answers; and where it did not end: "crash" or "hang", and how."""
        if self.process is None:
            self._start()
        answers: list[Any] = []
        self.pipe.send(task)
        while True:
            try:
                if not self.pipe.poll(self.seconds):
                    self.stop()
                    return answers, "hang", f"no answer after {self.seconds:.0f} s"
                answer = self.pipe.recv()
            except (EOFError, ConnectionResetError):
                self.process.join()
                code = self.process.exitcode
                self.stop()
                return answers, "crash", f"the process ended with {code}"
            if answer is None:
                return answers, "", ""
            answers.append(answer)

    def stop(self) -> None:
        """End the process and what it started."""
        if self.process is None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.join()
        self.pipe.close()
        self.process = None
        time.sleep(0.05)
