"""Connections of the server: clients that leave, that close one side, that do not read."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import pytest

from mgx_mlir.integrations.v2.errors import V2Error
from mgx_mlir.integrations.v2.front import Response

pytest.importorskip("h11")

from mgx_mlir.integrations.serve import http
from mgx_mlir.integrations.serve.http import HttpLimits, HttpServer
from tests.serving.hostile import request

Client = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Answers:
    """A handler: it answers with so many bytes, once `go` is set; `seen` says how requests end.

    pieces: it answers with so many pieces of this size.
    """

    def __init__(self, size: int = 0, pieces: int = 0) -> None:
        self.size, self.pieces, self.go = size, pieces, asyncio.Event()
        self.seen: list[str] = []

    async def handle(
        self, method: str, path: str, headers: Mapping[str, str], body: AsyncIterator[bytes]
    ) -> Response:
        try:
            async for _ in body:
                pass
            self.seen.append("begun")
            await self.go.wait()
            self.seen.append("answered")
            if self.pieces:
                return Response(200, stream=self._stream())
            return Response(200, bytes(self.size))
        except asyncio.CancelledError:
            self.seen.append("left")
            raise

    async def _stream(self) -> AsyncGenerator[bytes, None]:
        try:
            for _ in range(self.pieces):
                yield bytes(self.size)
                await asyncio.sleep(0.001)
            self.seen.append("streamed")
        finally:
            self.seen.append("closed")

    def refusal(self, error: V2Error) -> Response:
        return Response(error.status)

    async def until(self, *seen: str) -> None:
        """Wait for how requests end."""
        for _ in range(1000):
            if self.seen == [*seen]:
                return
            await asyncio.sleep(0.01)
        raise AssertionError(self.seen)


def served(
    use: Callable[[Answers, HttpServer, Callable[[], Awaitable[Client]]], Awaitable[None]],
    size: int = 0, pieces: int = 0, **limits: Any,
) -> None:  # fmt: skip
    """Run a test with a server, and a function that connects to it."""

    async def main() -> None:
        answers = Answers(size, pieces)
        server = HttpServer(answers, HttpLimits(**limits))
        port = await server.listen("127.0.0.1", 0)

        async def connected() -> Client:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 14)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 14)
            return reader, writer

        try:
            await asyncio.wait_for(use(answers, server, connected), 60)
        finally:
            await server.close(0.0)

    asyncio.run(main())


def reset(writer: asyncio.StreamWriter) -> None:
    own = writer.get_extra_info("socket")
    own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


@pytest.mark.parametrize("ahead", [b"", request()[:70], request() * 3])
@pytest.mark.parametrize("end", [asyncio.StreamWriter.close, reset])
def test_a_client_that_leaves_frees_its_run(
    end: Callable[[asyncio.StreamWriter], None], ahead: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Closed or reset, with more requests on the way or without."""
    monkeypatch.setattr(http, "_ASKED", 0.05)

    async def use(answers: Answers, server: HttpServer, connected: Any) -> None:
        _, writer = await connected()
        writer.write(request() + ahead)
        await writer.drain()
        await answers.until("begun")
        end(writer)
        await answers.until("begun", "left")

    served(use)


def test_a_client_that_closes_its_side_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server probes the client by interim responses, and sends the answer after them."""
    monkeypatch.setattr(http, "_ASKED", 0.05)

    async def use(answers: Answers, server: HttpServer, connected: Any) -> None:
        reader, writer = await connected()
        writer.write(request())
        writer.write_eof()
        await answers.until("begun")
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        answers.go.set()
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 OK")
        assert await reader.read() == bytes(1000)
        writer.close()

    served(use, size=1000)


def test_a_client_of_an_old_version_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "_ASKED", 0.05)

    async def use(answers: Answers, server: HttpServer, connected: Any) -> None:
        reader, writer = await connected()
        writer.write(request().replace(b"HTTP/1.1", b"HTTP/1.0"))
        writer.write_eof()
        await answers.until("begun", "left")
        assert await reader.read() == b""

    served(use)


def test_answers_that_nobody_reads_give_way() -> None:
    """The oldest answers are dropped; the newest, and one that is read, are complete."""
    size, most = 8 << 20, 20 << 20

    async def use(answers: Answers, server: HttpServer, connected: Any) -> None:
        answers.go.set()
        clients: list[Client] = []
        for i in range(6):
            clients.append(await connected())
            clients[-1][1].write(request())
            await answers.until(*["begun", "answered"] * (i + 1))
        await asyncio.sleep(0.1)
        assert server.unread <= most
        assert server.closed_for_others >= 4
        reader, _ = clients[-1]
        await reader.readuntil(b"\r\n\r\n")
        assert len(await reader.readexactly(size)) == size
        with contextlib.suppress(ConnectionError):
            assert len(await clients[0][0].read()) < size
        for _, writer in clients:
            writer.close()

    served(use, size=size, unread=most)


def test_one_answer_may_have_any_size() -> None:
    async def use(answers: Answers, server: HttpServer, connected: Any) -> None:
        answers.go.set()
        reader, writer = await connected()
        writer.write(request())
        await reader.readuntil(b"\r\n\r\n")
        assert len(await reader.readexactly(1 << 22)) == 1 << 22
        assert server.closed_for_others == 0
        writer.close()

    served(use, size=1 << 22, unread=1 << 20)


def test_pieces_come_in_chunks_and_the_connection_stays() -> None:
    async def use(answers: Answers, server: HttpServer, connected: Any) -> None:
        answers.go.set()
        reader, writer = await connected()
        for _ in range(2):
            writer.write(request())
            head = await reader.readuntil(b"\r\n\r\n")
            assert b"transfer-encoding: chunked" in head.lower()
            body = await reader.readuntil(b"0\r\n\r\n")
            assert body == b"5\r\n\0\0\0\0\0\r\n" * 3 + b"0\r\n\r\n"
        assert answers.seen == ["begun", "answered", "streamed", "closed"] * 2
        writer.close()

    served(use, size=5, pieces=3)


@pytest.mark.parametrize("end", [asyncio.StreamWriter.close, reset])
def test_a_client_that_leaves_ends_the_stream(end: Callable[[asyncio.StreamWriter], None]) -> None:
    async def use(answers: Answers, server: HttpServer, connected: Any) -> None:
        answers.go.set()
        reader, writer = await connected()
        writer.write(request())
        await reader.readuntil(b"\r\n\r\n")
        end(writer)
        await answers.until("begun", "answered", "closed")

    served(use, size=5, pieces=1 << 30)


def test_a_stream_that_nobody_reads_ends() -> None:
    async def use(answers: Answers, server: HttpServer, connected: Any) -> None:
        answers.go.set()
        reader, writer = await connected()
        writer.write(request())
        await reader.readuntil(b"\r\n\r\n")
        await answers.until("begun", "answered", "closed")
        assert server.unread == 0
        writer.close()

    served(use, size=1 << 16, pieces=1 << 30, write=0.2)
