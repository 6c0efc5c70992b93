"""Why is it held back? What a live group answers, and what a trace at protocol level shows."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import ordercast as oc
from ordercast.core.events import Receive
from ordercast.core.waiting import WaitingFrame
from ordercast.process.process import Process
from ordercast.protocols.fifo import FifoData
from ordercast.protocols.registry import PROTOCOLS
from ordercast.runtime.held_back import LOOK_SECONDS, LOOK_SHARE, Ages
from ordercast.runtime.status import query_status
from ordercast.trace.oracle import judge
from ordercast.trace.read import read_events
from ordercast.trace.waits import read_waits


class Detour:
    """Keeps the packets of one node to another until they are let go."""

    def __init__(self, receiver: oc.Node, sender: oc.Node) -> None:
        self.engine = receiver._presence.engine
        self.sender = sender._presence.me.pid
        self.take = self.engine.receive
        self.kept: list = []
        self.engine.receive = self.receive

    def receive(self, src: int, frames: list, on_control: object) -> None:
        if src == self.sender:
            self.kept.append((src, frames, on_control))
        else:
            self.take(src, frames, on_control)

    def let_go(self) -> None:
        """All that was kept arrives in one read; packets that come later go straight."""
        self.engine.receive = self.take
        kept, self.kept = self.kept, []
        frames = [frame for _, frames, _ in kept for frame in frames]
        self.take(self.sender, frames, kept[0][2])


async def until(condition) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.002)


async def read(node: oc.Node, messages: int) -> list[bytes]:
    bodies: list[bytes] = []
    async for event in node:
        if isinstance(event, oc.Message):
            bodies.append(event.body)
            if len(bodies) == messages:
                return bodies
    raise AssertionError("the stream ended")


async def test_an_answer_that_overtook_the_question_waits_for_it(ordercast_cluster) -> None:
    async with ordercast_cluster(3, protocol="vector") as cluster:
        asker, answerer, listener = cluster.nodes
        detour = Detour(listener, asker)
        await cluster.groups[0].multicast(b"question")
        assert await read(answerer, 1) == [b"question"]
        await cluster.groups[1].multicast_many([b"one", b"two"])
        group = cluster.groups[2]
        await until(group.held_back)
        [held] = group.held_back()
        assert (held.group, held.sender, held.message, held.count) == (
            "main", "p2", "p2#1/main/1", 2,
        )  # fmt: skip
        assert held.waits_for == (oc.WaitsFor("frame", "main", "p1#1", 1),)
        assert 0 <= held.seconds <= held.at_most
        assert held.text.startswith(
            "messages p2#1/main/1 to 2 wait for frame 1 of p1#1 in main, for "
        )
        assert cluster.groups[0].held_back() == cluster.groups[1].held_back() == []
        detour.let_go()
        assert await read(listener, 3) == [b"question", b"one", b"two"]
        assert group.held_back() == []


async def test_an_awaited_frame_that_is_here_is_named_by_its_messages(ordercast_cluster) -> None:
    async with ordercast_cluster(2, protocol="fifo", frame_bytes=1) as cluster:
        detour = Detour(cluster.nodes[1], cluster.nodes[0])
        for number in range(3):
            await cluster.groups[0].multicast(b"%d" % number)
            await until(lambda number=number: len(detour.kept) > number)
        first, *others = detour.kept
        detour.kept = others
        detour.let_go()
        texts = [held.text.partition(", for")[0] for held in cluster.groups[1].held_back()]
        assert sorted(texts) == [
            "message p1#1/main/2 waits for frame 1 of p1#1 in main",
            "message p1#1/main/3 waits for message p1#1/main/2",
        ]
        detour.take(*first)
        assert await read(cluster.nodes[1], 3) == [b"0", b"1", b"2"]


async def test_stats_and_status_show_how_long_the_oldest_frame_waits(ordercast_cluster) -> None:
    async with ordercast_cluster(2, protocol="sequencer_pb") as cluster:
        sequencer, sender = cluster.nodes
        detour = Detour(sender, sequencer)
        await cluster.groups[1].multicast(b"x")

        def oldest() -> float:
            return sender.stats()["groups"]["main"]["oldest_held_seconds"]

        await until(lambda: oldest() > 0.05)
        [held] = cluster.groups[1].held_back()
        assert str(held.waits_for[0]) == "p1#1 to number frame 1 in main"
        status = await query_status(sender.address)
        assert status["stats"]["groups"]["main"]["oldest_held_seconds"] > 0
        detour.let_go()
        await read(cluster.nodes[0], 1)
        assert oldest() == 0


async def test_a_group_answers_for_itself_where_one_machine_serves_several() -> None:
    async with (
        oc.Node("a", bootstrap=True) as a,
        oc.Node("b", seeds=[a.address]) as b,
        oc.Node("c", seeds=[a.address]) as c,
    ):
        for name in ("red", "blue"):
            for node in (a, b, c):
                await node.join(name, protocol="cbcast")
        groups = {
            n.name: {m.group.name: m for m in n._presence.groups.memberships.values()}
            for n in (a, b)
        }
        at_c = {m.group.name: oc.Group(c, m) for m in c._presence.groups.memberships.values()}
        everybody = [m for n in (a, b, c) for m in n._presence.groups.memberships.values()]
        await until(lambda: all(m.view is not None and len(m.view.members) == 3 for m in everybody))
        detour = Detour(c, a)
        await groups["a"]["red"].multicast(b"1")
        await read(b, 1)
        await groups["b"]["blue"].multicast(b"2")
        await until(at_c["blue"].held_back)
        [held] = at_c["blue"].held_back()
        assert [(thing.what, thing.group, thing.process) for thing in held.waits_for] == [
            ("frame", "red", "a#1")
        ]
        assert at_c["red"].held_back() == []
        detour.let_go()
        assert await read(c, 2) == [b"1", b"2"]


# -- ages -----------------------------------------------------------------------------------------


class Clock:
    """An event loop's clock and timers, moved by the test."""

    def __init__(self) -> None:
        self.now = 100.0
        self.due: list[tuple[float, object]] = []

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, callback):
        entry = (self.now + delay, callback)
        self.due.append(entry)
        clock = self

        class Handle:
            def cancel(self) -> None:
                clock.due.remove(entry)

        return Handle()

    def move_to(self, moment: float) -> None:
        self.now = moment
        for entry in [entry for entry in self.due if entry[0] <= moment]:
            self.due.remove(entry)
            entry[1]()


FRAME = (1, 2, 3, b"m")
KEY = (1, 2, b"m")


def test_the_age_of_a_frame_lies_between_two_looks() -> None:
    clock, held = Clock(), []
    ages = Ages(clock, lambda: held)
    clock.now = 200.0  # idle for long
    ages.wake()  # a packet: nothing can have waited before
    held.append(FRAME)
    clock.move_to(200.0 + LOOK_SECONDS)
    held.append((1, 2, 4, b"later"))
    clock.move_to(200.0 + 2 * LOOK_SECONDS)
    clock.now = 201.0
    least, most = ages.ages(KEY)
    assert least == pytest.approx(1 - LOOK_SECONDS)
    assert most == pytest.approx(1)
    assert ages.ages((1, 2, b"later")) == (
        pytest.approx(1 - 2 * LOOK_SECONDS),
        pytest.approx(1 - LOOK_SECONDS),
    )
    assert ages.oldest() == {1: pytest.approx(least)}


def test_looks_go_on_only_while_something_waits() -> None:
    clock, held = Clock(), [FRAME]
    ages = Ages(clock, lambda: held)
    ages.wake()
    for number in range(1, 4):
        clock.move_to(100.0 + number * LOOK_SECONDS)
        assert len(clock.due) == 1
    held.clear()
    clock.move_to(101.0)
    assert clock.due == []
    ages.wake()
    ages.stop()
    assert clock.due == []


def test_a_look_that_takes_long_is_not_soon_repeated() -> None:
    clock = Clock()

    def slow() -> list[WaitingFrame]:
        clock.now += 0.5
        return [FRAME]

    ages = Ages(clock, slow)
    ages.wake()
    clock.move_to(100.0 + LOOK_SECONDS)
    [(due, _)] = clock.due
    assert due == pytest.approx(clock.now + LOOK_SHARE * 0.5)


def test_a_look_that_takes_long_and_finds_nothing_is_not_soon_repeated_either() -> None:
    clock = Clock()

    def slow() -> list[WaitingFrame]:
        clock.now += 0.5
        return []

    ages = Ages(clock, slow)
    ages.wake()
    clock.move_to(100.0 + LOOK_SECONDS)
    assert clock.due == []
    ages.wake()  # the next packet
    [(due, _)] = clock.due
    assert due == pytest.approx(clock.now + LOOK_SHARE * 0.5)


def test_a_frame_that_came_again_after_its_release_is_as_young_as_it_is() -> None:
    clock, held = Clock(), [FRAME]
    ages = Ages(clock, lambda: held)
    ages.look()
    held.clear()
    clock.now = 110.0
    ages.look()
    held.append(FRAME)
    clock.now = 111.0
    ages.look()
    assert ages.ages(KEY) == (0.0, 1.0)


def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which questions the stacks that are made from now on are asked."""
    asked: list[str] = []
    for name in ("held_back", "waiting_frames"):
        ask = getattr(Process, name)
        monkeypatch.setattr(
            Process, name, lambda *args, name=name, ask=ask: asked.append(name) or ask(*args)
        )
    return asked


async def test_a_look_asks_for_no_reasons(ordercast_cluster, monkeypatch) -> None:
    asked = counted(monkeypatch)
    async with ordercast_cluster(1, protocol="fifo") as cluster:
        [node], [group] = cluster.nodes, cluster.groups
        asked.clear()
        node._presence.engine.ages.look()
        assert node.stats()["groups"]["main"]["oldest_held_seconds"] == 0
        assert set(asked) == {"waiting_frames"}
        assert group.held_back() == []
        assert asked.count("held_back") == 1


async def test_under_a_trace_the_machine_is_asked_once_per_event(
    tmp_path: Path, ordercast_cluster, monkeypatch
) -> None:
    asked = counted(monkeypatch)
    options = {"trace": tmp_path, "trace_level": "protocol"}
    async with ordercast_cluster(1, protocol="fifo", **options) as cluster:
        engine = cluster.nodes[0]._presence.engine
        [g] = engine.stack.groups.machines
        asked.clear()
        engine.step([Receive(9, g, 0, FifoData(1, 0)), Receive(9, g, 0, FifoData(2, 0))])
        assert asked == ["held_back"] * 2


# -- a trace at protocol level --------------------------------------------------------------------


async def test_the_trace_tells_what_waited_and_what_released_it(
    tmp_path: Path, ordercast_cluster
) -> None:
    options = {"trace": tmp_path, "trace_level": "protocol"}
    async with ordercast_cluster(3, protocol="vector", **options) as cluster:
        asker, answerer, listener = cluster.nodes
        detour = Detour(listener, asker)
        await (await cluster.groups[0].multicast(b"no question")).ordered()
        await cluster.groups[0].multicast(b"question")
        await read(asker, 2)
        await read(answerer, 2)
        await cluster.groups[1].multicast_many([b"one", b"two"])
        await until(listener._presence.engine.stack.held_back)
        await asyncio.sleep(LOOK_SECONDS / 2)
        [held] = cluster.groups[2].held_back()
        assert held.seconds > LOOK_SECONDS / 4  # it was seen before anybody asked
        detour.let_go()
        await asyncio.gather(*(read(n, k) for n, k in ((asker, 2), (answerer, 2), (listener, 4))))
    events = read_events(tmp_path)
    one, two = read_waits(events)
    assert (one.process, one.message) == ("p3#1", "p2#1/main/1")
    assert (two.process, two.message) == ("p3#1", "p2#1/main/2")
    [stage] = one.stages
    assert list(map(str, stage.awaits)) == ["frame 2 of p1#1 in main"]
    assert list(map(str, one.gone)) == ["message p1#1/main/2"]
    assert one.by == "Stamped from p1#1 with message p1#1/main/2"
    assert one.delivered is not None
    received = [e.message for e in events if e.kind == "receive" and e.process == "p3#1"]
    assert {"p1#1/main/1", "p1#1/main/2", "p2#1/main/1", "p2#1/main/2"} <= set(received)


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_trace_at_protocol_level_still_shows_every_promise_kept(
    tmp_path: Path, ordercast_cluster, protocol: str
) -> None:
    options = {"trace": tmp_path, "trace_level": "protocol"}
    async with ordercast_cluster(3, protocol=protocol, **options) as cluster:

        async def talk(node: oc.Node, group: oc.Group) -> None:
            for number in range(10):
                await group.multicast(b"%d" % number)
                await asyncio.sleep(0)
            await read(node, 30)

        await asyncio.gather(*map(talk, cluster.nodes, cluster.groups))
    events = read_events(tmp_path)
    found = {name: judgement.verdict for name, judgement in judge(events).items()}
    promises = PROTOCOLS[protocol].declaration.promises
    assert {name: found[name] for name in promises} == dict.fromkeys(promises, "ok")
    assert found["wellformed"] == "ok"
    sent = {event.message for event in events if event.kind == "send"}
    assert {event.message for event in events if event.message} == sent
    assert any(event.kind == "receive" for event in events)
    assert all(wait.ended is not None for wait in read_waits(events))


def test_a_level_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match=r"trace_level='all' is none of 'application', 'protocol'"):
        oc.Node("a", bootstrap=True, trace="somewhere", trace_level="all")


def test_a_level_without_a_place_to_record_to_is_refused() -> None:
    with pytest.raises(oc.ConfigError, match="trace_level='protocol' and trace=None"):
        oc.Node("a", bootstrap=True, trace_level="protocol")
