"""The coordinator of a cluster dies, or leaves: the next one takes over, and messages flow on."""

from __future__ import annotations

import asyncio

import pytest

import ordercast as oc
from listeners import free_port
from ordercast.membership.node_view import NodeEntry
from ordercast.protocols.registry import PROTOCOLS

ORDERS = [p for p in ("sequencer_pb", "cbcast", "agreed", "javagroups") if p in PROTOCOLS]


async def view_of(node: oc.Node, members: tuple[str, ...]) -> oc.View:
    async for event in node:
        if isinstance(event, oc.View) and event.members == members:
            return event
    raise AssertionError("the stream ended")


async def bodies(node: oc.Node, count: int) -> list[bytes]:
    seen: list[bytes] = []
    async for event in node:
        if isinstance(event, oc.Message):
            seen.append(event.body)
        if len(seen) == count:
            return seen
    raise AssertionError("the stream ended")


async def until_coordinator(node: oc.Node, name: str) -> None:
    while node.stats()["coordinator"] != name:
        await asyncio.sleep(0.001)


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_the_next_node_takes_over_when_the_coordinator_dies(
    ordercast_cluster, protocol: str
) -> None:
    async with ordercast_cluster(4, protocol=protocol, sequencer=False) as cluster:
        nodes, groups = cluster.nodes[1:], cluster.groups[1:]
        await (await groups[0].multicast(b"before")).ordered()
        await cluster.kill(0)
        views = await asyncio.gather(*(view_of(node, ("p2", "p3", "p4")) for node in nodes))
        assert len({view.number for view in views}) == 1
        assert nodes[0].leads and not nodes[1].leads
        for group in groups:
            await group.multicast(group.node.name.encode())
        seen = await asyncio.gather(*(bodies(node, 3) for node in nodes))
        assert all(set(one) == {b"p2", b"p3", b"p4"} for one in seen)


@pytest.mark.parametrize("protocol", ORDERS)
async def test_one_that_only_coordinates_is_replaced_without_a_view_of_the_group(
    ordercast_cluster, protocol: str
) -> None:
    async with ordercast_cluster(3, protocol=protocol) as cluster:
        await cluster.kill_leader()
        for node in cluster.nodes:
            await until_coordinator(node, "p1#1")
        receipt = await cluster.groups[2].multicast(b"on we go")
        await receipt.ordered()
        assert [await bodies(node, 1) for node in cluster.nodes] == [[b"on we go"]] * 3


async def test_one_that_was_let_in_and_died_with_its_coordinator_keeps_nobody_out(
    ordercast_cluster,
) -> None:
    async with ordercast_cluster(3, order="total", join_timeout=4.0) as cluster:
        address = f"127.0.0.1:{free_port()}"  # nobody listens there
        for node in (cluster.leader, *cluster.nodes):
            node._presence.coordination.expect(NodeEntry(99, "dead", 1, address))
        await cluster.kill_leader()
        for node in cluster.nodes:
            await until_coordinator(node, "p1#1")
        async with oc.Node("late", seeds=[cluster.nodes[1].address], join_timeout=4.0) as late:
            assert "late#1" in late.stats()["node_view"]["members"]


async def test_one_that_was_let_in_by_a_coordinator_that_died_asks_again_and_comes_in(
    ordercast_cluster,
) -> None:
    async with ordercast_cluster(2, order="total") as cluster:
        address = f"127.0.0.1:{free_port()}"
        for node in (cluster.leader, *cluster.nodes):  # the last word of the dead; to "late", none
            node._presence.coordination.expect(NodeEntry(99, "late", 1, address))
        async with oc.Node("late", bind=address, seeds=[cluster.nodes[1].address]) as late:
            group = await late.join("main", order="total")
            assert group.members == ("p1", "p2", "late")
            assert all(99 not in node._presence.directory.live for node in cluster.nodes)


async def test_a_node_joins_after_a_succession(ordercast_cluster) -> None:
    async with ordercast_cluster(3, order="total") as cluster:
        await cluster.kill_leader()
        async with oc.Node("late", seeds=[cluster.nodes[2].address]) as late:
            group = await late.join("main", order="total")
            assert group.members == ("p1", "p2", "p3", "late")
            other = await late.join("other", order="causal")
            assert other.members == ("late",)
            await group.multicast(b"hello")
            assert (await bodies(cluster.nodes[0], 1)) == [b"hello"]


async def test_a_coordinator_that_leaves_in_order_is_succeeded(ordercast_cluster) -> None:
    async with ordercast_cluster(3, order="total", sequencer=False) as cluster:
        await cluster.nodes[0].aclose()
        for node in cluster.nodes[1:]:
            await view_of(node, ("p2", "p3"))
            await until_coordinator(node, "p2#1")
        await (await cluster.groups[2].multicast(b"x")).ordered()
        assert await bodies(cluster.nodes[1], 1) == [b"x"]


async def test_the_first_of_a_static_list_that_starts_again_joins_the_others() -> None:
    ports = [free_port() for _ in range(3)]
    members = {f"m{i}": f"127.0.0.1:{port}" for i, port in enumerate(ports)}
    nodes = [oc.Node(name, members=members) for name in members]
    for node in nodes:
        await node.start()
    nodes[0]._presence.fail(oc.GroupClosed("killed"))
    await until_coordinator(nodes[1], "m1#1")
    async with oc.Node("m0", members=members) as again:
        assert again.incarnation == 2
        assert again.stats()["node_view"]["members"] == ["m1#1", "m2#1", "m0#2"]
    for node in nodes:
        await node.aclose()


@pytest.mark.parametrize("turns", [0, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96])
async def test_who_comes_in_while_the_coordinator_dies_is_let_in(
    ordercast_cluster, turns: int
) -> None:
    async with ordercast_cluster(3, order="total", sequencer=False) as cluster:
        seeds = [node.address for node in cluster.nodes]

        async def come(name: str) -> oc.Node:
            node = oc.Node(name, seeds=seeds)
            await node.start()
            await node.join("main", order="total")
            await node.join("other", order="causal")
            return node

        coming = [asyncio.ensure_future(come(name)) for name in ("x", "y")]
        for _ in range(turns):
            await asyncio.sleep(0)
        await cluster.kill(0)
        new = await asyncio.gather(*coming)
        members = set(cluster.names[1:]) | {"x", "y"}
        while set(cluster.groups[1].members) != members:
            await asyncio.sleep(0.001)
        await (await cluster.groups[1].multicast(b"all here")).ordered()
        for node in (*cluster.nodes[1:], *new):
            assert await bodies(node, 1) == [b"all here"]
            assert node.stats()["peer_faults"] == 0
        others = [node.stats()["groups"]["other"]["members"] for node in new]
        assert {frozenset(names) for names in others} == {frozenset("xy")}
        await asyncio.gather(*(node.aclose() for node in new))
