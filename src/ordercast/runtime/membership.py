"""This node as a member of one group: its view, and what is delivered to it."""

from __future__ import annotations

from collections.abc import Callable
from time import time_ns
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from ordercast.core.events import View as CoreView
from ordercast.core.ids import ProcessId
from ordercast.core.output import Delivery
from ordercast.errors import NotPrimary
from ordercast.runtime.lifetime import Seat
from ordercast.runtime.merging import comes_over, merge_of
from ordercast.runtime.outbox import Outbox
from ordercast.runtime.sending import Sending
from ordercast.runtime.stream_events import Event, Merge, Message, View
from ordercast.views.groups import GroupEntry
from ordercast.wire.messages import unpack_messages

if TYPE_CHECKING:
    from ordercast.runtime.inbox import Inbox
    from ordercast.runtime.presence import Presence
    from ordercast.runtime.state import State
    from ordercast.runtime.state_barrier import StateBarrier
    from ordercast.runtime.state_giving import Giver
    from ordercast.runtime.state_overlap import StateOverlap
    from ordercast.runtime.state_seeking import Seeking


class ViewAgain(msgspec.Struct, frozen=True):
    """The view that this node was in when it was cut off, told once more: it is back."""

    view: View


Parcel = tuple["Membership", Delivery | View | ViewAgain, int, int]
"""(whose, what, bytes that it holds in memory, header bytes of the packet that brought it)"""


DISSOLVED = -1  # in place of the number of a view: there is none any more


class Membership(Sending):
    """One stay in a group, from the join to the leave."""

    def __init__(
        self, presence: Presence, group: GroupEntry, scope: str | None, outbox: Outbox,
        first_message: int, barrier: StateBarrier,
    ) -> None:  # fmt: skip
        super().__init__(presence, group, outbox, first_message, presence.lifetime.is_consumer)
        self.presence = presence
        self.scope = scope
        self.seat = Seat(self, presence.lifetime.inbox)  # a new one, unless this node comes back
        self.guest_session: Sending | None = (
            None  # as a guest, just before: not all have what it sent
        )
        self.directory = presence.directory
        self.view: View | None = None  # the last one put into the inbox
        self.consumed = 0  # frames taken by the application, not yet told to the stack
        self.pending_frames = 0  # delivered, not taken
        self.pending_bytes = 0  # ... and what they hold
        self.first_view = 0  # number of the one that let this node in; 0: not in yet
        self.first_members: tuple[ProcessId, ...] = ()  # ... and its members
        self.barrier = barrier  # of its domain
        self.state: State | None = None  # what it was joined with
        self.giver: Giver | None = None  # gives it to others
        self.seeking: Seeking | None = None  # it is on its way here
        self.before_first_view: Callable[[], None] | None = None  # for when it is taken
        self.overlap: StateOverlap | None = None  # what of the stream is in the state
        self.former: tuple[str, ...] = ()  # members of the side from which this node comes over
        self.came_over_by: Merge | None = None  # ... to this one
        self.merges: dict[int, Merge] = {}  # by the views that unite, not taken yet
        self.past: set[str] = set()  # names of all who ever were in it, as far as seen here
        self.muted = False  # the join failed: the application sees nothing of it
        self.cut_off = False  # the application is to be told when this node is back
        self._members: tuple[ProcessId, ...] = ()  # of that view
        self._identities: dict[int, tuple[str, ...]] = {}  # of views not taken yet, for the trace
        self._when_consumed = presence.on_consumed
        self._brought = presence.engine.brought

    @property
    def inbox(self) -> Inbox[Parcel]:
        """Where its deliveries go: the node's stream, or the group's own."""
        return self.seat.inbox

    # -- the stack's side of deliveries -----------------------------------------------------------

    def deliver(self, delivery: Delivery) -> None:
        """The stack delivered a frame."""
        self.pending_frames += 1
        size = len(delivery[4])
        self.pending_bytes += size
        overhead = 0 if self._brought is None else self._brought.overhead(delivery)
        if self.seeking is not None:
            self.seeking.delivered(delivery)
        self.barrier.put((self, delivery, size, overhead))
        if delivery[1] == self.me:
            ordered = self.progress.ordered
            ordered.reach(ordered.value + 1)

    def install(self, view: CoreView) -> None:
        """The stack installed a view."""
        names = self.directory.names_of
        before = self._members
        self._tell_return()
        self._members = view.members
        self.window.pace.share(len(view.members))
        if not before:
            self.first_view, self.first_members = view.number, view.members
        self.view = View(
            self.group.name,
            view.number,
            names(view.members),
            joined=names(p for p in view.members if p not in before)
            if before
            else names((self.me,)),
            left=names(p for p in before if p not in view.members),
            start=view.start,
        )
        merge = merge_of(self, before, view.members)
        if merge is not None:
            self.merges[view.number] = merge
            if comes_over(self, before):
                self.came_over_by = merge
        self.past.update(self.view.members)
        if self.recorder is not None:
            self._identities[view.number] = self.directory.identities_of(view.members)
        if self.giver is not None:
            joined = tuple(p for p in view.members if p not in before and p != self.me)
            self.giver.installed(view.number, joined, view.members)
        if self.seeking is not None:
            self.seeking.installed(view.number)
        if self.seeking is None:
            self.seat.member = self  # before the application learns of the view, and sends
        self.barrier.put((self, self.view, 0, 0))
        if self.me in view.members:
            self._settle_guest_session()
            if not self.installed.done():
                self.installed.set_result(None)
        elif not self.gone.done():
            self.gone.set_result(None)

    def block(self, error: NotPrimary) -> None:
        super().block(error)
        self.cut_off = self.view is not None

    def unblock(self, before: NotPrimary) -> None:
        super().unblock(before)
        self._tell_return()

    def _tell_return(self) -> None:
        """The stream goes on with the view that this node had when it was cut off.

        Not with a change to the next view: that one is the same at all members, which may have
        been cut off or not.
        """
        if self.cut_off and self.view is not None and self.me in self._members:
            again = replace(self.view, joined=self.directory.names_of((self.me,)), left=())
            self.barrier.put((self, ViewAgain(again), 0, 0))
        self.cut_off = False

    def stable(self, frames: int) -> None:
        """All members consumed our frames up to this one; so all that we sent as a guest."""
        super().stable(frames)
        self._settle_guest_session()

    def _settle_guest_session(self) -> None:
        """The first view has handed to all members what this node sent as a guest before it."""
        if self.guest_session is not None:
            self.guest_session.progress.stable.reach(self.guest_session.frames_sent)
            self.guest_session = None

    def close(self, reason: BaseException) -> None:
        super().close(reason)
        if self.guest_session is not None:
            self.guest_session.close(reason)
        if self.giver is not None:
            self.giver.close()
        if self.seeking is not None:
            self.seeking.fail(reason)
            self.mute()

    def successor(self) -> Sending:
        if self.seat.member is self:
            self.check_open()
        return self.seat.member

    # -- the application's side of deliveries -----------------------------------------------------

    def hand_over(self, item: Delivery | View | ViewAgain, size: int, overhead: int) -> list[Event]:
        """The application takes this now: open it, record it, give its sender credit."""
        if isinstance(item, View):
            return self._hand_over_view(item)
        if isinstance(item, ViewAgain):
            return [] if self.muted else [item.view]
        _, sender, _, number, payload = item
        self.pending_frames -= 1
        self.pending_bytes -= size
        if not self.consumed:
            self._when_consumed(self)
        self.consumed += 1
        first, bodies = unpack_messages(payload)
        items = bodies if self._bodies.plain else [self._bodies.decode(raw) for raw in bodies]
        if self.recorder is not None:
            identity = self.directory.identities[sender]
            self.recorder.deliver(
                self.group.name, identity, first, len(bodies), number or -1, overhead, time_ns()
            )
        if self.giver is not None and self.giver.notes:
            self.giver.took(sender, first, len(bodies))
        if self.muted or (self.overlap and self._passes_by(self.overlap, sender, first, bodies)):
            return []
        group, name = self.group.name, self.directory.names[sender]
        return [Message(group, name, item) for item in items]

    def _hand_over_view(self, view: View) -> list[Event]:
        self._record_view(view)
        if view.number == DISSOLVED:
            return []
        merge = self.merges.pop(view.number, None)
        set_state, self.before_first_view = self.before_first_view, None
        if set_state is not None:
            self.muted = True  # if it fails, the state is not that of the stream
            set_state()
            self.muted = False
        if self.giver is not None:
            self.giver.came_to(view.number)
        if self.muted:
            return []
        shown: list[Event] = [] if merge is None else [merge]
        if self.overlap is None:
            return [*shown, view]
        shown += self.overlap.shown(view, self.directory.names[self.me])
        self._end_of_passing(self.overlap)
        return shown

    def _passes_by(
        self, overlap: StateOverlap, sender: ProcessId, first: int, bodies: list[bytes]
    ) -> bool:
        passed = overlap.passes_by(sender, first, len(bodies))
        self._end_of_passing(overlap)
        return passed

    def _end_of_passing(self, overlap: StateOverlap) -> None:
        if overlap.is_over:
            self.overlap = None

    def mute(self) -> None:
        """The join failed: nobody sees what this stay delivers, and nothing waits behind it."""
        self.muted = True
        self.barrier.admit(self)

    def dissolve(self) -> None:
        """The last view of its side has ended in order: a `leave`, in its place in the log."""
        if self.recorder is not None:
            self._identities[DISSOLVED] = ()
        self.barrier.put((self, View(self.group.name, DISSOLVED, ()), 0, 0))

    def begins_batch(self, view: View) -> bool:
        """Must the application have handled all before this view?"""
        if self.before_first_view is not None:
            return True
        return self.giver is not None and self.giver.begins_batch(view.number)

    def record_unconsumed(self, view: View) -> None:
        """The node is closed, and nobody came for this view."""
        self._record_view(view)

    def former_of(self, pid: ProcessId) -> tuple[str, ...]:
        """The side of a partition with which that node came over; mostly empty."""
        node = self.directory.live.get(pid)
        return () if node is None else node.former

    @property
    def place(self) -> int:
        """This node's place in the view; -1 if it is in none."""
        return self._members.index(self.me) if self.me in self._members else -1

    def _record_view(self, view: View) -> None:
        if self.recorder is not None:
            members = self._identities.pop(view.number)
            if self.directory.identities[self.me] in members:
                self.recorder.view(view.group, view.number, members)
            else:
                # Not as a view: to whoever installs it, it promises what is delivered until the
                # next one, and this node may be back in that.
                self.recorder.leave(view.group)

    @property
    def over(self) -> bool:
        """Left, all that was sent is ordered, and the application came for everything."""
        return self.closed is not None and self.all_ordered and not self.unconsumed

    @property
    def unconsumed(self) -> bool:
        """Is there something that the application has not come for, and that is to be recorded?"""
        return bool(self.pending_frames or self._identities)

    def take_consumed(self) -> int:
        """Frames taken since the last call."""
        consumed, self.consumed = self.consumed, 0
        return consumed
