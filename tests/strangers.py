"""Somebody who speaks the wire protocol and is no node: what it may cost those who are."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import ordercast as oc
from ordercast.runtime.control import Apply, Control, decode, encode
from ordercast.runtime.options import NodeOptions
from ordercast.wire.control import Hello
from ordercast.wire.frame import Splitter
from ordercast.wire.opening import pack_opening, split_opening


class Stranger:
    """One connection to a node, by hand."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.hello: Hello | None = None  # of the node
        self._splitter = Splitter(1 << 26)

    @classmethod
    @asynccontextmanager
    async def at(cls, node: oc.Node) -> AsyncIterator[Stranger]:
        host, port = node.address.rsplit(":", 1)
        stranger = cls(*await asyncio.open_connection(host, int(port)))
        try:
            yield stranger
        finally:
            stranger.writer.transport.abort()

    async def greet(self, name: str, advertise: str = "127.0.0.1:9") -> None:
        """Say Hello, and hear theirs."""
        hello = Hello(cluster="ordercast", name=name, incarnation=0, advertise=advertise)
        self.writer.write(pack_opening(hello))
        data = b""
        while (found := split_opening(data)) is None:
            data += await self.reader.read(1)
        assert isinstance(found[0], Hello)
        self.hello = found[0]

    async def apply(self) -> Control:
        """Ask to be let in; the answer."""
        self.say(Apply(NodeOptions().shared()))
        return await self.heard()

    def say(self, message: Control) -> None:
        self.writer.write(encode(message))

    async def heard(self) -> Control:
        """The next control message."""
        while True:
            frames = self._splitter.feed(await self.reader.read(65_536))
            if frames:
                return decode(frames[0])

    async def hung_up(self) -> bool:
        """Wait until the node has closed the connection."""
        try:
            while await self.reader.read(65_536):
                pass
        except ConnectionError:
            pass
        return True
