"""Faults in the sequencing service: the printed rules of 000, and tempting readings of them."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from faulty_machines.sequenced import number_on_arrival
from ordercast.core.events import View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.machinery.numbering import Context, Numbered
from ordercast.machinery.sequencer_headers import Delivered
from ordercast.machinery.transfer import BookEntry, BookState
from ordercast.protocols.sequencing.headers import AcceptedIn, Ids
from ordercast.protocols.sequencing.orders import (
    Sequencing,
    SequencingCausal,
    SequencingGlobal,
    SequencingHybrid,
)
from ordercast.protocols.sequencing.part import GroupPart
from ordercast.protocols.sequencing.service import HandedOver

# -- numbers --------------------------------------------------------------------------------------


class PartThatNumbersOnArrival(GroupPart):
    number = number_on_arrival


class NumbersOnArrival(Sequencing):
    """The next number for whatever comes next."""

    kind = PartThatNumbersOnArrival


class PartWithoutHistory(GroupPart):
    def _resend(self, p: ProcessId, g: GroupId, N: int) -> None:
        return


class KeepsNoHistory(Sequencing):
    """As printed: nothing is stored, so FETCH has no answer."""

    kind = PartWithoutHistory


# -- delivery -------------------------------------------------------------------------------------


class PartThatAlwaysAsks(GroupPart):
    def waits(self, g: GroupId, entry: Numbered) -> bool:
        return self.service.must_wait(g, entry.context)


class WaitsForTheSameSet(Sequencing):
    """T2 as printed, with D empty at first: what the context says of this process's groups is what
    it has delivered of them, no more and no less."""

    kind = PartThatAlwaysAsks

    def must_wait(self, g: GroupId, context: Context) -> bool:
        here = {h: part.R for h, part in self.parts.items() if part.delivers and part.R and h != g}
        said = {h: n for h, n in context if h in self.parts and self.parts[h].delivers}
        for h in here | said:
            self.blocked.setdefault(h, set()).add(g)
        return super().must_wait(g, context) or here != said


class WaitsForTheSameNumbers(SequencingCausal):
    """T2 as equality of the numbers that the context names."""

    def must_wait(self, g: GroupId, context: Context) -> bool:
        return super().must_wait(g, context) or any(
            h in self.parts and self.parts[h].delivers and n != self.parts[h].R for h, n in context
        )


class AdmitsWithoutHolding(Sequencing):
    """Who asked to be let in delivers what comes after numbers of that group."""

    def _is_joining(self, h: GroupId) -> bool:
        return False


class CausalWithoutHolding(SequencingCausal):
    """The same, where the order is causal, too."""

    def _is_joining(self, h: GroupId) -> bool:
        return False


class MergesForeignGroups(CausalWithoutHolding):
    """D := merge(D, context): numbers of a group that it joins later count as delivered."""

    def put_in_force_of(self, view: View, *, member: bool) -> None:
        part = self.parts[view.group]
        known = self.seen.get(view.group, 0)
        if member and view.group not in self.member_of and known > part.R:
            part._start_after(known)
        super().put_in_force_of(view, member=member)


# -- what the contexts name -----------------------------------------------------------------------


class PairwiseCalledGlobal(Sequencing):
    """S2, and an order without cycles is promised."""

    declaration = msgspec.structs.replace(
        Sequencing.declaration, promises=SequencingGlobal.declaration.promises
    )


class NamesAllGroupsOfTheSequencer(SequencingHybrid):
    """Rule 3 as printed: also the last numbers of groups that happen to be numbered here."""

    exact = True


class PartThatForgetsLeavers(GroupPart):
    def counted_members(self) -> frozenset[ProcessId]:
        if self.book is None or self.latest is None:
            return frozenset()
        return frozenset(self.latest.members)


class SplitsAtOnce(Sequencing):
    """A group that a member left shares it with no other any more."""

    kind = PartThatForgetsLeavers


class PartThatAcknowledgesWhatItReceived(GroupPart):
    def acknowledge(self, g: GroupId) -> None:
        received = self.taken
        while received + 1 in self.arrived:
            received += 1
        self.acked = self.taken
        if self.book is not None:
            self._acknowledged(g, self.me, received)
        else:
            self.send(self.leader, g, Delivered(received))
            self.start_timer(g, "repeat", self.options.retry_ms)

    def learn(self, g: GroupId, top: int, stable: int) -> None:
        super().learn(g, top, min(stable, self.taken))


class ForgetsWhatAllReceived(Sequencing):
    """Numbers that all have received, delivered or not, are named no more."""

    kind = PartThatAcknowledgesWhatItReceived


# -- a sender's context ---------------------------------------------------------------------------


class PartThatAssigns(GroupPart):
    def _accepted(self, g: GroupId, accepted: AcceptedIn) -> None:
        super()._accepted(g, accepted)
        if accepted.N:
            self.service.seen[g] = accepted.N


class OwnAcceptLowersTheContext(SequencingHybrid):
    """Rule 2 as printed: C_p.G := the number of the own message."""

    kind = PartThatAssigns


class PartThatTranslatesIds(GroupPart):
    """Members wait until they know the numbers of a sender's frames before this one."""

    def _is_early(self, frame: Numbered) -> bool:
        return False

    def waits(self, g: GroupId, entry: Numbered) -> bool:
        for h, n in entry.context:
            if n < 0 and self._is_unknown(h, entry.origin, -n):
                self.service.blocked.setdefault(h, set()).add(g)
                return True
        return super().waits(g, entry)

    def _is_unknown(self, h: GroupId, p: ProcessId, n: int) -> bool:
        part = self.service.parts.get(h)
        return part is not None and part.delivers and part.done.get(p, 0) < n


class NamesIds(SequencingHybrid):
    """SEQ(id) stands for a number that is not known. Who is not in its group ignores it."""

    kind: type[GroupPart] = PartThatTranslatesIds

    def unsettled_before(self, g: GroupId) -> list[GroupId]:
        return []

    def exposed_before(self, g: GroupId) -> list[GroupId]:
        return []

    def context(
        self, part: GroupPart, g: GroupId, entry: Numbered, deps: Context, after: Ids
    ) -> Context:
        named = super().context(part, g, entry, deps, ())
        return named + tuple((h, -n) for h, n in after)


class PartThatTranslatesAllIds(PartThatTranslatesIds):
    def _is_unknown(self, h: GroupId, p: ProcessId, n: int) -> bool:
        part = self.service.parts.get(h)
        return part is None or part.done.get(p, 0) < n


class WaitsForForeignIds(NamesIds):
    """... waits for it, too, and will never hear its number."""

    kind = PartThatTranslatesAllIds


# -- hand-over ------------------------------------------------------------------------------------

OneBook = tuple[BookState, list[tuple[BookEntry, bytes]]]


class PartThatForgetsRequests(GroupPart):
    def hand_over(self, g: GroupId, to: ProcessId) -> OneBook:
        state, entries = super().hand_over(g, to)
        return msgspec.structs.replace(state, last=()), entries

    def _prune(self, g: GroupId) -> None:  # one frame has several entries: they all stay
        assert self.book is not None
        self.start_timer(g, "status", self.options.status_ms)
        self.learn(g, self.book.N, self.book.stable)


class HandsOverNoRequests(Sequencing):
    """What was numbered is not known at the next sequencer."""

    kind = PartThatForgetsRequests


class PartThatLeavesBodies(GroupPart):
    def hand_over(self, g: GroupId, to: ProcessId) -> OneBook:
        state, _ = super().hand_over(g, to)
        return msgspec.structs.replace(state, entries=0), []

    def _resend(self, p: ProcessId, g: GroupId, N: int) -> None:
        if self.book is not None and N in self.book.history:
            super()._resend(p, g, N)


class HandsOverNoBodies(Sequencing):
    """Bodies stay behind."""

    kind = PartThatLeavesBodies


class HybridHandsOverNoBodies(SequencingHybrid):
    """The same, where the next frame of the former sequencer may depend on such a body."""

    kind = PartThatLeavesBodies


class PartThatSpeaksAtOnce(GroupPart):
    def exposed(self, g: GroupId, N: int) -> bool:
        return self.book is not None and super().exposed(g, N)


class SpeaksWhileItHandsOver(SequencingHybrid):
    """What is in a book on its way counts as held by another."""

    kind = PartThatSpeaksAtOnce


class PartThatForgetsLingering(GroupPart):
    def hand_over(self, g: GroupId, to: ProcessId) -> OneBook:
        state, entries = super().hand_over(g, to)
        return msgspec.structs.replace(state, lingering=(0, ())), entries


class HandsOverNoLeavers(Sequencing):
    """Who left a moment ago is not known at the next sequencer."""

    kind = PartThatForgetsLingering


class TakesOverOneByOne(Sequencing):
    """Numbers a group while the books of those that must be with it are on their way."""

    def succeed(self, books: Mapping[GroupId, HandedOver]) -> None:
        for g, book in books.items():
            super().succeed({g: book})


class KeepsNoCopies(SequencingHybrid):
    """The former sequencer forgets what it handed over as soon as the next one has it."""

    def back_up(self, g: GroupId, source: ProcessId) -> bool:
        return False
