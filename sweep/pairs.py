"""Features in pairs: clusters whose groups have different settings at the same nodes.

A covering array has every two settings that may meet in some row. A run takes two of its rows:

    group 1   the settings of one row                             all members
    group 2   the settings of another row                         all members but one
    group 3   the protocol of the first, the durability of the second, so that one machine serves
              groups of two kinds

What concerns whole nodes or the network is that of the first row. In every run there is traffic, a
join, a leave, a move of every group that can move, a crash, and a node that is cut off for a while.

A simulated process transfers no state, encodes no bodies, has no TLS or key, and no program that
reads one by one or in batches. These settings are paired with all others in live clusters:
`tests/runtime/test_runtime_pairs.py`.
"""

from __future__ import annotations

from functools import cache
from random import Random

from ordercast.core.protocol import Options, OrderingProtocol
from ordercast.core.whereabouts import Whereabouts
from ordercast.membership.options import ClusterOptions
from ordercast.protocols.registry import PROTOCOLS
from ordercast.simulation.clustered import (
    Boot,
    Calm,
    ClusterConfig,
    ClusterFault,
    Host,
    PartitionHosts,
)
from ordercast.simulation.config import GroupConfig
from ordercast.simulation.delays import Uniform
from ordercast.simulation.faults import Crash, Heal, Join, Leave, Visit
from ordercast.simulation.network import NetworkModel
from ordercast.simulation.placing import MoveGroup
from ordercast.simulation.workload import Workload
from sweep.covering import Row, covering_array

PARAMETERS = {
    "protocol": tuple(PROTOCOLS),
    "resilience": (None, 0, 1, 2),
    "uniform": (False, True),
    "guests": (False, True),  # a member of the other group sends to this one
    "open": (False, True),  # a node that is in no group sends to this one, and stops
    "delivery_level": (None, "causal", "preack", "ack"),
    "bodies_apart": (False, True),
    "sequencers": (0, 1, 2),  # nodes that are members of nothing
    "sites": (False, True),
    "network": ("connections", "datagrams", "lossy datagrams", "broadcasts"),
    "partition": ("primary", "merge"),
    "trace": ("application", "protocol"),
}

NETWORKS = {  # as live nodes have them: packets of the cluster travel on connections
    "connections": NetworkModel(fifo=True),
    "datagrams": NetworkModel(connections=True),
    "lossy datagrams": NetworkModel(loss=0.05, duplicate=0.05, connections=True),
    "broadcasts": NetworkModel(
        loss=0.02, broadcast=True, delay=Uniform(300, 2500), connections=True
    ),
}

MEMBERS: tuple[Host, ...] = (0, 1, 2, 3)
OUTSIDER: Host = 4  # in no group
FIRST_SEQUENCER: Host = 5

FORMED_MS = 200.0  # by then the first nodes are together
UNTIL_MS = 3600.0


def excluded(row: Row) -> bool:
    """Settings that a node refuses."""
    if row.get("uniform") and row.get("resilience") is not None:
        return True
    protocol = PROTOCOLS.get(row.get("protocol", ""))
    if protocol is None:
        return False
    if protocol.declaration.closed and (row.get("guests") or row.get("open")):
        return True
    return row.get("delivery_level") is not None and not protocol.has_subgroups


@cache
def rows() -> tuple[Row, ...]:
    """The covering array."""
    return tuple(covering_array(PARAMETERS, excluded))


@cache
def rows_of(protocol: str) -> tuple[int, ...]:
    """Where in the array it is."""
    return tuple(i for i, row in enumerate(rows()) if row["protocol"] == protocol)


def runs_of(protocol: type[OrderingProtocol]) -> int:
    """How many runs there are in which it orders the first group: with every other row beside."""
    return len(rows_of(protocol.declaration.name)) * (len(rows()) - 1)


def pairs(protocol: type[OrderingProtocol], seed: int) -> ClusterConfig:
    """The run of this number. The first of them have each row of the protocol once."""
    mine = rows_of(protocol.declaration.name)
    first = mine[seed % len(mine)]
    step = 1 + (seed // len(mine)) % (len(rows()) - 1)
    return config_of(first, (first + step) % len(rows()))


def config_of(first: int, second: int) -> ClusterConfig:
    """The run of two rows of the array."""
    one, other = rows()[first], rows()[second]
    rng = Random(f"pairs {first} {second}")
    protocols = (PROTOCOLS[one["protocol"]], PROTOCOLS[other["protocol"]])
    return ClusterConfig(
        protocol=protocols[0],
        hosts=FIRST_SEQUENCER + one["sequencers"],
        groups=_groups(one, other),
        sites=_sites(rng, one),
        sequencers=tuple(range(FIRST_SEQUENCER, FIRST_SEQUENCER + one["sequencers"])),
        messages=36,
        workload=Workload(every_us=24_000.0, burst=2, start_ms=int(FORMED_MS), reply=1.0, depth=2),
        network=NETWORKS[one["network"]],
        faults=_faults(rng, one, other),
        seed=first * len(rows()) + second,
        options=Options(
            retry_ms=20,
            gap_ms=20,
            status_ms=10,
            silence_ms=5,
            ack_delay_ms=2,
            bodies_apart=one["bodies_apart"],
        ),
        cluster=ClusterOptions(
            heartbeat_ms=40, suspect_ms=200, partition=one["partition"], refound_ms=400
        ),
        trace=one["trace"],
        until_ms=UNTIL_MS,
        rest_ms=250.0,
    )


def _groups(one: Row, other: Row) -> tuple[GroupConfig, ...]:
    outside = (OUTSIDER,)
    return (
        _group(one, MEMBERS, outside if one["open"] else ()),
        _group(other, (0, 1, 2), ((3,) if other["guests"] else ()) + outside * other["open"]),
        GroupConfig(
            members=(1, 2, 3),
            guests=(0,) if one["guests"] else (),
            protocol=one["protocol"],
            resilience=other["resilience"],
            uniform=other["uniform"],
            delivery_level=one["delivery_level"],
        ),
    )


def _group(row: Row, members: tuple[Host, ...], guests: tuple[Host, ...]) -> GroupConfig:
    return GroupConfig(
        members=members,
        guests=guests,
        protocol=row["protocol"],
        resilience=row["resilience"],
        uniform=row["uniform"],
        delivery_level=row["delivery_level"],
    )


def _sites(rng: Random, row: Row) -> tuple[Whereabouts, ...]:
    if not row["sites"]:
        return ()
    hosts = FIRST_SEQUENCER + row["sequencers"]
    return tuple(Whereabouts(("tokyo", "quito")[h % 2], rng.random() < 0.4) for h in range(hosts))


def _faults(rng: Random, one: Row, other: Row) -> tuple[ClusterFault, ...]:
    """One loss at a time: a resilience that nobody asked for must not be needed."""
    sequencers = range(FIRST_SEQUENCER, FIRST_SEQUENCER + one["sequencers"])
    dies = rng.choice((*MEMBERS[:3], *sequencers))
    moves_to = rng.choice((1, 2, *sequencers))
    faults: list[ClusterFault] = [
        *_comings(one, other),
        *(MoveGroup(g, moves_to, at_ms=FORMED_MS + 120.0) for g in _movable(one, other)),
        Crash(dies, at_ms=FORMED_MS + rng.uniform(160, 260), lose=rng.choice((0.0, 0.5, 1.0))),
        Boot(dies, at_ms=FORMED_MS + 420.0),
        PartitionHosts(((rng.choice((1, 2)),),), at_ms=FORMED_MS + 650.0),
        Heal(at_ms=FORMED_MS + 900.0),
        Calm(at_ms=FORMED_MS + 940.0),
    ]
    return tuple(faults)


def _comings(one: Row, other: Row) -> list[ClusterFault]:
    faults: list[ClusterFault] = []
    if other["guests"]:  # a guest stops before it may become a member
        faults.append(Leave(3, 2, at_ms=FORMED_MS + 60.0))
    faults.append(Join(3, 2, at_ms=FORMED_MS + 80.0))
    faults.append(Leave(2, 1, at_ms=FORMED_MS + 100.0))
    if one["guests"]:  # who has left a group still sends to it
        faults.append(Visit(2, 1, at_ms=FORMED_MS + 300.0))
    if one["open"]:
        faults.append(Leave(OUTSIDER, 1, at_ms=FORMED_MS + 400.0))
    return faults


def _movable(one: Row, other: Row) -> list[int]:
    """Groups that can be numbered by another node."""
    of = {1: one["protocol"], 2: other["protocol"]}
    return [g for g, name in of.items() if PROTOCOLS[name].together is not None]
