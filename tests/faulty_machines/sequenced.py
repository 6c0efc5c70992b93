"""Faults in total order by a sequencer."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ordercast.core.events import Kept, Receive, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.machinery.numbering import Numbered
from ordercast.machinery.sequencer import Machine, Sequencer
from ordercast.machinery.sequencer_headers import Delivered
from ordercast.protocols.sequencer_bb import SequencerBB
from ordercast.protocols.sequencer_pb import SequencerPB


class NumbersOnArrival(Sequencer):
    """Gives the next number to whatever comes next; only a repeat is recognised."""

    def number(self, machine: Machine, g: GroupId, origin: ProcessId, n: int, m: bytes) -> None:
        came = self.book.ahead.setdefault(origin, {})
        if n not in came:
            came[n] = m
            self.enter(machine, g, Numbered(origin, n, m))
        elif (N := self.book.number_of.get((origin, n))) is not None:
            self.resend(machine, origin, g, N)


class NumbersOnArrivalPB(SequencerPB):
    """The slides' sequencer, body through the sequencer."""

    sequencer_type = NumbersOnArrival


class NumbersOnArrivalBB(SequencerBB):
    """The slides' sequencer, body from the sender."""

    sequencer_type = NumbersOnArrival


class ForgetfulSequencer(Sequencer):
    """Keeps no record of what it numbered."""

    def number(self, machine: Machine, g: GroupId, origin: ProcessId, n: int, m: bytes) -> None:
        if n <= self.book.last.get(origin, 0):
            self.enter(machine, g, Numbered(origin, n, m))
        else:
            super().number(machine, g, origin, n, m)

    def prune(self, machine: Machine, g: GroupId) -> None:  # one frame has several entries
        machine.start_timer(g, "status", self.options.status_ms)
        machine.learn(g, self.book.N, self.book.stable)


class NumbersRepeatsAgain(SequencerPB):
    """A repeat gets a second number."""

    sequencer_type = ForgetfulSequencer


class WithoutFetch(SequencerPB):
    """Waits for a lost number, and asks nobody."""

    def _fetch_missing(self, g: GroupId) -> None:
        return


class SilentSequencer(Sequencer):
    """Says nothing when it is idle."""

    def send_status(self, machine: Machine, p: ProcessId, g: GroupId) -> None:
        return


class WithoutStatus(SequencerPB):
    """An idle sequencer is silent: a lost last number leaves no gap to see."""

    sequencer_type = SilentSequencer


class RetriesUnderAFreshId(SequencerPB):
    """A frame without an answer is sent again as a new frame."""

    def _repeat_requests(self, g: GroupId) -> None:
        waiting, self.sent.pending = list(self.sent.pending.values()), {}
        for m in waiting:
            self.on_multicast(g, m)


class AcknowledgesTheHighest(SequencerPB):
    """Reports the highest number it received, not the last one it delivered."""

    def acknowledge(self, g: GroupId) -> None:
        if self.sequencer is not None:
            super().acknowledge(g)
            return
        queue = self.queue
        queue.acked = queue.taken
        self.send(self.leader, g, Delivered(max((queue.taken, *queue.arrived))))
        self.start_timer(g, "repeat", self.options.retry_ms)


class SequencerWithoutFlush(SequencerPB):
    """Begins the next era without settling the old one."""

    def on_flush(self, g: GroupId, union: Sequence[Kept]) -> None:
        self.queue.arrived.clear()


class ForgetsWhatWasNumbered(SequencerPB):
    """Counts each sender's frames from 1 again in a new era; the senders do not."""

    def _begin_era(self, view: View) -> None:
        self.done.clear()
        super()._begin_era(view)


class SequencerIgnoresEra(SequencerPB):
    """Reads a number of the old era as one of the new era."""

    def receive(self, packet: Receive) -> None:
        view = self.views.get(packet.group)
        era = packet.era if view is None else view.era
        super().receive(msgspec.structs.replace(packet, era=max(era, packet.era)))
