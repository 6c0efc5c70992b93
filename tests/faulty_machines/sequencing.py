"""Faults in the sequencing service: the printed rules of 000, and tempting readings of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ordercast.core.changing import End, Ending, NextEra, NumbersEnd, Place, Places
from ordercast.core.events import View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import Options
from ordercast.protocols.sequencing.book import Book
from ordercast.protocols.sequencing.headers import OwnFrames, Request, Spread
from ordercast.protocols.sequencing.orders import (
    Sequencing,
    SequencingCausal,
    SequencingGlobal,
    SequencingHybrid,
)
from ordercast.protocols.sequencing.seat import Entry, Marker, Seat, Stay
from ordercast.protocols.sequencing.sender import Sender
from ordercast.protocols.sequencing.service import Waits

ID = 0  # as an era: the number is a sender's own count

# -- numbers --------------------------------------------------------------------------------------


class NumbersOnArrival(Sequencing):
    """The next number for whatever comes next; only a repeat is recognised."""

    def __init__(self, me: ProcessId, options: Options | None = None) -> None:
        super().__init__(me, options)
        self.came: set[tuple[GroupId, ProcessId, int]] = set()

    def _take_up(self, p: ProcessId, request: Waits) -> bool:
        g, _, asked, m = request
        if g not in self.views:
            return False
        if g in self.books and (g, p, asked.n) not in self.came:
            self.came.add((g, p, asked.n))
            self._number(p, g, self.books[g], asked, m)
        return True


class KeepsNoHistory(Sequencing):
    """As printed: nothing is stored, so FETCH has no answer."""

    def _send_entry(self, p: ProcessId, g: GroupId, entry: Entry) -> None:
        return


# -- delivery -------------------------------------------------------------------------------------


class WaitsForTheSameSet(Sequencing):
    """T2 as printed, with D empty at first: what the context says of this process's groups is what
    it has delivered of them, no more and no less."""

    def _may_deliver(self, g: GroupId, seat: Seat, item: Entry | Marker) -> bool:
        if isinstance(item, Entry):
            here = {h: s.at[1] for h, s in self.seats.items() if h != g and s.at[1]}
            said = {h: N for h, _, N in item.context if h in self.seats}
            if here != said:
                for h in here | said:
                    self.blocked.setdefault(h, set()).add(g)
                return False
        return super()._may_deliver(g, seat, item)


class WaitsForTheSameNumbers(SequencingCausal):
    """T2 as equality of the numbers that the context names."""

    def _may_deliver(self, g: GroupId, seat: Seat, item: Entry | Marker) -> bool:
        if isinstance(item, Entry):
            for h, _, N in item.context:
                if h in self.seats and self.seats[h].at[1] != N:
                    self.blocked.setdefault(h, set()).add(g)
                    return False
        return super()._may_deliver(g, seat, item)


class AdmitsWithoutHolding(Sequencing):
    """Who is about to be let in delivers what comes after numbers of that group."""

    def prepare(self, nexts: Sequence[NextEra]) -> None:
        super().prepare(nexts)
        self.unprepare()


class CausalWithoutHolding(SequencingCausal):
    """The same, where the order is causal, too."""

    def prepare(self, nexts: Sequence[NextEra]) -> None:
        super().prepare(nexts)
        self.unprepare()


class MergesForeignGroups(CausalWithoutHolding):
    """D := merge(D, context): numbers of a group that it joins later count as delivered."""

    def _change_seat(self, number: int, view: View, end: NumbersEnd, *, inside: bool) -> None:
        before = self.seats.get(view.group)
        joins = inside and (before is None or before.stay is not Stay.IN)
        super()._change_seat(number, view, end, inside=inside)
        era, known = self.context.get(view.group, (0, 0))
        if joins and era == view.era and known > end.end:
            self.seats[view.group].begin(era, known, end.last)


# -- what the contexts name -----------------------------------------------------------------------


class PairwiseCalledGlobal(Sequencing):
    """S2, and an order without cycles is promised."""

    declaration = msgspec.structs.replace(
        Sequencing.declaration, promises=SequencingGlobal.declaration.promises
    )


class NamesAllGroupsOfTheSequencer(SequencingHybrid):
    """Rule 3 as printed: also the last numbers of groups that happen to be numbered here."""

    exact = True

    def _meets(self, g: GroupId) -> tuple[GroupId, ...]:
        return tuple(h for h in self.books if h != g)


class SplitsAtOnce(Sequencing):
    """A group that a member left shares it with no other any more."""

    def _fence(self, nexts: Sequence[NextEra], before: Mapping[GroupId, View | None]) -> None:
        return


class ForgetsWhatAllReceived(Sequencing):
    """Numbers that all have received, delivered or not, are named no more."""

    def _done(self, seat: Seat) -> int:
        return seat.got if seat.at[0] == seat.era else super()._done(seat)


# -- a sender's context ---------------------------------------------------------------------------


class OwnAcceptLowersTheContext(SequencingHybrid):
    """Rule 2 as printed: C_p.G := the number of the own message."""

    def _placed(self, g: GroupId, n: int, place: Place) -> None:
        self.context[g] = place
        super()._placed(g, n, place)


class ImpatientSender(Sender):
    """Frames leave for another sequencer while others are under way."""

    def may_leave_to(self, leader: ProcessId, *, causal: bool) -> bool:
        return True


class NamesIds(SequencingHybrid):
    """SEQ(id) stands for a number that is not known: members wait until they know the numbers of a
    sender's frames before this one. Who is not in its group ignores it."""

    sender_type = ImpatientSender

    def __init__(self, me: ProcessId, options: Options | None = None) -> None:
        super().__init__(me, options)
        self.ids: OwnFrames = ()  # of the request that is taken up

    def _take_up(self, p: ProcessId, request: Waits) -> bool:
        g, era, asked, m = request
        self.ids = asked.after
        return super()._take_up(p, (g, era, msgspec.structs.replace(asked, after=()), m))

    def _context(
        self, p: ProcessId, g: GroupId, book: Book, asked: Request | Spread
    ) -> tuple[Places, Places]:
        places, needs = super()._context(p, g, book, asked)
        return places + tuple((h, ID, n) for h, n in self.ids), needs

    def _may_deliver(self, g: GroupId, seat: Seat, item: Entry | Marker) -> bool:
        if isinstance(item, Entry):
            for h, era, n in item.context:
                if era == ID and self._is_unknown(h, item.origin, n):
                    self.blocked.setdefault(h, set()).add(g)
                    return False
        return super()._may_deliver(g, seat, item)

    def _is_unknown(self, h: GroupId, p: ProcessId, n: int) -> bool:
        return h in self.seats and self.seats[h].last.get(p, 0) < n

    def invariants(self) -> None:
        """Its frames are under way to several sequencers."""


class WaitsForForeignIds(NamesIds):
    """... waits for it, too, and will never hear its number."""

    def _is_unknown(self, h: GroupId, p: ProcessId, n: int) -> bool:
        return h not in self.seats or self.seats[h].last.get(p, 0) < n


# -- changes --------------------------------------------------------------------------------------


class HandsOverNoRequests(Sequencing):
    """What was numbered is not known at the next sequencer."""

    @classmethod
    def decide(cls, groups: Mapping[GroupId, Ending]) -> dict[GroupId, End]:
        ends = super().decide(groups)
        return {g: msgspec.structs.replace(end, last=()) for g, end in ends.items()}


class HandsOverNoBodies(Sequencing):
    """Nobody fetches what the former sequencer alone has."""

    def _fetch(self, g: GroupId, seat: Seat) -> None:
        if seat.source is None:
            super()._fetch(g, seat)

    def is_ready(self, g: GroupId, end: End) -> bool:
        return True
