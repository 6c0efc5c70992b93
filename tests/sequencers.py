"""The sequencing service on a bench: several groups, several sequencers, hand-overs by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from machines import Bench, Packet
from ordercast.core.events import Change, Multicast, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import Options
from ordercast.protocols.sequencing.headers import AcceptIn
from ordercast.protocols.sequencing.part import GroupPart
from ordercast.protocols.sequencing.service import HandedOver, SequencingService

Placed = Mapping[GroupId, tuple[tuple[ProcessId, ...], ProcessId]]  # members, and who numbers
Guests = Mapping[GroupId, tuple[ProcessId, ...]]

AT_ONCE = Options(resilience=0)  # a frame leaves for another group without waiting for a holder
S, T = 8, 9  # sequencers that are in no group


class Served(Bench):
    """One machine per process serves all its groups."""

    def __init__(
        self,
        protocol: type[SequencingService],
        groups: Placed,
        *,
        guests: Guests | None = None,
        others: tuple[ProcessId, ...] = (),
        options: Options = AT_ONCE,
    ) -> None:
        guests = guests or {}
        views = [
            View(g, 1, members, leader, guests=tuple(guests.get(g, ())))
            for g, (members, leader) in groups.items()
        ]
        everybody = sorted({p for view in views for p in view.peers} | set(others))
        self.services = {p: protocol(p, options) for p in everybody}
        super().__init__(dict(self.services))
        for view in views:
            for p in dict.fromkeys((view.leader, *view.members, *view.guests)):
                self.step(p, view)

    def part(self, p: ProcessId, g: GroupId) -> GroupPart:
        return self.services[p].part(g)

    def tell(self, p: ProcessId, g: GroupId, *texts: str) -> None:
        """The application at p multicasts to g, one step per message."""
        for text in texts:
            self.step(p, Multicast(g, text.encode()))

    def context(self, text: str) -> dict[GroupId, int]:
        """What this message comes after, as its ACCEPT says that is under way."""
        header = self.find(header=AcceptIn, text=text)[0].header
        assert isinstance(header, AcceptIn)
        return dict(header.context)

    def of_group(self, g: GroupId, *args: object, **looks: object) -> list[Packet]:
        """Packets of this group under way that look like this."""
        return [p for p in self.find(*args, **looks) if p.receive.group == g]  # type: ignore[arg-type]

    # -- what a coordinator does ------------------------------------------------------------------

    def change(self, sequencer: ProcessId, change: Change) -> None:
        """Members come and go. Who comes has asked for it."""
        for p in (*change.joined, *change.guests):
            self.open(p, change.group)
        self.step(sequencer, change)

    def open(self, p: ProcessId, g: GroupId) -> None:
        """p asks to be let in."""
        self.services[p].left_in.setdefault(g, (0, 0))

    def move(self, g: GroupId, source: ProcessId, to: ProcessId) -> None:
        """The whole hand-over of one group, with nothing in between."""
        book = self.freeze(g, source, to)
        self.succeed(g, to, book)
        self.tell_moved(g, source)

    def freeze(self, g: GroupId, source: ProcessId, to: ProcessId) -> HandedOver:
        """The source stops, and gives everything away."""
        return self.freeze_all((g,), source, to)[g]

    def freeze_all(
        self, groups: Iterable[GroupId], source: ProcessId, to: ProcessId
    ) -> dict[GroupId, HandedOver]:
        """The same for groups that must be together."""
        machine = self.services[source]
        machine.out.clear()
        books = machine.hand_over(groups, to)
        self.carry_out(source, machine.out)
        return books

    def succeed(self, g: GroupId, to: ProcessId, handed: HandedOver) -> None:
        """The destination has everything."""
        self.succeed_all(to, {g: handed})

    def succeed_all(self, to: ProcessId, books: Mapping[GroupId, HandedOver]) -> None:
        """The same for groups that must be together."""
        machine = self.services[to]
        machine.out.clear()
        machine.succeed(books)
        self.carry_out(to, machine.out)

    def tell_moved(self, g: GroupId, source: ProcessId) -> None:
        """The source knows that the destination has everything."""
        machine = self.services[source]
        machine.out.clear()
        self.part(source, g).tell_moved(g)
        self.carry_out(source, machine.out)
