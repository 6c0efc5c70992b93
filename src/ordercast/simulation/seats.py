"""What the driver keeps for each process and each of its groups."""

from __future__ import annotations

from collections import deque

from ordercast.core.events import View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import OrderingProtocol


class Seat:
    """A process's place in one group."""

    __slots__ = (
        "before", "guest", "in_view", "opened", "sent", "stable", "unconsumed", "waiting",
    )  # fmt: skip

    def __init__(self) -> None:
        self.opened = False  # the machine knows the group
        self.in_view = False  # a member
        self.guest = False  # not a member, but may send
        self.sent = 0  # messages handed to the machine; also the number of the last one
        self.before = 0  # how many of them before this stay, or visit, began
        self.stable = 0  # how many of them all members have delivered
        self.unconsumed = 0  # deliveries that the application has not taken yet
        self.waiting: deque[int] = deque()  # depths of messages that wait for a view or for room

    @property
    def may_send(self) -> bool:
        """As a member, or as a guest."""
        return self.in_view or self.guest

    def stands(self, *, member: bool, guest: bool) -> None:
        """It is a member from now on, a guest, or neither."""
        if (member or guest) and not self.may_send:
            self.before = self.sent
        self.in_view, self.guest = member, guest

    def are_stable(self, frames: int) -> None:
        """So many messages of this stay, or visit, are stable: its machine counts from there."""
        self.stable = self.before + frames

    def room(self, window: int | None) -> int:
        """How many more messages may be handed over now."""
        if not self.may_send:
            return 0
        waiting = len(self.waiting)
        return waiting + 1 if window is None else window - (self.sent - self.stable)


class Roster:
    """A group of the run: its protocol, who led it last, the newest view anybody installed."""

    __slots__ = ("guests", "leader", "members", "protocol", "view")

    def __init__(
        self,
        protocol: type[OrderingProtocol],
        members: tuple[ProcessId, ...],
        leader: ProcessId,
        *,
        guests: tuple[ProcessId, ...] = (),
    ) -> None:
        self.protocol = protocol
        self.members = members  # at the start
        self.guests = guests  # at the start
        self.leader = leader
        self.view: View | None = None

    def first_view(self, g: GroupId) -> View:
        """What all of them start with."""
        return View(g, 1, self.members, self.leader, guests=self.guests)

    def note_view(self, view: View) -> None:
        """Somebody installed this view."""
        if self.view is None or view.number > self.view.number:
            self.view = view
            self.leader = view.leader
