"""Heartbeats, and how the sides of a partition meet again.

A node that was excluded is sought: the coordinator says now and then what its view is. With
`primary` one that hears of a view without it is out. With `merge` the smaller side asks the larger
one whether it may come, and ends its views in order before it does.
"""

from __future__ import annotations

from ordercast.core.ids import ProcessId
from ordercast.errors import PeerError
from ordercast.membership.cluster_headers import (
    NOBODY_SOUGHT,
    Heartbeat,
    Join,
    NodesAck,
    Offer,
    Sighted,
    Welcome,
)
from ordercast.membership.standing import (
    Out,
)
from ordercast.membership.suspicion import Suspicion

SEEK_EVERY = 2  # ticks between two words to nodes that were lost
HOST_TICKS = 8  # so long a side that was offered company stays


class Sides(Suspicion):
    """Who is heard, on this side and beyond."""

    def _send_heartbeats(self) -> None:
        assert self.node_view is not None
        others = tuple(p for p in self.pids if p != self.me)
        if others:
            self._tell(others, self._heartbeat())
        if self.coordinates and self.ticks % SEEK_EVERY == 0:
            self._seek_the_lost()

    def _seek_the_lost(self) -> None:
        for p in self.lost:  # they may live, and wait
            self.tell_out(p)

    def _note_held(self) -> None:
        """At the coordinator: a majority has the view, which so cannot come to nothing."""
        assert self.node_view is not None
        if not self._is_held() and self._ballot().won_by(self.acks):
            self.held = self.node_view.number
            others = tuple(p for p in self.pids if p != self.me)
            if others:
                self._tell(others, NodesAck(self.held))
            self._seek_the_lost()

    def _is_held(self) -> bool:
        """Is it known that a majority has had a view that the last attempt made, or one since?"""
        return self.installed is None or self.held >= self.installed.number

    def tell_out(self, q: ProcessId) -> None:
        """q is not in our view, and may not know it. As long as the view could come to nothing, q
        must stay: its vote would be missed."""
        if self.node_view is None or q in self.pids:
            return
        if self._is_held() or self.cluster_options.partition == "merge":
            self._tell((q,), self._heartbeat(sought=q))

    def _on_heartbeat(self, q: ProcessId, beat: Heartbeat) -> None:
        if beat.sought == NOBODY_SOUGHT:
            self._heard_of_a_view(q, beat)
        elif self.node_view is None or self.retired:
            if beat.sought == self.me:  # it was let in, and given up before it heard of it; or left
                self._leave_for_good(Out(beat.view, q))
        elif self.cluster_options.partition == "primary":
            if beat.sought == self.me and beat.view >= self.node_view.number:
                self._leave_for_good(Out(beat.view, q))
        elif q not in self.pids:
            self._sighted(beat.coordinator, beat.size)
        elif beat.sought == self.me:  # it goes on without us: then we go on without it
            self.detector.told(q)
            self._pursue()

    def _heard_of_a_view(self, q: ProcessId, beat: Heartbeat) -> None:
        """We are in the view of q. Is q in ours?"""
        if self._is_ready_for(q, beat):
            self._install()  # it has begun; the word for it was lost
        view = self.node_view
        if view is None:
            return
        if q not in self.pids:
            if beat.view > view.number and self.blocked is not None:
                self._tell((q,), Join(self.node))  # with those of its view there may be enough
            else:  # we never heard of it, or went on without it
                self.tell_out(q)
        elif q == view.coordinator and not self.stopped:
            if beat.view > view.number:  # its announcement came while we were stopped
                self._tell((q,), Join(self.node))
                return
            counted = beat.confirmed == view.number
            if counted:
                self._count_from_now_on()
            if beat.view == view.number and not self.retired and not (counted and self._is_held()):
                self._tell((q,), NodesAck(view.number))  # our first may have come too early

    def _is_ready_for(self, q: ProcessId, beat: Heartbeat) -> bool:
        ready = None if self.prepared is None else self.prepared.view
        if ready is None or self.cluster_options.partition == "merge":  # numbers of two sides meet
            return False
        if self.node_view is not None and self.node_view.number >= ready.number:
            return False  # it was let in again meanwhile
        same = (beat.view, beat.coordinator) == (ready.number, ready.coordinator)
        return same and q in ready.pids

    # -- two sides meet ---------------------------------------------------------------------------

    def _sighted(self, coordinator: ProcessId, size: int) -> None:
        """The larger side stays; of equal ones that with the older coordinator."""
        if self.cluster_options.partition != "merge":
            raise PeerError("it speaks of another side, where only one may go on")
        if not self.coordinates:
            if self.pids and not self.stopped:
                self._tell((self.pids[0],), Sighted(coordinator, size))
            return
        if (size, -coordinator) < (len(self.pids), -self.me):
            self.tell_out(coordinator)  # it may not know of us
        elif self.ticks >= self.host_until:
            self.offered_to = coordinator
            self._tell((coordinator,), Offer())

    def _on_offer(self, q: ProcessId) -> None:
        if self.coordinates and q not in self.pids:
            self.host_until = self.ticks + HOST_TICKS
            self._tell((q,), Welcome())

    def _on_welcome(self, q: ProcessId) -> None:
        if q != self.offered_to:
            return  # nobody goes over unasked
        self.offered_to = NOBODY_SOUGHT
        if self.coordinates and q not in self.pids and self.ticks >= self.host_until:
            self._end_view(self._alive(), into=q)
