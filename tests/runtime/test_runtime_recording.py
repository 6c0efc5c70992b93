"""What a live run records, judged by the oracle: the promise was kept, and the log is complete."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import ordercast as oc
from ordercast.protocols.registry import PROTOCOLS
from ordercast.trace.oracle import judge
from ordercast.trace.read import read_events
from ordercast.wire.frame import FIXED_SIZE


async def chatter(cluster: oc.LocalCluster, each: int) -> None:
    """Every member sends and answers; returns when everybody has taken everything."""
    members = len(cluster.nodes)
    total = members * each * 2  # one answer to each message

    async def read_and_answer(node: oc.Node, group: oc.Group, answers_to: str) -> None:
        seen = 0
        async for event in node:
            if isinstance(event, oc.Message):
                seen += 1
                if event.sender == answers_to and event.body.startswith(b"m"):
                    await group.multicast(b"answer")
                if seen == total:
                    return

    async def send(group: oc.Group) -> None:
        for number in range(each):
            await group.multicast(b"m%d" % number)
            if number % 3 == 0:
                await asyncio.sleep(0)

    names = cluster.names
    await asyncio.gather(
        *(
            read_and_answer(node, group, names[(place + 1) % members])
            for place, (node, group) in enumerate(zip(cluster.nodes, cluster.groups, strict=True))
        ),
        *(send(group) for group in cluster.groups),
    )


def verdicts(trace: Path) -> dict[str, str]:
    events = read_events(trace)
    return {name: judgement.verdict for name, judgement in judge(events).items()}


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_the_trace_of_a_real_run_shows_every_promise_kept(
    tmp_path: Path, ordercast_cluster, protocol: str
) -> None:
    async with ordercast_cluster(3, protocol=protocol, trace=tmp_path) as cluster:
        await chatter(cluster, 20)
    found = verdicts(tmp_path)
    declared = PROTOCOLS[protocol].declaration
    assert {name: found[name] for name in declared.promises} == dict.fromkeys(
        declared.promises, "ok"
    )
    assert found["wellformed"] == found["views"] == found["vsync"] == "ok"
    events = read_events(tmp_path)
    delivered = [event for event in events if event.kind == "deliver"]
    assert len(delivered) == 3 * 120
    assert all((e.overhead is None) == (e.sender == e.process) for e in delivered)
    assert sorted(event.process for event in events if event.kind == "end") == [
        "p1#1", "p2#1", "p3#1", "sequencer#1",
    ]  # fmt: skip
    assert {(e.order, e.protocol, e.scope) for e in events if e.kind == "group"} == {
        (declared.order, protocol, declared.scope)
    }


@pytest.mark.parametrize("level", ["application", "protocol"])
async def test_a_delivery_has_the_header_bytes_of_the_packet_that_brought_it(
    tmp_path: Path, ordercast_cluster, level: str
) -> None:
    async with ordercast_cluster(
        3, protocol="vector", trace=tmp_path, trace_level=level
    ) as cluster:
        reading = [asyncio.ensure_future(_read(node)) for node in cluster.nodes]
        await (await cluster.groups[0].multicast(b"one")).stable()
        await (await cluster.groups[1].multicast_many([b"two", b"three", b"four"])).stable()
    await asyncio.gather(*reading)
    vector = FIXED_SIZE + 1 + (1 + 3) + 1  # a list of the list of three entries, and `stable`
    events = [e for e in read_events(tmp_path) if e.sender != e.process and e.message]
    for kind in ("deliver", "receive") if level == "protocol" else ("deliver",):
        found = {(e.message, e.process): e.overhead for e in events if e.kind == kind}
        for process in ("p2#1", "p3#1"):
            assert found["p1#1/main/1", process] == vector
        for process in ("p1#1", "p3#1"):
            assert sum(found[f"p2#1/main/{number}", process] for number in (1, 2, 3)) == vector


@pytest.mark.parametrize("protocol", ["sequencer_pb", "sequencer_bb", "vector", "reliable"])
async def test_a_crash_is_recorded_by_those_who_saw_it(
    tmp_path: Path, ordercast_cluster, protocol: str
) -> None:
    async with ordercast_cluster(3, protocol=protocol, trace=tmp_path, run="r") as cluster:
        reading = [asyncio.ensure_future(_read(node)) for node in cluster.nodes]
        for number in range(30):
            for group in cluster.groups:
                if number < 15 or group is not cluster.groups[1]:
                    await group.multicast(b"%d" % number)
            if number == 15:
                await cluster.kill(1)
            await asyncio.sleep(0.002)
        await asyncio.sleep(0.05)
    await asyncio.gather(*reading)
    events = read_events(tmp_path)
    assert {event.process for event in events if event.kind == "crash"} == {"p2#1"}
    assert {event.run for event in events} == {"r"}
    found = verdicts(tmp_path)
    for name in PROTOCOLS[protocol].declaration.promises:
        assert found[name] == "ok", (name, judge(events)[name])
    assert found["views"] == found["vsync"] == "ok"


async def _read(node: oc.Node) -> None:
    try:
        async for _ in node:
            pass
    except (oc.NodeEnded, oc.GroupClosed):
        pass


async def test_a_node_that_closes_before_it_took_everything_leaves_a_cut_log(
    tmp_path: Path, ordercast_cluster
) -> None:
    async with ordercast_cluster(2, order="total", trace=tmp_path) as cluster:
        await cluster.nodes[1].join("another", order="fifo")  # the first group still counts
        receipt = await cluster.groups[0].multicast_many([b"1", b"2"])
        await receipt.ordered()
        reading = asyncio.ensure_future(_read(cluster.nodes[0]))
        while cluster.nodes[0].stats()["groups"]["main"]["inbox_frames"]:
            await asyncio.sleep(0.001)
    await reading
    events = read_events(tmp_path)
    ended = {event.process for event in events if event.kind == "end"}
    assert ended == {"p1#1", "sequencer#1"}  # p2 never looked at its two messages
    assert "violated" not in {judgement.verdict for judgement in judge(events).values()}


async def test_leaving_and_joining_again_goes_on_with_the_numbers(
    tmp_path: Path, ordercast_cluster
) -> None:
    async with ordercast_cluster(2, order="total", trace=tmp_path) as cluster:
        reading = [asyncio.ensure_future(_read(node)) for node in cluster.nodes]
        group = cluster.groups[0]
        for stay in range(3):
            await group.multicast(b"%d" % stay)
            await group.leave()
            group = await cluster.nodes[0].join("main", order="total")
        await (await group.multicast(b"last")).ordered()
    await asyncio.gather(*reading)
    events = read_events(tmp_path)
    sent = [event.message for event in events if event.kind == "send"]
    assert sent == [f"p1#1/main/{number}" for number in (1, 2, 3, 4)]
    found = {name: judgement.verdict for name, judgement in judge(events).items()}
    assert found["wellformed"] == found["total.gapless"] == found["membership"] == "ok"


async def test_every_send_is_on_disk_before_anybody_delivers_it(
    tmp_path: Path, ordercast_cluster
) -> None:
    async with ordercast_cluster(2, order="total", trace=tmp_path) as cluster:
        for number in range(20):
            await cluster.groups[0].multicast(b"%d" % number)
            async for event in cluster.nodes[1]:
                if isinstance(event, oc.Message):
                    break
            on_disk = [e for e in read_events(tmp_path) if e.kind == "send"]
            assert len(on_disk) == number + 1


async def test_recording_twice_under_one_name_is_refused(tmp_path: Path) -> None:
    async with oc.Node("alice", bootstrap=True, trace=tmp_path, run="r"):
        pass
    with pytest.raises(oc.UsageError, match="has a log of 'alice#1' already"):
        await oc.Node("alice", bootstrap=True, trace=tmp_path, run="r").start()
    async with oc.Node("alice", bootstrap=True, trace=tmp_path):  # a run name of its own
        pass
