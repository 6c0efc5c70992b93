"""Stability for protocols without a sequencer: each sender learns who has delivered its frames.

Stable means *delivered by all*, not received by all. A received but held frame that counted as
stable would be forgotten by those who could still supply it. Within a view a frame counts once the
application consumed it. A view change hands what is left to all and calls it stable, also where a
slow application has not taken it yet.

    deliver(m) from q           keep m;  once it is consumed, owe q an acknowledgement
    every few frames, or soon   send Ack(n) to q: all your frames up to n were consumed here
    Ack(n) from p               A[p] := n;  stable := min over members of A
    next frame, or when idle    tell the members `stable`; everybody forgets frames up to it

A group of n members pays one small packet per member and `ack_every` frames, not n integers in
every header. The kept frames are what a flush needs (`unstable`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Sequence

import msgspec

from ordercast.core.events import Kept, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.numbers import NumberSet, SlowestMark
from ordercast.core.protocol import Options, OrderingProtocol, on
from ordercast.errors import PeerError

NOBODY: ProcessId = -1  # stands for the sender of a frame whose era is over


class Ack(msgspec.Struct, frozen=True, array_like=True):
    """To a sender: all your frames up to n were consumed here."""

    n: int


class Stable(msgspec.Struct, frozen=True, array_like=True):
    """To all: everybody consumed my frames up to n. Sent only when no frame carries it."""

    n: int


class AcknowledgedProtocol(OrderingProtocol):
    """A protocol for one group whose senders count acknowledgements."""

    def __init__(self, me: ProcessId, options: Options | None = None) -> None:
        super().__init__(me, options)
        self.S = 0  # frames sent by this process in this era
        self.sent_before = 0  # ... and in the eras before; a flush delivered all of those
        self.A = SlowestMark(())  # how far each member consumed this process's frames
        self.stable: dict[ProcessId, int] = {}  # per sender: frames delivered by all
        self.told = 0  # the last stable mark of our own that the others were told
        self.kept: dict[ProcessId, dict[int, Kept]] = {}  # delivered, not known stable
        self.taken: dict[ProcessId, NumberSet] = {}  # consumed here, per sender
        self.owed: dict[ProcessId, int] = {}  # frames consumed and not acknowledged, per sender
        self.handed: deque[tuple[ProcessId, int]] = deque()  # delivered, not consumed yet
        self.waiting_to_ack = False  # a timer runs
        self.waiting_to_tell = False  # a timer runs

    def on_view(self, view: View) -> None:
        """Numbers begin again with the era. What the old one left, its flush delivered: stable."""
        self.sent_before += self.S
        if self.sent_before:
            self.out.stable.append((view.group, self.sent_before))
        self.S = 0
        stays = self.me in self.A.marks  # else a stay begins: nothing is reported of one before
        if self.me not in view.members:  # our last view: nothing after it is for us
            self.views[view.group] = View(view.group, view.number, (), self.me, view.era)
            self.sent_before = 0  # a later stay counts anew
        self.A = SlowestMark(view.members)
        self.told = 0
        self.stable = dict.fromkeys(view.members, 0)
        self.kept = {q: {} for q in view.members}
        self.taken = {q: NumberSet(self.options.max_held) for q in view.members}
        self.owed = {}
        self.handed = deque((NOBODY, 0) for _ in self.handed if stays)
        self.waiting_to_ack = self.waiting_to_tell = False

    def deliver(
        self, g: GroupId, q: ProcessId, n: int, m: bytes, stamp: tuple[int, ...] = ()
    ) -> None:
        """deliver(m): hand frame n of q to the application, and keep it until it is stable."""
        self.out.deliveries.append((g, q, n, 0, m))
        self.kept[q][n] = Kept(q, n, stamp, m)
        if self.options.driver_consumes:
            self.handed.append((q, n))
        else:
            self._take(g, q, n)

    def on_consumed(self, g: GroupId, frames: int) -> None:
        """The application took these; now they count as delivered here."""
        for _ in range(frames):
            q, n = self.handed.popleft()
            if q != NOBODY:
                self._take(g, q, n)

    def unstable(self, g: GroupId) -> tuple[Kept, ...]:
        """What was delivered here and may be missing elsewhere. Pages with a queue add theirs."""
        return tuple(kept for frames in self.kept.values() for kept in frames.values())

    @abstractmethod
    def mark(self, q: ProcessId) -> int:
        """All frames of q up to this one have come here."""

    def plausible(self, members: tuple[ProcessId, ...], frame: Kept) -> bool:
        """A member judges as it judges packets; a process that only leads looks at the form."""
        q, n = frame.origin, frame.n
        if q not in members or n < 1 or not self.well_stamped(members, frame):
            return False
        if self.me not in members:
            return True
        return n <= (self.S if q == self.me else self.mark(q) + self.options.max_held)

    def well_stamped(self, members: tuple[ProcessId, ...], frame: Kept) -> bool:
        """Does the frame carry what this protocol's order needs?"""
        return not frame.stamp

    def fitting(self, g: GroupId, union: Sequence[Kept]) -> list[Kept]:
        """The union by sender and number, without what some member made up."""
        members = self.views[g].members
        return sorted(frame for frame in union if self.plausible(members, frame))

    def check_member(self, p: ProcessId) -> None:
        """A leader that is no member is a peer in the view, but no sender and no receiver."""
        if p not in self.kept:
            raise PeerError(f"process {p} is not a member of the view")

    def own_stable(self) -> int:
        """Our own stable mark, about to travel in a header: no timer need repeat it."""
        self.told = self.stable[self.me]
        return self.told

    def learn_stable(self, q: ProcessId, n: int) -> None:
        """q says its frames up to n are delivered by all: forget them."""
        self.check_member(q)
        known = self.stable[q]
        if n > known:
            if n > self.taken[q].mark:
                raise PeerError(f"frame {n} is called stable, but was not acknowledged here")
            self.stable[q] = n
            kept = self.kept[q]
            for number in range(known + 1, n + 1):
                kept.pop(number, None)

    @on(Ack)
    def on_ACK(self, p: ProcessId, g: GroupId, ack: Ack, m: bytes) -> None:
        self.check_member(p)
        if ack.n > self.S:
            raise PeerError(f"frame {ack.n} is acknowledged, but only {self.S} were sent")
        self._acknowledged(g, p, ack.n)

    @on(Stable)
    def on_STABLE(self, q: ProcessId, g: GroupId, stable: Stable, m: bytes) -> None:
        self.learn_stable(q, stable.n)

    def on_timer(self, g: GroupId, name: str) -> None:
        """Say what was not said in passing: the acknowledgements owed, the stable mark."""
        if g not in self.member_of:  # it left while the timer ran
            return
        if name == "ack":
            self.waiting_to_ack = False
            for q in list(self.owed):
                self._acknowledge(g, q)
        elif name == "stable":
            self.waiting_to_tell = False
            if self.told < self.stable[self.me]:
                self.b_multicast(g, Stable(self.own_stable()))

    def _take(self, g: GroupId, q: ProcessId, n: int) -> None:
        self.taken[q].add(n)
        if q == self.me:
            self._acknowledged(g, q, self.taken[q].mark)
            return
        self.owed[q] = self.owed.get(q, 0) + 1
        if self.owed[q] >= self.options.ack_every:
            self._acknowledge(g, q)
        elif not self.waiting_to_ack:
            self.waiting_to_ack = True
            self.set_timer(g, "ack", self.options.ack_delay_ms)

    def _acknowledge(self, g: GroupId, q: ProcessId) -> None:
        del self.owed[q]
        self.send(q, g, Ack(self.taken[q].mark))

    def _acknowledged(self, g: GroupId, p: ProcessId, n: int) -> None:
        if self.A.raise_to(p, n):
            self.learn_stable(self.me, self.A.lowest)
            self.out.stable.append((g, self.sent_before + self.A.lowest))
            if not self.waiting_to_tell and self.others[g]:
                self.waiting_to_tell = True
                self.set_timer(g, "stable", self.options.status_ms)
