"""A run that keeps every property, as a few arrays over its messages.

All messages have one place k in one total order. Message k is sent at the time 1000 k. Process q
delivers it at `delays(q)[k]`, a time that grows strictly with k and lies after its send: so the
order k is consistent with causality, and what q has delivered when it sends is a real past, with
other processes' messages in it. Where a view changes, everybody first delivers all that was sent.

Rows that no rule makes (views, joins, a crash, everything that belongs to a planted fault) are
`Extra` rows with a time of their own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from bench.traces.shape import Shape

STEP = 1000  # time between two sends
TICK = 10  # least time between two deliveries at one process; extra rows go in between
SLOTS = 9  # extra rows that fit between two deliveries
BURST = 64  # so many messages in a row are late by the same time
SHARE = 0.6  # of all processes that are in a group, g0 apart
OUTSIDERS = 0.05  # share of the messages to a declared group that come from anybody

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Stay:
    """`process` gets the messages with first <= k < stop."""

    process: int
    first: int
    stop: int


@dataclass
class Group:
    name: str
    stays: list[Stay] = field(default_factory=list)
    declared: list[int] | None = None  # the members that a `group` row names
    open: bool = False  # outsiders send to it too


@dataclass(frozen=True)
class Extra:
    """A row that is put into a log at `time`."""

    process: int
    time: int
    kind: str
    message: int = -1
    group: int = -1  # -1: that of the message, if there is one
    view: int | None = None
    members: tuple[int, ...] | None = None


class World:
    """One run, without faults until some are planted."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.rng = np.random.default_rng(shape.seed)
        self.processes = shape.processes
        self.names = [f"p{p}" for p in range(self.processes)]
        self.crashing, self.leaving = self.processes - 1, self.processes - 2
        self.lag = shape.lag  # the slowest process is about so many messages late
        self.span = self.lag + 3  # after so many messages everybody has delivered the first
        self.groups: list[Group] = []
        self.extras: list[Extra] = []
        self.dropped: set[tuple[int, int]] = set()  # deliveries (process, message) that fail
        self.regrouped: dict[tuple[int, int], int] = {}  # deliveries told in another group
        self.barriers: list[int] = []  # where everybody delivers all before going on
        self._found_groups()
        self.turns = self._turns()
        self._choose_senders()
        self.more_senders: list[int] = []  # of messages from `count` on, added by faults
        self.more_groups: list[int] = []

    @property
    def tail(self) -> int:
        """Places after the last regular message, for faults that nothing may follow."""
        return 8 * self.span

    @property
    def steady(self) -> range:
        """The processes that neither crash nor go away."""
        return range(self.processes - 2)

    # Groups and who is in them.

    def _found_groups(self) -> None:
        size = max(3, round(SHARE * self.processes))
        others = self.shape.groups - 1
        fan_out = (self.processes - 1 + others * size) / self.shape.groups  # one crashes early
        self.count = round(self.shape.events / (1 + fan_out))
        if self.count < 15 * self.span:
            least = round(15 * self.span * (1 + fan_out)) + 1
            raise ValueError(f"{self.shape.events} events are too few; at least {least} are needed")
        self.crash_at = self.count // 4 - 2 * self.span
        self._found_viewed()
        for number in range(1, self.shape.groups):
            members = sorted(self.rng.permutation(self.processes)[:size].tolist())
            if number % 2:
                self._found_declared(f"g{number}", members)
            else:
                self._found_joined(f"g{number}", members)

    def _found_viewed(self) -> None:
        """All; then without the crashed one; then one goes; then it comes back."""
        changes = [self.count * part // 4 for part in (1, 2, 3)]
        self.barriers += changes
        everybody = tuple(range(self.processes))
        survivors = everybody[:-1]
        lists = [everybody, survivors, survivors[:-1], survivors]
        for view, (members, at) in enumerate(zip(lists, [0, *changes], strict=True), start=1):
            for p in members:
                self._extra(p, at * STEP - 400, "view", group=0, view=view, members=members)
        self._extra(self.leaving, changes[1] * STEP - 400, "leave", group=0)
        stays = [Stay(p, 0, self.count) for p in everybody if p != self.leaving]
        stays += [Stay(self.leaving, 0, changes[1]), Stay(self.leaving, changes[2], self.count)]
        self.groups.append(Group("g0", stays))
        self._extra(self.crashing, self.crash_at * STEP + 300, "crash")

    def _found_declared(self, name: str, members: list[int]) -> None:
        stays = [Stay(p, 0, self.count) for p in members]
        self.groups.append(Group(name, stays, declared=members, open=True))

    def _found_joined(self, name: str, members: list[int]) -> None:
        """One joins later, one leaves before the end."""
        group = len(self.groups)
        joiner, leaver = members[0], members[1]
        join_at, leave_at = self.count * 3 // 8, self.count * 5 // 8
        stays = []
        for p in members:
            first = join_at if p == joiner else 0
            stays.append(Stay(p, first, leave_at if p == leaver else self.count))
            self._extra(p, first * STEP - 50, "join", group=group)
        self._extra(leaver, leave_at * STEP - 50, "leave", group=group)
        self.groups.append(Group(name, stays))

    def _extra(
        self,
        process: int,
        time: int,
        kind: str,
        group: int = -1,
        view: int | None = None,
        members: tuple[int, ...] | None = None,
    ) -> None:
        self.extras.append(Extra(process, time, kind, group=group, view=view, members=members))

    # Who sends what.

    def _turns(self) -> list[int]:
        """The places where somebody's membership changes, or somebody crashes."""
        stays = [stay for group in self.groups for stay in group.stays]
        places = {0, self.crash_at, self.count, *self.barriers}
        return sorted(places | {s.first for s in stays} | {s.stop for s in stays})

    def alive(self, place: int) -> list[int]:
        """The processes that have not crashed there."""
        return list(range(self.processes if place < self.crash_at else self.processes - 1))

    def members(self, group: int, place: int) -> list[int]:
        """Who is in the group and has not crashed there."""
        alive = set(self.alive(place))
        stays = self.groups[group].stays
        return [s.process for s in stays if s.first <= place < s.stop and s.process in alive]

    def _choose_senders(self) -> None:
        self.group = self.rng.integers(0, len(self.groups), self.count).astype(np.int16)
        self.sender = np.zeros(self.count, np.int16)
        for first, stop in pairwise(self.turns):
            for g, group in enumerate(self.groups):
                sent = first + np.flatnonzero(self.group[first:stop] == g)
                self.sender[sent] = self.rng.choice(self.members(g, first), len(sent))
                if group.open:
                    strange = sent[self.rng.random(len(sent)) < OUTSIDERS]
                    self.sender[strange] = self.rng.choice(self.alive(first), len(strange))

    def silence(self, quiet: Iterable[int], first: int, stop: int) -> None:
        """From `first` to `stop` only others send, and only to g0."""
        stop = min(stop, self.count)
        if first >= stop:
            return
        speakers = sorted(set(self.members(0, first)) - set(quiet))
        self.group[first:stop] = 0
        self.sender[first:stop] = self.rng.choice(speakers, stop - first)

    # When a process delivers.

    def delays(self, q: int) -> Ints:
        """The time at which q delivers each message, and would deliver those of the tail."""
        places = np.arange(self.count + self.tail, dtype=np.int64)
        rng = np.random.default_rng((self.shape.seed, q))
        bursts = rng.integers(0, 2 * STEP, len(places) // BURST + 1)
        late = int(rng.integers(1, self.lag + 1)) * STEP
        times = places * (STEP - TICK) + late + np.repeat(bursts, BURST)[: len(places)]
        times = np.maximum.accumulate(times) + places * TICK
        for barrier in self.barriers:
            near = slice(barrier - 2 * self.span, barrier)
            latest = barrier * STEP - STEP // 2 - TICK * (barrier - places[near])
            times[near] = np.minimum(times[near], latest)
        return times

    # Messages that faults add.

    def add_group(self, group: Group) -> int:
        self.groups.append(group)
        return len(self.groups) - 1

    def add_message(self, sender: int, group: int) -> int:
        self.more_senders.append(sender)
        self.more_groups.append(group)
        return self.count + len(self.more_senders) - 1
