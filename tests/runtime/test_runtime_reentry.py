"""A node that is out raises why, once, and comes back by itself as its next incarnation."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ordercast as oc
from ordercast.errors import Dissolved
from ordercast.process.commands import Join
from ordercast.protocols.registry import PROTOCOLS
from ordercast.runtime import reentry
from ordercast.runtime.control import Refused
from ordercast.runtime.inbox import Inbox
from ordercast.runtime.joining import Joining
from ordercast.runtime.presence import Presence
from ordercast.runtime.reentry import Reentry, why_no_seed
from ordercast.runtime.status import query_status
from ordercast.trace.oracle import judge
from ordercast.trace.read import read_events

Stream = oc.Node | oc.Group


def cut(cluster: oc.LocalCluster, place: int) -> None:
    """Break the connection of a member to the leader: the member is excluded, and alive."""
    pid = cluster.nodes[place]._presence.me.pid
    cluster.leader._presence.peers.bound[pid].abort("the cable was cut")


async def until(true: Callable[[], Any]) -> None:
    while not true():
        await asyncio.sleep(0.001)


def main(node: oc.Node) -> dict[str, Any]:
    return node.stats()["groups"]["main"]


async def back(node: oc.Node, incarnation: int = 2) -> None:
    """The node is in all its groups again."""
    await until(lambda: node.incarnation == incarnation and not node.stats()["out_reason"])


async def read_until_out(stream: Stream) -> list[oc.Message]:
    """The messages up to the error, which must come."""
    seen = []
    with pytest.raises(oc.Excluded):
        async for event in stream:
            if isinstance(event, oc.Message):
                seen.append(event)
    return seen


async def view_with(stream: Stream, members: tuple[str, ...]) -> oc.View:
    async for event in stream:
        if isinstance(event, oc.View) and event.members == members:
            return event
    raise AssertionError("the stream ended")


async def message(stream: Stream, body: bytes) -> oc.Message:
    async for event in stream:
        if isinstance(event, oc.Message):
            assert event.body == body
            return event
    raise AssertionError("the stream ended")


class Doorkeeper:
    """Says at the leader that every name is taken, until it is told to stop."""

    def __init__(self, cluster: oc.LocalCluster) -> None:
        self.refused = 0
        self._role = cluster.leader._presence.coordination
        self._role._objection = self._refuse

    def _refuse(self, *_: object) -> Refused:
        self.refused += 1
        return Refused("name", "a node of that name is in the cluster")

    def stop(self) -> None:
        del self._role._objection


@pytest.mark.parametrize("transport", ["tcp", "udp"])
@pytest.mark.parametrize("protocol", ["sequencer_pb", "vector", "fast_p"])
async def test_an_excluded_node_comes_back_and_its_group_works_again(
    tmp_path: Path, ordercast_cluster, protocol: str, transport: str
) -> None:
    options = {"protocol": protocol, "trace": tmp_path, "transport": transport}
    async with ordercast_cluster(3, **options) as cluster:
        (one, two, three), group = cluster.nodes, cluster.groups[1]
        for node in cluster.nodes:
            await view_with(node, ("p1", "p2", "p3"))
        await group.multicast(b"before")
        await until(lambda: all(main(node)["inbox_frames"] for node in cluster.nodes))
        cut(cluster, 1)
        await back(two)
        assert [m.body for m in await read_until_out(two)] == [b"before"]
        view = await view_with(two, ("p1", "p3", "p2"))
        assert view.joined == ("p2",)
        assert two.incarnation == 2 and group.members == ("p1", "p3", "p2")
        await group.multicast(b"again")
        for node in (one, three):
            await message(node, b"before")
            await view_with(node, ("p1", "p3", "p2"))
            assert (await message(node, b"again")).sender == "p2"
        await message(two, b"again")
        await cluster.groups[0].multicast(b"welcome")
        for node in cluster.nodes:
            await message(node, b"welcome")
    found = {name: verdict.verdict for name, verdict in judge(read_events(tmp_path)).items()}
    kept = (*PROTOCOLS[protocol].declaration.promises, "wellformed", "views", "vsync")
    assert {name: found[name] for name in kept} == dict.fromkeys(kept, "ok")
    events = read_events(tmp_path)
    ended = {event.process for event in events if event.kind == "end"}
    assert ended == {"p1#1", "p2#2", "p3#1", "sequencer#1"}
    taken = [
        event.message for event in events if (event.process, event.kind) == ("p2#1", "deliver")
    ]
    assert taken == ["p2#1/main/1"]  # although it was out by then


async def test_whoever_waits_in_the_old_incarnation_is_told(ordercast_cluster) -> None:
    limits = {"order": "total", "max_message": 1000, "window_bytes": 3000}
    async with ordercast_cluster(2, **limits) as cluster:
        group = cluster.groups[1]
        receipt = await group.multicast(bytes(1000))
        await until(lambda: main(cluster.nodes[1])["inbox_frames"])

        async def send() -> None:
            while True:
                await group.multicast(bytes(1000))

        waiting = [
            asyncio.ensure_future(send()),
            asyncio.ensure_future(receipt.stable()),
            asyncio.ensure_future(send()),
        ]
        await until(lambda: main(cluster.nodes[1])["multicasts_waiting"] == 2)
        guard = Doorkeeper(cluster)
        cut(cluster, 1)
        for error in await asyncio.gather(*waiting, return_exceptions=True):
            assert isinstance(error, oc.Excluded)
        for call in (
            group.multicast(b"x"),
            group.multicast_many([b"x"]),
            cluster.nodes[1].send_to("main", b"x"),
            cluster.nodes[1].join("other", order="fifo"),
        ):
            with pytest.raises(oc.Excluded, match="comes back by itself"):
                await call
        guard.stop()
        await back(cluster.nodes[1])
        await (await group.multicast(b"x")).ordered()
        with pytest.raises(oc.Excluded):
            await receipt.stable()


async def test_with_rejoin_off_a_node_that_is_excluded_has_ended(ordercast_cluster) -> None:
    async with ordercast_cluster(2, order="total", rejoin=False) as cluster:
        node = cluster.nodes[1]
        cut(cluster, 1)
        for _ in range(2):  # every time
            with pytest.raises(oc.Excluded, match="Start a new Node"):
                async for _ in node:
                    pass
        async with oc.Node("p2", seeds=[cluster.leader.address]) as again:
            assert again.incarnation == 2
        assert node.incarnation == 1 and node.stats()["re_entries"] == 0


async def test_a_name_that_is_still_taken_is_asked_for_again(ordercast_cluster) -> None:
    async with ordercast_cluster(2, order="total") as cluster:
        node = cluster.nodes[1]
        guard = Doorkeeper(cluster)
        cut(cluster, 1)
        await until(lambda: guard.refused == 3)
        stats = node.stats()
        assert stats["incarnation"] == 1 and stats["out_since"] and stats["re_entries"] == 0
        assert "a node of that name" in stats["out_reason"]
        guard.stop()
        await back(node)
        stats = node.stats()
        assert stats["incarnation"] == 2 and stats["out_since"] is None
        assert stats["re_entries"] == 1


async def test_a_node_on_its_way_back_is_at_its_address_and_tells_of_the_outage(
    ordercast_cluster,
) -> None:
    async with ordercast_cluster(1, order="total") as cluster:
        (node,) = cluster.nodes
        address, role = node.address, cluster.leader._presence.coordination
        asked: list[tuple[Any, ...]] = []
        role.consider = lambda *question: asked.append(question)
        cut(cluster, 0)
        await until(lambda: asked)
        status = await query_status(address)
        assert status["state"] == "out" and "was excluded" in status["out_reason"]
        del role.consider
        role.consider(*asked[0])
        await back(node)
        status = await query_status(address)
        assert status["state"] == "running" and status["incarnation"] == 2
        assert status["stats"]["re_entries"] == 1


async def test_a_seed_that_is_out_itself_sends_a_newcomer_to_the_next_one(
    ordercast_cluster,
) -> None:
    async with ordercast_cluster(1, order="total") as cluster:
        (node,) = cluster.nodes
        seeds, role = [node.address, cluster.leader.address], cluster.leader._presence.coordination
        asked: list[tuple[Any, ...]] = []
        role.consider = lambda *question: asked.append(question)
        cut(cluster, 0)
        await until(lambda: asked)
        del role.consider
        assert "not in the cluster" in await why_no_seed(cluster.leader._presence, node.address)
        async with oc.Node("newcomer", seeds=seeds) as newcomer:
            assert newcomer.stats()["nodes"] == 2
            role.consider(*asked[0])
            await back(node)
            assert node.stats()["peer_faults"] == 0


async def test_nodes_that_are_out_together_come_back_together(ordercast_cluster) -> None:
    async with ordercast_cluster(5, order="causal") as cluster:
        out = cluster.nodes[3:]  # the others are a majority
        for node in out:
            node._presence.fail(oc.Excluded("main", 6, "for a test"))
        for node in out:
            await back(node)
        await (await cluster.groups[4].multicast(b"all here")).ordered()
        for node in cluster.nodes:
            while not isinstance(event := await next_event(node), oc.Message):
                pass
            assert event.body == b"all here"
            assert node.stats()["peer_faults"] == 0
        assert set(cluster.groups[0].members) == set(cluster.names)


async def next_event(node: oc.Node) -> oc.Message | oc.View:
    """The next one, beyond an outage."""
    try:
        return await anext(aiter(node))
    except oc.Excluded:
        return await anext(aiter(node))


@pytest.mark.parametrize("on_the_way", ["refused", "alone"])
async def test_closing_a_node_that_is_out_leaves_nothing_behind(
    tmp_path: Path, ordercast_cluster, on_the_way: str
) -> None:
    async with ordercast_cluster(2, order="total", trace=tmp_path) as cluster:
        node = cluster.nodes[1]
        tasks = asyncio.all_tasks()
        guard = Doorkeeper(cluster)
        cut(cluster, 1)
        await until(lambda: guard.refused)
        if on_the_way == "alone":
            await cluster.leader.aclose()
        await node.aclose()
        await node.aclose()
        assert asyncio.all_tasks() <= tasks
        await read_until_out(node)
        assert [event async for event in node] == []
        with pytest.raises(oc.OrdercastError):
            await cluster.groups[1].multicast(b"x")
    assert not [e for e in read_events(tmp_path) if e.process == "p2#1" and e.kind == "end"]


async def test_a_node_that_is_back_and_not_yet_in_its_group_can_be_closed(
    ordercast_cluster,
) -> None:
    async with ordercast_cluster(2, order="total", close_timeout=0.5) as cluster:
        node = cluster.nodes[1]
        tasks = asyncio.all_tasks()
        role = cluster.leader._presence.cluster_membership.requests
        role.handle = lambda pid, question: None
        cut(cluster, 1)
        await until(lambda: node.incarnation == 2)
        await node.aclose()
        assert asyncio.all_tasks() <= tasks
        del role.handle
        await until(lambda: cluster.leader.stats()["nodes"] == 2)


async def test_a_join_that_the_outage_ended_is_not_gone_on_with(ordercast_cluster) -> None:
    async with ordercast_cluster(2, order="total") as cluster:
        two = cluster.nodes[1]
        site = two._presence
        install = site.install

        def install_and_fail(view: Any) -> None:
            install(view)
            site.fail(oc.Excluded("main", 3, "for a test"))

        site.install = install_and_fail
        joining = asyncio.ensure_future(two.join("other", order="fifo"))
        with pytest.raises(oc.Excluded):
            await joining
        await back(two)
        assert list(two.stats()["groups"]) == ["main"]
        await two.join("other", order="fifo")


async def test_what_waits_for_the_state_of_another_group_comes_before_the_error(
    ordercast_cluster,
) -> None:
    async with ordercast_cluster(2, protocol="fast_p") as cluster:
        one, two = cluster.nodes
        await view_with(two, ("p1", "p2"))
        state = oc.State(get=lambda: b"", set=lambda state: None)
        await one.join("other", protocol="fast_p", state=state)  # and never comes to give it
        joining = asyncio.ensure_future(two.join("other", protocol="fast_p", state=state))
        await until(lambda: cluster.groups[1]._member.barrier.parcels)
        await cluster.groups[0].multicast(b"behind the barrier")
        await until(lambda: main(two)["inbox_frames"])
        two._presence.fail(oc.Excluded("main", 3, "for a test"))
        with pytest.raises(oc.Excluded):
            await joining
        assert [m.body for m in await read_until_out(two)] == [b"behind the barrier"]
        await back(two)
        assert list(two.stats()["groups"]) == ["main"]


async def test_a_node_may_be_out_more_than_once(ordercast_cluster) -> None:
    async with ordercast_cluster(2, order="total") as cluster:
        one, two = cluster.nodes
        for incarnation in (2, 3):
            cut(cluster, 1)
            await read_until_out(two)
            await view_with(two, ("p1", "p2"))
            assert two.incarnation == incarnation
            await cluster.groups[1].multicast(b"%d" % incarnation)
            await message(one, b"%d" % incarnation)
        assert two.stats()["re_entries"] == 2


async def test_out_again_before_all_groups_are_joined_it_joins_all_of_them_in_the_end(
    ordercast_cluster,
) -> None:
    async with ordercast_cluster(2, order="total") as cluster:
        two = cluster.nodes[1]
        others = await cluster.join("other", order="fifo")
        role = cluster.leader._presence.cluster_membership.requests
        enter, role.handle = (
            role.handle,
            lambda pid, asked: enter(pid, asked) if asked.group == "main" else cut(cluster, 1),
        )
        cut(cluster, 1)
        await until(lambda: two.incarnation == 2)
        await until(lambda: two._presence.error is not None or two.incarnation == 3)
        role.handle = enter
        await until(lambda: not two.stats()["out_reason"])
        assert two.incarnation >= 3
        assert set(two.stats()["groups"]) == {"main", "other"}
        for group in (cluster.groups[1], others[1]):
            await (await group.multicast(b"works")).ordered()


async def test_a_groups_own_stream_goes_on_too(ordercast_cluster) -> None:
    async with ordercast_cluster(2, order="total") as cluster:
        group, two = cluster.groups[1], cluster.nodes[1]
        await view_with(group, ("p1", "p2"))
        await cluster.groups[0].multicast(b"before")
        await until(lambda: main(two)["inbox_frames"])
        cut(cluster, 1)
        assert [m.body for m in await read_until_out(group)] == [b"before"]
        await view_with(group, ("p1", "p2"))
        await cluster.groups[0].multicast(b"after")
        await message(group, b"after")
        await read_until_out(two)  # nothing of the group, but the node was out
        await back(two)
        assert not list(two._lifetime.inbox.parcels)


async def test_a_stream_taken_while_the_node_is_out_is_that_of_the_next_incarnation(
    ordercast_cluster,
) -> None:
    async with ordercast_cluster(2, order="total") as cluster:
        group = cluster.groups[1]
        guard = Doorkeeper(cluster)
        cut(cluster, 1)
        await until(lambda: guard.refused)
        await read_until_out(group)
        guard.stop()
        await view_with(group, ("p1", "p2"))
        await cluster.groups[0].multicast(b"after")
        await message(group, b"after")


async def test_a_read_that_is_cancelled_loses_neither_the_error_nor_what_follows(
    ordercast_cluster,
) -> None:
    async with ordercast_cluster(2, order="total") as cluster:
        two = cluster.nodes[1]
        await view_with(two, ("p1", "p2"))
        reading = asyncio.ensure_future(anext(aiter(two)))
        await asyncio.sleep(0)
        cut(cluster, 1)
        await until(lambda: two.stats()["out_since"])
        reading.cancel()  # in the turn in which the error came
        outcome = (await asyncio.gather(reading, return_exceptions=True))[0]
        if isinstance(outcome, asyncio.CancelledError):
            await read_until_out(two)
        else:
            assert isinstance(outcome, oc.Excluded)
        waiting = asyncio.ensure_future(anext(aiter(two)))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait((waiting,))
        await view_with(two, ("p1", "p2"))


async def test_a_guest_that_joins_the_group_on_its_way_back_stays_a_member(
    ordercast_cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its way back made it a guest again behind the back of its membership, which was shown
    unchanged, and whose messages were never ordered."""
    may_resume, resume = asyncio.Event(), Reentry._resume_guest_session

    async def resume_later(way_back: Reentry, joining: Joining, name: str) -> None:
        await may_resume.wait()
        await resume(way_back, joining, name)

    monkeypatch.setattr(Reentry, "_resume_guest_session", resume_later)
    async with (
        ordercast_cluster(2, order="total") as cluster,
        oc.Node("guest", seeds=[cluster.leader.address]) as guest,
    ):
        await (await guest.send_to("main", b"as a guest")).ordered()
        cluster.leader._presence.peers.bound[guest._presence.me.pid].abort("the cable was cut")
        await until(lambda: guest.incarnation == 2)
        group = await guest.join("main", order="total")
        may_resume.set()
        await back(guest)
        assert not guest.stats()["guest_of"]
        await (await guest.send_to("main", b"as a member")).ordered()
        assert cluster.groups[0].members == group.members == ("p1", "p2", "guest")
        cut_off_again = cluster.leader._presence.peers.bound[guest._presence.me.pid]
        cut_off_again.abort("the cable was cut")
        await back(guest, 3)
        assert "main" in guest.stats()["groups"] and not guest.stats()["guest_of"]


async def test_a_wish_to_be_a_guest_does_not_take_the_place_of_a_membership(
    ordercast_cluster,
) -> None:
    async with ordercast_cluster(2, order="total") as cluster:
        [two, group] = cluster.nodes[1], cluster.groups[1]
        engine = two._presence.engine
        engine.step([Join(group._member.group, "guest")])
        await (await group.multicast(b"of a member")).ordered()
        assert engine.stack.changes.wants_to_be_member(group._member.group.gid)
        assert cluster.groups[0].members == ("p1", "p2")


async def test_a_guest_is_a_guest_again(ordercast_cluster) -> None:
    async with (
        ordercast_cluster(1, order="total") as cluster,
        oc.Node("guest", seeds=[cluster.leader.address]) as guest,
    ):
        await guest.send_to("main", b"before")
        await message(cluster.nodes[0], b"before")
        cluster.leader._presence.peers.bound[guest._presence.me.pid].abort("the cable was cut")
        await back(guest)
        assert list(guest.stats()["guest_of"]) == ["main"]
        await (await guest.send_to("main", b"after")).ordered()
        await message(cluster.nodes[0], b"after")
        await guest.stop_sending_to("main")


async def test_a_group_that_is_left_while_the_node_is_out_is_not_joined_again(
    ordercast_cluster,
) -> None:
    async with ordercast_cluster(2, order="total") as cluster:
        two = cluster.nodes[1]
        others = await cluster.join("other", order="fifo")
        guard = Doorkeeper(cluster)
        cut(cluster, 1)
        await until(lambda: guard.refused)
        await cluster.groups[1].leave()
        with pytest.raises(oc.GroupClosed):
            await cluster.groups[1].multicast(b"x")
        guard.stop()
        await back(two)
        assert list(two.stats()["groups"]) == ["other"]
        await (await others[1].multicast(b"works")).ordered()
        again = await two.join("main", order="total")
        assert again.members == ("p1", "p2")


class Held:
    """Questions of nodes that want to enter a group; the leader gets them later."""

    def __init__(self, cluster: oc.LocalCluster) -> None:
        self.questions: list[tuple[Any, ...]] = []
        self._role = cluster.leader._presence.cluster_membership.requests
        self._role.handle = lambda *question: self.questions.append(question)

    def release(self) -> None:
        del self._role.handle
        for question in self.questions:
            self._role.handle(*question)


async def test_a_group_on_its_way_back_cannot_be_joined_a_second_time(ordercast_cluster) -> None:
    async with ordercast_cluster(2, order="total") as cluster:
        two = cluster.nodes[1]
        await cluster.join("other", order="fifo")
        held = Held(cluster)
        cut(cluster, 1)
        await until(lambda: held.questions)
        for name in ("main", "other"):
            with pytest.raises(oc.AlreadyJoined):
                await two.join(name, order="fifo")
        held.release()
        await back(two)
        assert set(two.stats()["groups"]) == {"main", "other"}


async def test_a_group_that_is_left_while_it_is_joined_again_is_left_at_once(
    ordercast_cluster,
) -> None:
    async with ordercast_cluster(2, order="total") as cluster:
        one, two = cluster.nodes
        held = Held(cluster)
        cut(cluster, 1)
        await until(lambda: held.questions)
        await cluster.groups[1].leave()
        held.release()
        await back(two)
        await until(lambda: not two.stats()["groups"])
        await view_with(one, ("p1", "p2"))
        await view_with(one, ("p1",))


async def test_an_attempt_that_fails_half_way_is_no_outage_of_its_own(
    ordercast_cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    follow, failed = Presence.follow, []

    async def fail_once(site: Presence, *given: Any, **named: Any) -> None:
        await follow(site, *given, **named)
        if not failed:
            failed.append(site)
            site.fail(oc.Excluded("main", 1, "half-way"))

    async with ordercast_cluster(2, order="total") as cluster:
        two = cluster.nodes[1]
        guard = Doorkeeper(cluster)
        cut(cluster, 1)
        await read_until_out(two)
        monkeypatch.setattr(Presence, "follow", fail_once)
        guard.stop()
        await back(two, 3)
        assert failed and two.stats()["re_entries"] == 1
        await view_with(two, ("p1", "p2"))


async def test_an_error_of_ours_on_the_way_back_ends_the_stream_with_it(
    ordercast_cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(site: Presence, *_: object, **__: object) -> dict[str, str]:
        raise RuntimeError("a bug")

    async with ordercast_cluster(2, order="total") as cluster:
        monkeypatch.setattr(Presence, "follow", fail)
        cut(cluster, 1)
        await read_until_out(cluster.nodes[1])
        with pytest.raises(RuntimeError, match="a bug"):
            async for _ in cluster.nodes[1]:
                pass


async def test_a_way_back_that_waits_ends_when_the_next_one_begins(
    ordercast_cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused: list[Joining] = []

    async def refuse(joining: Joining, seat: object) -> None:
        refused.append(joining)
        raise oc.JoinTimeout({"main": "for a test"}, 1, what="it was not joined", advice="Wait")

    async with ordercast_cluster(2, order="total") as cluster:
        two = cluster.nodes[1]
        tasks = asyncio.all_tasks()
        with monkeypatch.context() as patch:
            patch.setattr(Joining, "rejoin", refuse)
            cut(cluster, 1)
            await until(lambda: refused)
            assert "again yet" in two.stats()["out_reason"]
            cut(cluster, 1)
            await until(lambda: two._presence.error is not None)
        await back(two, 3)
        left = asyncio.all_tasks() - {two._returning} - tasks
        assert [task for task in left if "Door._serve" not in repr(task.get_coro())] == []


async def test_what_nobody_took_of_an_incarnation_is_not_in_its_log(
    tmp_path: Path, ordercast_cluster
) -> None:
    async with ordercast_cluster(2, order="total", trace=tmp_path) as cluster:
        two = cluster.nodes[1]
        await cluster.groups[0].multicast(b"never taken")
        await until(lambda: main(two)["inbox_frames"])
        cut(cluster, 1)
        await back(two)
    assert not list(tmp_path.rglob("*.seg"))  # all logs are closed and sealed
    kinds = {e.process: set() for e in read_events(tmp_path)}
    for event in read_events(tmp_path):
        kinds[event.process].add(event.kind)
    assert not kinds["p2#1"] & {"view", "deliver", "end"}
    assert {"view", "end"} <= kinds["p2#2"]


async def test_a_group_that_is_something_else_now_is_lost_and_says_so(
    ordercast_cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ordercast_cluster(2, order="total") as cluster:
        two = cluster.nodes[1]
        others = await cluster.join("other", order="fifo")
        seat = cluster.groups[1]._member
        monkeypatch.setattr(seat, "group", type(seat.group)(9, "main", "fifo", "global_fifo", 1))
        cut(cluster, 1)
        await back(two)
        with pytest.raises(oc.OrderMismatch):
            await cluster.groups[1].multicast(b"x")
        await (await others[1].multicast(b"works")).ordered()


async def test_a_node_that_nobody_reads_stays_out_after_so_many_outages(
    ordercast_cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reentry, "MAX_UNREAD_OUTAGES", 2)
    async with ordercast_cluster(2, order="total") as cluster:
        two = cluster.nodes[1]
        cut(cluster, 1)
        await back(two)
        cut(cluster, 1)
        await until(lambda: "never read" in two.stats()["out_reason"])
        await read_until_out(two)
        await back(two, 3)


async def test_one_line_tells_that_a_node_is_out_and_one_that_it_is_back(
    ordercast_cluster, caplog: pytest.LogCaptureFixture
) -> None:
    async with ordercast_cluster(2, order="total") as cluster:
        with caplog.at_level(logging.INFO, "ordercast.runtime.reentry"):
            cut(cluster, 1)
            await back(cluster.nodes[1])
        lines = [r.message for r in caplog.records if r.name == "ordercast.runtime.reentry"]
    assert len(lines) == 2
    assert lines[0].startswith("p2#1 is out: ") and lines[1] == "p2#1 is back as p2#2"


async def test_a_node_that_is_dissolved_comes_back_and_the_application_only_waits(
    ordercast_cluster,
) -> None:
    limits = {"order": "total", "max_message": 1000, "window_bytes": 3000}
    async with (
        ordercast_cluster(2, **limits) as cluster,
        oc.Node("guest", seeds=[cluster.leader.address], **limit_of(limits)) as guest,
    ):
        one, two = cluster.nodes
        group = cluster.groups[1]
        await (await guest.send_to("main", b"guest 0")).ordered()
        many = [b"%d" % number + bytes(900) for number in range(6)]
        waiting = asyncio.ensure_future(group.multicast_many(many))
        await until(lambda: main(two)["multicasts_waiting"])
        await until(
            lambda: main(two)["frames_ordered"] == main(two)["frames_sent"]
        )  # as a flush does
        guard = Doorkeeper(cluster)
        for node in (two, guest):
            node._presence.fail(Dissolved())
        calls = [
            asyncio.ensure_future(call)
            for call in (group.multicast(b"late"), guest.send_to("main", b"guest 1"))
        ]
        await until(lambda: guard.refused == 2)
        assert not any(call.done() for call in (waiting, *calls))
        guard.stop()
        reading = asyncio.ensure_future(bodies(one, [*many, b"late", b"guest 0", b"guest 1"]))
        async for event in two:  # nothing is raised here
            if isinstance(event, oc.Message) and event.body == many[-1]:
                break
        await asyncio.gather(waiting, *calls)
        await reading


def limit_of(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name != "order"}


async def bodies(node: oc.Node, wanted: list[bytes]) -> None:
    """Read until each of these has come once, and nothing else."""
    left = list(wanted)
    async for event in node:
        if isinstance(event, oc.Message):
            left.remove(event.body)
            if not left:
                return


async def test_a_node_that_is_dissolved_and_closed_keeps_nobody_waiting(ordercast_cluster) -> None:
    async with ordercast_cluster(2, order="total") as cluster:
        Doorkeeper(cluster)
        cluster.nodes[1]._presence.fail(Dissolved())
        waiting = asyncio.ensure_future(cluster.groups[1].multicast(b"x"))
        await asyncio.sleep(0)
        await cluster.nodes[1].aclose()
        with pytest.raises(oc.GroupClosed):
            await waiting


async def test_interruptions_in_a_row_are_told_once() -> None:
    passed: list[int] = []
    inbox: Inbox[int] = Inbox("a stream", lambda number: [number], 10)
    inbox.put(1)
    for number in range(3):
        inbox.interrupt(oc.NotPrimary(number, ("p1",)), lambda number=number: passed.append(number))
    inbox.put(2)
    assert await inbox.next_batch() == [1]
    with pytest.raises(oc.NotPrimary, match="of node view 2 it cannot reach p1"):
        await inbox.next_batch()
    assert passed == [2] and await inbox.next_event() == 2
