"""At a sequencer: what a number comes after in other groups, which is its *context*.

    causal orders   what its sender had seen, and the places of the sender's own earlier frames
    total orders    C | intersect(G): the last numbers of groups that meet G
    both            fences: where the next era of a group began that met G before it changed (D5)

A place that all members have delivered is named no more: nobody need wait for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ordercast.core.changing import NextEra, NumbersEnd, Place, Places
from ordercast.core.events import View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.errors import PeerError
from ordercast.protocols.sequencing.book import Book
from ordercast.protocols.sequencing.headers import Request, Spread
from ordercast.protocols.sequencing.part import Environment, Part
from ordercast.protocols.sequencing.seat import NOWHERE


class Contexts(Part):
    """Of the groups that one process numbers."""

    lent = Part.lent | {"books"}

    def __init__(self) -> None:
        self.meeting: dict[GroupId, tuple[GroupId, ...]] = {}  # among those numbered here; a cache

    def connect(self, env: Environment, books: Mapping[GroupId, Book]) -> None:
        """Lend it what it does not own."""
        self.share(env)
        self.books = books

    def of_next(
        self, p: ProcessId, g: GroupId, book: Book, request: Request | Spread
    ) -> tuple[Places, Places]:
        """What the next number of g comes after; and what of that a crash could take away."""
        if not self.causal and not self.exact:
            return (), ()
        places: dict[GroupId, Place] = {}
        needs: list[tuple[GroupId, int, int]] = []
        if self.causal:
            for h, era, N in request.context:
                if h != g and not self._is_delivered_by_all(h, (era, N)):
                    places[h] = (era, N)
            for h, _ in request.after:
                other = self.books[h]
                place = (other.era, other.given.get(p, other.base))
                if place > places.get(h, NOWHERE):
                    places[h] = place
                if place[1] > other.settled:
                    needs.append((h, *place))
        if self.exact:
            for h in self._meets(g):
                other = self.books[h]
                place = (other.era, other.N)
                if place > places.get(h, NOWHERE) and not other.all_passed(other.N):
                    places[h] = place
        for h, (place, _) in book.fences.items():
            if place > places.get(h, NOWHERE):
                places[h] = place
        places.pop(g, None)
        return tuple((h, era, N) for h, (era, N) in places.items()), tuple(needs)

    def _is_delivered_by_all(self, h: GroupId, place: Place) -> bool:
        book = self.books.get(h)
        return book is not None and place[0] == book.era and book.all_passed(place[1])

    def _meets(self, g: GroupId) -> tuple[GroupId, ...]:
        """intersect(g): groups numbered here that share enough members with g."""
        found = self.meeting.get(g)
        if found is None:
            mine = set(self.books[g].members)
            near = self.books if len(mine) >= self.common else {}
            found = self.meeting[g] = tuple(
                h
                for h, other in near.items()
                if h != g and len(mine.intersection(other.members)) >= self.common
            )
        return found

    def have_begun(self, context: Places) -> bool:
        """Have all eras begun here that a sender names? It may have installed a change earlier. A
        number that names an era which never comes would hold up its members for ever. Of a group
        in which this process has no part it never hears: there the sender is believed."""
        for h, era, N in context:
            view, book = self.views.get(h), self.books.get(h)
            if view is not None and era > view.era:
                return False
            if book is not None and era == book.era and book.N < N:
                raise PeerError(f"number {N} of group {h} was not given yet; {book.N} was the last")
        return True

    def change(self, nexts: Sequence[NextEra], before: Mapping[GroupId, View | None]) -> None:
        """Eras have ended; `before` are the views in which they did."""
        self.meeting = {}
        if self.exact:
            self._fence(nexts, before)

    def _fence(self, nexts: Sequence[NextEra], before: Mapping[GroupId, View | None]) -> None:
        """A change of G makes its numbers of the old era count as delivered. Groups that met G, and
        are numbered here, name the place where its new era begins, until that is stable."""
        for next_era in nexts:
            g, old = next_era.view.group, before[next_era.view.group]
            if old is None or old.leader != self.me:
                continue
            if len(old.members) < self.common:
                continue  # it met no other group
            end, mine = next_era.end, set(old.members)
            assert isinstance(end, NumbersEnd)
            for h, book in self.books.items():
                met = before.get(h) or self.views[h]
                if h != g and len(mine.intersection(met.members)) >= self.common:
                    book.fences[g] = ((next_era.view.era, end.end), book.N + 1)
