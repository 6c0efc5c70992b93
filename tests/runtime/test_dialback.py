"""A node calls back whoever asks: its own host only, one call at a time, and few."""

from __future__ import annotations

import asyncio

import pytest

import ordercast as oc
from listeners import closed_port
from ordercast.errors import PeerError
from ordercast.runtime.control import (
    Control,
    Dialback,
    DialbackReply,
    StatusReply,
    StatusRequest,
)
from ordercast.runtime.query_client import QueryClient
from ordercast.transport.tcp import Connection, connect
from ordercast.wire.control import Hello


class Caller:
    """Asks a node, over one connection."""

    def __init__(self, client: QueryClient, conn: Connection) -> None:
        self._client = client
        self.conn = conn

    @classmethod
    async def of(cls, node: oc.Node) -> Caller:
        host, port = node.address.rsplit(":", 1)
        hello = Hello(cluster="ordercast", name="caller", incarnation=0)
        client = QueryClient()
        return cls(client, await connect(host, int(port), hello=hello, handler=client))

    async def ask(self, port: int) -> DialbackReply:
        reply, _ = await self._client.ask(self.conn, Dialback(port), DialbackReply, 10.0)
        return reply

    async def ask_other(self, question: Control, wanted: type[Control]) -> None:
        await self._client.ask(self.conn, question, wanted, 10.0)


@pytest.fixture
def unlimited(monkeypatch) -> None:
    monkeypatch.setattr("ordercast.runtime.dialback.PAUSE_SECONDS", 0.0)


async def test_whoever_listens_is_reached_and_hears_not_a_byte(unlimited) -> None:
    heard: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            heard.set_result(await reader.read())
        except ConnectionError:
            heard.set_result(b"")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with oc.Node("alice", bootstrap=True) as alice:
            caller = await Caller.of(alice)
            assert await caller.ask(port) == DialbackReply("reached", f"127.0.0.1:{port}")
            assert await heard == b""
            assert alice.stats()["return_calls"] == {"made": 1, "put_off": 0}


async def test_a_port_that_is_closed_is_told_in_the_words_of_a_join(unlimited) -> None:
    async with oc.Node("alice", bootstrap=True) as alice:
        caller = await Caller.of(alice)
        reply = await caller.ask(int(closed_port().rsplit(":", 1)[1]))
        assert reply == DialbackReply("failed", "connection refused: nobody listens there")


async def test_a_second_call_must_wait_and_is_told_so(monkeypatch) -> None:
    monkeypatch.setattr("ordercast.runtime.dialback.PAUSE_SECONDS", 60.0)
    async with oc.Node("alice", bootstrap=True) as alice:
        one, two = await Caller.of(alice), await Caller.of(alice)
        port = int(closed_port().rsplit(":", 1)[1])
        outcomes = {reply.outcome for reply in await asyncio.gather(one.ask(port), two.ask(port))}
        assert outcomes == {"failed", "busy"}
        assert (await two.ask(port)).outcome == "busy"  # the pause between two calls
        assert alice.stats()["return_calls"] == {"made": 1, "put_off": 2}


@pytest.mark.parametrize("port", [0, -1, 65_536])
async def test_a_port_that_is_none_is_the_askers_fault(port: int) -> None:
    async with oc.Node("alice", bootstrap=True) as alice:
        caller = await Caller.of(alice)
        with pytest.raises(PeerError):
            await caller.ask(port)
        assert alice.stats()["peer_faults"] == 1
        assert alice.stats()["return_calls"]["made"] == 0


async def test_who_asks_after_the_node_hung_up_is_told_why() -> None:
    async with oc.Node("alice", bootstrap=True) as alice:
        caller = await Caller.of(alice)
        await caller.ask_other(StatusRequest(), StatusReply)
    await caller.conn.closed()
    with pytest.raises(PeerError, match="closed by the peer"):
        await caller.ask_other(StatusRequest(), StatusReply)
