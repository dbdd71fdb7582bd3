"""Worker processes that answer requests; a worker whose run takes too long is ended and replaced.

Compiled code cannot be interrupted, so ending a run means ending its process. Two lanes separate
long runs from the others, and each run starts in the short lane. After a time that depends on the
earlier runs of its model, its worker moves to the long lane. The long lane has few slots and a
lower priority, and another worker replaces the moved one. If the long lane is full, the run is
ended, and starts again when a slot is free.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import socket
import statistics
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from mgx_mlir.core.errors import MgxError
from mgx_mlir.integrations.serve.shares import Shares
from mgx_mlir.integrations.v2.errors import V2Error
from mgx_mlir.integrations.v2.front import Policy, Response
from mgx_mlir.integrations.v2.models import ServedModel
from mgx_mlir.runtime.workers import Buffer, Worker, Workers, packed

log = logging.getLogger(__name__)
_TICK = 0.1  # seconds between two checks of waiting requests
_IDLE = 30.0  # seconds after which an idle worker beyond the least number ends
_STUCK = 5.0  # seconds without a worker that can take a request, after which the pool is not ready
_DEAD = 60.0  # seconds of the same after which the pool is not alive
_ATTEMPTS = 3  # crashed runs of one request, after which the request is taken for the cause
# killed runs of one request, after which it fails; a kill comes from outside, as from the OOM
# killer
_KILLS = 10
_LONG_PRIORITY = 19  # the lowest priority of nice(2)
_KNOWN = 32  # last runs of a model that its usual time is computed from
_AWHILE = 0.1  # seconds of a run after which waiting requests get another worker
_ROOM = 1.0  # seconds without work after which a worker that holds much memory is replaced
_COMPUTED = 0.15  # CPU seconds that a long run has computed at least
_STARVED = 5  # multiple of the quantum after which a run that computed little counts as long too
_SIZE = 8  # bytes of the length prefix of a message


class Observer(Protocol):
    """Observer of the workers, for metrics."""

    def run(self, model: str, rows: int) -> None:
        """Record a run and its rows."""

    def timeout(self, model: str) -> None:
        """Record a run that was ended at the time limit."""

    def replaced(self, why: str) -> None:
        """Record the end of a worker; its reason: timeout, long, left, crash or memory."""


@dataclass(frozen=True)
class PoolSize:
    """Sizes of a pool of workers, and times of its lanes and batches."""

    least: int = 1  # workers that take requests, at least
    most: int = 1  # workers that take requests, at most
    long: int = 1  # workers of the long lane, at most
    spare: int = 4  # additional workers while requests wait for slow runs
    # seconds of a run in the short lane; at least four times its model's median
    quantum: float = 1.0
    batch_wait: float = 0.005  # seconds that a request waits for others of its model


@dataclass(eq=False)
class _Job:
    """A request that waits or runs; `alone`: it is not batched with others."""

    model: ServedModel
    headers: dict[str, str]
    body: Buffer
    future: asyncio.Future[Response]
    since: float
    attempts: int = 0
    alone: bool = False

    @property
    def key(self) -> tuple[str, str]:
        """The model and its version."""
        return self.model.name, self.model.version


@dataclass(eq=False)
class _Member:
    """A worker of the pool and its requests."""

    worker: Worker
    is_long: bool = False  # worker belongs to the long lane
    is_full: bool = False  # worker holds much memory of earlier runs
    computed: float | None = None  # CPU seconds of the worker when the run began
    jobs: list[_Job] = field(default_factory=list)  # requests that run; empty where it is idle
    since: float = 0.0  # time at which the run, or the idle time, began


class Pool:
    """Workers for the requests of one event loop. `make` starts the process that forks them."""

    def __init__(
        self, make: Callable[[], Workers], policy: Policy, size: PoolSize, observer: Observer
    ) -> None:
        self._make, self._policy, self.size, self._observer = make, policy, size, observer
        self._workers: Workers | None = None
        self._idle: list[_Member] = []
        self._busy: set[_Member] = set()
        self._starting = {False: 0, True: 0}  # starting workers by lane: long or not
        self._short: deque[_Job] = deque()
        self._long: deque[_Job] = deque()
        self._shares = Shares()
        self._seconds: dict[tuple[str, str], deque[float]] = {}  # seconds of recent runs, by model
        # CPU seconds of recent runs, by model
        self._computed: dict[tuple[str, str], deque[float]] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._making = asyncio.Lock()
        self._able = 0.0  # time at which a worker could last take a request
        self._broken = ""
        self._closed = False

    # ------------------------------------------------------------------ for the server

    async def open(self) -> None:
        """Start the workers; return when all models have run once. Errors: MgxError."""
        loop = asyncio.get_running_loop()
        self._able = loop.time()
        self._workers = await loop.run_in_executor(None, self._make)
        for _ in range(self.size.least):
            member = await self._started(is_long=False, warm=True)
            self._idle.append(member)
        self._keep(self._ticks())

    async def close(self) -> None:
        """End all workers; waiting requests are answered with 503."""
        self._closed = True
        for job in (*self._short, *self._long, *(j for m in self._busy for j in m.jobs)):
            _fail(job, V2Error("the server is shutting down", 503))
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._workers is not None:
            await asyncio.get_running_loop().run_in_executor(None, self._workers.close)

    async def answer(
        self, model: ServedModel, headers: Mapping[str, str], body: Buffer
    ) -> Response:
        """Return the answer of a worker to a request. Errors: V2Error, 503 and 504."""
        loop = asyncio.get_running_loop()
        wanted = ("content-encoding", "inference-header-content-length")
        kept = {k: headers[k] for k in wanted if k in headers}
        job = _Job(model, kept, body, loop.create_future(), loop.time())
        self._short.append(job)
        self._dispatch()
        try:
            return await job.future
        finally:
            job.body = b""

    def trouble(self, what: str) -> str:
        """Return why the pool is not "live" or "ready", "" if it is."""
        if self._can_answer():
            return ""
        seconds = time.monotonic() - self._able
        if seconds <= (_DEAD if what == "live" else _STUCK):
            return ""
        return self._broken or f"no worker could take a request for {seconds:.0f} s"

    def counts(self) -> dict[str, int]:
        """Return how many workers are in which state, and how many requests wait."""
        long = sum(m.is_long for m in self._busy)
        return {
            "idle": len(self._idle), "busy": len(self._busy) - long, "long": long,
            "starting": sum(self._starting.values()),
            "waiting": len(self._short) + len(self._long),
        }  # fmt: skip

    def pids(self) -> list[int]:
        """Return the process ids of the workers; the process that forks them comes first."""
        first = [] if self._workers is None else [self._workers.pid]
        return [*first, *(m.worker.pid for m in (*self._idle, *self._busy))]

    # ------------------------------------------------------------------ who runs what

    def _keep(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _can_answer(self) -> bool:
        """Return whether a worker takes requests: it is idle, or its run started just now."""
        now = asyncio.get_running_loop().time()
        short = [m for m in self._busy if not m.is_long]
        found = bool(self._idle) or any(now - m.since <= self._quantum(m.jobs) for m in short)
        if found:
            self._able = time.monotonic()
        return found

    def _quantum(self, jobs: Sequence[_Job]) -> float:
        known = self._seconds.get(jobs[0].key) if jobs else None
        usual = statistics.median(known) if known else 0.0
        return max(self.size.quantum, 4 * usual) * max(1, len(jobs))

    async def _ticks(self) -> None:
        while True:
            await asyncio.sleep(_TICK)
            try:
                self._tick()
            except Exception:
                log.exception("the state of the workers cannot be read")

    def _tick(self) -> None:
        """End requests that waited too long, and workers that are not needed."""
        now = asyncio.get_running_loop().time()
        self._can_answer()
        limit = self._policy.wait_timeout
        for queue, status in ((self._short, 503), (self._long, 504)):
            while queue and now - queue[0].since > limit:
                job = queue.popleft()
                text = f"no worker was free within {limit:g} s"
                if status == 504:
                    self._observer.timeout(job.model.name)
                    text = f"the run was too long for the short lane, and {text}"
                _fail(job, V2Error(text, status))
        for member in [m for m in self._idle if _is_dead(m.worker)]:
            self._idle.remove(member)
            self._observer.replaced("crash")
            self._keep(self._end(member))
        for member in [m for m in self._idle if m.is_full and now - m.since > _ROOM]:
            self._idle.remove(member)
            self._observer.replaced("memory")
            self._keep(self._end(member))
        if len(self._idle) + self._number(False) > self.size.least and self._idle:
            oldest = min(self._idle, key=lambda m: m.since)
            if now - oldest.since > _IDLE:
                self._idle.remove(oldest)
                self._keep(self._end(oldest))
        self._dispatch()

    def _number(self, is_long: bool) -> int:
        """Return how many workers of a lane run or start."""
        return sum(m.is_long == is_long for m in self._busy) + self._starting[is_long]

    def _dispatch(self) -> None:
        """Give waiting requests to workers, and start missing workers."""
        if self._closed:
            return
        while self._idle:
            jobs = self._next()
            if not jobs:
                break
            self._launch(self._idle.pop(), jobs)
        wanted = self.size.least
        if self._short:  # requests wait although all workers run
            now = asyncio.get_running_loop().time()
            late = sum(not m.is_long and now - m.since > _AWHILE for m in self._busy)
            wanted = max(
                min(self.size.most, max(wanted, self._number(False) + 1)),
                wanted + min(late, self.size.spare),
            )
        while len(self._idle) + self._number(False) < wanted and not self._broken:
            self._start(is_long=False)
        if self._broken:
            return
        _drop_left(self._long)
        while len(self._long) > self._starting[True] and self._number(True) < self.size.long:
            self._start(is_long=True)

    def _next(self) -> list[_Job]:
        """Return the requests that run next as one batch; none if they wait for more."""
        now = asyncio.get_running_loop().time()
        _drop_left(self._short)
        for first in self._shares.ordered(self._short, lambda j: j.key):
            most = 1 if first.alone else first.model.max_batch_size
            same = [first]
            if most > 1:
                alike = (j for j in self._short if j.key == first.key and not j.alone)
                same = [j for j, _ in zip(alike, range(most), strict=False)]
                rest = self.size.batch_wait - (now - first.since)
                if len(same) < most and rest > 0:
                    asyncio.get_running_loop().call_later(rest, self._dispatch)
                    continue
            for job in same:
                self._short.remove(job)
            self._shares.begin(first.key)
            return same
        return []

    # ------------------------------------------------------------------ workers

    def _start(self, *, is_long: bool) -> None:
        self._starting[is_long] += 1
        self._keep(self._start_one(is_long))

    async def _start_one(self, is_long: bool) -> None:
        try:
            member = await self._started(is_long=is_long)
        except (MgxError, OSError) as e:
            self._broken = f"no worker can be started: {e}"
            await asyncio.sleep(1.0)
            await self._again()
            return
        finally:
            self._starting[is_long] -= 1
        if not is_long:
            self._idle.append(member)
        elif not self._launch_long(member):
            await self._end(member)
        self._dispatch()

    async def _started(self, *, is_long: bool, warm: bool = False) -> _Member:
        """Start a worker; `warm`: it has run all its models once. Errors: MgxError."""
        loop = asyncio.get_running_loop()
        assert self._workers is not None
        worker = await loop.run_in_executor(None, self._workers.start)
        worker.socket.setblocking(False)
        member = _Member(worker, is_long, since=loop.time())
        if is_long:
            _lower_priority(worker.pid)
        if not warm:
            return member
        limit = self._policy.run_timeout
        try:
            for piece in packed({"warm": True}):
                await loop.sock_sendall(worker.socket, piece)
            await asyncio.wait_for(_message(worker), limit)
        except asyncio.TimeoutError:
            await self._end(member)
            raise MgxError(f"a first run of the models took longer than {limit:g} s") from None
        except OSError:
            status = await self._end(member)
            raise MgxError(f"a first run of the models {_ended(status)}") from None
        member.since = loop.time()
        return member

    async def _again(self) -> None:
        """Restart the process that forks workers if it has ended."""
        loop = asyncio.get_running_loop()
        async with self._making:
            if not self._broken or self._closed:
                return
            try:
                made = await loop.run_in_executor(None, self._make)
            except (MgxError, OSError) as e:
                self._broken = f"no worker can be started: {e}"
                loop.call_later(1.0, lambda: self._closed or self._keep(self._again()))
                return
            before, self._workers, self._broken = self._workers, made, ""
            for member in self._idle:  # idle workers ended with the process that forked them
                member.worker.socket.close()
            self._idle = []
            if before is not None:
                await loop.run_in_executor(None, before.close)
        self._dispatch()

    async def _end(self, member: _Member) -> int | None:
        """End a worker; return its exit status."""
        assert self._workers is not None
        end = self._workers.end
        return await asyncio.get_running_loop().run_in_executor(None, end, member.worker)

    # ------------------------------------------------------------------ a run

    def _launch(self, member: _Member, jobs: list[_Job]) -> None:
        member.jobs, member.since = jobs, asyncio.get_running_loop().time()
        member.computed = _computed(member.worker.pid)
        self._busy.add(member)
        self._keep(self._run(member, jobs))

    def _launch_long(self, member: _Member) -> bool:
        """Give a worker the next run of the long lane; return False if none waits."""
        _drop_left(self._long)
        if self._long:
            self._launch(member, [self._long.popleft()])
            return True
        return False

    async def _run(self, member: _Member, jobs: list[_Job]) -> None:
        """Have a worker answer requests, and retry or fail the requests without an answer."""
        talk = asyncio.ensure_future(_exchange(member.worker, jobs))
        try:
            why = await self._watch(member, talk)
            if not why:
                header, parts = talk.result()
                self._answered(member, header, parts)
                member.is_full = header["full"]
                why = "idle" if member.is_long else ""
        except OSError:
            why = "crash"
        except Exception:
            log.exception("a worker's answer is malformed")
            why = "crash"
        finally:
            talk.cancel()
            # the event loop watches the socket until then: its descriptor may be reused afterwards
            await asyncio.gather(talk, return_exceptions=True)
            self._busy.discard(member)
        await self._after(member, jobs, why)
        self._dispatch()

    async def _watch(self, member: _Member, talk: asyncio.Future[Any]) -> str:
        """Wait for an answer; return "", or the reason to end the worker.

        "timeout": the run was too long; "long": too long for the short lane; "left": its clients
        are gone. Errors: those of the answer.
        """
        limit = self._policy.run_timeout
        if not member.is_long:
            await self._first(member, talk)
            self._shares.end(member.jobs[0].key, asyncio.get_running_loop().time() - member.since)
            if talk.done():
                talk.result()
                return ""
            if asyncio.get_running_loop().time() - member.since < limit:
                if all(j.future.done() for j in member.jobs):
                    return "left"
                if len(member.jobs) > 1 or self._number(True) >= self.size.long:
                    return "long"
                member.is_long = True
                _lower_priority(member.worker.pid)
                self._dispatch()
        loop = asyncio.get_running_loop()
        while not talk.done():
            rest = limit - (loop.time() - member.since)
            waiting = {j.future for j in member.jobs if not j.future.done()}
            if rest <= 0 or not waiting:
                return "left" if not waiting else "timeout"
            ends = {talk, *waiting}
            await asyncio.wait(ends, timeout=rest, return_when=asyncio.FIRST_COMPLETED)
        talk.result()
        return ""

    async def _first(self, member: _Member, talk: asyncio.Future[Any]) -> None:
        """Wait for an answer as long as a run may stay in the short lane.

        A run that had no CPU in that time is not long: it may take five times as much.
        """
        loop = asyncio.get_running_loop()
        quantum, begin = self._quantum(member.jobs), member.computed
        known = self._computed.get(member.jobs[0].key)
        usual = statistics.median(known) if known else 0.0
        enough = max(_COMPUTED, 4 * usual) * len(member.jobs)
        limit = min(self._policy.run_timeout, _STARVED * quantum)
        await asyncio.wait({talk}, timeout=min(quantum, limit))
        while not talk.done() and (rest := limit - (loop.time() - member.since)) > 0:
            now = _computed(member.worker.pid)
            if begin is None or now is None or now - begin > enough:
                return
            await asyncio.wait({talk}, timeout=min(rest, _TICK))

    def _answered(
        self, member: _Member, header: Mapping[str, Any], parts: Sequence[bytearray]
    ) -> None:
        jobs = member.jobs
        for job, row, body in zip(jobs, header["answers"], parts, strict=True):
            if not job.future.done():
                job.future.set_result(Response(row["status"], body, row["headers"]))
        seconds = (asyncio.get_running_loop().time() - member.since) / len(jobs)
        self._seconds.setdefault(jobs[0].key, deque(maxlen=_KNOWN)).append(seconds)
        now = _computed(member.worker.pid)
        if now is not None and member.computed is not None:
            each = (now - member.computed) / len(jobs)
            self._computed.setdefault(jobs[0].key, deque(maxlen=_KNOWN)).append(each)
        for rows in header["rows"]:
            self._observer.run(jobs[0].model.name, rows)

    async def _after(self, member: _Member, jobs: list[_Job], why: str) -> None:
        """Keep or end a worker after a run; requests without an answer run again, or fail."""
        loop = asyncio.get_running_loop()
        member.jobs, member.since = [], loop.time()
        if not why:
            self._idle.append(member)
            return
        if why == "idle" and self._launch_long(member):
            return
        status = await self._end(member)
        if why != "idle":
            self._observer.replaced(why)
        left = [j for j in jobs if not j.future.done()]
        if why == "timeout" and len(jobs) == 1:
            limit = self._policy.run_timeout
            for job in left:
                self._observer.timeout(job.model.name)
                _fail(job, V2Error(f"the run took longer than {limit:g} s", 504))
            return
        for job in left:
            job.alone = True
            job.since = loop.time()
            # without a status, the process that forks workers has ended
            if why == "crash" and len(jobs) == 1 and status is not None:
                killed = -status in (signal.SIGKILL, signal.SIGTERM)
                job.attempts += _KILLS // _ATTEMPTS if not killed else 1
            if job.attempts >= _KILLS - 1:
                _fail(job, V2Error(f"the run {_ended(status)} each time", 503))
            elif why == "long" and len(jobs) == 1:
                self._long.append(job)
            else:
                self._short.appendleft(job)


def _drop_left(jobs: deque[_Job]) -> None:
    """Drop requests whose clients have gone."""
    for gone in [j for j in jobs if j.future.done()]:
        jobs.remove(gone)


def _fail(job: _Job, error: V2Error) -> None:
    if not job.future.done():
        job.future.set_exception(error)


def _ended(status: int | None) -> str:
    if status is None or status >= 0:
        return f"ended its process with status {status}"
    return f"ended its process by signal {-status}"


def _computed(pid: int) -> float | None:
    """Return the CPU seconds that a process has used; None if they are unknown."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return None


def _is_dead(worker: Worker) -> bool:
    """Return whether an idle worker has closed its socket."""
    try:
        return not worker.socket.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    except OSError:
        return True


def _lower_priority(pid: int) -> None:
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, _LONG_PRIORITY)


async def _exchange(worker: Worker, jobs: Sequence[_Job]) -> tuple[dict[str, Any], list[bytearray]]:
    """Send requests to a worker, and return its answer. Errors: OSError if it ends."""
    rows = [{"model": j.model.name, "version": j.model.version, "headers": j.headers} for j in jobs]
    loop = asyncio.get_running_loop()
    for piece in packed({"jobs": rows}, [j.body for j in jobs]):
        if len(piece):
            await loop.sock_sendall(worker.socket, piece)
    return await _message(worker)


async def _message(worker: Worker) -> tuple[dict[str, Any], list[bytearray]]:
    size = int.from_bytes(await _exactly(worker, _SIZE), "little")
    header = json.loads(await _exactly(worker, size))
    return header, [await _exactly(worker, n) for n in header["sizes"]]


async def _exactly(worker: Worker, size: int) -> bytearray:
    loop = asyncio.get_running_loop()
    found = bytearray(size)
    rest = memoryview(found)
    while len(rest):
        count = await loop.sock_recv_into(worker.socket, rest)
        if not count:
            raise ConnectionError("the worker ended")
        rest = rest[count:]
    return found
