"""Resilience of live groups: deliveries wait for holders, over real sockets."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import ordercast as oc
from ordercast.trace.oracle import judge
from ordercast.trace.read import read_events


async def first(stream: oc.Node | oc.Group) -> oc.Message:
    async for event in stream:
        if isinstance(event, oc.Message):
            return event
    raise AssertionError("the stream has ended")


@pytest.mark.parametrize("protocol", ["sequencer_pb", "cbcast", "agreed"])
async def test_a_message_is_delivered_and_ordered_when_enough_hold_it(
    ordercast_cluster, protocol: str
) -> None:
    async with ordercast_cluster(3, protocol=protocol, resilience=2) as cluster:
        receipt = await cluster.groups[0].multicast(b"m")
        messages = await asyncio.gather(*map(first, cluster.nodes))
        assert [message.body for message in messages] == [b"m"] * 3
        await receipt.ordered()


async def test_a_message_that_too_few_hold_says_so_and_is_not_ordered(ordercast_cluster) -> None:
    async with ordercast_cluster(2, protocol="fifo", uniform=True) as cluster:
        other = cluster.nodes[1]._presence.engine
        receive, packets = other.receive, []
        other.receive = lambda *packet: packets.append(packet)
        receipt = await cluster.groups[0].multicast(b"m")
        await asyncio.sleep(0)
        [held] = cluster.groups[0].held_back()
        assert held.text.startswith(
            "message p1#1/main/1 waits for copies from 1 more members of main"
        )
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(receipt.ordered(), 0.05)
        while not packets:
            await asyncio.sleep(0.001)
        other.receive = receive
        for packet in packets:
            receive(*packet)
        await receipt.ordered()
        assert (await first(cluster.nodes[0])).body == b"m"


async def test_the_first_member_fixes_the_resilience_and_others_must_ask_for_the_same(
    ordercast_cluster,
) -> None:
    async with ordercast_cluster(3) as cluster:
        one, two, three = cluster.nodes
        await one.join("safe", order="total", resilience=1)
        with pytest.raises(
            oc.OrderMismatch, match=r"resilience=1\); this join asked for .*uniform=True"
        ):
            await two.join("safe", order="total", uniform=True)
        await two.join("safe", order="total", resilience=1)
        safe = await three.join("safe", order="total")  # it does not ask: it takes what is there
        await safe.multicast(b"m")
        assert (await first(two)).body == b"m"


async def test_the_options_of_a_node_are_the_default_of_its_joins(ordercast_cluster) -> None:
    async with ordercast_cluster(2, resilience=1) as cluster:
        one, two = cluster.nodes
        await one.join("own", order="fifo", resilience=0)
        with pytest.raises(oc.OrderMismatch, match=r"resilience=0\).*asked for .*resilience=1"):
            await two.join("own", order="fifo")


async def test_a_guest_of_a_resilient_group_sends_on_when_its_members_hold_it(
    ordercast_cluster,
) -> None:
    async with ordercast_cluster(3) as cluster:
        one, two, guest = cluster.nodes
        for node in (one, two):
            await node.join("safe", order="causal", resilience=1)
        own = await guest.join("own", order="causal")
        await guest.send_to("safe", b"m1")
        receipt = await own.multicast(b"m2")  # only when 1 and 2 hold m1
        await asyncio.wait_for(receipt.ordered(), 5)
        assert (await first(one)).body == (await first(two)).body == b"m1"


@pytest.mark.parametrize("order", ["total", "causal"])
async def test_what_a_killed_process_has_delivered_all_others_deliver(
    tmp_path: Path, order: str
) -> None:
    async with oc.LocalCluster(3, order=order, uniform=True, trace=tmp_path) as cluster:
        a, b, c = cluster.workers
        sending = [
            asyncio.ensure_future(w.do("send", group="main", count=40, per_second=800))
            for w in (a, b, c)
        ]
        await b.do("wait", group="main", count=20)
        await cluster.kill(1)
        await asyncio.gather(*sending, return_exceptions=True)
        for worker in (a, c):
            await worker.do("wait_members", group="main", members=["p1", "p3"])
            await worker.do("wait", group="main", count=80)
    events = read_events(tmp_path)
    names = ["wellformed", "agreement", "agreement.uniform", "fifo.group.uniform", "vsync"]
    judged = judge(events, only=(*names, *(["total.group.uniform"] if order == "total" else [])))
    assert [e.process for e in events if e.kind == "crash"] == ["p2#1"]
    for judgement in judged.values():
        assert judgement.verdict == "ok", judgement
