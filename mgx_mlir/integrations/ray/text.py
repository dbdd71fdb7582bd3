"""A language model on Ray Serve: replicas scale with load, and answers survive a replica's
death.
"""

# ray is an optional dependency
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
from __future__ import annotations

import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ray import serve
from ray.exceptions import (
    ActorUnavailableError,
    NodeDiedError,
    ObjectLostError,
    RayActorError,
    WorkerCrashedError,
)
from starlette.requests import Request
from starlette.responses import Response as HttpResponse
from starlette.responses import StreamingResponse

from mgx_mlir.integrations.openai.again import again, with_seed
from mgx_mlir.integrations.openai.server import TextServer
from mgx_mlir.integrations.ray.routes import wait_for_route
from mgx_mlir.integrations.v2.errors import V2Error
from mgx_mlir.integrations.v2.front import Policy
from mgx_mlir.text import TextModel, load

# errors by which the death of a replica, of its node, or of sent objects shows first
_DIED = (
    RayActorError, ActorUnavailableError, WorkerCrashedError, NodeDiedError, ObjectLostError,
)  # fmt: skip


@dataclass(frozen=True)
class TextSettings:
    """Settings of a language model that Ray serves."""

    name: str  # model's name in requests
    load: Callable[..., TextModel] = load  # function that makes a model from a path and `options`
    options: Mapping[str, Any] = field(default_factory=dict)
    replicas: int | tuple[int, int] = 1  # number, or (least, most) for autoscaling
    policy: Policy = field(default_factory=lambda: Policy(run_timeout=600.0))
    num_cpus: float = 1.0  # CPUs of a replica


class TextReplica:
    """One replica: a model and its engine."""

    async def __init__(self, path: str, settings: TextSettings) -> None:
        model = settings.load(path, **settings.options)
        self._server = TextServer(model, settings.name, settings.policy)
        await self._server.open()

    async def answer(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes
    ) -> AsyncGenerator[Any, None]:
        """Yield status and headers, then the pieces of the body."""

        async def pieces() -> AsyncIterator[bytes]:
            yield body

        found = await self._server.handle(method, path, headers, pieces())
        yield found.status, dict(found.headers), found.stream is not None
        if found.stream is None:
            yield bytes(found.body)
            return
        try:
            async for piece in found.stream:
                yield piece
        finally:
            await found.stream.aclose()

    async def check_health(self) -> None:
        """Raise if the replica does not work; Ray then replaces it."""
        if wrong := self._server.health():
            raise RuntimeError(wrong)


class TextIngress:
    """HTTP front that has replicas answer the requests."""

    def __init__(self, replica: Any, settings: TextSettings) -> None:
        self._replica, self._policy = replica, settings.policy

    async def __call__(self, request: Request) -> HttpResponse:
        """Answer a request over HTTP."""
        most, body = self._policy.limits.body, b""
        async for part in request.stream():
            body += part
            if len(body) > most:
                return _failed(V2Error(f"the body is larger than {most} bytes", 413))
        headers = {k.lower(): v for k, v in request.headers.items()}
        if "content-encoding" not in headers:
            body = with_seed(body)
        headers["content-length"] = str(len(body))
        call = self._replica.options(stream=True).answer

        def ask() -> AsyncGenerator[Any, None]:
            return _of(call.remote(request.method, request.url.path, headers, body))

        parts = again(ask, _DIED, lambda head: head[2])
        try:
            status, own, streamed = await anext(parts)
            if not streamed:
                return HttpResponse(b"".join([p async for p in parts]), status, own)
        except V2Error as e:
            return _failed(e)
        return StreamingResponse(parts, status, own)


async def _of(parts: Any) -> AsyncGenerator[Any, None]:
    """Yield what a replica yields; a consumer that stops early cancels it."""
    try:
        async for part in parts:
            yield part
    finally:
        parts.cancel()


def _failed(e: V2Error) -> HttpResponse:
    from mgx_mlir.integrations.openai.answers import error_body

    return HttpResponse(error_body(e), e.status, {"content-type": "application/json"})


def serve_text(
    path: str | os.PathLike[str],
    settings: TextSettings,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
) -> None:
    """Start serving a language model on this cluster; return when all replicas are ready.

    path: a model that every node sees. Raises RuntimeError where a replica cannot start.
    """
    policy = settings.policy
    options: dict[str, Any] = {
        "ray_actor_options": {"num_cpus": settings.num_cpus},
        # a replica itself answers 429, with a reason
        "max_ongoing_requests": 2 * policy.queue + 16,
        "health_check_period_s": 2,
    }
    if isinstance(settings.replicas, tuple):
        least, most = settings.replicas
        options["autoscaling_config"] = {
            "min_replicas": least, "max_replicas": most,
            "target_ongoing_requests": max(1, policy.queue // 4),
        }  # fmt: skip
    else:
        options["num_replicas"] = settings.replicas
    replica = serve.deployment(TextReplica, name="replica", **options)
    ingress = serve.deployment(
        TextIngress, name="ingress", max_ongoing_requests=4096,
        ray_actor_options={"num_cpus": 0.1},
    )  # fmt: skip
    serve.start(http_options={"host": host, "port": port})
    bound = ingress.bind(replica.bind(os.path.abspath(path), settings), settings)
    serve.run(bound, name="text", route_prefix="/")
    wait_for_route(host, port, "text")
