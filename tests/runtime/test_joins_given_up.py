"""A join that is given up leaves nothing behind: no wish, no membership, nothing to wait for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import ordercast as oc
from ordercast.core.events import Receive
from ordercast.core.ids import ProcessId
from ordercast.errors import GroupClosed
from ordercast.process.process import CLUSTER_GROUP, Process
from ordercast.runtime.group_requests import GroupRequests
from ordercast.runtime.presence import Presence
from ordercast.runtime.reentry import Reentry
from ordercast.trace.oracle import judge
from ordercast.trace.read import read_events
from ordercast.views.headers import Install
from ordercast.views.target import Target

NEVER_MS = 3_600_000


async def until(true: Callable[[], Any]) -> None:
    while not true():
        await asyncio.sleep(0.001)


def changes(node: oc.Node) -> Any:
    return node._presence.engine.stack.changes


async def empty_group(cluster: oc.LocalCluster) -> None:
    """The only member of group "g" dies: who joins it waits for that one."""
    await cluster.nodes[-1].join("g", order="total")
    await cluster.kill(len(cluster.nodes) - 1)
    rows = changes(cluster.leader).directory.rows
    await until(lambda: any(row.absent and not row.members for row in rows.values()))


async def a_founder(node: oc.Node, leader: oc.Node) -> asyncio.Task[oc.Group]:
    joining = asyncio.ensure_future(node.join("g", order="total"))
    await until(lambda: changes(leader).target.founders)
    return joining


async def test_who_gives_a_join_up_does_not_wait_to_found_the_group(ordercast_cluster) -> None:
    async with ordercast_cluster(3, refound_ms=NEVER_MS) as cluster:
        await empty_group(cluster)
        one, leader = cluster.nodes[0], cluster.leader
        for _ in range(2):  # the second one finds nothing of the first
            joining = await a_founder(one, leader)
            joining.cancel()
            await until(lambda: not one._presence.groups.memberships)
            assert joining.cancelled() and not changes(leader).target.founders
            assert not changes(one).unmet
        [row] = changes(leader).directory.rows.values()
        assert [absent.name for absent in row.absent] == ["p3"]


async def test_who_gave_a_join_up_leaves_the_cluster_in_order(ordercast_cluster) -> None:
    async with ordercast_cluster(3, sequencer=False, refound_ms=NEVER_MS) as cluster:
        await empty_group(cluster)
        one, two = cluster.nodes[:2]
        joining = await a_founder(one, one)
        joining.cancel()
        await one.aclose()
        await until(lambda: two.leads)
        assert two.stats()["node_view"]["members"] == ["p2#1"]
        await two.join("other", order="total")  # it has not lost its majority


async def test_closing_a_node_ends_a_join_that_waits_to_found_a_group(ordercast_cluster) -> None:
    async with ordercast_cluster(3, refound_ms=NEVER_MS) as cluster:
        await empty_group(cluster)
        one = cluster.nodes[0]
        joining = await a_founder(one, cluster.leader)
        await one.aclose()
        with pytest.raises(GroupClosed):
            await joining
        assert "p1#1" not in cluster.leader.stats()["node_view"]["members"]


async def test_a_join_that_the_next_coordinator_refuses_leaves_nothing_behind(
    ordercast_cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ordercast_cluster(3, refound_ms=NEVER_MS) as cluster:
        await empty_group(cluster)
        one = cluster.nodes[0]
        joining = await a_founder(one, cluster.leader)

        async def refuse(*_: object) -> None:
            raise oc.OrderMismatch("g", "order 'fifo'", "order 'total'")

        with monkeypatch.context() as patch:
            patch.setattr(GroupRequests, "enter", refuse)
            cluster_membership = one._presence.cluster_membership
            before, cluster_membership.succession = cluster_membership.succession, asyncio.Future()
            before.set_result(None)  # another node coordinates
            with pytest.raises(oc.OrderMismatch):
                await joining
        await until(lambda: not one._presence.groups.memberships)
        assert not changes(cluster.leader).target.founders


class LateInstall:
    """The packet that lets a node in comes when it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, node: oc.Node) -> None:
        self._engine = node._presence.engine
        self.kept: list[tuple[ProcessId, Install]] = []
        receive = Process._receive_cluster

        def keep(process: Process, src: ProcessId, header: msgspec.Struct) -> None:
            if process is self._engine.stack and isinstance(header, Install):
                self.kept.append((src, header))
            else:
                receive(process, src, header)

        monkeypatch.setattr(Process, "_receive_cluster", keep)
        self._undo = lambda: monkeypatch.setattr(Process, "_receive_cluster", receive)

    def comes(self) -> None:
        self._undo()
        for src, header in self.kept:
            self._engine.step([Receive(src, CLUSTER_GROUP, 0, header)], src)


async def test_who_comes_back_to_an_empty_group_goes_on_asking(
    ordercast_cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node that remembers nothing founded the group between two of its attempts."""
    may_return, get_in = asyncio.Event(), Reentry._get_in

    async def get_in_later(way_back: Reentry) -> Presence:
        await may_return.wait()
        return await get_in(way_back)

    monkeypatch.setattr(Reentry, "_get_in", get_in_later)
    async with ordercast_cluster(2, join_timeout=0.1, refound_ms=NEVER_MS) as cluster:
        for node in cluster.nodes:
            await node.join("g", order="total")
        one, leader = cluster.nodes[0], cluster.leader._presence
        leader.peers.bound[one._presence.me.pid].abort("the cable was cut")
        [g] = leader.engine.stack.rows
        await until(lambda: len(leader.engine.stack.rows[g].members) == 1)
        await cluster.kill(1)  # in a later view
        await until(lambda: not leader.engine.stack.rows[g].members)
        may_return.set()
        founders = changes(cluster.leader).target.founders
        await until(lambda: founders)
        while "cannot join 'g' again" not in one.stats()["out_reason"]:
            assert founders
            await asyncio.sleep(0.001)
        for _ in range(100):
            assert founders
            await asyncio.sleep(0.001)


@pytest.mark.parametrize("protocol", ["sequencer_pb", "sequencing"])
async def test_who_gives_up_while_the_view_is_on_its_way_leaves_after_it(
    tmp_path: Path, ordercast_cluster, monkeypatch: pytest.MonkeyPatch, protocol: str
) -> None:
    async with ordercast_cluster(3, trace=tmp_path, heartbeat_ms=20) as cluster:
        one, two, three = cluster.nodes
        group = await one.join("g", protocol=protocol)
        late = LateInstall(monkeypatch, two)
        joining = asyncio.ensure_future(two.join("g", protocol=protocol))
        await until(lambda: late.kept and group.members == ("p1", "p2"))
        joining.cancel()
        later = two._presence.engine.stack.agreement.ticks + 5
        await until(lambda: two._presence.engine.stack.agreement.ticks >= later)
        # it has said again and again that it wants out, and that is not confirmed
        assert two._presence.groups.memberships and changes(two).unconfirmed
        late.comes()
        assert changes(two).unmet and not changes(two).unconfirmed
        await until(lambda: group.members == ("p1",))
        await until(lambda: not two._presence.groups.memberships)
        for node in (two, three):
            await node.join("g", protocol=protocol)
        await until(lambda: group.members == ("p1", "p2", "p3"))  # others may hear of it first
    found = judge(read_events(tmp_path), only=["wellformed", "views", "vsync", "membership"])
    assert {verdict.verdict for verdict in found.values()} <= {"ok", "n/a"}


async def test_a_guest_session_that_is_given_up_leaves_nothing_behind(
    ordercast_cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ordercast_cluster(2, join_timeout=0.3) as cluster:
        one, two = cluster.nodes
        group = await one.join("g", order="fifo")
        with monkeypatch.context() as patch:
            patch.setattr(Target, "_let_visit", lambda *_: None)
            with pytest.raises(oc.JoinTimeout):
                await two.send_to("g", b"nobody lets it in")
            await until(lambda: not two._presence.groups.guest_sessions)
        await (await two.send_to("g", b"now")).ordered()
        assert group.members == ("p1",)
