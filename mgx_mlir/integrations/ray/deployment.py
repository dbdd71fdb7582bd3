"""A Ray Serve deployment: models of a directory over the Open Inference Protocol."""

# ray is an extra, and need not be there
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, cast

from ray import serve
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response as HttpResponse

from mgx_mlir.compiler.compiled import CompiledProgram
from mgx_mlir.hardware.machine import available_cpus
from mgx_mlir.integrations.ray.artefacts import Artefact, shared_program
from mgx_mlir.integrations.ray.metrics import Metrics
from mgx_mlir.integrations.v2.batching import Call, Outputs, groups, run_together
from mgx_mlir.integrations.v2.errors import V2Error
from mgx_mlir.integrations.v2.models import Entry, Models, find_models, load_models
from mgx_mlir.integrations.v2.server import Policy, V2Server


@dataclass(frozen=True)
class ServeSettings:
    """How models are served.

    target, options: of `mgx_mlir.compile`. replicas: a number, or (least, most) for autoscaling.
    max_batch_size: joins requests for models that state none themselves; batch_wait: seconds that
    a request waits for others. policy: limits and time-outs. num_cpus, num_gpus: of a replica.
    """

    target: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    replicas: int | tuple[int, int] = 1
    batch_wait: float = 0.005
    policy: Policy = field(default_factory=Policy)
    num_cpus: float = 1.0
    num_gpus: float = 0.0


class MgxDeployment:
    """One replica: all models of a directory, compiled once for the cluster and warmed up.

    Ray sends requests to it when `__init__` is done, so that a replica that is ready is warm.
    """

    def __init__(self, folder: str, settings: ServeSettings) -> None:
        self._settings, self._metrics = settings, Metrics()
        served = load_models(find_models(folder), self._program)
        for model in served:
            model.warm_up()
        policy = settings.policy
        self._server = V2Server(Models(served), self._infer, policy, self._metrics)
        self._threads = ThreadPoolExecutor(max(2, available_cpus()), "mgx-run")
        most = max(m.max_batch_size for m in served)
        batched = cast(Any, self._batch)
        batched.set_max_batch_size(max(most, available_cpus()))
        batched.set_batch_wait_timeout_s(settings.batch_wait if most > 1 else 0.0)

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
        return HttpResponse(found.body, found.status, dict(found.headers))

    async def _infer(self, call: Call) -> Outputs:
        found = await cast(Any, self._batch)(call)
        if isinstance(found, Exception):
            raise found
        return found

    @serve.batch(max_batch_size=8, batch_wait_timeout_s=0.0, max_concurrent_batches=8)
    async def _batch(self, calls: list[Call]) -> list[Any]:
        """Run the calls that wait, those of one model together where it says that it may."""
        found: list[Any] = [None] * len(calls)

        async def run(places: list[int]) -> None:
            own = [calls[i] for i in places]
            self._metrics.run(own[0].model.name, sum(c.rows for c in own))
            loop = asyncio.get_running_loop()
            results = await loop.run_in_executor(self._threads, run_together, own)
            for i, result in zip(places, results, strict=True):
                found[i] = result

        await asyncio.gather(*(run(places) for places in groups(calls)))
        return found

    def check_health(self) -> None:
        """Say to Ray that the replica works: it raises where it does not."""
        if not self._server.models.all:
            raise RuntimeError("the replica has no models")


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
        # the replica answers 429 itself, with a reason
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
    """Start serving a directory's models on this cluster; returns when all are warm.

    Raises MgxError, and RuntimeError where a replica cannot start.
    """
    own = settings or ServeSettings()
    seconds = own.policy.read_timeout + own.policy.run_timeout + 10
    serve.start(
        http_options={"host": host, "port": port, "request_timeout_s": seconds,
                      "keep_alive_timeout_s": 60}
    )  # fmt: skip
    serve.run(application(folder, own), name="mgx", route_prefix="/")
