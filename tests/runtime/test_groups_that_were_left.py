"""What a node keeps of groups that it has left is bounded, and no message number comes twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import pytest

import ordercast as oc
from ordercast.runtime import engine, own_groups
from ordercast.views import directory


@asynccontextmanager
async def reading(nodes: Iterable[oc.Node]) -> AsyncIterator[None]:
    """The programs of these nodes take what comes."""

    async def read(node: oc.Node) -> None:
        async for _ in node:
            pass

    tasks = [asyncio.ensure_future(read(node)) for node in nodes]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_node_that_joins_and_leaves_many_groups_keeps_a_few_of_them(
    ordercast_cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory, "MAX_EMPTY", 2)
    monkeypatch.setattr(engine, "MAX_LEFT", 2)
    monkeypatch.setattr(engine, "MAX_UNUSED", 3)
    monkeypatch.setattr(own_groups, "MAX_LEFT", 2)
    monkeypatch.setattr(own_groups, "MAX_NAMES", 4)
    async with ordercast_cluster(2) as cluster, reading(cluster.nodes):
        first, second = cluster.nodes
        for number in range(24):
            group = await second.join(f"g{number}", order="total")
            await group.multicast(b"m")
            await group.leave()
        for node in (cluster.leader, first, second):
            machine, presence = node._presence.engine, node._presence
            assert len(machine._left) <= 2 and len(presence.groups._first_message) <= 2
            assert len(machine.stack.groups.machines) <= len(machine.stack.rows) <= 4
            assert len(machine._channels) <= 2 * len(machine.stack.groups.machines) + 3
            assert len(presence.groups.names) <= 4
        machine = second._presence.engine
        known = {*machine._left, *machine._channels, *machine.stack.rows}
        gone = min({*range(1, machine.stack.top_group)} - known)
        late = (gone, 0, 1, b"", b"")
        assert machine._of_group(first._presence.me.pid, late) == [], "dropped, and nobody's fault"


async def test_no_message_of_an_incarnation_has_the_number_of_another_in_its_group(
    ordercast_cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A group is forgotten with its numbers, and joined again."""
    monkeypatch.setattr(own_groups, "MAX_LEFT", 1)
    async with ordercast_cluster(2) as cluster, reading(cluster.nodes):
        node = cluster.nodes[1]
        used: dict[str, set[int]] = {"long": set(), "short": set(), "other": set()}
        for name, count in (("long", 5), ("short", 2), ("other", 1), ("long", 3), ("short", 1)):
            group = await node.join(name, order="total")
            memberships = node._presence.groups.memberships.values()
            membership = next(m for m in memberships if m.group.name == name)
            begin = membership.next_message
            for _ in range(count):
                await group.multicast(b"m")
            await group.leave()
            numbers = set(range(begin, membership.next_message))
            assert len(numbers) == count and not numbers & used[name]
            used[name] |= numbers
