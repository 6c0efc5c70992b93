"""Flow control: windows bound everything, a slow consumer is felt, and nobody ever deadlocks."""

from __future__ import annotations

import asyncio

import pytest

import ordercast as oc
from ordercast.protocols.registry import PROTOCOLS
from ordercast.runtime.options import FRAME_COST, MESSAGE_COST
from ordercast.runtime.window import Window

BODY = 10
SMALLEST = {
    "max_message": BODY,
    "window_bytes": BODY + FRAME_COST + MESSAGE_COST,
    "reply_reserve": BODY + FRAME_COST + MESSAGE_COST,
    "frame_bytes": 1,
}


async def read_all(node: oc.Node, messages: int) -> list[bytes]:
    bodies: list[bytes] = []
    async for event in node:
        if isinstance(event, oc.Message):
            bodies.append(event.body)
            if len(bodies) == messages:
                break
    return bodies


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_all_reply_to_everything_with_the_smallest_limits_and_nobody_blocks(
    ordercast_cluster, protocol: str
) -> None:
    members, each = 3, 8
    async with ordercast_cluster(members, protocol=protocol, **SMALLEST) as cluster:
        total = members * each * (1 + members)

        async def reply_to_everything(node: oc.Node, group: oc.Group) -> int:
            seen = 0
            async for event in node:
                if isinstance(event, oc.Message):
                    seen += 1
                    if event.body.startswith(b"ask"):
                        await group.multicast(b"re" + event.body[3:])
                    if seen == total:
                        break
            return seen

        async def ask(group: oc.Group) -> None:
            for number in range(each):
                await group.multicast(b"ask%d" % number)

        *seen, _, _, _ = await asyncio.gather(
            *(
                reply_to_everything(n, g)
                for n, g in zip(cluster.nodes, cluster.groups, strict=True)
            ),
            *(ask(group) for group in cluster.groups),
        )
        assert seen == [total] * members


@pytest.mark.parametrize("protocol", ["sequencer_pb", "sequencer_bb", "fifo"])
async def test_a_slow_consumer_stops_the_senders_and_memory_stays_bounded(
    ordercast_cluster, protocol: str
) -> None:
    window = 20_000
    limits = {"max_message": 1000, "window_bytes": window, "frame_bytes": 2000}
    async with ordercast_cluster(3, protocol=protocol, **limits) as cluster:
        fast = [asyncio.ensure_future(read_all(node, 600)) for node in cluster.nodes[:2]]

        async def send(group: oc.Group) -> None:
            for _ in range(300):
                await group.multicast(bytes(1000))

        sending = [asyncio.ensure_future(send(group)) for group in cluster.groups[:2]]
        await asyncio.sleep(0.3)  # far longer than the sends would take
        assert not any(task.done() for task in sending)
        slow = cluster.nodes[2].stats()["groups"]["main"]
        assert 0 < slow["inbox_bytes"] <= 2 * window < slow["inbox_limit"]
        for node in cluster.nodes[:2]:
            stats = node.stats()["groups"]["main"]
            assert stats["multicasts_waiting"] == 1 and stats["multicasts_waited"] >= 1
            assert stats["window_used"] > window - 1000 - FRAME_COST - MESSAGE_COST
        bodies = await read_all(cluster.nodes[2], 600)  # now it reads
        assert len(bodies) == 600
        await asyncio.gather(*sending, *fast)


async def test_the_reply_reserve_has_an_end_and_says_so() -> None:
    async with oc.Node("alice", bootstrap=True, **SMALLEST) as node:
        group = await node.join("g", order="total")
        assert isinstance(await anext(aiter(node)), oc.View)  # this task reads the stream
        with pytest.raises(oc.UsageError, match=rf"reply_reserve={SMALLEST['reply_reserve']}"):
            for _ in range(1000):
                await group.multicast(bytes(BODY))
        stats = node.stats()["groups"]["g"]
        assert 0 < stats["reply_reserve_used"] <= stats["reply_reserve"]
        sent = stats["messages_sent"]
        assert len(await read_all(node, sent)) == sent  # nothing of what was accepted is lost
        while node.stats()["groups"]["g"]["window_used"]:
            await asyncio.sleep(0.001)
        await group.multicast(bytes(BODY))  # reading made room again


async def test_many_replies_that_do_not_fit_are_refused_before_the_first() -> None:
    async with oc.Node("alice", bootstrap=True, **SMALLEST) as node:
        group = await node.join("g", order="total")
        assert isinstance(await anext(aiter(node)), oc.View)
        with pytest.raises(oc.UsageError, match="reply_reserve"):
            await group.multicast_many([b"x"] * 5)
        stats = node.stats()["groups"]["g"]
        assert stats["messages_sent"] == stats["window_used"] == 0
        await group.multicast_many([b"1", b"2"])  # the window and the reserve
        assert await read_all(node, 2) == [b"1", b"2"]


async def test_many_replies_that_are_cancelled_give_back_the_room_of_the_rest() -> None:
    async with oc.Node("alice", bootstrap=True, frame_bytes=1) as node:
        group = await node.join("g", order="total")

        async def reply() -> None:
            assert isinstance(await anext(aiter(node)), oc.View)
            await group.multicast_many([b"x"] * 1000)

        replying = asyncio.ensure_future(reply())
        while not (sent := node.stats()["groups"]["g"]["messages_sent"]):
            await asyncio.sleep(0)
        replying.cancel()
        await asyncio.gather(replying, return_exceptions=True)
        assert sent < 1000
        sent = node.stats()["groups"]["g"]["messages_sent"]
        assert await read_all(node, sent) == [b"x"] * sent
        while used := node.stats()["groups"]["g"]["window_used"]:
            await asyncio.sleep(0.001)
        assert used == 0


async def test_a_multicast_that_waits_for_room_can_be_cancelled(ordercast_cluster) -> None:
    async with ordercast_cluster(1, order="total", **SMALLEST) as cluster:
        (node,), (group,) = cluster.nodes, cluster.groups
        await group.multicast(b"first")
        waiting = [asyncio.ensure_future(group.multicast(b"%d" % n)) for n in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        await asyncio.sleep(0)
        assert node.stats()["groups"]["main"]["multicasts_waiting"] >= 2
        assert await read_all(node, 3) == [b"first", b"1", b"2"]
        await asyncio.gather(*waiting[1:])


async def test_whoever_waits_for_room_when_the_node_ends_is_told(ordercast_cluster) -> None:
    async with ordercast_cluster(1, order="total", rejoin=False, **SMALLEST) as cluster:
        group = cluster.groups[0]
        receipt = await group.multicast(b"first")
        waiting = asyncio.ensure_future(group.multicast(b"second"))
        stable = asyncio.ensure_future(receipt.stable())
        while not cluster.nodes[0].stats()["groups"]["main"]["multicasts_waiting"]:
            await asyncio.sleep(0.001)
        await cluster.kill_leader()
        with pytest.raises(oc.NotPrimary):  # it is alone, and was not the first
            await waiting
        with pytest.raises(oc.NotPrimary):
            await stable


async def test_a_busy_sender_lets_the_loop_turn() -> None:
    """A loop of multicasts that always finds room must not starve the rest of the program."""
    async with oc.Node("alice", bootstrap=True, frame_bytes=1000) as node:
        group = await node.join("g", order="total")
        turns = 0

        async def bystander() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        task = asyncio.ensure_future(bystander())
        for _ in range(1000):
            await group.multicast(bytes(100))
        task.cancel()
        assert turns > 50


async def test_the_window_grants_room_in_the_order_of_asking() -> None:
    window = Window(size=10, reserve=10)
    window.free -= 10
    window.sealed(10)
    granted: list[str] = []

    async def ask(name: str, cost: int) -> None:
        await window.wait_for(cost)
        granted.append(name)

    tasks = [asyncio.ensure_future(ask(n, c)) for n, c in (("big", 9), ("small", 1), ("late", 5))]
    await asyncio.sleep(0)
    window.stable_up_to(1)
    await asyncio.sleep(0)
    assert granted == ["big", "small"] and window.free == 0 and len(window.waiters) == 1
    window.free += 10
    window.stable_up_to(1)
    await asyncio.gather(*tasks)
    assert granted == ["big", "small", "late"] and window.free == 5


async def test_room_granted_to_a_cancelled_task_is_given_back() -> None:
    window = Window(size=10, reserve=10)
    window.free -= 10
    window.sealed(10)
    task = asyncio.ensure_future(window.wait_for(4))
    await asyncio.sleep(0)
    window.stable_up_to(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert window.free == 10


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("sequencer", [True, False])
async def test_a_member_that_left_without_reading_holds_no_window_closed(
    ordercast_cluster, protocol: str, sequencer: bool
) -> None:
    options = {"protocol": protocol, "sequencer": sequencer, **SMALLEST}
    async with ordercast_cluster(2, **options) as cluster:
        leaver, stayer = cluster.groups  # without a sequencer of its own the leaver also leads
        reading = asyncio.ensure_future(read_all(cluster.nodes[1], 20))

        async def send() -> None:
            for number in range(20):
                await stayer.multicast(b"%d" % number)

        sending = asyncio.ensure_future(send())
        while not cluster.nodes[1].stats()["groups"]["main"]["multicasts_waiting"]:
            await asyncio.sleep(0.001)
        assert not sending.done()
        await leaver.leave()
        await sending
        assert await reading == [b"%d" % number for number in range(20)]


async def test_a_leave_that_is_cancelled_goes_on_and_the_group_can_be_joined_again(
    ordercast_cluster,
) -> None:
    async with ordercast_cluster(2, order="total") as cluster:
        leaving = asyncio.ensure_future(cluster.groups[0].leave())
        await asyncio.sleep(0)
        leaving.cancel()
        while cluster.nodes[0].stats()["groups"]:
            await asyncio.sleep(0.001)
        group = await cluster.nodes[0].join("main", order="total")
        assert group.members == ("p2", "p1")
