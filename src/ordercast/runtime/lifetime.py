"""What of a node outlives its incarnations: its streams, its seats in groups, its outages.

A node that is out comes back as the next incarnation, with a new `Presence`: another process to its
groups, the same node to its application. A `Presence` puts what is delivered into the streams kept
here, and says when it has ended; what becomes of the streams then is decided by its owner.
"""

from __future__ import annotations

import asyncio
import enum
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ordercast.errors import FrameError, GroupClosed, NodeOut, OrdercastError
from ordercast.runtime.inbox import Inbox
from ordercast.runtime.stream_events import Event, View

if TYPE_CHECKING:
    from ordercast.runtime.membership import Membership, Parcel
    from ordercast.runtime.presence import Presence


MAX_FAILURES = 3  # machines of a node that may fail within FAILURES_S; with the next one it ends
FAILURES_S = 600.0


class Outage(enum.Enum):
    """Why a node is not in its groups. Both may hold at once: it may be cut off on its way back."""

    ENDED = "its incarnation has ended, and the next one is not in all groups yet"
    CUT_OFF = "this incarnation hears no majority"


class Seat:
    """A node's place in one group, from the join to the leave, over all incarnations."""

    def __init__(self, member: Membership, inbox: Inbox[Parcel]) -> None:
        self.member = member  # of the newest incarnation that had a view of the group
        self.inbox = inbox  # the node's, until the group gets a stream of its own
        self.left = False


class Lifetime:
    """The part of a node that its Presences share, one after the other."""

    def __init__(self, max_batch: int, ended: Callable[[Presence], None]) -> None:
        """`ended` is called once for every Presence that ends by itself, with its `error` set."""
        self.inbox = self._new_inbox("the node's stream", max_batch)
        self.ended = ended
        self.re_entries = 0  # how often the node came back
        self.machine_failures = 0  # how often its own machine failed
        self._failed_at: list[float] = []  # of late, by the monotonic clock
        self.out_since: float | None = None  # seconds since 1970; None: it is in all its groups
        self._outages: dict[Outage, str] = {}  # ... why it is not, or could not come back so far
        self._is_in = asyncio.Event()  # not out, or not to come back any more
        self._is_in.set()
        self._is_out = asyncio.Event()
        self._max_batch = max_batch
        self._own: list[Inbox[Parcel]] = []  # of groups with a stream of their own

    def facts(self) -> dict[str, Any]:
        """For the status."""
        return {
            "re_entries": self.re_entries,
            "machine_failures": self.machine_failures,
            "out_since": self.out_since,
            "out_reason": self.out_reason,
        }

    def may_outlive_failure(self) -> bool:
        """The machine of this node failed. Another one will do, if not too many did of late."""
        now = time.monotonic()
        self.machine_failures += 1
        self._failed_at = [at for at in self._failed_at if now - at < FAILURES_S] + [now]
        return len(self._failed_at) <= MAX_FAILURES

    # -- outages ----------------------------------------------------------------------------------

    def go_out(self, outage: Outage, error: NodeOut, passed: Callable[[], None]) -> None:
        """The streams raise this in its place and go on; `passed` is called when one has."""
        if self.out_since is None:
            self.out_since = time.time()
        if outage is Outage.ENDED:
            self._outages.clear()
        self._outages[outage] = str(error)
        self._is_in.clear()
        self._is_out.set()
        if error.in_stream:
            for inbox in self.inboxes():
                if not inbox.ended:
                    inbox.interrupt(error, passed)

    def come_back(self, outage: Outage) -> None:
        """This outage is over. The node is in all its groups again, unless another one is not."""
        self._outages.pop(outage, None)
        if not self._outages:
            self.out_since = None
            self._is_in.set()
            self._is_out.clear()

    @property
    def out_reason(self) -> str:
        """Why the node is out, or could not come back so far; empty: it is in all its groups."""
        return next(reversed(self._outages.values()), "")

    def cannot_come_back(self, reason: str) -> None:
        """Note why the next incarnation cannot get in at present."""
        self._outages[Outage.ENDED] = reason

    def cannot_join_again(self, group: str, reason: OrdercastError) -> None:
        """The next incarnation is in the cluster, and not in that group yet."""
        self.cannot_come_back(f"it cannot join {group!r} again yet: {reason}")

    async def wait_until_out(self) -> None:
        """Returns when the node is out."""
        await self._is_out.wait()

    async def wait_until_back(self) -> None:
        """Returns when the node is in all its groups again, or will not come back."""
        await self._is_in.wait()

    @property
    def unread_outages(self) -> int:
        """Outages that some stream has still to tell."""
        return max(inbox.interruptions for inbox in self.inboxes())

    def end(self, error: BaseException | None = None) -> None:
        """Nothing more will come: the streams end after the rest, or raise `error`."""
        self._is_in.set()
        for inbox in self.inboxes():
            inbox.end(error)

    # -- streams ----------------------------------------------------------------------------------

    @staticmethod
    def _new_inbox(name: str, max_batch: int) -> Inbox[Parcel]:
        return Inbox(name, open_parcel, max_batch, begins_batch, is_sign_of_return)

    def inboxes(self) -> Iterator[Inbox[Parcel]]:
        """All streams of this node."""
        yield self.inbox
        yield from self._own

    def give_own_inbox(self, seat: Seat) -> None:
        """The group gets a stream of its own, with what already waits for it."""
        if seat.inbox is not self.inbox:
            return
        group = seat.member.group.name
        if seat.left:
            raise GroupClosed(
                f"group {group!r} was left; what it delivered is in the node's stream"
            )
        own = self._new_inbox(f"the stream of group {group!r}", self._max_batch)
        self._own = [box for box in self._own if box.parcels or not box.ended]
        self._own.append(own)
        self.inbox.split(
            own,
            opened=lambda event: event.group == group,
            packed=lambda parcel: parcel[0].seat is seat,
        )
        seat.inbox = own
        if self.inbox.ended:
            own.end(self.inbox.error)

    def end_stream_of(self, seat: Seat, error: BaseException | None = None) -> None:
        """The group was left: its own stream, if it has one, ends after the rest, or raises."""
        seat.left = True
        if seat.inbox is not self.inbox:
            seat.inbox.end(error)

    def read_here(self) -> Inbox[Parcel] | None:
        """The stream of this node that the running task reads; None if it reads none."""
        task = asyncio.current_task()
        return next((inbox for inbox in self.inboxes() if inbox.consumer is task), None)

    def is_consumer(self) -> bool:
        """Is the running task one that reads a stream of this node?"""
        return self.read_here() is not None


def begins_batch(parcel: Parcel) -> bool:
    """Must the application have handled everything before it?"""
    item = parcel[1]
    return isinstance(item, View) and parcel[0].begins_batch(item)


def is_sign_of_return(parcel: Parcel) -> bool:
    """Does it only tell that an outage is over?"""
    return not isinstance(parcel[1], tuple | View)


def open_parcel(parcel: Parcel) -> list[Event]:
    """The events of a parcel, at the moment when the application comes for it."""
    member, item, size, overhead = parcel
    try:
        return member.hand_over(item, size, overhead)
    except FrameError as reason:
        assert isinstance(item, tuple)
        member.presence.peers.fault(item[1], str(reason))
        return []
