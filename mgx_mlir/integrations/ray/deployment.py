"""A Ray Serve deployment: models of a directory over the Open Inference Protocol."""

# ray is an optional dependency
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ray import serve
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response as HttpResponse

import mgx_mlir
from mgx_mlir.compiler.compiled import CompiledProgram
from mgx_mlir.integrations.ray.artefacts import Artefact, shared_program
from mgx_mlir.integrations.ray.metrics import Metrics
from mgx_mlir.integrations.ray.routes import wait_for_route
from mgx_mlir.integrations.serve.pool import PoolSize
from mgx_mlir.integrations.serve.pool_server import PoolServer, memory_share
from mgx_mlir.integrations.v2.errors import V2Error
from mgx_mlir.integrations.v2.front import Policy
from mgx_mlir.integrations.v2.models import Entry, find_models, load_models


@dataclass(frozen=True)
class ServeSettings:
    """Settings of models that Ray serves."""

    target: str | None = None  # target of `mgx_mlir.compile`
    options: Mapping[str, Any] = field(default_factory=dict)  # options of `mgx_mlir.compile`
    # number of replicas, or (least, most) for autoscaling
    replicas: int | tuple[int, int] = 1
    # seconds that a request waits for others of a model whose config.json has max_batch_size
    batch_wait: float = 0.005
    policy: Policy = field(default_factory=Policy)  # limits and time-outs
    num_cpus: float = 1.0  # CPUs of a replica
    num_gpus: float = 0.0  # GPUs of a replica


class MgxDeployment:
    """One replica: all models of a directory, compiled once for the cluster and warmed up.

    Ray sends requests after `__init__`, so that every ready replica is warm.
    """

    async def __init__(self, folder: str, settings: ServeSettings) -> None:
        self._settings, self._metrics = settings, Metrics()
        self._files = tempfile.TemporaryDirectory(prefix="mgx-serve-")
        rows: list[dict[str, Any]] = []
        for k, entry in enumerate(find_models(folder)):
            path = entry.path
            [served] = load_models([entry], self._program)
            if path.suffix != ".mxr":
                path = Path(self._files.name, f"{k}.mxr")
                mgx_mlir.save(served.program, path)
            served.program.close()
            rows.append({"name": entry.name, "version": entry.version, "path": str(path),
                         "config": dict(entry.config)})  # fmt: skip
        most = settings.replicas if isinstance(settings.replicas, int) else settings.replicas[1]
        size = PoolSize(batch_wait=settings.batch_wait)
        memory = memory_share(most * (size.most + size.long))
        self._server = PoolServer.of(rows, settings.policy, size, memory, self._metrics)
        await self._server.pool.open()

    def _program(self, entry: Entry) -> CompiledProgram:
        own, config = self._settings, entry.config
        options = {**own.options, **config.get("options", {})}
        for key in ("arch", "threads"):
            if key in config:
                options[key] = config[key]
        target = config.get("target", own.target)
        if entry.path.suffix == ".mxr":
            target, options = None, {}
        program = shared_program(Artefact.of(entry.path, target, options))
        stats = program.stats
        self._metrics.compiled(entry.name, None if stats.cached else stats.total_s or 0.0)
        return program

    async def __call__(self, request: Request) -> HttpResponse:
        """Answer a request over HTTP."""
        headers = {k.lower(): v for k, v in request.headers.items()}
        found = await self._server.handle(request.method, request.url.path, headers, _body(request))
        return HttpResponse(bytes(found.body), found.status, dict(found.headers))

    async def check_health(self) -> None:
        """Raise if the replica does not work; Ray then replaces it."""
        self._server.trim()
        wrong = self._server.health("live")
        if wrong:
            raise RuntimeError(wrong)

    def __del__(self) -> None:
        """Remove the files; the workers end with this process."""
        files = vars(self).get("_files")
        if files is not None:
            files.cleanup()


async def _body(request: Request) -> AsyncIterator[bytes]:
    try:
        async for part in request.stream():
            yield part
    except ClientDisconnect:
        raise V2Error("the client went away", 408) from None


def application(folder: str | os.PathLike[str], settings: ServeSettings) -> serve.Application:
    """Return the application that serves a directory's models: `serve.run(application(..))`.

    FileError where the directory has no models.
    """
    find_models(folder)
    options: dict[str, Any] = {
        "name": "mgx",
        "ray_actor_options": {"num_cpus": settings.num_cpus, "num_gpus": settings.num_gpus},
        # the replica itself answers 429, with a reason
        "max_ongoing_requests": 2 * settings.policy.queue + 16,
        "graceful_shutdown_timeout_s": 10,
        "health_check_period_s": 2,
        "max_constructor_retry_count": 2,
    }
    if isinstance(settings.replicas, tuple):
        least, most = settings.replicas
        options["autoscaling_config"] = {
            "min_replicas": least, "max_replicas": most,
            "target_ongoing_requests": max(1, settings.policy.queue // 4),
        }  # fmt: skip
    else:
        options["num_replicas"] = settings.replicas
    deployment = serve.deployment(MgxDeployment, **options)
    return deployment.bind(os.path.abspath(folder), settings)


def serve_models(
    folder: str | os.PathLike[str],
    settings: ServeSettings | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
) -> None:
    """Start serving a directory's models on this cluster; return when all are warm.

    Raises MgxError, and RuntimeError where a replica cannot start.
    """
    own = settings or ServeSettings()
    policy = own.policy
    # a run may start twice: docs/serving.md
    seconds = policy.read_timeout + 2 * (policy.wait_timeout + policy.run_timeout) + 10
    serve.start(
        http_options={"host": host, "port": port, "request_timeout_s": seconds,
                      "keep_alive_timeout_s": 60}
    )  # fmt: skip
    serve.run(application(folder, own), name="mgx", route_prefix="/")
    wait_for_route(host, port, "mgx")
