"""Orders across groups, as an application sees them: overlapping groups, frames, one stream."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import ordercast as oc
from ordercast.protocols.registry import PROTOCOLS
from ordercast.trace.oracle import judge
from ordercast.trace.read import read_events
from sweep.trial import why

ACROSS = [name for name, p in PROTOCOLS.items() if p.declaration.scope == "domain"]
GROUPS = {"left": (0, 1, 2), "right": (1, 2, 3), "ends": (0, 3)}  # a ring: all hang together
STARTS = 4  # rounds in which each node says something in each of its groups; the oracle is slow


class Talk:
    """Each node speaks in its groups by turns; some answer, in another group of theirs."""

    def __init__(self, nodes: list[oc.Node], groups: dict[tuple[int, str], oc.Group]) -> None:
        self.nodes = nodes
        self.groups = groups
        self.owed = 0  # deliveries still to come, over all nodes

    async def say(self, place: int, group: str, body: bytes) -> None:
        self.owed += len(GROUPS[group])
        await self.groups[place, group].multicast(body)

    async def start(self, place: int) -> None:
        own = [group for group, members in GROUPS.items() if place in members]
        for number in range(STARTS):
            for group in own * 2:  # several to a group in one turn of the loop: frames
                await self.say(place, group, b"start")
            if number % 3 == 0:
                await asyncio.sleep(0)

    async def read(self, place: int) -> None:
        own = [group for group, members in GROUPS.items() if place in members]
        heard = 0
        async for event in self.nodes[place]:
            if isinstance(event, oc.Message):
                heard += 1
                if heard % 3 == 0 and event.body == b"start":
                    other = own[(own.index(event.group) + 1) % len(own)]
                    await self.say(place, other, b"answer")
                self.owed -= 1

    async def over(self) -> None:
        while self.owed:
            await asyncio.sleep(0.01)


async def hold_a_talk(cluster: oc.LocalCluster, protocol: str) -> None:
    order = PROTOCOLS[protocol].declaration.order
    groups = {}
    for group, members in GROUPS.items():
        for place in members:
            groups[place, group] = await cluster.nodes[place].join(
                group, order=order, protocol=protocol
            )
    talk = Talk(cluster.nodes, groups)
    readers = [asyncio.ensure_future(talk.read(place)) for place in range(4)]
    await asyncio.gather(*(talk.start(place) for place in range(4)))
    await asyncio.wait_for(talk.over(), 60)
    for node in cluster.nodes:
        await node.aclose()
    await asyncio.gather(*readers)


@pytest.mark.parametrize("transport", ["tcp", oc.Udp(inject_loss=0.05, seed=5)], ids=["tcp", "udp"])
@pytest.mark.parametrize("protocol", ACROSS)
async def test_an_order_holds_across_groups_in_the_applications_stream(
    tmp_path: Path, ordercast_cluster, protocol: str, transport: object
) -> None:
    async with ordercast_cluster(4, trace=tmp_path, transport=transport) as cluster:
        await hold_a_talk(cluster, protocol)
    events = read_events(tmp_path)
    assert any("right" in (e.group or "") for e in events if e.kind == "deliver")
    promises = PROTOCOLS[protocol].declaration.promises
    judged = judge(events, only=promises)
    assert {"fifo.global", "total.pairwise"}.intersection(promises)
    broken = {name: why(judged[name]) for name in promises if judged[name].verdict != "ok"}
    assert not broken
