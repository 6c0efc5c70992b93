"""What a hand-over of a group costs: bodies travel along, or stay behind. By simulation.

Four members of a group have sent and delivered messages that none of them has acknowledged yet, so
that all are unstable. They go on sending while the group moves from one sequencer to another; both
are in no group. A cluster as it is, with its links; work costs what a calibration says
(`ordercast calibrate`), and a byte of a body, if asked for, what a network of 1 Gbit/s takes.

    python -m bench.transfer --costs costs.json
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from random import Random
from statistics import median

import msgspec

from ordercast.cli.calibrate import calibrated
from ordercast.core.events import Receive
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import Options
from ordercast.membership.placing_headers import Inherit, InheritEntry, InheritLeft
from ordercast.membership.standing import ClusterOptions
from ordercast.protocols.registry import PROTOCOLS
from ordercast.protocols.sequencing.headers import FetchFor
from ordercast.simulation import Constant, CostModel, GroupConfig, Workload, read_costs
from ordercast.simulation.agenda import TICKS_PER_MS
from ordercast.simulation.clustered import (
    ClusterConfig,
    ClusterOutcome,
    ClusterSimulation,
    simulate_cluster,
)
from ordercast.simulation.log import Sent
from ordercast.simulation.network import NetworkModel
from ordercast.simulation.payload import unpack
from ordercast.simulation.placing import MoveGroup
from ordercast.simulation.workload import Planned
from sweep.ambush import inner

MEMBERS = (0, 1, 2, 3)
SOURCE, DESTINATION = 4, 5
BODIES = (64, 512, 4096)
SIZES = (100, 1_000, 10_000)
LINK_US = 100.0
GIGABIT_US = 0.004  # a byte, at either end: here a packet leaves when its last byte is written
FORMED_MS, BEGIN_MS = 400, 600  # the cluster is there; the group is at its first sequencer
APART_MS = 0.1  # between two messages before the move
AROUND_MS, EASY_MS = 10, 0.2  # so long before and after the move; between two messages there
PATIENT = Options(  # nobody acknowledges anything before the group has moved
    ack_every=1_000_000, ack_delay_ms=60_000, status_ms=2_000, retry_ms=1_500, gap_ms=20
)
LOSSY_MS = (-20, 30)  # packets are lost from before the move until after it


class Before(Workload, frozen=True, kw_only=True):
    """So many messages in turn, and then some more at an easy pace."""

    bodies: int

    def plan(
        self, messages: int, groups_of: Mapping[ProcessId, tuple[GroupId, ...]], rng: Random
    ) -> list[Planned]:
        """The group moves in the middle of the easy part."""
        times = [BEGIN_MS + k * APART_MS for k in range(self.at_first)]
        first = BEGIN_MS + self.at_first * APART_MS
        times += [first + k * EASY_MS for k in range(round(2 * AROUND_MS / EASY_MS))]
        return [
            Planned(round(ms * TICKS_PER_MS), MEMBERS[k % len(MEMBERS)], (1,))
            for k, ms in enumerate(times)
        ]

    @property
    def move_ms(self) -> float:
        """When the group is to move."""
        return BEGIN_MS + self.at_first * APART_MS + AROUND_MS - EASY_MS

    @property
    def at_first(self) -> int:
        """Messages before the easy part."""
        return max(0, self.bodies - round(AROUND_MS / EASY_MS))


class Loss(msgspec.Struct, frozen=True):
    """From now on the network loses this share of the packets."""

    share: float
    at_ms: float

    def apply(self, simulation: ClusterSimulation) -> None:
        """What is drawn for packets to come is void."""
        medium = simulation.medium
        medium.model = msgspec.structs.replace(medium.model, loss=self.share)
        medium.fates, medium.next_fate = [], 0


class Seen:
    """Counts what a hand-over sends, once for each destination."""

    def __init__(self) -> None:
        self.entries = 0  # of the last book
        self.bytes = 0  # headers and bodies
        self.forwarded = 0

    def __call__(self, packet: Receive) -> Receive:
        """Look at a packet, and let it pass."""
        header = inner(packet.header)
        if isinstance(header, Inherit) and header.state.N:
            self.entries = header.state.entries
        if isinstance(header, Inherit | InheritEntry | InheritLeft) and self.entries:
            self.bytes += len(msgspec.msgpack.encode(header)) + len(packet.payload)
        self.forwarded += isinstance(header, FetchFor)
        return packet


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """One number and size of bodies, one way."""

    bodies: int
    size: int
    stay: bool
    entries: int  # of the book
    bytes: int  # that the hand-over sent
    usual_ms: float  # from a message to its own delivery, before the move
    pause_ms: float  # the longest of them around the move, beyond that
    gigabit_pause_ms: float  # the same where a byte takes its time on the network
    forwarded: int  # FETCHes, where packets are lost


def config_of(
    workload: Before, costs: CostModel, seen: Seen, *, stay: bool, loss: float = 0.0
) -> ClusterConfig:
    """One run."""
    return ClusterConfig(
        protocol=PROTOCOLS["sequencing"],
        hosts=6,
        groups=(GroupConfig(members=MEMBERS),),
        workload=workload,
        network=NetworkModel(delay=Constant(LINK_US), fifo=True, transform=seen),
        faults=(
            MoveGroup(1, SOURCE, at_ms=FORMED_MS),
            Loss(loss, at_ms=workload.move_ms + LOSSY_MS[0]),
            Loss(0.0, at_ms=workload.move_ms + LOSSY_MS[1]),
            MoveGroup(1, DESTINATION, at_ms=workload.move_ms),
        ),
        options=msgspec.structs.replace(PATIENT, bodies_stay=stay),
        cluster=ClusterOptions(heartbeat_ms=50, suspect_ms=2_000, balance=False),
        costs=costs,
        until_ms=workload.move_ms + 20_000,
        rest_ms=4_000,  # longer than any timer
    )


def waits(outcome: ClusterOutcome, move_ms: float) -> tuple[float, float]:
    """How long senders wait for their own messages: usually, and at most around the move, in ms."""
    sent: dict[tuple[ProcessId, int], int] = {}
    before, around = [], []
    for p, tick, row in outcome.log.rows():
        if isinstance(row, Sent):
            sent[p, row.number] = tick
        elif type(row) is tuple and row[1] == p:
            began = sent[p, unpack(row[4])[0]]
            took = (tick - began) / TICKS_PER_MS
            began_ms = began / TICKS_PER_MS - move_ms
            if -AROUND_MS < began_ms < -AROUND_MS / 2:
                before.append(took)
            elif began_ms >= -AROUND_MS / 2:
                around.append(took)
    return median(before), max(around)


def measure(bodies: int, size: int, costs: CostModel, loss: float, *, stay: bool) -> Measured:
    """Three runs: as calibrated, with a slower network, and with loss."""
    workload = Before(bodies=bodies, size=size, reply=0.0)
    seen, lossy = Seen(), Seen()
    outcome = simulate_cluster(config_of(workload, costs, seen, stay=stay))
    usual, longest = waits(outcome, workload.move_ms)
    slow = msgspec.structs.replace(costs, byte_us=costs.byte_us + GIGABIT_US)
    gigabit = simulate_cluster(config_of(workload, slow, Seen(), stay=stay))
    gigabit_usual, gigabit_longest = waits(gigabit, workload.move_ms)
    with_loss = simulate_cluster(config_of(workload, costs, lossy, stay=stay, loss=loss))
    for each in (outcome, gigabit, with_loss):
        assert each.quiescent, each.ended
        assert not each.statistics.faults, each.first_faults
    return Measured(
        bodies=bodies,
        size=size,
        stay=stay,
        entries=seen.entries,
        bytes=seen.bytes,
        usual_ms=round(usual, 3),
        pause_ms=round(longest - usual, 3),
        gigabit_pause_ms=round(gigabit_longest - gigabit_usual, 3),
        forwarded=lossy.forwarded,
    )


def table(found: list[Measured]) -> str:
    """As Markdown, both ways side by side."""
    lines = [
        "| bodies | size | bytes moved | pause | pause at 1 Gbit/s | FETCHes forwarded |",
        "|---|---|---|---|---|---|",
    ]
    for travel, stay in zip(found[::2], found[1::2], strict=True):
        cells = [
            f"{travel.entries:,}",
            f"{travel.size:,} B",
            f"{travel.bytes:,} / {stay.bytes:,}",
            f"{travel.pause_ms:.2f} / {stay.pause_ms:.2f} ms",
            f"{travel.gigabit_pause_ms:.2f} / {stay.gigabit_pause_ms:.2f} ms",
            f"{stay.forwarded}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """All numbers and sizes, both ways."""
    options = argparse.ArgumentParser(prog="python -m bench.transfer", description=__doc__)
    options.add_argument("--bodies", type=int, nargs="+", default=BODIES)
    options.add_argument("--size", type=int, nargs="+", default=SIZES, help="bytes")
    options.add_argument("--loss", type=float, default=0.05, help="where FETCHes are counted")
    options.add_argument("--costs", type=Path, help="a calibration; else one is made")
    options.add_argument("--out", type=Path, default=Path("out/transfer"))
    asked = options.parse_args()
    file = asked.costs or asked.out / "costs.json"
    if asked.costs is None and not file.exists():
        calibrated(["sequencing"]).write(file)
    found = []
    for bodies, size, stay in product(asked.bodies, asked.size, (False, True)):
        found.append(measure(bodies, size, read_costs(file), asked.loss, stay=stay))
        print(msgspec.json.encode(found[-1]).decode(), flush=True)
    asked.out.mkdir(parents=True, exist_ok=True)
    (asked.out / "transfer.json").write_bytes(msgspec.json.format(msgspec.json.encode(found)))
    print(table(found))


if __name__ == "__main__":
    main()
