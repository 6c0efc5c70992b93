"""One node in a process of its own, told what to do over a pipe.

Start it as `python -m ordercast.runtime.worker`.

Commands come as JSON lines on standard input, {"id": 1, "do": "join", ...}; each is answered by a
line {"id": 1, "result": ...} or {"id": 1, "kind": "ValueError", "error": "..."} on standard output.
When the input ends, because whoever started this process is gone, the worker ends too.

A workload of one's own: {"do": "run", "call": "package.module:function", "args": {...}} awaits
`function(worker, **args)` and answers with what it returns.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any

import msgspec

from ordercast.errors import NodeEnded, NodeOut
from ordercast.runtime.group import Group
from ordercast.runtime.node import Node
from ordercast.runtime.stream_events import Message, View

MAX_LINE = 64 * 1024 * 1024


class Command(msgspec.Struct, frozen=True):
    """One line of input."""

    id: int
    do: str
    args: dict[str, Any] = {}


class Worker:
    """A node, its groups, and what it has delivered. Workloads get this object."""

    node: Node

    def __init__(self) -> None:
        self.groups: dict[str, Group] = {}
        self.delivered: Counter[str] = Counter()  # messages per group
        self.views: dict[str, View] = {}  # the newest one taken, per group
        self.outages: list[str] = []  # why the node was out, each time
        self.ended: NodeEnded | None = None  # how the stream ended, if it did
        self.changed = asyncio.Event()  # something of the above
        self._consumer: asyncio.Task[None] | None = None

    async def start(self, consume: bool = True, **options: Any) -> dict[str, Any]:
        """Start the node; with `consume` its stream is read and counted here."""
        self.node = Node(**options)
        await self.node.start()
        if consume:
            self._consumer = asyncio.ensure_future(self._consume(options.get("rejoin", True)))
        return {"address": self.node.address, "pid": os.getpid()}

    async def join(self, group: str, **options: Any) -> list[str]:
        """Join a group; its members."""
        self.groups[group] = await self.node.join(group, **options)
        return list(self.groups[group].members)

    async def leave(self, group: str) -> None:
        """Leave a group."""
        await self.groups.pop(group).leave()

    async def send(
        self, group: str, count: int, size: int = 100, per_second: float | None = None
    ) -> None:
        """Multicast messages of `size` bytes, as fast as the window allows or at a steady rate."""
        body = bytes(size)
        loop = asyncio.get_running_loop()
        start = loop.time()
        for number in range(count):
            if per_second is not None:
                await asyncio.sleep(max(0.0, start + number / per_second - loop.time()))
            receipt = await self.groups[group].multicast(body)
        if count:
            await receipt.ordered()

    async def wait(self, group: str, count: int) -> int:
        """Wait until so many messages of the group were delivered, or the stream ended."""
        while self.delivered[group] < count and self.ended is None:
            self.changed.clear()
            await self.changed.wait()
        return self.delivered[group]

    async def wait_members(self, group: str, members: list[str]) -> int:
        """Wait for a view with exactly these members; its number."""
        while group not in self.views or sorted(self.views[group].members) != sorted(members):
            if self.ended is not None:
                raise self.ended
            self.changed.clear()
            await self.changed.wait()
        return self.views[group].number

    async def wait_ended(self) -> dict[str, str]:
        """Wait until the stream ends by itself: how."""
        while self.ended is None:
            self.changed.clear()
            await self.changed.wait()
        return {"kind": type(self.ended).__name__, "error": str(self.ended)}

    async def report(self) -> dict[str, Any]:
        """What was delivered so far, and the node's stats."""
        return {
            "delivered": dict(self.delivered),
            "views": {group: view.number for group, view in self.views.items()},
            "outages": self.outages,
            "ended": type(self.ended).__name__ if self.ended is not None else None,
            "stats": self.node.stats(),
        }

    async def run(self, call: str, args: dict[str, Any]) -> Any:
        """Await a function of somebody else's module."""
        module, _, function = call.partition(":")
        return await getattr(import_module(module), function)(self, **args)

    async def close(self) -> None:
        """Close the node; the consumer takes the rest."""
        if hasattr(self, "node"):
            await self.node.aclose()
        if self._consumer is not None:
            await asyncio.gather(self._consumer, return_exceptions=True)

    async def _consume(self, rejoins: bool) -> None:
        is_in = True
        while is_in:
            try:
                await self._consume_until_out()
                is_in = False
            except NodeEnded as reason:
                is_in = rejoins and isinstance(reason, NodeOut)
                if is_in:
                    self.outages.append(type(reason).__name__)
                else:
                    self.ended = reason
            self.changed.set()

    async def _consume_until_out(self) -> None:
        async for batch in self.node.batches():
            for event in batch:
                if isinstance(event, Message):
                    self.delivered[event.group] += 1
                elif isinstance(event, View):
                    self.views[event.group] = event
            self.changed.set()


COMMANDS = (
    "start", "join", "leave", "send", "wait", "wait_members", "wait_ended", "report", "run",
    "close",
)  # fmt: skip


async def serve(lines: asyncio.StreamReader, answer: Callable[[bytes], None]) -> None:
    """Carry out commands, several at a time, until the input ends."""
    worker = Worker()
    running: set[asyncio.Task[None]] = set()
    while line := await lines.readline():
        command = msgspec.json.decode(line, type=Command)
        task = asyncio.ensure_future(_carry_out(worker, command, answer))
        running.add(task)
        task.add_done_callback(running.discard)
    for task in running:
        task.cancel()
    await worker.close()


async def _carry_out(worker: Worker, command: Command, answer: Callable[[bytes], None]) -> None:
    reply: dict[str, Any] = {"id": command.id}
    try:
        if command.do not in COMMANDS:
            raise ValueError(f"no command {command.do!r}; there are {', '.join(COMMANDS)}")
        method: Callable[..., Awaitable[Any]] = getattr(worker, command.do)
        reply["result"] = await method(**command.args)
    except Exception as error:
        reply["kind"], reply["error"] = type(error).__name__, str(error)
    answer(msgspec.json.encode(reply) + b"\n")


async def main() -> None:
    """Take standard input and output, and leave standard output to nobody else."""
    replies = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # whatever a workload prints goes to standard error
    lines = asyncio.StreamReader(limit=MAX_LINE)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin.buffer)
    await serve(lines, lambda reply: _write_all(replies.fileno(), reply))


def _write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


def run() -> None:
    """On uvloop where there is one."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(main())
    else:
        uvloop.run(main())


if __name__ == "__main__":
    run()
