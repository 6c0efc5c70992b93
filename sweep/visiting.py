"""Arenas of open groups: guests come, go, become members and crash while the groups change."""

from __future__ import annotations

from random import Random

import msgspec

from ordercast.core.protocol import OrderingProtocol
from ordercast.simulation.clustered import Boot, Calm, ClusterConfig, ClusterFault, Depart
from ordercast.simulation.config import GroupConfig
from ordercast.simulation.faults import Join, Leave, Visit
from sweep.churn import CHURN_MS, FORMED_MS, SETTLE_MS, churn


def visiting(protocol: type[OrderingProtocol], seed: int) -> ClusterConfig:
    """Groups with guests, some of which are members of another group and pass on what they heard;
    beside that whatever happens in `churn`. In the end all are back: a group without members would
    wait for one that may have a newer state."""
    rng = Random(f"visiting {protocol.declaration.name} {seed}")
    plain = churn(protocol, seed)
    groups = _groups(rng, plain.hosts)
    disturbed = (f for f in plain.faults if not isinstance(f, Join | Leave | Calm))
    faults = [*disturbed, *_comings(rng, plain.hosts, groups)]
    last = max([FORMED_MS + CHURN_MS, *(fault.at_ms for fault in faults)])
    gone = {fault.host for fault in faults if isinstance(fault, Depart)}
    faults += [Boot(host, at_ms=last) for host in range(plain.hosts) if host not in gone]
    return msgspec.structs.replace(
        plain,
        groups=groups,
        faults=(*faults, Calm(at_ms=last)),
        messages=rng.randint(16, 32),
        until_ms=last + SETTLE_MS,
    )


def _groups(rng: Random, hosts: int) -> tuple[GroupConfig, ...]:
    groups = []
    for _ in range(rng.randint(1, 3)):
        who = rng.sample(range(hosts), hosts)
        inside = rng.randint(2, hosts - 1)
        guests = tuple(h for h in who[inside:] if rng.random() < 0.8)
        groups.append(GroupConfig(members=tuple(sorted(who[:inside])), guests=guests))
    return tuple(groups)


def _comings(rng: Random, hosts: int, groups: tuple[GroupConfig, ...]) -> list[ClusterFault]:
    """Members leave and come back, guests leave and come back as either; others come. The first
    member stays: a guest finds no group whose members have all left."""
    faults: list[ClusterFault] = []
    for g, group in enumerate(groups, start=1):
        for host in range(hosts):
            if rng.random() < 0.5 or host == group.members[0]:
                continue
            at_ms = rng.uniform(FORMED_MS * 0.7, FORMED_MS + CHURN_MS)
            if host in (*group.members, *group.guests):
                faults.append(Leave(host, g, at_ms=at_ms))
                at_ms += rng.uniform(1, 200)
            comes = Join if host in group.members else rng.choice((Visit, Join))
            if rng.random() < 0.8:
                faults.append(comes(host, g, at_ms=at_ms))
    return faults
