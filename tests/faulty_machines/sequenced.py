"""Faults in total order by a sequencer."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ordercast.core.events import Kept, Receive, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.machinery.numbering import Numbered
from ordercast.machinery.sequencer import SequencedProtocol
from ordercast.machinery.sequencer_headers import Delivered
from ordercast.protocols.sequencer_bb import SequencerBB
from ordercast.protocols.sequencer_pb import SequencerPB


def number_on_arrival(
    self: SequencedProtocol, g: GroupId, origin: ProcessId, n: int, m: bytes
) -> None:
    """Give the next number to whatever comes next; only a repeat is recognised."""
    assert self.book is not None
    came = self.book.ahead.setdefault(origin, {})
    if n not in came:
        came[n] = m
        self._enter(g, Numbered(origin, n, m))
    elif (N := self.book.number_of.get((origin, n))) is not None:
        self._resend(origin, g, N)


class NumbersOnArrivalPB(SequencerPB):
    """The slides' sequencer, body through the sequencer."""

    number = number_on_arrival


class NumbersOnArrivalBB(SequencerBB):
    """The slides' sequencer, body from the sender."""

    number = number_on_arrival


class NumbersRepeatsAgain(SequencerPB):
    """Keeps no record of what it numbered."""

    def number(self, g: GroupId, origin: ProcessId, n: int, m: bytes) -> None:
        assert self.book is not None
        if n <= self.book.last.get(origin, 0):
            self._enter(g, Numbered(origin, n, m))
        else:
            super().number(g, origin, n, m)

    def _prune(self, g: GroupId) -> None:  # one frame has several entries: they all stay
        assert self.book is not None
        self.start_timer(g, "status", self.options.status_ms)
        self.learn(g, self.book.N, self.book.stable)


class WithoutFetch(SequencerPB):
    """Waits for a lost number, and asks nobody."""

    def _fetch_missing(self, g: GroupId) -> None:
        return


class WithoutStatus(SequencerPB):
    """An idle sequencer is silent: a lost last number leaves no gap to see."""

    def _send_status(self, p: ProcessId, g: GroupId) -> None:
        return


class RetriesUnderAFreshId(SequencerPB):
    """A frame without an answer is sent again as a new frame."""

    def _repeat_requests(self, g: GroupId) -> None:
        waiting, self.requests = list(self.requests.values()), {}
        for m in waiting:
            self.on_multicast(g, m)


class AcknowledgesTheHighest(SequencerPB):
    """Reports the highest number it received, not the last one it delivered."""

    def acknowledge(self, g: GroupId) -> None:
        if self.book is not None:
            super().acknowledge(g)
            return
        self.acked = self.taken
        self.send(self.leader, g, Delivered(max((self.taken, *self.arrived))))
        self.start_timer(g, "repeat", self.options.retry_ms)


class SequencerWithoutFlush(SequencerPB):
    """Begins the next era without settling the old one."""

    def on_flush(self, g: GroupId, union: Sequence[Kept]) -> None:
        self.arrived.clear()


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
