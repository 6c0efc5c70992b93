"""A change at one process: how eras of some groups end, and the next ones begin.

    stop       requests are void from now on
    report     what is held here of an era that ends; nothing above it is taken up any more
    prepare    fetch what is missing up to the end; a joiner opens its seat
    change     per group: own frames that have a number are safe, the seat goes on in the next era
               behind a marker, the next sequencer gets a new book. Then groups that met a changed
               one are fenced, and own frames without a number are repeated

The packets of a change are in `ordercast.views`; where eras end is decided in `settling`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from ordercast.core.changing import Head, Held, NextEra, NumbersEnd, NumbersHeld
from ordercast.core.events import View
from ordercast.core.ids import GroupId
from ordercast.errors import PeerError
from ordercast.protocols.sequencing.book import Book, Numbering
from ordercast.protocols.sequencing.delivery import Delivery
from ordercast.protocols.sequencing.member import Member
from ordercast.protocols.sequencing.outbox import Own
from ordercast.protocols.sequencing.part import Environment, Part
from ordercast.protocols.sequencing.seat import END, Entry, Marker, Stay
from ordercast.protocols.sequencing.sender import Sender
from ordercast.protocols.sequencing.sequencer import Sequencer


class EraChanges(Part):
    """What a change does to the sender, the member and the sequencer of one process."""

    lent = Part.lent | {"sender", "member", "delivery", "sequencer"}

    def __init__(self) -> None:
        self.taken_over = 0  # groups that another numbered before
        self.handed_on = 0  # groups that another numbers now

    def connect(
        self,
        env: Environment,
        sender: Sender,
        member: Member,
        delivery: Delivery,
        sequencer: Sequencer,
    ) -> None:
        """Lend it what it does not own."""
        self.share(env)
        self.sender = sender
        self.member = member
        self.delivery = delivery
        self.sequencer = sequencer

    # -- stop, report -----------------------------------------------------------------------------

    def stopped(self) -> Iterator[GroupId]:
        """Groups that are stopped here."""
        books, seats = self.sequencer.books, self.member.seats
        yield from (g for g, book in books.items() if book.numbering is Numbering.STOPPED)
        yield from (g for g, seat in seats.items() if seat.ceiling < END)

    def report(self, g: GroupId) -> Held | None:
        """What this process has of the era of g that ends; None: it has no part in it."""
        book, seat = self.sequencer.books.get(g), self.member.seat_in(g)
        if seat is not None and seat.era != self.views[g].era:
            seat = None
        if book is None and seat is None:
            return None
        if seat is not None:
            seat.freeze()
        heads = {} if seat is None else {head.N: head for head in seat.heads()}
        delivered = 0 if seat is None else seat.delivered
        if book is None:
            assert seat is not None
            return NumbersHeld(
                seat.era, seat.got, delivered, tuple(heads.values()), tuple(seat.last.items())
            )
        heads.update((entry.N, self._unsafe_head(entry)) for entry in book.frames.values())
        return NumbersHeld(
            book.era,
            book.N,
            delivered,
            tuple(heads[N] for N in sorted(heads)),
            tuple(book.last.items()),
            True,
        )

    def _unsafe_head(self, entry: Entry) -> Head:
        """As the sequencer knows it now: what is safe meanwhile is needed no more."""
        needs = tuple(need for need in entry.needs if not self.sequencer.is_safe(*need))
        return Head(entry.N, entry.origin, entry.n, needs)

    # -- prepare ----------------------------------------------------------------------------------

    def check_ends(self, nexts: Sequence[NextEra]) -> None:
        """Can these eras end there, as far as this process knows? A `PeerError` if not."""
        for next_era in nexts:
            end, seat = next_era.end, self.member.seat_in(next_era.view.group)
            if not isinstance(end, NumbersEnd):
                raise PeerError("an era ends without a number")
            if seat is not None and not seat.delivered <= end.end <= seat.got + seat.limit:
                raise PeerError(f"an era ends with {end.end}; up to {seat.got} is here")

    def prepare(self, nexts: Sequence[NextEra]) -> None:
        """A joiner opens its seat now: contexts may name its era before that begins here."""
        self.unprepare()
        for next_era in nexts:
            view, end = next_era.view, next_era.end
            assert isinstance(end, NumbersEnd)
            g, seat = view.group, self.member.seats.get(view.group)
            if seat is None and self.me in view.members:
                self.member.open_seat(g, view.era)
            elif seat is not None and seat.stay is Stay.IN:
                seat.end_at(end.end, end.holder if end.holder != self.me else None)
                self.delivery.look_at(g, seat)
                if seat.got < end.end:
                    self.member.fetch_to_end(g, seat)
        self.delivery.go_on()

    def unprepare(self, begun: Collection[GroupId] = ()) -> None:
        """What was prepared comes to nothing, but for these groups, which begin now."""
        seats = self.member.seats
        for g in [g for g, seat in seats.items() if seat.stay is Stay.JOINING]:
            if g not in begun:  # else what waits for this seat goes on to wait
                self.member.close_seat(g)
        for seat in seats.values():
            seat.source = None
        self.delivery.go_on()

    def is_ready(self, g: GroupId, end: NumbersEnd) -> bool:
        """Is everything of g here, up to the end of its era?"""
        seat = self.member.seat_in(g)
        return seat is None or seat.got >= end.end

    # -- change -----------------------------------------------------------------------------------

    def change(self, number: int, nexts: Sequence[NextEra]) -> None:
        """Eras of groups end, and the next ones begin. Change `number` of the cluster."""
        before = {e.view.group: self.views.get(e.view.group) for e in nexts}
        covered = False
        for next_era in nexts:
            covered = self._begin_era(number, next_era) or covered
        self.sequencer.contexts.change(nexts, before)
        self._repeat_unplaced(set(before), covered=covered)

    def go_on(self) -> None:
        """What waited for the change: own frames, requests of others, numbers, deliveries."""
        self.sender.pump()
        self.sequencer.go_on()
        self.delivery.to_try.extend(self.member.seats)
        self.delivery.go_on()

    def _begin_era(self, number: int, next_era: NextEra) -> bool:
        """One group; True if own frames were settled by it."""
        view, end = next_era.view, next_era.end
        assert isinstance(end, NumbersEnd)
        g = view.group
        self.views[g] = view
        self._change_seat(number, view, end)
        covered = self._settle_own(view, end)
        self.timers.begin(g, end.end)
        self._count_moves(next_era)
        self._change_book(view, end)
        return covered

    def _count_moves(self, next_era: NextEra) -> None:
        view, before = next_era.view, next_era.before
        if before is not None and before.leader != view.leader:
            self.taken_over += view.leader == self.me
            self.handed_on += before.leader == self.me

    def _change_book(self, view: View, end: NumbersEnd) -> None:
        book = None
        if view.leader == self.me:
            needed = self.resilience.others_awaited(view)
            book = Book(self.me, view, end.end, end.last, needed)
        self.sequencer.replace(view.group, book)

    def _change_seat(self, number: int, view: View, end: NumbersEnd) -> None:
        """The member goes on, comes or goes; or it was let in, and is not any more."""
        g, seat = view.group, self.member.seats.get(view.group)
        if self.me in view.members or (seat is not None and seat.stay is Stay.IN):
            self._mark_end(number, view, end)
        elif seat is not None and seat.stay is Stay.JOINING:
            self.member.close_seat(g)

    def _mark_end(self, number: int, view: View, end: NumbersEnd) -> None:
        """Behind the rest of the era that ends there is a marker, and behind it the next era."""
        g, inside = view.group, self.me in view.members
        seat = self.member.seats.get(g) or self.member.open_seat(g, view.era)
        if seat.stay is Stay.IN:
            seat.drop_after(end.end)
        elif inside:
            self.sender.outbox.begin(g)
        marker = Marker(view, (view.era, end.end), number, inside)
        self.delivery.end_era(seat, marker)
        seat.begin(view.era, end.end, end.last, view.members)
        if inside:
            self.member.member_of.add(g)
        else:
            seat.stay = Stay.LEAVING

    # -- own frames -------------------------------------------------------------------------------

    def _settle_own(self, view: View, end: NumbersEnd) -> bool:
        """Own frames that have a number in the era that ends are safe: everybody holds them."""
        g, outbox = view.group, self.sender.outbox
        last = dict(end.last).get(self.me, 0)
        line = outbox.of_group.get(g)
        covered = line is not None and line[0] <= last
        if covered:
            if self.causal:
                self.sender.saw(g, (view.era, end.end))
            outbox.safe(g, last)
        if self.me not in view.members and g not in self.member.seats:
            self.sender.era_ended(g)
        return covered

    def _repeat_unplaced(self, changed: set[GroupId], *, covered: bool) -> None:
        """Own frames without a place, and, where the order is causal, all that follow them."""
        repeated: list[Own] = []
        again = covered
        for own in self.sender.outbox.own.values():
            touched = own.group in changed
            again = again or touched or any(h in changed for h, _ in own.after)
            if touched or (again and self.causal):
                repeated.append(own)
        self.sender.outbox.repeat(repeated)
