"""Worker processes that share the prepared state of one process, and messages to and from them."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mgx_mlir.core import errors, forks
from mgx_mlir.core.errors import MgxError, RunError, TargetError
from mgx_mlir.runtime import fork_server

_SIZE = struct.Struct("<Q")
Buffer = bytes | bytearray | memoryview


class WorkersLost(TargetError):
    """The process that forks workers has ended, and all workers with it."""


@dataclass(frozen=True)
class Worker:
    """A worker process, and the socket that it answers on."""

    pid: int
    socket: socket.socket


class Workers:
    """A process that runs `handler(setup)` once and forks workers; safe to use from many threads.

    handler: "module:function", which takes `setup` (JSON) and returns a function of a socket that
    each worker calls. Workers share the memory that `handler` filled.
    Errors: those of `handler`, as MgxError; WorkersLost where the process ended.
    """

    def __init__(self, handler: str, setup: Mapping[str, Any]) -> None:
        if not hasattr(os, "fork"):
            raise RunError("workers and limits of runs need fork, which this system does not have")
        ours, theirs = socket.socketpair()
        self._control, self._lock, self._rest = ours, forks.lock(), b""
        try:
            self._process = subprocess.Popen(
                [sys.executable, fork_server.__file__, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                # a second thread might hold locks at a fork
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # Ctrl-C goes to the parent only
            )
        finally:
            theirs.close()
        path = [p or os.getcwd() for p in sys.path]
        try:
            found = self._asked({"path": path, "handler": handler, "setup": setup})
        except BaseException:
            self._process.kill()
            self.close()
            raise
        if "problem" in found:
            self.close()
            raise _error(found["problem"])

    @property
    def pid(self) -> int:
        """The process that forks."""
        return self._process.pid

    def start(self) -> Worker:
        """Fork a worker."""
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                found = self._asked({"fork": True}, [theirs.fileno()])
        except BaseException:
            ours.close()
            raise
        return Worker(found["pid"], ours)

    def end(self, worker: Worker) -> int | None:
        """Kill a worker, if it is alive.

        Return its exit status, or minus the signal that it died of; None where unknown.
        """
        worker.socket.close()
        try:
            return self._asked({"end": worker.pid})["status"]
        except WorkersLost:
            return None

    def close(self) -> None:
        """End the process and all workers."""
        self._control.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _asked(self, row: Mapping[str, Any], fds: Sequence[int] = ()) -> dict[str, Any]:
        data = json.dumps(row).encode() + b"\n"
        with self._lock:
            try:
                sent = socket.send_fds(self._control, [data], list(fds))
                self._control.sendall(data[sent:])
                while b"\n" not in self._rest:
                    more = self._control.recv(1 << 16)
                    if not more:
                        raise OSError("it ended")
                    self._rest += more
            except OSError as e:
                raise WorkersLost(f"the process of the workers has ended: {e}") from None
            line, _, self._rest = self._rest.partition(b"\n")
        return json.loads(line)


def _error(problem: Mapping[str, Any]) -> MgxError:
    kind: Any = getattr(errors, problem["kind"], MgxError)
    if not (isinstance(kind, type) and issubclass(kind, MgxError)) or kind is errors.NamesDisagree:
        kind = MgxError
    return kind(problem["message"], location=problem["location"], notes=problem["notes"])


# ---- memory of a worker ------------------------------------------------------------------------

_MOST = (1 << 63) - 1  # largest limit that Python's setrlimit accepts


def memory_of_this(name: str) -> int:
    """Return a size of this process in bytes by its name in /proc, 0 where there is none."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) << 10
    return 0


def limit_memory(memory: int) -> None:
    """Limit this process to `memory` bytes above its current size."""
    import resource  # Windows has none, and no workers

    most = min(memory_of_this("VmData") + memory, _MOST)
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


# ---- messages: a JSON header, and the memory whose sizes it states -----------------------------


def packed(header: Mapping[str, Any], parts: Sequence[Buffer] = ()) -> list[Buffer]:
    """Return the pieces of a message; `parts` follow its header."""
    text = json.dumps({**header, "sizes": [memoryview(p).nbytes for p in parts]}).encode()
    return [_SIZE.pack(len(text)) + text, *parts]


def send(to: socket.socket, header: Mapping[str, Any], parts: Sequence[Buffer] = ()) -> None:
    """Send a message."""
    for piece in packed(header, parts):
        if memoryview(piece).nbytes:
            to.sendall(piece)


def receive(source: socket.socket) -> tuple[dict[str, Any], list[bytearray]] | None:
    """Return the next message; None when the other end has closed."""
    with contextlib.suppress(ConnectionError):
        size = _exactly(source, _SIZE.size)
        text = size and _exactly(source, _SIZE.unpack(size)[0])
        if not text:
            return None
        header = json.loads(text)
        parts = [_exactly(source, n) for n in header["sizes"]]
        if all(p is not None for p in parts):
            return header, [p for p in parts if p is not None]
    return None


def _exactly(source: socket.socket, size: int) -> bytearray | None:
    found = bytearray(size)
    rest = memoryview(found)
    while len(rest):
        count = source.recv_into(rest)
        if not count:
            return None
        rest = rest[count:]
    return found
