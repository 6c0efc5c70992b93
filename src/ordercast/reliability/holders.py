"""Who holds which frames of one group: what the members of a view tell each other.

To *hold* a frame is to have delivered it, in the protocol, with everything that it depends on: such
a frame is in the report of its holder at a flush, so it lives as long as one holder does.

A word names one mark for each sender: "here all its frames up to this one were delivered". Where
the frames of all senders are numbered by one process, one mark is enough: the last number.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ordercast.core.durability import Durability, holders_needed
from ordercast.core.events import View
from ordercast.core.ids import ProcessId
from ordercast.core.numbers import MAX_COUNT, NumberSet
from ordercast.core.output import Delivery
from ordercast.core.state import PlainState
from ordercast.core.waiting import NOBODY
from ordercast.errors import PeerError

Place = tuple[ProcessId, int]  # (its sender, its n), or (NOBODY, its number): a frame in its era


class Holding(msgspec.Struct, frozen=True, array_like=True):
    """Delivered here in this era: of each of these senders, all frames up to its mark."""

    marks: tuple[int, ...]  # sender, mark, sender, mark, ...; NOBODY, last number


class AskHolding(msgspec.Struct, frozen=True, array_like=True):
    """Say what you hold: I wait, and words may have been lost."""


Word = tuple[int, dict[ProcessId, int]]  # (era, marks by sender)


class Holders(PlainState):
    """One group, as one process knows it."""

    def __init__(self, me: ProcessId, durability: Durability, limit: int) -> None:
        self.me = me
        self.durability = durability
        self.limit = limit  # marks of a word; processes that are listened to
        self.era = 0
        self.members: tuple[ProcessId, ...] = ()
        self.guests: tuple[ProcessId, ...] = ()
        self.here: dict[ProcessId, NumberSet] = {}  # delivered by the protocol here, per sender
        self.since: dict[ProcessId, int] = {}  # a member holds only numbers above this one
        self.entered = 0  # the same for this process
        self.words: dict[ProcessId, Word] = {}  # the marks that came from each

    @property
    def gated(self) -> bool:
        """Must a frame wait for more holders than this process?"""
        return self.durability not in (None, 0)

    @property
    def is_member(self) -> bool:
        """Does this process hold frames for the others?"""
        return self.me in self.members

    def begin(self, view: View) -> None:
        """A new era: all counts begin again. Words that came ahead of it count now.

        Or the same era once more, for who has left and numbers the group now, or is back: what it
        had before may still wait here, and those it does not know came in after that. What it holds
        it still holds, and others may ask for that.
        """
        known = self.since
        if view.era != self.era:
            known, self.here = dict.fromkeys(view.members, 0), {}
        self.era = view.era
        self.members, self.guests = view.members, view.guests
        self.since = {p: known.get(p, view.start) for p in view.members}
        self.entered = max(view.start - 1, 0) if self.me in view.members else 0
        self.words = {p: word for p, word in self.words.items() if word[0] >= view.era}

    def change(self, view: View) -> None:
        """A view among the numbers of an era. Who comes in with it holds nothing from before."""
        self.members, self.guests = view.members, view.guests
        self.since = {p: self.since.get(p, view.start) for p in view.members}

    def deliver(self, delivery: Delivery) -> Place:
        """The protocol delivered a frame here."""
        _, q, n, number, _ = delivery
        if number:
            self.here.setdefault(NOBODY, NumberSet(self.limit)).mark = number
            return NOBODY, number
        self.here.setdefault(q, NumberSet(self.limit)).add(n)
        return q, n

    def last_here(self) -> Place:
        """The last number delivered here, if frames are numbered."""
        return NOBODY, self.here[NOBODY].mark if NOBODY in self.here else 0

    def word(self) -> Holding:
        """What this process tells the others."""
        return Holding(tuple(x for q, numbers in self.here.items() for x in (q, numbers.mark)))

    def told(self, p: ProcessId, era: int, holding: Holding) -> None:
        """A word of p. One of an era to come is kept; marks never fall."""
        marks = self._checked(holding.marks)
        before_era, before = self.words.get(p, (0, {}))
        if era < max(before_era, self.era):
            return
        if p not in self.words and len(self.words) >= self.limit:
            raise PeerError(f"words of more than {self.limit} processes")
        if era == before_era:
            marks = {q: max(marks.get(q, 0), before.get(q, 0)) for q in before | marks}
        self.words[p] = (era, marks)

    def _lacks_the_past(self, p: ProcessId) -> bool:
        return self.since[p] <= self.entered and self.mark_of(p, NOBODY) < self.entered

    def _checked(self, marks: tuple[int, ...]) -> dict[ProcessId, int]:
        if len(marks) % 2 or len(marks) > 2 * self.limit:
            raise PeerError(f"{len(marks)} integers are no list of senders and marks")
        pairs = dict(_pairs(marks))
        if any(q < NOBODY or not 0 <= mark <= MAX_COUNT for q, mark in pairs.items()):
            raise PeerError("a word names marks that cannot be")
        return pairs

    def mark_of(self, p: ProcessId, q: ProcessId) -> int:
        """All frames of q up to this one are held by p, another member."""
        era, marks = self.words.get(p, (0, {}))
        return marks.get(q, 0) if era == self.era else 0

    def lacking(self, place: Place) -> tuple[int, list[ProcessId]]:
        """How many more must hold this frame, which is held here, and who does not; 0 and nobody
        if it can be handed over.

        Who came in has none of the numbers before. If one of those were lost, all after it would
        be: they must be held by all who are to have them.
        """
        q, number = place
        if q == NOBODY and self.entered:
            behind = [p for p in self.members if p != self.me and self._lacks_the_past(p)]
            if behind:
                return len(behind), behind
        able = [p for p in self.members if self.since[p] < number or q != NOBODY]
        without = [p for p in able if p != self.me and self.mark_of(p, q) < number]
        needed = holders_needed(self.durability, len(self.members))
        missing = min(needed, len(able)) - (len(able) - len(without))
        return (missing, without) if missing > 0 else (0, [])


def _pairs(numbers: tuple[int, ...]) -> Iterable[tuple[int, int]]:
    one = iter(numbers)
    return zip(one, one, strict=True)
