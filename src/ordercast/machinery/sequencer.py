"""The sequencer of a group: gives out numbers, and answers for them.

One process, the leader of the view, numbers what the group sends; it may be a member too. How the
*body* travels is left to the two pages built on this: `sequencer_pb` (through the sequencer) and
`sequencer_bb` (from the sender to all).
"""

from __future__ import annotations

from abc import abstractmethod

import msgspec

from ordercast.core.events import Change, Kept, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.numbers import next_view_number
from ordercast.core.protocol import Options, on
from ordercast.core.waiting import Holdings, Waiting, WaitingFrame
from ordercast.errors import PeerError
from ordercast.machinery.guests import GuestBook
from ordercast.machinery.numbering import VIEW_ENTRY, Numbered, Numbering, ViewEntry
from ordercast.machinery.sequenced import SequencedMember
from ordercast.machinery.sequenced_waiting import ahead_frames, held_ahead
from ordercast.machinery.sequencer_headers import Accept, Accepted, Delivered, Fetch, Status

MAX_BACKOFF = 32  # a view is repeated to who does not confirm it, in the end after so many periods


class SequencedProtocol(SequencedMember):
    """Total order in one group by one process that gives out numbers: both parts."""

    def __init__(self, me: ProcessId, options: Options | None = None) -> None:
        super().__init__(me, options)
        self.book: Numbering | None = None  # at the sequencer only
        self.guests = GuestBook((), {})  # at the sequencer only

    @abstractmethod
    def announce(self, g: GroupId, N: int, entry: Numbered) -> None:
        """At the sequencer: tell all members that this frame has the number N."""

    # -- the sequencer numbers --------------------------------------------------------------------

    def number(self, g: GroupId, origin: ProcessId, n: int, m: bytes) -> None:
        """Number frame n of origin in its turn; answer a repeat with the number it has."""
        book = self.book
        if book is None:
            raise PeerError("a request to number a frame came to a process that is no sequencer")
        frames = book.in_order(origin, n, m)
        for frame in frames:
            self.take_up(g, frame)
        if origin in self.guests.stable:
            self._prune(g)
            self._tell_guest(origin, g)
        elif not frames and (N := book.number_of.get((origin, n))) is not None:
            self._resend(origin, g, N)

    def take_up(self, g: GroupId, frame: Numbered) -> None:
        """A frame whose predecessors have numbers."""
        self._enter(g, frame)

    def _tell_guest(self, p: ProcessId, g: GroupId) -> None:
        """How far its frames have come: it is sent no ACCEPT."""
        assert self.book is not None
        n, stable = self.book.last.get(p, 0), self.guests.stable[p]
        if p == self.me:
            self.learn_as_guest(g, n, stable)
        else:
            self.out.send_word(p, g, self.views[g].era, Accepted(n, stable))

    def _enter(self, g: GroupId, entry: Numbered) -> None:
        book = self.book
        assert book is not None
        N = book.enter(entry)
        self.guests.numbered(entry.origin, entry.n, N)
        if entry.view is not None:
            self._tell_view(g, entry.view)
        else:
            self.announce(g, N, entry)
            book.told = book.stable
        book.backoff = 1
        self.expect_reports(g)
        self.place(g, N, book.stable, entry)

    def _tell_view(self, g: GroupId, entry: ViewEntry) -> None:
        assert self.book is not None
        self.out.words.clear()  # one sent before this view must not tell of what comes after it
        self.b_multicast(g, entry)
        for p, last_view in self.book.leaving.items():
            if last_view == entry.N and p != self.me:
                self.send(p, g, entry)
        for p, views in self.guests.untold.items():
            if entry in views:
                self.send(p, g, entry)

    def _resend(self, p: ProcessId, g: GroupId, N: int) -> None:
        assert self.book is not None
        entry = self.book.history[N]
        if p == self.me or p in self.guests.stable:
            return
        self.note("retransmit", g, entry.origin, entry.n, f"number {N} to {p}")
        if entry.view is not None:
            self.send(p, g, entry.view)
        else:
            self.send(p, g, self.accept(N, entry, self.book.stable), entry.payload)

    def accept(self, N: int, entry: Numbered, stable: int) -> msgspec.Struct:
        """What stands before a body that is sent with its number."""
        return Accept(N, entry.origin, entry.n, stable)

    @on(Fetch)
    def on_FETCH(self, p: ProcessId, g: GroupId, fetch: Fetch, m: bytes) -> None:
        if self.book is None:
            raise PeerError("FETCH came to a process that is no sequencer")
        last = min(fetch.last, fetch.first + self.options.fetch_batch - 1, self.book.N)
        for N in range(max(fetch.first, self.book.stable + 1), last + 1):
            self._resend(p, g, N)

    # -- the sequencer learns what is stable ------------------------------------------------------

    @on(Delivered)
    def on_DELIVERED(self, p: ProcessId, g: GroupId, ack: Delivered, m: bytes) -> None:
        if self.book is None:
            raise PeerError("an acknowledgement came to a process that is no sequencer")
        repeated = self.book.acks.marks.get(p) == ack.R
        self._acknowledged(g, p, ack.R)
        self.guests.confirmed(p, ack.R)
        if p in self.guests.stable:
            self._tell_guest(p, g)
        elif repeated:
            self._send_status(p, g)

    def acknowledge(self, g: GroupId) -> None:
        if self.book is None:
            super().acknowledge(g)
        else:  # to itself
            self.acked = self.taken
            self._acknowledged(g, self.me, self.taken)

    def _acknowledged(self, g: GroupId, p: ProcessId, R: int) -> None:
        assert self.book is not None
        if self.book.acknowledged(p, R):
            self._prune(g)

    def _prune(self, g: GroupId) -> None:
        assert self.book is not None
        self.book.prune()
        for p in self.guests.settle(self.book.stable):
            self._tell_guest(p, g)
        if self.book.stable > self.book.told:
            self.start_timer(g, "status", self.options.status_ms)
        self.learn(g, self.book.N, self.book.stable)

    def _tell_status(self, g: GroupId) -> None:
        """What is stable, if no number has told it; and views that somebody must confirm."""
        book = self.book
        if book is None:
            return
        others = [p for p in book.acks.marks if p != self.me]
        if book.stable > book.told:
            book.told = book.stable
            for p in others:
                if p not in book.joining:
                    self._send_status(p, g)
        joining = [p for p in others if p in book.joining]
        for p in joining:
            self._resend(p, g, book.joining[p])
        for p, views in self.guests.untold.items():
            self.send(p, g, views[0])
        if joining or self.guests.untold:
            book.backoff = min(2 * book.backoff, MAX_BACKOFF)
            self.start_timer(g, "status", self.options.status_ms * book.backoff)

    def expect_reports(self, g: GroupId) -> None:
        """All are to report the delivery of what was numbered; who does not is told of it again."""
        book = self.book
        assert book is not None
        if book.joining or self.guests.untold:
            self.start_timer(g, "status", self.options.status_ms)
        if "behind" not in self.running:
            self.unanswered.due = book.N
            self._await_reports(g, book)

    def _await_reports(self, g: GroupId, book: Numbering) -> None:
        self.unanswered.numbered = book.N
        self.start_timer(g, "behind", self.unanswered.statuses.wait)

    def _tell_who_is_behind(self, g: GroupId) -> None:
        """STATUS to those who have not reported what was numbered when the timer was started. A
        report that crosses with it makes the sequencer wait longer the next time."""
        book = self.book
        if book is None:
            return
        if next(iter(book.history), book.N + 1) <= book.stable:
            self._prune(g)
        behind = book.behind(self.me)
        for p in self.unanswered.late(behind, book.N):
            if p not in book.joining:
                self._send_status(p, g)
        if behind:
            self._await_reports(g, book)

    def _send_status(self, p: ProcessId, g: GroupId) -> None:
        book = self.book
        assert book is not None
        self.send(p, g, Status(book.N, book.stable, book.acks.marks.get(p, book.N)))

    def on_timer(self, g: GroupId, name: str) -> None:
        if name == "status":
            self.running.discard(name)
            self._tell_status(g)
        elif name == "behind":
            self.running.discard(name)
            self._tell_who_is_behind(g)
        else:
            super().on_timer(g, name)

    # -- views ------------------------------------------------------------------------------------

    def still_expects(self, p: ProcessId) -> bool:
        """A leaver's word that it has seen its last view."""
        return self.book is not None and (p in self.book.leaving or p in self.guests.untold)

    def on_change(self, change: Change) -> None:
        """At the sequencer: the next view gets a number like a message."""
        g, book, now = change.group, self.book, self.latest_view(change.group)
        assert book is not None, "a change of members goes to the sequencer"
        entry = self._next_view(book, now, change)
        for p in change.dead:
            book.forget(p)
            self.guests.forget(p)
        if (entry.members, entry.guests) != (now.members, now.guests):
            self._change_to(g, book, now, entry)
        self._prune(g)

    def latest_view(self, g: GroupId) -> View:
        """The last view that has a number."""
        return self.views[g]

    def _next_view(self, book: Numbering, now: View, change: Change) -> ViewEntry:
        gone = (*change.left, *change.dead)
        stay = tuple(p for p in now.members if p not in gone)
        joined = tuple(p for p in change.joined if p not in stay)
        members = stay + joined
        guests = [p for p in now.guests if p not in gone and p not in members]
        guests += [p for p in change.guests if p not in members and p not in guests]
        for p in joined:
            book.admit(p)
        for p in (*joined, *guests):
            if p not in now.senders:
                book.begin_stay(p)
        for p in change.left:
            if p in now.members:
                book.dismiss(p)
            book.end_stay(p)
        number = now.number
        if members != now.members:
            number = next_view_number(number, self.me, self.options.view_stride)
        last = book.last_of(guests, change.dead)
        return ViewEntry(book.N + 1, number, members, joined, last, book.stable, tuple(guests))

    def _change_to(self, g: GroupId, book: Numbering, now: View, entry: ViewEntry) -> None:
        self.guests.change(entry)
        self.guests.untold.pop(self.me, None)
        if self.me in entry.members and g not in self.member_of:
            self._begin_to_deliver(g, entry)
        if self.me in (*entry.members, *entry.guests) and self.me not in now.senders:
            self._take_up_frames(entry.last)
        if g in self.member_of:
            self.others[g] = tuple(p for p in entry.members if p != self.me)
        else:  # it only leads, and delivers nothing
            self.install(self._view_of(g, entry, now.era))
        self._enter(g, Numbered(VIEW_ENTRY, entry.N, b"", entry))

    def _begin_to_deliver(self, g: GroupId, entry: ViewEntry) -> None:
        """The sequencer itself becomes a member."""
        self._start_after(entry.N - 1)
        self.handed.clear()
        self.done.update(entry.last)
        self._become_member(entry)
        del self.kept[entry.N]  # it is delivered here like any other
        self.member_of.add(g)
        self.delivers = True

    def unstable(self, g: GroupId) -> tuple[Kept, ...]:
        """Also what was numbered here and delivered by others, or by nobody yet."""
        if self.book is None:
            return super().unstable(g)
        return self.as_kept({**self.book.history, **self.kept, **self.arrived})

    def gone_for_good(self, p: ProcessId) -> None:
        # What p alone had not consumed goes with the next STATUS. As p was behind, one will come.
        super().gone_for_good(p)
        if self.book is not None:
            self.book.forget(p)
            self.guests.forget(p)

    def holdings(self, g: GroupId) -> Holdings:
        here = super().holdings(g)
        if self.book is None:
            return here
        ahead = sum(map(len, self.book.ahead.values()))
        return Holdings(here.held + ahead, here.kept, len(self.book.history))

    def held_back(self) -> list[Waiting]:
        """At the sequencer also the frames that overtook their predecessors."""
        held = super().held_back()
        if self.book is not None:
            held += (waiting for g in self.views for waiting in held_ahead(g, self.book))
        return held

    def waiting_frames(self) -> list[WaitingFrame]:
        frames = super().waiting_frames()
        if self.book is not None:
            frames += (frame for g in self.views for frame in ahead_frames(g, self.book))
        return frames

    def _begin_era(self, view: View) -> None:
        leads = self.me == view.leader
        limit = self.options.max_held
        self.book = Numbering(view.members, 0, self.done, limit) if leads else None
        self.guests = GuestBook(view.guests if leads else (), self.done)
        super()._begin_era(view)
