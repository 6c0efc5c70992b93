"""The order that a join asks for is kept, and no two groups promise less than they seem to."""

from __future__ import annotations

from pathlib import Path

import pytest

import ordercast as oc
from ordercast.trace.read import read_events


async def messages(node: oc.Node, count: int) -> list[bytes]:
    found: list[bytes] = []
    async for event in node:
        if isinstance(event, oc.Message):
            found.append(event.body)
            if len(found) == count:
                break
    return found


@pytest.mark.parametrize("order", ["causal-total", "global-total"])
async def test_the_order_asked_for_is_the_one_kept_and_recorded(
    tmp_path: Path, ordercast_cluster, order: str
) -> None:
    async with ordercast_cluster(2, trace=tmp_path) as cluster:
        groups = [await node.join("g", order=order) for node in cluster.nodes]
        assert [group.order for group in groups] == [order, order]
    declared = [event for event in read_events(tmp_path) if event.kind == "group"]
    assert {(event.order, event.protocol) for event in declared} == {(order, "block_total")}


async def test_a_mismatch_names_the_orders_that_were_asked_for(ordercast_cluster) -> None:
    async with ordercast_cluster(2) as cluster:
        await cluster.nodes[0].join("g", order="global-total")
        with pytest.raises(oc.OrderMismatch, match=r"'global-total'.*'total' \(.*'block_total'"):
            await cluster.nodes[1].join("g", order="total", protocol="block_total")


async def test_a_protocol_named_alone_gives_the_order_it_declares_first() -> None:
    async with oc.Node("alice", bootstrap=True) as node:
        assert (await node.join("g", protocol="block_total")).order == "global-total"


async def test_groups_of_one_protocol_and_two_orders_share_the_open_frame() -> None:
    async with oc.Node("alice", bootstrap=True) as node:
        one = await node.join("one", order="total", protocol="block_total")
        two = await node.join("two", order="global-total")
        for group, body in ((one, b"a"), (two, b"b"), (one, b"c")):
            await group.multicast(body)
        assert await messages(node, 3) == [b"a", b"b", b"c"]


async def test_total_across_groups_is_by_a_protocol_that_keeps_it_there(ordercast_cluster) -> None:
    async with ordercast_cluster(2) as cluster:
        for node in cluster.nodes:
            for name in ("g1", "g2"):
                group = await node.join(name, order="total", scope="domain")
                assert (group.order, group.protocol) == ("total", "sequencing")


async def test_a_group_scoped_protocol_asked_for_more_names_those_that_give_it() -> None:
    async with oc.Node("alice", bootstrap=True) as node:
        with pytest.raises(oc.ScopeError, match=r"'vector' keeps .* inside one.*by cbcast, slow"):
            await node.join("g", order="causal", protocol="vector", scope="domain")
        with pytest.raises(oc.ScopeError, match="no protocol promises order 'none'"):
            await node.join("g", order="none", scope="domain")


@pytest.mark.parametrize(
    ("order", "first", "second"),
    [
        ("causal", "vector", "vector"),
        ("causal", "vector", "cbcast"),
        ("causal", "cbcast", "vector"),
        ("causal", "cbcast", "fast"),
        ("fifo", "fifo", "global_fifo"),
        ("total", "sequencer_pb", "block_total"),
        ("total", "block_total", "sequencer_pb"),
    ],
)
async def test_between_two_groups_of_an_order_nothing_is_left_open_in_silence(
    order: str, first: str, second: str
) -> None:
    async with oc.Node("alice", bootstrap=True) as node:
        g1 = await node.join("g1", order=order, protocol=first)
        with pytest.raises(oc.ScopeError, match=f"'g1'.*'{first}'.*'g2'.*'{second}'") as refused:
            await node.join("g2", order=order, protocol=second)
        offered = {"causal": "by cbcast, slow", "fifo": "by global_fifo", "total": "by block_total"}
        assert offered[order] in str(refused.value)
        await node.join("g2", order=order, protocol=second, scope="group")
        await g1.leave()


async def test_order_none_leaves_nothing_open_between_groups() -> None:
    async with oc.Node("a", bootstrap=True) as node:
        await node.join("g1", order="none")
        await node.join("g2", order="none")
        group = await node.join("g3", protocol="uniform", order="none")
        assert group.members == ("a",)


async def test_the_word_may_have_been_given_for_the_earlier_group() -> None:
    async with oc.Node("alice", bootstrap=True) as node:
        await node.join("g1", order="causal", protocol="vector", scope="group")
        await node.join("g2", order="causal")
        await node.join("g3", order="causal")  # with g2, by the same protocol


async def test_what_counts_is_the_protocol_that_the_group_has(ordercast_cluster) -> None:
    async with ordercast_cluster(2) as cluster:
        maker, joiner = cluster.nodes
        await maker.join("g2", order="causal", protocol="vector")
        await joiner.join("g1", order="causal")
        with pytest.raises(oc.ScopeError, match=r"'g1'.*'cbcast'.*'g2', by 'vector'"):
            await joiner.join("g2", order="causal")
        with pytest.raises(oc.ScopeError, match="'vector' keeps"):
            await joiner.join("g2", order="causal", scope="domain")
        assert (await joiner.join("g2", order="causal", scope="group")).members == ("p1", "p2")
