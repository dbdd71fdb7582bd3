"""The front of every HTTP server: origins, bodies, the queue, errors."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from mgx_mlir.integrations.v2.bodies import BodyMemory, drop, read_body
from mgx_mlir.integrations.v2.errors import V2Error, error_body, error_of
from mgx_mlir.integrations.v2.messages import Limits
from mgx_mlir.integrations.v2.origins import Origins, check_type


@dataclass(frozen=True)
class Response:
    """An HTTP answer. stream: replaces `body` by pieces, if its length is unknown."""

    status: int
    body: bytes | bytearray = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    stream: AsyncGenerator[bytes, None] | None = None


@dataclass(frozen=True)
class Policy:
    """Limits of a server: bytes, requests at a time, seconds of each step."""

    limits: Limits = field(default_factory=Limits)
    queue: int = 64  # requests with a complete body that are not answered yet
    read_timeout: float = 10.0  # seconds to read a body
    run_timeout: float = 60.0  # seconds of a run
    wait_timeout: float = 120.0  # seconds until a run begins
    held: int = 512 << 20  # bytes of all bodies together
    origins: Origins = field(default_factory=Origins)  # pages and hosts that may send requests


class Observer(Protocol):
    """Observer of each request: its model, HTTP status, and seconds."""

    def request(self, model: str, status: int, seconds: float) -> None:
        """Record a request that was answered."""
        ...


class Front:
    """Checks of requests for any path. `waiting` is the number of requests in the queue."""

    def __init__(self, policy: Policy) -> None:
        self.policy, self.waiting, self.room = policy, 0, BodyMemory(policy.held)

    def refusal(self, error: V2Error) -> Response:
        """Return the answer for an error."""
        return Response(error.status, error_body(error), {"content-type": "application/json"})

    def failed(self, e: Exception, allow: str) -> Response:
        """Return the answer to a failed request; allow: methods of its path."""
        error = error_of(e)
        more: dict[str, str] = {}
        if error.status in (429, 503):
            more["retry-after"] = "1"
        if error.status in (408, 413):
            more["connection"] = "close"  # the rest of the body is not read
        if error.status == 405:
            more["allow"] = allow
        answer = self.refusal(error)
        return replace(answer, headers={**answer.headers, **more})

    def granted(self, headers: Mapping[str, str], answer: Response) -> Response:
        """Add the headers that let scripts of an allowed origin read the answer."""
        more = self.policy.origins.granted(headers)
        return replace(answer, headers={**answer.headers, **more}) if more else answer

    @contextlib.asynccontextmanager
    async def read(
        self, headers: Mapping[str, str], body: AsyncIterator[bytes]
    ) -> AsyncIterator[bytes]:
        """Yield the body of a request, which counts as held in the block. Errors: V2Error."""
        check_type(headers)
        policy = self.policy
        reading = self.room.enter()
        try:
            task = asyncio.ensure_future(
                read_body(headers, body, policy.limits, self.room, reading)
            )
            reading.task = task
            try:
                data = await asyncio.wait_for(task, policy.read_timeout)
            except asyncio.TimeoutError:
                raise V2Error(f"the body took longer than {policy.read_timeout:g} s", 408) from None
            except V2Error as e:
                if e.status == 413:
                    await drop(body, 4 * policy.limits.body)
                raise
            yield data
        finally:
            self.room.leave(reading)

    def take_places(self, count: int = 1) -> None:
        """Take slots in the queue. Errors: V2Error, 429, if there are too few."""
        # only with a complete body: a slow sender occupies no slot
        if self.waiting + count > self.policy.queue:
            raise V2Error(f"the queue is full: {self.waiting} requests wait", 429)
        self.waiting += count

    def leave_places(self, count: int = 1) -> None:
        """Release slots of the queue."""
        self.waiting -= count

    @contextlib.contextmanager
    def place(self) -> Iterator[None]:
        """Hold a slot of the queue in the block. Errors: V2Error, 429."""
        self.take_places()
        try:
            yield
        finally:
            self.leave_places()
