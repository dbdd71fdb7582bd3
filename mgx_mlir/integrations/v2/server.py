"""Paths of the protocol, and the answers to their requests."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import unquote

import mgx_mlir
from mgx_mlir.integrations.v2.batching import Call, Outputs
from mgx_mlir.integrations.v2.errors import V2Error
from mgx_mlir.integrations.v2.front import Front, Observer, Policy, Response
from mgx_mlir.integrations.v2.messages import (
    HEADER,
    InferRequest,
    Limits,
    encode_response,
    parse_request,
    unpacked,
)
from mgx_mlir.integrations.v2.models import Models, ServedModel

EXTENSIONS = ["binary_tensor_data", "model_repository(index)", "model_configuration"]
_PATHS = ("/v2", "/v2/", "/v2/health/live", "/v2/health/ready", "/v2/repository/index")
_MODEL = re.compile(r"/v2/models/([^/]+)(?:/versions/([^/]+))?(?:/(ready|infer|config))?")


Infer = Callable[[Call], Awaitable[Outputs]]


class V2Server(Front):
    """Server of one process. `infer` runs a checked call, alone or batched.

    A subclass may parse and run in other processes (`answered`), and report their state (`health`).
    """

    def __init__(
        self, models: Models, infer: Infer, policy: Policy, observer: Observer | None = None
    ) -> None:
        super().__init__(policy)
        self.models, self._infer, self._observer = models, infer, observer

    async def handle(
        self, method: str, path: str, headers: Mapping[str, str], body: AsyncIterator[bytes]
    ) -> Response:
        """Return the answer to a request; every error has the protocol's form.

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
            answer = self.failed(e, "POST" if path.endswith("/infer") else "GET, HEAD")
        answer = self.granted(headers, answer)
        if self._observer is not None and path.endswith("/infer"):
            known = name if self.models.versions(name) else "unknown"
            seconds = asyncio.get_running_loop().time() - start
            self._observer.request(known, answer.status, seconds)
        return answer

    def health(self, what: str) -> str:
        """Return why the server is not "live" or "ready", "" if it is."""
        return ""

    def of_server(self, method: str, path: str) -> Response:
        """Answer a request about the server itself. Errors: V2Error."""
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
        async with self.read(headers, body) as data:
            with self.place():
                return await self.answered(model, headers, data)

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
    """Parse a body; return the request and its checked call. Errors: MgxError."""
    data = unpacked(data, headers.get("content-encoding", "").lower(), limits)
    request = parse_request(data, headers.get(HEADER), limits)
    return request, Call(model, request.inputs, model.checked(request.inputs, request.outputs))


def encoded(
    model: ServedModel, request: InferRequest, outputs: Outputs, limits: Limits
) -> Response:
    """Return the response with the outputs of a call. Errors: V2Error."""
    by_name = dict(zip(model.program.output_names, outputs, strict=True))
    wanted = [(n, by_name[n]) for n in request.outputs or by_name]
    content, heads = encode_response(request, model.name, model.version, wanted, limits)
    return Response(200, content, heads)


def _json(value: Any) -> Response:
    return Response(200, json.dumps(value).encode(), {"content-type": "application/json"})
