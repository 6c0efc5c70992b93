"""Which part of the waiting was needless: after all that a message depends on had been delivered.

What a message depends on is taken from what the applications did, not from any header: all that
its sender had sent and delivered before. Where the order of the protocol is FIFO, what the sender
had sent before; where its scope is one group, inside that group only. A message that has come to a
process waits for good reason until the last of these that is owed to the process is delivered
there. What it waits beyond that is needless for this order. A total order waits beyond it by its
nature: there the figure is what agreeing on one order costs.

Members of one group only are also told apart: 004 says that they do not pay for the overlap.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ordercast.core.declaration import Declaration
from ordercast.core.ids import GroupId, ProcessId
from ordercast.simulation.agenda import TICK_US
from ordercast.simulation.log import NAMES, Sent, TraceLog, Weighed
from ordercast.simulation.payload import unpack
from ordercast.trace.watch import Observed

Line = tuple[GroupId, ProcessId]
"""The messages of one sender to one group."""

Past = dict[Line, int]
"""How many messages of each line, from the first."""


class Waiting(msgspec.Struct):
    """Of all messages of others at some processes together. Times are in ticks."""

    copies: int = 0  # messages that came, each at each process
    waits: int = 0  # ... and waited
    needless_waits: int = 0  # ... longer than they had to
    held: int = 0
    needless: int = 0

    def add(self, waited: int, beyond: int) -> None:
        """One more that waited so long, and so long beyond what it had to."""
        self.copies += 1
        self.waits += waited > 0
        self.needless_waits += beyond > 0
        self.held += waited
        self.needless += beyond

    @property
    def needless_ms(self) -> float:
        """What was longer than it had to be."""
        return self.needless * TICK_US / 1000

    @property
    def share(self) -> float:
        """The needless part of the waiting time."""
        return self.needless / self.held if self.held else 0.0

    @property
    def mean_ms(self) -> float | None:
        """The waiting time of a message, also of those that did not wait."""
        return self.held * TICK_US / 1000 / self.copies if self.copies else None


class _Onlooker:
    """Follows a log, and knows what every message depends on."""

    def __init__(
        self, declared: Declaration, groups_of: Mapping[ProcessId, tuple[int, ...]]
    ) -> None:
        self.fifo = declared.order == "fifo"
        self.in_group = declared.scope == "group"
        self.groups_of = groups_of
        self.past: dict[ProcessId, Past] = {p: {} for p in groups_of}
        self.sent: dict[ProcessId, Past] = {p: {} for p in groups_of}
        self.needs: dict[tuple[Line, int], Past] = {}
        self.arrived: dict[tuple[ProcessId, Line, int], int] = {}
        # per process and line: until when its first n messages were delivered, for n = 1, 2, ...
        self.done: dict[tuple[ProcessId, Line], list[int]] = {}
        self.early: dict[tuple[ProcessId, Line], dict[int, int]] = {}  # those after a gap
        self.everywhere, self.single = Waiting(), Waiting()

    def sends(self, p: ProcessId, g: GroupId, number: int) -> None:
        line = (g, p)
        source = self.sent[p] if self.fifo else self.past[p]
        self.needs[line, number] = {
            other: n for other, n in source.items() if not self.in_group or other[0] == g
        }
        self.sent[p][line] = self.past[p][line] = number

    def delivers(self, p: ProcessId, tick: int, g: GroupId, sender: ProcessId, number: int) -> None:
        line = (g, sender)
        needs = self.needs.get((line, number), {})
        came = self.arrived.get((p, line, number))
        if sender != p and came is not None:
            self._came(p, came, tick, needs)
        past = self.past[p]
        for other, n in needs.items():
            if past.get(other, 0) < n:
                past[other] = n
        past[line] = max(past.get(line, 0), number)
        self._note(p, tick, line, number)

    def _came(self, p: ProcessId, came: int, tick: int, needs: Past) -> None:
        beyond = 0
        if came < tick:
            until = max((self._done(p, line, n) for line, n in needs.items()), default=0)
            beyond = tick - max(came, min(until, tick))
        self.everywhere.add(tick - came, beyond)
        if len(self.groups_of[p]) == 1:
            self.single.add(tick - came, beyond)

    def _done(self, p: ProcessId, line: Line, n: int) -> int:
        """When the first n messages of the line were all delivered here; 0 if they are not owed."""
        if line[0] not in self.groups_of[p]:
            return 0
        ticks = self.done.get((p, line), ())
        return ticks[n - 1] if n <= len(ticks) else 0

    def _note(self, p: ProcessId, tick: int, line: Line, number: int) -> None:
        done = self.done.setdefault((p, line), [])
        early = self.early.setdefault((p, line), {})
        early[number] = tick
        while (tick_of := early.pop(len(done) + 1, None)) is not None:
            done.append(max(tick_of, done[-1] if done else 0))


def waiting_of(
    log: TraceLog, declared: Declaration, groups_of: Mapping[ProcessId, tuple[GroupId, ...]]
) -> tuple[Waiting, Waiting]:
    """What was waited in a run, of a log at protocol level: of all, and of those in one group."""
    onlooker = _Onlooker(declared, groups_of)
    lines = {(NAMES.group(g), NAMES.process(p)): (g, p) for p in groups_of for g in groups_of[p]}
    for p, tick, row in log.rows():
        if isinstance(row, Sent):
            onlooker.sends(p, row.group, row.number)
        elif isinstance(row, Observed):
            if row.count and row.kind in ("receive", "hold"):
                line = lines[row.group, row.sender]
                onlooker.arrived.setdefault((p, line, row.first), tick)
        elif type(row) is tuple or isinstance(row, Weighed):
            g, sender, _, _, payload = row.delivery if isinstance(row, Weighed) else row
            onlooker.delivers(p, tick, g, sender, unpack(payload)[0])
    return onlooker.everywhere, onlooker.single
