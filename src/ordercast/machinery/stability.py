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
every header. The kept frames are what a flush needs (`Stability.unstable`).

A protocol has one `Stability` for each of its groups, and a new one for each view.
"""

from __future__ import annotations

from collections import deque

import msgspec

from ordercast.core.events import Kept, View
from ordercast.core.ids import ProcessId
from ordercast.core.numbers import NumberSet, SlowestMark
from ordercast.core.state import PlainState
from ordercast.core.waiting import NOBODY
from ordercast.errors import PeerError
from ordercast.machinery.parts import Verbs


class Ack(msgspec.Struct, frozen=True, array_like=True):
    """To a sender: all your frames up to n were consumed here."""

    n: int


class Stable(msgspec.Struct, frozen=True, array_like=True):
    """To all: everybody consumed my frames up to n. Sent only when no frame carries it."""

    n: int


class Stability(PlainState):
    """What one process knows of one group since its era began."""

    def __init__(self, view: View, me: ProcessId, limit: int) -> None:
        self.group = view.group
        self.me = me
        self.listens = me in view.members  # else a guest, or one that has left
        self.sends = me in view.senders
        self.limit = limit  # how far above what has come a number may lie
        self.S = 0  # frames sent by this process in this era
        self.sent_before = 0  # ... and in the eras before; a flush delivered all of those
        self.A = SlowestMark(view.members)  # how far each member consumed this process's frames
        self.stable = dict.fromkeys(view.senders, 0)  # per sender: frames delivered by all
        self.told = 0  # the last stable mark of our own that the others were told
        self.kept: dict[ProcessId, dict[int, Kept]] = {q: {} for q in view.senders}  # not stable
        self.taken = {q: NumberSet(limit) for q in view.senders}  # consumed here, per sender
        self.owed: dict[ProcessId, int] = {}  # frames consumed and not acknowledged, per sender
        self.handed: deque[tuple[ProcessId, int]] = deque()  # delivered, not consumed yet
        self.waiting_to_ack = False  # a timer runs
        self.waiting_to_tell = False  # a timer runs

    def follow(self, machine: Verbs, before: Stability | None) -> None:
        """Numbers begin again with the era. What the old one left, its flush delivered: stable."""
        if before is None or not before.sends:
            return
        sent = before.sent_before + before.S
        if sent:
            machine.out.stable.append((self.group, sent))
        if self.sends:  # the stay goes on; a later one counts anew
            self.sent_before = sent
            self.handed = deque((NOBODY, 0) for _ in before.handed)

    # -- sending ----------------------------------------------------------------------------------

    def next_number(self) -> int:
        """The number of a new frame of ours: the first is 1."""
        self.S += 1
        return self.S

    def own_stable(self) -> int:
        """Our own stable mark, about to travel in a header: no timer need repeat it."""
        self.told = self.stable[self.me]
        return self.told

    # -- delivering -------------------------------------------------------------------------------

    def deliver(
        self, machine: Verbs, q: ProcessId, n: int, m: bytes, stamp: tuple[int, ...]
    ) -> None:
        """deliver(m): hand frame n of q to the application, and keep it until it is stable."""
        if not self.listens and q != self.me:
            raise PeerError(f"frame {n} of process {q} came to a node that is no member")
        self.kept[q][n] = Kept(q, n, stamp, m)
        if not self.listens:  # our own frame to a group in which we are a guest
            self._sent_as_guest(machine, n)
            return
        machine.out.deliveries.append((self.group, q, n, 0, m))
        if machine.options.driver_consumes:
            self.handed.append((q, n))
        else:
            self.take(machine, q, n)

    def _sent_as_guest(self, machine: Verbs, n: int) -> None:
        machine.out.ordered.append((self.group, self.sent_before + n))
        if not self.A.marks:  # nobody is there who could deliver it
            self.kept[self.me].clear()
            machine.out.stable.append((self.group, self.sent_before + n))

    def on_consumed(self, machine: Verbs, frames: int) -> None:
        """The application took these; now they count as delivered here."""
        if self.sends:  # else its last view has made all of it stable
            for _ in range(frames):
                q, n = self.handed.popleft()
                if q != NOBODY:
                    self.take(machine, q, n)

    def take(self, machine: Verbs, q: ProcessId, n: int) -> None:
        """Frame n of q was consumed here: owe q an acknowledgement."""
        self.taken[q].add(n)
        if q == self.me:
            self._acknowledged(machine, q, self.taken[q].mark)
            return
        self.owed[q] = self.owed.get(q, 0) + 1
        if self.owed[q] >= machine.options.ack_every:
            self._acknowledge(machine, q)
        elif not self.waiting_to_ack:
            self.waiting_to_ack = True
            machine.set_timer(self.group, "ack", machine.options.ack_delay_ms)

    def _acknowledge(self, machine: Verbs, q: ProcessId) -> None:
        del self.owed[q]
        machine.send(q, self.group, Ack(self.taken[q].mark))

    # -- what is kept -----------------------------------------------------------------------------

    def unstable(self) -> list[Kept]:
        """What was delivered here and may be missing elsewhere."""
        return [frame for frames in self.kept.values() for frame in frames.values()]

    def body(self, q: ProcessId, n: int) -> bytes | None:
        """Of frame n of q, if it is kept."""
        frame = self.kept[q].get(n)
        return None if frame is None else frame.payload

    def kept_frames(self) -> int:
        """How many those are."""
        return sum(map(len, self.kept.values()))

    def has_delivered(self, q: ProcessId, n: int) -> bool:
        """What was delivered here is kept until it is stable."""
        return q in self.kept and (n <= self.stable[q] or n in self.kept[q])

    def may_exist(self, q: ProcessId, n: int, mark: int) -> bool:
        """Can q have sent frame n, if all its frames up to the mark have come here?"""
        return n <= (self.S if q == self.me else mark + self.limit)

    # -- what others say --------------------------------------------------------------------------

    def check_sender(self, p: ProcessId) -> None:
        """A leader that is no member is a peer in the view, but no sender and no receiver."""
        if p not in self.kept:
            raise PeerError(f"process {p} is not a member of the view")

    def learn_stable(self, q: ProcessId, n: int) -> None:
        """q says its frames up to n are delivered by all: forget them."""
        known = self.stable.get(q)
        if known is None:
            self.check_sender(q)
        elif n > known:
            if self.listens and n > self.taken[q].mark:
                raise PeerError(f"frame {n} is called stable, but was not acknowledged here")
            self.stable[q] = n
            kept = self.kept[q]
            for number in range(known + 1, n + 1) if self.listens or q == self.me else ():
                kept.pop(number, None)

    def on_ack(self, machine: Verbs, p: ProcessId, n: int) -> None:
        """A[p] := n;  stable := min over members of A"""
        self.check_sender(p)
        if n > self.S:
            raise PeerError(f"frame {n} is acknowledged, but only {self.S} were sent")
        self._acknowledged(machine, p, n)

    def _acknowledged(self, machine: Verbs, p: ProcessId, n: int) -> None:
        if self.A.raise_to(p, n):
            self.learn_stable(self.me, self.A.lowest)
            machine.out.stable.append((self.group, self.sent_before + self.A.lowest))
            if not self.waiting_to_tell and machine.others[self.group]:
                self.waiting_to_tell = True
                machine.set_timer(self.group, "stable", machine.options.status_ms)

    def on_timer(self, machine: Verbs, name: str) -> None:
        """Say what was not said in passing: the acknowledgements owed, the stable mark."""
        if not self.sends:  # this process left while the timer ran
            return
        if name == "ack":
            self.waiting_to_ack = False
            for q in list(self.owed):
                self._acknowledge(machine, q)
        elif name == "stable":
            self.waiting_to_tell = False
            if self.told < self.stable[self.me]:
                machine.b_multicast(self.group, Stable(self.own_stable()))

    # -- what must always hold --------------------------------------------------------------------

    def invariants(self) -> None:
        """Of a process that sends in this view."""
        if not self.sends:
            return
        self.A.invariants()
        self._invariants_of_own_frames()
        for q, kept in self.kept.items():
            stable, mark = self.stable[q], self.taken[q].mark
            if kept:
                assert min(kept) > stable, "what is stable is forgotten"
                assert all(f.n == n for n, f in kept.items()), "a number has one frame"
            if self.listens:
                assert stable <= mark, "only what was consumed here is stable"
                lacking = range(stable + 1, mark + 1)
                assert kept.keys() >= {*lacking}, "what some member may lack is kept"
        for q, owed in self.owed.items():
            taken = self.taken[q]
            assert owed <= taken.mark + len(taken.early), "only what was consumed is acknowledged"
        waiting = ((q, n) for q, n in self.handed if q != NOBODY)
        assert all(n in self.kept[q] for q, n in waiting), "what is not consumed yet is kept"

    def _invariants_of_own_frames(self) -> None:
        stable = self.stable[self.me]
        assert self.told <= stable <= self.S, "told <= stable <= sent"
        if self.A.marks:
            assert stable == self.A.lowest, "stable is what all members have consumed"
            assert max(self.A.marks.values()) <= self.S, "only what was sent is acknowledged"
        assert max(self.kept[self.me], default=0) <= self.S, "only what was sent is kept"
