"""Uniform delivery: an application gets a frame when so many hold it that crashes cannot undo it.

Source      001 (Coulouris et al.), slide "Uniform Agreement", by the majority rule of `uniform`,
            taken out of one protocol and put behind all of them.
Guarantees  resilience k: what any process hands to its application, every survivor delivers, in the
            protocol's order, if at most k members crash before the next view.
Needs       nothing: a lost word is asked for.
Costs       one small packet from each member to each other, for each frame, or for all that came
            together; one more hop before a frame is handed over.

    the protocol delivers m, m'..  queue them;  tell all what is held here
    Holding(marks) from q          q holds all frames up to the marks
    the first of the queue is held by more than k members        hand it over
    a new era begins               what was queued before it is handed over: its flush has given
                                   it to all who survive
    the first waits for long       ask those who are not known to hold it

One queue serves all groups of a machine: an order across groups is one order here, too.

Limits      The queue is as long as the windows of the senders allow, as credit is given for what
            the application has taken.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from ordercast.core.events import Receive, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.output import Delivery, Output
from ordercast.core.protocol import Options
from ordercast.core.state import PlainState
from ordercast.core.waiting import NOBODY, Awaited, Waiting, WaitingFrame
from ordercast.errors import PeerError
from ordercast.reliability.holders import AskHolding, Holders, Holding, Place

MAX_BACKOFF = 32  # questions slow down to so many periods

ASK = "ask holders"  # the timer
GATE_HEADERS = (AskHolding, Holding)

NO_PLACE: Place = (NOBODY, 0)  # of a view: it waits only for what is before it in the queue

Queued = tuple[GroupId, int, Place, Delivery | View]  # (group, its era, its place, what)


class Gate(PlainState):
    """Stands between one machine of one process and the application."""

    def __init__(self, me: ProcessId, options: Options, *, tells_guests: bool) -> None:
        self.me = me
        self.options = options
        self.tells_guests = tells_guests  # a guest must know who holds what it has sent
        self.groups: dict[GroupId, Holders] = {}  # all that the machine serves
        self.queue: deque[Queued] = deque()  # in the order of the protocol
        self.untold: set[GroupId] = set()  # more was delivered here than the others were told
        self.watched: Queued | None = None  # the first of the queue when the timer was started
        self.asks = 0  # questions since it last moved

    def open(self, g: GroupId, holders: Holders) -> None:
        """Another group of the machine."""
        self.groups[g] = holders

    def close(self, g: GroupId) -> None:
        """The group was closed: nothing of it is handed over any more."""
        self.groups.pop(g, None)
        self.untold.discard(g)
        self.queue = deque(item for item in self.queue if item[0] != g)
        if self.watched is not None and self.watched[0] == g:
            self.watched = None

    def awaits(self, g: GroupId) -> bool:
        """Is there anything of this group that was not handed over?"""
        return any(item[0] == g for item in self.queue)

    # -- the protocol delivers --------------------------------------------------------------------

    def begin(self, view: View) -> None:
        """A new era of a group: what was queued before is settled."""
        self.groups[view.group].begin(view)
        self.untold.discard(view.group)

    def take(self, item: Delivery | View) -> None:
        """The next delivery of the protocol, or a view among them."""
        if isinstance(item, View):
            g, place = item.group, NO_PLACE
        else:
            g, place = item[0], self.groups[item[0]].deliver(item)
            if self.groups[g].gated:
                self.untold.add(g)
        self.queue.append((g, self.groups[g].era, place, item))

    def release(self, out: Output) -> None:
        """Hand over what may go; tell the others what is held here; see that words come."""
        for g in sorted(self.untold):
            self._tell(out, g)
        self.untold.clear()
        first = self.queue[0] if self.queue else None
        while self.queue and self._may_go(self.queue[0]):
            out.deliveries.append(self.queue.popleft()[3])
        if self.queue:
            if self.asks and self.queue[0] is not first:  # it moves again: no long pauses any more
                self.asks, self.watched = 0, None
            self._watch(out)

    def _may_go(self, item: Queued) -> bool:
        g, era, place, _ = item
        holders = self.groups[g]
        return place == NO_PLACE or era < holders.era or not holders.lacking(place)[0]

    # -- words ------------------------------------------------------------------------------------

    def _tell(self, out: Output, g: GroupId) -> None:
        # Not later, to tell of more: a sender that changes groups waits for it every time. Under
        # load many frames come in one step, and one word tells of all.
        holders = self.groups[g]
        guests = holders.guests if self.tells_guests else ()
        others = tuple(p for p in (*holders.members, *guests) if p != self.me)
        if others:
            out.transmits.append((others, g, holders.era, holders.word(), b""))

    def receive(self, out: Output, packet: Receive) -> None:
        """A word of another member, or its question."""
        g, src, header = packet.group, packet.src, packet.header
        holders = self.groups[g]
        if packet.era == holders.era and src not in holders.members:
            raise PeerError(f"{type(header).__name__} comes from members only")
        if isinstance(header, Holding):
            holders.told(src, packet.era, header)
        elif packet.era == holders.era:
            out.transmits.append(((src,), g, packet.era, holders.word(), b""))

    # -- questions --------------------------------------------------------------------------------

    def _watch(self, out: Output) -> None:
        """See to it that the first of the queue does not wait for a word that was lost."""
        if self.watched is None:
            first = self.watched = self.queue[0]
            wait_ms = self.options.retry_ms * min(1 << self.asks, MAX_BACKOFF)
            out.timers.append((first[0], ASK, wait_ms))

    def on_timer(self, out: Output) -> None:
        """If the first of the queue is what it was: a word was lost, somebody is slow, or dead."""
        watched, self.watched = self.watched, None
        if not self.queue or self.queue[0] != watched:
            self.asks = 0
            return
        self.asks += 1
        self._ask(out, watched)

    def _ask(self, out: Output, item: Queued) -> None:
        g, era, place, _ = item
        _, silent = self.groups[g].lacking(place)
        out.transmits.append((tuple(silent), g, era, AskHolding(), b""))

    # -- what must always hold --------------------------------------------------------------------

    def invariants(self) -> None:
        """What must always hold, checked by simulators and explorers after every step."""
        assert not self.untold, "the others were told what is held here"
        for holders in self.groups.values():
            holders.invariants()
        for g, era, place, _ in self.queue:
            assert era <= self.groups[g].era, "what waits is of an era that has begun"
            is_held = era < self.groups[g].era or self.groups[g].holds(place)
            assert is_held, "what waits is held here"
        if self.queue:
            assert not self._may_go(self.queue[0]), "what enough hold was handed over"
            assert self.watched is not None, "who waits will ask"

    # -- what waits -------------------------------------------------------------------------------

    def frames(self) -> Iterator[WaitingFrame]:
        """Every frame that waits here, without the reasons."""
        for g, _, _, item in self.queue:
            if not isinstance(item, View):
                yield g, item[1], item[2], item[4]

    def waiting(self) -> Iterator[Waiting]:
        """Every frame that waits here, and what for."""
        first = self._first_awaited()
        for g, era, place, item in self.queue:
            if isinstance(item, View):
                continue
            holders = self.groups[g]
            missing = 0 if era < holders.era else holders.lacking(place)[0]
            awaits = (Awaited("copies", g, NOBODY, missing),) if missing else tuple(first)
            yield Waiting(g, item[1], item[2], awaits, item[4])

    def _first_awaited(self) -> Iterable[Awaited]:
        """What holds up a frame that itself may go: the first of the queue."""
        for g, _, _, item in self.queue:
            if not isinstance(item, View):
                return (Awaited("frame", g, item[1], item[2]),)
        return ()
