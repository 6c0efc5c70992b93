"""Faults in the sequencing service: the printed rules of 000, and tempting readings of them.

Most are faults in one part of the service; the machine that has it stands below the part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ordercast.core.changing import End, Ending, NextEra, NumbersEnd, Place, Places
from ordercast.core.events import View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.protocols.sequencing.book import Book
from ordercast.protocols.sequencing.changes import EraChanges
from ordercast.protocols.sequencing.contexts import Contexts
from ordercast.protocols.sequencing.delivery import Delivery
from ordercast.protocols.sequencing.headers import Asked, OwnFrames, Request, Spread
from ordercast.protocols.sequencing.member import Member
from ordercast.protocols.sequencing.orders import (
    Sequencing,
    SequencingCausal,
    SequencingGlobal,
    SequencingHybrid,
)
from ordercast.protocols.sequencing.seat import Entry, Marker, Seat, Stay
from ordercast.protocols.sequencing.sender import Sender
from ordercast.protocols.sequencing.sequencer import Sequencer

ID = 0  # as an era: the number is a sender's own count

# -- numbers --------------------------------------------------------------------------------------


class ArrivalSequencer(Sequencer):
    """The next number for whatever comes next; only a repeat is recognised."""

    def __init__(self, contexts: Contexts) -> None:
        super().__init__(contexts)
        self.came: set[tuple[GroupId, ProcessId, int]] = set()

    def _take_up(self, p: ProcessId, asked: Asked) -> bool:
        g, _, request, m = asked
        if g not in self.views:
            return False
        if g in self.books and (g, p, request.n) not in self.came:
            self.came.add((g, p, request.n))
            self._number(p, g, self.books[g], request, m)
        return True


class NumbersOnArrival(Sequencing):
    """Numbers in the order of arrival, which need not be the sender's."""

    sequencer_part = ArrivalSequencer


class ForgetfulSequencer(Sequencer):
    """As printed: nothing is stored, so FETCH has no answer."""

    def _send_entry(self, p: ProcessId, g: GroupId, entry: Entry) -> None:
        return


class KeepsNoHistory(Sequencing):
    """No answer to FETCH."""

    sequencer_part = ForgetfulSequencer


# -- delivery -------------------------------------------------------------------------------------


class SameSetDelivery(Delivery):
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


class WaitsForTheSameSet(Sequencing):
    """T2 as printed."""

    delivery_part = SameSetDelivery


class SameNumbersDelivery(Delivery):
    """T2 as equality of the numbers that the context names."""

    def _may_deliver(self, g: GroupId, seat: Seat, item: Entry | Marker) -> bool:
        if isinstance(item, Entry):
            for h, _, N in item.context:
                if h in self.seats and self.seats[h].at[1] != N:
                    self.blocked.setdefault(h, set()).add(g)
                    return False
        return super()._may_deliver(g, seat, item)


class WaitsForTheSameNumbers(SequencingCausal):
    """T2 as equality."""

    delivery_part = SameNumbersDelivery


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


class MergingChanges(EraChanges):
    """D := merge(D, context): numbers of a group that it joins later count as delivered."""

    def _mark_end(self, number: int, view: View, end: NumbersEnd) -> None:
        before = self.member.seats.get(view.group)
        joins = self.me in view.members and (before is None or before.stay is not Stay.IN)
        super()._mark_end(number, view, end)
        era, known = self.sender.context.get(view.group, (0, 0))
        if joins and era == view.era and known > end.end:
            self.member.seats[view.group].begin(era, known, end.last, view.members)


class MergesForeignGroups(CausalWithoutHolding):
    """D follows the contexts of groups that this process is not in."""

    changes_part = MergingChanges


# -- what the contexts name -----------------------------------------------------------------------


class PairwiseCalledGlobal(Sequencing):
    """S2, and an order without cycles is promised."""

    declaration = msgspec.structs.replace(
        Sequencing.declaration, promises=SequencingGlobal.declaration.promises
    )


class ContextsOfAllGroups(Contexts):
    """Rule 3 as printed: also the last numbers of groups that happen to be numbered here."""

    def _meets(self, g: GroupId) -> tuple[GroupId, ...]:
        return tuple(h for h in self.books if h != g)


class NamesAllGroupsOfTheSequencer(SequencingHybrid):
    """Rule 3 as printed."""

    exact = True
    contexts_part = ContextsOfAllGroups


class ContextsWithoutFences(Contexts):
    """A group that a member left shares it with no other any more."""

    def _fence(self, nexts: Sequence[NextEra], before: Mapping[GroupId, View | None]) -> None:
        return


class SplitsAtOnce(Sequencing):
    """No fences."""

    contexts_part = ContextsWithoutFences


class HastyMember(Member):
    """What it has received, delivered or not, counts as consumed."""

    def _done(self, seat: Seat) -> int:
        return seat.got if seat.at[0] == seat.era else super()._done(seat)


class ForgetsWhatAllReceived(Sequencing):
    """Numbers that all have received, delivered or not, are named no more."""

    member_part = HastyMember


# -- a sender's context ---------------------------------------------------------------------------


class LoweringSender(Sender):
    """Rule 2 as printed: C_p.G := the number of the own message."""

    def placed(self, g: GroupId, n: int, place: Place) -> None:
        self.context[g] = place
        super().placed(g, n, place)


class OwnAcceptLowersTheContext(SequencingHybrid):
    """Rule 2 as printed."""

    sender_part = LoweringSender


class UnboundSender(Sender):
    """Its frames are under way to several sequencers."""

    def _may_leave(self, view: View) -> bool:
        return True


class ContextsOfIds(Contexts):
    """Ids stand for numbers that are not known here."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: OwnFrames = ()  # of the request that is taken up

    def of_next(
        self, p: ProcessId, g: GroupId, book: Book, request: Request | Spread
    ) -> tuple[Places, Places]:
        places, needs = super().of_next(p, g, book, request)
        return places + tuple((h, ID, n) for h, n in self.ids), needs


class SequencerOfIds(Sequencer):
    """It does not wait for earlier frames of a sender in other groups."""

    def _take_up(self, p: ProcessId, asked: Asked) -> bool:
        g, era, request, m = asked
        assert isinstance(self.contexts, ContextsOfIds)
        self.contexts.ids = request.after
        return super()._take_up(p, (g, era, msgspec.structs.replace(request, after=()), m))


class DeliveryByIds(Delivery):
    """It waits until it knows the numbers of a sender's frames before this one."""

    def _may_deliver(self, g: GroupId, seat: Seat, item: Entry | Marker) -> bool:
        if isinstance(item, Entry):
            for h, era, n in item.context:
                if era == ID and self._is_unknown(h, item.origin, n):
                    self.blocked.setdefault(h, set()).add(g)
                    return False
        return super()._may_deliver(g, seat, item)

    def _is_unknown(self, h: GroupId, p: ProcessId, n: int) -> bool:
        return h in self.seats and self.seats[h].last.get(p, 0) < n


class DeliveryByForeignIds(DeliveryByIds):
    """It waits for ids of groups that it is not in, too."""

    def _is_unknown(self, h: GroupId, p: ProcessId, n: int) -> bool:
        return h not in self.seats or self.seats[h].last.get(p, 0) < n


class NamesIds(SequencingHybrid):
    """SEQ(id) stands for a number that is not known: members wait until they know the numbers of a
    sender's frames before this one. Who is not in its group ignores it."""

    sender_part = UnboundSender
    contexts_part = ContextsOfIds
    sequencer_part = SequencerOfIds
    delivery_part = DeliveryByIds

    def invariants(self) -> None:
        """Its frames are under way to several sequencers."""


class WaitsForForeignIds(NamesIds):
    """... waits for it, too, and will never hear its number."""

    delivery_part = DeliveryByForeignIds


# -- changes --------------------------------------------------------------------------------------


class HandsOverNoRequests(Sequencing):
    """What was numbered is not known at the next sequencer."""

    @classmethod
    def decide(cls, groups: Mapping[GroupId, Ending]) -> dict[GroupId, End]:
        ends = super().decide(groups)
        return {g: msgspec.structs.replace(end, last=()) for g, end in ends.items()}


class MemberThatFetchesNothing(Member):
    """In a change it asks nobody for what is missing."""

    def _fetch(self, g: GroupId, seat: Seat) -> None:
        if seat.source is None:
            super()._fetch(g, seat)


class HandsOverNoBodies(Sequencing):
    """Nobody fetches what the former sequencer alone has."""

    member_part = MemberThatFetchesNothing

    def is_ready(self, g: GroupId, end: End) -> bool:
        return True
