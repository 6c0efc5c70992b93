"""What the examples promise, with real sockets in one process."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from pathlib import Path

import pytest

import ordercast as oc
from example_work import Broker, Chat, Crew, Floor, Line, ReplicatedDict
from ordercast.protocols.registry import PROTOCOLS
from ordercast.trace.oracle import judge
from ordercast.trace.read import read_events

ROOMS = {"p1": ["a", "b"], "p2": ["b", "c"], "p3": ["c", "a"], "p4": ["a", "b", "c"]}


class Person:
    """Answers what it reads, in any of its rooms, and counts answers that it saw too early."""

    def __init__(self, node: oc.Node, rooms: list[str], seed: int) -> None:
        self.chat = Chat(node)
        self.rooms = rooms
        self.lines: list[Line] = []
        self.too_early: list[Line] = []
        self._choice = random.Random(seed)
        self._talkative = 6
        self.listening = asyncio.ensure_future(self._listen())

    async def _listen(self) -> None:
        async for event in self.chat.listen():
            if isinstance(event, Line):
                await self._hear(event)

    async def _hear(self, line: Line) -> None:
        room, _, asked = (line.answers or "").partition(":")
        if room in self.rooms and asked not in {seen.id for seen in self.lines}:
            self.too_early.append(line)
        self.lines.append(line)
        if self._talkative and line.person != self.chat._node.name:
            self._talkative -= 1
            where = self._choice.choice(self.rooms)
            await self.chat.say(where, "yes", answers=f"{line.room}:{line.id}")


async def test_no_answer_is_seen_before_its_question_in_rooms_that_overlap(
    tmp_path: Path, ordercast_cluster
) -> None:
    lossy = oc.Udp(inject_loss=0.1, seed=3)
    async with ordercast_cluster(
        4, codec="json", transport=lossy, retry_ms=10, trace=tmp_path
    ) as cluster:
        people = [Person(node, ROOMS[node.name], seed) for seed, node in enumerate(cluster.nodes)]
        for person in people:
            for room in person.rooms:
                await person.chat.enter(room)
        for person in people:
            for room in person.rooms:
                await person.chat.say(room, "who knows?")
        for person in people:  # all have been as talkative as they are
            while person._talkative:
                await asyncio.sleep(0.001)
    await asyncio.gather(*(person.listening for person in people))
    assert [person.too_early for person in people] == [[], [], [], []]
    assert all(any(line.answers for line in person.lines) for person in people)
    promises = PROTOCOLS["cbcast"].declaration.promises
    judged = judge(read_events(tmp_path), only=[*promises, "wellformed", "views", "vsync"])
    assert {name: found for name, found in judged.items() if found.verdict != "ok"} == {}


async def test_rooms_that_one_is_not_in_and_rooms_entered_twice_are_refused(
    ordercast_cluster,
) -> None:
    async with ordercast_cluster(1, codec="json") as cluster:
        chat = Chat(cluster.nodes[0])
        await chat.enter("python")
        with pytest.raises(ValueError, match="in room 'python' already"):
            await chat.enter("python")
        with pytest.raises(ValueError, match="not in room 'jobs'; in python"):
            await chat.say("jobs", "hello")
        await chat.leave("python")
        with pytest.raises(ValueError, match="not in room 'python'; in none"):
            await chat.leave("python")


async def test_boards_are_the_same_and_reasons_come_first_when_a_broker_and_a_sequencer_crash(
    tmp_path: Path,
) -> None:
    lossy = oc.Udp(inject_loss=0.1, seed=3)
    async with Floor(transport=lossy, retry_ms=10, gap_ms=10, trace=tmp_path) as floor:
        ann, cleo, dora = (floor.brokers[name] for name in ("ann", "cleo", "dora"))

        async def trade() -> None:
            before = len(cleo.boards["CMC"])
            for number in range(1, 11):
                await ann.change("chips", number)
                await dora.change("CMC", number)
                await cleo.change("copper", number)
            await floor.until("CMC", before + 20)

        await trade()
        trading = asyncio.ensure_future(trade())
        await floor.until("CMC", 21)
        await floor.cluster.kill([*floor.brokers].index("eve"))
        del floor.brokers["eve"]
        await trading
        trading = asyncio.ensure_future(trade())
        await floor.until("CMC", 41)
        await floor.cluster.kill_leader()
        await trading
        for item in ("chips", "CMC", "copper"):
            await floor.until(item, 30)
            first, *others = floor.boards(item)
            assert len(others) >= 2 and all(board == first for board in others)
    assert floor.too_early == set()
    sales = [change for change in floor.seen["cleo"].values() if change.broker == "ben"]
    assert [sale.because for sale in sales] == [c.id for c in cleo.boards["chips"]]
    promises = PROTOCOLS["sequencing_hybrid"].declaration.promises
    judged = judge(read_events(tmp_path), only=[*promises, "wellformed", "views", "vsync"])
    assert {name: found for name, found in judged.items() if found.verdict != "ok"} == {}


async def test_items_that_one_does_not_watch_and_items_watched_twice_are_refused(
    ordercast_cluster,
) -> None:
    async with ordercast_cluster(1, codec="json") as cluster:
        broker = Broker(cluster.nodes[0])
        await broker.watch("chips")
        assert broker.price("chips") is None
        with pytest.raises(ValueError, match="'chips' is watched already"):
            await broker.watch("chips")
        with pytest.raises(ValueError, match="'CMC' is not watched; chips is"):
            await broker.change("CMC", 40)
        await broker.forget("chips")
        with pytest.raises(ValueError, match="'chips' is not watched; nothing is"):
            await broker.forget("chips")


async def test_of_many_that_compare_and_set_at_once_one_wins_each_round(ordercast_cluster) -> None:
    async with ordercast_cluster(3, codec="json") as cluster:
        copies = [await ReplicatedDict.join(node, "d") for node in cluster.nodes]
        for number in range(5):
            won = await asyncio.gather(
                *(copy.compare_and_set("n", number or None, number + 1) for copy in copies)
            )
            assert sorted(won) == [False, False, True]
            await asyncio.gather(*(copy.sync() for copy in copies))
        assert [copy.copy() for copy in copies] == [{"n": 5}] * 3


async def test_a_dictionary_says_what_is_wrong_with_what_it_is_given(ordercast_cluster) -> None:
    async with ordercast_cluster(1, codec="json") as cluster:
        settings = await ReplicatedDict.join(cluster.nodes[0], "d")
        with pytest.raises(TypeError, match="the key 1 is not a text"):
            await settings.set(1, "x")  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            await settings.set("x", object())
        await settings.set("x", None)
        assert await settings.delete("x") and not await settings.delete("x")
        assert settings.copy() == {} and settings.get("x", 3) == 3
    with pytest.raises(oc.OrdercastError):
        await settings.set("x", 1)


async def test_who_gives_up_waiting_for_a_lock_loses_its_place_only(ordercast_cluster) -> None:
    async with ordercast_cluster(3, codec="json") as cluster:
        one, two, three = [await Crew.join(node) for node in cluster.nodes]

        async def take(crew: Crew) -> int:
            async with crew.lock("l") as fence:
                return fence

        async with one.lock("l") as first, one.lock("another"):
            impatient = asyncio.ensure_future(take(two))
            await one.until(lambda: one.queue("l") == ["p1", "p2"])
            patient = asyncio.ensure_future(take(three))
            await one.until(lambda: one.queue("l") == ["p1", "p2", "p3"])
            impatient.cancel()
            await one.until(lambda: one.queue("l") == ["p1", "p3"])
        assert await patient > first
        await three.until(lambda: three.queue("l") == [])


async def test_a_lock_without_a_name_is_refused(ordercast_cluster) -> None:
    async with ordercast_cluster(1, codec="json") as cluster:
        crew = await Crew.join(cluster.nodes[0])
        with pytest.raises(TypeError, match="the lock 5 is not a text"):
            async with crew.lock(5):  # type: ignore[arg-type]
                pass
    with pytest.raises(oc.OrdercastError, match="closed"):
        await crew.lead()


async def test_who_comes_late_knows_the_queue_and_the_leader(ordercast_cluster) -> None:
    async with ordercast_cluster(3, codec="json") as cluster:
        one, two = [await Crew.join(node) for node in cluster.nodes[:2]]
        async with one.lock("l") as first:
            turn = two.lock("l")
            waiting = asyncio.ensure_future(turn.__aenter__())
            await one.until(lambda: len(one.queue("l")) == 2)
            late = await Crew.join(cluster.nodes[2])
            assert late.queue("l") == ["p1", "p2"]
            assert (late.leader, late.term) == ("p1", one.term)
        second = await waiting
        assert second > first
        await late.until(lambda: late.queue("l") == ["p2"])
        await cluster.kill(1)
        async with late.lock("l") as third:
            assert third > second


def cut(cluster: oc.LocalCluster, member: int) -> None:
    """All connections of a member break; it lives, and comes back."""
    site = cluster.nodes[member]._presence
    for connection in tuple(site.peers.bound.values()):
        connection.abort("the cable was cut")


async def test_a_holder_that_is_cut_off_has_lost_the_lock_and_can_have_it_again(
    ordercast_cluster,
) -> None:
    async with ordercast_cluster(3, codec="json") as cluster:
        one, two, three = [await Crew.join(node) for node in cluster.nodes]
        async with one.lock("l") as first:
            turn, late_turn = two.lock("l"), one.lock("l")
            waiting = asyncio.ensure_future(turn.__aenter__())
            await one.until(lambda: one.queue("l") == ["p1", "p2"])
            hopeless = asyncio.ensure_future(late_turn.__aenter__())
            await one.until(lambda: one.queue("l") == ["p1", "p2", "p1"])
            await three.until(lambda: three.queue("l") == ["p1", "p2", "p1"])
            cut(cluster, 0)
            second = await waiting
            assert second > first
            with pytest.raises(oc.NodeOut):
                await hopeless
            while one.leader is None:  # until it is back
                await asyncio.sleep(0.001)
            await two.until(lambda: two.queue("l") == ["p2"])
            assert one.leader == "p2" and cluster.nodes[0].incarnation == 2
            assert one.queue("l") == ["p2"]
        assert two.queue("l") == ["p2"]  # the release of a former holder takes nothing away
        await turn.__aexit__(None, None, None)
        async with one.lock("l") as third:
            assert third > second


async def test_a_dictionary_that_is_cut_off_comes_back_to_what_the_others_did(
    ordercast_cluster,
) -> None:
    async with ordercast_cluster(3, codec="json") as cluster:
        one, two, three = [await ReplicatedDict.join(node, "d") for node in cluster.nodes]
        await one.set("x", 1)
        setting = asyncio.ensure_future(one.set("y", 1))
        await asyncio.sleep(0)
        cut(cluster, 0)
        with suppress(oc.NodeOut):  # it was done or not, or it cannot know
            await setting
        await two.set("x", 2)
        while True:
            try:
                await one.set("z", 3)
                break
            except oc.NodeOut:
                await asyncio.sleep(0.001)
        await asyncio.gather(*(copy.sync() for copy in (one, two, three)))
        assert one.get("x") == 2 and one.get("z") == 3
        assert one.copy() == two.copy() == three.copy()


async def test_the_smaller_side_reads_what_it_had_and_neither_writes_nor_leads(
    ordercast_cluster,
) -> None:
    async with ordercast_cluster(3, sequencer=False, codec="json") as cluster:
        copies = [await ReplicatedDict.join(node, "d") for node in cluster.nodes]
        crews = [await Crew.join(node) for node in cluster.nodes]
        await copies[2].set("x", 1)
        await asyncio.gather(cluster.kill(0), cluster.kill(1))
        with pytest.raises(oc.NotPrimary):
            while True:  # done in the last moment, perhaps
                await copies[2].set("y", 2)
        with pytest.raises(oc.NotPrimary):
            async with crews[2].lock("l"):
                pass
        assert copies[2].get("x") == 1
        while crews[2].leader is not None:
            await asyncio.sleep(0.001)


async def test_nothing_is_acknowledged_before_another_node_holds_it(ordercast_cluster) -> None:
    async with ordercast_cluster(2, sequencer=False, codec="json") as cluster:
        one, two = [await ReplicatedDict.join(node, "d") for node in cluster.nodes]
        other = cluster.nodes[1]._presence.engine
        receive, packets = other.receive, []
        other.receive = lambda *packet: packets.append(packet)
        setting = asyncio.ensure_future(one.set("x", 1))
        while not packets:
            await asyncio.sleep(0.001)
        assert not setting.done() and one.get("x") is None
        other.receive = receive
        for packet in packets:
            receive(*packet)
        await setting
        await two.sync()
        assert two.get("x") == 1
