"""Connections of the server: h11 parses HTTP, this file enforces limits.

No client may block another one. A connection has `head` seconds for each request's head. When there
are too many connections, the one that has sent its head for longest is closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import http
import re
import socket
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import h11

from mgx_mlir.integrations.v2.errors import V2Error
from mgx_mlir.integrations.v2.front import Response

_PIECE = 1 << 16  # bytes read and written at a time
_HEAD = 32 << 10  # bytes of a head
_HEADERS = 100
# small chunks that a body may have; with more, chunks need this average number of bytes
_CHUNKS, _CHUNK = 4096, 64
_REST = 1 << 20  # bytes of an unread body that are drained to keep the connection
_LINGER = 1.0  # seconds in which a client that is still sending may read an error
_SLOWEST = 1 << 16  # bytes a second at which a client reads an answer at least
_AHEAD = 1 << 17  # bytes of further requests that are read while one is answered
_ASKED = (
    # seconds of a request, after the client closed its sending side, until the client is probed
    3.0
)
_AGAIN = 10.0  # seconds between two such probes
_HOST = re.compile(r"([\w.~!$&'()*+,;=%-]*|\[[0-9A-Fa-f:.]+\])(:\d*)?", re.ASCII)  # RFC 3986
_ABSOLUTE = re.compile(r"https?://([^/]+)", re.IGNORECASE)
# headers that decide where a request ends or what it means; parsers differ if one is repeated
_SINGLE = frozenset(
    {"host", "origin", "sec-fetch-site", "content-type", "content-length", "content-encoding",
     "transfer-encoding", "inference-header-content-length", "expect"}
)  # fmt: skip


@dataclass(frozen=True)
class HttpLimits:
    """Limits of an HTTP server: connections, seconds, bytes."""

    connections: int = 1024  # open connections at a time
    # seconds to the end of a request's head, from its first byte or the connection's start
    head: float = 10.0
    idle: float = 60.0  # seconds between requests
    write: float = 10.0  # seconds for a client to read an answer; more for large answers
    unread: int = 512 << 20  # bytes of answers that clients have not read, together


class Handler(Protocol):
    """Application that answers requests."""

    async def handle(
        self, method: str, path: str, headers: Mapping[str, str], body: AsyncIterator[bytes]
    ) -> Response:
        """Answer a request."""
        ...

    def refusal(self, error: V2Error) -> Response:
        """Return the answer to a request that is not handled."""
        ...


class _Closed(Exception):
    """Raised when the client is gone, or too slow to answer."""


class _Connection:
    """One client: its state is "new", "head", "body", "run", "write" or "idle", since `since`.

    unread: bytes of the answer that is being written.
    """

    def __init__(
        self, server: HttpServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._server, self._reader, self._writer = server, reader, writer
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=_HEAD)
        self._loop = asyncio.get_running_loop()
        self.state, self.since = "new", self._loop.time()
        self.task: asyncio.Task[None] | None = None
        self.unread = 0
        self._whole = asyncio.Event()  # set when the body of a request is read

    def enter(self, state: str) -> None:
        """Record the connection's state."""
        self.state, self.since = state, self._loop.time()

    async def serve(self) -> None:
        """Answer requests until either side closes."""
        try:
            while await self._one():
                pass
        except (_Closed, OSError, asyncio.IncompleteReadError):
            return
        finally:
            self._writer.close()
            try:
                await asyncio.wait_for(self._writer.wait_closed(), self._server.limits.write)
            except (OSError, asyncio.TimeoutError):
                self._writer.transport.abort()  # unread bytes are dropped

    async def _one(self) -> bool:
        """Answer one request; return whether the connection stays open."""
        try:
            request = await self._head()
            if request is None:
                return False
            path, headers = _checked(request)
        except h11.RemoteProtocolError as e:
            status = e.error_status_hint if e.error_status_hint >= 400 else 400
            await self._refuse(V2Error(f"the request is no valid HTTP: {e}".lower(), status))
            return False
        except V2Error as e:
            await self._refuse(e)
            return False
        self.enter("body")
        method = request.method.decode("ascii")
        answer = await self._answer(method, path, headers)
        if self._server.ending:
            answer = replace(answer, headers={**answer.headers, "connection": "close"})
        await self._write(answer, head_only=method == "HEAD")
        return await self._again()

    async def _head(self) -> h11.Request | None:
        """Return the next request, without its body; None at the end of the connection."""
        limits = self._server.limits
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                if self.state in ("new", "idle") and self._http.trailing_data[0]:
                    self.enter("head")
                seconds = limits.idle if self.state == "idle" else limits.head
                rest = self.since + seconds - self._loop.time()
                try:
                    data = await asyncio.wait_for(self._reader.read(_PIECE), max(rest, 0.0))
                except asyncio.TimeoutError:
                    if self.state != "head":
                        return None
                    raise V2Error(f"the head took longer than {seconds:g} s", 408) from None
                self._http.receive_data(data)
            elif isinstance(event, h11.Request):
                return event
            else:
                return None

    async def _answer(self, method: str, path: str, headers: Mapping[str, str]) -> Response:
        """Return the handler's answer. Errors: _Closed if the client went away meanwhile."""
        self._whole.clear()
        work = asyncio.ensure_future(
            self._server.handler.handle(method, path, headers, self._body())
        )
        gone = asyncio.ensure_future(self._gone())
        try:
            await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                raise _Closed
            return work.result()
        finally:
            work.cancel()
            gone.cancel()
            await asyncio.gather(work, gone, return_exceptions=True)

    async def _gone(self) -> None:
        """Return once no reader of the answer is left.

        A client that has closed only its sending side (a half-closed connection) still waits for
        its answer. Such a client accepts an interim response, which every HTTP/1.1 client skips.
        The system of a client that has closed both sides refuses it.
        """
        await self._whole.wait()  # until then the body's reader notices
        ahead = 0
        while ahead < _AHEAD:
            try:
                data = await self._reader.read(_PIECE)
            except OSError:
                return
            self._http.receive_data(data)
            if not data:
                break
            ahead += len(data)
        else:
            # TCP flow control holds back the rest, and the end with it
            await asyncio.Event().wait()
        await asyncio.sleep(_ASKED)
        own: socket.socket = self._writer.get_extra_info("socket")
        while not self._writer.is_closing() and not own.getsockopt(
            socket.SOL_SOCKET, socket.SO_ERROR
        ):
            if (self._http.their_http_version or b"") < b"1.1":
                return  # HTTP/1.0 clients take no interim response, and never half-close
            alive = h11.InformationalResponse(status_code=100, headers=[], reason="Continue")
            self._writer.write(self._http.send(alive) or b"")
            await asyncio.sleep(1.0)
            if own.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                return
            await asyncio.sleep(_AGAIN)

    async def _body(self) -> AsyncIterator[bytes]:
        """Yield the body of a request. Errors: V2Error if it is cut or no valid HTTP."""
        if self._http.they_are_waiting_for_100_continue:
            go = h11.InformationalResponse(status_code=100, headers=[], reason="Continue")
            self._writer.write(self._http.send(go) or b"")
        count = size = 0
        while True:
            try:
                event = self._http.next_event()
                if event is h11.NEED_DATA:
                    self._http.receive_data(await self._reader.read(_PIECE))
                    continue
            except h11.RemoteProtocolError as e:
                raise V2Error(f"the body is no valid HTTP: {e}".lower()) from None
            except OSError:
                raise V2Error("the connection ended before the body") from None
            if isinstance(event, h11.Data):
                count, size = count + 1, size + len(event.data)
                if count > _CHUNKS and size < count * _CHUNK:
                    raise V2Error(
                        f"expected chunks of {_CHUNK} bytes on average, got {size / count:.0f}"
                    )
                yield bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                self.enter("run")
                self._whole.set()
                return
            else:
                raise V2Error("the connection ended before the body")

    async def _refuse(self, error: V2Error) -> None:
        answer = self._server.handler.refusal(error)
        await self._write(replace(answer, headers={**answer.headers, "connection": "close"}))
        await self._linger()

    async def _write(self, answer: Response, *, head_only: bool = False) -> None:
        """Send an answer; drop a client that reads it too slowly."""
        self.enter("write")
        self.unread = len(answer.body)
        self._server.make_room_for_answers()
        try:
            if self._http.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
                raise _Closed
            if answer.stream is None:
                await self._send(answer, head_only=head_only)
            else:
                await self._send_stream(answer, answer.stream)
        except (asyncio.TimeoutError, h11.LocalProtocolError):
            self._writer.transport.abort()
            raise _Closed from None
        finally:
            self.unread = 0
            if answer.stream is not None:
                await answer.stream.aclose()

    def _send_head(self, answer: Response, *more: tuple[str, str]) -> None:
        reason = http.HTTPStatus(answer.status).phrase
        headers = [*answer.headers.items(), *more]
        head = h11.Response(status_code=answer.status, headers=headers, reason=reason)
        self._writer.write(self._http.send(head) or b"")

    async def _send(self, answer: Response, *, head_only: bool) -> None:
        size = len(answer.body)
        length = [("content-length", str(size))] if answer.status != 204 else []
        end = self._loop.time() + self._server.limits.write + size / _SLOWEST
        self._send_head(answer, *length)
        body: Any = memoryview(b"" if head_only else answer.body)  # a buffer, for the stub
        for at in range(0, len(body), _PIECE * 4):
            event = h11.Data(data=body[at : at + _PIECE * 4])
            for piece in self._http.send_with_data_passthrough(event) or ():
                self._writer.write(piece)
            await asyncio.wait_for(self._writer.drain(), end - self._loop.time())
        self._writer.write(self._http.send(h11.EndOfMessage()) or b"")
        await asyncio.wait_for(self._writer.drain(), max(0.0, end - self._loop.time()))

    async def _send_stream(self, answer: Response, pieces: AsyncIterator[bytes]) -> None:
        """Send pieces as they come, in chunks. If the client has gone, one of the next writes
        fails.
        """
        self._send_head(answer)
        async for piece in pieces:
            self.unread = len(piece)
            self._writer.write(self._http.send(h11.Data(data=piece)) or b"")
            transport = self._writer.transport
            # a write is most often complete, and `wait_for` makes a task
            if transport.get_write_buffer_size() or transport.is_closing():
                limit = self._server.limits.write + len(piece) / _SLOWEST
                await asyncio.wait_for(self._writer.drain(), limit)
        self._writer.write(self._http.send(h11.EndOfMessage()) or b"")
        await asyncio.wait_for(self._writer.drain(), self._server.limits.write)

    async def _again(self) -> bool:
        """Prepare for the next request; return whether there may be one."""
        if self._http.our_state is h11.DONE:
            await self._rest()
        if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
            self._http.start_next_cycle()
            self.enter("idle")
            return not self._server.ending
        if self._http.their_state is h11.SEND_BODY:
            await self._linger()
        return False

    async def _rest(self) -> None:
        """Drain the end of an unread body, if it is short and arrives at once."""
        end, size = self._loop.time() + _LINGER, 0
        with contextlib.suppress(h11.RemoteProtocolError, OSError, asyncio.TimeoutError):
            while self._http.their_state is h11.SEND_BODY and size < _REST:
                event = self._http.next_event()
                if isinstance(event, h11.Data):
                    size += len(event.data)
                elif event is h11.NEED_DATA:
                    rest = max(0.0, end - self._loop.time())
                    self._http.receive_data(await asyncio.wait_for(self._reader.read(_PIECE), rest))

    async def _linger(self) -> None:
        """Read on for a moment: closing with unread bytes would reset the connection, and drop the
        answer.
        """
        with contextlib.suppress(OSError, asyncio.TimeoutError, NotImplementedError):
            if self._writer.can_write_eof():
                self._writer.write_eof()
            end = self._loop.time() + _LINGER
            while (rest := end - self._loop.time()) > 0:
                if not await asyncio.wait_for(self._reader.read(_PIECE), rest):
                    return


def _checked(request: h11.Request) -> tuple[str, dict[str, str]]:
    """Return a request's path, and its headers by name.

    Errors: V2Error for forms that HTTP parsers read differently.
    """
    found: dict[str, str] = {}
    if not request.http_version.startswith(b"1."):
        raise V2Error("expected HTTP/1.1 or HTTP/1.0", 505)
    if len(request.headers) > _HEADERS:
        raise V2Error(f"expected at most {_HEADERS} headers, got {len(request.headers)}", 431)
    for raw, value in request.headers:
        name = raw.decode("ascii").lower()
        if name in found and name in _SINGLE:
            raise V2Error(f"the header '{name}' comes twice")
        text = value.decode("latin-1")
        found[name] = f"{found[name]}, {text}" if name in found else text
    if "transfer-encoding" in found:
        if "content-length" in found:
            raise V2Error("content-length and transfer-encoding exclude each other")
        if request.http_version < b"1.1":
            raise V2Error("transfer-encoding needs HTTP/1.1, the request is older")
    path = request.target.decode("ascii").partition("?")[0]
    if absolute := _ABSOLUTE.match(path):  # the host of an absolute target counts (RFC 9112, 3.2.2)
        found["host"] = absolute[1]
        path = path[absolute.end() :] or "/"
    if not path.startswith("/"):
        raise V2Error("the target of the request expected a path")
    if not _HOST.fullmatch(found.get("host", "")):
        raise V2Error(f"host expected a name or an address, got {ascii(found['host'])[:80]}")
    return path, found


class HttpServer:
    """Listen on a port, and have `handler` answer."""

    def __init__(self, handler: Handler, limits: HttpLimits) -> None:
        self.handler, self.limits, self.ending = handler, limits, False
        self.closed_for_others = 0
        self._open: set[_Connection] = set()
        self._server: asyncio.Server | None = None

    @property
    def count(self) -> int:
        """Number of connections."""
        return len(self._open)

    @property
    def unread(self) -> int:
        """Bytes of all answers that are being written."""
        return sum(c.unread for c in self._open)

    async def listen(self, host: str, port: int, backlog: int = 2048) -> int:
        """Start to listen; return the port, which the system chooses for 0. Errors: OSError.

        backlog: connections that are accepted at a time, before the excess is closed.
        """
        self._server = await asyncio.start_server(
            self._accepted, host, port, backlog=backlog, limit=_PIECE
        )
        return self._server.sockets[0].getsockname()[1]

    async def close(self, seconds: float) -> None:
        """Stop listening, and let running requests finish for some seconds."""
        self.ending = True
        if self._server is not None:
            self._server.close()
        end = asyncio.get_running_loop().time() + seconds
        while self._open:
            for each in list(self._open):
                over = asyncio.get_running_loop().time() > end
                if (over or each.state in ("new", "idle")) and each.task is not None:
                    each.task.cancel()
            await asyncio.sleep(0.02)

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        made = _Connection(self, reader, writer)
        made.task = asyncio.current_task()
        if len(self._open) >= self.limits.connections and not self._make_room():
            await made._refuse(V2Error("too many connections are being answered", 503))
            writer.close()
            return
        self._open.add(made)
        try:
            await made.serve()
        except asyncio.CancelledError:
            writer.transport.abort()
        finally:
            self._open.discard(made)

    def _make_room(self) -> bool:
        """Close the connection that has sent a head or a body, or been idle, for longest."""
        for states in (("head", "new"), ("body",), ("idle",)):
            old = [c for c in self._open if c.state in states and c.task is not None]
            if old:
                self._close(min(old, key=lambda c: c.since))
                return True
        return False

    def make_room_for_answers(self) -> None:
        """Close connections that have read an answer for longest, until the others fit the limit.

        A single answer may have any size.
        """
        while self.unread > self.limits.unread:
            slow = [c for c in self._open if c.unread > _PIECE and c.task is not None]
            if len(slow) < 2:
                return
            self._close(min(slow, key=lambda c: c.since))

    def _close(self, connection: _Connection) -> None:
        self._open.discard(connection)
        self.closed_for_others += 1
        assert connection.task is not None
        connection.task.cancel()
