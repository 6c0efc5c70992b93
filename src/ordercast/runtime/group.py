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
    """One stay of a node in a group. Made by `Node.join`; over after `leave`.

    It outlives an outage: a node that comes back is in its groups again, in these very objects.
    """

    def __init__(self, node: Node, member: Membership) -> None:
        self.node = node
        self._seat = member.seat

    @property
    def _member(self) -> Membership:
        """This node in the group, as its newest incarnation was let in."""
        return self._seat.member

    @property
    def name(self) -> str:
        """The name of the group."""
        return self._member.group.name

    @property
    def order(self) -> str:
        """What the group promises."""
        return self._member.group.order

    @property
    def protocol(self) -> str:
        """How the promise is kept."""
        return self._member.group.protocol

    @property
    def members(self) -> tuple[str, ...]:
        """Of the newest view here; the stream tells at which place it begins."""
        view = self._member.view
        return view.members if view is not None else ()

    def multicast(self, body: Any) -> Coroutine[Any, Any, Receipt]:
        """Send to all members, this node included. Waits only for room in the window."""
        return self._seat.member.multicast(body)

    def multicast_many(self, bodies: Iterable[Any]) -> Coroutine[Any, Any, Receipt]:
        """Send many messages, in large frames. The receipt is that of the last."""
        return self._seat.member.multicast_many(bodies)

    def held_back(self) -> list[HeldBack]:
        """What came, or was sent, and waits here: for what, and how long. The oldest first."""
        return list(held_back_of(self._member.presence, self._member.group.gid))

    async def leave(self) -> None:
        """Stop being a member. What was sent before still reaches the others."""
        await self.node._joining.leave(self._member)

    def __aiter__(self) -> AsyncIterator[Event]:
        """The events of this group alone. From now on the node's stream is without them."""
        self._take_own_stream()
        return EventStream(self._seat.inbox)

    def batches(self) -> AsyncIterator[list[Event]]:
        """The same in lists."""
        self._take_own_stream()
        return BatchStream(self._seat.inbox)

    def _take_own_stream(self) -> None:
        check_group_stream(self._member)
        self._member.presence.lifetime.give_own_inbox(self._seat)

    def __repr__(self) -> str:
        return f"<Group {self.name!r}, order {self.order!r} by {self.protocol!r}>"
