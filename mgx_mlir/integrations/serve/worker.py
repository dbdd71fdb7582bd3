"""A worker process of the server: request bodies in, answers out, one batch at a time."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mgx_mlir.integrations.serve.prepared import loaded
from mgx_mlir.integrations.v2.batching import Call, groups, run_together
from mgx_mlir.integrations.v2.errors import error_body, error_of
from mgx_mlir.integrations.v2.front import Response
from mgx_mlir.integrations.v2.messages import InferRequest, Limits
from mgx_mlir.integrations.v2.models import ServedModel
from mgx_mlir.integrations.v2.server import encoded, parsed_call
from mgx_mlir.runtime.device import load_runtime
from mgx_mlir.runtime.workers import limit_memory, memory_of_this, receive, send

HANDLER = "mgx_mlir.integrations.serve.worker:prepare"
_KEPT = 24 << 20  # bytes above its first size that an idle worker may hold
_PRIORITY = 3  # nice(2) value: half the CPU share of the server's own process


def prepare(setup: Mapping[str, Any]) -> Callable[[socket.socket], None]:
    """Load the models of `setup`, and return the object that serves them on a socket."""
    load_runtime()  # slow to load; forked processes share it
    models = {(m.name, m.version): m for m in loaded(setup["models"])}
    limits = Limits(**setup["limits"])

    def serve(own: socket.socket) -> None:
        # the process that reads requests gets CPU first: without it no client gets an answer
        os.nice(_PRIORITY)
        _Served(models, limits, setup["memory"]).serve(own)

    return serve


class _Served:
    """Models in one worker. memory: bytes that it may allocate itself, None: any number."""

    def __init__(
        self, models: Mapping[tuple[str, str], ServedModel], limits: Limits, memory: int | None
    ) -> None:
        self._models, self._limits = models, limits
        if memory is not None:
            limit_memory(memory)
        self._begin = memory_of_this("RssAnon")

    def serve(self, own: socket.socket) -> None:
        """Answer messages until the socket closes."""
        while True:
            message = receive(own)
            if message is None:
                return
            header, bodies = message
            if "warm" in header:
                for model in self._models.values():
                    model.warm_up()
                send(own, {"warm": True})
                self._begin = memory_of_this("RssAnon")
                continue
            answers, rows = self._answers(header["jobs"], bodies)
            del message, bodies
            full = memory_of_this("RssAnon") - self._begin > _KEPT
            heads = [{"status": a.status, "headers": dict(a.headers)} for a in answers]
            send(own, {"answers": heads, "rows": rows, "full": full}, [a.body for a in answers])
            del answers

    def _answers(
        self, jobs: Sequence[Mapping[str, Any]], bodies: Sequence[bytearray]
    ) -> tuple[list[Response], list[int]]:
        """Return the answers of requests, and the rows of each run."""
        found: list[Response | None] = [None] * len(jobs)
        asked: list[tuple[int, InferRequest, Call]] = []
        for i, (job, body) in enumerate(zip(jobs, bodies, strict=True)):
            model = self._models[job["model"], job["version"]]
            try:
                request, call = parsed_call(model, job["headers"], bytes(body), self._limits)
                asked.append((i, request, call))
            except Exception as e:
                found[i] = _failed(e)
        rows: list[int] = []
        for group in groups([call for _, _, call in asked]):
            own = [asked[k] for k in group]
            rows.append(sum(call.rows for _, _, call in own))
            results = run_together([call for _, _, call in own])
            for (i, request, call), result in zip(own, results, strict=True):
                try:
                    if isinstance(result, Exception):
                        raise result
                    found[i] = encoded(call.model, request, result, self._limits)
                except Exception as e:
                    found[i] = _failed(e)
        return [f if f is not None else _failed(KeyError()) for f in found], rows


def _failed(e: Exception) -> Response:
    error = error_of(e)
    headers = {"content-type": "application/json"}
    if error.status == 503:
        headers["retry-after"] = "1"
    return Response(error.status, error_body(error), headers)
