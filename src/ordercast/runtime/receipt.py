"""What a sender can learn about a message that it sent. It costs nothing until somebody waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from heapq import heapify, heappop, heappush

from ordercast.errors import UsageError


class Mark:
    """A rising count, and the tasks that wait until it reaches a number."""

    def __init__(self) -> None:
        self.value = 0
        self._error: BaseException | None = None
        self._waiters: list[tuple[int, int, asyncio.Future[None]]] = []  # a heap
        self._cancelled = 0  # waiters that gave up, at most
        self._asked = 0  # keeps equal numbers in the order in which they were asked for

    def reach(self, value: int) -> None:
        """The count is now at least `value`."""
        if value > self.value:
            self.value = value
            while self._waiters and self._waiters[0][0] <= value:
                future = heappop(self._waiters)[2]
                if not future.done():
                    future.set_result(None)

    def fail(self, error: BaseException) -> None:
        """The count will not rise any more."""
        self._error = error
        for _, _, future in self._waiters:
            if not future.done():
                future.set_exception(error)
        self._waiters.clear()

    async def wait_for(self, value: int) -> None:
        """Return once the count has reached `value`; raise if it never will."""
        if self.value >= value:
            return
        if self._error is not None:
            raise self._error.with_traceback(None)
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._asked += 1
        heappush(self._waiters, (value, self._asked, future))
        try:
            await future
        except asyncio.CancelledError:
            self._drop_cancelled()
            raise

    def _drop_cancelled(self) -> None:
        # Once half of them are: a loop of receipts with a timeout must not fill the memory.
        self._cancelled += 1
        if 2 * self._cancelled >= len(self._waiters):
            self._waiters = [waiter for waiter in self._waiters if not waiter[2].done()]
            heapify(self._waiters)
            self._cancelled = 0


class Progress:
    """How far the frames of this node have come in one group."""

    def __init__(self, is_consumer: Callable[[], bool]) -> None:
        self.ordered = Mark()  # own frames delivered here
        self.stable = Mark()  # own frames that every member consumed
        self.is_consumer = is_consumer  # is the running task the one that reads the stream?

    def fail(self, error: BaseException) -> None:
        """Nothing more will be ordered."""
        self.ordered.fail(error)
        self.stable.fail(error)


class Receipt:
    """What becomes of a message. All messages of one frame share a receipt."""

    __slots__ = ("_frame", "_progress")

    def __init__(self, progress: Progress, frame: int) -> None:
        self._progress = progress
        self._frame = frame

    async def ordered(self) -> None:
        """Wait until the message has its place in the order of this node's deliveries."""
        await self._progress.ordered.wait_for(self._frame)

    async def stable(self) -> None:
        """Wait until the program of every member has taken the message.

        After a view change this may end before a slow program has taken it: the view change has
        handed it to every member.

        Not from the task that reads the stream: this node is a member too, and would wait for
        itself.
        """
        if self._progress.stable.value < self._frame and self._progress.is_consumer():
            raise UsageError(
                "receipt.stable() in the receiving loop would wait for this very loop to read "
                "on; await it in another task"
            )
        await self._progress.stable.wait_for(self._frame)

    def __repr__(self) -> str:
        progress = self._progress
        stable, ordered = progress.stable.value, progress.ordered.value
        state = "stable" if stable >= self._frame else "ordered" if ordered >= self._frame else ""
        return f"<Receipt of frame {self._frame}, {state or 'under way'}>"
