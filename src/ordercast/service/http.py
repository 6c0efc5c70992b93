"""A small HTTP/1.1 server for questions that change nothing: health and metrics.

It reads a request line and headers, answers, and closes. Everything has a limit: the size of a
request, the time it may take, the number of connections. Whoever connects is heard: if there are
too many, the connection that has waited longest without a request is cut off, first of the host
that has most of them. It knows GET and HEAD, and no bodies.
"""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import Callable, Coroutine
from http import HTTPStatus
from math import inf
from typing import Any

import msgspec

from ordercast.transport.door import Door
from ordercast.transport.places import Places
from ordercast.transport.tcp import Address, show_address

MAX_HEAD_BYTES = 8 * 1024  # of the request line and the headers
MAX_CONNECTIONS = 128  # at a time; if more come, the oldest are cut off
MAX_PER_HOST = 96  # of those, from one host
STAY_SECONDS = 0.5  # none of them is cut off for one of its own host before
MAX_UNREAD_BYTES = 64 * 1024  # of a request that is refused
REQUEST_SECONDS = 5.0  # from the connection to the end of the answer

TEXT = "text/plain; charset=utf-8"


class Answer(msgspec.Struct, frozen=True):
    """What a page says."""

    body: str
    status: HTTPStatus = HTTPStatus.OK
    content_type: str = TEXT


Page = Callable[[], Answer]


class Visitor:
    """One connection."""

    def __init__(self, peer: Address) -> None:
        self.peer = peer
        self.is_cut_off = False
        self.writer: asyncio.StreamWriter | None = None  # once it can be spoken to

    def cut_off(self) -> None:
        """Others need its place, or the server is closed."""
        self.is_cut_off = True
        if self.writer is not None:
            self.writer.transport.abort()


class HttpServer:
    """Serves a fixed set of pages."""

    def __init__(self, pages: dict[str, Page]) -> None:
        """`pages` are known by their paths."""
        self._pages = pages
        self._places: Places[Visitor] = Places(MAX_CONNECTIONS, MAX_PER_HOST, 0, STAY_SECONDS)
        self._door: Door | None = None
        self.answered: Counter[int] = Counter()  # by status code
        self.cut_off = 0  # connections that were closed without an answer

    async def start(self, host: str, port: int) -> None:
        """Listen."""
        self._door = await Door.at(host, port, self._begin, self._places.delay)
        self._door.start_serving()

    @property
    def address(self) -> str:
        """Where it listens; the actual port after port 0 was asked for."""
        assert self._door is not None
        return show_address(self._door.sockets[0].getsockname()[:2])

    async def close(self) -> None:
        """Answer nobody any more."""
        if self._door is not None:
            self._door.close()
        for visitor in self._places:
            visitor.cut_off()

    def _begin(self, accepted: socket.socket, peer: Address) -> Coroutine[Any, Any, None]:
        visitor = Visitor(peer)
        other = self._places.take(visitor, inf)
        if other is not None:
            self._places.leave(other)
            other.cut_off()
        return self._connect(accepted, visitor)

    async def _connect(self, accepted: socket.socket, visitor: Visitor) -> None:
        reader = asyncio.StreamReader(limit=MAX_HEAD_BYTES)
        stream = asyncio.StreamReaderProtocol(reader)
        loop = asyncio.get_running_loop()
        try:
            transport, _ = await loop.connect_accepted_socket(lambda: stream, accepted)
            visitor.writer = asyncio.StreamWriter(transport, stream, reader, loop)
            if visitor in self._places:
                self._places.renew(visitor, loop.time())
            await self._serve(reader, visitor.writer, visitor)
        except OSError:  # gone before it could be spoken to
            self.cut_off += 1
        finally:
            self._places.leave(visitor)

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, visitor: Visitor
    ) -> None:
        try:
            if visitor.is_cut_off:
                raise ConnectionAbortedError
            async with asyncio.timeout(REQUEST_SECONDS):
                await self._converse(reader, writer)
        except (OSError, asyncio.IncompleteReadError):  # too slow, or gone
            self.cut_off += 1
            writer.transport.abort()
        finally:
            writer.close()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            await self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, reader, writer)
            return
        method, answer = self._answer(head)
        self.answered[answer.status] += 1
        writer.write(_response(answer, with_body=method != "HEAD"))
        await writer.drain()

    async def _refuse(
        self, status: HTTPStatus, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Answer a request that was not read. Unread bytes would take the answer back (RST)."""
        self.answered[status] += 1
        writer.write(_response(_refusal(status), with_body=True))
        writer.write_eof()
        unread = 0
        while unread < MAX_UNREAD_BYTES and (piece := await reader.read(MAX_HEAD_BYTES)):
            unread += len(piece)

    def _answer(self, head: bytes) -> tuple[str, Answer]:
        """The method of a request, and the answer to it."""
        words = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/"):
            return "GET", _refusal(HTTPStatus.BAD_REQUEST)
        method, target, version = words
        if not version.startswith("HTTP/1."):
            return method, _refusal(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED)
        if method not in ("GET", "HEAD"):
            return method, _refusal(HTTPStatus.METHOD_NOT_ALLOWED)
        page = self._pages.get(target.partition("?")[0])
        if page is None:
            listed = ", ".join(self._pages)
            return method, Answer(f"there are {listed}\n", HTTPStatus.NOT_FOUND)
        return method, page()


def _refusal(status: HTTPStatus) -> Answer:
    return Answer(f"{status.phrase}\n", status)


def _response(answer: Answer, *, with_body: bool) -> bytes:
    body = answer.body.encode()
    lines = [
        f"HTTP/1.1 {answer.status.value} {answer.status.phrase}",
        f"Content-Type: {answer.content_type}",
        f"Content-Length: {len(body)}",
        "Cache-Control: no-store",
        "X-Content-Type-Options: nosniff",
        "Connection: close",
    ]
    if answer.status == HTTPStatus.METHOD_NOT_ALLOWED:
        lines.append("Allow: GET, HEAD")
    head = "\r\n".join((*lines, "", "")).encode("latin-1")
    return head + body if with_body else head
