"""Every transport test runs on plain asyncio and on uvloop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from ordercast.transport.tcp import Connection, Limits, Listener, connect, listen
from ordercast.wire.control import Hello
from ordercast.wire.frame import Frame

PATIENCE_S = 10.0  # a test that waits longer has hung


def loop_factory(name: str) -> Callable[[], asyncio.AbstractEventLoop]:
    if name == "uvloop":
        return pytest.importorskip("uvloop").new_event_loop  # type: ignore[no-any-return]
    return asyncio.new_event_loop


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Callable[[Coroutine[Any, Any, Any]], Any]:
    """Run a coroutine to its end; one that hangs fails."""

    async def bounded(body: Awaitable[Any]) -> Any:
        async with asyncio.timeout(PATIENCE_S):
            return await body

    def runner(body: Coroutine[Any, Any, Any]) -> Any:
        with asyncio.Runner(loop_factory=loop_factory(request.param)) as loop:
            return loop.run(bounded(body))

    return runner


class Owner:
    """Writes down what its connections tell it."""

    def __init__(self, name: str, cluster: str = "c", **hello: Any) -> None:
        self.hello = Hello(cluster=cluster, name=name, incarnation=1, **hello)
        self.connections: list[Connection] = []
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

    async def listen(self, limits: Limits | None = None) -> Listener:
        return await listen(
            "127.0.0.1", 0, hello=self.hello, handler=self, limits=limits or Limits()
        )

    async def connect(self, listener: Listener, **options: Any) -> Connection:
        return await connect(*listener.address, hello=self.hello, handler=self, **options)


@pytest.fixture
def owner() -> type[Owner]:
    """A class, so that a test makes as many as it needs, inside its loop."""
    return Owner
