"""The program of every process of a soak: it joins all groups, sends, and digests what it gets.

    python -m chaos.soaker SETTINGS

What it writes on its standard output, as JSON lines:

    ["up", incarnation]
    ["view", group, number, members, messages, digest]    what came in the view before this one
    ["out", reason]                                       its stream was interrupted
    ["closed"]

A digest depends on the order of messages in groups with a total order, and on their set in others.
It closes in order when its standard input ends.
"""

from __future__ import annotations

import asyncio
import json
import sys
from hashlib import blake2b
from itertools import cycle
from typing import Any

import msgspec
import uvloop

from ordercast import Group, Message, Node, View
from ordercast.errors import JoinTimeout, NodeEnded, NodeOut, OrdercastError

RETRY_SECONDS = 0.2
FACTOR, MASK = 1_000_003, (1 << 64) - 1


class Settings(msgspec.Struct, frozen=True):
    """What a process of a soak is told."""

    name: str
    place: dict[str, Any]
    options: dict[str, Any]
    groups: dict[str, dict[str, Any]]  # how each is joined
    in_order: tuple[str, ...]  # groups whose digest depends on the order
    rate: float  # messages a second
    size: int  # bytes of a body


def tell(*entry: Any) -> None:
    """One line for whoever started this process."""
    sys.stdout.write(json.dumps(entry, separators=(",", ":")) + "\n")
    sys.stdout.flush()


class Digest:
    """Of the messages between two views of one group."""

    def __init__(self, *, in_order: bool) -> None:
        self.in_order = in_order
        self.messages = 0
        self.value = 0

    def add(self, message: Message) -> None:
        self.messages += 1
        before = self.value * FACTOR if self.in_order else self.value
        one = int.from_bytes(blake2b(bytes(message.body), digest_size=8).digest())
        self.value = (before + one) & MASK


class Soaker:
    """One node, its reader and its sender."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.node = Node(settings.name, **settings.place, **settings.options)
        self.groups: dict[str, Group] = {}
        self.digests: dict[str, Digest] = {}

    async def live(self) -> None:
        """Until standard input ends."""
        ended = asyncio.ensure_future(asyncio.to_thread(sys.stdin.read))
        starting = asyncio.ensure_future(self._start())
        await asyncio.wait((ended, starting), return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():  # a name that was killed often waits before it is let in
            starting.cancel()
            await self.node.aclose()
            tell("closed")
            return
        tell("up", self.node.incarnation)
        tasks = [asyncio.ensure_future(part()) for part in (self._read, self._join, self._send)]
        await ended
        tasks[2].cancel()
        await self.node.aclose()
        for task in tasks:
            task.cancel()
        tell("closed")

    async def _start(self) -> None:
        while True:
            try:
                return await self.node.start()
            except (JoinTimeout, NodeEnded) as reason:
                tell("start failed", str(reason))
                await self.node.aclose()
            await asyncio.sleep(RETRY_SECONDS)
            self.node = Node(self.settings.name, **self.settings.place, **self.settings.options)

    async def _join(self) -> None:
        for name, how in self.settings.groups.items():
            while name not in self.groups:
                try:
                    self.groups[name] = await self.node.join(name, **how)
                except OrdercastError as reason:
                    tell("join failed", name, str(reason))
                    await asyncio.sleep(RETRY_SECONDS)

    async def _send(self) -> None:
        filling = bytes(self.settings.size)
        for number, name in enumerate(cycle(self.settings.groups)):
            if name in self.groups:
                try:
                    body = f"{self.node.incarnation} {number} ".encode() + filling
                    await self.groups[name].multicast(body)
                except OrdercastError as reason:
                    tell("unsent", type(reason).__name__)
            await asyncio.sleep(1 / self.settings.rate)

    async def _read(self) -> None:
        while True:
            try:
                async for event in self.node:
                    self._take(event)
                return
            except NodeOut as reason:
                self.digests.clear()
                tell("out", str(reason))

    def _take(self, event: Any) -> None:
        if isinstance(event, Message) and event.group in self.digests:
            self.digests[event.group].add(event)
        elif isinstance(event, View):
            last = self.digests.get(event.group)
            seen = (last.messages, last.value) if last else (None, None)
            tell("view", event.group, event.number, sorted(event.members), *seen)
            in_order = event.group in self.settings.in_order
            self.digests[event.group] = Digest(in_order=in_order)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(Soaker(msgspec.json.decode(sys.argv[1], type=Settings)).live())
