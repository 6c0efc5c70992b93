"""The stream of a node: one consumer, nothing lost, and an end that cannot be missed."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import warnings

import pytest

import ordercast as oc
from ordercast.runtime.options import FRAME_COST, MESSAGE_COST


def numbers(events: list[oc.Message | oc.View]) -> list[int]:
    return [int(event.body) for event in events if isinstance(event, oc.Message)]


async def test_cancelling_a_receive_loses_nothing(ordercast_cluster) -> None:
    async with ordercast_cluster(2, order="total") as cluster:
        stream = aiter(cluster.nodes[1])
        seen = []

        async def send() -> None:
            for number in range(50):
                await cluster.groups[0].multicast(b"%d" % number)
                await asyncio.sleep(0.001)

        sending = asyncio.ensure_future(send())
        while len(numbers(seen)) < 50:
            try:
                async with asyncio.timeout(0.0007):
                    seen.append(await anext(stream))
            except TimeoutError:
                continue
        await sending
        assert numbers(seen) == list(range(50))


async def test_a_loop_that_is_left_goes_on_where_it_stopped(ordercast_cluster) -> None:
    async with ordercast_cluster(2, order="total") as cluster:
        await cluster.groups[0].multicast_many([b"%d" % number for number in range(30)])
        seen: list[oc.Message | oc.View] = []
        while len(numbers(seen)) < 20:  # a new loop for every event
            async for event in cluster.nodes[1]:
                seen.append(event)
                break
        async for batch in cluster.nodes[1].batches():  # the rest of the frame in hand
            seen += batch
            break
        assert numbers(seen) == list(range(30))


async def test_batches_are_bounded_by_max_batch_or_one_frame(ordercast_cluster) -> None:
    async with ordercast_cluster(2, order="total", max_batch=10, frame_bytes=100) as cluster:
        receipt = await cluster.groups[0].multicast_many([b"%d" % n for n in range(200)])
        await receipt.ordered()
        seen: list[oc.Message | oc.View] = []
        async for batch in cluster.nodes[0].batches():
            assert 0 < len(batch) < 10 + 100 // 9
            seen += batch
            if len(numbers(seen)) == 200:
                break
        assert numbers(seen) == list(range(200))


async def test_a_second_consumer_is_refused_and_the_first_goes_on() -> None:
    async with oc.Node("alice", bootstrap=True) as node:
        group = await node.join("g", order="total")
        assert isinstance(await anext(aiter(node)), oc.View)
        first = asyncio.ensure_future(anext(aiter(node)))
        await asyncio.sleep(0)
        with pytest.raises(oc.UsageError, match="the node's stream has a consumer already"):
            await anext(aiter(node))
        await group.multicast(b"x")
        assert (await first).body == b"x"


async def test_a_group_stream_takes_its_events_out_of_the_node_stream() -> None:
    async with oc.Node("alice", bootstrap=True) as node:
        g1 = await node.join("g1", order="total", scope="group")
        g2 = await node.join("g2", order="total", scope="group")
        for number in range(3):
            await g1.multicast(b"1%d" % number)
            await g2.multicast(b"2%d" % number)
        await (await g2.multicast(b"23")).ordered()
        of_g2 = [event async for event in _first(g2, 5)]
        of_node = [event async for event in _first(node, 4)]
        assert {event.group for event in of_g2} == {"g2"}
        assert {event.group for event in of_node} == {"g1"}
        assert numbers(of_g2) == [20, 21, 22, 23] and numbers(of_node) == [10, 11, 12]


@pytest.mark.parametrize("opened", [1, 2, 5])
async def test_a_group_stream_also_gets_what_the_node_stream_had_opened(opened: int) -> None:
    async with oc.Node("alice", bootstrap=True) as node:
        g1 = await node.join("g1", order="total", scope="group")
        g2 = await node.join("g2", order="total", scope="group")
        for number in range(3):
            await g1.multicast(b"1%d" % number)
            await (await g2.multicast(b"2%d" % number)).ordered()
        seen = [event async for event in _first(node, opened)]  # it opened more than it took
        seen += [event async for event in _first(g2, 4 - sum(e.group == "g2" for e in seen))]
        seen += [event async for event in _first(node, 8 - len(seen))]
        for group, sent in (("g1", [10, 11, 12]), ("g2", [20, 21, 22])):
            assert numbers([event for event in seen if event.group == group]) == sent


async def _first(stream: oc.Node | oc.Group, count: int):
    async for event in stream:
        yield event
        count -= 1
        if not count:
            return


async def test_a_reply_after_a_receive_with_a_timeout_does_not_wait_for_room() -> None:
    limits = {"max_message": 10, "window_bytes": 10 + FRAME_COST + MESSAGE_COST}
    async with oc.Node("alice", bootstrap=True, close_timeout=0.2, **limits) as node:
        group = await node.join("g", order="total")
        stream = aiter(node)
        assert isinstance(await asyncio.wait_for(anext(stream), 10), oc.View)
        async with asyncio.timeout(10):
            for number in range(5):
                await group.multicast(b"%d" % number)
        assert await asyncio.wait_for(anext(stream), 10) == oc.Message("g", "alice", b"0")


async def test_a_refused_consumer_does_not_take_the_reserve_of_the_first() -> None:
    limits = {"max_message": 10, "window_bytes": 10 + FRAME_COST + MESSAGE_COST}
    async with oc.Node("alice", bootstrap=True, close_timeout=0.2, **limits) as node:
        group = await node.join("g", order="total")

        async def reply_twice() -> None:
            async for event in node:
                if isinstance(event, oc.Message):
                    await group.multicast(bytes(10))
                    await group.multicast(bytes(10))
                    return

        replying = asyncio.ensure_future(reply_twice())
        await asyncio.sleep(0)
        with pytest.raises(oc.UsageError, match="has a consumer already"):
            await anext(aiter(node))
        await group.multicast(b"ask")
        await asyncio.wait_for(replying, 10)


async def test_awaiting_stability_in_the_receiving_loop_is_refused() -> None:
    async with oc.Node("alice", bootstrap=True) as node:
        group = await node.join("g", order="total")
        assert isinstance(await anext(aiter(node)), oc.View)
        receipt = await group.multicast(b"x")
        with pytest.raises(oc.UsageError, match="another task"):
            await receipt.stable()
        await receipt.ordered()  # that one may be awaited anywhere


# -- the end --------------------------------------------------------------------------------------


async def test_after_close_the_loop_yields_the_rest_and_ends(ordercast_cluster) -> None:
    async with ordercast_cluster(2, order="total") as cluster:
        receipt = await cluster.groups[0].multicast_many([b"%d" % number for number in range(5)])
        await receipt.ordered()
        node = cluster.nodes[0]
        await node.aclose()
        events = [event async for event in node]
        assert numbers(events) == list(range(5))
        assert [event async for event in node] == []


async def test_a_loop_that_waits_ends_when_the_node_is_closed() -> None:
    node = oc.Node("alice", bootstrap=True)
    await node.start()
    await node.join("g", order="total")

    async def read() -> int:
        return len([event async for event in node])

    reading = asyncio.ensure_future(read())
    await asyncio.sleep(0)
    await node.aclose()
    assert await reading == 2  # the first view and the last


async def test_what_was_sent_before_close_still_reaches_the_others(ordercast_cluster) -> None:
    async with ordercast_cluster(2, order="total") as cluster:
        for number in range(100):
            await cluster.groups[0].multicast(b"%d" % number)
        await cluster.nodes[0].aclose()
        events = [event async for event in _first(cluster.nodes[1], 102)]
        assert numbers(events) == list(range(100))
        assert isinstance(events[-1], oc.View) and events[-1].left == ("p1",)


@pytest.mark.parametrize("protocol", ["sequencer_pb", "vector"])
async def test_closing_is_idempotent_and_may_be_called_by_many(protocol: str) -> None:
    node = oc.Node("alice", bootstrap=True)
    await node.aclose()  # never started
    node = oc.Node("alice", bootstrap=True)
    await node.start()
    group = await node.join("g", protocol=protocol)
    await group.multicast(b"x")
    await asyncio.gather(node.aclose(), node.aclose(), node.aclose())
    await node.aclose()
    with pytest.raises(oc.GroupClosed):
        await group.multicast(b"y")


async def test_closing_is_bounded_when_the_leader_does_not_answer(ordercast_cluster) -> None:
    async with ordercast_cluster(1, order="total", close_timeout=0.2) as cluster:
        cluster.leader._presence.engine.stop()  # alive, connected, deaf
        await cluster.groups[0].multicast(b"never numbered")
        await cluster.nodes[0].aclose()


async def test_a_join_that_a_stuck_member_holds_up_times_out_and_the_node_lives_on(
    ordercast_cluster, monkeypatch
) -> None:
    async def joined(name: str) -> oc.Group:
        while True:
            with contextlib.suppress(oc.JoinTimeout):
                return await node.join(name, order="fifo")

    options = {"heartbeat_ms": 20, "suspect_ms": 400, "join_timeout": 0.2, "close_timeout": 0.2}
    async with ordercast_cluster(3, **options) as cluster:
        _, stuck, node = cluster.nodes
        await stuck.join("g", order="fifo")
        changes = stuck._presence.engine.stack.changes  # alive, heard, and it never reports
        monkeypatch.setattr(changes, "_on_stop", lambda *stop: None)
        with pytest.raises(oc.JoinTimeout, match="first view did not come"):
            await node.join("g", order="fifo")
        for name in ("other", "g"):  # it is given up, and comes back
            await (await (await joined(name)).multicast(b"x")).ordered()
        assert stuck.incarnation == 2


async def test_a_leaked_node_warns_and_gives_up_its_port() -> None:
    node = oc.Node("alice", bootstrap=True)
    await node.start()
    address = node.address
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        del node
        gc.collect()
    assert [w.category for w in caught] == [ResourceWarning]
    assert "'alice' was never closed" in str(caught[0].message)
    await asyncio.sleep(0)
    host, port = address.rsplit(":", 1)
    with pytest.raises(OSError):
        await asyncio.open_connection(host, int(port))


async def test_a_closed_node_does_not_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        async with oc.Node("alice", bootstrap=True) as node:
            await node.join("g", order="total")
        del node
        gc.collect()


async def test_a_start_that_failed_leaves_nothing_behind() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        async with oc.Node("alice", bootstrap=True) as alice:
            with pytest.raises(OSError):
                await oc.Node("bob", seeds=[alice.address], bind=alice.address).start()
            gc.collect()
            assert len(alice.stats()["connections"]) and alice.stats()["nodes"] == 1


async def test_the_stream_of_a_group_ends_when_the_group_is_left(ordercast_cluster) -> None:
    async with ordercast_cluster(2, order="total") as cluster:
        group = cluster.groups[0]

        async def read() -> list[oc.Message | oc.View]:
            return [event async for event in group]

        reading = asyncio.ensure_future(read())
        await (await group.multicast(b"1")).ordered()
        await group.leave()
        events = await reading
        assert numbers(events) == [1] and events[-1].left == ("p1",)
        other = cluster.groups[1]
        await other.leave()
        with pytest.raises(oc.GroupClosed, match="in the node's stream"):
            aiter(other)
