"""The end of a node: bounded, complete if it says so, and never in anybody's way."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

import ordercast as oc
from ordercast.trace.oracle import judge
from ordercast.trace.read import read_events
from ordercast.trace.recorder import Recorder


async def read(node: oc.Node) -> None:
    async for _ in node:
        pass


@pytest.mark.parametrize("protocol", ["sequencer_pb", "fifo"])
@pytest.mark.parametrize("cancelled", [True, False])
async def test_closing_in_the_middle_of_a_leave_waits_for_it(
    tmp_path: Path, ordercast_cluster, protocol: str, cancelled: bool
) -> None:
    async with ordercast_cluster(2, protocol=protocol, trace=tmp_path) as cluster:
        readers = [asyncio.ensure_future(read(node)) for node in cluster.nodes]
        await cluster.groups[0].multicast(b"last words")
        leaving = asyncio.ensure_future(cluster.groups[0].leave())
        await asyncio.sleep(0)
        if cancelled:
            leaving.cancel()
        await cluster.nodes[0].aclose()
        outcome = (await asyncio.gather(leaving, return_exceptions=True))[0]
        assert isinstance(outcome, asyncio.CancelledError if cancelled else type(None))
    await asyncio.gather(*readers)
    events = read_events(tmp_path)
    assert [e.kind for e in events if e.process == "p1#1"][-2:] == ["leave", "end"]
    assert judge(events)["validity"].verdict == "ok"


async def test_a_leave_that_cannot_end_leaves_a_cut_log(tmp_path: Path, ordercast_cluster) -> None:
    options = {"order": "total", "trace": tmp_path, "close_timeout": 0.2}
    async with ordercast_cluster(1, **options) as cluster:
        reader = asyncio.ensure_future(read(cluster.nodes[0]))
        await asyncio.sleep(0)
        cluster.leader._presence.engine.stop()  # alive, connected, deaf
        await cluster.groups[0].multicast(b"never numbered")
        leaving = asyncio.ensure_future(cluster.groups[0].leave())
        await asyncio.sleep(0)
        await cluster.nodes[0].aclose()
        with pytest.raises(oc.GroupClosed):
            await leaving
        await reader
    ended = {event.process for event in read_events(tmp_path) if event.kind == "end"}
    assert ended == {"sequencer#1"}


async def test_a_reader_that_takes_its_time_does_not_hold_up_the_close() -> None:
    limits = {"close_timeout": 0.2, "frame_bytes": 1, "max_batch": 1}
    async with oc.Node("alice", bootstrap=True, **limits) as node:
        group = await node.join("g", order="total")
        await (await group.multicast_many([b"x"] * 200)).ordered()
        taken = 0

        async def read_slowly() -> None:
            nonlocal taken
            async for _ in node:
                taken += 1
                await asyncio.sleep(0.05)

        reading = asyncio.ensure_future(read_slowly())
        await asyncio.sleep(0)
        await node.aclose()
        assert 0 < taken < 100  # the rest would have taken seconds
        reading.cancel()


async def test_others_need_not_wait_for_the_seal_of_a_log(
    tmp_path: Path, ordercast_cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ordercast_cluster(1, order="total", trace=tmp_path) as cluster:
        known_to_be_gone = False

        def seal_when_the_leader_knows(recorder: Recorder, seconds: float) -> None:
            nonlocal known_to_be_gone
            for _ in range(10_000):
                if cluster.leader.stats()["nodes"] == 1:
                    known_to_be_gone = True
                    return
                time.sleep(0.001)

        with monkeypatch.context() as patch:
            patch.setattr(Recorder, "seal", seal_when_the_leader_knows)
            await cluster.nodes[0].aclose()
        assert known_to_be_gone


async def test_a_log_that_cannot_be_sealed_does_not_keep_the_node_in_the_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(recorder: Recorder, seconds: float) -> None:
        raise OSError("the disk is gone")

    monkeypatch.setattr(Recorder, "seal", refuse)
    async with oc.Node("alice", bootstrap=True) as leader:
        node = oc.Node("bob", seeds=[leader.address], trace=tmp_path)
        await node.start()
        with pytest.raises(OSError, match="the disk is gone"):
            await node.aclose()
        assert leader.stats()["nodes"] == 1
        assert node.stats()["connections"]["open"] == 0


async def test_closing_ends_the_question_what_became_of_us(
    ordercast_cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ordercast_cluster(1, order="total", close_timeout=0.2) as cluster:
        (node,) = cluster.nodes

        async def nobody_answers(*_: object, **__: object) -> None:
            await asyncio.Event().wait()

        monkeypatch.setattr(node._presence.peers, "dial", nobody_answers)
        before = asyncio.all_tasks()
        node._presence.peers.bound[0].abort("cut")
        while not (asking := asyncio.all_tasks() - before):
            await asyncio.sleep(0)
        await node.aclose()
        assert all(task.done() for task in asking)
        assert node._presence.error is None


async def test_a_join_that_waits_for_the_leader_ends_with_the_node(ordercast_cluster) -> None:
    async with ordercast_cluster(1, close_timeout=0.2) as cluster:
        (node,) = cluster.nodes
        cluster.leader._presence.cluster_membership.handle = lambda *_: None
        joining = asyncio.ensure_future(node.join("g", order="total"))
        while not node._presence.cluster_membership.requests._pending:
            await asyncio.sleep(0)
        await node.aclose()
        with pytest.raises(oc.GroupClosed, match="the node was closed"):
            await joining
