"""Bodies of requests, read within limits: of one, and of all that are being read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping

from mgx_mlir.integrations.v2.errors import V2Error
from mgx_mlir.integrations.v2.messages import Limits, too_large

_SMALL = 1 << 16  # bytes of a body that always find room: slow senders of large ones lock none out


class _Reading:
    """One body that is being read: the bytes so far, and the task that reads."""

    def __init__(self) -> None:
        self.size, self.task, self.dropped = 0, asyncio.current_task(), False


class Room:
    """The bytes of bodies that are held, at most `most`; `largest` is the size of one of them.

    Where a body finds no room, the one that has been read for longest gives way: a client that
    sends at once is finished before one that stalls.
    """

    def __init__(self, most: int) -> None:
        self.most, self.held, self.largest = most, 0, 0
        self._reading: dict[int, _Reading] = {}  # in the order of their begins

    def enter(self) -> _Reading:
        """Begin to read a body in this task; to be left."""
        made = _Reading()
        self._reading[id(made)] = made
        return made

    def add(self, reading: _Reading, count: int) -> None:
        """Note bytes of a body. Errors: V2Error, 503, where it is itself the longest."""
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
        """Say that a body is complete: it counts until it is left, and gives way to none."""
        self._reading.pop(id(reading), None)

    def leave(self, reading: _Reading) -> None:
        """Forget a body."""
        self._reading.pop(id(reading), None)
        self.held -= reading.size
        reading.size = 0

    def refusal(self) -> V2Error:
        """Return the error of a body that finds no room."""
        return V2Error(f"the server holds {self.most} bytes of other requests: try again", 503)


async def read_body(
    headers: Mapping[str, str], body: AsyncIterator[bytes], limits: Limits, room: Room,
    reading: _Reading,
) -> bytes:  # fmt: skip
    """Return a body, of which no more than the limit is kept.

    Errors: V2Error; 413 beyond the limit, 503 where other bodies need the room.
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
