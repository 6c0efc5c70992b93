"""Runs in which groups change their sequencer while messages flow: a whole cluster, with its links.

All groups are numbered by the first sequencer when the messages begin. At times that divide the run
evenly they go to the next one.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from statistics import median
from typing import Any

import msgspec

from ordercast.core.events import Receive
from ordercast.core.ids import GroupId, ProcessId
from ordercast.errors import ConfigError
from ordercast.experiments.coordinates import Coordinates
from ordercast.membership.placing_headers import Inherit, InheritEntry, InheritLeft
from ordercast.membership.standing import ClusterOptions
from ordercast.protocols.registry import PROTOCOLS
from ordercast.protocols.sequencing.headers import Forwarded
from ordercast.reliability.link import Linked
from ordercast.simulation.agenda import TICKS_PER_MS
from ordercast.simulation.clustered import ClusterConfig
from ordercast.simulation.config import SimulationConfig
from ordercast.simulation.log import Sent, TraceLog
from ordercast.simulation.payload import unpack
from ordercast.simulation.placing import MoveGroup

FORMED_MS, BEGIN_MS = 400, 600  # all are in their groups; these are at the first sequencer
REST_MS, AT_MOST_MS = 1000, 60_000  # after the last message
CALM = ClusterOptions(heartbeat_ms=50, suspect_ms=2_000, balance=False)

Message = tuple[GroupId, ProcessId, int]
"""Group, sender, number."""


def check_moves(run: Coordinates) -> None:
    """`ConfigError` for a run in which nothing can move."""
    if PROTOCOLS[run.protocol].together is None or run.sequencers < 2:
        raise ConfigError(
            f"moves = {run.moves} with protocol = {run.protocol!r} and sequencers = "
            f"{run.sequencers}: groups of the sequencing service move, between 2 sequencers or more"
        )
    if run.workload != "paced" or run.window or run.crashes:
        raise ConfigError(
            f"moves = {run.moves}: then workload = 'paced', window = 0 and crashes = 0"
        )


def moves_ms(run: Coordinates) -> list[float]:
    """When the groups are told to move."""
    lasts = run.messages / run.burst * run.every_us / 1000
    return [BEGIN_MS + lasts * k / (run.moves + 1) for k in range(1, run.moves + 1)]


class HandOvers:
    """Looks at every packet as it is sent, and lets it pass."""

    def __init__(self) -> None:
        self.bytes = 0
        self.forwarded: Counter[Message] = Counter()

    def __call__(self, packet: Receive) -> Receive:
        """A book or a part of it, or a request that goes on to the next sequencer."""
        header = packet.header.header if isinstance(packet.header, Linked) else packet.header
        if isinstance(header, Inherit | InheritEntry | InheritLeft):
            self.bytes += len(msgspec.msgpack.encode(header)) + len(packet.payload)
        elif isinstance(header, Forwarded):
            self.forwarded[packet.group, header.origin, header.n] += 1
        return packet


def clustered(run: Coordinates, plain: SimulationConfig, seen: HandOvers) -> ClusterConfig:
    """The same run as a cluster in which groups move."""
    hosts = range(run.members, run.members + run.sequencers)
    times = [FORMED_MS, *moves_ms(run)]
    return ClusterConfig(
        protocol=PROTOCOLS[run.protocol],
        hosts=plain.members,
        groups=tuple(msgspec.structs.replace(group, leader=None) for group in plain.groups),
        messages=plain.messages,
        workload=msgspec.structs.replace(plain.workload, start_ms=BEGIN_MS),
        network=msgspec.structs.replace(plain.network, transform=seen),
        faults=tuple(
            MoveGroup(g, hosts[k % len(hosts)], at_ms=at_ms)
            for k, at_ms in enumerate(times)
            for g in range(1, run.groups + 1)
        ),
        seed=plain.seed,
        options=plain.options,
        cluster=CALM,
        costs=plain.costs,
        until_ms=times[-1] + 2 * (times[-1] - BEGIN_MS) + AT_MOST_MS,
        rest_ms=REST_MS,
    )


def figures_of_moves(run: Coordinates, seen: HandOvers, log: TraceLog) -> dict[str, Any]:
    """What the moves cost, and whom."""
    times = moves_ms(run)
    sent: dict[Message, int] = {}
    straight: list[int] = []
    detours: list[int] = []
    for p, tick, row in log.rows():
        if isinstance(row, Sent):
            sent[row.group, p, row.number] = tick
        elif type(row) is tuple:
            group, sender, _, _, payload = row
            message = (group, sender, unpack(payload)[0])
            delays = detours if message in seen.forwarded else straight
            delays.append(tick - sent[message])
    after = {
        message: sent[message] / TICKS_PER_MS - times[_move_of(sent[message], times)]
        for message in seen.forwarded
    }
    each = Counter((m[1], _move_of(sent[m], times)) for m in seen.forwarded)
    return {
        "handed_bytes": seen.bytes,
        "forwarded": sum(seen.forwarded.values()),
        "forwarded_most": max(each.values(), default=0),
        "forwarded_until_ms": max(after.values(), default=None),
        "forwarded_delay_ms": median(detours) / TICKS_PER_MS if detours else None,
        "other_delay_ms": median(straight) / TICKS_PER_MS,
    }


def _move_of(tick: int, times: list[float]) -> int:
    """The move that was nearest when this was sent."""
    at_ms = tick / TICKS_PER_MS
    return sum(at_ms > (a + b) / 2 for a, b in pairwise(times))
