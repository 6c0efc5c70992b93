"""Arenas of whole clusters: nodes come, go, crash, are cut off and come back, at random."""

from __future__ import annotations

from random import Random

import msgspec

from ordercast.core.protocol import Options, OrderingProtocol
from ordercast.membership.agreement_headers import EndView, InstallView, ProposeView
from ordercast.membership.options import ClusterOptions, Policy
from ordercast.simulation.clustered import (
    Boot,
    Calm,
    ClusterConfig,
    ClusterFault,
    Depart,
    PartitionHosts,
)
from ordercast.simulation.config import GroupConfig
from ordercast.simulation.delays import Uniform
from ordercast.simulation.faults import Crash, Heal, Join, Leave
from ordercast.simulation.network import NetworkModel
from ordercast.simulation.workload import Workload
from ordercast.views.headers import Install, Plan, Stop
from sweep.ambush import CrashOfWhoSays, CutOfWhoSays

NETWORKS = (
    NetworkModel(fifo=True),  # connections: a crash breaks them
    NetworkModel(),
    NetworkModel(loss=0.05, duplicate=0.05),
    NetworkModel(loss=0.15, delay=Uniform(300, 4000)),
)

LOSSES = (0.0, 0.5, 1.0)  # of what a node had under way when it crashed

AGREEING = (ProposeView, EndView)  # of one that leads to the next node view: it takes two hops
CHANGING = (InstallView, Stop, Plan, Install)

FORMED_MS = 150  # by then the first nodes are together
CHURN_MS = 900  # so long things happen
REFOUND_MS = 400  # so long a group waits for members that may have a newer state
SETTLE_MS = 2600  # after the last of them everything must have come to rest


def churn(
    protocol: type[OrderingProtocol], seed: int, partition: Policy = "primary"
) -> ClusterConfig:
    """Everything at once."""
    rng = Random(f"churn {protocol.declaration.name} {seed}")
    hosts = rng.choice((3, 4, 5, 5, 6, 6))
    groups = _groups(rng, hosts)
    late = tuple(h for h in range(1, hosts) if rng.random() < 0.15)
    voters = _voters(seed, hosts)
    faults = _faults(
        rng, hosts, len(groups), late, len(set(voters or range(hosts)).difference(late))
    )
    last = max([FORMED_MS + CHURN_MS, *(fault.at_ms for fault in faults)])
    return ClusterConfig(
        protocol=protocol,
        hosts=hosts,
        groups=groups,
        late=late,
        messages=rng.randint(10, 26),
        workload=Workload(
            every_us=rng.choice((5_000.0, 20_000.0, 40_000.0)),
            start_ms=FORMED_MS,
            reply=rng.choice((0.0, 0.7)),
            depth=3,
        ),
        network=with_connections(rng.choice(NETWORKS), seed),
        faults=(*faults, Calm(at_ms=last)),  # and whatever was cut is whole again
        seed=seed,
        options=Options(
            retry_ms=20,
            gap_ms=20,
            status_ms=10,
            silence_ms=5,
            ack_delay_ms=2,
            resilience=_resilience(protocol, hosts),
        ),
        cluster=ClusterOptions(
            heartbeat_ms=20,
            suspect_ms=rng.choice((160, 200)),
            detector=rng.choice(("heartbeat", "accrual")),
            partition=partition,
            refound_ms=REFOUND_MS,
        ),
        voters=voters,
        until_ms=last + SETTLE_MS,
    )


def with_connections(network: NetworkModel, seed: int) -> NetworkModel:
    """Live nodes speak of the cluster on connections, also if groups use datagrams: so in half of
    the runs. In the others everything suffers the same."""
    chosen = not network.fifo and Random(f"connections {seed}").random() < 0.5
    return msgspec.structs.replace(network, connections=chosen)


def _voters(seed: int, hosts: int) -> tuple[int, ...]:
    """In most runs every host may vote; in some only the first of them."""
    rng = Random(f"voters {seed}")
    return tuple(range(rng.randint(1, hosts))) if rng.random() < 0.25 else ()


def _resilience(protocol: type[OrderingProtocol], hosts: int) -> int | None:
    """Here many are lost at once. An order across groups has no gap then only if all that a
    message may depend on is held by all."""
    return hosts if protocol.declaration.scope == "domain" else None


def _groups(rng: Random, hosts: int) -> tuple[GroupConfig, ...]:
    everybody = tuple(range(hosts))
    groups = [everybody if rng.random() < 0.5 else tuple(rng.sample(everybody, max(2, hosts - 1)))]
    for _ in range(rng.randint(0, 2)):
        groups.append(tuple(sorted(rng.sample(everybody, rng.randint(2, hosts)))))
    return tuple(GroupConfig(members=members) for members in groups)


def _faults(
    rng: Random, hosts: int, groups: int, late: tuple[int, ...], votes: int
) -> tuple[ClusterFault, ...]:
    crashes = _crashes(rng, hosts, votes)
    faults: list[ClusterFault] = [*crashes, *_cuts(rng, hosts)]
    near = [crash.at_ms for crash in crashes]  # others come and go when somebody dies
    for host in late:
        faults.append(Boot(host, at_ms=_when(rng, near)))
    for _ in range(rng.randint(0, 3)):
        host, group, at_ms = rng.randrange(hosts), rng.randint(1, groups), _when(rng, near)
        if rng.random() < 0.5:
            faults.append(Join(host, group, at_ms=at_ms))
        else:
            faults.append(Leave(host, group, at_ms=at_ms))
            if rng.random() < 0.5:
                faults.append(Join(host, group, at_ms=at_ms + rng.uniform(1, 200)))
    if rng.random() < 0.2:
        faults.append(Depart(rng.randrange(hosts), at_ms=_when(rng, near)))
    return tuple(faults)


def _crashes(rng: Random, hosts: int, votes: int) -> list[ClusterFault]:
    """One after the other, two at once, or in the middle of the change that the first brought."""
    faults: list[ClusterFault] = []
    for _ in range(rng.choice((0, 1, 1, 2) if hosts > 3 else (0, 1))):
        at_ms = _when(rng)
        for host in rng.sample(range(hosts), rng.choice((1, 1, 1, 2)) if hosts > 4 else 1):
            at_ms += rng.choice((0.0, 0.0, 1.0, 20.0)) * rng.random()
            faults.append(Crash(host, at_ms=at_ms, lose=rng.choice(LOSSES)))
            if rng.random() < 0.7:
                faults.append(Boot(host, at_ms=at_ms + rng.uniform(5, 400)))
    if rng.random() < 0.6:
        says = rng.choice((*AGREEING * 2, *CHANGING) if votes > 4 else CHANGING)
        if says in AGREEING:  # somebody must take over, and a majority must live
            at_ms = _when(rng)
            crash, back = Crash(0, at_ms=at_ms, lose=rng.choice(LOSSES)), rng.uniform(100, 400)
            faults = [crash, Boot(0, at_ms=at_ms + back)]
        faults.append(
            CrashOfWhoSays(
                says,
                steps=rng.randint(0, 1 if says in AGREEING else 12),
                at_ms=FORMED_MS,
                until_ms=FORMED_MS + CHURN_MS,
                lose=rng.choice(LOSSES),
                back_ms=rng.choice((None, 20.0, 200.0)),
            )
        )
    return faults


def _cuts(rng: Random, hosts: int) -> list[ClusterFault]:
    """Partitions into two or three sides, each healed, or replaced by the next."""
    faults: list[ClusterFault] = []
    for _ in range(rng.choice((0, 1, 1, 2))):
        order, at_ms = rng.sample(range(hosts), hosts), _when(rng)
        first = rng.randint(1, hosts - 1)
        sides = [tuple(order[:first])]
        if rng.random() < 0.3:
            sides.append(tuple(order[first : rng.randint(first, hosts)]))
        faults.append(PartitionHosts(tuple(sides), at_ms=at_ms))
        faults.append(Heal(at_ms=at_ms + rng.choice((30, 100, 300, 600)) * rng.uniform(0.5, 1.5)))
    if rng.random() < 0.5:
        faults.append(
            CutOfWhoSays(
                rng.choice(AGREEING),
                at_ms=FORMED_MS,
                until_ms=FORMED_MS + CHURN_MS,
                lose=rng.choice(LOSSES),
                heal_ms=rng.uniform(50, 500),
            )
        )
    return faults


def _when(rng: Random, near: list[float] | None = None) -> float:
    if near and rng.random() < 0.5:
        return rng.choice(near) + rng.uniform(-5, 260)  # before it is known, or just after
    return rng.uniform(FORMED_MS * 0.7, FORMED_MS + CHURN_MS)
