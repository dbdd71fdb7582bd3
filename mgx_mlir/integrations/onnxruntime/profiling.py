"""A session's profile: events in the format of trace viewers."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mgx_mlir.core.errors import FileError
from mgx_mlir.core.files import atomic


class Profile:
    """Events of one session, from its start until they are written."""

    def __init__(self, prefix: str) -> None:
        self.start_ns = time.perf_counter_ns()
        now = time.time()
        stamp = time.strftime("%Y-%m-%d_%H-%M-%S", time.localtime(now))
        self.path = f"{prefix}_{stamp}_{int(now * 1000) % 1000:03}.json"
        self._events: list[dict[str, Any]] = []

    @contextmanager
    def event(self, name: str, category: str = "Session", **args: Any) -> Iterator[None]:
        """Record the duration of an event in microseconds."""
        begin = time.perf_counter_ns()
        try:
            yield
        finally:
            end = time.perf_counter_ns()
            self._events.append(
                {
                    "cat": category,
                    "pid": os.getpid(),
                    "tid": threading.get_native_id(),
                    "dur": (end - begin) // 1000,
                    "ts": (begin - self.start_ns) // 1000,
                    "ph": "X",
                    "name": name,
                    "args": args,
                }
            )

    def write(self) -> str:
        """Write the file and return its name. Errors: FileError."""
        try:
            with atomic(Path(self.path)) as f:
                f.write(json.dumps(self._events, indent=0).encode())
        except OSError as e:
            why = (e.strerror or str(e)).lower()
            raise FileError(f"cannot write the profile: {why}", location=self.path) from None
        return self.path
