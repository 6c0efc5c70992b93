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
from collections.abc import Sequence

import msgspec

from ordercast.core.events import Kept, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import Options, OrderingProtocol, on
from ordercast.core.waiting import NOBODY, Holdings
from ordercast.errors import PeerError
from ordercast.machinery.stability import Stability


class Ack(msgspec.Struct, frozen=True, array_like=True):
    """To a sender: all your frames up to n were consumed here."""

    n: int


class Stable(msgspec.Struct, frozen=True, array_like=True):
    """To all: everybody consumed my frames up to n. Sent only when no frame carries it."""

    n: int


class AcknowledgedProtocol(OrderingProtocol):
    """A protocol whose senders count acknowledgements, in each of its groups."""

    def __init__(self, me: ProcessId, options: Options | None = None) -> None:
        super().__init__(me, options)
        self.stability: dict[GroupId, Stability] = {}

    def on_view(self, view: View) -> None:
        """Numbers begin again with the era. What the old one left, its flush delivered: stable."""
        g = view.group
        record = Stability(view, self.options.max_held)
        before = self.stability.get(g)
        if before is not None and self.me in before.kept:
            if sent := before.sent_before + before.S:
                self.out.stable.append((g, sent))
            if self.me in view.senders:  # the stay goes on; a later one counts anew
                record.after(before)
        if self.me not in view.senders:  # our last view: nothing after it is for us
            self.views[g] = View(g, view.number, (), self.me, view.era)
        self.stability[g] = record

    def next_number(self, g: GroupId) -> int:
        """The number of a new frame of ours in g: the first is 1."""
        record = self.stability[g]
        record.S += 1
        return record.S

    def deliver(
        self, g: GroupId, q: ProcessId, n: int, m: bytes, stamp: tuple[int, ...] = ()
    ) -> None:
        """deliver(m): hand frame n of q to the application, and keep it until it is stable."""
        record = self.stability[g]
        record.kept[q][n] = Kept(q, n, stamp, m)
        if g not in self.member_of:  # our own frame to a group in which we are a guest
            self._sent_as_guest(g, record, n)
            return
        self.out.deliveries.append((g, q, n, 0, m))
        if self.options.driver_consumes:
            record.handed.append((q, n))
        else:
            self._take(g, record, q, n)

    def _sent_as_guest(self, g: GroupId, record: Stability, n: int) -> None:
        self.out.ordered.append((g, record.sent_before + n))
        if not record.A.marks:  # nobody is there who could deliver it
            record.kept[self.me].clear()
            self.out.stable.append((g, record.sent_before + n))

    def on_consumed(self, g: GroupId, frames: int) -> None:
        """The application took these; now they count as delivered here."""
        record = self.stability.get(g)
        if record is None or self.me not in record.kept:  # its last view has made all of it stable
            return
        for _ in range(frames):
            q, n = record.handed.popleft()
            if q != NOBODY:
                self._take(g, record, q, n)

    def unstable(self, g: GroupId) -> tuple[Kept, ...]:
        """What was delivered here and may be missing elsewhere. Pages with a queue add theirs."""
        kept = self.stability[g].kept
        return tuple(frame for frames in kept.values() for frame in frames.values())

    def has_delivered(self, g: GroupId, q: ProcessId, n: int) -> bool:
        """What was delivered here is kept until it is stable."""
        record = self.stability.get(g)
        return (
            record is not None
            and q in record.kept
            and (n <= record.stable[q] or n in record.kept[q])
        )

    def holdings(self, g: GroupId) -> Holdings:
        if g not in self.stability:
            return Holdings(0, 0)
        kept = sum(map(len, self.stability[g].kept.values()))
        return Holdings(len(self.unstable(g)) - kept, kept)

    @abstractmethod
    def mark(self, g: GroupId, q: ProcessId) -> int:
        """All frames of q up to this one have come here."""

    def plausible(self, g: GroupId, senders: tuple[ProcessId, ...], frame: Kept) -> bool:
        """A member judges as it judges packets; a process that only leads looks at the form."""
        q, n = frame.origin, frame.n
        if q not in senders or n < 1 or not self.well_stamped(g, senders, frame):
            return False
        if self.me not in senders:
            return True
        if q == self.me:
            return n <= self.stability[g].S
        return n <= self.mark(g, q) + self.options.max_held

    def well_stamped(self, g: GroupId, senders: tuple[ProcessId, ...], frame: Kept) -> bool:
        """Does the frame carry what this protocol's order needs?"""
        return not frame.stamp

    def fitting(self, g: GroupId, union: Sequence[Kept]) -> list[Kept]:
        """The union by sender and number, without what some member made up."""
        senders = self.views[g].senders
        return sorted(frame for frame in union if self.plausible(g, senders, frame))

    def check_sender(self, g: GroupId, p: ProcessId) -> None:
        """A leader that is no member is a peer in the view, but no sender and no receiver."""
        if p not in self.stability[g].kept:
            raise PeerError(f"process {p} is not a member of the view")

    def own_stable(self, g: GroupId) -> int:
        """Our own stable mark, about to travel in a header: no timer need repeat it."""
        record = self.stability[g]
        record.told = record.stable[self.me]
        return record.told

    def learn_stable(self, g: GroupId, q: ProcessId, n: int) -> None:
        """q says its frames up to n are delivered by all: forget them."""
        record = self.stability[g]
        known = record.stable.get(q)
        if known is None:
            self.check_sender(g, q)
        elif n > known:
            listens = g in self.member_of
            if listens and n > record.taken[q].mark:
                raise PeerError(f"frame {n} is called stable, but was not acknowledged here")
            record.stable[q] = n
            kept = record.kept[q]
            for number in range(known + 1, n + 1) if listens or q == self.me else ():
                kept.pop(number, None)

    @on(Ack)
    def on_ACK(self, p: ProcessId, g: GroupId, ack: Ack, m: bytes) -> None:
        self.check_sender(g, p)
        record = self.stability[g]
        if ack.n > record.S:
            raise PeerError(f"frame {ack.n} is acknowledged, but only {record.S} were sent")
        self._acknowledged(g, record, p, ack.n)

    @on(Stable)
    def on_STABLE(self, q: ProcessId, g: GroupId, stable: Stable, m: bytes) -> None:
        self.learn_stable(g, q, stable.n)

    def on_timer(self, g: GroupId, name: str) -> None:
        """Say what was not said in passing: the acknowledgements owed, the stable mark."""
        record = self.stability.get(g)
        if record is None or self.me not in record.kept:  # it left while the timer ran
            return
        if name == "ack":
            record.waiting_to_ack = False
            for q in list(record.owed):
                self._acknowledge(g, record, q)
        elif name == "stable":
            record.waiting_to_tell = False
            if record.told < record.stable[self.me]:
                self.b_multicast(g, Stable(self.own_stable(g)))

    def _take(self, g: GroupId, record: Stability, q: ProcessId, n: int) -> None:
        record.taken[q].add(n)
        if q == self.me:
            self._acknowledged(g, record, q, record.taken[q].mark)
            return
        record.owed[q] = record.owed.get(q, 0) + 1
        if record.owed[q] >= self.options.ack_every:
            self._acknowledge(g, record, q)
        elif not record.waiting_to_ack:
            record.waiting_to_ack = True
            self.set_timer(g, "ack", self.options.ack_delay_ms)

    def _acknowledge(self, g: GroupId, record: Stability, q: ProcessId) -> None:
        del record.owed[q]
        self.send(q, g, Ack(record.taken[q].mark))

    def _acknowledged(self, g: GroupId, record: Stability, p: ProcessId, n: int) -> None:
        if record.A.raise_to(p, n):
            self.learn_stable(g, self.me, record.A.lowest)
            self.out.stable.append((g, record.sent_before + record.A.lowest))
            if not record.waiting_to_tell and self.others[g]:
                record.waiting_to_tell = True
                self.set_timer(g, "stable", self.options.status_ms)
