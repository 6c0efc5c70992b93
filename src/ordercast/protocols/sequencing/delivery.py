"""When a member delivers: T1, T2, CT1, CT2, and `needs`.

T1, CT1   a frame is the next of its group
T2, CT2   what its context names was delivered here
needs     enough members hold it, and the earlier frames of its author
a view    all groups that ended in the same change, or before, are delivered to their ends
"""

from __future__ import annotations

from collections import deque
from typing import Protocol

from ordercast.core.changing import Place
from ordercast.core.ids import GroupId
from ordercast.protocols.sequencing.part import Environment, Part
from ordercast.protocols.sequencing.seat import END, Entry, Marker, Seat, Stay


class OwnMember(Protocol):
    """The member at the same process, as its queues see it."""

    def owe(self, g: GroupId, seat: Seat, frames: int) -> None:
        """So many numbers more are to be acknowledged."""

    def stabilized(self, g: GroupId, seat: Seat) -> None:
        """Own frames that all have consumed give the application room."""

    def leave(self, g: GroupId) -> None:
        """The last view of a stay was delivered."""


class OwnSender(Protocol):
    """The sender at the same process, as the queues see it."""

    def placed(self, g: GroupId, n: int, place: Place) -> None:
        """Own frames to g up to n have their places, and a crash does not take them away."""

    def saw(self, h: GroupId, place: Place) -> None:
        """What is sent from now on comes after it."""


class OwnSequencer(Protocol):
    """The sequencer at the same process, as the queues see it."""

    def is_safe(self, h: GroupId, era: int, N: int) -> bool:
        """Does no crash take this number away?"""


class Delivery(Part):
    """The queues of all seats of one process, and which of them wait for which."""

    lent = Part.lent | {"seats", "member", "sender", "sequencer"}

    def __init__(self) -> None:
        self.blocked: dict[GroupId, set[GroupId]] = {}  # groups whose next frame waits for that one
        self.to_try: deque[GroupId] = deque()  # groups whose next frame may wait no more
        self.markers = 0  # in all queues
        self.busy = False  # inside `go_on`

    def connect(
        self,
        env: Environment,
        seats: dict[GroupId, Seat],
        member: OwnMember,
        sender: OwnSender,
        sequencer: OwnSequencer,
    ) -> None:
        """Lend it what it does not own."""
        self.share(env)
        self.seats = seats
        self.member = member
        self.sender = sender
        self.sequencer = sequencer

    def look_at(self, g: GroupId, seat: Seat) -> None:
        """Something of g may be delivered now that could not before."""
        if seat.queue:
            self.to_try.append(g)
        if self.blocked:
            self.release(g)

    def release(self, g: GroupId) -> None:
        """What waited for g is to be tried again."""
        waiting = self.blocked.pop(g, None)
        if waiting:
            self.to_try.extend(sorted(waiting))

    def go_on(self) -> None:
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
        if self.blocked:
            self.release(g)
        if self.markers:
            self.to_try.extend(h for h, s in self.seats.items() if _begins_with_marker(s))
        if seat is not None and seat.stay is Stay.IN and not self.options.driver_consumes:
            self.member.owe(g, seat, delivered)

    # -- the rules --------------------------------------------------------------------------------

    def _may_deliver(self, g: GroupId, seat: Seat, item: Entry | Marker) -> bool:
        """T1, T2, CT1, CT2 in one: it is next in its queue, enough hold it, and what it comes after
        was delivered here."""
        if isinstance(item, Marker):
            return not any(_ends_before(other, item.change) for other in self.seats.values())
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
        if self.views[g].leader == self.me:
            if seat.commit < entry.N:
                return False
            if self.sequencer.is_safe(g, entry.era, entry.N):
                return True
            return not self.resilience.others_needed(self.views[g])
        if seat.commit >= entry.N:
            return True
        if self.resilience.commits_only(g):
            return False
        for h, era, N in entry.needs:
            view, other = self.views.get(h), self.seats.get(h)
            if view is not None and view.era > era:
                continue  # that era is over: everybody holds what is left of it
            if view is None or view.era < era or not _holds(other, N):
                self.blocked.setdefault(h, set()).add(g)
                return False
        return True

    # D_p.G := its place;  causal orders: C_p := merge of C_p, context and its place
    def _deliver(self, g: GroupId, seat: Seat, entry: Entry) -> None:
        seat.at = (entry.era, entry.N)
        if entry.era == seat.era:
            seat.last[entry.origin] = entry.n
        self.out.deliveries.append((g, entry.origin, entry.n, entry.N, entry.payload))
        if self.causal:
            for h, era, N in entry.context:
                self.sender.saw(h, (era, N))
            self.sender.saw(g, seat.at)
        if entry.origin == self.me:
            if seat.stable < entry.N or entry.era != seat.era:
                seat.own.append((entry.N, entry.n))
            self.sender.placed(g, entry.n, seat.at)

    # -- views ------------------------------------------------------------------------------------

    def end_era(self, seat: Seat, marker: Marker) -> None:
        """After all that is in the queue, a view begins."""
        seat.queue.append(marker)
        self.markers += 1

    def _begin_view(self, g: GroupId, seat: Seat, marker: Marker) -> None:
        self.markers -= 1
        seat.at = marker.place
        view = marker.view
        self.out.eras.append((len(self.out.deliveries), view))
        if view.number != seat.number or not marker.inside:  # else only the era is new
            self.out.deliveries.append(view)
        seat.number = view.number
        if not marker.inside and seat.stay is Stay.LEAVING and not seat.queue:
            self.member.leave(g)
        self.member.stabilized(g, seat)
        if seat.stay is Stay.IN and seat.at[0] == seat.era:
            self.member.owe(g, seat, 1)

    def forget_group(self, g: GroupId) -> None:
        """This process has no seat in g any more, whatever is in its queue."""
        seat = self.seats.get(g)
        if seat is not None:
            self.markers -= sum(isinstance(item, Marker) for item in seat.queue)
        self.release(g)

    def check(self) -> None:
        """What must always hold of the queues."""
        markers = sum(isinstance(x, Marker) for s in self.seats.values() for x in s.queue)
        assert markers == self.markers, "all markers are counted"


def _begins_with_marker(seat: Seat) -> bool:
    return bool(seat.queue) and isinstance(seat.queue[0], Marker)


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


def _holds(seat: Seat | None, N: int) -> bool:
    """Does a member have this number of the era in force?"""
    return seat is not None and seat.stay is Stay.IN and seat.got >= N


def _reached(seat: Seat) -> Place:
    """The place of a member for contexts: once all of an era is delivered, any number of it is,
    also one that was lost with a sequencer."""
    at = seat.at
    for item in seat.queue:
        if not isinstance(item, Marker):
            break
        at = (item.place[0] - 1, END)
    return at
