"""Deliveries on their way to the application: taken in order, by one consumer, losing nothing.

Frames lie here packed. They are opened when the application comes for them, many messages at a
time; that is the moment at which they count as delivered and at which their senders get credit.
What was opened and not yet taken stays in `ready`, which belongs to the inbox: a loop that is
cancelled or left with `break` loses nothing, the next one continues there.

An inbox outlives an outage of its node: an interruption lies among the parcels. It is raised once,
in its place, and whoever reads on gets what came after it.

A consumer that always finds something would never suspend, and so would keep the event loop from
its connections and timers. After `TURN_SECONDS` of its work it lets the loop turn once. The measure
is the clock, because nobody knows how long the application computes for one event.
"""

from __future__ import annotations

import asyncio
from asyncio import current_task
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from operator import length_hint
from time import monotonic
from typing import Any, Generic, TypeVar

from ordercast.errors import UsageError
from ordercast.runtime.stream_events import Event

Parcel = TypeVar("Parcel")

TURN_SECONDS = 0.002  # so long a consumer, or a sender, may work before the event loop turns


class Interruption:
    """The place in a stream where the node was out."""

    __slots__ = ("error", "passed")

    def __init__(self, error: BaseException, passed: Callable[[], None]) -> None:
        self.error = error
        self.passed = passed  # to be called when the application has got there


class Inbox(Generic[Parcel]):
    """The parcels of one stream. `unwrap` opens one, at the moment of handing over."""

    def __init__(
        self,
        name: str,
        unwrap: Callable[[Parcel], list[Event]],
        max_batch: int,
        begins_batch: Callable[[Parcel], bool] = lambda _: False,
        ends_interruption: Callable[[Parcel], bool] = lambda _: False,
    ) -> None:
        """A parcel that `begins_batch` is opened when all before it has been handled.

        One that `ends_interruption` says only that the interruption before it is over.
        """
        self.name = name  # how errors call the stream
        self.parcels: deque[Parcel | Interruption] = deque()  # delivered, not opened
        self.ready: Iterator[Event] = iter(())  # opened, not taken
        self.consumer: asyncio.Task[object] | None = None  # the task that asked last
        self.replies = 0  # one for each event of the batch in hand: these may always be sent
        self.error: BaseException | None = None  # raised when everything was taken
        self.ended = False
        self._unwrap = unwrap
        self._max_batch = max_batch
        self._begins_batch = begins_batch
        self._ends_interruption = ends_interruption
        self._errands: list[Callable[[], None]] = []  # for when all that was taken is handled
        self._waiter: asyncio.Future[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None  # spares `current_task` to look for it
        self._batches = 0  # opened so far
        self._left = (-1, -1)  # batches opened and events left of the last one, at the last look
        self.idle_looks = 0  # in a row
        self._turn_at = 0.0  # when the consumer must let the event loop turn

    def put(self, parcel: Parcel) -> None:
        """One more delivery."""
        self.parcels.append(parcel)
        self._wake()

    def when_all_is_handled(self, errand: Callable[[], None]) -> None:
        """Call this when the consumer comes for more, and has so handled all that it took."""
        if self._waiter is not None:
            errand()
        else:
            self._errands.append(errand)

    def has_unread(
        self, *, opened: Callable[[Event], bool], packed: Callable[[Parcel], bool]
    ) -> bool:
        """Is there something of this kind that the consumer has not come for?"""
        events = list(self.ready)
        self.ready = iter(events)
        return any(map(opened, events)) or any(
            packed(parcel) for parcel in self.parcels if not isinstance(parcel, Interruption)
        )

    def interrupt(self, error: BaseException, passed: Callable[[], None]) -> None:
        """Raise this, once, after all that is here. Of several in a row only the last is raised,
        and what tells that one of those was over is dropped with it: a node that is cut off again
        and again while nobody reads keeps nothing of it.
        """
        while self.parcels and self._is_about_interruption(self.parcels[-1]):
            self.parcels.pop()
        self.parcels.append(Interruption(error, passed))
        self._wake()

    def _is_about_interruption(self, parcel: Parcel | Interruption) -> bool:
        return isinstance(parcel, Interruption) or self._ends_interruption(parcel)

    def look(self) -> None:
        """Has the consumer taken something since the last look, if something waits?"""
        left = (self._batches, length_hint(self.ready))
        self.idle_looks = self.idle_looks + 1 if left == self._left and self.parcels else 0
        self._left = left

    @property
    def interruptions(self) -> int:
        """How many the application has not come to."""
        return sum(isinstance(parcel, Interruption) for parcel in self.parcels)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def split(
        self,
        other: Inbox[Parcel],
        *,
        opened: Callable[[Event], bool],
        packed: Callable[[Parcel], bool],
    ) -> None:
        """Give another inbox its part of all that waits here; interruptions are part of both."""
        events, parcels = list(self.ready), list(self.parcels)
        other.ready = iter([event for event in events if opened(event)])
        self.ready = iter([event for event in events if not opened(event)])
        self.parcels.clear()
        for parcel in parcels:
            if isinstance(parcel, Interruption):
                other.interrupt(parcel.error, parcel.passed)
                self.parcels.append(parcel)
            else:
                (other if packed(parcel) else self).parcels.append(parcel)

    def end(self, error: BaseException | None = None) -> None:
        """Nothing more will come: after the rest, the loop ends, or raises `error`."""
        if not self.ended:
            self.ended = True
            self.error = error
            self._wake()

    def next_batch(self) -> Coroutine[Any, Any, list[Event]]:
        """All that is there, at most `max_batch` or one frame; waits if there is nothing."""
        if self._waiter is None:
            self.consumer = current_task(self._loop)
        return self._next_batch()

    def next_event(self) -> Coroutine[Any, Any, Event]:
        """The next one; waits if there is none."""
        # The consumer is noted now, not when the coroutine runs: `wait_for(anext(stream), 1)` runs
        # it in a task of its own, and the replies to what it got come from the task that asked.
        if self._waiter is None:  # otherwise another task is the consumer, and this one is refused
            self.consumer = current_task(self._loop)
        return self._next_event()

    async def _next_event(self) -> Event:
        if monotonic() >= self._turn_at:
            await self._let_loop_turn()
        for event in self.ready:
            return event
        self.ready = iter(await self._opened())
        return next(self.ready)

    async def _next_batch(self) -> list[Event]:
        if monotonic() >= self._turn_at:
            await self._let_loop_turn()
        return list(self.ready) or await self._opened()

    async def _let_loop_turn(self) -> None:
        # Before an event is taken: if this is cancelled, none is lost.
        self._loop = asyncio.get_running_loop()
        await asyncio.sleep(0)
        self._turn_at = monotonic() + TURN_SECONDS

    async def _opened(self) -> list[Event]:
        batch: list[Event] = []
        while not batch:
            self._do_errands()
            if not self.parcels:
                await self._wait()
            batch = self._open()
        return batch

    def _do_errands(self) -> None:
        errands, self._errands = self._errands, []
        for errand in errands:
            errand()

    def _open(self) -> list[Event]:
        parcels = self.parcels
        if isinstance(parcels[0], Interruption):
            raise self._pass(parcels[0])
        batch: list[Event] = []
        while parcels and len(batch) < self._max_batch:
            parcel = parcels[0]
            if isinstance(parcel, Interruption) or (batch and self._begins_batch(parcel)):
                break
            parcels.popleft()
            batch += self._unwrap(parcel)
        self.replies = len(batch)
        self._batches += 1
        return batch

    def _pass(self, interruption: Interruption) -> BaseException:
        self.parcels.popleft()
        interruption.passed()
        return interruption.error.with_traceback(None)

    async def _wait(self) -> None:
        if self._waiter is not None:
            raise UsageError(
                f"{self.name} has a consumer already: two loops would each see half of the "
                "events; read it in one task and pass the events on"
            )
        while not self.parcels:
            if self.ended:
                raise StopAsyncIteration if self.error is None else self.error.with_traceback(None)
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        self._turn_at = monotonic() + TURN_SECONDS


class EventStream(AsyncIterator[Event]):
    """`async for event in ...`: one event at a time."""

    def __init__(self, inbox: Inbox[Parcel]) -> None:
        self._inbox = inbox

    def __anext__(self) -> Coroutine[Any, Any, Event]:
        return self._inbox.next_event()


class BatchStream(AsyncIterator[list[Event]]):
    """`async for batch in ...`: lists of events, for speed."""

    def __init__(self, inbox: Inbox[Parcel]) -> None:
        self._inbox = inbox

    def __anext__(self) -> Coroutine[Any, Any, list[Event]]:
        return self._inbox.next_batch()
