"""The program of every process in a chaos run. It writes down all it sends, gets and sees.

It does what a plain application does: joins its groups, sends, reads its stream, reads on after an
outage, and tries again what failed. Its log is one JSON array per line, `[seconds, kind, ...]`, in
the order in which things happened to the program; `chaos.logs` has the kinds. The log is written
before the next await, so a `kill -9` loses nothing that the program knew.

Orders come as lines of a named pipe: `quiet`, `fresh NUMBER`, `join GROUP`, `leave GROUP`,
`clock SECONDS`, `flood MESSAGES SECONDS`, `close`.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import time
import traceback
from collections.abc import Callable
from random import Random
from typing import Any
from zlib import crc32

import msgspec
import uvloop

from chaos import wall_clock
from ordercast import Group, Merge, Message, Node, View
from ordercast.errors import AlreadyJoined, JoinTimeout, NodeEnded, NodeOut, OrdercastError

LOOK_SECONDS = 0.05  # between two looks at the node view
RETRY_SECONDS = 0.1


class Settings(msgspec.Struct, frozen=True):
    """What a participant is told when it starts."""

    name: str
    life: int  # which start of this name in this run
    place: dict[str, Any]  # bind, and bootstrap or seeds
    options: dict[str, Any]
    groups: dict[str, dict[str, Any]]  # to join: how
    joinable: dict[str, dict[str, Any]]  # all groups: how
    guest_of: tuple[str, ...]
    rate: float
    size: int
    slow_ms: float
    seed: str
    log: str
    orders: str  # path of the named pipe
    loop: str
    disk_kib: int = 0  # room for the trace; 0: as much as there is


class Participant:
    """One node and what its program does with it."""

    node: Node

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.groups: dict[str, Group | None] = {}  # joined; None: joined without a Group at hand
        self.joining: dict[str, asyncio.Task[None]] = {}
        self.started = asyncio.Event()
        self.sending = True
        self.flood = 0  # messages that are still to be sent without a pause
        self.urgent: asyncio.Queue[str] = asyncio.Queue()  # numbers of fresh messages to send
        self._rng = Random(settings.seed)
        self._log = os.open(settings.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._sent = 0
        self._node_view: list[Any] = []

    def note(self, *entry: Any) -> None:
        """Write a line."""
        self._write([[time.monotonic(), *entry]])

    def _write(self, entries: list[list[Any]]) -> None:
        lines = "".join(json.dumps(entry, separators=(",", ":")) + "\n" for entry in entries)
        os.write(self._log, lines.encode())

    # -- life -------------------------------------------------------------------------------------

    async def live(self) -> None:
        """Until `close`, or until whoever gives orders is gone."""
        self.note("start", self.settings.name, self.settings.life)
        asyncio.get_running_loop().set_exception_handler(self._unhandled)
        orders = asyncio.ensure_future(self._obey())
        starting = asyncio.ensure_future(self._start())
        await asyncio.wait((orders, starting), return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():  # asked to close before the node was in
            starting.cancel()
            self.note("closing")
            await self.node.aclose()
            self.note("closed")
            return
        starting.result()
        self.started.set()
        self.note("up", self.node.incarnation)
        tasks = [asyncio.ensure_future(self._guarded(part)) for part in ("read", "send", "look")]
        for group in self.settings.groups:
            self._join(group)
        await orders
        self.sending = False
        self.note("closing")
        await self.node.aclose()
        self.note("closed")
        for task in tasks:
            task.cancel()

    async def _start(self) -> None:
        settings = self.settings
        while True:
            self.node = Node(settings.name, **settings.place, **settings.options)
            try:
                return await self.node.start()
            except (JoinTimeout, NodeEnded) as reason:
                self.note("start failed", type(reason).__name__, str(reason))
                await self.node.aclose()
            await asyncio.sleep(RETRY_SECONDS)

    async def _guarded(self, part: str) -> None:
        """Whatever a part raises that no application has to expect is written down."""
        try:
            await getattr(self, part)()
        except Exception:
            self.note("failed", part, traceback.format_exc())

    def _unhandled(self, _: object, context: dict[str, Any]) -> None:
        error = context.get("exception")
        words = "".join(traceback.format_exception(error)) if error else context["message"]
        self.note("failed", "loop", words)

    async def _obey(self) -> None:
        pipe = os.fdopen(os.open(self.settings.orders, os.O_RDONLY | os.O_NONBLOCK), "rb")
        lines = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(lines), pipe
        )
        while line := (await lines.readline()).decode().split():
            match line:
                case ["quiet"]:
                    self.sending = False
                case ["fresh", number]:
                    self.urgent.put_nowait(number)
                case ["join", group]:
                    self._join(group)
                case ["leave", group]:
                    self._leave(group)
                case ["flood", messages, seconds]:
                    self.flood = int(messages)
                    asyncio.get_running_loop().call_later(float(seconds), self._ebb)
                case ["clock", seconds]:
                    wall_clock.step(float(seconds))
                case ["close"]:
                    return

    # -- groups -----------------------------------------------------------------------------------

    def _join(self, group: str) -> None:
        before = self.joining.get(group)
        self.joining[group] = asyncio.ensure_future(self._enter(group, before))

    async def _enter(self, group: str, before: asyncio.Task[None] | None) -> None:
        await self.started.wait()
        if before is not None:
            await before
        while True:
            self.note("join", group)
            try:
                self.groups[group] = await self.node.join(group, **self.settings.joinable[group])
            except AlreadyJoined:  # an attempt before had failed here, and succeeded there
                self.groups[group] = None
            except OrdercastError as reason:
                self.note("join failed", group, type(reason).__name__, str(reason))
                await asyncio.sleep(RETRY_SECONDS)
                continue
            except Exception:
                self.note("failed", "join", traceback.format_exc())
                return
            self.note("joined", group)
            return

    def _leave(self, group: str) -> None:
        before = self.joining.get(group)
        self.joining[group] = asyncio.ensure_future(self._exit(group, before))

    async def _exit(self, group: str, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await before
        membership = self.groups.pop(group, None)
        if membership is None:
            self.note("leave failed", group, "no Group at hand", "")
            return
        self.note("leave", group)
        try:
            await membership.leave()
            self.note("left", group)
        except OrdercastError as reason:
            self.note("leave failed", group, type(reason).__name__, str(reason))
        except Exception:
            self.note("failed", "leave", traceback.format_exc())

    # -- messages ---------------------------------------------------------------------------------

    async def send(self) -> None:
        """One message after the other: the log's order is the order of the calls."""
        while True:
            if self.flood and self.sending:
                self.flood -= 1
                await self._send_one()
                continue
            pause = self._rng.expovariate(self.settings.rate) if self.sending else None
            try:
                number = await asyncio.wait_for(self.urgent.get(), pause)
            except TimeoutError:
                await self._send_one()
            else:
                for group in tuple(self.groups):
                    await self._multicast(group, f"fresh{number}{group}")

    def _ebb(self) -> None:
        self.flood = 0

    async def _send_one(self) -> None:
        targets = [*self.groups, *self.settings.guest_of]
        if targets and self.sending:
            self._sent += 1
            await self._multicast(self._rng.choice(targets), str(self._sent))

    async def _multicast(self, group: str, number: str) -> None:
        message = f"{self.settings.name}.{self.settings.life}/{number}"
        body = f"{message} ".encode() + self._rng.randbytes(
            self._rng.randint(0, self.settings.size)
        )
        self.note("send", group, message, crc32(body), self.node.incarnation)
        try:
            membership = self.groups.get(group)
            if membership is None:
                await self.node.send_to(group, body)
            else:
                await membership.multicast(body)
        except OrdercastError as reason:
            self.note("unsent", message, type(reason).__name__, str(reason))
            await asyncio.sleep(RETRY_SECONDS)
        else:
            self.note("sent", message, self.node.incarnation)

    async def read(self) -> None:
        """The stream, on after every outage."""
        while True:
            try:
                async for batch in self.node.batches():
                    self._write([self._seen(event) for event in batch])
                    if self.settings.slow_ms:
                        await asyncio.sleep(self.settings.slow_ms / 1000)
                self.note("stream ended")
                return
            except NodeOut as reason:
                view, missing = getattr(reason, "view", 0), getattr(reason, "missing", ())
                self.note("out", type(reason).__name__, str(reason), view, missing)

    def _seen(self, event: Message | View | Merge) -> list[Any]:
        now = time.monotonic()
        match event:
            case Message(group, sender, body):
                return [now, "got", group, sender, _id_of(body), crc32(body)]
            case View(group, number, members, joined, left):
                inc = self.node.incarnation
                return [now, "view", group, number, members, joined, left, inc]
            case Merge(group, sides, chosen):
                return [now, "merge", group, sides, chosen]

    # -- the cluster ------------------------------------------------------------------------------

    async def look(self) -> None:
        """Write down each node view, and of how many groups this node is the sequencer."""
        while True:
            stats = self.node.stats()
            view = stats["node_view"]
            numbered = stats["sequencing"]["groups"]
            seen = [view["number"], view["members"], stats["coordinator"], numbered]
            if view["number"] and seen != self._node_view:
                self._node_view = seen
                self.note("node", *seen, self.node.incarnation)
            await asyncio.sleep(LOOK_SECONDS)


def _id_of(body: bytes) -> str:
    return body.split(b" ", 1)[0].decode("ascii", "backslashreplace")


def run(settings: Settings) -> None:
    """Live, in this process, to the end."""
    logging.basicConfig(stream=sys.stderr, format="%(relativeCreated)d %(name)s %(message)s")
    participant = Participant(settings)
    loops = {"uvloop": uvloop.new_event_loop, "asyncio": asyncio.new_event_loop}
    factory: Callable[[], asyncio.AbstractEventLoop] = loops[settings.loop]
    try:
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(participant.live())
    except BaseException:
        participant.note("failed", "main", traceback.format_exc())
        raise
