"""The protocol's paths: which request asks for what, and the answer to it."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import unquote

import mgx_mlir
from mgx_mlir.integrations.v2.batching import Call, Outputs
from mgx_mlir.integrations.v2.errors import V2Error, error_body, error_of
from mgx_mlir.integrations.v2.messages import (
    HEADER,
    Limits,
    encode_response,
    parse_request,
    too_large,
    unpacked,
)
from mgx_mlir.integrations.v2.models import Models, ServedModel

EXTENSIONS = ["binary_tensor_data", "model_repository(index)", "model_configuration"]
_MODEL = re.compile(r"/v2/models/([^/]+)(?:/versions/([^/]+))?(?:/(ready|infer|config))?")


@dataclass(frozen=True)
class Response:
    """An answer over HTTP."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Policy:
    """What a server takes: bytes, requests at a time, seconds to read a body and to answer."""

    limits: Limits = field(default_factory=Limits)
    queue: int = 64
    read_timeout: float = 10.0
    run_timeout: float = 60.0


class Observer(Protocol):
    """Who is told of each request: its model, HTTP status, and seconds."""

    def request(self, model: str, status: int, seconds: float) -> None:
        """Note a request that was answered."""
        ...


Infer = Callable[[Call], Awaitable[Outputs]]


class V2Server:
    """Answers the requests of one process. `infer` runs a checked call, alone or with others."""

    def __init__(
        self, models: Models, infer: Infer, policy: Policy, observer: Observer | None = None
    ) -> None:
        self.models, self._infer, self.policy, self._observer = models, infer, policy, observer
        self.waiting = 0

    async def handle(
        self, method: str, path: str, headers: Mapping[str, str], body: AsyncIterator[bytes]
    ) -> Response:
        """Return the answer to a request; every error is one of the protocol's.

        `headers` have names in lower case; `body` gives pieces as they come.
        """
        start = asyncio.get_running_loop().time()
        name = ""
        try:
            found = _MODEL.fullmatch(path)
            if found is not None:
                name, version = unquote(found[1]), found[2]
                answer = await self._of_model(method, name, version, found[3], headers, body)
            else:
                answer = self._of_server(method, path)
        except Exception as e:
            error = error_of(e)
            headers_ = {"content-type": "application/json"}
            if error.status in (429, 503):
                headers_["retry-after"] = "1"
            if error.status in (408, 413):
                headers_["connection"] = "close"  # what follows of the body is not read
            answer = Response(error.status, error_body(error), headers_)
        if self._observer is not None and path.endswith("/infer"):
            known = name if self.models.versions(name) else "unknown"
            seconds = asyncio.get_running_loop().time() - start
            self._observer.request(known, answer.status, seconds)
        return answer

    def _of_server(self, method: str, path: str) -> Response:
        if path in ("/v2/health/live", "/v2/health/ready"):
            return Response(200)
        if path in ("/v2", "/v2/"):
            return _json({"name": "mgx_mlir", "version": mgx_mlir.__version__,
                          "extensions": EXTENSIONS})  # fmt: skip
        if path == "/v2/repository/index":
            rows = [{"name": m.name, "version": m.version, "state": "READY", "reason": ""}
                    for m in self.models.all]  # fmt: skip
            return _json(rows)
        raise V2Error(f"unknown path '{path[:200]}'", 404)

    async def _of_model(
        self, method: str, name: str, version: str | None, what: str | None,
        headers: Mapping[str, str], body: AsyncIterator[bytes],
    ) -> Response:  # fmt: skip
        model = self.models.get(name, version)
        if what == "ready":
            return Response(200)
        if what == "config":
            return _json(model.config())
        if what is None:
            return _json(model.metadata(self.models.versions(name)))
        if method != "POST":
            raise V2Error(f"expected POST, got {method}", 405)
        if self.waiting >= self.policy.queue:
            raise V2Error(f"the queue is full: {self.waiting} requests wait", 429)
        self.waiting += 1
        try:
            return await self._inferred(model, headers, body)
        finally:
            self.waiting -= 1

    async def _inferred(
        self, model: ServedModel, headers: Mapping[str, str], body: AsyncIterator[bytes]
    ) -> Response:
        policy = self.policy
        try:
            data = await asyncio.wait_for(
                read_body(headers, body, policy.limits), policy.read_timeout
            )
        except asyncio.TimeoutError:
            raise V2Error(f"the body took longer than {policy.read_timeout:g} s", 408) from None
        except V2Error as e:
            if e.status == 413:
                await drop(body, 4 * policy.limits.body)
            raise
        data = unpacked(data, headers.get("content-encoding", "").lower(), policy.limits)
        request = parse_request(data, headers.get(HEADER), policy.limits)
        call = Call(model, request.inputs, model.checked(request.inputs, request.outputs))
        try:
            outputs = await asyncio.wait_for(self._infer(call), policy.run_timeout)
        except asyncio.TimeoutError:
            raise V2Error(f"the run took longer than {policy.run_timeout:g} s", 504) from None
        by_name = dict(zip(model.program.output_names, outputs, strict=True))
        wanted = [(n, by_name[n]) for n in request.outputs or by_name]
        content, heads = encode_response(request, model.name, model.version, wanted)
        return Response(200, content, heads)


async def read_body(
    headers: Mapping[str, str], body: AsyncIterator[bytes], limits: Limits
) -> bytes:
    """Return a body, of which no more than the limit is kept. Errors: V2Error, 413."""
    stated = headers.get("content-length", "")
    if stated and (not stated.isdecimal() or len(stated) > 18):
        raise V2Error(f"content-length expected a size, got '{stated[:40]}'")
    if stated and int(stated) > limits.body:
        raise too_large(limits)
    parts: list[bytes] = []
    size = 0
    async for part in body:
        size += len(part)
        if size > limits.body:
            raise too_large(limits)
        parts.append(part)
    if stated and size != int(stated):
        raise V2Error(f"the body has {size} bytes, content-length said {stated}")
    return b"".join(parts)


async def drop(body: AsyncIterator[bytes], most: int, idle: float = 0.5) -> None:
    """Read what follows of a body that is refused, and keep nothing of it.

    A client that is still sending sees no answer otherwise: its connection is reset. It ends
    after `most` bytes, or `idle` seconds in which nothing comes.
    """
    parts = aiter(body)
    while most > 0:
        try:
            most -= len(await asyncio.wait_for(anext(parts), idle))
        except (StopAsyncIteration, asyncio.TimeoutError, V2Error):
            return


def _json(value: Any) -> Response:
    return Response(200, json.dumps(value).encode(), {"content-type": "application/json"})
