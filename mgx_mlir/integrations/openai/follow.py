"""Answers of an engine's thread in an event loop: one call wakes all that wait."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator

from mgx_mlir.text.engine import Engine
from mgx_mlir.text.requests import Handle, Piece


class Followers:
    """Waits for pieces of handles of one engine. Made in the loop that uses it."""

    def __init__(self, engine: Engine) -> None:
        self._engine, self._loop = engine, asyncio.get_running_loop()
        self._waiting: dict[Handle, asyncio.Event] = {}
        self._told = False
        engine.listeners.append(self._step)

    def close(self) -> None:
        """Wait for nothing more."""
        self._engine.listeners.remove(self._step)

    def _step(self) -> None:
        """Have the loop look, from the engine's thread; calls that come together are one."""
        if not self._told:
            self._told = True
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._look)

    def _look(self) -> None:
        self._told = False
        for handle, event in self._waiting.items():
            if handle.pieces or handle.done:
                event.set()

    async def pieces(self, handle: Handle, seconds: float) -> AsyncGenerator[Piece | None, None]:
        """Yield the pieces of an answer, and None after so many seconds without one.

        Whoever stops before the end cancels the answer. An answer that fails ends: its handle has
        the error.
        """
        event = self._waiting[handle] = asyncio.Event()
        try:
            while True:
                done = handle.done  # asked first: its last pieces are there once it is
                while handle.pieces:
                    yield handle.pieces.popleft()
                if done:
                    break
                event.clear()
                if handle.pieces or handle.done:
                    continue
                try:
                    await asyncio.wait_for(event.wait(), seconds)
                except asyncio.TimeoutError:
                    yield None
        finally:
            del self._waiting[handle]
            if not handle.done:
                handle.cancel()
