"""Runs with a limit of time or memory, in worker processes that are ended at the limit.

Compiled code cannot be interrupted, so only the end of its process stops it. The program is written
to a file that is unlinked at once, and the processes map it.
"""

from __future__ import annotations

import mmap
import os
import pickle
import socket
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mgx_mlir.core import dtypes, errors, forks, interrupts
from mgx_mlir.core.errors import MgxError, RunError, RunLimitError
from mgx_mlir.core.literals import ALIGNMENT
from mgx_mlir.runtime.device import load_runtime
from mgx_mlir.runtime.workers import Worker, Workers, limit_memory, receive, send

if TYPE_CHECKING:
    from mgx_mlir.compiler.compiled import CompiledProgram

HANDLER = "mgx_mlir.compiler.limited_runs:prepare"
_LOOK = 0.05  # seconds between two checks of `stop`
_LONGEST_WAIT = 3600.0  # seconds of one wait: the system refuses very long ones
_NO_ROOM = ("RESOURCE_EXHAUSTED", "bad_alloc")


class LimitedRuns:
    """The processes that run one program within limits. Thread-safe."""

    def __init__(self, program: CompiledProgram, memory: int | None) -> None:
        self.memory = memory
        self._lock = forks.lock()
        self._fork = forks.count()
        self._idle: list[Worker] = []
        fd, path = tempfile.mkstemp(prefix="mgx-run-")
        try:
            with os.fdopen(fd, "wb") as file:
                sizes = _write(file, program)
            self._workers = Workers(HANDLER, {"path": path, "sizes": sizes, "memory": memory})
        finally:
            os.unlink(path)

    @property
    def is_lost(self) -> bool:
        """True in a forked child: the processes belong to its parent."""
        return self._fork != forks.count()

    def run(
        self,
        arrays: Sequence[np.ndarray],
        seconds: float | None,
        stop: Callable[[], bool] | None = None,
    ) -> list[np.ndarray]:
        """Run on checked arrays in the order of the inputs; `stop` may end it earlier.

        Errors: RunLimitError at a limit; RunError.
        """
        if self.memory is not None and sum(a.nbytes for a in arrays) > self.memory:
            raise self._no_room()
        with self._lock:
            worker = self._idle.pop() if self._idle else None
        if worker is None:
            worker = self._workers.start()
        done = False
        try:
            found = self._answer(worker, arrays, seconds, stop)
            done = True
        finally:
            if not done:  # also at an interrupt: the process would run on
                self._workers.end(worker)
        header, parts = found
        with self._lock:
            self._idle.append(worker)
        if "problem" in header:
            raise self._error(header["problem"])
        return [_array(row, part) for row, part in zip(header["arrays"], parts, strict=True)]

    def _answer(
        self, worker: Worker, arrays: Sequence[np.ndarray], seconds: float | None,
        stop: Callable[[], bool] | None,
    ) -> tuple[dict[str, Any], list[bytearray]]:  # fmt: skip
        end = None if seconds is None else time.monotonic() + seconds
        watched: Any = _Watched(
            worker.socket, end, stop
        )  # a socket as `send` and `receive` need it
        try:
            send(watched, {"arrays": [_row(a) for a in arrays]}, [_raw(a) for a in arrays])
            found = receive(watched)
        except TimeoutError as e:
            if interrupts.is_callers(e):
                raise
            text = f"the run took longer than {seconds:g} s (max_run_seconds)"
            raise RunLimitError(text) from None
        except _Stopped:
            raise RunLimitError("the run was stopped") from None
        except OSError as e:
            if interrupts.is_callers(e):
                raise
            found = None
        if found is None:
            status = self._workers.end(worker)
            by = f" by signal {-status}" if status is not None and status < 0 else ""
            raise RunError(f"the process of the run ended{by}")
        return found

    def _error(self, problem: Mapping[str, Any]) -> MgxError:
        if problem["no_room"]:
            return self._no_room()
        kind: Any = getattr(errors, problem["kind"], RunError)
        kind = RunError if kind is errors.NamesDisagree else kind
        return kind(problem["message"], location=problem["location"], notes=problem["notes"])

    def _no_room(self) -> RunLimitError:
        if self.memory is None:
            return RunLimitError("too little memory for the run")
        return RunLimitError(f"the run needs more than {self.memory} bytes (max_run_memory)")

    def close(self) -> None:
        """End the processes."""
        if not self.is_lost:
            self._workers.close()


class _Stopped(Exception):
    """The caller asked to stop."""


class _Watched:
    """A socket whose calls end at a deadline, or when `stop` is set.

    Errors: TimeoutError, _Stopped.
    """

    def __init__(
        self, own: socket.socket, end: float | None, stop: Callable[[], bool] | None
    ) -> None:
        self._own, self._end, self._stop = own, end, stop

    def _again(self, call: Callable[[Any], Any], data: Any) -> Any:
        while True:
            rest = None if self._end is None else self._end - time.monotonic()
            if rest is not None and rest <= 0:
                raise TimeoutError
            if self._stop is not None:
                if self._stop():
                    raise _Stopped
                rest = _LOOK if rest is None else min(rest, _LOOK)
            self._own.settimeout(rest if rest is None else min(rest, _LONGEST_WAIT))
            try:
                return call(data)
            except TimeoutError as e:
                if interrupts.is_callers(e):
                    raise

    def sendall(self, data: Any) -> None:
        """Send all of some bytes."""
        rest = memoryview(data).cast("B")
        while len(rest):
            rest = rest[self._again(self._own.send, rest) :]

    def recv_into(self, to: Any) -> int:
        """Receive some bytes; return their number."""
        return self._again(self._own.recv_into, to)


def _write(file: Any, program: CompiledProgram) -> list[int]:
    """Write a program with aligned buffers; return the sizes of the pickle and of each buffer."""
    buffers: list[memoryview] = []
    text = pickle.dumps(program, 5, buffer_callback=lambda b: buffers.append(b.raw()))
    for data in (memoryview(text), *buffers):
        file.write(data)
        file.write(bytes(-data.nbytes % ALIGNMENT))
    return [len(text), *(b.nbytes for b in buffers)]


def _read(path: str, sizes: Sequence[int]) -> CompiledProgram:
    """Return the program of a file that `_write` wrote; it maps the file."""
    with open(path, "rb") as file:
        held = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    pieces: list[memoryview] = []
    at = 0
    for size in sizes:
        pieces.append(held[at : at + size])
        at += size + -size % ALIGNMENT
    return pickle.loads(pieces[0], buffers=pieces[1:])


def prepare(setup: Mapping[str, Any]) -> Callable[[socket.socket], None]:
    """Read the program of `setup`; return a function that runs it for messages on a socket."""
    program = _read(setup["path"], setup["sizes"])
    program.limits = None  # the parent enforces them
    if program.target != "ref":
        load_runtime()

    def serve(own: socket.socket) -> None:
        load: Any = getattr(program, "load", None)
        if load is not None:
            load()
        if setup["memory"] is not None:
            limit_memory(setup["memory"])
        while (message := receive(own)) is not None:
            header, parts = message
            arrays = [_array(row, p) for row, p in zip(header["arrays"], parts, strict=True)]
            try:
                found = program.execute(arrays)
                send(own, {"arrays": [_row(a) for a in found]}, [_raw(a) for a in found])
                del found
            except (MgxError, MemoryError) as e:
                send(own, {"problem": _problem(e)})
            del message, parts, arrays

    return serve


def _problem(e: MgxError | MemoryError) -> dict[str, Any]:
    if isinstance(e, MemoryError):
        return {"no_room": True}
    return {
        "no_room": any(word in e.message for word in _NO_ROOM), "kind": type(e).__name__,
        "message": e.message, "location": e.location, "notes": list(e.notes),
    }  # fmt: skip


def _row(a: np.ndarray) -> list[Any]:
    return [dtypes.from_numpy(a.dtype).name, list(a.shape)]


def _raw(a: np.ndarray) -> memoryview:
    """Return an array's memory, in its order."""
    raw: Any = np.ascontiguousarray(a).reshape(-1).view(np.uint8)  # typed as Any for the stub
    return memoryview(raw)


def _array(row: Sequence[Any], data: bytearray) -> np.ndarray:
    name, dims = row
    return np.frombuffer(data, np.uint8).view(dtypes.from_name(name).np).reshape(dims)
