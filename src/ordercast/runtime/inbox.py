"""Deliveries on their way to the application: taken in order, by one consumer, losing nothing.

Frames lie here packed. They are opened when the application comes for them, many messages at a
time; that is the moment at which they count as delivered and at which their senders get credit.
What was opened and not yet taken stays in `ready`, which belongs to the inbox: a loop that is
cancelled or left with `break` loses nothing, the next one continues there.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Generic, TypeVar

from ordercast.errors import UsageError
from ordercast.runtime.items import Event

Parcel = TypeVar("Parcel")


class Inbox(Generic[Parcel]):
    """The parcels of one stream. `unwrap` opens one, at the moment of handing over."""

    def __init__(self, name: str, unwrap: Callable[[Parcel], list[Event]], max_batch: int) -> None:
        self.name = name  # how errors call the stream
        self.parcels: deque[Parcel] = deque()  # delivered, not opened
        self.ready: Iterator[Event] = iter(())  # opened, not taken
        self.consumer: asyncio.Task[object] | None = None  # the task that took last
        self.error: BaseException | None = None  # raised when everything was taken
        self.ended = False
        self._unwrap = unwrap
        self._max_batch = max_batch
        self._waiter: asyncio.Future[None] | None = None

    def put(self, parcel: Parcel) -> None:
        """One more delivery."""
        self.parcels.append(parcel)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def end(self, error: BaseException | None = None) -> None:
        """Nothing more will come: after the rest, the loop ends, or raises `error`."""
        if not self.ended:
            self.ended = True
            self.error = error
            if self._waiter is not None and not self._waiter.done():
                self._waiter.set_result(None)

    @property
    def waiting(self) -> bool:
        """Is a consumer waiting for the next event?"""
        return self._waiter is not None

    async def next_batch(self) -> list[Event]:
        """All that is there, at most `max_batch` or one frame; waits if there is nothing."""
        batch = list(self.ready)
        while not batch:
            if not self.parcels:
                await self._wait()
            batch = self._open()
        return batch

    async def refill(self) -> None:
        """Make `ready` yield something."""
        self.ready = iter(await self.next_batch())

    def _open(self) -> list[Event]:
        self.consumer = asyncio.current_task()
        parcels = self.parcels
        batch = self._unwrap(parcels.popleft())
        while parcels and len(batch) < self._max_batch:
            batch += self._unwrap(parcels.popleft())
        return batch

    async def _wait(self) -> None:
        if self._waiter is not None:
            raise UsageError(
                f"{self.name} has a consumer already: two loops would each see half of the "
                "events; read it in one task and pass the events on"
            )
        while not self.parcels:
            if self.ended:
                raise StopAsyncIteration if self.error is None else self.error.with_traceback(None)
            self.consumer = asyncio.current_task()
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None


class EventStream(AsyncIterator[Event]):
    """`async for event in ...`: one event at a time."""

    def __init__(self, inbox: Inbox[Parcel]) -> None:
        self._inbox = inbox

    async def __anext__(self) -> Event:
        for event in self._inbox.ready:
            return event
        await self._inbox.refill()
        return next(self._inbox.ready)


class BatchStream(AsyncIterator[list[Event]]):
    """`async for batch in ...`: lists of events, for speed."""

    def __init__(self, inbox: Inbox[Parcel]) -> None:
        self._inbox = inbox

    async def __anext__(self) -> list[Event]:
        return await self._inbox.next_batch()
