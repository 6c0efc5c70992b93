"""One group of the sequencing service at one process: the part of a sender and of a member.

What a group with a sequencer does by itself is in `machinery.sequenced` and `machinery.sequencer`.
Here is what the order across groups adds for those who send and deliver:

    DO-MULTICAST(n, C, after)    C: what this process has seen;  after: its own frames in other
                                 groups that have no number yet;  with `bodies_apart` as
                                 DO-NUMBER, to the members, too: ACCEPT comes without the body
    ACCEPT(N, C) at q            wait until N = R + 1, and R' >= n' for each (G', n') in C with q
                                 in G';  deliver;  R := N

Who numbers the group may change at any time: `protocols.sequencing.part`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from ordercast.core.events import Receive, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import Options, on
from ordercast.errors import PeerError
from ordercast.machinery.bodies_apart import BodiesApart
from ordercast.machinery.numbering import Context, Numbered, ViewEntry
from ordercast.machinery.sequencer_headers import Status
from ordercast.protocols.sequencing.headers import (
    AcceptedIn,
    AcceptIn,
    AskHeld,
    Dismissed,
    DoMulticast,
    DoNumber,
    Former,
    Forwarded,
    Held,
    Ids,
    Moved,
    NumberIn,
)

if TYPE_CHECKING:
    from ordercast.protocols.sequencing.service import SequencingService

NOT_ASKED: tuple[Context, Ids] = ((), ())

FROM_THE_SEQUENCER = frozenset(
    (
        AcceptIn, AcceptedIn, NumberIn, ViewEntry, Status, AskHeld, Moved, Forwarded, Former,
        Dismissed,
    )
)  # fmt: skip


class MemberPart(BodiesApart):
    """One group: what a sender and a member do. What concerns several is left to the service."""

    across = True

    def __init__(self, me: ProcessId, options: Options, service: SequencingService) -> None:
        super().__init__(me, options)
        self.service = service
        self.out = service.out
        self.left_in = service.left_in
        self.admitted_by = service.admitted_by
        # a sender
        self.released = 0  # own frames up to n were asked for in this era
        self.came_in: dict[ProcessId, int] = {}  # in this era: they have nothing up to this number
        self.stamps: dict[int, tuple[Context, Ids]] = {}  # own frames: what they come after
        self.told = 0  # own frames up to n were brought to the members
        self.held = 0  # of a guest: own frames up to n are held by a member
        self.last_number = 0  # of a guest: the highest number of a frame of its own ...
        self.last_frame = 0  # ... and which frame that is
        self.settled = 0  # numbers up to here are known to be delivered by all
        # a member
        self.move = 0  # hand-overs of this era that were heard of
        self.former: set[ProcessId] = set()  # those who numbered before, in this era
        self.unnamed: list[Receive] = []  # numbers of one that may be the next
        self.asked_for = 0  # the sequencer wants to know when this number is here
        self.was_in = False  # in this era, as a member or as a guest
        # the sequencer
        self.asked: dict[tuple[ProcessId, int], tuple[Context, Ids]] = {}  # frames not numbered
        self.apart: set[tuple[ProcessId, int]] = set()  # ... of which the members get the bodies
        self.deferred: dict[ProcessId, deque[Numbered]] = {}  # they wait for frames of their sender
        self.entered: dict[ProcessId, int] = {}  # each origin's last frame that got a number here
        self.latest: View | None = None  # the last view that has a number, delivered or not
        self.lingering: tuple[int, frozenset[ProcessId]] = (0, frozenset())  # until that is stable
        self.behind: dict[GroupId, int] = {}  # merge of all contexts numbered here
        self.held_up_to = 0  # numbers that another than this process has, or that nobody needs
        self.holding: dict[ProcessId, int] = {}  # words that go further, and begin above that
        self.asked_held = 0  # AskHeld was sent for this number
        self.successor: ProcessId | None = None  # numbers from now on
        self.unready: list[tuple[ProcessId, DoMulticast, bytes]] = []  # came before the book
        self.word_of_move: tuple[Moved, tuple[ProcessId, ...]] | None = None  # and who must hear it
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

    @abstractmethod
    def ask(self, g: GroupId, p: ProcessId, request: DoMulticast, m: bytes) -> None:
        """At the sequencer: number this frame of p, now or when it may be."""

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
            self.ask(g, self.me, DoMulticast(n, context, after), m)
        elif self._tells_bodies(g, n):
            self.told = n
            to, era = tuple(dict.fromkeys((self.leader, *self.others[g]))), self.views[g].era
            request = DoNumber(self.leader, n, context, after)
            self.out.transmits.append((to, g, era, request, m))
        else:
            self.send(self.leader, g, DoMulticast(n, context, after), m)

    def _tells_bodies(self, g: GroupId, n: int) -> bool:
        """Once, and only as a member: a guest need not know whom to tell."""
        return self.options.bodies_apart and n > self.told and self.delivers

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
        if isinstance(header, ViewEntry) and (
            header.move > self.move or self._lets_us_in(g, header)
        ):
            # It was outside, where nobody tells it who numbers; or word of that is late.
            self.on_VIEW(packet.src, g, header, b"")
            self._take_unnamed()
        elif len(self.unnamed) < self.options.max_held:  # else it is asked for again
            self.unnamed.append(packet)

    def _take_unnamed(self) -> None:
        unnamed, self.unnamed = self.unnamed, []
        for packet in unnamed:
            self.receive(packet)

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

    @on(NumberIn)
    def on_NUMBER_IN(self, src: ProcessId, g: GroupId, number: NumberIn, m: bytes) -> None:
        entry = Numbered(number.origin, number.n, b"", None, number.context)
        self.take_number(g, number.N, number.stable, entry)

    @on(ViewEntry)
    def on_VIEW(self, src: ProcessId, g: GroupId, view: ViewEntry, m: bytes) -> None:
        if view.move > self.move:  # who sends a view numbers
            self.on_MOVED(src, g, Moved(src, view.move), b"")
        if self._lets_us_in(g, view):
            self._let_in(g, view)
        else:
            super().on_VIEW(src, g, view, m)

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

    def _view_of(self, g: GroupId, entry: ViewEntry, era: int) -> View:
        known = self.views[g].members if g in self.views else entry.members
        new = (*entry.joined, *(p for p in entry.members if p not in known))  # guests miss views
        self.came_in.update(dict.fromkeys(new, entry.N - 1))
        self.settled = max(self.settled, entry.stable)
        return super()._view_of(g, entry, era)

    def is_new_here(self) -> bool:
        """Did it come in above numbers that may still be lost? Those after them are lost, too."""
        return self.delivers and self.settled < self.came_in.get(self.me, 0)

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
        if self.owes_a_word():
            self.acknowledge(g)
        self.service.moved(g)

    def owes_a_word(self) -> bool:
        """Does the sequencer want to know how far this process has come?"""
        return self.delivers or bool(self.requests)

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
        if self.me in view.senders:
            self.was_in = True
        else:
            self.released = 0
        if g in self.member_of and g not in self.service.member_of:
            self.service.saw(g, view.start, ())  # what it sent before, as a guest, is below
        self.service.put_in_force_of(view, member=g in self.member_of)
        if self.book is None or self.latest is None:
            self.latest = view
        elif self.latest.era == view.era:  # numbered further than delivered
            self.others[g] = tuple(p for p in self.latest.members if p != self.me)

    def _begin_era(self, view: View) -> None:
        self.released = self.told = 0  # the service asks again, in the order they were sent
        self.was_in = False
        self.stamps.clear()
        self.last_number = self.last_frame = self.settled = 0
        self.held = self.move = self.asked_for = 0
        self.asked.clear()
        self.apart.clear()
        self.deferred.clear()
        self.entered = dict(self.done)
        self.latest = view
        self.lingering = (0, frozenset())
        self.behind.clear()
        self.held_up_to = self.asked_held = 0
        self.holding, self.came_in = {}, {}
        self.successor = None
        self.unready, self.word_of_move = [], None
        self.former, self.unnamed = set(), []
        self.legacy, self.gone, self.traffic, self.changes = None, {}, {}, 0
        super()._begin_era(view)

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
