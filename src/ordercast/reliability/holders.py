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
        self.words: dict[ProcessId, Word] = {}  # the marks that came from each

    @property
    def gated(self) -> bool:
        """Must a frame wait for more holders than this process?"""
        return self.durability not in (None, 0)

    def begin(self, view: View) -> None:
        """A new era: all counts begin again. Words that came ahead of it count now, of members."""
        self.here = {}
        self.era = view.era
        self.members, self.guests = view.members, view.guests
        self.words = {
            p: (era, marks)
            for p, (era, marks) in self.words.items()
            if era > view.era or (era == view.era and p in view.members)
        }

    def deliver(self, delivery: Delivery) -> Place:
        """The protocol delivered a frame here."""
        _, q, n, number, _ = delivery
        if number:
            self.here.setdefault(NOBODY, NumberSet(self.limit)).mark = number
            return NOBODY, number
        self.here.setdefault(q, NumberSet(self.limit)).add(n)
        return q, n

    def holds(self, place: Place) -> bool:
        """Was the frame at this place delivered here?"""
        q, n = place
        numbers = self.here.get(q)
        return n == 0 or (numbers is not None and n in numbers)

    def invariants(self) -> None:
        """What must always hold."""
        assert len(self.words) <= self.limit, "words are bounded"

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
        if it can be handed over."""
        q, number = place
        without = [p for p in self.members if p != self.me and self.mark_of(p, q) < number]
        holding = len(self.members) - len(without)
        missing = holders_needed(self.durability, len(self.members)) - holding
        return (missing, without) if missing > 0 else (0, [])


def _pairs(numbers: tuple[int, ...]) -> Iterable[tuple[int, int]]:
    one = iter(numbers)
    return zip(one, one, strict=True)
