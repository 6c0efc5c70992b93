"""This node's part in one group: its view, its numbers, its window, its place in the stream."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from time import time_ns
from typing import TYPE_CHECKING, Any

from ordercast.core.events import View as CoreView
from ordercast.core.ids import ProcessId
from ordercast.core.output import Delivery
from ordercast.errors import GroupClosed, MessageTooLarge
from ordercast.runtime.control import GroupEntry
from ordercast.runtime.items import Event, Message, View
from ordercast.runtime.options import MESSAGE_COST
from ordercast.runtime.outbox import Outbox
from ordercast.runtime.receipt import Progress, Receipt
from ordercast.runtime.window import Window
from ordercast.wire.frame import FIXED_SIZE
from ordercast.wire.messages import pack_messages, unpack_messages

if TYPE_CHECKING:
    from ordercast.runtime.inbox import Inbox
    from ordercast.runtime.site import Site

Parcel = tuple["Membership", Delivery | View, int]
"""(whose, what, bytes that it holds in memory)"""


class Membership:
    """One stay in a group, from the join to the leave."""

    def __init__(
        self, site: Site, group: GroupEntry, scope: str | None, outbox: Outbox, first_message: int
    ) -> None:
        self.group = group
        self.scope = scope
        self.me = site.me.pid
        self.directory = site.directory
        self.recorder = site.recorder
        self.inbox = site.inbox  # the node's, until the group gets a stream of its own
        self.outbox = outbox
        self.view: View | None = None  # the last one put into the inbox
        self.closed: BaseException | None = None  # why nothing can be sent any more
        self.progress = Progress(site.is_consumer)
        self.window = Window(site.options.window_bytes, site.options.reply_reserve)
        self.frames_sent = 0
        self.next_message = first_message  # number of the next message; goes on over a rejoin
        self.consumed = 0  # frames taken by the application, not yet told to the stack
        self.pending_frames = 0  # delivered, not taken
        self.pending_bytes = 0  # ... and what they hold
        loop = asyncio.get_running_loop()
        self.installed: asyncio.Future[None] = loop.create_future()  # the first view is here
        self.gone: asyncio.Future[None] = loop.create_future()  # the view without us is here
        self._members: tuple[ProcessId, ...] = ()  # of that view
        self._identities: dict[int, tuple[str, ...]] = {}  # of views not taken yet, for the trace
        self._max_message = site.options.max_message
        self._bodies = site.bodies
        self._taken = site.taken
        self._read_here = site.read_here
        self._multicast = site.engine.multicast

    # -- sending ----------------------------------------------------------------------------------

    async def multicast(self, body: Any) -> Receipt:
        """Wait for room, then put one message into the open frame."""
        raw = body if type(body) is bytes and self._bodies.plain else self._bodies.encode(body)
        if len(raw) > self._max_message:
            raise MessageTooLarge(len(raw), self._max_message)
        cost = len(raw) + MESSAGE_COST
        window, outbox = self.window, self.outbox
        if outbox.filled:
            await self._let_frames_leave()
        if self.closed is None and cost <= window.free and not window.waiters:
            window.free -= cost
        else:
            await self._take_room(cost)
        return outbox.add(self, raw, cost)

    async def multicast_many(self, bodies: Iterable[Any]) -> Receipt:
        """The same for many. All are checked before the first is sent."""
        raws = self._bodies.encode_all(bodies)
        if not raws:
            raise ValueError("multicast_many needs at least one message")
        largest = max(map(len, raws))
        if largest > self._max_message:
            raise MessageTooLarge(largest, self._max_message)
        inbox = self._read_here()
        if inbox is not None:
            return await self._reply_with_many(raws, inbox)
        window, outbox = self.window, self.outbox
        for raw in raws:
            cost = len(raw) + MESSAGE_COST
            if outbox.filled:
                await self._let_frames_leave()
            if self.closed is None and cost <= window.free and not window.waiters:
                window.free -= cost
            else:
                await self._take_room(cost)
            receipt = outbox.add(self, raw, cost)
        return receipt

    async def _reply_with_many(self, raws: list[bytes], inbox: Inbox[Parcel]) -> Receipt:
        """All of them or none: room for all is taken before the first is sent."""
        self.check_open()
        outbox = self.outbox
        unspent = sum(map(len, raws)) + MESSAGE_COST * len(raws)
        # A frame is more than half full, or its neighbour would not have fitted into it.
        frames = min(len(raws), 1 + 2 * unspent // outbox.frame_bytes)
        self.window.overdraw(unspent, frames, len(raws), inbox)
        try:
            for raw in raws:
                if outbox.filled:
                    await self._let_frames_leave()
                    self.check_open()
                cost = len(raw) + MESSAGE_COST
                unspent -= cost
                receipt = outbox.add(self, raw, cost)
        finally:
            if unspent:
                self.window.give_back(unspent)
        return receipt

    async def _take_room(self, cost: int) -> None:
        self.check_open()
        inbox = self._read_here()
        if inbox is not None:
            self.window.overdraw(cost, 1, 1, inbox)
        else:
            await self.window.wait_for(cost)
            self.check_open()

    async def _let_frames_leave(self) -> None:
        # A loop of multicasts that always finds room would never let the event loop write.
        self.outbox.filled = False
        await asyncio.sleep(0)

    def send_frame(self, bodies: list[bytes], size: int) -> None:
        """Number the messages, record them, multicast the frame."""
        if self.closed is not None:
            return
        first = self.next_message
        self.next_message += len(bodies)
        if self.recorder is not None:
            self.recorder.send(self.group.name, first, len(bodies), size, time_ns())
            self.recorder.flush()  # a connection may write before this turn ends
        self._multicast(self.group.gid, pack_messages(first, bodies))

    def check_open(self) -> None:
        """Raise why nothing can be sent."""
        if self.closed is not None:
            raise self.closed.with_traceback(None)

    # -- the stack's side of deliveries -----------------------------------------------------------

    def deliver(self, delivery: Delivery) -> None:
        """The stack delivered a frame."""
        self.pending_frames += 1
        size = len(delivery[4])
        self.pending_bytes += size
        self.inbox.put((self, delivery, size))
        if delivery[1] == self.me:
            ordered = self.progress.ordered
            ordered.reach(ordered.value + 1)

    def install(self, view: CoreView) -> None:
        """The stack installed a view."""
        names = self.directory.names_of
        before = self._members
        self._members = view.members
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
        if self.recorder is not None:
            self._identities[view.number] = self.directory.identities_of(view.members)
        self.inbox.put((self, self.view, 0))
        if self.me in view.members:
            if not self.installed.done():
                self.installed.set_result(None)
        elif not self.gone.done():
            self.gone.set_result(None)

    def stable(self, frames: int) -> None:
        """All members consumed our frames up to this one."""
        self.window.stable_up_to(frames)
        self.progress.stable.reach(frames)

    # -- the application's side of deliveries -----------------------------------------------------

    def hand_over(self, item: Delivery | View, size: int) -> list[Event]:
        """The application takes this now: open it, record it, give its sender credit."""
        if isinstance(item, View):
            self._record_view(item)
            return [item]
        _, sender, _, number, payload = item
        self.pending_frames -= 1
        self.pending_bytes -= size
        if not self.consumed:
            self._taken(self)
        self.consumed += 1
        first, bodies = unpack_messages(payload)
        items = bodies if self._bodies.plain else [self._bodies.decode(raw) for raw in bodies]
        if self.recorder is not None:
            identity = self.directory.identities[sender]
            self.recorder.deliver(
                self.group.name, identity, first, len(bodies), number or -1, FIXED_SIZE, time_ns()
            )
        group, name = self.group.name, self.directory.names[sender]
        return [Message(group, name, item) for item in items]

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
    def all_ordered(self) -> bool:
        """Has everything that was sent in this stay got its place?"""
        return self.progress.ordered.value >= self.frames_sent

    @property
    def over(self) -> bool:
        """Left, all that was sent is ordered, and the application came for everything."""
        untaken = self.pending_frames or self._identities
        return self.closed is not None and self.all_ordered and not untaken

    def take_consumed(self) -> int:
        """Frames taken since the last call."""
        consumed, self.consumed = self.consumed, 0
        return consumed

    # -- the end ----------------------------------------------------------------------------------

    def close(self, reason: BaseException) -> None:
        """Nothing will be sent or delivered any more, and whoever waits is told why."""
        self.closed = reason
        self.window.fail(reason)
        self.progress.fail(reason)
        for future in (self.installed, self.gone):
            if not future.done():
                future.set_exception(reason)
                future.exception()  # nobody need be waiting

    def close_for_senders(self) -> None:
        """`leave` or `aclose` was called: no new messages; those under way still count."""
        self.closed = GroupClosed(f"group {self.group.name!r} was left, or its node closed")
        self.window.fail(self.closed)
