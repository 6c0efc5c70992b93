"""The arenas of real sockets: nodes over loopback, judged from what they recorded.

Over TCP nothing is lost. Over UDP and IP multicast each node throws away 5 % of what arrives, takes
some of it twice and some of it late. Every run is judged by the oracle, and a third of them once
more by one Spark job.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from datagrams import free_group
from ordercast import IpMulticast, LocalCluster, Message, Udp, View
from ordercast.protocols.registry import PROTOCOLS
from ordercast.trace.oracle import judge
from ordercast.trace.read import read_events
from sweep.arenas import AFTER_A_VIEW_CHANGE, ALWAYS
from sweep.trial import why

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MEMBERS = 3
STARTS = 10  # conversations that each member begins; the oracle tries all pairs
DEPTH = 3  # of answers to answers

FAULTS: dict[str, Any] = {
    "inject_loss": 0.05,
    "inject_duplicates": 0.02,
    "inject_reordering": 0.02,
    "seed": 7,
}

ARENAS: dict[str, Callable[[], object]] = {
    "tcp": lambda: "tcp",
    "udp": lambda: Udp(**FAULTS),
    "multicast": lambda: IpMulticast(free_group(), **FAULTS),
}

TRIALS = [
    (protocol, arena, dies) for protocol in PROTOCOLS for arena in ARENAS for dies in (False, True)
]
FOR_SPARK = TRIALS[::3]  # it judges these once more; the oracle judges all
in_the_worker_of_spark = pytest.mark.xdist_group("spark")


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


async def talk(trace: Path, run: str, protocol: str, arena: str, dies: bool) -> None:
    async with LocalCluster(
        MEMBERS, protocol=protocol, in_process=True, trace=trace, run=run, transport=ARENAS[arena]()
    ) as cluster:
        conversation = Conversation(cluster, protocol)
        await conversation.begin()
        if dies:
            await conversation.kill(MEMBERS - 1)
        await conversation.end()
    await asyncio.gather(*conversation.readers, return_exceptions=True)


class Recordings:
    """Runs that took place, each once, whichever test asks first."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runs: set[str] = set()

    async def get(self, protocol: str, arena: str, dies: bool) -> tuple[str, Path]:
        """The name of the run, and where it is recorded."""
        run = f"{protocol}-{arena}{'-death' if dies else ''}"
        if run not in self.runs:
            await talk(self.folder / run, run, protocol, arena, dies)
            self.runs.add(run)
        return run, self.folder / run


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Recordings:
    return Recordings(tmp_path_factory.mktemp("runs"))


def wanted(protocol: str, dies: bool) -> tuple[str, ...]:
    promises = PROTOCOLS[protocol].declaration.promises
    return (*promises, *ALWAYS, *(AFTER_A_VIEW_CHANGE if dies else ()))


@pytest.mark.parametrize(
    ("protocol", "arena", "dies"),
    [
        pytest.param(*trial, marks=[in_the_worker_of_spark] if trial in FOR_SPARK else [])
        for trial in TRIALS
    ],
)
async def test_promises_are_kept_on_sockets(
    recordings: Recordings, protocol: str, arena: str, dies: bool
) -> None:
    _, trace = await recordings.get(protocol, arena, dies)
    events = read_events(trace)
    judged = judge(events)
    broken = {
        name: why(judged[name]) for name in wanted(protocol, dies) if judged[name].verdict != "ok"
    }
    assert not broken
    assert sum(event.kind == "deliver" for event in events) >= (MEMBERS - dies) ** 2 * STARTS


@in_the_worker_of_spark
async def test_spark_finds_all_promises_kept_on_sockets(
    recordings: Recordings, spark: SparkSession
) -> None:
    from ordercast.pipeline import read_traces, verify

    runs = {(await recordings.get(*trial))[0]: trial for trial in FOR_SPARK}
    found = {
        (row["run"], row["property"]): row["verdict"]
        for row in verify(read_traces(spark, [recordings.folder])).collect()
    }
    for run, (protocol, _, dies) in runs.items():
        broken = {n: found[run, n] for n in wanted(protocol, dies) if found[run, n] != "ok"}
        assert not broken, run
