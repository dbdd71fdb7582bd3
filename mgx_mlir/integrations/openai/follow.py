"""Bridge from an engine's thread to an event loop: one call wakes all waiting tasks."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator

from mgx_mlir.text.engine import Engine
from mgx_mlir.text.requests import Handle, Piece


class Followers:
    """Waits for pieces of one engine's answers. Made in the event loop that uses it."""

    def __init__(self, engine: Engine) -> None:
        self._engine, self._loop = engine, asyncio.get_running_loop()
        # true: pieces have arrived or the answer is done, false: a time without any has passed
        self._waiting: dict[Handle, asyncio.Future[bool]] = {}
        self._told = False
        engine.listeners.append(self._step)

    def close(self) -> None:
        """Stop following the engine."""
        self._engine.listeners.remove(self._step)

    def _step(self) -> None:
        """Schedule a check of the answers from the engine's thread; pending calls are merged."""
        if not self._told:
            self._told = True
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._look)

    def _look(self) -> None:
        self._told = False
        for handle, news in self._waiting.items():
            if handle.pieces or handle.done:
                _settle(news, True)

    async def pieces(self, handle: Handle, seconds: float) -> AsyncGenerator[Piece | None, None]:
        """Yield the pieces of an answer, and None after each `seconds` without one.

        A consumer that stops early cancels the answer. A failed answer ends the pieces; its handle
        has the error.
        """
        try:
            while True:
                done = handle.done  # read first: after `done`, all pieces have arrived
                while handle.pieces:
                    yield handle.pieces.popleft()
                if done:
                    break
                # asyncio.wait_for would make a task for each token
                news = self._waiting[handle] = self._loop.create_future()
                if handle.pieces or handle.done:
                    continue
                silence = self._loop.call_later(seconds, _settle, news, False)
                try:
                    is_news = await news
                finally:
                    silence.cancel()
                if not is_news:
                    yield None
        finally:
            self._waiting.pop(handle, None)
            if not handle.done:
                handle.cancel()


def _settle(news: asyncio.Future[bool], value: bool) -> None:
    if not news.done():
        news.set_result(value)
