"""The sequencing service on real sockets: groups move, sequencers die and are replaced, under load.

Everything that was sent reaches every member of its group once, and the trace keeps its promises.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import ordercast as oc
from live.verdict import kept
from ordercast.service.administrator import Administrator

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("live")

PROTOCOL_OF = {
    "total": "sequencing",
    "hybrid": "sequencing_hybrid",
    "causal-total": "sequencing_causal",
    "global-total": "sequencing_global",
}
GROUPS = {"left": (0, 1, 2), "right": (1, 2, 3), "round": (2, 3, 0)}
SENDING_SECONDS = 0.02  # between two messages of a member to a group


class Crowd:
    """Members that send to all their groups all the time, and what they got."""

    def __init__(self, nodes: list[oc.Node]) -> None:
        self.nodes = nodes
        self.groups: dict[tuple[str, int], oc.Group] = {}
        self.sent: Counter[str] = Counter()
        self.got: dict[tuple[str, int], list[bytes]] = {}
        self._changed = asyncio.Event()

    async def join(self, name: str, order: str, members: tuple[int, ...]) -> None:
        for member in members:
            self.groups[name, member] = await self.nodes[member].join(
                name, order, protocol=PROTOCOL_OF[order]
            )
            self.got[name, member] = []

    @asynccontextmanager
    async def busy(self) -> AsyncIterator[None]:
        """They send inside the block; after it everything is everywhere. An error ends it."""
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            readers = [tasks.create_task(self._read(n)) for n in range(len(self.nodes))]
            senders = [tasks.create_task(self._send(name, n, stop)) for name, n in self.groups]
            yield
            stop.set()
            await asyncio.gather(*senders)
            for (name, member), bodies in self.got.items():
                while len(bodies) < self.sent[name]:
                    self._changed.clear()
                    await self._changed.wait()
                assert len(bodies) == self.sent[name] == len(set(bodies)), (name, member)
            for reader in readers:
                reader.cancel()

    async def _send(self, name: str, member: int, stop: asyncio.Event) -> None:
        while not stop.is_set():
            self.sent[name] += 1
            await self.groups[name, member].multicast(f"{member} {self.sent[name]}".encode())
            await asyncio.sleep(SENDING_SECONDS)

    async def _read(self, member: int) -> None:
        async for event in self.nodes[member]:
            if isinstance(event, oc.Message):
                self.got[event.group, member].append(event.body)
                self._changed.set()

    def agree(self) -> bool:
        """Did all members of every group get the same in the same order?"""
        orders = {(name, tuple(bodies)) for (name, _), bodies in self.got.items()}
        return len(orders) == len({name for name, _ in self.groups})


@pytest.mark.parametrize("order", PROTOCOL_OF)
async def test_groups_move_to_and_fro_under_load_and_nothing_is_lost_or_doubled(
    tmp_path: Path, spark: SparkSession, ordercast_cluster, order: str
) -> None:
    async with ordercast_cluster(4, sequencers=2, balance=False, trace=tmp_path) as cluster:
        crowd = Crowd(cluster.nodes)
        for name, members in GROUPS.items():
            await crowd.join(name, order, members)
        administrator = Administrator([cluster.nodes[0].address])
        async with crowd.busy():
            for to in ("sequencer-2", "sequencer-1", "sequencer-2"):
                for name in GROUPS:
                    await administrator.migrate(name, to)
                assert {row.sequencer for row in await administrator.groups()} == {to}
        assert crowd.agree()
    kept(tmp_path)


async def test_sequencers_are_replaced_one_by_one_and_groups_of_all_orders_notice_nothing(
    tmp_path: Path, spark: SparkSession, ordercast_cluster
) -> None:
    async with ordercast_cluster(4, sequencers=3, trace=tmp_path) as cluster:
        crowd = Crowd(cluster.nodes)
        for order in PROTOCOL_OF:
            for name, members in GROUPS.items():
                await crowd.join(f"{order} {name}", order, members)
        administrator = Administrator([node.address for node in cluster.nodes])
        async with crowd.busy():
            for place, old in enumerate(cluster.sequencers):
                await administrator.drain(old.name)
                rows = await administrator.groups()
                assert old.name not in {row.sequencer for row in rows}
                await old.aclose()
                new = oc.Node(
                    old.name, seeds=[cluster.nodes[0].address], sequencer=True, trace=tmp_path
                )
                await new.start()
                cluster.sequencers[place] = new
        cluster.leader = None
        assert crowd.agree()
        assert not any(node.stats()["re_entries"] for node in cluster.nodes)
    kept(tmp_path)


@pytest.mark.parametrize("order", ["total", "hybrid"])
async def test_groups_of_a_killed_sequencer_go_on(
    tmp_path: Path, spark: SparkSession, order: str
) -> None:
    async with oc.LocalCluster(4, sequencers=2, trace=tmp_path) as cluster:
        for name, members in GROUPS.items():
            for member in members:
                await cluster.workers[member].do(
                    "join", group=name, order=order, protocol=PROTOCOL_OF[order]
                )
        administrator = Administrator([worker.address for worker in cluster.workers])
        for name in GROUPS:
            await administrator.migrate(name, "sequencer-1")  # it coordinates, too
        sending = [
            asyncio.ensure_future(
                cluster.workers[member].do("send", group=name, count=40, per_second=100)
            )
            for name, members in GROUPS.items()
            for member in members
        ]
        await cluster.workers[2].do("wait", group="left", count=30)
        await cluster.kill_sequencer("sequencer-1")
        await asyncio.gather(*sending)
        for name, members in GROUPS.items():
            for member in members:
                wanted = {"group": name, "count": 40 * len(members)}
                assert await cluster.workers[member].do("wait", **wanted) == wanted["count"]
    kept(tmp_path)
