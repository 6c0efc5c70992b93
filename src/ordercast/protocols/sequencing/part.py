"""One group of the sequencing service at one process; and how it is handed over to another.

    HAND OVER at the sequencer    stop numbering;  the book to the next one;  forward what comes
    the book is there             the next one numbers; what it waits for as a member is in the book
    it says so                    the former sequencer tells all who send or deliver: MOVED

What travels is in `machinery.transfer`; what may stay, in `protocols.sequencing.left_behind`; of
what copies are kept for a while, in `protocols.sequencing.backed`; who leaves, in
`protocols.sequencing.departing`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping

import msgspec

from ordercast.core.events import Kept, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.waiting import Awaited, Holdings, Waiting, WaitingFrame, first_named
from ordercast.machinery.guests import GuestBook
from ordercast.machinery.numbering import Numbering
from ordercast.machinery.transfer import AnyEntry, BookState, counts, reopened
from ordercast.protocols.sequencing.backed import BackedPart
from ordercast.protocols.sequencing.explained import kept_by_part
from ordercast.protocols.sequencing.headers import (
    DoMulticast,
    Moved,
)
from ordercast.protocols.sequencing.member import NOT_ASKED


class GroupPart(BackedPart):
    """One group: all of it."""

    # -- the group is handed over -----------------------------------------------------------------

    def hand_over(
        self, g: GroupId, to: ProcessId
    ) -> tuple[BookState, list[tuple[AnyEntry, bytes]]]:
        """Stop numbering, and give the book away. What comes from now on is forwarded."""
        book, view = self.book, self.latest_view(g)
        assert book is not None
        book.prune()
        state = BookState(
            view.era,
            view.number,
            view.members,
            view.guests,
            book.N,
            counts(self._last_numbered(book)),
            counts(book.acks.marks),
            counts(book.joining),
            counts(book.leaving),
            counts(self.guests.stable),
            tuple(sorted(self.guests.untold.items())),
            (self.lingering[0], tuple(sorted(self.lingering[1]))),
            tuple(sorted(self.behind.items())),
            self.move,
            self.changes,
            counts(self.gone),
            tuple(sorted({*self.former, self.me})),
            len(book.history),
            counts(book.began),
            self.all_departing(),
        )
        entries = self.travelling(g)
        waiting = list(self._waiting_requests(book))
        # Who left may not have delivered its last view: it must know whom to ask.
        to_tell = (*view.senders, *book.leaving, *self.guests.untold, *self.departing)
        self.word_of_move = Moved(to, self.move + 1), tuple(dict.fromkeys(to_tell))
        self.legacy = self.keep_bodies(book.history)
        self.book, self.successor = None, to
        self.service.members_changed()
        self.guests = GuestBook((), {})
        self.deferred, self.asked, self.apart, self.departing = {}, {}, set(), {}
        for p, request, m in waiting:
            self.on_DO_MULTICAST(p, g, request, m)
        return state, entries

    def _waiting_requests(self, book: Numbering) -> Iterator[tuple[ProcessId, DoMulticast, bytes]]:
        ahead = {p: dict(frames) for p, frames in book.ahead.items()}
        for p, queue in self.deferred.items():
            ahead.setdefault(p, {}).update((frame.n, frame.payload) for frame in queue)
        for p, frames in ahead.items():
            for n, m in sorted(frames.items()):
                yield p, DoMulticast(n, *self.asked.get((p, n), NOT_ASKED)), m

    def unstable(self, g: GroupId) -> tuple[Kept, ...]:
        """Also what was handed over and has perhaps not arrived, or stayed here."""
        kept = super().unstable(g)
        handed = {**self.copies, **(self.legacy or self.left)}
        if not handed:
            return kept
        here = {(entry.origin, entry.n) for entry in kept}
        return kept + tuple(e for e in self.as_kept(handed) if (e.origin, e.n) not in here)

    def settled_leavers(self) -> tuple[ProcessId, ...]:
        """Who left, and all have delivered the view without it: said once."""
        if not self.gone or self.book is None:
            return ()
        settled = tuple(p for p, N in self.gone.items() if self.book.stable >= N)
        for p in settled:
            del self.gone[p]
        return settled

    def tell_moved(self, g: GroupId, *, sole: bool = False) -> None:
        """At the former sequencer: the next one has everything, and of some of it nobody else."""
        if sole and self.legacy is not None:
            self.keep_copies(self.legacy)
        self.legacy = None
        self.call_safe(g)  # a third one has the book
        if self.word_of_move is not None:
            moved, to_tell = self.word_of_move
            self.word_of_move = None
            self._tell_all(g, moved, to_tell)
        self.service.send_released()

    def _tell_all(self, g: GroupId, moved: Moved, to_tell: tuple[ProcessId, ...]) -> None:
        if self.move < moved.move:  # the next one's numbers may have come first
            self.move = moved.move
            self._follow(g, moved.to)
        era = self.latest_view(g).era
        to = tuple(p for p in to_tell if p not in (self.me, moved.to))
        if to:
            self.out.transmits.append((to, g, era, moved, b""))
        self._take_unnamed()  # numbers of the next one that came before its word
        if self.delivers:
            self.acknowledge(g)

    def take_book(
        self, g: GroupId, state: BookState, entries: Collection[tuple[AnyEntry, bytes]]
    ) -> None:
        """The book is here. The first number is given when those of all groups that came with it
        are."""
        self.former.update(state.former)
        history = {entry.N: entry.numbered(body) for entry, body in entries}
        self.book = reopened(state, history, self.options.max_held)
        self.successor, self.legacy = None, None  # it may be back before word of that came
        self.copies = {}
        self.call_safe(g)  # it had the book before: who handed it over now has copies, too
        self.guests = GuestBook((), {})
        self.guests.stable = dict(state.guests_stable)
        self.guests.untold = dict(state.untold)
        self.guests.pending = {p: deque() for p in self.guests.stable}
        for N, entry in self.book.history.items():
            self.guests.numbered(entry.origin, entry.n, N)
        self.lingering = (state.lingering[0], frozenset(state.lingering[1]))
        self.behind = dict(state.behind)
        self.entered = dict(state.last)
        self.changes, self.gone, self.move = state.changes, dict(state.gone), state.move
        self.departing = {p: R for p, R in state.departing if p != self.me}
        self.came_in.update(state.began)
        self.count_holders_anew()
        latest = View(
            g, state.view, state.members, self.me, state.era, max(1, state.N), guests=state.guests
        )
        era, ended = self.left_in.get(g, (0, 0))
        if era == state.era:  # the word that it has had its last view may still be on its way
            self.taken = max(self.taken, ended)
        self._catch_up(g, dict(state.joining), latest)
        self.latest = latest
        self._follow(g, self.me)
        self.others[g] = tuple(p for p in state.members if p != self.me)
        self.move += 1
        self.acknowledge(g)
        self.start_timer(g, "status", self.options.status_ms)
        self.take_left(g, entries)
        for N, entry in list(self.book.history.items()):
            if N not in self.elsewhere:
                self.place(g, N, self.book.stable, entry)

    def expected(self) -> set[ProcessId]:
        """Whoever the book waits for."""
        assert self.book is not None and self.latest is not None
        told = (*self.guests.untold, *self.departing)
        return {*self.book.acks.marks, *self.latest.senders, *told}

    def begin_to_number(self, g: GroupId) -> None:
        """What came before the book."""
        self._take_unnamed()
        unready, self.unready = self.unready, []
        for p, request, m in unready:
            self.ask(g, p, request, m)
        self.dismiss_departing(g)
        self.service.moved(g)

    def _catch_up(self, g: GroupId, joining: Mapping[ProcessId, int], latest: View) -> None:
        """The word for a view that this process comes in with, or goes with as a guest, may still
        be on its way here."""
        assert self.book is not None
        view = self.views.get(g)
        entry = next(iter(self.guests.untold.pop(self.me, ())[-1:]), None)
        if entry is not None and self.me not in entry.guests:
            self.service.wanted.pop(g, None)  # it came and went, and had not heard of either
        if self.me in joining:
            entry = self.book.history[joining[self.me]].view
        if entry is not None and self.taken < entry.N:
            self.leader = self.me
            if view is not None and self.me in view.guests:
                self._follow_view(g, entry)
            elif self._admits_us(entry) and (view is None or self.me not in view.senders):
                self._come_in(g, entry, latest.era)
        if g not in self.views:
            self.install(latest)

    # -- what waits, and why ----------------------------------------------------------------------

    def unnumbered(self) -> list[int]:
        return [n for n in super().unnumbered() if n <= self.released]  # others are held up

    def _asked(self, g: GroupId) -> Iterator[WaitingFrame]:
        here = {frame.n for frame in self.deferred.get(self.me, ())}
        return (frame for frame in super()._asked(g) if frame[2] not in here)

    def _behind(self, g: GroupId) -> Iterator[Waiting]:
        head = self.arrived.get(self.R + 1)
        elsewhere: tuple[Awaited, ...] = ()
        if head is not None:
            context = head.context if head.view is None else head.view.context
            elsewhere = first_named(self.service.awaited(g, context))
        for waiting in super()._behind(g):
            yield msgspec.structs.replace(
                waiting, awaits=first_named((*elsewhere, *waiting.awaits))
            )

    def held_back(self) -> list[Waiting]:
        held = super().held_back()
        held += (waiting for g in self.views for waiting in kept_by_part(self, g))
        return held

    def waiting_frames(self) -> list[WaitingFrame]:
        frames = super().waiting_frames()
        frames += (waiting.frame for g in self.views for waiting in kept_by_part(self, g))
        return frames

    def holdings(self, g: GroupId) -> Holdings:
        here = super().holdings(g)
        more = sum(map(len, self.deferred.values())) + len(self.unready) + len(self.unnamed)
        history = here.history + len(self.left) + len(self.copies)
        return msgspec.structs.replace(here, held=here.held + more, history=history)
