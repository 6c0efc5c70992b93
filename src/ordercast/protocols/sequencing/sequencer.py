"""One group of the sequencing service at one process: the part of its sequencer.

    DO-MULTICAST(n, C, after) from p    wait until p's frames in `after` have numbers;
                                        N := N + 1;  ACCEPT(N, context) to the members
    DO-NUMBER(n, C, after) from p       the same; the members have the body from p, and get NUMBER

What stands in a context:

    exact    the last numbers of groups that share a member with this one, and are numbered here
    deps     what p had seen, and its frames before
"""

from __future__ import annotations

from collections import deque

import msgspec

from ordercast.core.events import Change, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import on
from ordercast.errors import PeerError
from ordercast.machinery.numbering import VIEW_ENTRY, Numbered, Numbering, ViewEntry
from ordercast.machinery.sequencer_headers import Delivered, Fetch
from ordercast.protocols.sequencing.headers import (
    AcceptedIn,
    AcceptIn,
    AskHeld,
    DoMulticast,
    DoNumber,
    Forwarded,
    Held,
    Ids,
    Moved,
    NumberIn,
)
from ordercast.protocols.sequencing.member import NOT_ASKED, MemberPart


class SequencerPart(MemberPart):
    """One group: what its sequencer does."""

    # -- the sequencer numbers --------------------------------------------------------------------

    @on(DoMulticast)
    def on_DO_MULTICAST(self, p: ProcessId, g: GroupId, request: DoMulticast, m: bytes) -> None:
        if self.book is not None and not self.service.taking_over:
            self.ask(g, p, request, m)
        elif self.successor is not None:
            forwarded = Forwarded(p, request.n, request.context, request.after)
            self.send(self.successor, g, forwarded, m)
            self.service.tally.forwarded += 1
        elif len(self.unready) < self.options.max_held:  # the book is on its way
            self.unready.append((p, request, m))

    @on(DoNumber)
    def on_DO_NUMBER(self, p: ProcessId, g: GroupId, request: DoNumber, m: bytes) -> None:
        if self.book is not None:
            above = request.n - self.book.last.get(p, 0)
            if 0 < above <= self.options.max_held:
                self.apart.add((p, request.n))
        elif self.delivers:
            self.take_body(g, p, request.n, m)
        if request.to == self.me or self.book is not None:
            plain = DoMulticast(request.n, request.context, request.after)
            self.on_DO_MULTICAST(p, g, plain, m)

    @on(Forwarded)
    def on_FORWARDED(self, src: ProcessId, g: GroupId, forwarded: Forwarded, m: bytes) -> None:
        self._check_sequencer(src)
        request = DoMulticast(forwarded.n, forwarded.context, forwarded.after)
        self.on_DO_MULTICAST(forwarded.origin, g, request, m)

    def ask(self, g: GroupId, p: ProcessId, request: DoMulticast, m: bytes) -> None:
        assert self.latest is not None
        if p not in self.latest.senders:
            self.note("drop", g, p, request.n, "not a member")
            return
        self.traffic[p] = self.traffic.get(p, 0) + 1
        if request.n > self.entered.get(p, 0):
            self._note_asked(p, request)
        self.number(g, p, request.n, m)
        if self.deferred:  # a repeat may say more
            self.number_deferred(g, p)

    def _note_asked(self, p: ProcessId, request: DoMulticast) -> None:
        """What the frame comes after. Of several copies the last one that was sent counts: the
        frames in `after` only become fewer."""
        known = self.asked.get((p, request.n))
        if known is not None and len(request.after) > len(known[1]):
            return
        if request.context or request.after:
            self.asked[p, request.n] = (request.context, request.after)
        else:
            self.asked.pop((p, request.n), None)

    def take_up(self, g: GroupId, frame: Numbered) -> None:
        if frame.origin in self.deferred or self._is_early(frame):
            self.deferred.setdefault(frame.origin, deque()).append(frame)
        else:
            self._enter(g, frame)

    def _is_early(self, frame: Numbered) -> bool:
        return bool(self.unnumbered_before(frame))

    def unnumbered_before(self, frame: Numbered) -> Ids:
        """The sender's frames in other groups that a frame waits for."""
        _, after = self.asked.get((frame.origin, frame.n), NOT_ASKED)
        p, is_numbered = frame.origin, self.service.is_numbered
        return tuple((h, n) for h, n in after if not is_numbered(h, p, n))

    def has_numbered(self, p: ProcessId, n: int) -> bool:
        """At the sequencer: does p's frame n have a number?"""
        return self.book is not None and n <= self.entered.get(p, 0)

    def number_deferred(self, g: GroupId, p: ProcessId) -> None:
        """Frames of p got numbers elsewhere: those that waited for them may have theirs."""
        queue = self.deferred.get(p)
        while queue and not self._is_early(queue[0]):
            frame = queue.popleft()
            if not queue:
                del self.deferred[p]
            self._enter(g, frame)

    def _enter(self, g: GroupId, entry: Numbered) -> None:
        deps, after = self.asked.pop((entry.origin, entry.n), NOT_ASKED)
        context = self.service.context(self, g, entry, deps, after)
        if entry.view is not None:
            view = msgspec.structs.replace(entry.view, context=context)
            entry = Numbered(VIEW_ENTRY, entry.n, b"", view)
        else:
            self.service.tally.numbered += 1
            if context:
                entry = Numbered(entry.origin, entry.n, entry.payload, None, context)
        self.entered[entry.origin] = entry.n
        super()._enter(g, entry)
        if entry.origin in self.guests.stable:
            self._tell_guest(entry.origin, g)
        self.service.has_numbered(entry.origin)

    def announce(self, g: GroupId, N: int, entry: Numbered) -> None:
        assert self.book is not None
        stable = self.book.stable
        if (entry.origin, entry.n) in self.apart:
            self.apart.discard((entry.origin, entry.n))
            self.b_multicast(g, NumberIn(N, entry.origin, entry.n, stable, entry.context))
        else:
            self.b_multicast(g, self.accept(N, entry, stable), entry.payload)

    def accept(self, N: int, entry: Numbered, stable: int) -> AcceptIn:
        return AcceptIn(N, entry.origin, entry.n, stable, entry.context)

    # -- the sequencer's members and guests -------------------------------------------------------

    def _tell_guest(self, p: ProcessId, g: GroupId) -> None:
        book = self.book
        assert book is not None
        stable = self.guests.stable[p]
        n = max(stable, self.entered.get(p, 0))
        pending = [(N, k) for N, k in self.guests.pending[p] if k <= n]
        held_up_to = self.known_held()
        held = max((k for N, k in pending if held_up_to >= N), default=stable)
        word = AcceptedIn(n, stable, pending[-1][0] if pending else 0, held)
        if p == self.me:
            self._accepted(g, word)
        else:
            self.out.send_word(p, g, self.views[g].era, word)

    def known_held(self) -> int:
        """Numbers up to this one are held by a member. One that numbers and is alone in the group
        may die with them, unless it has consumed them: then nobody needs them."""
        assert self.book is not None
        return self.held_up_to if self._somebody_else() else self.book.stable

    def _somebody_else(self) -> bool:
        """Is there a member other than the sequencer, who would have to deliver?"""
        return self.book is not None and any(p != self.me for p in self.book.acks.marks)

    def _acknowledged(self, g: GroupId, p: ProcessId, R: int) -> None:
        super()._acknowledged(g, p, R)
        if p != self.me and self.book is not None and p in self.book.acks.marks:
            self._is_held(g, p, R)

    @on(Delivered)
    def on_DELIVERED(self, p: ProcessId, g: GroupId, ack: Delivered, m: bytes) -> None:
        if self.book is not None:  # else it will hear who numbers now, and say it again there
            super().on_DELIVERED(p, g, ack, m)

    @on(Fetch)
    def on_FETCH(self, p: ProcessId, g: GroupId, fetch: Fetch, m: bytes) -> None:
        if self.book is not None:
            super().on_FETCH(p, g, fetch, m)

    @on(Held)
    def on_HELD(self, p: ProcessId, g: GroupId, held: Held, m: bytes) -> None:
        if self.book is not None and p in self.book.acks.marks:
            if held.N > self.book.N:
                raise PeerError(f"it has number {held.N}, but only {self.book.N} were given")
            self._is_held(g, p, held.N)

    def _is_held(self, g: GroupId, p: ProcessId, N: int) -> None:
        """p has delivered all numbers up to N, from where it came in."""
        if max(self.held_up_to, self.holding.get(p, 0)) < N:
            self.holding[p] = N
            self._look_what_is_held(g)

    def _look_what_is_held(self, g: GroupId) -> None:
        held = self._now_held()
        if held > self.held_up_to:
            self.held_up_to = held
            self.held_further(g)

    def _now_held(self) -> int:
        """Each number up to this one is held by another member, or no other must deliver it: those
        that came in later have none of those before, whatever they say that they have; and who
        leaves takes along what it has."""
        assert self.book is not None
        began, marks = self.book.began, self.book.acks.marks
        held = max(self.held_up_to, self.book.stable)
        if began:
            others = (began.get(p, 0) for p in marks if p != self.me)
            held = max(held, min(others, default=0))
        for p in sorted(self.holding, key=lambda p: began.get(p, 0)):
            if p not in marks or p in self.book.leaving:
                del self.holding[p]
            elif began.get(p, 0) <= held:
                held = max(held, self.holding.pop(p))
        return held

    def count_holders_anew(self) -> None:
        """From what all have acknowledged: this process has the book since now, or a member goes,
        and what only that one had is with nobody any more."""
        assert self.book is not None
        marks = self.book.acks.marks
        self.held_up_to, self.holding = 0, {p: R for p, R in marks.items() if p != self.me}
        self.held_up_to, self.asked_held = self._now_held(), 0

    def _prune(self, g: GroupId) -> None:
        super()._prune(g)
        assert self.book is not None
        if self.holding or self.book.began:
            self._look_what_is_held(g)

    def held_further(self, g: GroupId) -> None:
        """More is held by others: guests and own messages may wait for that."""
        for p, frames in self.guests.pending.items():
            if frames:
                self._tell_guest(p, g)
        self.service.send_released()

    def exposed(self, g: GroupId, N: int) -> bool:
        """At the sequencer: would number N be lost if this process died now? Also while the book is
        on its way to the next one, which may not have it yet."""
        if self.book is None:
            return self.legacy is not None and self.held_up_to < N
        return self.held_up_to < N and self._somebody_else()

    def is_watched(self, g: GroupId) -> bool:
        """May members speak in other groups of what only they and the sequencer have? Where the
        order is causal, and no gate sees to it that several have a message."""
        service = self.service
        return service.causal and self.options.resilience != 0 and g not in service.durability

    def ask_held(self, g: GroupId, N: int) -> None:
        """Somebody else must have what is seen here, before this process speaks of it."""
        if self.book is not None and self.asked_held < N:
            self.asked_held = N
            self._ask_held(g)

    def _ask_held(self, g: GroupId) -> None:
        assert self.book is not None
        began = self.book.began
        gone = (self.me, *self.book.leaving)
        others = [p for p in self.book.acks.marks if p not in gone]
        if others:
            oldest = min(others, key=lambda p: began.get(p, 0))
            self.send(oldest, g, AskHeld(self.asked_held))

    def _tell_status(self, g: GroupId) -> None:
        super()._tell_status(g)
        if self.book is not None and self.exposed(g, self.asked_held):
            self._ask_held(g)  # the question, or the answer, may be lost
            self.start_timer(g, "status", self.options.status_ms * self.book.backoff)

    def latest_view(self, g: GroupId) -> View:
        return self.latest or self.views[g]

    def on_change(self, change: Change) -> None:
        g = change.group
        before = self.latest_view(g)
        number = 0 if self.book is None else self.book.N
        super().on_change(change)
        assert self.book is not None
        if change.joined or change.guests or change.left:  # ordered; the dead are seen here
            self.changes += 1
        if change.left:
            asked_held = self.asked_held
            self.count_holders_anew()
            if asked_held and self.exposed(g, asked_held):
                self.ask_held(g, asked_held)
        for p in change.dead:
            self._forget_requests(p)
        if number < self.book.N and set(before.members) - set(self.latest_view(g).members):
            _, old = self.lingering
            self.lingering = (self.book.N, old.union(before.members).difference(change.dead))
        self.gone.update((p, self.book.N) for p in change.left)
        for p in (*change.joined, *change.dead):
            self.gone.pop(p, None)
        self.service.members_changed()

    def _next_view(self, book: Numbering, now: View, change: Change) -> ViewEntry:
        entry = super()._next_view(book, now, change)
        if not self.deferred:
            return entry
        # A guest that becomes a member would take its waiting frames for numbered.
        numbered = self._last_numbered(book)
        last = tuple((p, numbered.get(p, n)) for p, n in entry.last)
        return msgspec.structs.replace(entry, last=last)

    def _change_to(self, g: GroupId, book: Numbering, now: View, entry: ViewEntry) -> None:
        self.latest = View(
            g, entry.number, entry.members, self.me, now.era, entry.N, guests=entry.guests
        )
        for p in set(now.senders) - set(self.latest.senders):
            self._forget_requests(p)
        never_in = g in self.member_of and g not in self.service.member_of
        if never_in and (self.me in entry.joined or self.me not in entry.members):
            # It let itself in, and has not delivered that view; now it goes, or comes once more.
            self.member_of.discard(g)
            self.delivers = False
            self.arrived.clear()
            self.top = self.R
        super()._change_to(g, book, now, entry)
        if self.me in entry.joined:
            self.service.progressed(g)  # what lies before it need not be waited for any more
        if never_in and self.me not in entry.members:
            self.taken = entry.N
            self.service.wanted.pop(g, None)
            self.acknowledge(g)
            self.service.progressed(g)

    def _last_numbered(self, book: Numbering) -> dict[ProcessId, int]:
        """Frames that wait for others go along as requests."""
        return {
            p: self.deferred[p][0].n - 1 if p in self.deferred else n for p, n in book.last.items()
        }

    def _forget_requests(self, p: ProcessId) -> None:
        self.deferred.pop(p, None)
        self.entered.pop(p, None)
        self.asked = {key: said for key, said in self.asked.items() if key[0] != p}
        self.apart = {key for key in self.apart if key[0] != p}

    def counted_members(self) -> frozenset[ProcessId]:
        """For what this group shares with others: the members, and who left a moment ago."""
        if self.book is None or self.latest is None:
            return frozenset()
        number, lingering = self.lingering
        if lingering and self.book.stable >= number:
            self.lingering = (0, frozenset())
            lingering = frozenset()
        return lingering.union(self.latest.members)

    def gone_for_good(self, p: ProcessId) -> None:
        super().gone_for_good(p)
        self._forget_requests(p)

    def _send_status(self, p: ProcessId, g: GroupId) -> None:
        """Who is behind may not have heard who numbers now."""
        if self.move:
            self.send(p, g, Moved(self.me, self.move))
        super()._send_status(p, g)
