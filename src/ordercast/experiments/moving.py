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
from ordercast.membership.options import ClusterOptions
from ordercast.protocols.registry import PROTOCOLS
from ordercast.protocols.sequencing.headers import Request, Spread
from ordercast.reliability.link import Linked
from ordercast.simulation.agenda import TICKS_PER_MS
from ordercast.simulation.clustered import ClusterConfig, ClusterSimulation
from ordercast.simulation.config import SimulationConfig
from ordercast.simulation.log import Sent, TraceLog
from ordercast.simulation.payload import unpack
from ordercast.simulation.placing import MoveGroup
from ordercast.views.headers import Install, Installed, Plan, Ready, Report, Stop

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
        self.asked: set[Message] = set()
        self.repeated: Counter[Message] = Counter()

    def __call__(self, packet: Receive) -> Receive:
        """A packet of a change, or a request that is asked for again after it."""
        header = packet.header.header if isinstance(packet.header, Linked) else packet.header
        if isinstance(header, Stop | Report | Plan | Ready | Install | Installed):
            self.bytes += len(msgspec.msgpack.encode(header))
        elif isinstance(header, Request | Spread):
            message = (packet.group, packet.src, header.n)
            if message in self.asked:
                self.repeated[message] += 1
            self.asked.add(message)
        return packet


class BeginCounting(msgspec.Struct, frozen=True):
    """All groups have formed, and are at the first sequencer: what is said from now on counts."""

    seen: HandOvers
    at_ms: float

    def apply(self, simulation: ClusterSimulation) -> None:
        """Forget what was said before."""
        self.seen.bytes = 0


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
        faults=(
            BeginCounting(seen, at_ms=BEGIN_MS),
            *(
                MoveGroup(g, hosts[k % len(hosts)], at_ms=at_ms)
                for k, at_ms in enumerate(times)
                for g in range(1, run.groups + 1)
            ),
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
    again: list[int] = []
    for p, tick, row in log.rows():
        if isinstance(row, Sent):
            sent[row.group, p, row.number] = tick
        elif type(row) is tuple:
            group, sender, _, _, payload = row
            message = (group, sender, unpack(payload)[0])
            delays = again if message in seen.repeated else straight
            delays.append(tick - sent[message])
    after = {
        message: sent[message] / TICKS_PER_MS - times[_move_of(sent[message], times)]
        for message in seen.repeated
    }
    each = Counter((m[1], _move_of(sent[m], times)) for m in seen.repeated)
    return {
        "change_bytes": seen.bytes,
        "repeated": sum(seen.repeated.values()),
        "repeated_most": max(each.values(), default=0),
        "repeated_until_ms": max(after.values(), default=None),
        "repeated_delay_ms": median(again) / TICKS_PER_MS if again else None,
        "other_delay_ms": median(straight) / TICKS_PER_MS,
    }


def _move_of(tick: int, times: list[float]) -> int:
    """The move that was nearest when this was sent."""
    at_ms = tick / TICKS_PER_MS
    return sum(at_ms > (a + b) / 2 for a, b in pairwise(times))
