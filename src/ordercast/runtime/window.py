"""Flow control at the sender: how much a node may have under way.

A frame is under way from its first message until every member has consumed it. Messages and
frames have a fixed cost beside their bytes, so that many small ones are bounded too.

There is a window for each group, and one for all groups of the node together. A message needs room
in both. The first keeps a group with a slow member from taking all room of the node; the second
keeps the memory of the members bounded however many groups there are.

A window that is always full is a queue, and all wait in it, heartbeats and view changes too: they
travel behind data. So a group's window is no larger than what its members consume in half a
second, as far as that can be seen (`Pace`).

Which multicasts wait. A multicast waits for room, first come, first served. A multicast from
the task that reads the stream must not: if every member waited inside its receiving loop, nobody
would consume and no window would ever open. It overdraws the window: up to the reserve as it
likes, and beyond it by one reply to each event that it has in hand. The same reserve holds for the
node's window.
"""

from __future__ import annotations

import asyncio
from collections import deque
from time import monotonic
from typing import Protocol

from ordercast.errors import UsageError
from ordercast.runtime.options import FRAME_COST

FIRST_BYTES = 256 * 1024  # no window is smaller than that at first
LEAST_BYTES = 32 * 1024  # no window gets smaller than that by its pace
TARGET_SECONDS = 0.5  # what is under way should be consumed within this time ...
ROUND_TRIPS = 2  # ... or within so many times the shortest time that was ever seen
PERIOD_SECONDS = 0.1  # over which a rate is measured
FIRST_GROWTH = 1.0  # for each byte that was consumed in time the window grows by so many ...
GROWTH = 1 / 8  # ... once a frame was late


class Pace:
    """How much of a window is used, so that what is under way is consumed soon.

    At first the members of a group share one window, since all may begin at once. A frame is late
    if it took longer than the target. Then the window becomes what was consumed in the last period,
    for as long as the target. Otherwise it grows with what is consumed, up to its size: nothing
    consumed, nothing gained.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.allowed = size
        self._growth = FIRST_GROWTH
        self._shortest = float("inf")  # seconds until a frame was consumed by all
        self._since = 0.0  # when this period began ...
        self._consumed = 0  # ... and the bytes since

    def share(self, members: int) -> None:
        """This many members may send. It matters as long as no time is known."""
        if self._shortest == float("inf"):
            self.allowed = min(max(self.size // max(members, 1), FIRST_BYTES), self.size)

    def begin(self, now: float) -> None:
        """Nothing was under way."""
        self._since, self._consumed = now, 0

    def consumed(self, cost: int, seconds: float, now: float) -> None:
        """So much was consumed by all; the last of it had been under way for these seconds."""
        self._shortest = min(self._shortest, seconds)
        self._consumed += cost
        elapsed = now - self._since
        target = max(TARGET_SECONDS, ROUND_TRIPS * self._shortest)
        if seconds <= target:
            self.allowed = min(int(self.allowed + self._growth * cost) + 1, self.size)
        elif elapsed >= PERIOD_SECONDS:
            least = min(LEAST_BYTES, self.size)
            self.allowed = min(max(int(self._consumed / elapsed * target), least), self.allowed)
            self._growth = GROWTH
        if elapsed >= PERIOD_SECONDS:
            self.begin(now)


class Repliable(Protocol):
    """A stream whose consumer may reply."""

    replies: int  # that may be sent whatever the reserve


class NodeWindow:
    """Room for the messages of this node in all its groups together."""

    def __init__(self, size: int, reserve: int) -> None:
        self.size = size
        self.reserve = reserve
        self.free = size  # below 0: drawn from the reserve
        self.waiting: dict[Window, None] = {}  # groups whose next message may lack room only here

    def queue_up(self, window: Window) -> None:
        """This group has room of its own for a message that waits."""
        self.waiting.setdefault(window)
        self.serve()

    def serve(self) -> None:
        """One message of each group in turn, as long as there is room."""
        while self.waiting:
            window = next(iter(self.waiting))
            cost = window.next_cost()
            if cost > self.free:
                return
            del self.waiting[window]
            if cost:
                window.grant_next()
                if window.next_cost():
                    self.waiting[window] = None


class Window:
    """Room for the messages of this node in one group."""

    def __init__(self, size: int, reserve: int, node: NodeWindow) -> None:
        self.size = size
        self.reserve = reserve
        self.node = node
        self.free = size  # below 0: drawn from the reserve
        self.pace = Pace(size)
        self.waits = 0  # multicasts that had to wait
        self._under_way: deque[tuple[int, float]] = deque()  # sealed frames: cost, when
        self._stable = 0  # frames that every member consumed
        self._closed = False
        self.waiters: deque[tuple[asyncio.Future[None], int]] = deque()  # nobody overtakes them

    @property
    def room(self) -> int:
        """What may be taken at once: nothing if somebody waits. Below 0: the reserve is in use."""
        return 0 if self.waiters or self.node.waiting else min(self.open, self.node.free)

    @property
    def open(self) -> int:
        """Room of the group for messages that may wait: at its pace. One message may always go."""
        if not self._under_way:
            return self.free
        return self.free - self.size + self.pace.allowed

    def take(self, cost: int) -> None:
        """Take room, whether there is some or not."""
        self.free -= cost
        self.node.free -= cost

    async def wait_for(self, cost: int) -> None:
        """Wait for room and take it."""
        self.waits += 1
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.waiters.append((future, cost))
        self._grant()  # perhaps only the node's room was lacking, or somebody else was before
        try:
            await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled() and future.exception() is None:
                self._free(cost)  # granted and cancelled in the same turn
            self._grant()  # whoever waits behind may have room now
            raise

    def overdraw(self, cost: int, frames: int, messages: int, inbox: Repliable) -> None:
        """Take room without waiting: of the window, of the reserve, as replies; or not at all."""
        needed = cost + frames * FRAME_COST
        for limit, name in ((self, "window_bytes"), (self.node, "node_window_bytes")):
            if limit.free - needed < -limit.reserve:
                if inbox.replies < messages:
                    raise UsageError(
                        f"the receiving loop has {limit.size - limit.free} bytes under way and the "
                        f"reserve for its multicasts is used up ({name}={limit.size}, "
                        f"reply_reserve={limit.reserve}); beyond that it may send one message for "
                        "each event it took: read on, or multicast from another task, which waits "
                        "for room"
                    )
                inbox.replies -= messages
                break
        self.take(cost)

    def give_back(self, cost: int) -> None:
        """Room that was taken and not used."""
        self._free(cost)
        self._grant()

    def sealed(self, cost: int) -> None:
        """A frame left; its room comes back when it is stable."""
        now = monotonic()
        if not self._under_way:
            self.pace.begin(now)
        self._under_way.append((cost, now))

    def stable_up_to(self, frame: int) -> None:
        """Every member consumed the frames up to this one."""
        freed, sealed_at = 0, 0.0
        while self._stable < frame and self._under_way:
            self._stable += 1
            cost, sealed_at = self._under_way.popleft()
            freed += cost
        if freed:
            now = monotonic()
            self.pace.consumed(freed, now - sealed_at, now)
            self._free(freed)
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
        self.node.serve()  # the next may be of another group

    def close(self, error: BaseException) -> None:
        """The same, and nothing is under way any more: the other groups get this one's room."""
        if not self._closed:
            self._closed = True
            self.node.free += self.size - self.free
        self.fail(error)

    def next_cost(self) -> int:
        """Of the first message that waits, if this group has room for it; else 0."""
        while self.waiters and self.waiters[0][0].done():  # cancelled while it waited
            self.waiters.popleft()
        if not self.waiters or self.waiters[0][1] > self.open:
            return 0
        return self.waiters[0][1]

    def grant_next(self) -> None:
        """The first message that waits gets its room."""
        future, cost = self.waiters.popleft()
        self.take(cost)
        future.set_result(None)

    def _grant(self) -> None:
        if self.next_cost():
            self.node.queue_up(self)
        else:
            self.node.serve()

    def _free(self, cost: int) -> None:
        self.free += cost
        if not self._closed:
            self.node.free += cost
