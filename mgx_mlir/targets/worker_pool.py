"""The compile workers of one program: a queue of requests, and readers of replies.

Requests for any worker are submitted, and answered in parallel; a conversation reserves one worker.
There is no thread: replies are read when the caller pumps or waits.
"""

from __future__ import annotations

import select
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, BinaryIO, cast

from mgx_mlir.core import interrupts
from mgx_mlir.core.errors import CompileError
from mgx_mlir.core.records import dataclass
from mgx_mlir.hardware.machine import available_cpus
from mgx_mlir.targets import worker as worker_file
from mgx_mlir.targets.child import IreeCompiler, limit_failure, verifies
from mgx_mlir.targets.diagnostics import CompileFailed
from mgx_mlir.targets.process import Watch, readable
from mgx_mlir.targets.worker_process import Worker

MAX_WORKERS = 16

Header = dict[str, Any]
Reader = Callable[[Header, bytes], None]


class Together(Exception):
    """The module has to be compiled as one; the message is the reason."""


@dataclass
class Limits:
    """Time and memory that are left to a compile."""

    timeout: float | None  # seconds, for all of it
    memory: int | None  # resident bytes of a worker
    start: float  # time.monotonic() at its start

    def left(self) -> float | None:
        """Return the seconds that are left."""
        if self.timeout is None:
            return None
        return max(self.timeout - (time.monotonic() - self.start), 0.001)


class Pool:
    """The workers of one compile.

    flags: those of their processes (worker.OF_PROCESS). count: workers at once, None: `most()`.
    """

    def __init__(
        self,
        compiler: IreeCompiler,
        limits: Limits,
        flags: Sequence[str] = (),
        count: int | None = None,
    ) -> None:
        self.compiler, self.limits, self.flags = compiler, limits, tuple(flags)
        self._most = count or most()
        self.peak, self.errors = 0, ""
        self._taken: dict[Worker, bool] = {}  # worker -> it waits for a request
        self._watches: dict[Worker, Watch] = {}
        self._todo: deque[tuple[Mapping[str, Any], bytes, Reader]] = deque()
        self._readers: dict[Worker, Reader] = {}  # workers with a submitted request
        self._free: list[Worker] = []  # idle workers for submitted requests

    # ------------------------------------------------------------------ one worker

    def take(self) -> Worker:
        """Return a worker for a conversation, ahead of requests in the queue.

        Errors: Together where none starts, CompileFailed.
        """
        while not self._free and len(self._readers) >= self._most:
            for worker in self._replied(50):
                self._read(worker)
        return self._free.pop() if self._free else self._lease()

    def _lease(self) -> Worker:
        try:
            found = self.compiler.lease(*self.flags)
        except OSError as e:
            raise Together(f"no worker starts: {e}") from None
        self._taken[found] = True
        return found

    def begin(self, worker: Worker, header: Mapping[str, Any], payload: bytes = b"") -> None:
        """Send a request. Errors: Together."""
        stdin = worker.process.stdin
        assert stdin is not None
        try:
            worker.wait()
        except CompileError as e:
            raise Together(e.message) from None
        self._taken[worker] = False
        self._watches[worker] = Watch(worker.process.pid, self.limits.left(), self.limits.memory)
        worker.uses += 1
        try:
            request = {**header, "verify": verifies()}
            worker_file.send(cast(BinaryIO, stdin), request, payload)
        except OSError as e:
            raise Together(f"a worker has ended: {e}") from None

    def end(self, worker: Worker) -> tuple[Header, bytes]:
        """Wait for the reply to a request. Errors: Together, CompileFailed."""
        watch, out = self._watches.pop(worker), worker.process.stdout
        assert out is not None
        outcome = watch.wait(lambda s: readable(out, s))
        if outcome != "done":
            raise CompileFailed(limit_failure(outcome, self.limits.timeout, self.limits.memory))
        frame = worker_file.receive(cast(BinaryIO, out))
        errors = worker.take_errors()
        self.errors += errors
        if frame is None:
            raise Together(f"a worker has ended: {errors[-300:].strip()}")
        self._taken[worker] = True
        header, payload = frame
        self.peak = max(self.peak, header["peak"] or watch.peak)
        worker.rss = header["rss"]
        if header["status"] != "ok":
            why = payload.decode(errors="replace") or errors
            raise Together(f"{header['status']}: {why[:300].strip()}")
        return header, payload

    def ask(
        self, worker: Worker, header: Mapping[str, Any], payload: bytes = b""
    ) -> tuple[Header, bytes]:
        """Send a request and wait for its reply."""
        self.begin(worker, header, payload)
        return self.end(worker)

    def tell(self, worker: Worker, header: Mapping[str, Any]) -> None:
        """Send a request whose reply `drain` reads; then the worker serves the queue.

        `drain` keeps it for its conversation. Errors: Together.
        """
        self.begin(worker, header)
        self._readers[worker] = lambda _, __: None

    def widen(self) -> None:
        """Let as many workers work at once as the machine takes."""
        self._most = most()

    # ------------------------------------------------------------------ any worker

    def submit(self, header: Mapping[str, Any], payload: bytes, reader: Reader) -> None:
        """Queue a request for any worker; `reader` gets its reply in `pump` or `drain`."""
        self._todo.append((header, payload, reader))

    def pump(self) -> None:
        """Send queued requests to ready workers, and read available replies, without waiting.

        Errors: Together, CompileFailed.
        """
        for worker in self._replied(0):
            self._read(worker)
        self._send(ready=True)

    def wait(self) -> None:
        """Wait until at least one submitted request is answered. Errors as `pump`."""
        self._send(ready=False)
        for worker in self._replied(50) if self._readers else ():
            self._read(worker)
        self._send(ready=False)

    def drain(self, kept: Worker) -> None:
        """Wait until all requests are answered, and return all workers except `kept`.

        Errors as `pump`.
        """
        while self._readers or self._todo:
            self.wait()
        for worker in self._free:
            if worker is not kept and self._taken.pop(worker):
                self.compiler.give(worker, alive=True)
        self._free.clear()

    def _send(self, *, ready: bool) -> None:
        """Send queued requests. ready: only to workers that have started."""
        while self._todo:
            if not self._free:
                if len(self._readers) >= self._most:
                    return
                self._free.append(self._lease())
            worker = self._free[-1]
            if ready and not (worker.is_ready or worker.ready()):
                return
            header, payload, reader = self._todo.popleft()
            self.begin(worker, header, payload)
            self._free.pop()
            self._readers[worker] = reader

    def _read(self, worker: Worker) -> None:
        reader = self._readers.pop(worker)
        header, payload = self.end(worker)
        self._free.append(worker)
        reader(header, payload)

    def _replied(self, milliseconds: int) -> list[Worker]:
        """Return the workers that have replied, passed a limit, or ended.

        milliseconds: of waiting in one step, until there is one; 0 waits for none.
        """
        poll = select.poll()
        by_number: dict[int, Worker] = {}
        for worker in self._readers:
            out = worker.process.stdout
            assert out is not None
            by_number[out.fileno()] = worker
            poll.register(out, select.POLLIN | select.POLLHUP)
        while True:
            found = [by_number[number] for number, _ in poll.poll(milliseconds)]
            if found or not milliseconds:
                return found
            interrupts.check()
            passed = [w for w in self._readers if self._watches[w].passed() is not None]
            if passed:
                return passed  # `end` reports the limit

    def close(self) -> None:
        """Return the workers; end those that still work."""
        for worker, waits in self._taken.items():
            self.compiler.give(worker, alive=waits)
        self._taken.clear()
        self._free.clear()
        self._readers.clear()
        self._todo.clear()


def most() -> int:
    """Return the number of workers that work at once."""
    return max(1, min(available_cpus(), MAX_WORKERS))


__all__ = ["MAX_WORKERS", "Limits", "Pool", "Together", "most"]
