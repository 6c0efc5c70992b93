"""Faults in TOTAL of JavaGroups: the rules as they are printed in the source (003)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ordercast.core.events import Kept, Receive, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import on
from ordercast.machinery.numbering import Numbered, Numbering
from ordercast.machinery.total_headers import NewView
from ordercast.protocols.javagroups import JavaGroupsTotal


class NeverRepeatsARequest(JavaGroupsTotal):
    """Only what the sequencer broadcasts is asked for again."""

    def repeat_requests(self, g: GroupId) -> None:
        return


class RepeatsWithoutAnId(JavaGroupsTotal):
    """A request without an answer is made again; nothing says that it is a repeat."""

    def repeat_requests(self, g: GroupId) -> None:
        waiting, self.sent.pending = list(self.sent.pending.values()), {}
        for m in waiting:
            self.on_multicast(g, m)


class NumbersRequestsOnArrival(JavaGroupsTotal):
    """The next number goes to whatever comes next; only a repeat is recognised."""

    def number(self, g: GroupId, book: Numbering, frame: Numbered, first: int) -> None:
        came = book.ahead.setdefault(frame.origin, {})
        if frame.n not in came:
            came[frame.n] = frame.payload
            self.enter(g, book, frame)
        elif (N := book.number_of.get((frame.origin, frame.n))) and frame.origin != self.me:
            self.send_again(frame.origin, g, book, N)


class SaysNoStatus(JavaGroupsTotal):
    """An idle sequencer is silent: a lost suffix leaves no gap to see."""

    def send_status(self, p: ProcessId, g: GroupId, book: Numbering) -> None:
        return


class NewViewAsPrinted(JavaGroupsTotal):
    """NEW_VIEW is said once and resets the queue. Until it comes the old expected number counts."""

    def end_view(self, view: View) -> None:
        before = self.queue.first
        super().end_view(view)
        self.queue.first = before

    def begin_to_number(self, view: View) -> None:
        super().begin_to_number(view)
        self.unready.clear()

    @on(NewView)
    def on_NEW_VIEW(self, p: ProcessId, g: GroupId, new: NewView, m: bytes) -> None:
        self.queue.first = 0
        self.queue.arrived.clear()
        super().on_NEW_VIEW(p, g, new, m)


class IgnoresTheViewId(JavaGroupsTotal):
    """Reads a packet of an old view as one of the view in force."""

    def receive(self, packet: Receive) -> None:
        view = self.views.get(packet.group)
        era = packet.era if view is None else view.era
        super().receive(msgspec.structs.replace(packet, era=max(era, packet.era)))


class ClearsTheQueue(JavaGroupsTotal):
    """At a view change the queue is cleared; nobody looks at what the others have."""

    def on_flush(self, g: GroupId, union: Sequence[Kept]) -> None:
        self.queue.arrived.clear()
