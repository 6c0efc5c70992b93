"""The sequencer: the groups that one process numbers.

    REQUEST   wait until the frames before it have their numbers; then give it the next one, and
              say what that number comes after (its context), and what must be safe first (needs)
    ACK       enough hold it: safe; all have consumed it: stable, and forgotten
    MARKS     COMMIT and STATUS: what may be delivered, and what may be forgotten
    ANSWER    to a guest whose frame is safe
    FETCH     send again what a member lacks

What it knows of one group is a `Book`; here is what crosses groups.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from ordercast.core.events import Receive
from ordercast.core.ids import GroupId, ProcessId
from ordercast.errors import PeerError
from ordercast.protocols.sequencing.book import Book, Numbering
from ordercast.protocols.sequencing.contexts import Contexts
from ordercast.protocols.sequencing.headers import (
    Accept,
    Ack,
    Answer,
    Asked,
    Fetch,
    Marks,
    Number,
    Request,
    Spread,
)
from ordercast.protocols.sequencing.part import Environment, Part
from ordercast.protocols.sequencing.seat import Entry
from ordercast.protocols.sequencing.weights import weight_of_request

FETCH_BYTES = 16 * 1024 * 1024  # that are sent again for one FETCH; the last frame may exceed it


class OwnMember(Protocol):
    """The member at the same process, as a sequencer sees it."""

    def keep_body(self, g: GroupId, p: ProcessId, n: int, m: bytes) -> None:
        """The body of a frame came from its sender."""

    def numbered_here(self, g: GroupId, entry: Entry, commit: int, stable: int) -> None:
        """A frame of a group that this process is in got its number."""

    def marked_here(self, g: GroupId, N: int, commit: int, stable: int) -> None:
        """More may be delivered, or forgotten."""

    def kept(self, g: GroupId) -> Mapping[int, Entry]:
        """Frames that others may lack, by number."""


class OwnSender(Protocol):
    """The sender at the same process, as a sequencer sees it."""

    def answered(self, g: GroupId, era: int, answer: Answer) -> None:
        """As a guest of g: frames have places that no crash takes away."""


class Sequencer(Part):
    """Numbers for the frames of several groups."""

    lent = Part.lent | {"member", "sender"}

    def __init__(self, contexts: Contexts) -> None:
        self.contexts = contexts
        self.books: dict[GroupId, Book] = {}
        self.waiting: dict[ProcessId, deque[Asked]] = {}  # requests that cannot be numbered yet
        self.waiting_bytes: dict[ProcessId, int] = {}  # what they cost, by who asked
        self.uncommitted: set[GroupId] = set()  # not all that was numbered may be delivered
        self.numbered = 0  # frames, so far

    def connect(self, env: Environment, member: OwnMember, sender: OwnSender) -> None:
        """Lend it what it does not own."""
        self.share(env)
        self.member = member
        self.sender = sender
        self.contexts.connect(env, self.books)

    # -- requests ---------------------------------------------------------------------------------

    def on_REQUEST(self, p: ProcessId, packet: Receive) -> None:
        """DO-MULTICAST of p."""
        request: Request = packet.header  # type: ignore[assignment]
        self.requested(p, (packet.group, packet.era, request, packet.payload))

    def on_SPREAD(self, p: ProcessId, packet: Receive) -> None:
        """The same, which went to all members, too."""
        spread: Spread = packet.header  # type: ignore[assignment]
        g = packet.group
        self.member.keep_body(g, p, spread.n, packet.payload)
        if spread.to == self.me:
            self.requested(p, (g, packet.era, spread, packet.payload))

    def requested(self, p: ProcessId, asked: Asked) -> None:
        """Number it; or keep it until that is possible."""
        if p not in self.waiting and self._take_up(p, asked):
            return
        self._keep_waiting(p, asked)
        self.take_up_waiting(p)

    def _keep_waiting(self, p: ProcessId, asked: Asked) -> None:
        waiting = self.waiting.get(p, deque())
        # p asked with `after` a frame in a group that has moved away since: that request waits for
        # ever. It is repeated without; what is said last counts.
        place = next((i for i, held in enumerate(waiting) if _is_same(held, asked)), len(waiting))
        repeated = place < len(waiting)
        cost = weight_of_request(asked) - (weight_of_request(waiting[place]) if repeated else 0)
        cost += self.waiting_bytes.get(p, 0)
        if not repeated and len(waiting) >= self.options.max_held:
            most = self.options.max_held
            raise PeerError(f"more than {most} requests that cannot be numbered")
        if cost > self.options.max_held_bytes:
            most = self.options.max_held_bytes
            raise PeerError(f"more than {most} bytes of requests that cannot be numbered")
        if repeated:
            waiting[place] = asked
        else:
            waiting.append(asked)
        self.waiting[p], self.waiting_bytes[p] = waiting, cost

    def take_up_waiting(self, p: ProcessId) -> None:
        """Requests that overtook others, or the change that begins their era."""
        waiting = self.waiting.get(p)
        moved = bool(waiting)
        while waiting and moved:
            before = len(waiting)
            for _ in range(before):
                asked = waiting.popleft()
                if self._take_up_or_blame(p, asked):
                    self.waiting_bytes[p] -= weight_of_request(asked)
                else:
                    waiting.append(asked)
            moved = len(waiting) < before
        if waiting is not None and not waiting:
            self.forget_waiting(p)

    def forget_waiting(self, p: ProcessId) -> None:
        """No request of p waits, or it is gone."""
        self.waiting.pop(p, None)
        self.waiting_bytes.pop(p, None)

    def _take_up_or_blame(self, p: ProcessId, asked: Asked) -> bool:
        """A fault in what has waited for a change is that of its sender: whoever brings the change
        has said nothing wrong, and the change goes on."""
        try:
            return self._take_up(p, asked)
        except PeerError as fault:
            self.out.faults.append((p, str(fault)))
            return True

    def _take_up(self, p: ProcessId, asked: Asked) -> bool:
        """Number it, if that is possible now; False if it must wait."""
        g, era, request, m = asked
        view = self.views.get(g)
        if view is None or era > view.era:
            return False
        book = self.books.get(g)
        if book is None or era < view.era or book.numbering is Numbering.STOPPED:
            return True  # void: its sender repeats it when the change is installed
        if isinstance(request, Spread) and p not in view.members:
            raise PeerError(f"Spread of era {era}, in which process {p} is no member")
        last = max(book.last.get(p, 0), request.first - 1)
        if request.n <= last:
            self._repeated(p, g, book, request.n, last)
            return True
        if request.n > last + 1:
            if request.n > last + self.options.max_held:
                raise PeerError(f"frame {request.n} lies more than max_held above {last}")
            return False
        for h, n in request.after:
            other = self.books.get(h)
            if other is None or other.last.get(p, 0) < n:
                return False
        if not self.contexts.have_begun(request.context):
            return False
        self._number(p, g, book, request, m)
        return True

    def _repeated(self, p: ProcessId, g: GroupId, book: Book, n: int, last: int) -> None:
        if p not in book.members and n == last:
            book.guests.append((book.given.get(p, book.base), p, n))
            self.progress(g, book)

    # -- numbers ----------------------------------------------------------------------------------

    # C.G := C.G + 1;  ACCEPT(G, C.G, p, n, context, needs, m) to the members
    def _number(
        self, p: ProcessId, g: GroupId, book: Book, request: Request | Spread, m: bytes
    ) -> None:
        context, needs = self.contexts.of_next(p, g, book, request)
        entry = Entry(book.era, book.N + 1, p, request.n, context, needs, m)
        book.enter(entry)
        self.numbered += 1
        if p not in book.members:
            book.guests.append((entry.N, p, request.n))
            book.unstable_of.setdefault(p, deque()).append((entry.N, request.n))
        self._commit(g, book)
        if book.others:
            kind = Number if isinstance(request, Spread) else Accept
            header = kind(entry.N, p, request.n, book.commit, book.stable, context, needs)
            payload = b"" if isinstance(request, Spread) else m
            self.out.transmits.append((book.others, g, book.era, header, payload))
            book.told = (book.N, book.commit, book.stable)
            if self.options.lossy and (g, "behind") not in self.timers.running:
                self.timers.waits(g).due = book.N
                self._await_reports(g, book)
        if self.me in book.members:
            self.member.numbered_here(g, entry, book.commit, book.stable)
        if book.guests and (not book.others_needed or not book.members):
            self.progress(g, book)

    # -- what is safe, committed, stable ----------------------------------------------------------

    def _commit(self, g: GroupId, book: Book) -> bool:
        """Which numbers may be delivered by those who have no other way to know: are there more?"""
        before = book.commit
        limit = book.safe if self.resilience.commits_only(g) else book.N
        while book.commit < limit and self._is_covered(book.frames.get(book.commit + 1)):
            book.commit += 1
        if book.commit < book.N:
            self.uncommitted.add(g)
        else:
            self.uncommitted.discard(g)
        return book.commit > before

    def _is_covered(self, entry: Entry | None) -> bool:
        """Are the earlier frames of its author safe?"""
        return entry is None or all(self.is_safe(*need) for need in entry.needs)

    def is_safe(self, h: GroupId, era: int, N: int) -> bool:
        """Of a group that is, or was, numbered here: does no crash take this number away?"""
        book = self.books.get(h)
        return book is None or book.era != era or book.settled >= N

    def on_ACK(self, p: ProcessId, packet: Receive) -> None:
        """What member p holds, and has consumed."""
        ack: Ack = packet.header  # type: ignore[assignment]
        self.acknowledged(p, packet.group, ack)

    def acknowledged(self, p: ProcessId, g: GroupId, ack: Ack) -> None:
        """The same of the member at this process."""
        book = self.books.get(g)
        if book is None or p not in book.done:
            raise PeerError(f"process {p} acknowledges numbers that are not given here")
        repeated = ack.held <= book.held.get(p, 0) and ack.done <= book.done[p]
        if book.acknowledged(p, ack.held, ack.done):
            self.progress(g, book)
        waits = repeated and book.base < book.N  # for what was lost
        if waits and self.options.lossy and p != self.me:
            self._send_marks((p,), g, book)

    def progress(self, g: GroupId, book: Book) -> None:
        """More of g is safe, or stable."""
        self._commit(g, book)
        waiting = {h: self.books[h].commit for h in self.uncommitted if h != g}
        goes_on = bool(waiting)
        while goes_on:  # what is settled in one group may settle something in another
            goes_on = any(self._commit(h, self.books[h]) for h in tuple(self.uncommitted))
        for h, before in waiting.items():
            if self.books[h].commit > before:
                self._committed(h, self.books[h])
        self._committed(g, book)

    def _committed(self, g: GroupId, book: Book) -> None:
        self._answer_guests(g, book)
        N, commit, _ = book.told
        if book.commit > commit:
            told = tuple(p for p in book.others if self._must_be_told(p, g, book, commit))
            self._send_marks(told, g, book)
            book.told = (N, book.commit, book.told[2])
        if book.stable > book.told[2]:
            self.timers.start(g, "status", self.options.status_ms)
        if self.me in book.members:
            self.member.marked_here(g, book.N, book.commit, book.stable)

    def _must_be_told(self, p: ProcessId, g: GroupId, book: Book, commit: int) -> bool:
        """Who is in all groups of the needs sees by itself that they are safe."""
        if self.resilience.commits_only(g):
            return True
        return any(
            p not in self.views[h].members
            for N in range(commit + 1, book.commit + 1)
            if (entry := book.frames.get(N)) is not None
            for h, _, _ in entry.needs
        )

    # -- guests -----------------------------------------------------------------------------------

    def _answer_guests(self, g: GroupId, book: Book) -> None:
        """Frames of guests that are safe, and those that all have consumed."""
        safe = min(book.settled, book.copied) if book.members else book.N
        answers: dict[ProcessId, tuple[int, int]] = {}
        while book.guests and book.guests[0][0] <= safe:
            N, p, n = book.guests.popleft()
            answers[p] = (n, N)
        for p in tuple(book.unstable_of) if book.stable > book.base else ():
            stable = book.guest_stable(p)
            if stable and p not in answers:
                answers[p] = (stable, book.given[p])
            if stable:
                self._answer(p, g, book, answers.pop(p), stable)
        for p, answer in answers.items():
            self._answer(p, g, book, answer, 0)

    def _answer(
        self, p: ProcessId, g: GroupId, book: Book, placed: tuple[int, int], stable: int
    ) -> None:
        answer = Answer(*placed, min(stable, placed[0]))
        if p == self.me:
            self.sender.answered(g, book.era, answer)
        else:
            self.out.transmits.append(((p,), g, book.era, answer, b""))

    # -- marks ------------------------------------------------------------------------------------

    def on_timer(self, g: GroupId, name: str) -> None:
        """A timer of a sequencer rang."""
        book = self.books.get(g)
        if book is not None and name == "status":
            self._tell_marks(g, book)
        elif book is not None and name == "behind":
            self._tell_who_is_behind(g, book)

    def _tell_marks(self, g: GroupId, book: Book) -> None:
        """STATUS of an idle sequencer: what no ACCEPT has carried."""
        marks = (book.N, book.commit, book.stable)
        if marks != book.told:
            book.told = marks
            self._send_marks(book.others, g, book)

    def _send_marks(self, to: tuple[ProcessId, ...], g: GroupId, book: Book) -> None:
        if to:
            marks = Marks(book.N, book.commit, book.stable)
            self.out.transmits.append((to, g, book.era, marks, b""))

    def _await_reports(self, g: GroupId, book: Book) -> None:
        """On a network that loses: what has a number now should be consumed when this ends."""
        waits = self.timers.waits(g)
        waits.numbered = book.N
        self.timers.start(g, "behind", waits.statuses.wait)

    def _tell_who_is_behind(self, g: GroupId, book: Book) -> None:
        """STATUS to those who have not reported what was numbered when the timer was started."""
        behind = {p: book.done[p] for p in book.others if book.done[p] < book.N}
        self._send_marks(tuple(self.timers.waits(g).late(behind, book.N)), g, book)
        if behind:
            self._await_reports(g, book)

    # -- what a member lacks ----------------------------------------------------------------------

    def on_FETCH(self, p: ProcessId, packet: Receive) -> None:
        """FETCH-MSGS of p: to the sequencer, or in a change to the one that has what is missing."""
        fetch: Fetch = packet.header  # type: ignore[assignment]
        g = packet.group
        if not 1 <= fetch.first <= fetch.last < fetch.first + self.options.fetch_batch:
            raise PeerError(f"numbers {fetch.first} to {fetch.last} are no batch")
        book = self.books.get(g)
        frames = self.member.kept(g) if book is None else book.frames
        sent = 0
        for N in range(fetch.first, fetch.last + 1):
            entry = frames.get(N)
            if entry is not None and sent < FETCH_BYTES:  # p asks again for what is left
                self.note("retransmit", g, entry.origin, entry.n, "fetched")
                self._send_entry(p, g, entry)
                sent += entry.weight

    def _send_entry(self, p: ProcessId, g: GroupId, entry: Entry) -> None:
        book = self.books.get(g)
        commit, stable = (0, 0) if book is None else (book.commit, book.stable)
        header = Accept(
            entry.N, entry.origin, entry.n, min(commit, entry.N), min(stable, entry.N),
            entry.context, entry.needs,
        )  # fmt: skip
        self.out.transmits.append(((p,), g, entry.era, header, entry.payload))

    # -- changes ----------------------------------------------------------------------------------

    def stop(self, groups: Iterable[GroupId]) -> None:
        """Requests are void until the next era."""
        for g in groups:
            if g in self.books:
                self.books[g].numbering = Numbering.STOPPED

    def replace(self, g: GroupId, book: Book | None) -> None:
        """An era of g ended; None: another process numbers the next one."""
        self.books.pop(g, None)
        self.uncommitted.discard(g)
        if book is not None:
            self.books[g] = book

    def go_on(self) -> None:
        """A change is installed: what waited for it may go on."""
        for p in tuple(self.waiting):
            self.take_up_waiting(p)
        for g in tuple(self.books):
            self.progress(g, self.books[g])

    def take_load(self) -> Iterator[tuple[GroupId, ProcessId, int]]:
        """Frames that were numbered here since the last call, by group and sender."""
        for g, book in self.books.items():
            for p, count in book.take_counts():
                yield g, p, count

    def check(self) -> None:
        """What must always hold of a sequencer."""
        assert self.views.keys() >= self.books.keys(), "only a known group is numbered"
        costs = {p: sum(map(weight_of_request, waiting)) for p, waiting in self.waiting.items()}
        assert self.waiting_bytes == costs, "requests that wait are weighed"
        for g, view in self.views.items():
            book = self.books.get(g)
            assert (book is not None) == (view.leader == self.me), "a book iff it is the sequencer"
            if book is not None:
                book.check(view)


def _is_same(one: Asked, other: Asked) -> bool:
    """Is one a repeat of the other, in the same era?"""
    return one[:2] == other[:2] and one[2].n == other[2].n
