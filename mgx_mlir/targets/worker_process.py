"""The parent's side of a compile worker: its process, pipes, folder and stderr file."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from typing import IO, BinaryIO, cast

from mgx_mlir.core import interrupts
from mgx_mlir.core.errors import CompileError
from mgx_mlir.targets import worker as worker_file
from mgx_mlir.targets.process import kill_group, readable

_START_SECONDS = 30.0  # a worker takes 0.3 s to start on an idle machine


class Worker:
    """One worker process with its pipes, temporary folder and stderr file.

    modes: worker.py's arguments behind the folder.
    """

    def __init__(self, *modes: str) -> None:
        self.modes = modes
        self.folder = tempfile.mkdtemp(prefix="mgx-worker-")
        try:
            self._start()
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise
        self.uses = 0
        self.rss = 0  # resident bytes behind the last request
        self.is_ready = False

    def _start(self) -> None:
        self.errors: IO[bytes] = open(os.path.join(self.folder, "stderr"), "w+b")  # noqa: SIM115
        lifeline_read, self.lifeline = os.pipe()
        try:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, worker_file.__file__),
                    *(str(lifeline_read), self.folder, *self.modes),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self.errors,
                pass_fds=[lifeline_read],
                start_new_session=True,
                env={**os.environ, "TMPDIR": self.folder},
            )
        except BaseException:
            os.close(self.lifeline)
            self.errors.close()
            raise
        finally:
            os.close(lifeline_read)

    def ready(self) -> bool:
        """Return whether the first frame has come, without blocking."""
        out = self.process.stdout
        assert out is not None
        if not readable(out, 0):
            return False
        self.is_ready = worker_file.receive(cast(BinaryIO, out)) is not None
        return self.is_ready

    def wait(self) -> None:
        """Wait until the worker takes requests. Errors: CompileError."""
        deadline = time.monotonic() + _START_SECONDS
        while not self.is_ready and time.monotonic() < deadline and self.process.poll() is None:
            out = self.process.stdout
            if out is not None and readable(out, 0.05) and self.ready():
                return
            interrupts.check()
        if not self.is_ready:
            errors = self.take_errors()
            self.close()
            raise CompileError(f"the compile worker did not start: {errors[-300:].strip()}")

    def take_errors(self) -> str:
        """Return what the worker has written to stderr since the last call."""
        self.errors.flush()
        self.errors.seek(0)
        text = self.errors.read().decode(errors="replace")
        # the child appends at its own offset, which it shares with this descriptor
        self.errors.seek(0)
        self.errors.truncate()
        return text

    def close(self) -> None:
        """End the process and remove its folder."""
        with contextlib.suppress(OSError):
            os.close(self.lifeline)
        kill_group(self.process)
        for stream in (self.process.stdin, self.process.stdout, self.errors):
            with contextlib.suppress(OSError, ValueError):
                if stream is not None:
                    stream.close()
        shutil.rmtree(self.folder, ignore_errors=True)
