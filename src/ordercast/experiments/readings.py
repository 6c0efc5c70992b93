"""What is read off the log of a run: packets, header bytes, waiting times. One pass, no Spark.

Packets and waiting are told by a log at protocol level only. They are counted where they arrive.
"""

from __future__ import annotations

from collections import Counter

import msgspec

from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.output import Delivery
from ordercast.simulation.agenda import TICK_US
from ordercast.simulation.log import NAMES, TraceLog, Weighed
from ordercast.simulation.payload import unpack
from ordercast.simulation.performance import percentile
from ordercast.trace.watch import Observed

Copy = tuple[ProcessId, str, str, int]
"""A message at a process: (process, group, sender, number), as its log names them."""


class Readings(msgspec.Struct, kw_only=True):
    """Of one run."""

    packets_received: int = 0
    header_bytes: int = 0  # of them, of whatever kind
    packet_kinds: dict[str, int] = {}  # received, by the kind of their header
    remarks: dict[str, int] = {}  # of the protocol: "retransmit", "nack", "null", ...
    brought: int = 0  # deliveries that a packet brought ...
    brought_bytes: int = 0  # ... with so many header bytes
    held_ticks: list[int] = []  # from arrival to delivery of others' messages, ascending

    @property
    def waited(self) -> int:
        """Deliveries of messages that had to wait."""
        return sum(ticks > 0 for ticks in self.held_ticks)

    def held_ms(self, share: float) -> float:
        """The waiting time that this share of deliveries does not exceed."""
        return percentile(self.held_ticks, share) * TICK_US / 1000

    @property
    def held_mean_ms(self) -> float:
        """Over all deliveries of others' messages, those that did not wait too."""
        return sum(self.held_ticks) * TICK_US / max(len(self.held_ticks), 1) / 1000


class _Reader:
    def __init__(self) -> None:
        self.found = Readings()
        self.kinds: Counter[str] = Counter()
        self.remarks: Counter[str] = Counter()
        self.arrived: dict[Copy, int] = {}  # the tick at which a copy came
        self.names: dict[ProcessId, str] = {}
        self.groups: dict[GroupId, str] = {}

    def observed(self, p: ProcessId, tick: int, row: Observed) -> None:
        found = self.found
        if row.kind == "receive":
            found.packets_received += 1
            found.header_bytes += row.overhead
            self.kinds[row.note.partition(" ")[0]] += 1
        elif row.kind != "hold":
            self.remarks[row.kind] += 1
            return
        if row.count:
            self.arrived.setdefault((p, row.group, row.sender, row.first), tick)

    def delivered(self, p: ProcessId, tick: int, row: Delivery | Weighed) -> None:
        if isinstance(row, Weighed):
            self.found.brought += 1
            self.found.brought_bytes += row.overhead
            row = row.delivery
        g, sender, _, _, payload = row
        if sender == p:
            return
        if sender not in self.names:
            self.names[sender] = NAMES.process(sender)
        if g not in self.groups:
            self.groups[g] = NAMES.group(g)
        came = self.arrived.get((p, self.groups[g], self.names[sender], unpack(payload)[0]))
        if came is not None:
            self.found.held_ticks.append(tick - came)


def readings_of(log: TraceLog) -> Readings:
    """What this log tells."""
    reader = _Reader()
    for p, tick, *rows in log.records:
        for row in rows:
            if isinstance(row, Observed):
                reader.observed(p, tick, row)
            elif type(row) is tuple or isinstance(row, Weighed):
                reader.delivered(p, tick, row)
    found = reader.found
    found.packet_kinds = dict(sorted(reader.kinds.items()))
    found.remarks = dict(sorted(reader.remarks.items()))
    found.held_ticks.sort()
    return found
