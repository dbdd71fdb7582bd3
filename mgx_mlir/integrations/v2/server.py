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
from mgx_mlir.integrations.v2.bodies import Room, drop, read_body
from mgx_mlir.integrations.v2.errors import V2Error, error_body, error_of
from mgx_mlir.integrations.v2.messages import (
    HEADER,
    InferRequest,
    Limits,
    encode_response,
    parse_request,
    unpacked,
)
from mgx_mlir.integrations.v2.models import Models, ServedModel
from mgx_mlir.integrations.v2.origins import Origins, check_type

EXTENSIONS = ["binary_tensor_data", "model_repository(index)", "model_configuration"]
_PATHS = ("/v2", "/v2/", "/v2/health/live", "/v2/health/ready", "/v2/repository/index")
_MODEL = re.compile(r"/v2/models/([^/]+)(?:/versions/([^/]+))?(?:/(ready|infer|config))?")


@dataclass(frozen=True)
class Response:
    """An answer over HTTP."""

    status: int
    body: bytes | bytearray = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Policy:
    """Limits of a server: bytes, requests at a time, seconds of each step."""

    limits: Limits = field(default_factory=Limits)
    queue: int = 64  # requests whose body was read, and that are not answered
    read_timeout: float = 10.0  # seconds to read a body
    run_timeout: float = 60.0  # seconds of a run
    wait_timeout: float = 120.0  # seconds until a run begins
    held: int = 512 << 20  # bytes of all bodies together
    origins: Origins = field(default_factory=Origins)  # pages and hosts that may send requests


class Observer(Protocol):
    """Who is told of each request: its model, HTTP status, and seconds."""

    def request(self, model: str, status: int, seconds: float) -> None:
        """Note a request that was answered."""
        ...


Infer = Callable[[Call], Awaitable[Outputs]]


class V2Server:
    """Answers the requests of one process. `infer` runs a checked call, alone or with others.

    A subclass may parse and run elsewhere (`answered`), and know how it does (`health`).
    """

    def __init__(
        self, models: Models, infer: Infer, policy: Policy, observer: Observer | None = None
    ) -> None:
        self.models, self._infer, self.policy, self._observer = models, infer, policy, observer
        self.waiting = 0
        self.room = Room(policy.held)

    async def handle(
        self, method: str, path: str, headers: Mapping[str, str], body: AsyncIterator[bytes]
    ) -> Response:
        """Return the answer to a request; every error is one of the protocol's.

        `headers` have names in lower case; `body` gives pieces as they come.
        """
        start = asyncio.get_running_loop().time()
        name = ""
        origins = self.policy.origins
        try:
            origins.check(headers)
            found = _MODEL.fullmatch(path)
            if found is not None:
                name, version = unquote(found[1]), found[2] and unquote(found[2])
                answer = await self._of_model(method, name, version, found[3], headers, body)
            else:
                answer = self.of_server(method, path)
        except Exception as e:
            error = error_of(e)
            headers_ = {"content-type": "application/json"}
            if error.status in (429, 503):
                headers_["retry-after"] = "1"
            if error.status in (408, 413):
                headers_["connection"] = "close"  # the rest of the body is not read
            if error.status == 405:
                headers_["allow"] = "POST" if path.endswith("/infer") else "GET, HEAD"
            answer = Response(error.status, error_body(error), headers_)
        if granted := origins.granted(headers):
            answer = Response(answer.status, answer.body, {**answer.headers, **granted})
        if self._observer is not None and path.endswith("/infer"):
            known = name if self.models.versions(name) else "unknown"
            seconds = asyncio.get_running_loop().time() - start
            self._observer.request(known, answer.status, seconds)
        return answer

    def health(self, what: str) -> str:
        """Return why the server is not "live" or "ready", "" where it is."""
        return ""

    def of_server(self, method: str, path: str) -> Response:
        """Answer a request about no model. Errors: V2Error."""
        if path not in _PATHS:
            raise V2Error(f"unknown path '{path[:200]}'", 404)
        wanted = ("POST",) if path == "/v2/repository/index" else ("GET", "HEAD")
        if method not in wanted:
            raise V2Error(f"expected {wanted[0]}, got {method}", 405)
        if path in ("/v2/health/live", "/v2/health/ready"):
            wrong = self.health(path.rpartition("/")[2])
            if wrong:
                raise V2Error(wrong, 503)
            return Response(200)
        if path in ("/v2", "/v2/"):
            return _json({"name": "mgx_mlir", "version": mgx_mlir.__version__,
                          "extensions": EXTENSIONS})  # fmt: skip
        rows = [{"name": m.name, "version": m.version, "state": "READY", "reason": ""}
                for m in self.models.all]  # fmt: skip
        return _json(rows)

    async def _of_model(
        self, method: str, name: str, version: str | None, what: str | None,
        headers: Mapping[str, str], body: AsyncIterator[bytes],
    ) -> Response:  # fmt: skip
        model = self.models.get(name, version)
        if method == "OPTIONS" and self.policy.origins.allows(headers.get("origin")):
            return Response(204)
        if what != "infer" and method not in ("GET", "HEAD"):
            raise V2Error(f"expected GET, got {method}", 405)
        if what == "ready":
            wrong = self.health("ready")
            if wrong:
                raise V2Error(wrong, 503)
            return Response(200)
        if what == "config":
            return _json(model.config())
        if what is None:
            return _json(model.metadata(self.models.versions(name)))
        if method != "POST":
            raise V2Error(f"expected POST, got {method}", 405)
        check_type(headers)
        reading = self.room.enter()
        try:
            data = await self._read(headers, body, reading)
            # here and not before: who sends slowly takes nobody's place
            if self.waiting >= self.policy.queue:
                raise V2Error(f"the queue is full: {self.waiting} requests wait", 429)
            self.waiting += 1
            try:
                return await self.answered(model, headers, data)
            finally:
                self.waiting -= 1
        finally:
            self.room.leave(reading)

    async def _read(
        self, headers: Mapping[str, str], body: AsyncIterator[bytes], reading: Any
    ) -> bytes:
        policy = self.policy
        task = asyncio.ensure_future(read_body(headers, body, policy.limits, self.room, reading))
        reading.task = task
        try:
            return await asyncio.wait_for(task, policy.read_timeout)
        except asyncio.TimeoutError:
            raise V2Error(f"the body took longer than {policy.read_timeout:g} s", 408) from None
        except V2Error as e:
            if e.status == 413:
                await drop(body, 4 * policy.limits.body)
            raise

    async def answered(
        self, model: ServedModel, headers: Mapping[str, str], data: bytes
    ) -> Response:
        """Return the answer to a request whose body was read. Errors: V2Error and others."""
        policy = self.policy
        request, call = parsed_call(model, headers, data, policy.limits)
        try:
            outputs = await asyncio.wait_for(self._infer(call), policy.run_timeout)
        except asyncio.TimeoutError:
            raise V2Error(f"the run took longer than {policy.run_timeout:g} s", 504) from None
        return encoded(model, request, outputs, policy.limits)


def parsed_call(
    model: ServedModel, headers: Mapping[str, str], data: bytes, limits: Limits
) -> tuple[InferRequest, Call]:
    """Return the request of a body, and the checked call that it asks for. Errors: MgxError."""
    data = unpacked(data, headers.get("content-encoding", "").lower(), limits)
    request = parse_request(data, headers.get(HEADER), limits)
    return request, Call(model, request.inputs, model.checked(request.inputs, request.outputs))


def encoded(
    model: ServedModel, request: InferRequest, outputs: Outputs, limits: Limits
) -> Response:
    """Return the response that holds the outputs of a call. Errors: V2Error."""
    by_name = dict(zip(model.program.output_names, outputs, strict=True))
    wanted = [(n, by_name[n]) for n in request.outputs or by_name]
    content, heads = encode_response(request, model.name, model.version, wanted, limits)
    return Response(200, content, heads)


def _json(value: Any) -> Response:
    return Response(200, json.dumps(value).encode(), {"content-type": "application/json"})
