"""Replicas with state for tests of state transfer, here and in processes of their own.

A process gets at the functions below by `worker.run("replicas:function")`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from hashlib import blake2b
from typing import Any

import ordercast as oc
from ordercast.runtime.control import Control, StateAck
from ordercast.runtime.state_transfer import CHUNK, CHUNKS_UNDER_WAY
from ordercast.runtime.worker import Worker

LARGE = (CHUNKS_UNDER_WAY + 2) * CHUNK  # a state that does not fit under way


class Log:
    """The simplest replica: everything the group delivered, in its order."""

    def __init__(self, node: oc.Node, *, bulk: int = 0) -> None:
        self.node = node
        self.lines: list[str] = []
        self.views: list[oc.View] = []
        self.breaks = False  # when it is to give its state
        self.failures = 0
        self.gets = 0
        self.sets = 0
        self.first: oc.Message | oc.View | None = None
        self.reading: asyncio.Task[None] | None = None
        self.changed = asyncio.Event()
        self._bulk = bulk  # bytes that make the state large

    @property
    def state(self) -> oc.State:
        return oc.State(get=self.get, set=self.set)

    def get(self) -> bytes:
        if self.breaks:
            self.failures += 1
            raise ZeroDivisionError
        self.gets += 1
        return json.dumps(self.lines).encode() + b" " * self._bulk

    def set(self, raw: bytes) -> None:
        self.sets += 1
        self.lines = json.loads(raw)

    def read(self, group: oc.Group | None = None) -> Log:
        """Read the stream of the node, or of the group, from now on, over all outages."""
        self.reading = asyncio.ensure_future(self._read(group or self.node))
        return self

    async def _read(self, stream: oc.Node | oc.Group) -> None:
        while True:
            try:
                async for event in stream:
                    self.take(event)
                return
            except oc.NodeEnded:
                if self.node._state != "running":
                    return
            except oc.GroupClosed:
                return

    def take(self, event: oc.Message | oc.View) -> None:
        self.first = self.first or event
        if isinstance(event, oc.Message):
            self.lines.append(f"{event.sender} {event.body.decode()}")
        else:
            self.views.append(event)
        self.changed.set()

    async def has(self, count: int) -> None:
        await self.until(lambda: len(self.lines) >= count)

    async def until(self, is_so: Callable[[], bool]) -> None:
        while not is_so():
            self.changed.clear()
            await self.changed.wait()


class Stalled:
    """Acknowledgements of states are kept back at a node, so that none comes to its end."""

    def __init__(self, node: oc.Node) -> None:
        self._peers = node._presence.peers
        self._tell = self._peers.tell
        self._kept: list[tuple[int, Control]] = []
        self._changed = asyncio.Event()
        self._peers.tell = self.tell  # type: ignore[method-assign]

    def tell(self, pid: int, message: Control) -> None:
        if isinstance(message, StateAck):
            self._kept.append((pid, message))
            self._changed.set()
        else:
            self._tell(pid, message)

    async def until_full(self) -> None:
        """Wait until the giver may send nothing more."""
        while len(self._kept) < CHUNKS_UNDER_WAY:
            self._changed.clear()
            await self._changed.wait()

    def go_on(self) -> None:
        self._peers.tell = self._tell  # type: ignore[method-assign]
        for pid, message in self._kept:
            self._tell(pid, message)


# -- in a process of its own ----------------------------------------------------------------------


async def join(worker: Worker, **how: Any) -> None:
    log = worker.log = Log(worker.node, bulk=LARGE).read()  # type: ignore[attr-defined]
    worker.groups["log"] = await worker.node.join("log", state=log.state, **how)


async def join_and_stall(worker: Worker, **how: Any) -> None:
    """Join, and keep the state from coming to its end."""
    stalled = worker.stalled = Stalled(worker.node)  # type: ignore[attr-defined]
    worker.joining = asyncio.ensure_future(join(worker, **how))  # type: ignore[attr-defined]
    await stalled.until_full()


async def go_on(worker: Worker) -> None:
    worker.stalled.go_on()  # type: ignore[attr-defined]
    await worker.joining  # type: ignore[attr-defined]


async def send(worker: Worker, *, count: int) -> None:
    for number in range(count):
        await worker.groups["log"].multicast(b"%d" % number)
        await asyncio.sleep(0)


async def replica(worker: Worker, *, count: int) -> dict[str, Any]:
    """What it holds once there are so many lines."""
    log: Log = worker.log  # type: ignore[attr-defined]
    await log.has(count)
    digest = blake2b("\n".join(log.lines).encode()).hexdigest()
    return {"lines": len(log.lines), "digest": digest, "sets": log.sets}
