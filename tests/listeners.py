"""What may listen at an address, good and bad, for the tests of `ordercast doctor`."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from typing import Any

import msgspec

from ordercast import __version__
from ordercast.runtime.control import (
    Dialback,
    DialbackReply,
    StatusReply,
    StatusRequest,
    decode,
    encode,
)
from ordercast.runtime.dialback import ReturnCalls
from ordercast.transport.security import NONE, Security
from ordercast.transport.tcp import Connection, listen, show_address
from ordercast.wire.control import Hello
from ordercast.wire.frame import Frame


class FakeNode:
    """Answers as a node does, and says what it is told to say."""

    def __init__(self, reply: DialbackReply | None) -> None:
        self.address = ""
        self.status: dict[str, Any] = {}
        self.raw_status: bytes | None = None  # instead of it
        self.thinks = 0.0  # seconds until it says its status
        self._reply = reply
        self._calls = ReturnCalls()

    def on_frames(self, conn: Connection, frames: list[Frame]) -> None:
        for frame in frames:
            message = decode(frame)
            if isinstance(message, StatusRequest):
                status = self.raw_status or msgspec.json.encode(self.status)
                loop = asyncio.get_running_loop()
                loop.call_later(self.thinks, conn.send, encode(StatusReply(), status))
            elif isinstance(message, Dialback) and self._reply is not None:
                conn.send(encode(self._reply))
            elif isinstance(message, Dialback):
                self._calls.answer(conn, message)

    def on_hello(self, conn: Connection, hello: Hello) -> None: ...

    def on_congested(self, conn: Connection) -> None: ...

    def on_writable(self, conn: Connection) -> None: ...

    def on_closed(self, conn: Connection, reason: str) -> None: ...


@asynccontextmanager
async def fake_node(
    name: str = "alice",
    *,
    cluster: str = "ordercast",
    version: int = 1,
    security: Security = NONE,
    reply: DialbackReply | None = None,
    **status: Any,
) -> AsyncIterator[FakeNode]:
    """A node that leads a cluster of its own, unless its status says otherwise."""
    one = FakeNode(reply)
    hello = Hello(
        cluster=cluster, name=name, incarnation=1, version_min=version, version_max=version
    )
    listener = await listen("127.0.0.1", 0, hello=hello, handler=one, security=security)
    one.address = show_address(listener.address)
    one.status = {
        "state": "running", "name": name, "incarnation": 1, "address": one.address,
        "leads": True, "coordinator": f"{name}#1", "run": f"run of {name}",
        "version": __version__, "heartbeat_ms": 250, "suspect_ms": 2000, "shared_options": {},
        "nodes": [entry(name, one.address)], "groups": [],
        "stats": {"nodes": 1, "max_nodes": 1024}, **status,
    }  # fmt: skip
    try:
        yield one
    finally:
        listener.close()


def entry(name: str, address: str) -> dict[str, Any]:
    """A node, as a status lists it."""
    return {"name": name, "incarnation": 1, "address": address}


@asynccontextmanager
async def speaker(
    words: bytes = b"", *, waits_for: bytes = b"", hangs_up: bool = False,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[str]:  # fmt: skip
    """Not a node: says these words, perhaps only after it was asked, then waits or hangs up."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if waits_for:
                await reader.readuntil(waits_for)
            writer.write(words)
            if not hangs_up:
                await reader.read()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.transport.abort() if not words else writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0, ssl=tls)
    try:
        yield show_address(server.sockets[0].getsockname())
    finally:
        server.close()


@asynccontextmanager
async def firewall() -> AsyncIterator[str]:
    """A port whose queue is full: the system drops who comes, as a firewall does."""
    with ExitStack() as open_until_the_end:
        listening = open_until_the_end.enter_context(socket.socket())
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        for _ in range(4):
            filler = open_until_the_end.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(listening.getsockname())
        yield show_address(listening.getsockname())


@asynccontextmanager
async def translated(address: str, source: str) -> AsyncIterator[str]:
    """A relay to this address that speaks from another host, as a NAT does."""
    host, port = address.rsplit(":", 1)

    async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(host, int(port), local_addr=(source, 0))
        await asyncio.gather(_copy(reader, back), _copy(there, writer))

    server = await asyncio.start_server(pipe, "127.0.0.1", 0)
    try:
        yield show_address(server.sockets[0].getsockname())
    finally:
        server.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65_536):
            writer.write(data)
    except OSError:
        pass
    writer.close()


_kept: list[socket.socket] = []


def closed_port() -> str:
    """An address where nobody listens, nor will: it is taken, for as long as the tests run."""
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    _kept.append(sock)
    return show_address(sock.getsockname())


def free_port() -> int:
    """One that is free now."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port
