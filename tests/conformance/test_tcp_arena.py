"""The arena of real sockets: nodes over loopback TCP, judged from what they recorded."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

import pytest

from ordercast import LocalCluster, Message, View
from ordercast.protocols.registry import PROTOCOLS
from ordercast.trace.oracle import judge
from ordercast.trace.read import read_events
from sweep.arenas import AFTER_A_VIEW_CHANGE, ALWAYS
from sweep.trial import why

MEMBERS = 3
STARTS = 4  # conversations that each member begins
DEPTH = 3  # of answers to answers


class Conversation:
    """Members that answer what they hear, and the moment when all has been heard by all."""

    def __init__(self, cluster: LocalCluster, seed: str) -> None:
        self.cluster = cluster
        self.rng = Random(seed)
        self.alive = {node.name for node in cluster.nodes}
        self.sent = dict.fromkeys(self.alive, 0)  # per sender
        self.heard = {name: dict.fromkeys(self.alive, 0) for name in self.alive}
        self.seen = dict.fromkeys(self.alive, frozenset(self.alive))  # members, by the last view
        self.changed = asyncio.Condition()
        self.readers = [asyncio.ensure_future(self.read(i)) for i in range(MEMBERS)]

    async def say(self, i: int, depth: int) -> None:
        self.sent[self.cluster.nodes[i].name] += 1
        await self.cluster.groups[i].multicast(bytes([depth]))

    async def read(self, i: int) -> None:
        me = self.cluster.nodes[i].name
        async for event in self.cluster.nodes[i]:
            if isinstance(event, View):
                self.seen[me] = frozenset(event.members)
            elif isinstance(event, Message):
                if event.body[0] < DEPTH and self.rng.random() < 0.3:
                    await self.say(i, event.body[0] + 1)
                self.heard[me][event.sender] += 1
            async with self.changed:
                self.changed.notify_all()

    async def begin(self) -> None:
        for _ in range(STARTS):
            for i in self.rng.sample(range(MEMBERS), MEMBERS):
                await self.say(i, 0)

    async def kill(self, i: int) -> None:
        self.alive.discard(self.cluster.nodes[i].name)
        await self.cluster.kill(i)

    def over(self) -> bool:
        """Everybody alive has heard everything that anybody alive said, in the last view."""
        return all(
            self.seen[q] == self.alive and self.heard[q][p] == self.sent[p]
            for q in self.alive
            for p in self.alive
        )

    async def end(self) -> None:
        async with self.changed:
            await self.changed.wait_for(self.over)


async def talk(protocol: str, trace: Path, *, killed: int | None = None) -> None:
    async with LocalCluster(MEMBERS, protocol=protocol, in_process=True, trace=trace) as cluster:
        conversation = Conversation(cluster, protocol)
        await conversation.begin()
        if killed is not None:
            await conversation.kill(killed)
        await conversation.end()
    await asyncio.gather(*conversation.readers, return_exceptions=True)


def check(trace: Path, wanted: tuple[str, ...]) -> None:
    events = read_events(trace)
    judged = judge(events)
    broken = {name: why(judged[name]) for name in wanted if judged[name].verdict != "ok"}
    assert not broken
    assert sum(event.kind == "deliver" for event in events) >= MEMBERS * STARTS


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_promises_are_kept_over_tcp(protocol: str, tmp_path: Path) -> None:
    await talk(protocol, tmp_path)
    check(tmp_path, (*PROTOCOLS[protocol].declaration.promises, *ALWAYS))


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_promises_are_kept_over_tcp_when_a_member_dies(protocol: str, tmp_path: Path) -> None:
    await talk(protocol, tmp_path, killed=MEMBERS - 1)
    promises = PROTOCOLS[protocol].declaration.promises
    check(tmp_path, (*promises, *ALWAYS, *AFTER_A_VIEW_CHANGE))
