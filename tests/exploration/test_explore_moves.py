"""A hand-over in every order of arrival: two members, two sequencers, a few messages.

The explorer of the package knows no hand-overs. This one carries packets on a bench: the group is
frozen, taken over and told of at any three moments, in this order; between them packets arrive in
every order.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from faulty_machines.sequencing import TakesOverOneByOne
from machines import Packet
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.output import Output
from ordercast.core.state import canonical
from ordercast.machinery.sequencer_headers import Delivered, Status
from ordercast.protocols.sequencing.orders import Sequencing, SequencingHybrid
from ordercast.protocols.sequencing.service import HandedOver, SequencingService
from sequencers import S, Served, T

MEMBERS = (1, 2)
MOST_STATES = 10_000
Script = tuple[tuple[ProcessId, GroupId], ...]  # who says something, and where

ONE_GROUP: Script = ((1, 1), (2, 1))
IN_A_ROW: Script = ((1, 1), (1, 1))
TWO_GROUPS: Script = ((1, 1), (2, 2))


class Moment(Served):
    """The bench at one moment; it is copied before each thing that can happen."""

    def __init__(self, protocol: type[SequencingService], script: Script, to: ProcessId) -> None:
        self.script, self.to = script, to
        self.groups = tuple(sorted({g for _, g in script}))
        placed = dict.fromkeys(self.groups, (MEMBERS, S))
        super().__init__(protocol, placed, others=(to,))
        self.said = 0
        self.stage = 0  # not frozen, frozen, taken over, told
        self.books: dict[GroupId, HandedOver] = {}
        self.prints = {p: service.fingerprint() for p, service in self.services.items()}

    def copy(self, p: ProcessId) -> Moment:
        """A twin in which something is about to happen to p."""
        twin = object.__new__(Moment)
        twin.__dict__ = dict(self.__dict__)
        twin.services = {**self.services, p: self.services[p].copy()}
        twin.prints = {**self.prints, p: ""}
        twin.machines = dict(twin.services)
        twin.flight = list(self.flight)
        twin.log = {p: list(log) for p, log in self.log.items()}
        twin.timers = {p: {} for p in self.timers}  # nothing is lost: they need not fire
        twin.rows = type(self.rows)(list)
        twin.faults = list(self.faults)
        return twin

    def carry_out(self, p: ProcessId, out: Output) -> Output:
        super().carry_out(p, out)
        # Marks may be lost: nobody waits for them here.
        self.flight = [q for q in self.flight if not isinstance(q.header, Delivered | Status)]
        return out

    def key(self) -> tuple[object, ...]:
        """Equal for equal moments."""
        for p, known in self.prints.items():
            self.prints[p] = known or self.services[p].fingerprint()
        prints = tuple(self.prints.values())
        flight = tuple(sorted(repr((p.dst, canonical(p.receive))) for p in self.flight))
        logs = tuple(tuple(self.texts(p)) for p in MEMBERS)
        return prints, flight, logs, self.said, self.stage

    def follow(self) -> Iterator[Moment]:
        """All that can happen next."""
        for packet in dict.fromkeys(map(_known, self.flight)):
            twin = self.copy(packet.packet.dst)
            twin.arrive(packet.packet)
            yield twin
        if self.said < len(self.script):
            p, g = self.script[self.said]
            twin = self.copy(p)
            twin.said += 1
            twin.tell(p, g, f"m{twin.said}")
            yield twin
        if self.stage < 3:
            twin = self.copy(self.to if self.stage == 1 else S)
            twin.proceed()
            yield twin

    def proceed(self) -> None:
        """The hand-over goes on."""
        self.stage += 1
        if self.stage == 1:
            self.books = self.freeze_all(self.groups, S, self.to)
        elif self.stage == 2:
            self.succeed_all(self.to, self.books)
        else:
            for g in self.groups:
                self.tell_moved(g, S)

    def check_end(self) -> None:
        """Nothing more can happen."""
        texts = [self.texts(p) for p in MEMBERS]
        assert sorted(texts[0]) == [f"m{n + 1}" for n in range(len(self.script))], texts
        assert sorted(texts[1]) == sorted(texts[0]), texts
        if len(self.groups) == 1 or self.services[1].exact:
            assert texts[0] == texts[1]
        assert self.faults == []


class _known:
    """A packet that equals another of the same content."""

    def __init__(self, packet: Packet) -> None:
        self.packet = packet
        self.name = repr((packet.dst, canonical(packet.receive)))

    def __hash__(self) -> int:
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _known) and other.name == self.name


def explore(protocol: type[SequencingService], script: Script, to: ProcessId) -> int:
    """Every moment that can come is looked at once; how many there are."""
    first = Moment(protocol, script, to)
    known, todo = {first.key()}, [first]
    while todo:
        moment = todo.pop()
        following = list(moment.follow())
        if not following:
            moment.check_end()
        for twin in following:
            if (key := twin.key()) not in known:
                known.add(key)
                todo.append(twin)
        assert len(known) < MOST_STATES
    return len(known)


@pytest.mark.parametrize(
    ("protocol", "script", "to"),
    [
        (Sequencing, ONE_GROUP, T),
        (Sequencing, ONE_GROUP, 2),
        (Sequencing, IN_A_ROW, 2),
        (Sequencing, TWO_GROUPS, 2),
        (SequencingHybrid, ONE_GROUP, 2),
    ],
)
def test_whenever_a_group_is_handed_over_all_is_delivered_once_in_one_order(
    protocol: type[SequencingService], script: Script, to: ProcessId
) -> None:
    assert explore(protocol, script, to) > 300


def test_a_group_that_is_numbered_before_all_books_are_there_is_found_out() -> None:
    with pytest.raises(AssertionError):
        explore(TakesOverOneByOne, TWO_GROUPS, 2)
