"""The groups of one process that share an order of the sequencing service: one machine.

    sender       own frames: to one sequencer at a time where the order is causal   (sender.py)
    seats        groups that this process is a member of                           (seat.py)
    books        groups that this process numbers                                  (book.py)

Here is what crosses groups: which frames wait for frames of other groups, what a number comes
after, and how a change ends the eras of some groups and begins the next ones. The rules stand at
the head of `orders`.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from ordercast.core.changing import (
    End,
    Ending,
    Head,
    Held,
    NextEra,
    NumbersEnd,
    NumbersHeld,
    Place,
    Places,
)
from ordercast.core.durability import MAJORITY, Durability
from ordercast.core.events import Receive, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import Options, OrderingProtocol, Tally, on
from ordercast.core.waiting import NOBODY, Holdings, Waiting, WaitingFrame
from ordercast.errors import PeerError
from ordercast.machinery.unanswered import Unanswered
from ordercast.protocols.sequencing import explained
from ordercast.protocols.sequencing.book import Book, Numbering
from ordercast.protocols.sequencing.headers import (
    Accept,
    Ack,
    Answer,
    Fetch,
    Marks,
    Number,
    Request,
    Spread,
)
from ordercast.protocols.sequencing.seat import END, Entry, Marker, Seat, Stay
from ordercast.protocols.sequencing.sender import Own, Sender
from ordercast.protocols.sequencing.settling import needed, settle
from ordercast.protocols.sequencing.table import TABLE, Says, check

Waits = tuple[GroupId, int, Request | Spread, bytes]
"""(group, era, request, body): a request that cannot be numbered yet"""

NOWHERE: Place = (0, 0)


class SequencingService(OrderingProtocol):
    """All groups of one order at one process: as a sender, as a member, as their sequencer."""

    causal: ClassVar[bool]  # contexts name what the sender had seen
    exact: ClassVar[bool]  # contexts name the last numbers of groups that meet
    common: ClassVar[int]  # groups that share so many members meet
    sender_type: ClassVar[type[Sender]] = Sender
    header_version = 7

    def __init__(self, me: ProcessId, options: Options | None = None) -> None:
        super().__init__(me, options)
        self.sender = self.sender_type()
        self.seats: dict[GroupId, Seat] = {}
        self.books: dict[GroupId, Book] = {}
        self.context: dict[GroupId, Place] = {}  # C_p: what has been seen here
        self.durability: dict[GroupId, Durability] = {}  # of groups that said one
        self.waiting: dict[ProcessId, deque[Waits]] = {}  # requests that cannot be numbered yet
        self.blocked: dict[GroupId, set[GroupId]] = {}  # groups whose next frame waits for that one
        self.to_try: deque[GroupId] = deque()  # groups whose next frame may wait no more
        self.uncommitted: set[GroupId] = set()  # numbered here; not all of it may be delivered
        self.markers = 0  # in all queues
        self.meeting: dict[GroupId, tuple[GroupId, ...]] = {}  # among those numbered here; a cache
        self.timers: set[tuple[GroupId, str]] = set()  # that run
        self.early_of: dict[ProcessId, int] = {}  # packets of each peer that came too early
        self.unanswered: dict[GroupId, Unanswered] = {}  # words in each group, and how to repeat
        self.numbered = 0  # frames, so far
        self.taken_over = 0  # groups that another numbered before
        self.handed_on = 0  # groups that another numbers now
        self.busy = False  # inside `_go_on`
        self.pumping = False  # inside `_pump`

    # -- one event --------------------------------------------------------------------------------

    def receive(self, packet: Receive) -> None:
        try:
            self._take(packet)
        except PeerError as fault:
            self.out.faults.append((packet.src, str(fault)))
        self._go_on()

    def _take(self, packet: Receive) -> None:
        kind = type(packet.header)
        rule, view = TABLE.get(kind), self.views.get(packet.group)
        if rule is None:
            raise PeerError(f"{kind.__name__} is no header of this protocol")
        check(packet.header, self.options.max_held)
        if view is not None and packet.era == view.era:
            if not self._may_say(rule.says, packet.src, view):
                raise PeerError(f"{kind.__name__} comes from {rule.says.value} only")
        elif view is not None and packet.era < view.era:
            self.note("drop", packet.group, packet.src, 0, "older era")
            return
        elif not rule.waits:
            self._keep_early(packet)
            return
        self.handlers[kind](self, packet.src, packet)

    def _may_say(self, says: Says, p: ProcessId, view: View) -> bool:
        if says is Says.NODE:
            return True
        if says is Says.MEMBER:
            return p in view.members
        if p == view.leader:
            return True
        seat = self.seats.get(view.group)
        return says is Says.HOLDER and seat is not None and p == seat.source

    def _keep_early(self, packet: Receive) -> None:
        """It overtook the change that begins its era. What one peer sends takes nobody's room."""
        count = self.early_of.get(packet.src, 0)
        if count >= self.options.max_held:
            raise PeerError(f"more than {self.options.max_held} packets of eras not begun here")
        self.early_of[packet.src] = count + 1
        self.early.append(packet)

    def on_multicast(self, g: GroupId, m: bytes) -> None:
        self.sender.add(g, m)
        self._pump()
        self._go_on()

    def _multicast(self, multicast: Any) -> None:
        if multicast.group in self.views:
            self.on_multicast(multicast.group, multicast.payload)
        else:
            self.note("drop", multicast.group, self.me, 0, "the group is not known here")

    def on_timer(self, g: GroupId, name: str) -> None:
        self.timers.discard((g, name))
        if name == "ack" and g in self.seats:
            self._acknowledge(g, self.seats[g])
        elif name == "repeat" and g in self.seats:
            self._repeat_report(g, self.seats[g])
        elif name == "gap" and g in self.seats:
            self._fetch_late(g, self.seats[g])
        elif name == "status" and g in self.books:
            self._tell_marks(g, self.books[g])
        elif name == "behind" and g in self.books:
            self._tell_who_is_behind(g, self.books[g])
        elif name == "retry":
            self._repeat_requests(g)
        self._go_on()

    def on_consumed(self, g: GroupId, frames: int) -> None:
        seat = self.seats.get(g)
        if seat is not None and self.options.driver_consumes:
            seat.taken = min(seat.taken + frames, max(seat.at[1], seat.stable))
            self._owe(g, seat, frames)
        self._go_on()

    def _start_timer(self, g: GroupId, name: str, delay_ms: int) -> None:
        if (g, name) not in self.timers:
            self.timers.add((g, name))
            self.set_timer(g, name, delay_ms)

    def _waits(self, g: GroupId) -> Unanswered:
        if g not in self.unanswered:
            self.unanswered[g] = Unanswered(self.options)
        return self.unanswered[g]

    def _go_on(self) -> None:
        """Deliver what may be delivered, until nothing moves. A loop, not a recursion: a long line
        of frames may release each other."""
        if self.busy:
            return
        self.busy = True
        try:
            while self.to_try:
                self._try(self.to_try.popleft())
        finally:
            self.busy = False

    # -- the sender -------------------------------------------------------------------------------

    def _pump(self) -> None:
        """DO-MULTICAST for every frame that may leave now. One that is numbered here may be
        answered at once, and call this again: that is left to the loop."""
        if self.pumping:
            return
        self.pumping = True
        try:
            while (own := self.sender.next()) is not None and self._pump_one(self.sender, own):
                pass
        finally:
            self.pumping = False

    def _pump_one(self, sender: Sender, own: Own) -> bool:
        view = self.views.get(own.group)
        if view is None or not sender.may_leave_to(view.leader, causal=self.causal):
            return False
        sender.unsent.popleft()
        after = sender.after(own.group) if self.causal else ()
        context = self._seen() if self.causal else ()
        first = sender.first(own.group)
        if self._spreads(view):
            own.request = Spread(view.leader, own.n, first, context, after)
        else:
            own.request = Request(own.n, first, context, after)
        sender.left(own, view.leader)
        self._ask(own, view)
        if self.options.lossy:
            self._start_timer(own.group, "retry", self._waits(own.group).requests.wait)
        return True

    def _spreads(self, view: View) -> bool:
        return self.options.bodies_apart and self.me in view.members

    def _seen(self) -> Places:
        """C_p, without what is known to have passed everywhere: nobody need wait for that."""
        for h in [h for h, place in self.context.items() if self._has_passed(h, place)]:
            del self.context[h]
        return tuple((h, era, N) for h, (era, N) in self.context.items())

    def _has_passed(self, h: GroupId, place: Place) -> bool:
        """Have all members of h consumed what is at this place? One who has consumed anything of a
        later era has."""
        seat = self._seat_in(h)
        if seat is None or seat.stable <= seat.base:
            return False
        return place <= (seat.era, seat.stable)

    def _ask(self, own: Own, view: View) -> None:
        assert own.request is not None
        g, era = view.group, view.era
        if isinstance(own.request, Spread):
            to = tuple(p for p in dict.fromkeys((view.leader, *view.members)) if p != self.me)
            if to:
                self.out.transmits.append((to, g, era, own.request, own.payload))
            self._keep_body(g, self.me, own.n, own.payload)
        elif view.leader != self.me:
            self.out.transmits.append(((view.leader,), g, era, own.request, own.payload))
        if view.leader == self.me:
            self._requested(self.me, (g, era, own.request, own.payload))

    def _repeat_requests(self, g: GroupId) -> None:
        """On a network that loses: nothing was heard of these for a while."""
        view = self.views.get(g)
        if view is None:
            return
        waits = self._waits(g)
        line = (self.sender.own[g, n] for n in self.sender.of_group.get(g, ()))
        left = [own for own in line if own.request is not None]
        if waits.is_request_lost(left[0].n if left else 0) and view.leader != self.me:
            for own in left[: self.options.fetch_batch]:
                self.note("retransmit", g, self.me, own.n, "request")
                self._ask(own, view)
        if g in self.sender.under_way:
            self._start_timer(g, "retry", waits.requests.wait)

    def _placed(self, g: GroupId, n: int, place: Place) -> None:
        """Own frames to g up to n have their places, and a crash does not take them away."""
        if self.causal:
            self._saw(g, place)
        if self.sender.safe(g, n):
            self._pump()

    @on(Answer)
    def on_ANSWER(self, p: ProcessId, packet: Receive) -> None:
        answer: Answer = packet.header  # type: ignore[assignment]
        g = packet.group
        if not answer.stable <= answer.n <= self.sender.count.get(g, 0):
            raise PeerError(f"frame {answer.n} has a place, which was not sent")
        began = self.sender.began.get(g, 0)
        self._placed(g, answer.n, (packet.era, answer.N))
        self.out.ordered.append((g, answer.n - began))
        if answer.stable > began:
            self.out.stable.append((g, answer.stable - began))

    # -- the sequencer ----------------------------------------------------------------------------

    @on(Request)
    def on_REQUEST(self, p: ProcessId, packet: Receive) -> None:
        request: Request = packet.header  # type: ignore[assignment]
        self._requested(p, (packet.group, packet.era, request, packet.payload))

    @on(Spread)
    def on_SPREAD(self, p: ProcessId, packet: Receive) -> None:
        spread: Spread = packet.header  # type: ignore[assignment]
        g = packet.group
        self._keep_body(g, p, spread.n, packet.payload)
        if spread.to == self.me:
            self._requested(p, (g, packet.era, spread, packet.payload))

    def _requested(self, p: ProcessId, request: Waits) -> None:
        waiting = self.waiting.get(p)
        if waiting is None:
            if self._take_up(p, request):
                return
            waiting = self.waiting[p] = deque()
        if len(waiting) >= self.options.max_held:
            raise PeerError(f"more than {self.options.max_held} requests that cannot be numbered")
        if not any(_is_same(held, request) for held in waiting):
            waiting.append(request)
        self._take_up_waiting(p)

    def _take_up_waiting(self, p: ProcessId) -> None:
        """Requests that overtook others, or the change that begins their era."""
        waiting = self.waiting.get(p)
        moved = bool(waiting)
        while waiting and moved:
            before = len(waiting)
            for _ in range(before):
                request = waiting.popleft()
                if not self._take_up(p, request):
                    waiting.append(request)
            moved = len(waiting) < before
        if waiting is not None and not waiting:
            del self.waiting[p]

    def _take_up(self, p: ProcessId, request: Waits) -> bool:
        """Number it, if that is possible now; False if it must wait."""
        g, era, asked, m = request
        view = self.views.get(g)
        if view is None or era > view.era:
            return False
        book = self.books.get(g)
        if book is None or era < view.era or book.numbering is Numbering.STOPPED:
            return True  # void: its sender repeats it when the change is installed
        last = max(book.last.get(p, 0), asked.first - 1)
        if asked.n <= last:
            self._repeated(p, g, book, asked.n, last)
            return True
        if asked.n > last + 1:
            if asked.n > last + self.options.max_held:
                raise PeerError(f"frame {asked.n} lies more than max_held above {last}")
            return False
        for h, n in asked.after:
            other = self.books.get(h)
            if other is None or other.last.get(p, 0) < n:
                return False
        if not self._have_begun(asked.context):
            return False
        self._number(p, g, book, asked, m)
        return True

    def _have_begun(self, context: Places) -> bool:
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

    def _repeated(self, p: ProcessId, g: GroupId, book: Book, n: int, last: int) -> None:
        if p not in book.members and n == last:
            book.guests.append((book.given.get(p, book.base), p, n))
            self._progress(g, book)

    def _number(
        self, p: ProcessId, g: GroupId, book: Book, asked: Request | Spread, m: bytes
    ) -> None:
        context, needs = self._context(p, g, book, asked)
        entry = Entry(book.era, book.N + 1, p, asked.n, context, needs, m)
        book.enter(entry)
        self.numbered += 1
        if p not in book.members:
            book.guests.append((entry.N, p, asked.n))
            book.unstable_of.setdefault(p, deque()).append((entry.N, asked.n))
        self._commit(g, book)
        if book.others:
            kind = Number if isinstance(asked, Spread) else Accept
            header = kind(entry.N, p, asked.n, book.commit, book.stable, context, needs)
            payload = b"" if isinstance(asked, Spread) else m
            self.out.transmits.append((book.others, g, book.era, header, payload))
            book.told = (book.N, book.commit, book.stable)
            if self.options.lossy and (g, "behind") not in self.timers:
                self._waits(g).due = book.N
                self._await_reports(g, book)
        if self.me in book.members:
            seat = self.seats[g]
            seat.hold(entry)
            seat.learn(book.N, book.commit, book.stable)
            self._look_at(g, seat)
        if book.guests and (not book.others_needed or not book.members):
            self._progress(g, book)

    def _context(
        self, p: ProcessId, g: GroupId, book: Book, asked: Request | Spread
    ) -> tuple[Places, Places]:
        """What the next number of g comes after; and what of that a crash could take away."""
        if not self.causal and not self.exact:
            return (), ()
        places: dict[GroupId, Place] = {}
        needs: list[tuple[GroupId, int, int]] = []
        if self.causal:
            for h, era, N in asked.context:
                if h != g and not self._is_delivered_by_all(h, (era, N)):
                    places[h] = (era, N)
            for h, _ in asked.after:
                other = self.books[h]
                place = (other.era, other.given.get(p, other.base))
                if place > places.get(h, NOWHERE):
                    places[h] = place
                if place[1] > other.safe:
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
            found = self.meeting[g] = tuple(
                h
                for h, other in self.books.items()
                if h != g and len(mine.intersection(other.members)) >= self.common
            )
        return found

    def _commit(self, g: GroupId, book: Book) -> None:
        """Which numbers may be delivered by those who have no other way to know."""
        limit = book.safe if self._commits_only(g) else book.N
        while book.commit < limit and self._is_covered(book.frames.get(book.commit + 1)):
            book.commit += 1
        if book.commit < book.N:
            self.uncommitted.add(g)
        else:
            self.uncommitted.discard(g)

    def _is_covered(self, entry: Entry | None) -> bool:
        """Are the earlier frames of its author safe?"""
        return entry is None or all(self._is_safe(*need) for need in entry.needs)

    def _is_safe(self, h: GroupId, era: int, N: int) -> bool:
        """Of a group that is, or was, numbered here: does no crash take this number away?"""
        book = self.books.get(h)
        return book is None or book.era != era or book.safe >= N

    @on(Ack)
    def on_ACK(self, p: ProcessId, packet: Receive) -> None:
        ack: Ack = packet.header  # type: ignore[assignment]
        self._acknowledged(p, packet.group, ack)

    def _acknowledged(self, p: ProcessId, g: GroupId, ack: Ack) -> None:
        book = self.books.get(g)
        if book is None or p not in book.done:
            raise PeerError(f"process {p} acknowledges numbers that are not given here")
        repeated = ack.held <= book.held.get(p, 0) and ack.done <= book.done[p]
        if book.acknowledged(p, ack.held, ack.done):
            self._progress(g, book)
        if repeated and self.options.lossy and p != self.me:  # it waits for what was lost
            self._send_marks((p,), g, book)

    def _progress(self, g: GroupId, book: Book) -> None:
        """More of g is safe, or stable."""
        self._commit(g, book)
        for h in [h for h in self.uncommitted if h != g]:
            before = self.books[h].commit
            self._commit(h, self.books[h])
            if self.books[h].commit > before:
                self._committed(h, self.books[h])
        self._committed(g, book)

    def _committed(self, g: GroupId, book: Book) -> None:
        self._answer_guests(g, book)
        N, commit, _ = book.told
        if book.commit > commit:
            told = tuple(p for p in book.others if self._must_be_told(p, g, book, commit))
            if told:
                marks = Marks(book.N, book.commit, book.stable)
                self.out.transmits.append((told, g, book.era, marks, b""))
            book.told = (N, book.commit, book.told[2])
        if book.stable > book.told[2]:
            self._start_timer(g, "status", self.options.status_ms)
        if self.me in book.members:
            seat = self.seats[g]
            seat.learn(book.N, book.commit, book.stable)
            self._stabilized(g, seat)
            self._look_at(g, seat)

    def _must_be_told(self, p: ProcessId, g: GroupId, book: Book, commit: int) -> bool:
        """Who is in all groups of the needs sees by itself that they are safe."""
        if self._commits_only(g):
            return True
        return any(
            p not in self.views[h].members
            for N in range(commit + 1, book.commit + 1)
            if (entry := book.frames.get(N)) is not None
            for h, _, _ in entry.needs
        )

    def _answer_guests(self, g: GroupId, book: Book) -> None:
        """Frames of guests that are safe, and those that all have consumed."""
        safe = min(book.safe, book.commit) if book.members else book.N
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
            began = self.sender.began.get(g, 0)
            self._placed(g, answer.n, (book.era, answer.N))
            self.out.ordered.append((g, answer.n - began))
            if answer.stable > began:
                self.out.stable.append((g, answer.stable - began))
        else:
            self.out.transmits.append(((p,), g, book.era, answer, b""))

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
        waits = self._waits(g)
        waits.numbered = book.N
        self._start_timer(g, "behind", waits.statuses.wait)

    def _tell_who_is_behind(self, g: GroupId, book: Book) -> None:
        """STATUS to those who have not reported what was numbered when the timer was started."""
        behind = {p: book.done[p] for p in book.others if book.done[p] < book.N}
        self._send_marks(tuple(self._waits(g).late(behind, book.N)), g, book)
        if behind:
            self._await_reports(g, book)

    @on(Fetch)
    def on_FETCH(self, p: ProcessId, packet: Receive) -> None:
        fetch: Fetch = packet.header  # type: ignore[assignment]
        g = packet.group
        if not 1 <= fetch.first <= fetch.last < fetch.first + self.options.fetch_batch:
            raise PeerError(f"numbers {fetch.first} to {fetch.last} are no batch")
        frames: Mapping[int, Entry] = {}
        if g in self.books:
            frames = self.books[g].frames
        elif g in self.seats:
            frames = self.seats[g].kept
        for N in range(fetch.first, fetch.last + 1):
            entry = frames.get(N)
            if entry is not None:
                self.note("retransmit", g, entry.origin, entry.n, "fetched")
                self._send_entry(p, g, entry)

    def _send_entry(self, p: ProcessId, g: GroupId, entry: Entry) -> None:
        book, seat = self.books.get(g), self.seats.get(g)
        if book is not None:
            commit, stable = book.commit, book.stable
        else:
            assert seat is not None
            commit = stable = 0
        header = Accept(
            entry.N, entry.origin, entry.n, min(commit, entry.N), min(stable, entry.N),
            entry.context, entry.needs,
        )  # fmt: skip
        self.out.transmits.append(((p,), g, entry.era, header, entry.payload))

    # -- a member ---------------------------------------------------------------------------------

    @on(Accept)
    def on_ACCEPT(self, p: ProcessId, packet: Receive) -> None:
        accept: Accept = packet.header  # type: ignore[assignment]
        seat = self._seat_in(packet.group)
        if seat is not None:
            g = packet.group
            entry = Entry(
                packet.era, accept.N, accept.origin, accept.n, accept.context, accept.needs,
                packet.payload,
            )  # fmt: skip
            self._hold(g, seat, entry)
            if p == self.views[g].leader:
                seat.learn(
                    max(accept.N, seat.known), max(accept.commit, seat.commit), accept.stable
                )
                self._stabilized(g, seat)
            self._look_at(g, seat)

    @on(Number)
    def on_NUMBER(self, p: ProcessId, packet: Receive) -> None:
        number: Number = packet.header  # type: ignore[assignment]
        seat = self._seat_in(packet.group)
        if seat is None:
            return
        seat.expect(number.N)
        g, id = packet.group, (number.origin, number.n)
        body = seat.bodies.pop(id, None)
        entry = Entry(packet.era, number.N, *id, number.context, number.needs, body or b"")
        if body is not None or seat.got >= number.N:
            self._hold(g, seat, entry)
        elif len(seat.bodyless) < self.options.max_held:
            seat.bodyless[id] = entry
            seat.known = max(seat.known, number.N)
            self._await_missing(g, seat)
        seat.learn(max(number.N, seat.known), max(number.commit, seat.commit), number.stable)
        self._stabilized(g, seat)
        self._look_at(g, seat)

    def _keep_body(self, g: GroupId, p: ProcessId, n: int, m: bytes) -> None:
        """A body came from its sender."""
        seat = self.seats.get(g)
        if seat is None or n <= seat.placed.get(p, 0):
            return
        entry = seat.bodyless.pop((p, n), None)
        if entry is not None:
            full = Entry(entry.era, entry.N, p, n, entry.context, entry.needs, m)
            self._hold(g, seat, full)
            self._look_at(g, seat)
        elif len(seat.bodies) < self.options.max_held:
            seat.bodies[p, n] = m

    def _seat_in(self, g: GroupId) -> Seat | None:
        """The seat that a number of the era in force is for, if there is one."""
        seat = self.seats.get(g)
        return seat if seat is not None and seat.stay is Stay.IN else None

    def _hold(self, g: GroupId, seat: Seat, entry: Entry) -> None:
        if seat.bodies or seat.bodyless:
            seat.has_both(entry.origin, entry.n)
        if seat.hold(entry):
            self._owe(g, seat, 1, at_once=self._is_witness(g, entry))
        if seat.got < seat.known and self.options.lossy:
            self._await_missing(g, seat)

    @on(Marks)
    def on_MARKS(self, p: ProcessId, packet: Receive) -> None:
        marks: Marks = packet.header  # type: ignore[assignment]
        seat = self._seat_in(packet.group)
        if seat is not None:
            g = packet.group
            known = (seat.known, seat.commit, seat.stable)
            seat.learn(marks.N, marks.commit, marks.stable)
            self._stabilized(g, seat)
            if self.options.lossy and seat.got < seat.known:
                self._await_missing(g, seat)
            elif self.options.lossy and known == (marks.N, marks.commit, marks.stable):
                self._report_again(g, seat)
            self._look_at(g, seat)

    def _await_missing(self, g: GroupId, seat: Seat) -> None:
        """What is known now, and still missing when the timer ends, is fetched."""
        if (g, "gap") not in self.timers:
            waits = self._waits(g)
            waits.horizon = seat.known
            self._start_timer(g, "gap", waits.fetches.wait)

    def _fetch_late(self, g: GroupId, seat: Seat) -> None:
        missing = seat.missing()
        if missing is not None and missing[0] > self._waits(g).horizon:  # it may be on its way
            self._await_missing(g, seat)
        else:
            self._fetch(g, seat)

    def _fetch(self, g: GroupId, seat: Seat) -> None:
        """FETCH-MSGS for the first gap."""
        missing = seat.missing()
        if missing is None or seat.stay is not Stay.IN:
            return
        view = self.views[g]
        first, last = missing
        last = min(last, first + self.options.fetch_batch - 1)
        source = view.leader if seat.source is None else seat.source
        if source == self.me:
            return
        self._waits(g).fetches_again(seat.got)
        self.note("nack", g, source, first, f"numbers {first} to {last}")
        self.out.transmits.append(((source,), g, view.era, Fetch(first, last), b""))
        self._await_missing(g, seat)

    def _stabilized(self, g: GroupId, seat: Seat) -> None:
        """Own frames that all have consumed give the application room."""
        n = seat.own_stable()
        if n:
            self.out.stable.append((g, n - self.sender.began.get(g, 0)))

    # -- acknowledgements -------------------------------------------------------------------------

    def _is_witness(self, g: GroupId, entry: Entry) -> bool:
        """Must this member say at once that it has the frame? Those do whose word makes it safe."""
        view = self.views[g]
        needed = self._others_needed(view)
        if not needed and (entry.origin in view.members or self.durability.get(g) == 0):
            return False
        others = [p for p in view.members if p != view.leader]
        return self.me in others[: max(needed, 1)] or self.durability.get(g) == MAJORITY

    def _owe(self, g: GroupId, seat: Seat, frames: int, *, at_once: bool = False) -> None:
        seat.owed += frames
        if at_once or seat.owed >= self.options.ack_every:
            self._acknowledge(g, seat)
        else:
            self._start_timer(g, "ack", self.options.ack_delay_ms)

    def _acknowledge(self, g: GroupId, seat: Seat) -> None:
        if seat.stay is not Stay.IN:
            return
        seat.owed = 0
        done = min(self._done(seat), seat.got)
        if (seat.got, done) != seat.told:
            seat.told = (seat.got, done)
            self._report(g, seat)

    def _report(self, g: GroupId, seat: Seat) -> None:
        leader, ack = self.views[g].leader, Ack(*seat.told)
        if leader == self.me:
            self._acknowledged(self.me, g, ack)
            return
        self.out.send_word(leader, g, seat.era, ack)
        if self.options.lossy:
            self._await_stability(g, seat)

    def _report_again(self, g: GroupId, seat: Seat) -> None:
        """The sequencer says nothing new: it lacks our report, unless that is under way."""
        if (g, "repeat") not in self.timers and seat.told[1] >= seat.base:
            self._report(g, seat)

    def _await_stability(self, g: GroupId, seat: Seat) -> None:
        """If nothing new is heard after a while, the last report, or the answer, may be lost."""
        if (g, "repeat") not in self.timers:
            waits = self._waits(g)
            waits.standing = (seat.era, seat.commit, seat.stable)
            self._start_timer(g, "repeat", waits.reports.wait)

    def _repeat_report(self, g: GroupId, seat: Seat) -> None:
        waits = self._waits(g)
        if not seat.kept or seat.stay is not Stay.IN:
            waits.reports.answered()
        elif waits.is_report_lost((seat.era, seat.commit, seat.stable)):
            self._report(g, seat)
        else:
            self._await_stability(g, seat)

    def _done(self, seat: Seat) -> int:
        """The number up to which this member needs nothing any more."""
        if seat.at[0] != seat.era:
            return seat.base - 1  # it has not begun the era
        delivered = max(seat.at[1], seat.stable)
        if not self.options.driver_consumes:
            return delivered
        return min(max(seat.taken, seat.stable), delivered)

    # -- delivery ---------------------------------------------------------------------------------

    def _look_at(self, g: GroupId, seat: Seat) -> None:
        if seat.queue:
            self.to_try.append(g)
        if self.blocked and (waiting := self.blocked.pop(g, None)):
            self.to_try.extend(sorted(waiting))

    def _try(self, g: GroupId) -> None:
        """Deliver what can be delivered in g."""
        seat = self.seats.get(g)
        delivered = 0
        while seat is not None and seat.queue and self._may_deliver(g, seat, seat.queue[0]):
            item = seat.queue.popleft()
            delivered += 1
            if isinstance(item, Marker):
                self._begin_view(g, seat, item)
                seat = self.seats.get(g)
            else:
                self._deliver(g, seat, item)
        if not delivered:
            return
        if self.blocked and (waiting := self.blocked.pop(g, None)):
            self.to_try.extend(sorted(waiting))
        if self.markers:
            self.to_try.extend(h for h, s in self.seats.items() if self._begins_with_marker(s))
        if seat is not None and seat.stay is Stay.IN and not self.options.driver_consumes:
            self._owe(g, seat, delivered)

    @staticmethod
    def _begins_with_marker(seat: Seat) -> bool:
        return bool(seat.queue) and isinstance(seat.queue[0], Marker)

    def _may_deliver(self, g: GroupId, seat: Seat, item: Entry | Marker) -> bool:
        """T1, T2, CT1, CT2 in one: it is next in its queue, enough hold it, and what it comes after
        was delivered here."""
        if isinstance(item, Marker):
            return not any(self._ends_before(other, item.change) for other in self.seats.values())
        if item.era == seat.era and seat.stay is Stay.IN and not self._is_secure(g, seat, item):
            return False
        for h, era, N in item.context:
            other = self.seats.get(h)
            if other is not None and h != g and _reached(other) < (era, N):
                self.blocked.setdefault(h, set()).add(g)
                return False
        return True

    def _is_secure(self, g: GroupId, seat: Seat, entry: Entry) -> bool:
        """Do enough hold it, and the earlier frames of its author, whatever crashes?"""
        book = self.books.get(g)
        if book is not None:
            if seat.commit < entry.N:
                return False
            return book.safe >= entry.N or not self._others_needed(self.views[g])
        if seat.commit >= entry.N:
            return True
        if self._commits_only(g):
            return False
        for h, era, N in entry.needs:
            view, other = self.views.get(h), self.seats.get(h)
            if view is not None and view.era > era:
                continue  # that era is over: everybody holds what is left of it
            if view is None or view.era < era or not _holds(other, N):
                self.blocked.setdefault(h, set()).add(g)
                return False
        return True

    def _commits_only(self, g: GroupId) -> bool:
        """With a resilience of two or more a member cannot see by itself that enough have it."""
        durability = self.durability.get(g)
        return durability is not None and (durability == MAJORITY or durability > 1)

    @staticmethod
    def _ends_before(seat: Seat, change: int) -> bool:
        """Is there a frame before a marker of this change, or of one before it?"""
        frames = False
        for item in seat.queue:
            if not isinstance(item, Marker):
                frames = True
            elif item.change > change:
                return False
            elif frames:
                return True
        return False

    def _deliver(self, g: GroupId, seat: Seat, entry: Entry) -> None:
        seat.at = (entry.era, entry.N)
        if entry.era == seat.era:
            seat.last[entry.origin] = entry.n
        self.out.deliveries.append((g, entry.origin, entry.n, entry.N, entry.payload))
        if self.causal:
            for h, era, N in (*entry.context, (g, entry.era, entry.N)):
                self._saw(h, (era, N))
        if entry.origin == self.me:
            if seat.stable < entry.N or entry.era != seat.era:
                seat.own.append((entry.N, entry.n))
            self._placed(g, entry.n, seat.at)

    def _saw(self, h: GroupId, place: Place) -> None:
        """The context only rises: a change that settled own frames may have named the era after
        the one that is still being delivered here."""
        if place > self.context.get(h, NOWHERE):
            self.context[h] = place

    def _begin_view(self, g: GroupId, seat: Seat, marker: Marker) -> None:
        self.markers -= 1
        seat.at = marker.place
        view = marker.view
        self.out.eras.append((len(self.out.deliveries), view))
        if view.number != seat.number or not marker.inside:  # else only the era is new
            self.out.deliveries.append(view)
        seat.number = view.number
        if not marker.inside and seat.stay is Stay.LEAVING and not seat.queue:
            del self.seats[g]
            self.member_of.discard(g)
        self._stabilized(g, seat)
        if seat.stay is Stay.IN and seat.at[0] == seat.era:
            self._owe(g, seat, 1)

    # -- durability -------------------------------------------------------------------------------

    def count_holders(self, g: GroupId, durability: Durability) -> None:
        self.durability[g] = durability

    def _others_needed(self, view: View) -> int:
        """How many members beside the sequencer must hold a frame before it is safe."""
        durability = self.durability.get(view.group)
        if durability == MAJORITY:
            return len(view.members) // 2 + 1 - (view.leader in view.members)
        if durability is None:
            return 1 if self.causal else 0
        return durability

    # -- changes ----------------------------------------------------------------------------------

    def install(self, view: View) -> None:
        """The first view of a group, where groups are given and not joined."""
        self.change(0, (NextEra(view, NumbersEnd(view.start, self.me)),))

    def stop(self, groups: Iterable[GroupId]) -> None:
        for g in groups:
            if g in self.books:
                self.books[g].numbering = Numbering.STOPPED

    def stopped(self) -> Iterator[GroupId]:
        yield from (g for g, book in self.books.items() if book.numbering is Numbering.STOPPED)
        yield from (g for g, seat in self.seats.items() if seat.ceiling < END)

    def report(self, g: GroupId) -> Held | None:
        book, seat = self.books.get(g), self.seats.get(g)
        if seat is not None and (seat.stay is not Stay.IN or seat.era != self.views[g].era):
            seat = None
        if book is None and seat is None:
            return None
        if seat is not None:
            seat.freeze()
        heads = {} if seat is None else {head.N: head for head in seat.heads()}
        delivered = 0 if seat is None else seat.delivered
        if book is None:
            assert seat is not None
            return NumbersHeld(
                seat.era, seat.got, delivered, tuple(heads.values()), tuple(seat.last.items())
            )
        heads.update((entry.N, self._unsafe_head(entry)) for entry in book.frames.values())
        return NumbersHeld(
            book.era,
            book.N,
            delivered,
            tuple(heads[N] for N in sorted(heads)),
            tuple(book.last.items()),
            True,
        )

    def _unsafe_head(self, entry: Entry) -> Head:
        """As the sequencer knows it now: what is safe meanwhile is needed no more."""
        needs = tuple(need for need in entry.needs if not self._is_safe(*need))
        return Head(entry.N, entry.origin, entry.n, needs)

    @classmethod
    def hangs_on(cls, groups: Mapping[GroupId, Ending]) -> set[GroupId]:
        return needed(groups)

    @classmethod
    def decide(cls, groups: Mapping[GroupId, Ending]) -> dict[GroupId, End]:
        return dict(settle(groups))

    @classmethod
    def nothing_held(cls) -> End:
        return NumbersEnd(0, NOBODY)

    def check_ends(self, nexts: Sequence[NextEra]) -> None:
        for next_era in nexts:
            end, seat = next_era.end, self._seat_in(next_era.view.group)
            if not isinstance(end, NumbersEnd):
                raise PeerError("an era ends without a number")
            if seat is not None and not seat.delivered <= end.end <= seat.got + seat.limit:
                raise PeerError(f"an era ends with {end.end}; up to {seat.got} is here")

    def prepare(self, nexts: Sequence[NextEra]) -> None:
        """A joiner opens its seat now: contexts may name its era before that begins here."""
        self.unprepare()
        for next_era in nexts:
            view, end = next_era.view, next_era.end
            assert isinstance(end, NumbersEnd)
            g, seat = view.group, self.seats.get(view.group)
            if seat is None and self.me in view.members:
                self.seats[g] = Seat(Stay.JOINING, (view.era - 1, END), self.options.max_held)
            elif seat is not None and seat.stay is Stay.IN:
                seat.end_at(end.end, end.holder if end.holder != self.me else None)
                self._look_at(g, seat)
                if seat.got < end.end:
                    self._waits(g).fetched = -1  # another is asked
                    self._fetch(g, seat)
        self._go_on()

    def unprepare(self, begun: Collection[GroupId] = ()) -> None:
        joining = [g for g, seat in self.seats.items() if seat.stay is Stay.JOINING]
        for g in joining:
            if g not in begun:  # else what waits for this seat goes on to wait
                self._leave_seat(g)
        for seat in self.seats.values():
            seat.source = None
        self._go_on()

    def _leave_seat(self, g: GroupId) -> None:
        del self.seats[g]
        self.to_try.extend(sorted(self.blocked.pop(g, ())))

    def is_ready(self, g: GroupId, end: End) -> bool:
        seat = self.seats.get(g)
        assert isinstance(end, NumbersEnd)
        return seat is None or seat.stay is not Stay.IN or seat.got >= end.end

    def change(self, number: int, nexts: Sequence[NextEra]) -> None:
        """Eras of groups end, and the next ones begin. Change `number` of the cluster."""
        before = {e.view.group: self.views.get(e.view.group) for e in nexts}
        covered = False
        for next_era in nexts:
            covered = self._begin_era(number, next_era) or covered
        self.meeting = {}
        if self.exact:
            self._fence(nexts, before)
        self._repeat_unplaced({e.view.group for e in nexts}, covered=covered)
        early, self.early, self.early_of = self.early, [], {}
        for packet in early:
            self.receive(packet)
        self._pump()
        for p in tuple(self.waiting):
            self._take_up_waiting(p)
        for g in tuple(self.books):
            self._progress(g, self.books[g])
        self.to_try.extend(self.seats)
        self._go_on()

    def _begin_era(self, number: int, next_era: NextEra) -> bool:
        """One group; True if own frames were settled by it."""
        view, end = next_era.view, next_era.end
        assert isinstance(end, NumbersEnd)
        g, seat = view.group, self.seats.get(view.group)
        self.views[g] = view
        self.others[g] = tuple(p for p in view.members if p != self.me)
        inside = self.me in view.members
        was_in = seat is not None and seat.stay is Stay.IN
        if inside or was_in:
            self._change_seat(number, view, end, inside=inside)
        elif seat is not None and seat.stay is Stay.JOINING:  # it was let in, and is not any more
            self._leave_seat(g)
        covered = self._cover_own(view, end)
        if g in self.unanswered:
            self.unanswered[g].begin(end.end)
        self._count_moves(next_era)
        self.books.pop(g, None)
        self.uncommitted.discard(g)
        if view.leader == self.me:
            needed = self._others_needed(view)
            if self.durability.get(g) != 0:
                needed = max(needed, 1)  # who is answered, or named elsewhere, is at two nodes
            self.books[g] = Book(self.me, view, end.end, end.last, needed)
        return covered

    def _count_moves(self, next_era: NextEra) -> None:
        view, before = next_era.view, next_era.before
        if before is not None and before.leader != view.leader:
            self.taken_over += view.leader == self.me
            self.handed_on += before.leader == self.me

    def _change_seat(self, number: int, view: View, end: NumbersEnd, *, inside: bool) -> None:
        g = view.group
        seat = self.seats.get(g)
        if seat is None:
            seat = Seat(Stay.JOINING, (view.era - 1, END), self.options.max_held)
            self.seats[g] = seat
        if seat.stay is Stay.IN:
            seat.drop_after(end.end)
        if seat.stay is not Stay.IN and inside:
            self.sender.began[g] = self.sender.count.get(g, 0)
        seat.queue.append(Marker(view, (view.era, end.end), number, inside))
        self.markers += 1
        seat.begin(view.era, end.end, end.last)
        if inside:
            self.member_of.add(g)
        else:
            seat.stay = Stay.LEAVING

    def _cover_own(self, view: View, end: NumbersEnd) -> bool:
        """Own frames that have a number in the era that ends are safe: everybody holds them."""
        g = view.group
        last = dict(end.last).get(self.me, 0)
        line = self.sender.of_group.get(g)
        if not line or line[0] > last:
            return False
        if self.causal:
            self._saw(g, (view.era, end.end))
        if self.me not in view.members and g not in self.seats:
            began = self.sender.began.get(g, 0)
            self.out.ordered.append((g, last - began))
            self.out.stable.append((g, last - began))
        self.sender.safe(g, last)
        return True

    def _fence(self, nexts: Sequence[NextEra], before: Mapping[GroupId, View | None]) -> None:
        """A change of G makes its numbers of the old era count as delivered. Groups that met G, and
        are numbered here, name the place where its new era begins, until that is stable."""
        for next_era in nexts:
            g, old = next_era.view.group, before[next_era.view.group]
            if old is None or old.leader != self.me:
                continue
            end = next_era.end
            assert isinstance(end, NumbersEnd)
            for h, book in self.books.items():
                met = before.get(h) or self.views[h]
                if h != g and len(set(old.members).intersection(met.members)) >= self.common:
                    book.fences[g] = ((next_era.view.era, end.end), book.N + 1)

    def _repeat_unplaced(self, changed: set[GroupId], *, covered: bool) -> None:
        """Own frames without a place, and, where the order is causal, all that follow them."""
        repeated: list[Own] = []
        again = covered
        for own in self.sender.own.values():
            touched = own.group in changed
            again = again or touched or any(h in changed for h, _ in own.after)
            if touched or (again and self.causal):
                repeated.append(own)
        self.sender.repeat(repeated)

    def forget_group(self, g: GroupId) -> None:
        """This process has nothing to do with g any more. What it has sent is counted on: if it
        comes back, its frames must not look like repeats."""
        self.sender.forget(g)
        self.markers -= sum(isinstance(x, Marker) for x in self._queue_of(g))
        for table in (self.views, self.others, self.seats, self.durability, self.unanswered):
            table.pop(g, None)
        # A timer of a group that is closed rings for nobody: it would seem to run for ever, and
        # nothing be told after this process numbers the group again.
        self.timers = {timer for timer in self.timers if timer[0] != g}
        self.member_of.discard(g)
        self.early = [packet for packet in self.early if packet.group != g]
        self.early_of = dict(Counter(packet.src for packet in self.early))
        self.to_try.extend(sorted(self.blocked.pop(g, ())))
        self._pump()
        self._go_on()

    def _queue_of(self, g: GroupId) -> Iterable[Entry | Marker]:
        return self.seats[g].queue if g in self.seats else ()

    def gone_for_good(self, p: ProcessId) -> None:
        self.waiting.pop(p, None)
        self.early = [packet for packet in self.early if packet.src != p]
        self.early_of.pop(p, None)

    def begin_visit(self, g: GroupId) -> None:
        """This process sends to g as a guest from now on."""
        self.sender.began[g] = self.sender.count.get(g, 0)

    def tally(self) -> Tally:
        return Tally(self.numbered, self.taken_over, self.handed_on)

    def take_load(self) -> Iterator[tuple[GroupId, ProcessId, int]]:
        for g, book in self.books.items():
            for p, count in book.take_counts():
                yield g, p, count

    # -- facts ------------------------------------------------------------------------------------

    def numbers(self, g: GroupId) -> bool:
        return g in self.books

    def held_back(self) -> list[Waiting]:
        return list(explained.held_back(self))

    def waiting_frames(self) -> list[WaitingFrame]:
        return list(explained.waiting_frames(self))

    def held_up(self) -> Iterator[Waiting]:
        return explained.held_up(self)

    def holdings(self, g: GroupId) -> Holdings:
        return explained.holdings(self, g)

    def invariants(self) -> None:
        """What must always hold, checked by simulators and explorers after every step."""
        self.sender.check()
        for g, view in self.views.items():
            book, seat = self.books.get(g), self.seats.get(g)
            assert (book is not None) == (view.leader == self.me), "a book iff it is the sequencer"
            if book is not None:
                book.check(view)
            if seat is not None:
                seat.check()
                inside = seat.stay is Stay.IN
                assert not inside or seat.era == view.era, "a seat is of the era in force"
                assert inside == (self.me in view.members), "in iff the view says so"
            else:
                assert self.me not in view.members, "a member has a seat"
        if self.causal:
            leaders = {self.views[g].leader for g in self.sender.under_way}
            assert leaders <= {self.sender.target}, "frames are under way to one sequencer"
        assert self.member_of >= {g for g, s in self.seats.items() if s.stay is Stay.IN}, "a member"
        assert self.views.keys() >= self.books.keys(), "only a known group is numbered"
        markers = sum(isinstance(x, Marker) for s in self.seats.values() for x in s.queue)
        assert markers == self.markers, "all markers are counted"

    # -- not used: every view of this service begins by a change -----------------------------------

    def on_view(self, view: View) -> None:
        raise AssertionError("views begin by `change`")

    def unstable(self, g: GroupId) -> tuple[Any, ...]:
        raise AssertionError("what is held is reported by `held`")

    def on_flush(self, g: GroupId, union: Sequence[Any]) -> None:
        raise AssertionError("eras end by `change`")


def _holds(seat: Seat | None, N: int) -> bool:
    """Does a member have this number of the era in force?"""
    return seat is not None and seat.stay is Stay.IN and seat.got >= N


def _is_same(one: Waits, other: Waits) -> bool:
    """Is one a repeat of the other, in the same era?"""
    return one[:2] == other[:2] and one[2].n == other[2].n


def _reached(seat: Seat) -> Place:
    """The place of a member for contexts: once all of an era is delivered, any number of it is,
    also one that was lost with a sequencer."""
    at = seat.at
    for item in seat.queue:
        if not isinstance(item, Marker):
            break
        at = (item.place[0] - 1, END)
    return at
