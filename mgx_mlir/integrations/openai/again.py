"""Answers that survive the death of the process that computes them: another one recomputes them.

The same request with the same seed gives the same tokens. So a second process starts the stream
again, and the client gets the events that it does not have yet.
"""

from __future__ import annotations

import json
import secrets
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from typing import Any

from mgx_mlir.integrations.openai.answers import DONE, error_event
from mgx_mlir.integrations.v2.errors import V2Error
from mgx_mlir.integrations.v2.messages import json_object

_TRIES = 5  # attempts at one request, after which the request is taken for the cause of the deaths
_LAST = ("response.completed", "response.incomplete", "error")  # events that end a response
Parts = AsyncGenerator[Any, None]  # a head, then the pieces of its body


def with_seed(body: bytes) -> bytes:
    """Return a request with a seed, drawn if it states none. A wrong seed stays, for its error."""
    try:
        row = json_object(body)
    except V2Error:
        return body
    if row.get("seed") is None:
        row["seed"] = secrets.randbelow(1 << 63)
    return json.dumps(row).encode()


class Stream:
    """Events of one stream, over all processes that computed it."""

    def __init__(self) -> None:
        self._given: Counter[int] = Counter()  # sent events by choice, over all attempts
        self._now: Counter[int] = Counter()  # events by choice in this attempt
        self._head: dict[str, Any] = {}  # identity that the first event states
        self.ended = False  # true once the last event was seen
        self._sent = 0  # events of a response
        self._own = self._first = b""  # ids of a response: this attempt's, and the sent one

    def begin(self) -> None:
        """Start an attempt."""
        self._now = Counter()

    def add(self, piece: bytes) -> bytes:
        """Return the events of a piece that the client does not have yet."""
        if not piece.startswith((b"data: ", b"event: ")):
            return piece  # a comment
        return b"".join(self._one(part + b"\n\n") for part in piece.split(b"\n\n") if part)

    def _one(self, event: bytes) -> bytes:
        if event == DONE:
            self.ended = True
            return event
        if event.startswith(b"event: "):
            return self._of_response(event)
        row = json.loads(event.removeprefix(b"data: "))
        if "id" not in row:  # an error
            self.ended = True
            return event
        choice = row["choices"][0]["index"] if row["choices"] else -1
        self._now[choice] += 1
        if self._now[choice] <= self._given[choice]:
            return b""
        self._given[choice] += 1
        if not self._head:
            self._head = {k: row[k] for k in ("id", "created")}
        return b"data: " + json.dumps({**row, **self._head}).encode() + b"\n\n"

    def _of_response(self, event: bytes) -> bytes:
        """Return an event of /v1/responses, with the response's first id, unless it was sent."""
        row = json.loads(event.partition(b"\ndata: ")[2])
        kind, place = row["type"], row["sequence_number"]
        if kind == "response.created":
            self._own = row["response"]["id"].removeprefix("resp_").encode()
            self._first = self._first or self._own
        self.ended = self.ended or kind in _LAST
        if place < self._sent:
            return b""
        self._sent = place + 1
        return event.replace(self._own, self._first) if self._own else event


async def again(
    ask: Callable[[], Parts], died: tuple[type[BaseException], ...], streamed: Callable[[Any], bool]
) -> Parts:
    """Yield a head, then a body's pieces; start again when the process dies.

    ask: starts an attempt. died: errors of an attempt whose process has died. streamed: whether a
    head's body is a stream. Errors: V2Error, 503, after too many deaths.
    """
    stream, head = Stream(), None
    for _ in range(_TRIES):
        parts = ask()
        stream.begin()
        try:
            found = await anext(parts)
            # a body that is no stream is one piece: its head waits for it
            if not streamed(found):
                body = b"".join([part async for part in parts])
                if not body:
                    continue
                if head is None:
                    yield found
                yield body if head is None else error_event(body)
                return
            if head is None:
                head = found
                yield head
            async for part in parts:
                if new := stream.add(part):
                    yield new
            if stream.ended:
                return
        except (StopAsyncIteration, *died):  # an end without the last event is a death too
            continue
        finally:
            await parts.aclose()
    raise V2Error(f"{_TRIES} processes died at the request: try again", 503)
