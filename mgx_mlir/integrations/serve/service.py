"""The whole service: start of a server, its port, and its end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import resource
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from mgx_mlir.core.errors import FileError
from mgx_mlir.integrations.serve.http import Handler, HttpLimits, HttpServer
from mgx_mlir.integrations.serve.metrics import CONTENT_TYPE, Metrics
from mgx_mlir.integrations.serve.pool import PoolSize
from mgx_mlir.integrations.serve.pool_server import PoolServer, memory_share
from mgx_mlir.integrations.v2.bodies import BodyMemory
from mgx_mlir.integrations.v2.errors import V2Error
from mgx_mlir.integrations.v2.front import Front, Policy, Response

_GRACE = 10.0  # seconds that requests have when the service ends
_FILES = 1 << 16  # descriptors that the service asks for
_OWN_FILES = 48  # descriptors of workers, listeners and Python, with a margin
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ServiceSettings:
    """Settings of a service of any kind."""

    host: str = "127.0.0.1"
    port: int = 8000  # 0: any free port
    policy: Policy = field(default_factory=Policy)
    http: HttpLimits = field(default_factory=HttpLimits)
    metrics_port: int | None = None  # additional port that answers only /metrics


class Server(Handler, Protocol):
    """A server that answers between `open` and `close`."""

    room: BodyMemory

    async def open(self) -> None:
        """Prepare to answer. Errors: MgxError."""
        ...

    async def close(self) -> None:
        """End requests that are being answered with 503."""
        ...

    def counts(self) -> Mapping[str, int]:
        """Return current counts, for metrics."""
        ...

    def trim(self, unread: int) -> None:
        """Return memory to the system; called each second. unread: bytes that clients have not
        read.
        """
        ...


class MetricsServer:
    """Answer /metrics, and have `rest` answer all other paths."""

    def __init__(self, metrics: Metrics, policy: Policy, rest: Handler | None = None) -> None:
        self._metrics, self._rest = metrics, rest
        self._front = Front(policy)

    async def handle(
        self, method: str, path: str, headers: Mapping[str, str], body: AsyncIterator[bytes]
    ) -> Response:
        """Answer a request."""
        if path == "/metrics" and method in ("GET", "HEAD"):
            try:
                self._front.policy.origins.check(headers)
            except V2Error as e:
                return self.refusal(e)
            return Response(200, self._metrics.text(), {"content-type": CONTENT_TYPE})
        if self._rest is None:
            return Response(404)
        return await self._rest.handle(method, path, headers, body)

    def refusal(self, error: V2Error) -> Response:
        """Return the answer to a request that is not handled."""
        return (self._rest or self._front).refusal(error)


def pool_server(
    rows: Sequence[Mapping[str, Any]],
    policy: Policy,
    size: PoolSize,
    memory: int | None,
    metrics: Metrics,
) -> PoolServer:
    """Return a server of prepared models.

    rows: result of `prepared`. memory: bytes that a worker may allocate itself; None: its share of
    the machine's.
    """
    for row in rows:
        metrics.compiled(row["name"], row["seconds"])
    return PoolServer.of(rows, policy, size, memory or memory_share(size.most + size.long), metrics)


async def serve(
    server: Server,
    metrics: Metrics,
    settings: ServiceSettings,
    *,
    ready: Callable[[int], None],
    ended: asyncio.Event,
) -> None:
    """Serve until `ended` is set.

    ready: called with the port once all models are warm. Errors: MgxError if the server cannot
    start or the port is not available.
    """
    files = _raise_file_limit()
    limits, backlog = _fitting(settings.http, files)
    policy = settings.policy
    listeners = [HttpServer(MetricsServer(metrics, policy, server), limits)]
    if settings.metrics_port is not None:
        listeners.append(HttpServer(MetricsServer(metrics, policy), limits))
    for what in server.counts():
        metrics.now(what, lambda what=what: server.counts()[what])
    metrics.now("connections", lambda: listeners[0].count)
    metrics.now("held_bytes", lambda: server.room.held)
    metrics.now("unread_bytes", lambda: listeners[0].unread)
    trims = asyncio.ensure_future(_trims(server, listeners[0]))
    host, port = settings.host, settings.port
    try:
        await server.open()
        try:
            bound = await listeners[0].listen(host, port, backlog)
            for each in listeners[1:]:
                await each.listen(host, settings.metrics_port or 0, backlog)
        except OSError as e:
            why = (e.strerror or str(e)).lower()
            raise FileError(f"cannot listen on {host}, port {port}: {why}") from None
        ready(bound)
        await ended.wait()
    finally:
        closing = [asyncio.ensure_future(each.close(_GRACE + 2)) for each in listeners]
        await asyncio.wait(closing, timeout=_GRACE)
        trims.cancel()
        await server.close()
        await asyncio.gather(*closing)


async def _trims(server: Server, listener: HttpServer) -> None:
    while True:
        await asyncio.sleep(1.0)
        server.trim(listener.unread)


def _fitting(limits: HttpLimits, files: int) -> tuple[HttpLimits, int]:
    """Return limits that leave descriptors for workers, and the backlog of accepted connections.

    Each connection takes a descriptor, even one over the limit: it is closed after it was accepted.
    """
    rest = max(files - _OWN_FILES, 16)
    most = min(limits.connections, rest // 2)
    if most < limits.connections:
        log.warning("%d connections at a time, not %d: the system allows %d descriptors",
                    most, limits.connections, files)  # fmt: skip
    return replace(limits, connections=most), min(2048, (rest - most) // 2)


def _raise_file_limit() -> int:
    """Raise the limit of descriptors as far as the system allows; return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(hard, _FILES)
    if soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _FILES if soft == resource.RLIM_INFINITY else soft
