"""Arenas of the sequencing service: overlapping groups are moved while nodes come, go and crash.

Two kinds of runs take turns. In one several nodes may be lost at once; then an order that is causal
has no gap only if what is delivered is held by all (`resilience`). In the other nothing is asked
for, and one node is lost at a time: its own rules must be enough.
"""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec

from ordercast.core.protocol import OrderingProtocol
from ordercast.process.commands import Drain
from ordercast.simulation.clustered import (
    Boot,
    Calm,
    ClusterConfig,
    ClusterFault,
    ClusterSimulation,
    Host,
)
from ordercast.simulation.config import GroupConfig
from ordercast.simulation.faults import Crash, Join, Leave
from ordercast.simulation.placing import MoveGroup
from ordercast.views.headers import Install, Installed, Plan, Ready, Report, Stop
from sweep.ambush import CrashOfWhoSays
from sweep.churn import CHURN_MS, FORMED_MS, LOSSES, SETTLE_MS, churn

WORDS = (Stop, Report, Plan, Ready, Install, Installed)  # of one that takes part in a change


class DrainHost(msgspec.Struct, frozen=True):
    """Somebody wants the node of that host to number nothing."""

    host: Host
    at_ms: float

    def apply(self, simulation: ClusterSimulation) -> None:
        """Tell it."""
        p = simulation.current.get(self.host)
        machine: Any = None if p is None else simulation.machines[p]
        if p is not None and machine.node_view is not None:
            simulation.tell(p, Drain(p))


def placing(protocol: type[OrderingProtocol], seed: int) -> ClusterConfig:
    """Groups that overlap and move; joins and leaves; crashes, also of those who hand over."""
    rng = Random(f"placing {protocol.declaration.name} {seed}")
    plain = churn(protocol, seed)
    hosts = rng.choice((4, 5, 6))
    groups = _groups(rng, hosts)
    faults = [*_moves(rng, hosts, len(groups)), *_comings(rng, hosts, len(groups))]
    options = plain.options
    if seed % 2:  # one loss at a time, and nothing asked for
        options = msgspec.structs.replace(options, resilience=None)
        faults += _one_crash(rng, hosts)
    else:
        hosts = max(hosts, plain.hosts)
        options = msgspec.structs.replace(options, resilience=hosts)
        here = [f for f in plain.faults if not isinstance(f, Join | Leave | Calm)]
        faults += here
    options = msgspec.structs.replace(options, bodies_apart=rng.random() < 0.25)
    last = max([FORMED_MS + CHURN_MS, *(fault.at_ms for fault in faults)])
    return msgspec.structs.replace(
        plain,
        hosts=hosts,
        groups=groups,
        late=(),
        faults=(*faults, Calm(at_ms=last)),
        options=options,
        messages=rng.randint(20, 40),
        until_ms=last + SETTLE_MS,
    )


def _groups(rng: Random, hosts: int) -> tuple[GroupConfig, ...]:
    sizes = [rng.randint(2, min(4, hosts)) for _ in range(rng.randint(3, 6))]
    return tuple(GroupConfig(members=tuple(rng.sample(range(hosts), size))) for size in sizes)


def _moves(rng: Random, hosts: int, groups: int) -> list[ClusterFault]:
    faults: list[ClusterFault] = []
    for _ in range(rng.randint(1, 6)):
        faults.append(MoveGroup(rng.randint(1, groups), rng.randrange(hosts), at_ms=_when(rng)))
    if rng.random() < 0.25:
        faults.append(DrainHost(rng.randrange(hosts), at_ms=_when(rng)))
    return faults


def _comings(rng: Random, hosts: int, groups: int) -> list[ClusterFault]:
    faults: list[ClusterFault] = []
    for _ in range(rng.randint(0, 6)):
        host, group, at_ms = rng.randrange(hosts), rng.randint(1, groups), _when(rng)
        if rng.random() < 0.6:
            faults.append(Join(host, group, at_ms=at_ms))
        else:
            faults.append(Leave(host, group, at_ms=at_ms))
            if rng.random() < 0.5:
                faults.append(Join(host, group, at_ms=at_ms + rng.uniform(1, 200)))
    return faults


def _one_crash(rng: Random, hosts: int) -> list[ClusterFault]:
    lose, back_ms = rng.choice(LOSSES), rng.choice((None, 20.0, 200.0))
    if rng.random() < 0.5:
        crash = CrashOfWhoSays(
            rng.choice(WORDS),
            steps=rng.randint(0, 6),
            at_ms=FORMED_MS,
            until_ms=FORMED_MS + CHURN_MS,
            lose=lose,
            back_ms=back_ms,
        )
        return [crash]
    host, at_ms = rng.randrange(hosts), _when(rng)
    faults: list[ClusterFault] = [Crash(host, at_ms=at_ms, lose=lose)]
    if back_ms is not None:
        faults.append(Boot(host, at_ms=at_ms + back_ms))
    return faults


def _when(rng: Random) -> float:
    return rng.uniform(FORMED_MS * 0.7, FORMED_MS + CHURN_MS)
