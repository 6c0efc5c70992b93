"""State transfer to joiners: real sockets in one process, judged by what the replicas hold."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import ordercast as oc
from ordercast.protocols.registry import PROTOCOLS
from ordercast.runtime.state_giving import Giver
from ordercast.runtime.state_transfer import CHUNK, Outgoing
from ordercast.trace.oracle import judge
from ordercast.trace.read import read_events

ORDERED = [name for name, p in PROTOCOLS.items() if "total" in p.declaration.orders]


class Log:
    """The simplest replica: everything the group delivered, in its order."""

    def __init__(self, node: oc.Node, *, bulk: int = 0) -> None:
        self.node = node
        self.lines: list[str] = []
        self.views: list[oc.View] = []
        self.gets = 0
        self.sets = 0
        self.first: oc.Message | oc.View | None = None
        self.reading: asyncio.Task[None] | None = None
        self.error: BaseException | None = None
        self.changed = asyncio.Event()
        self._bulk = bulk  # bytes that make the state large

    @property
    def state(self) -> oc.State:
        return oc.State(get=self.get, set=self.set)

    def get(self) -> bytes:
        self.gets += 1
        return json.dumps(self.lines).encode() + b" " * self._bulk

    def set(self, raw: bytes) -> None:
        self.sets += 1
        self.lines = json.loads(raw)

    def read(self) -> Log:
        self.reading = asyncio.ensure_future(self._read())
        return self

    async def _read(self) -> None:
        try:
            async for event in self.node:
                self.take(event)
        except (oc.NodeEnded, oc.GroupClosed) as error:
            self.error = error
        self.changed.set()

    def take(self, event: oc.Message | oc.View) -> None:
        self.first = self.first or event
        if isinstance(event, oc.Message):
            self.lines.append(f"{event.sender} {event.body.decode()}")
        else:
            self.views.append(event)
        self.changed.set()

    async def until(self, is_so: Callable[[], bool]) -> None:
        while not is_so():
            self.changed.clear()
            await self.changed.wait()

    async def has(self, count: int) -> None:
        await self.until(lambda: len(self.lines) >= count)


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
    judged = judge(events)
    names = [*PROTOCOLS[protocol].declaration.promises, "wellformed", "views", "vsync", "membership"]
    assert {name: judged[name] for name in names if judged[name].verdict != "ok"} == {}


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
