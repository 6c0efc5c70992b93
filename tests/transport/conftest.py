"""Every transport test runs on plain asyncio and on uvloop."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, ClassVar

import pytest

from ordercast.transport.tcp import Connection, Limits, Listener, connect, listen
from ordercast.wire.control import Hello
from ordercast.wire.frame import Frame
from ordercast.wire.opening import pack_opening

PATIENCE_S = 10.0  # a test that waits longer has hung


def loop_factory(name: str) -> Callable[[], asyncio.AbstractEventLoop]:
    if name == "uvloop":
        return pytest.importorskip("uvloop").new_event_loop  # type: ignore[no-any-return]
    return asyncio.new_event_loop


class Owner:
    """Writes down what its connections tell it."""

    owners: ClassVar[list[Owner]] = []

    def __init__(self, name: str, cluster: str = "c", **hello: Any) -> None:
        self.hello = Hello(cluster=cluster, name=name, incarnation=1, **hello)
        self.owners.append(self)
        self.listeners: list[Listener] = []
        self.connections: list[Connection] = []
        self.strangers: list[asyncio.StreamWriter] = []
        self.sockets: list[socket.socket] = []
        self.frames: list[Frame] = []
        self.batches = 0
        self.told: list[str] = []
        self.closed: list[str] = []
        self.news = asyncio.Event()
        self.at_hello: Callable[[Connection], None] = lambda conn: None
        self.at_frames: Callable[[Connection], None] = lambda conn: None

    def on_hello(self, conn: Connection, hello: Hello) -> None:
        self.connections.append(conn)
        self.at_hello(conn)
        self._tell(f"hello {hello.name}")

    def on_frames(self, conn: Connection, frames: list[Frame]) -> None:
        self.frames += frames
        self.batches += 1
        self.at_frames(conn)
        self.news.set()

    def on_congested(self, conn: Connection) -> None:
        self._tell("congested")

    def on_writable(self, conn: Connection) -> None:
        self._tell("writable")

    def on_closed(self, conn: Connection, reason: str) -> None:
        self.closed.append(reason)
        self._tell("closed")

    def _tell(self, what: str) -> None:
        self.told.append(what)
        self.news.set()

    async def until(self, condition: Callable[[Owner], bool]) -> None:
        """Wait until what was told meets the condition."""
        while not condition(self):
            self.news.clear()
            await self.news.wait()

    async def listen(self, limits: Limits | None = None, **options: Any) -> Listener:
        options |= {"hello": self.hello, "handler": self, "limits": limits or Limits()}
        self.listeners.append(await listen("127.0.0.1", 0, **options))
        return self.listeners[-1]

    async def dial(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A stranger's connection to our port."""
        reader, writer = await asyncio.open_connection(*self.listeners[0].address)
        self.strangers.append(writer)
        return reader, writer

    async def connect(self, listener: Listener, **options: Any) -> Connection:
        return await connect(*listener.address, hello=self.hello, handler=self, **options)

    @classmethod
    async def silent_reader(cls, limits: Limits) -> tuple[Owner, Connection, socket.socket]:
        """A peer that says Hello and then reads nothing: (owner, its connection, the socket)."""
        a = cls("alice")
        listener = await a.listen(limits)
        raw = socket.create_connection(listener.address)
        a.sockets.append(raw)
        raw.sendall(pack_opening(cls("sleepy").hello))
        await a.until(lambda a: bool(a.connections))
        return a, a.connections[0], raw

    @classmethod
    async def close_all(cls) -> None:
        """The end of a test, good or bad."""
        while cls.owners:
            owner = cls.owners.pop()
            for closable in (*owner.listeners, *owner.strangers, *owner.sockets):
                closable.close()
            for conn in owner.connections:
                conn.abort("the test is over")
                await conn.closed()
            for writer in owner.strangers:
                with contextlib.suppress(ConnectionError):
                    await writer.wait_closed()


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Callable[[Coroutine[Any, Any, Any]], Any]:
    """Run a coroutine to its end, and close what it opened; one that hangs fails."""

    async def bounded(body: Awaitable[Any]) -> Any:
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await body
        finally:
            await Owner.close_all()

    def runner(body: Coroutine[Any, Any, Any]) -> Any:
        with asyncio.Runner(loop_factory=loop_factory(request.param)) as loop:
            return loop.run(bounded(body))

    return runner


@pytest.fixture
def owner() -> type[Owner]:
    """A class, so that a test makes as many as it needs, inside its loop."""
    return Owner
