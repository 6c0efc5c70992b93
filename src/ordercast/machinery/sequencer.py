"""The sequencer of a group: gives out numbers, and answers for them.

One process, the leader of the view, numbers what the group sends; it may be a member too. This is
what it does in one era. It is a part of the machine in `machinery.sequenced`, which sends what the
sequencer has to say. How the *body* of a numbered frame travels is left to the page.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec

from ordercast.core.events import View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.output import Output
from ordercast.core.protocol import Options
from ordercast.core.state import PlainState
from ordercast.machinery.guests import GuestBook
from ordercast.machinery.numbering import Numbered, Numbering
from ordercast.machinery.sequencer_headers import Accept, Accepted, Delivered, Fetch, Status
from ordercast.machinery.unanswered import Unanswered


class Machine(Protocol):
    """What a sequencer needs of the machine that it is a part of."""

    out: Output
    views: dict[GroupId, View]
    running: set[str]
    unanswered: Unanswered

    # the verbs
    def send(self, p: ProcessId, g: GroupId, header: msgspec.Struct, m: bytes = b"") -> None: ...
    def b_multicast(self, g: GroupId, header: msgspec.Struct, m: bytes = b"") -> None: ...
    def start_timer(self, g: GroupId, name: str, delay_ms: int) -> None: ...
    def note(self, kind: str, g: GroupId, sender: ProcessId, n: int, remark: str = "") -> None: ...

    # the page
    def announce(self, g: GroupId, N: int, stable: int, entry: Numbered) -> None: ...

    # the member at this process
    def place(self, g: GroupId, N: int, stable: int, entry: Numbered) -> None: ...
    def learn(self, g: GroupId, top: int, stable: int) -> None: ...
    def learn_as_guest(self, g: GroupId, n: int, stable: int) -> None: ...


class Sequencer(PlainState):
    """What the one process does that numbers a group, in one era."""

    def __init__(
        self, me: ProcessId, view: View, done: Mapping[ProcessId, int], options: Options
    ) -> None:
        self.me = me
        self.options = options
        self.book = Numbering(view.members, 0, done, options.max_held)
        self.guests = GuestBook(view.guests, done)

    # -- it numbers -------------------------------------------------------------------------------

    def number(self, machine: Machine, g: GroupId, origin: ProcessId, n: int, m: bytes) -> None:
        """Number frame n of origin in its turn; answer a repeat with the number it has."""
        book = self.book
        frames = book.in_order(origin, n, m)
        for frame in frames:
            self.enter(machine, g, frame)
        if origin in self.guests.stable:
            self.prune(machine, g)
            self.tell_guest(machine, origin, g)
        elif not frames and (N := book.number_of.get((origin, n))) is not None:
            self.resend(machine, origin, g, N)

    def enter(self, machine: Machine, g: GroupId, entry: Numbered) -> None:
        """N := N + 1;  tell all;  deliver it here like any member"""
        book = self.book
        N = book.enter(entry)
        self.guests.numbered(entry.origin, entry.n, N)
        machine.announce(g, N, book.stable, entry)
        book.told = book.stable
        self._expect_reports(machine, g)
        machine.place(g, N, book.stable, entry)

    def tell_guest(self, machine: Machine, p: ProcessId, g: GroupId) -> None:
        """How far its frames have come: it is sent no ACCEPT."""
        n, stable = self.book.last.get(p, 0), self.guests.stable[p]
        if p == self.me:
            machine.learn_as_guest(g, n, stable)
        else:
            machine.out.send_word(p, g, machine.views[g].era, Accepted(n, stable))

    def resend(self, machine: Machine, p: ProcessId, g: GroupId, N: int) -> None:
        """Number N again, with its body."""
        entry = self.book.history[N]
        if p == self.me or p in self.guests.stable:
            return
        machine.note("retransmit", g, entry.origin, entry.n, f"number {N} to {p}")
        accept = Accept(N, entry.origin, entry.n, self.book.stable)
        machine.send(p, g, accept, entry.payload)

    def fetched(self, machine: Machine, p: ProcessId, g: GroupId, fetch: Fetch) -> None:
        """p lacks these numbers."""
        last = min(fetch.last, fetch.first + self.options.fetch_batch - 1, self.book.N)
        for N in range(max(fetch.first, self.book.stable + 1), last + 1):
            self.resend(machine, p, g, N)

    # -- it learns what is stable -----------------------------------------------------------------

    def delivered(self, machine: Machine, p: ProcessId, g: GroupId, ack: Delivered) -> None:
        """p reports how far it is."""
        repeated = self.book.acks.marks.get(p) == ack.R
        self.acknowledged(machine, g, p, ack.R)
        if p in self.guests.stable:
            self.tell_guest(machine, p, g)
        elif repeated:
            self.send_status(machine, p, g)

    def acknowledged(self, machine: Machine, g: GroupId, p: ProcessId, R: int) -> None:
        """p, perhaps this process itself, has consumed all numbers up to R."""
        if self.book.acknowledged(p, R):
            self.prune(machine, g)

    def prune(self, machine: Machine, g: GroupId) -> None:
        """Forget what all have consumed, and say so soon."""
        book = self.book
        book.prune()
        for p in self.guests.settle(book.stable):
            self.tell_guest(machine, p, g)
        if book.stable > book.told:
            machine.start_timer(g, "status", self.options.status_ms)
        machine.learn(g, book.N, book.stable)

    def tell_status(self, machine: Machine, g: GroupId) -> None:
        """What is stable, if no number has told it."""
        book = self.book
        if book.stable > book.told:
            book.told = book.stable
            for p in book.acks.marks:
                if p != self.me:
                    self.send_status(machine, p, g)

    def _expect_reports(self, machine: Machine, g: GroupId) -> None:
        """All are to report the delivery of what was numbered; who does not is told of it again."""
        if "behind" not in machine.running:
            machine.unanswered.due = self.book.N
            self._await_reports(machine, g)

    def _await_reports(self, machine: Machine, g: GroupId) -> None:
        machine.unanswered.numbered = self.book.N
        machine.start_timer(g, "behind", machine.unanswered.statuses.wait)

    def tell_who_is_behind(self, machine: Machine, g: GroupId) -> None:
        """STATUS to those who have not reported what was numbered when the timer was started. A
        report that crosses with it makes the sequencer wait longer the next time."""
        book = self.book
        if next(iter(book.history), book.N + 1) <= book.stable:
            self.prune(machine, g)
        behind = book.behind(self.me)
        for p in machine.unanswered.late(behind, book.N):
            self.send_status(machine, p, g)
        if behind:
            self._await_reports(machine, g)

    def send_status(self, machine: Machine, p: ProcessId, g: GroupId) -> None:
        """How many numbers were given, what is stable, and what is known of p."""
        book = self.book
        machine.send(p, g, Status(book.N, book.stable, book.acks.marks.get(p, book.N)))

    def forget(self, p: ProcessId) -> None:
        """p is gone for good: nothing more is expected of it."""
        self.book.forget(p)
        self.guests.forget(p)

    def invariants(self) -> None:
        """What must always hold."""
        self.book.invariants()
        self.guests.invariants()
        assert not self.guests.stable.keys() & self.book.acks.marks, "a guest is no member"
