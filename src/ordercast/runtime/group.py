"""A group, as the application sees it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Iterable
from typing import TYPE_CHECKING, Any

from ordercast.runtime.held_back import HeldBack, held_back_of
from ordercast.runtime.inbox import BatchStream, EventStream
from ordercast.runtime.joining import check_group_stream
from ordercast.runtime.membership import Membership
from ordercast.runtime.receipt import Receipt
from ordercast.runtime.stream_events import Event

if TYPE_CHECKING:
    from ordercast.runtime.node import Node


class Group:
    """A node as a member of a group, from `Node.join` to `leave`.

    It outlives an outage: when the node is back in the group, the same object works again.
    """

    def __init__(self, node: Node, member: Membership) -> None:
        self.node = node
        self._seat = member.seat

    @property
    def _member(self) -> Membership:
        """The membership of the newest incarnation that is in the group."""
        return self._seat.member

    @property
    def name(self) -> str:
        """The name of the group."""
        return self._member.group.name

    @property
    def order(self) -> str:
        """The order that the group promises."""
        return self._member.group.order

    @property
    def protocol(self) -> str:
        """The name of the protocol that keeps this order."""
        return self._member.group.protocol

    @property
    def members(self) -> tuple[str, ...]:
        """The members in the newest view, by name. The stream shows where that view begins."""
        view = self._member.view
        return view.members if view is not None else ()

    def multicast(self, body: Any) -> Coroutine[Any, Any, Receipt]:
        """Send to all members, this node included. Waits only for room in the window."""
        return self._seat.member.multicast(body)

    def multicast_many(self, bodies: Iterable[Any]) -> Coroutine[Any, Any, Receipt]:
        """Send many messages, in large frames. The receipt is that of the last one."""
        return self._seat.member.multicast_many(bodies)

    def held_back(self) -> list[HeldBack]:
        """Messages that wait here, with what each waits for and how long; the oldest first."""
        return list(held_back_of(self._member.presence, self._member.group.gid))

    async def leave(self) -> None:
        """Stop being a member. What was sent before still reaches the others."""
        await self.node._joining.leave(self._member)

    def __aiter__(self) -> AsyncIterator[Event]:
        """The events of this group alone, which are no longer in the stream of the node."""
        self._take_own_stream()
        return EventStream(self._seat.inbox)

    def batches(self) -> AsyncIterator[list[Event]]:
        """The same events in lists, for speed."""
        self._take_own_stream()
        return BatchStream(self._seat.inbox)

    def _take_own_stream(self) -> None:
        check_group_stream(self._member)
        self._member.presence.lifetime.give_own_inbox(self._seat)

    def __repr__(self) -> str:
        return f"<Group {self.name!r}, order {self.order!r} by {self.protocol!r}>"
