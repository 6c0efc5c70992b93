"""Load on overlapping groups, inside their members: steady senders, and who got what and when.

Every body says who sent it, its number among the sender's messages to that group, and when it was
due. A delay counts from that moment, also if the sender itself was held up.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from hashlib import sha256
from typing import Any

from ordercast import Message, Receipt
from ordercast.errors import NodeEnded, OrdercastError
from ordercast.runtime.worker import Worker

PATIENCE = 30.0  # for the last messages
_loads: dict[Worker, Load] = {}


class Load:
    """What one member sends and gets."""

    def __init__(self, worker: Worker, per_second: float) -> None:
        self._worker = worker
        self._per_second = per_second
        self._ends = False
        self._changed = asyncio.Event()
        self._waiting: set[asyncio.Task[None]] = set()
        self.sent: Counter[str] = Counter()  # by group
        self.delays: list[tuple[float, float]] = []  # when it was due; until its own delivery
        self.errors: list[str] = []  # all that this program saw
        self.taken: dict[str, list[str]] = {group: [] for group in worker.groups}
        self.moments: dict[str, list[tuple[float, float]]] = {g: [] for g in worker.groups}
        self.reading = asyncio.ensure_future(self._read())
        self.sending = asyncio.ensure_future(self._send())

    # -- sending ----------------------------------------------------------------------------------

    async def _send(self) -> None:
        """To one group after the other, at a steady rate."""
        names = list(self._worker.groups)
        start = time.monotonic()
        number = 0
        while not self._ends:
            due = start + number / self._per_second
            await asyncio.sleep(due - time.monotonic())
            await self._send_one(names[number % len(names)], due)
            number += 1

    async def _send_one(self, group: str, due: float) -> None:
        body = f"{self._worker.node.name} {self.sent[group]} {due!r}".encode()
        try:
            receipt = await self._worker.groups[group].multicast(body)
        except OrdercastError as error:
            self.errors.append(repr(error))
            return
        self.sent[group] += 1
        task = asyncio.ensure_future(self._wait_for(receipt, due))
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)

    async def _wait_for(self, receipt: Receipt, due: float) -> None:
        try:
            await receipt.ordered()
        except OrdercastError as error:
            self.errors.append(repr(error))
        else:
            self.delays.append((due, time.monotonic() - due))

    async def finish(self) -> None:
        """Send no more, and wait until everything sent has its place."""
        self._ends = True
        await self.sending
        if self._waiting:
            _, late = await asyncio.wait(self._waiting, timeout=PATIENCE)
            self.errors += ["a message has no place yet"] * len(late)

    # -- taking -----------------------------------------------------------------------------------

    async def _read(self) -> None:
        try:
            async for batch in self._worker.node.batches():
                self._take(batch)
        except NodeEnded as error:
            self.errors.append(repr(error))

    def _take(self, batch: list[Any]) -> None:
        now = time.monotonic()
        for event in batch:
            if isinstance(event, Message):
                sender, number, due = event.body.decode().split()
                self.taken[event.group].append(f"{sender} {number}")
                self.moments[event.group].append((float(due), now))
        self._changed.set()

    async def has(self, group: str, count: int) -> None:
        """Wait until so many messages of the group were taken."""
        while len(self.taken[group]) < count:
            self._changed.clear()
            await self._changed.wait()


async def begin(worker: Worker, *, per_second: float) -> None:
    """Send and take from now on. The worker was started with `consume=False`."""
    _loads[worker] = Load(worker, per_second)


async def finish(worker: Worker) -> dict[str, Any]:
    """Send no more: what was sent to each group, the delays, and the errors."""
    load = _loads[worker]
    await load.finish()
    return {"sent": load.sent, "delays": load.delays, "errors": load.errors}


async def taken(worker: Worker, *, sent: dict[str, int]) -> dict[str, dict[str, Any]]:
    """By group: what was taken, when all that were sent to it are there, or after a while."""
    load = _loads[worker]
    try:
        async with asyncio.timeout(PATIENCE):
            for group in load.taken:
                await load.has(group, sent[group])
    except TimeoutError:
        load.errors.append("messages are missing")
    return {
        group: {
            "taken": len(names),
            "distinct": len(set(names)),
            "order": sha256("\n".join(names).encode()).hexdigest(),
        }
        for group, names in load.taken.items()
    }


async def first_after(worker: Worker, *, moment: float) -> dict[str, float]:
    """By group: seconds from the moment to the first message taken that was due after it."""
    load = _loads[worker]
    return {
        group: min((at - moment for due, at in seen if due > moment), default=float("inf"))
        for group, seen in load.moments.items()
    }


async def delays_around(
    worker: Worker, *, moment: float, span: float
) -> dict[str, tuple[list[float], list[float]]]:
    """By group: from due to taken here, of what was due in the span before the moment and in the
    span after it."""
    load = _loads[worker]
    return {
        group: (
            [at - due for due, at in seen if moment - span <= due < moment],
            [at - due for due, at in seen if moment <= due < moment + span],
        )
        for group, seen in load.moments.items()
    }
