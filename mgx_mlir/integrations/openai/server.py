"""Paths of OpenAI's protocol for text, and the answers to their requests."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from typing import Any, Protocol
from urllib.parse import unquote

from mgx_mlir.core.errors import MgxError
from mgx_mlir.integrations.openai.answers import ALIVE, Choice, Writer, error_body
from mgx_mlir.integrations.openai.fields import ApiError
from mgx_mlir.integrations.openai.follow import Followers
from mgx_mlir.integrations.openai.questions import Question, question
from mgx_mlir.integrations.openai.responses import ResponseWriter, response_question
from mgx_mlir.integrations.v2.errors import V2Error, error_of
from mgx_mlir.integrations.v2.front import Front, Policy, Response
from mgx_mlir.integrations.v2.messages import json_object, unpacked
from mgx_mlir.text.model import TextModel
from mgx_mlir.text.requests import Piece

_RESPONSES = "/v1/responses"
_POST = ("/v1/completions", "/v1/chat/completions", _RESPONSES)
_SILENCE = 3.0  # seconds without a token after which a stream sends a comment


class TextObserver(Protocol):
    """Observer of requests and answers, for metrics."""

    def request(self, model: str, status: int, seconds: float) -> None:
        """Record a request that was answered."""
        ...

    def begun(self, model: str, seconds: float) -> None:
        """Record the seconds to the first token of an answer."""
        ...

    def tokens(self, model: str, prompt: int, cached: int, made: int) -> None:
        """Record the tokens of a request: prompts, the part of them found in the cache, answers."""
        ...


class TextServer(Front):
    """Answers requests by one model, whose engine a thread drives between `open` and `close`."""

    def __init__(
        self, model: TextModel, name: str, policy: Policy, observer: TextObserver | None = None
    ) -> None:
        super().__init__(policy)
        self.model, self.name, self._observer = model, name, observer
        self._engine = model.engine()
        self._followers: Followers | None = None
        self._created = int(time.time())

    async def open(self) -> None:
        """Start the engine's thread."""
        self._followers = Followers(self._engine)
        self._engine.start()

    async def close(self) -> None:
        """Cancel all answers and end the thread."""
        await asyncio.to_thread(self._engine.close)
        if self._followers is not None:
            self._followers.close()

    def counts(self) -> Mapping[str, int]:
        """Return the counts of queued requests, answers being computed, and waiting answers."""
        engine = self._engine
        return {"requests": self.waiting, "answering": engine.active, "waiting": engine.waiting}

    def trim(self, unread: int = 0) -> None:
        """Do nothing: no large memory is held between requests."""

    def health(self) -> str:
        """Return why requests cannot be answered, "" where they can."""
        return "" if self._engine.driven else "the engine does not run"

    def refusal(self, error: V2Error) -> Response:
        """Return the answer that says an error, in OpenAI's form."""
        return Response(error.status, error_body(error), {"content-type": "application/json"})

    async def handle(
        self, method: str, path: str, headers: Mapping[str, str], body: AsyncIterator[bytes]
    ) -> Response:
        """Return the answer to a request; every error has the protocol's form."""
        start = asyncio.get_running_loop().time()
        answer: Response
        try:
            self.policy.origins.check(headers)
            if method == "OPTIONS" and self.policy.origins.allows(headers.get("origin")):
                answer = Response(204)
            elif path in _POST:
                if method != "POST":
                    raise V2Error(f"expected POST, got {method}", 405)
                answer = await self._answered(path, headers, body)
            else:
                answer = self._of_server(method, path)
        except Exception as e:
            answer = self.failed(e, "POST" if path in _POST else "GET, HEAD")
        if self._observer is not None and path in _POST:
            seconds = asyncio.get_running_loop().time() - start
            self._observer.request(self.name, answer.status, seconds)
        return self.granted(headers, answer)

    def _of_server(self, method: str, path: str) -> Response:
        known = path.removeprefix("/v1/models/") if path.startswith("/v1/models/") else None
        if path not in ("/health", "/v1/models") and not known:
            known_paths = ", ".join((*_POST, "/v1/models", "/health"))
            raise V2Error(f"unknown path '{path[:200]}', expected one of {known_paths}", 404)
        if method not in ("GET", "HEAD"):
            raise V2Error(f"expected GET, got {method}", 405)
        if path == "/health":
            if wrong := self.health():
                raise V2Error(wrong, 503)
            return _json({"status": "ok"})
        row = {"id": self.name, "object": "model", "created": self._created,
               "owned_by": "mgx_mlir"}  # fmt: skip
        if known is None:
            return _json({"object": "list", "data": [row]})
        if unquote(known) != self.name:
            raise ApiError(f"the model '{unquote(known)[:80]}' does not exist", 404,
                           param="model", code="model_not_found")  # fmt: skip
        return _json(row)

    # ---- answers -----------------------------------------------------------------------------

    async def _answered(
        self, path: str, headers: Mapping[str, str], body: AsyncIterator[bytes]
    ) -> Response:
        limits = self.policy.limits
        async with self.read(headers, body) as data:
            data = unpacked(data, headers.get("content-encoding", "").lower(), limits)
            row = json_object(data)
            # templates and tokenizers are slow on long prompts
            asked, writer = await asyncio.to_thread(self._read, path, row)
        count = len(asked.requests)
        if count > self.policy.queue:
            raise ApiError(f"{count} answers to one request, the limit is {self.policy.queue}",
                           param="n")  # fmt: skip
        self.take_places(count)
        events = self._events(asked, writer)
        await anext(events)  # started, so that closing it frees its slots in the queue
        if asked.stream:
            heads = {"content-type": "text/event-stream", "cache-control": "no-cache"}
            return Response(200, stream=events, headers=heads)
        async with contextlib.aclosing(events):
            whole = [part async for part in events]
        return Response(200, whole[-1], {"content-type": "application/json"})

    def _read(self, path: str, row: Mapping[str, Any]) -> tuple[Question, Writer | ResponseWriter]:
        """Return a request, and the writer of its answer. Raises ApiError, MgxError."""
        if path == _RESPONSES:
            asked = response_question(row, self.model, self.name)
            return asked, ResponseWriter(asked, self.model.tokenizer, self._ends(asked), row)
        asked = question(row, path == "/v1/chat/completions", self.model, self.name)
        return asked, Writer(asked, self.model.tokenizer, self._ends(asked))

    def _ends(self, asked: Question) -> frozenset[int]:
        own = asked.requests[0].stop_tokens
        return self.model.stop_tokens if own is None else own

    async def _events(
        self, asked: Question, writer: Writer | ResponseWriter
    ) -> AsyncGenerator[bytes, None]:
        """Yield nothing once, then the events of a stream, or the one answer."""
        ends = self._ends(asked)
        choices: list[Choice] = []
        try:
            yield b""
            for i, request in enumerate(asked.requests):
                handle = self._engine.submit(request)
                begin = asked.echo[i] if asked.echo else ""
                choices.append(Choice(i, handle, begin, writer.reader()))
            if asked.stream:
                for choice in choices:
                    yield writer.begin(choice)
            async with contextlib.aclosing(self._merged(choices)) as pieces:
                async for choice, piece in pieces:
                    if piece is None:
                        yield ALIVE
                    elif asked.stream:
                        yield writer.piece(choice, piece)
                    else:
                        choice.add(piece, ends)
            yield writer.end(choices) if asked.stream else writer.whole(choices)
        except Exception as e:
            if not asked.stream:
                raise
            yield writer.error(bytes(self.refusal(error_of(e)).body))
        finally:
            for choice in choices:
                choice.handle.cancel()
            self.leave_places(len(asked.requests))
            self._note(asked, choices)

    def _note(self, asked: Question, choices: Sequence[Choice]) -> None:
        if self._observer is not None:
            cached = sum(c.handle.cached_tokens for c in choices)
            made = sum(len(c.handle.tokens) for c in choices)
            prompts = sum(c.handle.prompt_tokens for c in choices)
            self._observer.tokens(self.name, prompts, cached, made)

    async def _merged(
        self, choices: Sequence[Choice]
    ) -> AsyncGenerator[tuple[Choice, Piece | None], None]:
        """Yield pieces of all answers as they come. Errors: that of the first one that fails."""
        if len(choices) == 1:
            async with contextlib.aclosing(self._limited(choices[0])) as pieces:
                async for piece in pieces:
                    yield choices[0], piece
            return
        queue: asyncio.Queue[tuple[Choice, Piece | Exception | None]] = asyncio.Queue()
        left = len(choices)

        async def follow(choice: Choice) -> None:
            try:
                async with contextlib.aclosing(self._limited(choice)) as pieces:
                    async for piece in pieces:
                        queue.put_nowait((choice, piece))
            except Exception as e:
                queue.put_nowait((choice, e))

        tasks = [asyncio.ensure_future(follow(c)) for c in choices]
        try:
            while left:
                choice, piece = await queue.get()
                if isinstance(piece, Exception):
                    raise piece
                yield choice, piece
                left -= piece is not None and piece.finish_reason is not None
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _limited(self, choice: Choice) -> AsyncGenerator[Piece | None, None]:
        """Yield pieces of an answer. Errors: V2Error where it starts or ends too late."""
        assert self._followers is not None
        policy, loop = self.policy, asyncio.get_running_loop()
        start, first = loop.time(), 0.0
        pause = min(_SILENCE, policy.wait_timeout, policy.run_timeout)
        async with contextlib.aclosing(self._followers.pieces(choice.handle, pause)) as pieces:
            async for piece in pieces:
                now = loop.time()
                if piece is not None and not first:
                    first = now
                    if self._observer is not None:
                        self._observer.begun(self.name, now - start)
                ended = piece is not None and piece.finish_reason is not None
                if not first and now - start > policy.wait_timeout:
                    raise V2Error(f"no token within {policy.wait_timeout:g} s: try again", 503)
                if first and not ended and now - first > policy.run_timeout:
                    raise V2Error(f"the answer took longer than {policy.run_timeout:g} s", 504)
                yield piece
        if (error := choice.handle.error) is not None:
            # the model's fault, not the request's
            why = str(error) if isinstance(error, MgxError) else type(error).__name__
            raise V2Error(f"the model failed: {why}", 500)
        if choice.handle.finish_reason == "cancelled":
            raise V2Error("the server is shutting down", 503)


def _json(value: Any, status: int = 200) -> Response:
    return Response(status, json.dumps(value).encode(), {"content-type": "application/json"})
