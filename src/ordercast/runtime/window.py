"""How much a node may have under way in one group: the whole of flow control at the sender.

A frame is under way from its first message until every member has consumed it. Messages and
frames have a fixed cost beside their bytes, so that many small ones are bounded too.

Who waits and who does not. A multicast waits for room, first come, first served. A multicast from
the task that reads the stream must not: if every member waited inside its receiving loop, nobody
would consume and no window would ever open. It overdraws the window: up to the reserve as it
likes, and beyond it by one reply to each event that it has in hand.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Protocol

from ordercast.errors import UsageError
from ordercast.runtime.options import FRAME_COST


class Repliable(Protocol):
    """A stream whose consumer may reply."""

    replies: int  # that may be sent whatever the reserve


class Window:
    """Room for the messages of this node in one group."""

    def __init__(self, size: int, reserve: int) -> None:
        self.size = size
        self.reserve = reserve
        self.free = size  # below 0: drawn from the reserve
        self.waits = 0  # multicasts that had to wait
        self._under_way: deque[int] = deque()  # cost of each sealed frame, oldest first
        self._stable = 0  # frames that every member consumed
        self.waiters: deque[tuple[asyncio.Future[None], int]] = deque()  # nobody overtakes them

    async def wait_for(self, cost: int) -> None:
        """Wait for room and take it: the caller owes no further `free -= cost`."""
        self.waits += 1
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.waiters.append((future, cost))
        try:
            await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled() and future.exception() is None:
                self.free += cost  # granted and cancelled in the same turn
            self._grant()  # whoever waits behind may have room now
            raise

    def overdraw(self, cost: int, frames: int, messages: int, inbox: Repliable) -> None:
        """Take room without waiting: of the window, of the reserve, as replies; or not at all."""
        if self.free - cost - frames * FRAME_COST < -self.reserve:
            if inbox.replies < messages:
                raise UsageError(
                    f"the receiving loop has {self.size - self.free} bytes under way and the "
                    f"reserve for its multicasts is used up (window_bytes={self.size}, "
                    f"reply_reserve={self.reserve}); beyond that it may send one message for each "
                    "event it took: read on, or multicast from another task, which waits for room"
                )
            inbox.replies -= messages
        self.free -= cost

    def give_back(self, cost: int) -> None:
        """Room that was taken and not used."""
        self.free += cost
        self._grant()

    def sealed(self, cost: int) -> None:
        """A frame left; its room comes back when it is stable."""
        self._under_way.append(cost)

    def stable_up_to(self, frame: int) -> None:
        """Every member consumed the frames up to this one."""
        while self._stable < frame and self._under_way:
            self._stable += 1
            self.free += self._under_way.popleft()
        self._grant()

    @property
    def frames(self) -> int:
        """Frames under way."""
        return len(self._under_way)

    def fail(self, error: BaseException) -> None:
        """No room will come: everybody who waits gets the error."""
        while self.waiters:
            future, _ = self.waiters.popleft()
            if not future.done():
                future.set_exception(error)

    def _grant(self) -> None:
        while self.waiters:
            future, cost = self.waiters[0]
            if future.done():  # cancelled while it waited
                self.waiters.popleft()
            elif cost <= self.free:
                self.waiters.popleft()
                self.free -= cost
                future.set_result(None)
            else:
                return
