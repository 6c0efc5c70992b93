"""Flow control: windows bound everything, a slow consumer is felt, and nobody ever deadlocks."""

from __future__ import annotations

import asyncio
import time

import pytest

import ordercast as oc
from ordercast.protocols.registry import PROTOCOLS
from ordercast.runtime.options import FRAME_COST, MESSAGE_COST
from ordercast.runtime.window import NodeWindow, Window

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
    window = Window(size=10, reserve=10, node=NodeWindow(100, 10))
    window.take(10)
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
    window.give_back(10)
    await asyncio.gather(*tasks)
    assert granted == ["big", "small", "late"] and window.free == 5


async def test_room_granted_to_a_cancelled_task_is_given_back() -> None:
    window = Window(size=10, reserve=10, node=NodeWindow(100, 10))
    window.take(10)
    window.sealed(10)
    task = asyncio.ensure_future(window.wait_for(4))
    await asyncio.sleep(0)
    window.stable_up_to(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert window.free == 10 and window.node.free == 100


# -- one window for all groups of a node ----------------------------------------------------------


async def test_what_a_node_has_under_way_in_all_groups_together_is_bounded() -> None:
    limits = {"max_message": 1000, "window_bytes": 20_000, "node_window_bytes": 50_000}
    async with oc.Node("alice", bootstrap=True, **limits) as node:
        groups = [await node.join(f"g{n}", order="total") for n in range(20)]

        async def flood(group: oc.Group) -> None:
            for _ in range(50):
                await group.multicast(bytes(1000))

        floods = [asyncio.ensure_future(flood(group)) for group in groups]
        while not node.stats()["groups_waiting"]:
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.05)
        stats = node.stats()
        used = [group["window_used"] for group in stats["groups"].values()]
        assert sum(used) == stats["node_window_used"] <= stats["node_window_bytes"] == 50_000
        assert sum(group["inbox_bytes"] for group in stats["groups"].values()) < 50_000
        assert not any(flood.done() for flood in floods)
        assert len(await read_all(node, 20 * 50)) == 20 * 50
        await asyncio.gather(*floods)
        while node.stats()["node_window_used"]:
            await asyncio.sleep(0.001)


async def test_the_room_of_the_node_goes_round_the_groups_that_wait() -> None:
    node = NodeWindow(10, reserve=10)
    busy, one, other = (Window(size=10, reserve=10, node=node) for _ in range(3))
    busy.take(10)
    granted: list[str] = []

    async def ask(window: Window, name: str) -> None:
        await window.wait_for(4)
        granted.append(name)

    asking = [(one, "one 1"), (one, "one 2"), (one, "one 3"), (other, "other 1")]
    tasks = [asyncio.ensure_future(ask(*each)) for each in asking]
    await asyncio.sleep(0)
    assert other.room <= 0 and not granted
    for _ in range(4):
        busy.give_back(2)
        await asyncio.sleep(0)
    assert granted == ["one 1", "other 1"] and node.free == 0
    one.give_back(4)
    other.give_back(4)
    await asyncio.gather(*tasks)
    assert granted == ["one 1", "other 1", "one 2", "one 3"]


async def test_a_group_that_ends_gives_its_room_to_the_others() -> None:
    node = NodeWindow(10, reserve=10)
    ended, other = (Window(size=10, reserve=10, node=node) for _ in range(2))
    ended.take(10)
    ended.sealed(8)
    late, waiting = (asyncio.ensure_future(w.wait_for(6)) for w in (ended, other))
    await asyncio.sleep(0)
    ended.close(oc.GroupClosed("left"))
    await waiting
    with pytest.raises(oc.GroupClosed):
        await late
    ended.stable_up_to(1)
    ended.give_back(2)
    ended.close(oc.GroupClosed("left"))
    assert node.free == 4 and not node.waiting


async def test_whoever_gives_up_waiting_for_room_of_the_node_stops_nobody() -> None:
    node = NodeWindow(10, reserve=10)
    busy, one, other = (Window(size=10, reserve=10, node=node) for _ in range(3))
    busy.take(8)
    large, small = asyncio.ensure_future(one.wait_for(5)), asyncio.ensure_future(other.wait_for(2))
    await asyncio.sleep(0)
    assert not small.done()  # nobody overtakes
    large.cancel()
    await small
    assert node.free == 0 and not node.waiting


async def test_replies_in_many_groups_are_bounded_by_the_window_of_the_node() -> None:
    limits = SMALLEST | {"node_window_bytes": SMALLEST["window_bytes"]}
    async with oc.Node("alice", bootstrap=True, **limits) as node:
        groups = [await node.join(f"g{n}", order="total") for n in range(20)]
        assert isinstance(await anext(aiter(node)), oc.View)  # this task reads the stream
        with pytest.raises(oc.UsageError, match=r"\(node_window_bytes="):
            for number in range(100):
                await groups[number % 20].multicast(bytes(BODY))
        # The window, the reserve, and one reply to each of the views that it took.
        assert node.stats()["node_window_used"] <= 22 * SMALLEST["window_bytes"]


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


# -- the event loop turns -------------------------------------------------------------------------

WORK_SECONDS = 0.004  # longer than anybody may keep the event loop, however slow the machine is


class Bystander:
    """Counts the turns of the event loop that it gets."""

    def __init__(self) -> None:
        self.turns = 0

    async def __aenter__(self) -> Bystander:
        self._task = asyncio.ensure_future(self._run())
        await asyncio.sleep(0)
        self.turns = 0
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()

    async def _run(self) -> None:
        while True:
            self.turns += 1
            await asyncio.sleep(0)


async def test_a_reader_that_computes_for_each_buffered_event_lets_the_loop_turn() -> None:
    async with oc.Node("alice", bootstrap=True) as node:
        group = await node.join("g", order="total")
        await (await group.multicast_many([b"x"] * 30)).ordered()
        async with Bystander() as bystander:
            taken = 0
            async for _ in node:
                time.sleep(WORK_SECONDS)
                taken += 1
                if taken == 31:
                    break
            assert bystander.turns >= 30


async def test_a_reader_of_batches_lets_the_loop_turn_between_them() -> None:
    async with oc.Node("alice", bootstrap=True, frame_bytes=1, max_batch=1) as node:
        group = await node.join("g", order="total")
        await (await group.multicast_many([b"x"] * 30)).ordered()
        async with Bystander() as bystander:
            taken = 0
            async for batch in node.batches():
                time.sleep(WORK_SECONDS)
                taken += len(batch)
                if taken == 31:
                    break
            assert bystander.turns >= 30


async def test_a_reader_that_is_cancelled_while_it_lets_the_loop_turn_loses_nothing() -> None:
    async with oc.Node("alice", bootstrap=True) as node:
        group = await node.join("g", order="total")
        await (await group.multicast_many([b"%d" % number for number in range(20)])).ordered()
        stream, bodies, cancelled = aiter(node), [], 0
        while len(bodies) < 20:
            time.sleep(WORK_SECONDS)
            asking = asyncio.ensure_future(anext(stream))
            await asyncio.sleep(0)
            asking.cancel()
            try:
                event = await asking
            except asyncio.CancelledError:
                cancelled += 1
                event = await anext(stream)
            if isinstance(event, oc.Message):
                bodies.append(event.body)
        assert bodies == [b"%d" % number for number in range(20)]
        assert cancelled


async def test_a_sender_that_changes_the_group_with_every_message_lets_the_loop_turn() -> None:
    async with oc.Node("alice", bootstrap=True) as node:
        groups = [await node.join(f"g{n}", order="fifo", scope="group") for n in range(10)]
        async with Bystander() as bystander:
            for number in range(5000):
                await groups[number % 10].multicast(b"x")
            assert bystander.turns >= 5


@pytest.mark.parametrize("order", ["fifo", "total"])
async def test_such_a_sender_waits_for_the_others_and_all_of_it_arrives(order: str) -> None:
    """In every group it waits for the acknowledgements of others, and theirs need the loop, too."""
    async with (
        oc.Node("alice", bootstrap=True) as alice,
        oc.Node("bob", seeds=[alice.address]) as bob,
        oc.Node("carol", seeds=[alice.address]) as carol,
    ):
        nodes, count = (alice, bob, carol), 2000
        groups = []
        for number in range(10):
            group, *_ = [
                await node.join(f"g{number}", order=order, scope="group") for node in nodes
            ]
            groups.append(group)
        readers = [asyncio.ensure_future(bodies_of(node, count)) for node in nodes]
        async with Bystander() as bystander:
            for number in range(count):
                await groups[number % 10].multicast(b"%d" % number)
            assert bystander.turns >= 5
        expected = sorted(b"%d" % number for number in range(count))
        assert [sorted(bodies) for bodies in await asyncio.gather(*readers)] == [expected] * 3


async def bodies_of(node: oc.Node, count: int) -> list[bytes]:
    """The first so many messages of this node."""
    bodies: list[bytes] = []
    async for event in node:
        if isinstance(event, oc.Message):
            bodies.append(event.body)
            if len(bodies) == count:
                break
    return bodies


async def test_a_sender_that_computes_between_messages_lets_the_loop_turn() -> None:
    async with oc.Node("alice", bootstrap=True) as node:
        group = await node.join("g", order="total")
        async with Bystander() as bystander:
            for _ in range(30):
                time.sleep(WORK_SECONDS)
                await group.multicast(b"x")
            assert bystander.turns >= 14
