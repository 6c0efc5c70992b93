"""A node that comes back takes its seats side by side."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import ordercast as oc
from ordercast.process.commands import Refound
from ordercast.runtime.presence import Presence
from ordercast.runtime.reentry import Reentry
from replicas import Log

NEVER_MS = 3_600_000


async def until(true: Callable[[], Any]) -> None:
    while not true():
        await asyncio.sleep(0.001)


def is_out(node: oc.Node) -> bool:
    return node.stats()["out_since"] is not None


def cut(leader: oc.Node, node: oc.Node) -> None:
    leader._presence.peers.bound[node._presence.me.pid].abort("the cable was cut")


def row(node: oc.Node, group: str) -> Any:
    rows = node._presence.engine.stack.rows.values()
    return next(row for row in rows if row.entry.name == group)


class LateReturn:
    """Nodes that are out come back when they are told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.comes = asyncio.Event()
        get_in = Reentry._get_in

        async def get_in_later(way_back: Reentry) -> Presence:
            await self.comes.wait()
            return await get_in(way_back)

        monkeypatch.setattr(Reentry, "_get_in", get_in_later)


async def waits_for_a_later_state(cluster: oc.LocalCluster, monkeypatch: Any) -> list[oc.Group]:
    """The second node was in group "kv" with the third, which is dead, and in the groups of all."""
    late, (one, two, three) = LateReturn(monkeypatch), cluster.nodes
    kv = [await node.join("kv", order="total") for node in (two, three)]
    chat = [await node.join("chat", order="causal") for node in (one, two)]
    cut(cluster.leader, two)
    await until(lambda: len(row(one, "kv").members) == 1)
    await cluster.kill(2)
    await until(lambda: not row(one, "kv").members)
    late.comes.set()
    return [kv[0], *chat]


async def test_a_group_that_cannot_be_joined_again_yet_keeps_a_node_out_of_no_other(
    ordercast_cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ordercast_cluster(3, refound_ms=NEVER_MS) as cluster:
        two = cluster.nodes[1]
        _, chat, of_two = await waits_for_a_later_state(cluster, monkeypatch)
        await until(lambda: chat.members == of_two.members == ("p1", "p2"))
        await (await of_two.multicast(b"here again")).ordered()
        assert is_out(two) and two.stats()["groups"].keys() == {"kv", "chat"}
        assert not row(two, "kv").members
        cluster.leader._presence.engine.step([Refound(row(two, "kv").entry.gid)])
        await until(lambda: not is_out(two))
        assert row(two, "kv").members


async def test_who_leaves_a_group_that_it_cannot_join_again_yet_asks_for_it_no_longer(
    ordercast_cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ordercast_cluster(3, refound_ms=NEVER_MS) as cluster:
        two = cluster.nodes[1]
        kv, *_ = await waits_for_a_later_state(cluster, monkeypatch)
        target = cluster.leader._presence.engine.stack.changes.target
        await until(lambda: target.founders)
        await kv.leave()
        await until(lambda: not target.founders and not is_out(two))
        assert two.stats()["groups"].keys() == {"chat"}
        assert {absent.name for absent in row(two, "kv").absent} == {"p2", "p3"}


async def test_many_groups_of_one_domain_are_taken_at_once(ordercast_cluster) -> None:
    names = [f"g{number}" for number in range(6)]
    async with ordercast_cluster(3) as cluster:
        logs = [Log(node).read() for node in cluster.nodes[:2]]
        groups = {
            name: [await log.node.join(name, protocol="cbcast", state=log.state) for log in logs]
            for name in names
        }
        two = cluster.nodes[1]
        for name in names:
            await groups[name][0].multicast(name.encode())
        await asyncio.gather(*(log.has(6) for log in logs))
        cut(cluster.leader, two)
        await until(lambda: two.incarnation == 2 and not is_out(two))
        for name in names:
            await (await groups[name][1].multicast(b"again")).ordered()
            assert groups[name][0].members == ("p1", "p2")
        await until(lambda: all(len(log.lines) >= 12 for log in logs))


async def replicas_then_a_listener(
    cluster: oc.LocalCluster, count: int
) -> list[tuple[Log, oc.Group]]:
    """So many replicas with state; the first node joins their group without one."""
    logs = [Log(node).read() for node in cluster.nodes[1 : count + 1]]
    groups = [await log.node.join("log", order="total", state=log.state) for log in logs]
    await cluster.nodes[0].join("log", order="total")
    Log(cluster.nodes[0]).read()
    await (await groups[0].multicast(b"before")).stable()
    return list(zip(logs, groups, strict=True))


async def test_who_comes_back_to_members_without_a_state_goes_on_with_its_own(
    ordercast_cluster,
) -> None:
    async with ordercast_cluster(3) as cluster:
        [(log, group)] = await replicas_then_a_listener(cluster, 1)
        two, three = cluster.nodes[1:]
        cut(cluster.leader, two)
        await until(lambda: two.incarnation == 2 and not is_out(two))
        await group.multicast(b"after")
        await log.has(2)
        assert log.sets == 0 and log.lines == ["p2 before", "p2 after"]
        late = Log(three).read()
        await three.join("log", order="total", state=late.state)
        assert late.lines == log.lines


async def back_before_one_that_had_newer_state(
    cluster: oc.LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> tuple[oc.Node, Log]:
    late, (one, two, _) = LateReturn(monkeypatch), cluster.nodes
    [(log, _), _] = await replicas_then_a_listener(cluster, 2)
    cut(cluster.leader, two)
    await until(lambda: len(row(one, "log").members) == 2)
    await cluster.kill(2)
    await until(lambda: len(row(one, "log").members) == 1)
    late.comes.set()
    return two, log


async def test_who_comes_back_waits_for_a_newer_state_that_may_come_back_too(
    ordercast_cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ordercast_cluster(3, refound_ms=NEVER_MS) as cluster:
        two, _ = await back_before_one_that_had_newer_state(cluster, monkeypatch)
        await until(lambda: "no member of group 'log' gave its state" in two.stats()["out_reason"])
        assert is_out(two)
        async with oc.Node("p3", seeds=[cluster.leader.address]):  # its memory is gone
            await until(lambda: not is_out(two))


async def test_who_comes_back_waits_for_a_newer_state_no_longer_than_an_empty_group_would(
    ordercast_cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ordercast_cluster(3, refound_ms=20) as cluster:
        two, log = await back_before_one_that_had_newer_state(cluster, monkeypatch)
        await until(lambda: two.incarnation == 2 and not is_out(two))
        assert log.sets == 0 and log.lines == ["p2 before"]
