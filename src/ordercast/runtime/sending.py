"""One node's messages to one group: their numbers, their window, their receipts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from time import time_ns
from typing import TYPE_CHECKING, Any

from ordercast.errors import Dissolved, GroupClosed, MessageTooLarge, NotPrimary
from ordercast.runtime.options import MESSAGE_COST
from ordercast.runtime.outbox import Outbox
from ordercast.runtime.receipt import Progress, Receipt
from ordercast.runtime.window import Window
from ordercast.views.groups import GroupEntry
from ordercast.wire.messages import pack_messages

if TYPE_CHECKING:
    from ordercast.runtime.inbox import Inbox
    from ordercast.runtime.membership import Parcel
    from ordercast.runtime.presence import Presence


class Sending:
    """The sending side of a member and of a guest of a group."""

    def __init__(
        self,
        presence: Presence,
        group: GroupEntry,
        outbox: Outbox,
        first_message: int,
        waits_for_itself: Callable[[], bool],
    ) -> None:
        self.group = group
        self.me = presence.me.pid
        self.recorder = presence.recorder
        self.outbox = outbox
        self.closed: BaseException | None = None  # why nothing can be sent any more
        self.progress = Progress(waits_for_itself)
        self.window = Window(
            presence.options.window_bytes, presence.options.reply_reserve, presence.window
        )
        self.frames_sent = 0
        self.next_message = first_message  # number of the next message; goes on over a rejoin
        loop = asyncio.get_running_loop()
        self.installed: asyncio.Future[None] = loop.create_future()  # we are in
        self.gone: asyncio.Future[None] = loop.create_future()  # ... and out again
        self.mistaken: asyncio.Future[None] = loop.create_future()  # the number is another group's
        self._max_message = presence.options.max_message
        self._bodies = presence.bodies
        self._plain = bytes if presence.bodies.plain else None  # what travels as it is
        self._lifetime = presence.lifetime
        self._read_here = presence.lifetime.read_here
        self._multicast = presence.engine.multicast

    async def multicast(self, body: Any) -> Receipt:
        """Wait for room, then put one message into the open frame."""
        raw = body if type(body) is self._plain else self._bodies.encode(body)
        if len(raw) > self._max_message:
            raise MessageTooLarge(len(raw), self._max_message)
        cost = len(raw) + MESSAGE_COST
        outbox = self.outbox
        frame = outbox.frame
        if (
            frame is not None
            and frame.sender is self
            and frame.cost + cost <= frame.paid
            and self.closed is None
        ):
            frame.bodies.append(raw)
            frame.cost += cost
            return frame.receipt
        if outbox.is_due:
            await self._let_loop_turn()
        if self.closed is None and cost <= self.window.room:
            self.window.take(cost)
        elif (stay := await self._take_room(cost)) is not self:
            return await stay.multicast(body)
        return outbox.add(self, raw, cost)

    async def multicast_many(self, bodies: Iterable[Any]) -> Receipt:
        """Do the same for many messages. All are checked before the first is sent."""
        raws = self._bodies.encode_all(bodies)
        if not raws:
            raise ValueError("multicast_many needs at least one message")
        largest = max(map(len, raws))
        if largest > self._max_message:
            raise MessageTooLarge(largest, self._max_message)
        return await self._send_all(raws)

    async def _send_all(self, raws: list[bytes]) -> Receipt:
        inbox = self._read_here()
        if inbox is not None:
            return await self._reply_with_many(raws, inbox)
        window, outbox = self.window, self.outbox
        for place, raw in enumerate(raws):
            cost = len(raw) + MESSAGE_COST
            if outbox.is_due:
                await self._let_loop_turn()
            if self.closed is None and cost <= window.room:
                window.take(cost)
            elif (stay := await self._take_room(cost)) is not self:
                return await stay._send_all(raws[place:])
            receipt = outbox.add(self, raw, cost)
        return receipt

    async def _reply_with_many(self, raws: list[bytes], inbox: Inbox[Parcel]) -> Receipt:
        """All of them or none: room for all is taken before the first is sent."""
        if (stay := await self._open_stay()) is not self:
            return await stay._send_all(raws)
        outbox = self.outbox
        unspent = sum(map(len, raws)) + MESSAGE_COST * len(raws)
        # A frame is more than half full, or its neighbour would not have fitted into it.
        frames = min(len(raws), 1 + 2 * unspent // outbox.frame_bytes)
        self.window.overdraw(unspent, frames, len(raws), inbox)
        try:
            for raw in raws:
                if outbox.is_due:
                    await self._let_loop_turn()
                    self.check_open()
                cost = len(raw) + MESSAGE_COST
                unspent -= cost
                receipt = outbox.add(self, raw, cost)
        finally:
            if unspent:
                self.window.give_back(unspent)
        return receipt

    async def _take_room(self, cost: int) -> Sending:
        """Room here, when there is some; or the stay after this one, if this one is dissolved."""
        stay = await self._open_stay()
        if stay is self:
            inbox = self._read_here()
            if inbox is not None:
                self.window.overdraw(cost, 1, 1, inbox)
            else:
                with suppress(Dissolved):
                    await self.window.wait_for(cost)
                stay = await self._open_stay()
        return stay

    async def _open_stay(self) -> Sending:
        """This stay if it is open; the one after it if it is dissolved; else raise."""
        if isinstance(self.closed, Dissolved):
            await self._lifetime.wait_until_back()
            return self.successor()
        self.check_open()
        return self

    def successor(self) -> Sending:
        """The stay of the next incarnation. A guest has none: raise."""
        self.check_open()
        return self

    async def _let_loop_turn(self) -> None:
        # A loop of multicasts that always finds room would never let the event loop read or write.
        self.outbox.is_due = False
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

    def check_not_ended(self) -> None:
        """Do the same, unless the reason may pass: a node that is cut off stays in its groups."""
        if self.has_ended:
            self.check_open()

    @property
    def has_ended(self) -> bool:
        """Can nothing be sent any more, for a reason that does not pass?"""
        return self.closed is not None and not isinstance(self.closed, NotPrimary)

    def stable(self, frames: int) -> None:
        """All members consumed our frames up to this one."""
        self.window.stable_up_to(frames)
        self.progress.stable.reach(frames)

    @property
    def all_ordered(self) -> bool:
        """Has everything that was sent in this stay got its place?"""
        return self.progress.ordered.value >= self.frames_sent

    # -- the end ----------------------------------------------------------------------------------

    def close(self, reason: BaseException) -> None:
        """Nothing will be sent or delivered any more, and whoever waits is told why."""
        self.closed = reason
        self.window.close(reason)
        self.progress.fail(reason)
        for future in (self.installed, self.gone):
            if not future.done():
                future.set_exception(reason)
                future.exception()  # nobody need be waiting

    def block(self, reason: NotPrimary) -> None:
        """Nothing can be sent for a while; what is under way may still get its place."""
        if self.closed is None or isinstance(self.closed, NotPrimary):  # others are missing now
            self.closed = reason
            self.window.fail(reason)

    def unblock(self, reason: NotPrimary) -> None:
        """The reason has passed."""
        if self.closed is reason:
            self.closed = None

    def close_for_senders(self, reason: GroupClosed | None = None) -> None:
        """The group is being left: no new messages; those under way still count."""
        left = f"group {self.group.name!r} was left, or its node closed"
        self.closed = reason or GroupClosed(left)
        self.window.fail(self.closed)
