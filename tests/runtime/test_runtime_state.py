"""State transfer to joiners: real sockets in one process, judged by what the replicas hold."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import ordercast as oc
import replicas
from ordercast.process.commands import Broken
from ordercast.protocols.registry import PROTOCOLS
from ordercast.runtime.control import StateBegin, StateChunk, StateEnd
from ordercast.runtime.state import bring_together
from ordercast.trace.oracle import judge
from ordercast.trace.read import read_events
from ordercast.wire.control import CONTROL_CHANNEL
from replicas import LARGE, Log, Stalled

ORDERED = [name for name, p in PROTOCOLS.items() if "total" in p.declaration.orders]


@asynccontextmanager
async def members(
    cluster: oc.LocalCluster, count: int, **how: object
) -> AsyncIterator[tuple[list[Log], list[oc.Group]]]:
    """The first nodes of a cluster, in a group with state, reading."""
    logs = [Log(node).read() for node in cluster.nodes[:count]]
    groups = [await log.node.join("log", state=log.state, **how) for log in logs]  # type: ignore[arg-type]
    yield logs, groups


def check(trace: Path, protocol: str) -> None:
    events = read_events(trace)
    names = [
        *PROTOCOLS[protocol].declaration.promises,
        "wellformed",
        "views",
        "vsync",
        "membership",
    ]
    judged = judge(events, only=names)
    assert {name: found for name, found in judged.items() if found.verdict != "ok"} == {}


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_joiner_goes_on_exactly_where_its_snapshot_was_taken(
    tmp_path: Path, ordercast_cluster, protocol: str
) -> None:
    async with (
        ordercast_cluster(4, trace=tmp_path) as cluster,
        members(cluster, 2, protocol=protocol) as (logs, groups),
    ):

        async def talk(group: oc.Group, count: int) -> None:
            for number in range(count):
                await group.multicast(b"%d" % number)
                await asyncio.sleep(0)

        talking = [asyncio.ensure_future(talk(group, 24)) for group in groups]
        await logs[0].has(8)
        late = [Log(node).read() for node in cluster.nodes[2:]]
        for log in late:
            groups.append(await log.node.join("log", protocol=protocol, state=log.state))
            assert log.sets == 1
        await asyncio.gather(*talking)
        await asyncio.gather(*(talk(group, 3) for group in groups))
        await asyncio.gather(*(log.has(60) for log in (*logs, *late)))
        for log in (*logs, *late):
            assert len(log.lines) == 60 and sorted(log.lines) == sorted(logs[0].lines)
            if protocol in ORDERED:
                assert log.lines == logs[0].lines
        for log in late:
            assert isinstance(log.first, oc.View) and log.first.joined == (log.node.name,)
        assert [log.gets for log in logs] == [3, 0]
        assert [log.sets for log in logs] == [0, 1]
    check(tmp_path, protocol)


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_giver_that_dies_in_the_middle_is_replaced_by_the_next(
    tmp_path: Path, ordercast_cluster, protocol: str
) -> None:
    async with ordercast_cluster(4, trace=tmp_path, run="r", rejoin=False) as cluster:
        logs = [Log(node, bulk=LARGE).read() for node in cluster.nodes[:3]]
        groups = [await log.node.join("log", protocol=protocol, state=log.state) for log in logs]
        joiner = Log(cluster.nodes[3]).read()
        stalled = Stalled(joiner.node)
        joining = asyncio.ensure_future(
            joiner.node.join("log", protocol=protocol, state=joiner.state)
        )
        await stalled.until_full()  # the snapshot was taken, the joiner is in the view
        for number in range(10):
            await groups[1].multicast(b"%d" % number)
            await groups[2].multicast(b"%d" % number)
        await asyncio.gather(*(log.has(20) for log in logs))
        assert not joining.done() and joiner.first is None
        await cluster.kill(0)
        stalled.go_on()
        groups.append(await joining)
        taken = len(joiner.lines)
        assert taken == 20  # of a later place than its view: it holds what came since
        for group in groups[1:]:
            await group.multicast(b"after")
        await asyncio.gather(*(log.has(23) for log in (*logs[1:], joiner)))
        for log in (logs[2], joiner):
            assert sorted(log.lines) == sorted(logs[1].lines)
            if protocol in ORDERED:
                assert log.lines == logs[1].lines
        assert joiner.sets == 1 and logs[1].gets == 1 and logs[2].gets == 0
        assert isinstance(joiner.first, oc.View) and joiner.first.joined == ("p4",)
        assert joiner.views[0].number >= joiner.views[-1].number - 1
    check(tmp_path, protocol)


class Withheld:
    """Packets of groups from one node to another are kept back."""

    def __init__(self, src: oc.Node, dst: oc.Node) -> None:
        self._presence = dst._presence
        self._src = src._presence.me.pid
        self._take = self._presence.on_packets
        self._kept: list[tuple] = []
        self._presence.on_packets = self.on_packets  # type: ignore[method-assign]

    def on_packets(self, pid: int, frames: list, conn: object) -> None:
        kept = [frame for frame in frames if frame[0] != CONTROL_CHANNEL and pid == self._src]
        self._kept += [(pid, kept, conn)] if kept else []
        self._take(pid, [frame for frame in frames if frame not in kept], conn)  # type: ignore[arg-type]

    def let_go(self) -> None:
        self._presence.on_packets = self._take  # type: ignore[method-assign]
        for packets in self._kept:
            self._take(*packets)


@asynccontextmanager
async def second_choice(
    cluster: oc.LocalCluster,
) -> AsyncIterator[tuple[list[Log], list[oc.Group], Log, asyncio.Future[oc.Group]]]:
    """The last node joins; the first member will fail to give its state when it reads on."""
    *logs, joiner = (Log(node).read() for node in cluster.nodes)
    groups = [await log.node.join("log", protocol="fifo", state=log.state) for log in logs]
    first = logs[0]
    assert first.reading is not None
    first.reading.cancel()
    first.breaks = True
    joining = asyncio.ensure_future(joiner.node.join("log", protocol="fifo", state=joiner.state))
    await until(lambda: all(joiner.node.name in group.members for group in groups))
    yield logs, groups, joiner, joining


def has_come(joiner: Log) -> bool:
    """Is all of a state here, set or not?"""
    request = joiner.node._presence.states._seeking["log"]._request
    return request is not None and request.is_complete


async def test_a_state_is_not_set_before_all_that_it_holds_has_come(
    tmp_path: Path, ordercast_cluster
) -> None:
    async with (
        ordercast_cluster(4, trace=tmp_path) as cluster,
        second_choice(cluster) as (logs, groups, joiner, joining),
    ):
        withheld = Withheld(cluster.nodes[2], cluster.nodes[3])
        await groups[2].multicast(b"on its way")
        await logs[1].has(1)
        logs[0].read()
        await until(lambda: has_come(joiner))
        await asyncio.sleep(0.02)
        assert not joining.done() and joiner.sets == 0
        withheld.let_go()
        await joining
        assert joiner.lines == ["p3 on its way"]
        await (await groups[2].multicast(b"next")).stable()
        assert joiner.lines == ["p3 on its way", "p3 next"]
    check(tmp_path, "fifo")


async def test_a_state_that_holds_a_message_nobody_else_has_is_not_taken(
    tmp_path: Path, ordercast_cluster
) -> None:
    async with (
        ordercast_cluster(5, trace=tmp_path, run="r", rejoin=False) as cluster,
        second_choice(cluster) as (logs, groups, joiner, joining),
    ):
        for place in (0, 3, 4):
            Withheld(cluster.nodes[2], cluster.nodes[place])
        await groups[2].multicast(b"lost with its sender")
        await logs[1].has(1)
        logs[0].read()
        await until(lambda: has_come(joiner))
        await asyncio.gather(cluster.kill(2), cluster.kill(1))
        group = await joining
        assert joiner.sets == 1 and joiner.lines == logs[3].lines == []
        assert group.members == ("p1", "p4", "p5")
    check(tmp_path, "fifo")


async def test_views_that_a_state_holds_are_passed_by(tmp_path: Path, ordercast_cluster) -> None:
    async with (
        ordercast_cluster(4, trace=tmp_path) as cluster,
        second_choice(cluster) as (logs, groups, joiner, joining),
    ):
        await groups[2].leave()
        await logs[1].until(lambda: logs[1].views[-1].left == ("p3",))
        logs[0].read()
        await joining
        await joiner.until(lambda: bool(joiner.views))
        [view] = joiner.views
        assert view.number == logs[1].views[-1].number
        assert (view.members, view.joined, view.left) == (("p1", "p2", "p4"), ("p4",), ())
        await (await groups[1].multicast(b"next")).stable()
        assert joiner.lines == ["p2 next"]
    check(tmp_path, "fifo")


async def test_a_snapshot_is_taken_when_all_before_the_view_was_handled(ordercast_cluster) -> None:
    async with ordercast_cluster(2) as cluster:
        one, other = map(Log, cluster.nodes)
        group = await one.node.join("log", order="total", state=one.state)
        await (await group.multicast_many([b"%d" % number for number in range(50)])).ordered()
        joining = asyncio.ensure_future(other.node.join("log", order="total", state=other.state))
        await until(lambda: "p2" in group.members)
        await (await group.multicast(b"after")).ordered()
        stream = aiter(one.node.batches())
        batch = await anext(stream)
        await asyncio.sleep(0.05)
        assert not joining.done() and one.gets == 0  # it has the batch in hand
        for event in batch:
            one.take(event)
        assert len(one.lines) == 50
        view, *rest = await anext(stream)
        assert view.joined == ("p2",) and one.gets == 1
        await joining
        assert other.lines == one.lines
        other.read()
        await other.has(51)
        for event in rest:
            one.take(event)
        assert other.lines == one.lines and other.lines[-1] == "p1 after"


async def until(is_so: Callable[[], bool]) -> None:
    while not is_so():
        await asyncio.sleep(0.001)


async def test_a_later_state_is_taken_when_the_program_comes_again(ordercast_cluster) -> None:
    async with ordercast_cluster(3) as cluster:
        first, second, joiner = map(Log, cluster.nodes)
        first.read()
        for log in (first, second):
            group = await log.node.join("log", order="total", state=log.state)
        first.reading.cancel()
        first.breaks = True
        joining = asyncio.ensure_future(joiner.node.join("log", order="total", state=joiner.state))
        await until(lambda: "p3" in group.members)
        await group.multicast(b"in hand")
        stream = aiter(second.node)
        while isinstance(event := await anext(stream), oc.View):
            pass
        first.read()
        giver = second.node._presence.groups.memberships[1].giver
        await until(lambda: bool(giver._asked))
        assert second.gets == 0
        second.take(event)
        coming = asyncio.ensure_future(anext(stream))
        await joining
        assert second.gets == 1 and joiner.lines == ["p2 in hand"]
        coming.cancel()


async def test_a_program_that_does_not_read_is_passed_over(ordercast_cluster) -> None:
    async with ordercast_cluster(3, state_timeout=0.2) as cluster:
        stuck, reader, joiner = map(Log, cluster.nodes)
        reader.read()
        stuck.read()
        for log in (stuck, reader):
            group = await log.node.join("log", order="total", state=log.state)
        stuck.reading.cancel()

        async def talk() -> None:
            while not joiner.sets:  # what comes meanwhile does not prolong the wait
                await group.multicast(b"x")
                await asyncio.sleep(0.01)

        talking = asyncio.ensure_future(talk())
        await joiner.node.join("log", order="total", state=joiner.state)
        assert (stuck.gets, reader.gets, joiner.sets) == (1, 1, 1)  # the first gave to the second
        await talking


async def test_a_get_that_fails_is_logged_and_the_next_is_asked(
    ordercast_cluster, caplog: pytest.LogCaptureFixture
) -> None:
    async with ordercast_cluster(3) as cluster:
        broken, well, joiner = (Log(node).read() for node in cluster.nodes)
        for log in (broken, well):
            await log.node.join("log", order="total", state=log.state)
        broken.breaks = True
        await joiner.node.join("log", order="total", state=joiner.state)
        assert joiner.sets == 1 and well.gets == 1
        assert "the state of group 'log' could not be taken" in caplog.text


async def test_a_state_over_the_limit_is_refused_on_either_side(ordercast_cluster) -> None:
    async with ordercast_cluster(1, max_state=1000) as cluster:
        big = Log(cluster.nodes[0], bulk=5000).read()
        await big.node.join("log", order="total", state=big.state)
        async with oc.Node("roomy", seeds=[cluster.leader.address]) as node:
            with pytest.raises(oc.StateUnavailable, match=r"has 5002 bytes, the limit is 1000"):
                await node.join("log", order="total", state=Log(node).state)
    async with ordercast_cluster(1) as cluster:
        big = Log(cluster.nodes[0], bulk=5000).read()
        await big.node.join("log", order="total", state=big.state)
        async with oc.Node("small", seeds=[cluster.leader.address], max_state=1000) as node:
            with pytest.raises(oc.StateUnavailable, match=r"5002 bytes, the limit here is 1000"):
                await node.join("log", order="total", state=Log(node).state)
            await until(lambda: not cluster.nodes[0].stats()["state"]["giving"])


async def test_a_set_that_fails_undoes_the_join(tmp_path: Path, ordercast_cluster) -> None:
    async with ordercast_cluster(2, trace=tmp_path) as cluster:
        member, joiner = (Log(node).read() for node in cluster.nodes)
        group = await member.node.join("log", order="total", state=member.state)
        await group.multicast(b"1")
        await member.has(1)

        def refuse(raw: bytes) -> None:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await joiner.node.join("log", order="total", state=oc.State(get=bytes, set=refuse))
        await until(lambda: group.members == ("p1",))
        await (await group.multicast(b"2")).stable()
        assert joiner.first is None
        await joiner.node.join("log", order="total", state=joiner.state)
        assert joiner.lines == ["p1 1", "p1 2"]
    check(tmp_path, "sequencer_pb")


async def test_where_nobody_has_a_state_a_joiner_that_wants_one_is_told(ordercast_cluster) -> None:
    async with ordercast_cluster(2) as cluster:
        plain, joiner = (Log(node).read() for node in cluster.nodes)
        group = await plain.node.join("log", order="total")
        with pytest.raises(oc.StateUnavailable) as told:
            await joiner.node.join("log", order="total", state=joiner.state)
        assert told.value.group == "log"
        assert told.value.reasons == {"p1#1": "it joined without state="}
        await until(lambda: group.members == ("p1",))
        await joiner.node.join("log", order="total")
        assert joiner.sets == 0


async def test_a_joiner_without_state_just_joins(ordercast_cluster) -> None:
    async with ordercast_cluster(2) as cluster:
        member, plain = (Log(node).read() for node in cluster.nodes)
        await member.node.join("log", order="total", state=member.state)
        await plain.node.join("log", order="total")
        assert (member.gets, member.sets) == (0, 0)


async def test_all_who_found_a_group_at_once_have_one_state(ordercast_cluster) -> None:
    async with ordercast_cluster(5) as cluster:
        logs = [Log(node).read() for node in cluster.nodes]
        for log in logs:
            log.lines = [f"begun by {log.node.name}"]
        await asyncio.gather(
            *(log.node.join("log", order="causal", state=log.state) for log in logs)
        )
        assert [log.sets for log in logs].count(0) == 1
        assert len({tuple(log.lines) for log in logs}) == 1


@pytest.mark.parametrize("protocol", ["sequencer_pb", "cbcast"])
async def test_senders_are_slowed_down_by_a_joiner_that_waits_and_go_on_after(
    ordercast_cluster, protocol: str
) -> None:
    limits = {"max_message": 1000, "window_bytes": 5000}
    async with ordercast_cluster(2, **limits) as cluster:
        member = Log(cluster.nodes[0], bulk=LARGE).read()
        joiner = Log(cluster.nodes[1]).read()
        group = await member.node.join("log", protocol=protocol, state=member.state)
        stalled = Stalled(joiner.node)
        joining = asyncio.ensure_future(
            joiner.node.join("log", protocol=protocol, state=joiner.state)
        )
        await stalled.until_full()

        async def send() -> None:
            for number in range(30):
                await group.multicast(b"%900d" % number)

        sending = asyncio.ensure_future(send())
        await until(lambda: member.node.stats()["groups"]["log"]["multicasts_waiting"] > 0)
        assert not sending.done() and joiner.first is None
        stalled.go_on()
        await joining
        await sending
        await joiner.has(30)
        assert joiner.lines == member.lines


async def test_a_joiner_that_dies_is_forgotten(ordercast_cluster) -> None:
    async with ordercast_cluster(2, rejoin=False) as cluster:
        member = Log(cluster.nodes[0], bulk=LARGE).read()
        joiner = Log(cluster.nodes[1])
        group = await member.node.join("log", order="total", state=member.state)
        stalled = Stalled(joiner.node)
        joining = asyncio.ensure_future(joiner.node.join("log", order="total", state=joiner.state))
        await stalled.until_full()
        giver = member.node._presence.groups.memberships[1].giver
        assert giver is not None and giver.notes
        assert member.node.stats()["state"]["giving_bytes"] == LARGE + 2
        await cluster.kill(1)
        with pytest.raises(oc.GroupClosed):
            await joining
        await until(lambda: group.members == ("p1",))
        assert not giver.notes and member.node.stats()["state"]["giving"] == 0


async def test_what_depends_on_a_message_that_waits_for_a_state_waits_too(
    tmp_path: Path, ordercast_cluster
) -> None:
    async with ordercast_cluster(3, trace=tmp_path) as cluster:
        a, b, joiner = cluster.nodes
        log = Log(a, bulk=LARGE).read()
        g = [await a.join("g", order="causal", state=log.state), await b.join("g", order="causal")]
        h = [await node.join("h", order="causal") for node in (b, joiner)]
        seen: list[bytes] = []

        async def answer() -> None:
            async for event in b:
                if isinstance(event, oc.Message) and event.group == "g":
                    await h[0].multicast(b"effect")

        async def read() -> None:
            async for event in joiner:
                if isinstance(event, oc.Message):
                    seen.append(event.body)

        tasks = [asyncio.ensure_future(answer()), asyncio.ensure_future(read())]
        stalled = Stalled(joiner)
        joining = asyncio.ensure_future(joiner.join("g", order="causal", state=Log(joiner).state))
        await stalled.until_full()
        await g[0].multicast(b"cause")
        await until(lambda: joiner.stats()["groups"]["h"]["inbox_frames"] > 0)
        assert seen == []
        stalled.go_on()
        await joining
        await until(lambda: len(seen) == 2)
        assert seen == [b"cause", b"effect"]
    await asyncio.gather(*tasks)
    check(tmp_path, "cbcast")


async def test_what_waits_behind_a_state_is_not_lost_when_the_node_ends(ordercast_cluster) -> None:
    async with ordercast_cluster(2, rejoin=False) as cluster:
        member, joiner = Log(cluster.nodes[0], bulk=LARGE).read(), Log(cluster.nodes[1]).read()
        other = [await node.join("other", order="causal") for node in cluster.nodes]
        await member.node.join("log", order="causal", state=member.state)
        stalled = Stalled(joiner.node)
        joining = asyncio.ensure_future(joiner.node.join("log", order="causal", state=joiner.state))
        await stalled.until_full()
        await (await other[0].multicast(b"behind it")).ordered()
        await until(lambda: joiner.node.stats()["groups"]["other"]["inbox_frames"] > 0)
        assert joiner.lines == []
        await cluster.kill(1)
        await joiner.has(1)
        with pytest.raises(oc.GroupClosed):
            await joining
        assert joiner.lines == ["p1 behind it"]
        assert {view.group for view in joiner.views} == {"other"}


async def test_who_comes_again_gets_its_state_after_what_it_had_not_read(ordercast_cluster) -> None:
    async with ordercast_cluster(2) as cluster:
        member, again = Log(cluster.nodes[0]).read(), Log(cluster.nodes[1])
        group = await member.node.join("log", order="total", state=member.state)
        stay = await again.node.join("log", order="total", state=again.state)
        await (await group.multicast(b"1")).ordered()
        await until(lambda: again.node.stats()["groups"]["log"]["inbox_frames"] > 0)
        await stay.leave()
        await (await group.multicast(b"2")).ordered()
        await again.node.join("log", order="total", state=again.state)
        assert again.sets == 1  # the first time
        again.read()
        await again.has(2)
        assert again.sets == 2 and again.lines == ["p1 1", "p1 2"]


async def test_a_node_that_was_excluded_comes_back_to_the_state(ordercast_cluster) -> None:
    async with ordercast_cluster(2) as cluster:
        member, out = (Log(node).read() for node in cluster.nodes)
        group = await member.node.join("log", order="total", state=member.state)
        await out.node.join("log", order="total", state=out.state)
        await group.multicast(b"1")
        await asyncio.gather(member.has(1), out.has(1))
        cluster.leader._presence.engine.step([Broken(out.node._presence.me.pid)])
        await until(lambda: group.members == ("p1",))
        await group.multicast(b"2")
        await out.has(2)
        assert out.sets == 2 and out.lines == ["p1 1", "p1 2"]


async def test_a_node_that_comes_back_asks_until_it_gets_the_state(ordercast_cluster) -> None:
    async with ordercast_cluster(2) as cluster:
        member, out = Log(cluster.nodes[0]).read(), Log(cluster.nodes[1])
        group = await member.node.join("log", order="total", state=member.state)
        again = await out.node.join("log", order="total", state=out.state)
        out.read(again)  # a stream of its own, which goes on too
        await out.until(lambda: bool(out.views))
        member.breaks = True
        cluster.leader._presence.engine.step([Broken(out.node._presence.me.pid)])
        await until(lambda: member.failures > 1)
        with pytest.raises(oc.Excluded):  # it is in the view, and without the state
            await again.multicast(b"too early")
        await group.multicast(b"1")
        member.breaks = False
        await out.has(1)
        assert out.sets == 2 and out.lines == member.lines
        await again.multicast(b"2")
        await asyncio.gather(member.has(2), out.has(2))
        assert out.lines == member.lines == ["p1 1", "p2 2"]


async def test_a_join_that_only_asks_around_ends_with_its_node(ordercast_cluster) -> None:
    async with ordercast_cluster(2, rejoin=False) as cluster:
        joiner = Log(cluster.nodes[1])
        cluster.nodes[0]._presence.states.handle = lambda *_: None  # type: ignore[method-assign]
        joining = asyncio.ensure_future(joiner.node.join("log", order="total", state=joiner.state))
        await until(lambda: bool(joiner.node._presence.states._seeking))
        await cluster.kill(1)
        with pytest.raises(oc.GroupClosed, match="killed"):
            await joining


@pytest.mark.parametrize(
    ("messages", "fault"),
    [
        ([(StateBegin(1, 2, 10, ()), b""), (StateChunk(1, 5), b"x")], "1 bytes at 5 of a state"),
        ([(StateBegin(1, 2, 3, ()), b""), (StateChunk(1, 0), b"long")], "4 bytes at 0 of a state"),
        ([(StateBegin(1, 2, 3, ()), b""), (StateEnd(1, b""), b"")], "after 0 of 3 bytes"),
        ([(StateBegin(1, 2, 1, ()), b""), (StateChunk(1, 0), b"x"), (StateEnd(1, b"no"), b"")],
         "the checksum of a state of 1 bytes is wrong"),
        ([(StateChunk(1, 0), b"x")], "StateChunk before the beginning of a state"),
        ([(StateBegin(1, 2, -1, ()), b"")], "a state of -1 bytes begins out of turn"),
    ],
)  # fmt: skip
async def test_a_state_that_is_not_what_was_said_is_a_fault_of_its_giver(
    ordercast_cluster, messages: list, fault: str
) -> None:
    async with ordercast_cluster(2) as cluster:
        member, joiner = (Log(node) for node in cluster.nodes)
        await member.node.join("log", order="total", state=member.state)  # and never reads
        joining = asyncio.ensure_future(joiner.node.join("log", order="total", state=joiner.state))
        await until(lambda: "p1" in joiner.node.stats()["groups"].get("log", {}).get("members", ()))
        states, giver = joiner.node._presence.states, member.node._presence.me.pid
        with pytest.raises(oc.PeerError, match=fault):
            for message, payload in messages:
                states.handle(giver, message, payload)
        joining.cancel()
        await asyncio.gather(joining, return_exceptions=True)
        assert joiner.sets == 0


async def test_a_giver_killed_in_the_middle_of_a_large_state_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(replicas.__file__).parent))
    async with oc.LocalCluster(4, consume=False, trace=tmp_path, run="r") as cluster:
        giver, *others, joiner = cluster.workers
        for worker in (giver, *others):
            await worker.run("replicas:join", order="total")
        await asyncio.gather(*(w.run("replicas:send", count=20) for w in (giver, *others)))
        await giver.run("replicas:replica", count=60)
        await joiner.run("replicas:join_and_stall", order="total")
        sending = [asyncio.ensure_future(w.run("replicas:send", count=20)) for w in others]
        await cluster.kill(0)
        await joiner.run("replicas:go_on")
        await joiner.run("replicas:send", count=10)
        await asyncio.gather(*sending)
        found = [await w.run("replicas:replica", count=110) for w in (*others, joiner)]
        assert found[0]["lines"] == 110
        assert {replica["digest"] for replica in found} == {found[0]["digest"]}
        assert found[-1]["sets"] == 1
    check(tmp_path, "sequencer_pb")


def test_two_sides_are_brought_together_by_the_application() -> None:
    had: list[bytes] = []
    sides = (("a", "b"), ("c",))

    def union(given: object, mine: bytes, chosen: bytes) -> bytes:
        assert given == sides
        return chosen + mine

    bring_together(oc.State(get=lambda: b"mine", set=had.append, merge=union), sides, b"chosen ")
    bring_together(oc.State(get=bytes, set=had.append, merge=lambda *_: None), sides, b"chosen")
    bring_together(oc.State(get=bytes, set=had.append), sides, b"chosen")
    assert had == [b"chosen mine", b"chosen", b"chosen"]
    with pytest.raises(TypeError, match=r"State\.merge returned str; a state is bytes"):
        bring_together(oc.State(get=bytes, set=had.append, merge=lambda *_: "x"), sides, b"")  # type: ignore[arg-type,return-value]


async def test_something_else_than_a_state_is_refused(ordercast_cluster) -> None:
    async with ordercast_cluster(1) as cluster:
        with pytest.raises(TypeError, match="state= is a State"):
            await cluster.nodes[0].join("log", order="total", state=b"")
    with pytest.raises(TypeError, match=r"State\(get=...\) is a function"):
        oc.State(get=b"", set=print)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"State\(merge=...\) is a function or None"):
        oc.State(get=bytes, set=print, merge=b"")  # type: ignore[arg-type]
