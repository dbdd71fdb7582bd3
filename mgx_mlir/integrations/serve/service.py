"""The whole service: models compiled, workers started, a port that is listened on, and its end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import resource
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mgx_mlir.core.errors import FileError
from mgx_mlir.integrations.serve.http import HttpLimits, HttpServer
from mgx_mlir.integrations.serve.metrics import CONTENT_TYPE, Metrics
from mgx_mlir.integrations.serve.pool import PoolSize
from mgx_mlir.integrations.serve.pool_server import PoolServer, memory_share
from mgx_mlir.integrations.v2.errors import V2Error, error_body
from mgx_mlir.integrations.v2.server import Policy, Response, V2Server

_GRACE = 10.0  # seconds that requests have when the service ends
_FILES = 1 << 16  # descriptors that it asks for
_OWN_FILES = 48  # descriptors of workers, of listeners and of Python, with some to spare
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ServiceSettings:
    """Settings of a service of prepared models: numbers of workers, limits."""

    size: PoolSize = field(default_factory=PoolSize)
    policy: Policy = field(default_factory=Policy)
    http: HttpLimits = field(default_factory=HttpLimits)
    # bytes that a worker may take by itself; None: its share of the machine's memory
    memory: int | None = None
    metrics_port: int | None = None  # additional port that answers /metrics alone


class MetricsServer:
    """Answers /metrics, and has `rest` answer everything else."""

    def __init__(self, metrics: Metrics, policy: Policy, rest: V2Server | None = None) -> None:
        self._metrics, self._policy, self._rest = metrics, policy, rest

    async def handle(
        self, method: str, path: str, headers: Mapping[str, str], body: AsyncIterator[bytes]
    ) -> Response:
        """Answer a request."""
        if path == "/metrics" and method in ("GET", "HEAD"):
            try:
                self._policy.origins.check(headers)
            except V2Error as e:
                return Response(e.status, error_body(e), {"content-type": "application/json"})
            return Response(200, self._metrics.text(), {"content-type": CONTENT_TYPE})
        if self._rest is None:
            return Response(404)
        return await self._rest.handle(method, path, headers, body)


async def serve(
    rows: Sequence[Mapping[str, Any]],
    settings: ServiceSettings,
    host: str,
    port: int,
    *,
    ready: Callable[[int, int], None],
    ended: asyncio.Event,
) -> None:
    """Serve prepared models until `ended` is set.

    rows: of `prepared`. ready: is called with the port and the number of models once all are warm.
    Errors: MgxError where a model or the port cannot be served.
    """
    files = _raise_file_limit()
    limits, backlog = _fitting(settings.http, files)
    metrics, policy, size = Metrics(), settings.policy, settings.size
    for row in rows:
        metrics.compiled(row["name"], row["seconds"])
    memory = settings.memory or memory_share(size.most + size.long)
    server = PoolServer.of(rows, policy, size, memory, metrics)
    pool = server.pool
    listeners = [HttpServer(MetricsServer(metrics, policy, server), limits)]
    if settings.metrics_port is not None:
        listeners.append(HttpServer(MetricsServer(metrics, policy), limits))
    for what in pool.counts():
        metrics.now(what, lambda what=what: pool.counts()[what])
    metrics.now("connections", lambda: listeners[0].count)
    metrics.now("held_bytes", lambda: server.room.held)
    metrics.now("unread_bytes", lambda: listeners[0].unread)
    trims = asyncio.ensure_future(_trims(server, listeners[0]))
    try:
        await pool.open()
        try:
            bound = await listeners[0].listen(host, port, backlog)
            for each in listeners[1:]:
                await each.listen(host, settings.metrics_port or 0, backlog)
        except OSError as e:
            why = (e.strerror or str(e)).lower()
            raise FileError(f"cannot listen on {host}, port {port}: {why}") from None
        ready(bound, len(rows))
        await ended.wait()
    finally:
        closing = [asyncio.ensure_future(each.close(_GRACE + 2)) for each in listeners]
        await asyncio.wait(closing, timeout=_GRACE)
        trims.cancel()
        await pool.close()  # running requests are answered with 503
        await asyncio.gather(*closing)


async def _trims(server: PoolServer, listener: HttpServer) -> None:
    while True:
        await asyncio.sleep(1.0)
        server.trim(listener.unread)


def _fitting(limits: HttpLimits, files: int) -> tuple[HttpLimits, int]:
    """Return limits that leave descriptors for workers, and how many are accepted at a time.

    Each connection takes a descriptor, those too: they are closed after they were accepted.
    """
    rest = max(files - _OWN_FILES, 16)
    most = min(limits.connections, rest // 2)
    if most < limits.connections:
        log.warning("%d connections at a time, not %d: the system gives %d descriptors",
                    most, limits.connections, files)  # fmt: skip
    return replace(limits, connections=most), min(2048, (rest - most) // 2)


def _raise_file_limit() -> int:
    """Ask for as many descriptors as the system gives; how many there are."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(hard, _FILES)
    if soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _FILES if soft == resource.RLIM_INFINITY else soft
