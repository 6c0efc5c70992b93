"""Small scope, every step: each kind of change of a small cluster, and a crash at any point of it.

The change is run once to count the steps that each host makes until it is over. Then it is run
again for each host and each of its steps, with a crash of that host right after that step; what it
had under way arrives, or is lost; it stays away, or comes back. Right before a step is right after
the one before, and step 0 is before the first.
"""

from __future__ import annotations

from functools import cache
from typing import Literal

import msgspec

from ordercast.core.protocol import Options, OrderingProtocol
from ordercast.membership.options import ClusterOptions, Policy
from ordercast.simulation.clustered import (
    Boot,
    ClusterConfig,
    ClusterFault,
    Depart,
    PartitionHosts,
    simulate_cluster,
)
from ordercast.simulation.config import GroupConfig
from ordercast.simulation.faults import Crash, Heal, Join, Leave
from ordercast.simulation.network import NetworkModel
from ordercast.simulation.placing import MoveGroup
from ordercast.simulation.workload import Workload
from sweep.ambush import CountSteps, CrashAtStep
from sweep.placing import DrainHost

Protocol = type[OrderingProtocol]
Armed = Literal["before", "after"]  # a change may have a second part: the healing

HOSTS = 4  # coordinator, next coordinator, member, and one that comes or goes
BEGINS_MS = 100
HEALS_MS = 280
BACK_AGAIN_MS = HEALS_MS + 45.0  # by then a node that was out has started again
LASTS_MS = 160.0  # of each part: its steps are counted
ENDS_MS = 1600.0


class Change(msgspec.Struct, frozen=True):
    """One kind of change."""

    name: str
    faults: tuple[ClusterFault, ...]
    late: tuple[int, ...] = ()
    partition: Policy = "primary"

    @property
    def heals(self) -> bool:
        """Has it a second part?"""
        return any(isinstance(fault, Heal) for fault in self.faults)


def _cut(name: str, *side: int, partition: Policy = "primary") -> Change:
    cut = PartitionHosts((side,), at_ms=BEGINS_MS)
    return Change(name, (cut, Heal(at_ms=HEALS_MS)), partition=partition)


CHANGES = {
    change.name: change
    for change in (
        Change("a member crashes", (Crash(3, at_ms=BEGINS_MS, lose=0.5),)),
        Change("the coordinator crashes", (Crash(0, at_ms=BEGINS_MS, lose=0.5),)),
        Change("a node comes", (Boot(3, at_ms=BEGINS_MS),), late=(3,)),
        Change("a node joins a group", (Join(3, 2, at_ms=BEGINS_MS),)),
        Change("a node leaves a group", (Leave(2, 1, at_ms=BEGINS_MS),)),
        Change("a node departs", (Depart(3, at_ms=BEGINS_MS),)),
        Change("the coordinator departs", (Depart(0, at_ms=BEGINS_MS),)),
        _cut("a member is cut off", 3),
        _cut("the coordinator is cut off", 0),
        _cut("two sides merge", 2, 3, partition="merge"),
        _cut("the coordinator's side merges", 0, partition="merge"),
    )
}


MOVES = {
    change.name: change
    for change in (
        Change("a group moves", (MoveGroup(1, 1, at_ms=BEGINS_MS),)),
        Change("a group moves away", (MoveGroup(2, 3, at_ms=BEGINS_MS),)),
        Change("a sequencer is drained", (DrainHost(0, at_ms=BEGINS_MS),)),
        Change("a node joins a group that moves", (
            MoveGroup(2, 1, at_ms=BEGINS_MS), Join(3, 2, at_ms=BEGINS_MS),
        )),
    )
}  # fmt: skip


def changes(protocol: Protocol) -> dict[str, Change]:
    """Those that concern it."""
    return CHANGES if protocol.together is None else MOVES


class Case(msgspec.Struct, frozen=True):
    """One crash in one change."""

    change: str
    host: int
    armed: Armed  # from which part on steps are counted
    steps: int
    lose: float
    back_ms: float | None

    def __str__(self) -> str:
        back = "" if self.back_ms is None else ", and comes back"
        lost = ", its packets with it" if self.lose else ""
        part = "" if self.armed == "before" else " of the healing"
        return f"{self.change}; host {self.host} crashes at step {self.steps}{part}{lost}{back}"


def config(protocol: Protocol, change: Change, *more: ClusterFault) -> ClusterConfig:
    """The change, and what happens beside it."""
    return ClusterConfig(
        protocol=protocol,
        hosts=HOSTS,
        groups=(GroupConfig(members=(0, 1, 2, 3)), GroupConfig(members=(0, 1, 2))),
        late=change.late,
        messages=8,
        workload=Workload(every_us=4_000.0, start_ms=BEGINS_MS - 8, reply=0.3, depth=2),
        network=NetworkModel(fifo=True),
        faults=(*change.faults, *more),
        options=Options(retry_ms=20, gap_ms=20, status_ms=10, silence_ms=5, ack_delay_ms=2),
        cluster=ClusterOptions(
            heartbeat_ms=20, suspect_ms=100, partition=change.partition, refound_ms=400
        ),
        until_ms=ENDS_MS,
        rest_ms=300.0,
    )


def config_of(protocol: Protocol, case: Case) -> ClusterConfig:
    """The run with this crash in it."""
    at_ms = BEGINS_MS if case.armed == "before" else BACK_AGAIN_MS
    crash = CrashAtStep(case.host, case.steps, at_ms, case.lose, case.back_ms)
    return config(protocol, changes(protocol)[case.change], crash)


@cache
def cases(protocol: Protocol) -> tuple[Case, ...]:
    """All crashes in all changes."""
    return tuple(
        case for change in changes(protocol).values() for case in _cases_of(protocol, change)
    )


def _cases_of(protocol: Protocol, change: Change) -> list[Case]:
    parts: list[tuple[Armed, float]] = [("before", BEGINS_MS)]
    if change.heals:
        parts.append(("after", BACK_AGAIN_MS))
    counted: dict[tuple[int, Armed], dict[str, int]] = {}
    watching: list[ClusterFault] = []
    for host in range(HOSTS):
        for armed, at_ms in parts:
            count = counted[host, armed] = {}
            watching.append(CountSteps(host, at_ms, at_ms + LASTS_MS, count))
    simulate_cluster(config(protocol, change, *watching))
    return [
        Case(change.name, host, armed, step, lose, back_ms)
        for (host, armed), count in counted.items()
        if count
        for step in range(count["steps"] + 1)
        for lose in (0.0, 1.0)
        for back_ms in (None, 40.0)
    ]
