"""Strangers: they cost little, keep nobody out, and hold no name for which they do not come."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

import ordercast as oc
from ordercast.runtime import peers
from ordercast.runtime.control import Admitted
from ordercast.runtime.options import NodeOptions
from ordercast.transport.tcp import Limits
from ordercast.wire.frame import FIXED, WIRE_VERSION
from strangers import Stranger

MiB = 1024 * 1024


async def until_in(node: oc.Node, nodes: int) -> None:
    while node.stats()["nodes"] != nodes or node.stats()["strangers"]:
        await asyncio.sleep(0.01)


async def test_a_large_frame_of_a_stranger_is_refused_as_soon_as_its_length_is_known() -> None:
    async with oc.Node("alice", bootstrap=True) as node, Stranger.at(node) as stranger:
        await stranger.greet("x")
        stranger.writer.write(FIXED.pack(MiB, WIRE_VERSION, 0, 0, 0, 100))
        assert await stranger.hung_up()
        assert node.stats()["peer_faults"] == 1
        assert node.stats()["stranger_bytes"] == 0


@pytest.mark.parametrize("let_in", [False, True], ids=["said hello", "applied"])
async def test_unfinished_frames_of_strangers_are_bounded_together(
    monkeypatch: pytest.MonkeyPatch, let_in: bool
) -> None:
    limits = Limits(max_stranger_bytes=2 * MiB, max_frame=2 * MiB)
    monkeypatch.setattr(NodeOptions, "for_connections", lambda self: limits)
    size = 1_900_000 if let_in else 390_000
    async with oc.Node("alice", bootstrap=True) as node, AsyncExitStack() as stack:
        for number in range(12):
            stranger = await stack.enter_async_context(Stranger.at(node))
            await stranger.greet(f"x{number}")
            if let_in:
                assert isinstance(await stranger.apply(), Admitted)
            stranger.writer.write(FIXED.pack(size, WIRE_VERSION, 0, 0, 0, 100) + bytes(size - 100))
            await stranger.writer.drain()
            assert node.stats()["stranger_bytes"] <= 2 * MiB
        while not node.stats()["connections"]["turned_away"]:
            await asyncio.sleep(0.01)
        assert node.stats()["stranger_bytes"] <= 2 * MiB
        async with oc.Node("bob", seeds=[node.address], join_timeout=60) as bob:
            assert bob.stats()["node_view"]["members"] == ["alice#1", "bob#1"]


async def test_a_node_that_is_in_the_view_is_no_stranger_and_sends_large_frames() -> None:
    limit = Limits().max_stranger_frame
    async with (
        oc.Node("alice", bootstrap=True) as alice,
        oc.Node("bob", seeds=[alice.address]) as bob,
    ):
        groups = [await node.join("g", order="total") for node in (alice, bob)]
        await groups[1].multicast(bytes(2 * limit))
        async for event in alice:
            if isinstance(event, oc.Message):
                break
        assert len(event.body) == 2 * limit
        for node in (alice, bob):
            assert len(node._presence.peers.waiting) == 0


async def test_idle_connections_of_one_host_keep_nobody_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits = Limits(max_unknown_per_host=20, unknown_stay_s=0.01, hello_timeout_s=1000)
    monkeypatch.setattr(NodeOptions, "for_connections", lambda self: limits)
    async with oc.Node("alice", bootstrap=True) as alice, AsyncExitStack() as stack:
        for _ in range(60):
            await stack.enter_async_context(Stranger.at(alice))
        async with oc.Node("bob", seeds=[alice.address], join_timeout=60) as bob:
            await oc.query_status(alice.address)
            assert bob.stats()["nodes"] == 2
        assert alice.stats()["connections"]["turned_away"] >= 40


async def test_hosts_of_the_view_keep_their_places() -> None:
    async with (
        oc.Node("alice", bootstrap=True) as alice,
        oc.Node("bob", seeds=[alice.address]),
    ):
        await until_in(alice, 2)
        connections = alice._presence.peers
        assert connections._listener is not None
        for places in (connections.waiting, connections._listener.places):
            assert places._reserved == {"127.0.0.1"}


async def test_a_name_is_not_held_by_one_that_does_not_come() -> None:
    """Nor for the time that alice gives to those who are on their way."""
    async with (
        oc.Node("alice", bootstrap=True, join_timeout=60.0) as alice,
        Stranger.at(alice) as squatter,
    ):
        await squatter.greet("bob")
        assert isinstance(await squatter.apply(), Admitted)
        async with oc.Node("bob", seeds=[alice.address], join_timeout=60) as bob:
            assert bob.stats()["nodes"] == 2
        assert await squatter.hung_up()


async def test_those_who_were_let_in_and_are_not_there_are_given_up_soon() -> None:
    """A newcomer connects to all who were let in before it, and would try in vain."""
    options = {"join_timeout": 60.0}
    async with oc.Node("alice", bootstrap=True, **options) as alice, AsyncExitStack() as stack:
        for number in range(5):
            phantom = await stack.enter_async_context(Stranger.at(alice))
            await phantom.greet(f"phantom{number}")
            assert isinstance(await phantom.apply(), Admitted)
        async with oc.Node("bob", seeds=[alice.address], **options):
            assert alice.stats()["node_view"]["members"] == ["alice#1", "bob#1"]


async def test_the_port_of_another_node_is_no_proof_of_being_there() -> None:
    async with oc.Node("alice", bootstrap=True) as alice, Stranger.at(alice) as squatter:
        await squatter.greet("bob", advertise=alice.address)
        assert isinstance(await squatter.apply(), Admitted)
        async with oc.Node("bob", seeds=[alice.address], join_timeout=60):
            assert await squatter.hung_up()


async def test_one_that_is_there_keeps_its_name_and_the_other_waits_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(peers.Peers, "answers", _there)
    async with oc.Node("alice", bootstrap=True) as alice, Stranger.at(alice) as first:
        await first.greet("bob")
        assert isinstance(await first.apply(), Admitted)
        with pytest.raises(oc.JoinTimeout, match="let in a moment ago, from"):
            async with oc.Node("bob", seeds=[alice.address], join_timeout=0.5):
                pass
        assert [node.name for node in alice._presence.directory.live.values()] == ["alice", "bob"]


async def _there(*_: object) -> bool:
    return True


async def test_a_killed_node_that_starts_again_at_once_waits_until_it_is_excluded() -> None:
    async with (
        oc.Node("alice", bootstrap=True, partition="merge") as alice,
        oc.Node("carol", seeds=[alice.address], partition="merge"),
    ):
        first = oc.Node("bob", seeds=[alice.address], partition="merge", rejoin=False)
        await first.__aenter__()
        await until_in(alice, 3)
        first._presence.engine.stop()  # as if it was killed: it says no good-bye
        for conn in tuple(first._presence.peers.bound.values()):
            conn.abort("killed")
        options = {"partition": "merge", "join_timeout": 60.0}
        async with oc.Node("bob", seeds=[alice.address], **options) as second:
            assert second.incarnation == 2
        await first.aclose()
