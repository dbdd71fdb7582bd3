"""Bodies of requests, read within limits of each body and of all bodies together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping

from mgx_mlir.integrations.v2.errors import V2Error
from mgx_mlir.integrations.v2.messages import Limits, too_large

# bytes of a body that are always accepted: slow senders of large bodies do not block small ones
_SMALL = 1 << 16


class _Reading:
    """A body that is being read: its bytes so far, and the reading task."""

    def __init__(self) -> None:
        self.size, self.task, self.dropped = 0, asyncio.current_task(), False


class BodyMemory:
    """Memory of all bodies, at most `most` bytes; `largest` is the limit of one body.

    If a body does not fit, the one that has been read for longest is dropped. So a client that
    sends at once finishes before one that stalls.
    """

    def __init__(self, most: int) -> None:
        self.most, self.held, self.largest = most, 0, 0
        self._reading: dict[int, _Reading] = {}  # bodies in the order of their starts

    def enter(self) -> _Reading:
        """Start to read a body in this task; `leave` ends it."""
        made = _Reading()
        self._reading[id(made)] = made
        return made

    def add(self, reading: _Reading, count: int) -> None:
        """Count bytes of a body. Errors: V2Error, 503, if this body is the one read for longest."""
        reading.size += count
        self.held += count
        self.largest = max(self.largest, reading.size)
        while self.held > self.most and reading.size > _SMALL:
            oldest = next((r for r in self._reading.values() if r.size > _SMALL), reading)
            if oldest is reading:
                raise self.refusal()
            self._reading.pop(id(oldest))
            self.held -= oldest.size
            oldest.size, oldest.dropped = 0, True
            if oldest.task is not None:
                oldest.task.cancel()

    def read(self, reading: _Reading) -> None:
        """Mark a body as complete: it counts until `leave`, and is not dropped."""
        self._reading.pop(id(reading), None)

    def leave(self, reading: _Reading) -> None:
        """Remove a body."""
        self._reading.pop(id(reading), None)
        self.held -= reading.size
        reading.size = 0

    def refusal(self) -> V2Error:
        """Return the error of a body that does not fit."""
        return V2Error(f"the server holds {self.most} bytes of other requests: try again", 503)


async def read_body(
    headers: Mapping[str, str], body: AsyncIterator[bytes], limits: Limits, room: BodyMemory,
    reading: _Reading,
) -> bytes:  # fmt: skip
    """Return a body; stop at the limit.

    Errors: V2Error; 413 beyond the limit, 503 if other bodies need the memory.
    """
    stated = headers.get("content-length", "")
    if stated and (not stated.isdecimal() or len(stated) > 18):
        raise V2Error(f"content-length expected a size, got '{stated[:40]}'")
    if stated and int(stated) > limits.body:
        raise too_large(limits)
    parts: list[bytes] = []
    size = 0
    try:
        async for part in body:
            size += len(part)
            if size > limits.body:
                raise too_large(limits)
            room.add(reading, len(part))
            parts.append(part)
    except asyncio.CancelledError:
        if reading.dropped:
            raise room.refusal() from None
        raise
    room.read(reading)
    if stated and size != int(stated):
        raise V2Error(f"the body has {size} bytes, content-length said {stated}")
    return b"".join(parts)


async def drop(body: AsyncIterator[bytes], most: int, idle: float = 0.5) -> None:
    """Read and discard the rest of a refused body.

    Without it, the connection of a client that is still sending is reset, and the client sees no
    answer. Reading ends after `most` bytes, or `idle` seconds without any.
    """
    parts = aiter(body)
    while most > 0:
        try:
            most -= len(await asyncio.wait_for(anext(parts), idle))
        except (StopAsyncIteration, asyncio.TimeoutError, V2Error):
            return
