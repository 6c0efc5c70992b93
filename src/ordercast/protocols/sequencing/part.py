"""One group of the sequencing service at one process: a member's part, and the sequencer's.

What a group with a sequencer does by itself is in `machinery.sequenced` and `machinery.sequencer`.
Here is what the order across groups adds:

    DO-MULTICAST(n, C, after) from p    wait until p's frames in `after` have numbers;
                                        N := N + 1;  ACCEPT(N, context) to the members
    context                             exact:  the last numbers of groups that share a member with
                                                this one, and are numbered here   (total orders)
                                        deps:   what p had seen, and its frames before (causal ones)
    ACCEPT(N, C) at q                   wait until N = R + 1, and R' >= n' for each (G', n') in C
                                        with q in G';  deliver;  R := N

A group may be handed over to another sequencer at any time: `machinery.transfer`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from ordercast.core.events import Change, Kept, Receive, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import Options, on
from ordercast.core.waiting import Awaited, Holdings, Waiting, WaitingFrame, first_named
from ordercast.errors import PeerError
from ordercast.machinery.guests import GuestBook
from ordercast.machinery.numbering import VIEW_ENTRY, Context, Numbered, Numbering, ViewEntry
from ordercast.machinery.sequencer import SequencedProtocol
from ordercast.machinery.sequencer_headers import Delivered, Fetch, Status
from ordercast.machinery.transfer import BookEntry, BookState, counts, reopened
from ordercast.protocols.sequencing.explained import kept_by_part
from ordercast.protocols.sequencing.headers import (
    AcceptedIn,
    AcceptIn,
    AskHeld,
    DoMulticast,
    Forwarded,
    Held,
    Ids,
    Moved,
)

if TYPE_CHECKING:
    from ordercast.protocols.sequencing.service import SequencingService

NOT_ASKED: tuple[Context, Ids] = ((), ())

FROM_THE_SEQUENCER = frozenset((AcceptIn, AcceptedIn, ViewEntry, Status, AskHeld, Moved, Forwarded))


class GroupPart(SequencedProtocol):
    """One group. What concerns several is left to the service."""

    across = True

    def __init__(self, me: ProcessId, options: Options, service: SequencingService) -> None:
        super().__init__(me, options)
        self.service = service
        self.out = service.out
        self.left_in = service.left_in
        self.admitted_by = service.admitted_by
        # a sender
        self.released = 0  # own frames up to n were asked for in this era
        self.stamps: dict[int, tuple[Context, Ids]] = {}  # own frames: what they come after
        self.held = 0  # of a guest: own frames up to n are held by a member
        self.last_number = 0  # of a guest: the highest number of a frame of its own ...
        self.last_frame = 0  # ... and which frame that is
        self.settled = 0  # numbers up to here are known to be delivered by all
        # a member
        self.move = 0  # hand-overs of this era that were heard of
        self.former: set[ProcessId] = set()  # those who numbered before, in this era
        self.unnamed: list[Receive] = []  # numbers of one that may be the next
        self.asked_for = 0  # the sequencer wants to know when this number is here
        # the sequencer
        self.asked: dict[tuple[ProcessId, int], tuple[Context, Ids]] = {}  # frames not numbered
        self.deferred: dict[ProcessId, deque[Numbered]] = {}  # they wait for frames of their sender
        self.entered: dict[ProcessId, int] = {}  # each origin's last frame that got a number here
        self.latest: View | None = None  # the last view that has a number, delivered or not
        self.lingering: tuple[int, frozenset[ProcessId]] = (0, frozenset())  # until that is stable
        self.behind: dict[GroupId, int] = {}  # merge of all contexts numbered here
        self.held_up_to = 0  # numbers that another than this process has
        self.asked_held = 0  # AskHeld was sent for this number
        self.successor: ProcessId | None = None  # numbers from now on
        self.unready: list[tuple[ProcessId, DoMulticast, bytes]] = []  # came before the book
        self.to_tell: tuple[ProcessId, ...] = ()  # who must hear that another numbers
        self.legacy: dict[int, Numbered] | None = None  # handed over, and perhaps not there yet
        self.gone: dict[ProcessId, int] = {}  # who left, and the number of the view without it
        self.changes = 0  # of members and guests, as the coordinator counts them
        self.traffic: dict[ProcessId, int] = {}  # requests since the coordinator was told

    def send(self, p: ProcessId, g: GroupId, header: msgspec.Struct, m: bytes = b"") -> None:
        if p == self.me:  # it numbered until a moment ago
            assert self.successor is not None
            p = self.successor
        super().send(p, g, self._stamped(header), m)

    def b_multicast(self, g: GroupId, header: msgspec.Struct, m: bytes = b"") -> None:
        super().b_multicast(g, self._stamped(header), m)

    def _stamped(self, header: msgspec.Struct) -> msgspec.Struct:
        """Who is let in must know whom to believe. The view may be older than the last hand-over,
        and word of one before it may come later."""
        if self.move and type(header) is ViewEntry:
            return msgspec.structs.replace(header, move=self.move)
        return header

    # -- a sender ---------------------------------------------------------------------------------

    def request(self, g: GroupId, n: int, m: bytes) -> None:
        """DO-MULTICAST, unless it must still wait here."""
        if n > self.released or self.service.paused:
            return
        context, after = self.stamps.get(n, NOT_ASKED)
        if after:
            context, after = self.service.resolved(context, after)
        if self.service.taking_over:
            self.unready.append((self.me, DoMulticast(n, context, after), m))
        elif self.book is not None:
            self._ask(g, self.me, DoMulticast(n, context, after), m)
        else:
            self.send(self.leader, g, DoMulticast(n, context, after), m)

    def lacks_number(self, n: int) -> bool:
        """Is no number known of our frame n?"""
        return n in self.requests and n > self.numbered

    @on(AcceptedIn)
    def on_ACCEPTED_IN(self, src: ProcessId, g: GroupId, accepted: AcceptedIn, m: bytes) -> None:
        if self.me not in self.views[g].guests:
            return  # not any more, or not yet: the view is on its way
        if not accepted.stable <= accepted.n <= self.S or not accepted.held <= accepted.n:
            raise PeerError(f"{accepted} came to a process that has sent {self.S} frames")
        self._accepted(g, accepted)

    def _accepted(self, g: GroupId, accepted: AcceptedIn) -> None:
        self.held = max(self.held, accepted.held)
        if self.last_number < accepted.N:
            self.last_number, self.last_frame = accepted.N, accepted.n
        if accepted.stable >= self.last_frame:
            self.settled = max(self.settled, self.last_number)
        self.service.saw(g, accepted.N, ())
        self.learn_as_guest(g, accepted.n, accepted.stable)
        self.service.send_released()

    # -- a member ---------------------------------------------------------------------------------

    def receive(self, packet: Receive) -> None:
        """Who numbers may change while its numbers are on the way. Those of one that has not been
        named yet are kept until it is."""
        header = packet.header
        if packet.src != self.leader and type(header) in FROM_THE_SEQUENCER:
            view = self.views.get(packet.group)
            ours = view is not None and packet.era == view.era
            if ours and isinstance(header, Moved) and header.to == packet.src:
                self.on_MOVED(packet.src, packet.group, header, b"")  # the one before may be gone
                return
            if ours and self.book is None and packet.src not in self.former:
                self._receive_unnamed(packet)
                return
        super().receive(packet)

    def _receive_unnamed(self, packet: Receive) -> None:
        g, header = packet.group, packet.header
        if isinstance(header, ViewEntry) and self._lets_us_in(g, header):
            # It was outside, where nobody tells it who numbers.
            self._believe_view(packet.src, g, header)
            self._let_in(g, header)
            self._take_unnamed()
        elif len(self.unnamed) < self.options.max_held:  # else it is asked for again
            self.unnamed.append(packet)

    def _take_unnamed(self) -> None:
        unnamed, self.unnamed = self.unnamed, []
        for packet in unnamed:
            self.receive(packet)

    def _send_status(self, p: ProcessId, g: GroupId) -> None:
        """Who is behind may not have heard who numbers now."""
        if self.move:
            self.send(p, g, Moved(self.me, self.move))
        super()._send_status(p, g)

    def still_expects(self, p: ProcessId) -> bool:
        if self.book is not None and self.latest is not None and p in self.latest.senders:
            return True  # it has a view that is numbered, and not delivered here yet
        return p in self.former or super().still_expects(p)

    def _check_sequencer(self, src: ProcessId) -> None:
        if src not in self.former:
            super()._check_sequencer(src)

    @on(AcceptIn)
    def on_ACCEPT_IN(self, src: ProcessId, g: GroupId, accept: AcceptIn, m: bytes) -> None:
        entry = Numbered(accept.origin, accept.n, m, None, accept.context)
        self.place(g, accept.N, accept.stable, entry)

    @on(ViewEntry)
    def on_VIEW(self, src: ProcessId, g: GroupId, view: ViewEntry, m: bytes) -> None:
        self._believe_view(src, g, view)
        if self._lets_us_in(g, view):
            self._let_in(g, view)
        else:
            super().on_VIEW(src, g, view, m)

    def _believe_view(self, src: ProcessId, g: GroupId, view: ViewEntry) -> None:
        """Who sends a view numbers, unless a later hand-over is known here."""
        if self.book is None and view.move > self.move:
            self.move = view.move
            self._follow(g, src)

    def _keep_if_early(self, packet: Receive) -> None:
        g, header = packet.group, packet.header
        if g not in self.views and isinstance(header, ViewEntry):
            former = self.left_in.get(g, (0, 0))
            if self._admits_us(header) and (packet.era, header.N) > former:
                self.move = max(self.move, header.move)
        super()._keep_if_early(packet)

    def _lets_us_in(self, g: GroupId, view: ViewEntry) -> bool:
        """Is this process outside, though it knows the group: it numbered it, or was in it before?
        A view of a former stay lets nobody in."""
        if self.book is not None or self.me in self.views[g].senders or self.taken >= view.N:
            return False
        former = self.left_in.get(g, (0, 0))
        return self._admits_us(view) and (self.views[g].era, view.N) > former

    def _let_in(self, g: GroupId, view: ViewEntry) -> None:
        self._come_in(g, view, self.views[g].era)
        self.acknowledge(g)

    def _come_in(self, g: GroupId, view: ViewEntry, era: int) -> None:
        self._start_after(view.N)
        self._take_up_frames(view.last)
        if self.me in view.joined:
            self._become_member(view)
        self.install(self._view_of(g, view, era))

    def learn(self, g: GroupId, top: int, stable: int) -> None:
        # Not `self.stable`: that only says what this process need not keep. A joiner or a guest
        # begins above numbers that others may lack.
        super().learn(g, top, stable)
        if stable > self.settled:
            self.settled = stable
            if self.service.unsent:  # what is stable cannot be lost
                self.service.send_released()

    def waits(self, g: GroupId, entry: Numbered) -> bool:
        context = entry.context if entry.view is None else entry.view.context
        return bool(context) and self.service.must_wait(g, context)

    def delivered(self, g: GroupId, N: int, entry: Numbered) -> None:
        context = entry.context if entry.view is None else entry.view.context
        self.service.saw(g, N, context)
        if entry.origin == self.me:
            self.stamps.pop(entry.n, None)
            self.service.settled_own(g, entry.n)

    def came_further(self, g: GroupId) -> None:
        if self.asked_for and self.asked_for <= self.R:
            self.asked_for = 0
            if self.book is None:
                self.send(self.leader, g, Held(self.R))
        self.service.progressed(g)

    def try_next(self, g: GroupId) -> None:
        """Something that the next entry may have waited for was delivered."""
        if self.arrived and (entry := self._next_in_turn(g)) is not None:
            self.deliver_in_turn(g, entry)

    @on(AskHeld)
    def on_ASK_HELD(self, src: ProcessId, g: GroupId, ask: AskHeld, m: bytes) -> None:
        self.check_near(ask.N)
        if self.delivers:
            self.asked_for = max(self.asked_for, ask.N)
            self.learn(g, ask.N, 0)
            self.came_further(g)

    @on(Moved)
    def on_MOVED(self, src: ProcessId, g: GroupId, moved: Moved, m: bytes) -> None:
        if moved.move <= self.move or self.book is not None:
            return
        self.move = moved.move
        if self.successor is not None:
            self.successor = moved.to
        self._follow(g, moved.to)
        self._take_unnamed()
        if self.delivers or self.requests:
            self.acknowledge(g)
        self.service.moved(g)

    def _follow(self, g: GroupId, leader: ProcessId) -> None:
        self.former.add(self.leader)
        self.leader = leader
        if g in self.views:
            self.views[g] = msgspec.structs.replace(self.views[g], leader=leader)
            self.service.views[g] = self.views[g]

    def put_in_force(self, view: View) -> None:
        g = view.group
        if not view.start:  # a sequencer's own admission may be numbered, and not delivered
            self.delivers = g in self.service.member_of
        super().put_in_force(view)
        if self.me not in view.senders:
            self.released = 0
        if g in self.member_of and g not in self.service.member_of:
            self.service.saw(g, view.start, ())  # what it sent before, as a guest, is below
        self.service.put_in_force_of(view, member=g in self.member_of)
        if self.book is None or self.latest is None:
            self.latest = view
        elif self.latest.era == view.era:  # numbered further than delivered
            self.others[g] = tuple(p for p in self.latest.members if p != self.me)

    def _begin_era(self, view: View) -> None:
        self.released = 0  # the service asks again, for all groups in the order they were sent
        self.stamps.clear()
        self.last_number = self.last_frame = self.settled = 0
        self.held = self.move = self.asked_for = 0
        self.asked.clear()
        self.deferred.clear()
        self.entered = dict(self.done)
        self.latest = view
        self.lingering = (0, frozenset())
        self.behind.clear()
        self.held_up_to = self.asked_held = 0
        self.successor = None
        self.unready, self.to_tell = [], ()
        self.former, self.unnamed = set(), []
        self.legacy, self.gone, self.traffic, self.changes = None, {}, {}, 0
        super()._begin_era(view)

    # -- the sequencer numbers --------------------------------------------------------------------

    @on(DoMulticast)
    def on_DO_MULTICAST(self, p: ProcessId, g: GroupId, request: DoMulticast, m: bytes) -> None:
        if self.book is not None and not self.service.taking_over:
            self._ask(g, p, request, m)
        elif self.successor is not None:
            forwarded = Forwarded(p, request.n, request.context, request.after)
            self.send(self.successor, g, forwarded, m)
        elif len(self.unready) < self.options.max_held:  # the book is on its way
            self.unready.append((p, request, m))

    @on(Forwarded)
    def on_FORWARDED(self, src: ProcessId, g: GroupId, forwarded: Forwarded, m: bytes) -> None:
        self._check_sequencer(src)
        request = DoMulticast(forwarded.n, forwarded.context, forwarded.after)
        self.on_DO_MULTICAST(forwarded.origin, g, request, m)

    def _ask(self, g: GroupId, p: ProcessId, request: DoMulticast, m: bytes) -> None:
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
        elif context:
            entry = Numbered(entry.origin, entry.n, entry.payload, None, context)
        self.entered[entry.origin] = entry.n
        super()._enter(g, entry)
        if entry.origin in self.guests.stable:
            self._tell_guest(entry.origin, g)
        self.service.has_numbered(g, entry.origin)

    def announce(self, g: GroupId, N: int, entry: Numbered) -> None:
        assert self.book is not None
        self.b_multicast(g, self.accept(N, entry, self.book.stable), entry.payload)

    def accept(self, N: int, entry: Numbered, stable: int) -> AcceptIn:
        return AcceptIn(N, entry.origin, entry.n, stable, entry.context)

    # -- the sequencer's members and guests -------------------------------------------------------

    def _tell_guest(self, p: ProcessId, g: GroupId) -> None:
        book = self.book
        assert book is not None
        stable = self.guests.stable[p]
        n = max(stable, self.entered.get(p, 0))
        pending = [(N, k) for N, k in self.guests.pending[p] if k <= n]
        held_up_to = self.held_up_to if self._somebody_else() else book.N
        held = max((k for N, k in pending if held_up_to >= N), default=stable)
        word = AcceptedIn(n, stable, pending[-1][0] if pending else 0, held)
        if p == self.me:
            self._accepted(g, word)
        else:
            self.out.send_word(p, g, self.views[g].era, word)

    def _somebody_else(self) -> bool:
        """Is there a member other than the sequencer, who would have to deliver?"""
        return self.book is not None and any(p != self.me for p in self.book.acks.marks)

    def _acknowledged(self, g: GroupId, p: ProcessId, R: int) -> None:
        super()._acknowledged(g, p, R)
        if p != self.me and self.book is not None and p in self.book.acks.marks:
            self._is_held(g, R)

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
            self._is_held(g, held.N)

    def _is_held(self, g: GroupId, N: int) -> None:
        if self.held_up_to >= N:
            return
        self.held_up_to = N
        for p, frames in self.guests.pending.items():
            if frames:
                self._tell_guest(p, g)
        self.service.send_released()

    def exposed(self, g: GroupId, N: int) -> bool:
        """At the sequencer: would number N be lost if this process died now?"""
        return self.book is not None and self.held_up_to < N and self._somebody_else()

    def ask_held(self, g: GroupId) -> None:
        """Somebody else must have what is delivered here, before this process speaks of it."""
        if self.book is not None and self.asked_held < self.R:
            self.asked_held = self.R
            other = next(p for p in self.book.acks.marks if p != self.me)
            self.send(other, g, AskHeld(self.R))

    def latest_view(self, g: GroupId) -> View:
        return self.latest or self.views[g]

    def on_change(self, change: Change) -> None:
        g = change.group
        before = self.latest_view(g)
        number = 0 if self.book is None else self.book.N
        super().on_change(change)
        assert self.book is not None
        self.changes += 1
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
            self.acknowledge(g)

    def _forget_requests(self, p: ProcessId) -> None:
        self.deferred.pop(p, None)
        self.entered.pop(p, None)
        self.asked = {key: said for key, said in self.asked.items() if key[0] != p}

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

    # -- the group is handed over -----------------------------------------------------------------

    def hand_over(
        self, g: GroupId, to: ProcessId
    ) -> tuple[BookState, list[tuple[BookEntry, bytes]]]:
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
        )
        entries = [(BookEntry.of(N, e), e.payload) for N, e in book.history.items()]
        waiting = list(self._waiting_requests(book))
        # Who left may not have delivered its last view: it must know whom to ask.
        self.to_tell = (*view.senders, *book.leaving, *self.guests.untold)
        self.legacy = book.history
        self.book, self.successor = None, to
        self.service.members_changed()
        self.guests = GuestBook((), {})
        self.deferred, self.asked = {}, {}
        for p, request, m in waiting:
            self.on_DO_MULTICAST(p, g, request, m)
        return state, entries

    def _last_numbered(self, book: Numbering) -> dict[ProcessId, int]:
        """Frames that wait for others go along as requests."""
        return {
            p: self.deferred[p][0].n - 1 if p in self.deferred else n for p, n in book.last.items()
        }

    def _waiting_requests(self, book: Numbering) -> Iterator[tuple[ProcessId, DoMulticast, bytes]]:
        ahead = {p: dict(frames) for p, frames in book.ahead.items()}
        for p, queue in self.deferred.items():
            ahead.setdefault(p, {}).update((frame.n, frame.payload) for frame in queue)
        for p, frames in ahead.items():
            for n, m in sorted(frames.items()):
                yield p, DoMulticast(n, *self.asked.get((p, n), NOT_ASKED)), m

    def unstable(self, g: GroupId) -> tuple[Kept, ...]:
        """Also what was handed over and has perhaps not arrived."""
        kept = super().unstable(g)
        if not self.legacy:
            return kept
        here = {(entry.origin, entry.n) for entry in kept}
        return kept + tuple(e for e in self.as_kept(self.legacy) if (e.origin, e.n) not in here)

    def settled_leavers(self) -> tuple[ProcessId, ...]:
        """Who left, and all have delivered the view without it: said once."""
        if not self.gone or self.book is None:
            return ()
        settled = tuple(p for p, N in self.gone.items() if self.book.stable >= N)
        for p in settled:
            del self.gone[p]
        return settled

    def tell_moved(self, g: GroupId) -> None:
        """At the former sequencer, when the next one has everything."""
        self.legacy = None
        if self.leader != self.me:  # it has gone on to another meanwhile, and all were told of that
            return
        assert self.successor is not None
        self._follow(g, self.successor)
        self.move += 1
        era = self.latest_view(g).era
        to = tuple(p for p in dict.fromkeys(self.to_tell) if p not in (self.me, self.successor))
        self.to_tell = ()
        if to:
            self.out.transmits.append((to, g, era, Moved(self.successor, self.move), b""))
        if self.delivers:
            self.acknowledge(g)

    def succeed(
        self, g: GroupId, state: BookState, entries: Iterable[tuple[BookEntry, bytes]]
    ) -> None:
        """This process numbers from now on."""
        self.service.succeed({g: (state, entries)})

    def take_book(
        self, g: GroupId, state: BookState, entries: Iterable[tuple[BookEntry, bytes]]
    ) -> None:
        """The book is here. The first number is given when those of all groups that came with it
        are."""
        self.former.update(state.former)
        history = {entry.N: entry.numbered(body) for entry, body in entries}
        self.book = reopened(state, history, self.options.max_held)
        self.successor = None
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
        self.held_up_to = max((R for p, R in state.acks if p != self.me), default=0)
        latest = View(
            g, state.view, state.members, self.me, state.era, max(1, state.N), guests=state.guests
        )
        self._catch_up(g, dict(state.joining), latest)
        self.latest = latest
        self._follow(g, self.me)
        self.others[g] = tuple(p for p in state.members if p != self.me)
        self.move += 1
        self.acknowledge(g)
        self.start_timer(g, "status", self.options.status_ms)
        for N, entry in list(self.book.history.items()):
            self.place(g, N, self.book.stable, entry)

    def begin_to_number(self, g: GroupId) -> None:
        """What came before the book."""
        self._take_unnamed()
        unready, self.unready = self.unready, []
        for p, request, m in unready:
            self._ask(g, p, request, m)
        self.service.moved(g)

    def _catch_up(self, g: GroupId, joining: Mapping[ProcessId, int], latest: View) -> None:
        """The word for a view that this process comes in with, or goes with as a guest, may still
        be on its way here."""
        assert self.book is not None
        view = self.views.get(g)
        entry = next(iter(self.guests.untold.pop(self.me, ())[-1:]), None)
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
        return msgspec.structs.replace(here, held=here.held + more)

    # -- plain state ------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        shared = ("service", "left_in")
        return {name: value for name, value in super().state().items() if name not in shared}

    def belong_to(self, service: SequencingService) -> None:
        """After a copy."""
        self.service, self.out, self.left_in = service, service.out, service.left_in

    def requests_after(self, groups: Iterable[GroupId]) -> list[int]:
        """Own frames that were asked for with frames of these groups before them."""
        return [n for n, (_, after) in self.stamps.items() if any(h in groups for h, _ in after)]
