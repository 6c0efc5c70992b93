"""A network between the nodes of one process that can be cut, and readers that outlive it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterable
from typing import Any

import pytest

import ordercast as oc
from ordercast.runtime.peers import Peers


class Cable:
    """Between nodes of one process: it can be cut, and mended."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sides: tuple[frozenset[str], ...] = ()
        dial = Peers.dial

        async def through(peers: Peers, address: str, *args: Any, **how: Any) -> Any:
            if self._is_cut(peers.hello.advertise, address):
                raise OSError("the cable is cut")
            return await dial(peers, address, *args, **how)

        monkeypatch.setattr(Peers, "dial", through)

    def _is_cut(self, one: str, other: str) -> bool:
        return any((one in side) != (other in side) for side in self.sides)

    def cut(self, *sides: Iterable[oc.Node]) -> None:
        nodes = [node for side in sides for node in side]
        self.sides = tuple(frozenset(node.address for node in side) for side in sides)
        for node in nodes:
            peers = node._presence.peers
            for conn in (*peers.bound.values(), *peers._unbound):
                hello = conn.hello
                if hello is not None and self._is_cut(node.address, hello.advertise):
                    conn.abort("the cable is cut")

    def mend(self) -> None:
        self.sides = ()


def free_addresses(count: int) -> list[str]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    addresses = [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]
    for one in sockets:
        one.close()
    return addresses


async def until(true: Callable[[], Any]) -> None:
    async with asyncio.timeout(20):
        while not true():
            await asyncio.sleep(0.002)


class Reader:
    """Reads a node's stream for ever, over outages."""

    def __init__(self, node: oc.Node) -> None:
        self.node = node
        self.events: list[Any] = []
        self.task = asyncio.ensure_future(self._read())

    async def _read(self) -> None:
        while True:
            try:
                async for event in self.node:
                    self.events.append(event)
                return
            except oc.NodeOut as out:
                self.events.append(out)

    @property
    def bodies(self) -> list[bytes]:
        return [event.body for event in self.events if isinstance(event, oc.Message)]

    @property
    def outages(self) -> list[oc.NodeOut]:
        return [event for event in self.events if isinstance(event, oc.NodeOut)]
