"""Many nodes in one process, for `bench.sequencing_scale`: what its processes are told to do."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from typing import Any

from ordercast import Group, Message, Node
from ordercast.core.changing import Places
from ordercast.core.ids import GroupId, ProcessId
from ordercast.protocols.sequencing.book import Book
from ordercast.protocols.sequencing.contexts import Contexts
from ordercast.protocols.sequencing.headers import Request, Spread
from ordercast.runtime.worker import Worker
from ordercast.views.changes import Changes, Groups
from ordercast.views.headers import Change, Stop

AT_A_TIME = 1  # nodes of a process that start at once


class Hosted:
    """A node, its groups, and how much it got."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.groups: dict[str, Group] = {}
        self.taken: Counter[str] = Counter()  # messages by group
        self.changed = asyncio.Event()
        self.reading = asyncio.ensure_future(self._read())

    async def _read(self) -> None:
        async for batch in self.node.batches():
            self.taken.update(event.group for event in batch if isinstance(event, Message))
            self.changed.set()

    async def has(self, count: int) -> None:
        """Wait until so many messages of each of its groups are there."""
        while any(self.taken[group] < count for group in self.groups):
            self.changed.clear()
            await self.changed.wait()


_hosted: dict[int, Hosted] = {}
_contexts: list[int] = []  # lengths, of all that was numbered here
_delays: list[float] = []  # until own delivery
_since: dict[tuple[int, GroupId], float] = {}  # groups that are stopped, at which node
_pauses: dict[str, float] = {}  # by group


def _context(
    self: Contexts, p: ProcessId, g: GroupId, book: Book, asked: Request | Spread
) -> tuple[Places, Places]:
    found = _unwatched(self, p, g, book, asked)
    _contexts.append(len(found[0]))
    return found


_unwatched = Contexts.of_next
_unwatched_stop = Changes._on_stop
_unwatched_install = Changes._install


async def start(
    worker: Worker, *, members: list[int], seeds: list[str], options: dict[str, Any]
) -> None:
    """Start these nodes, a few at a time."""
    Contexts.of_next = _context  # type: ignore[method-assign]
    room = asyncio.Semaphore(AT_A_TIME)

    async def start_one(member: int) -> None:
        async with room:
            node = Node(f"m{member}", seeds=seeds, **options)
            await node.start()
            _hosted[member] = Hosted(node)

    await asyncio.gather(*map(start_one, members))


async def join(
    worker: Worker, *, wanted: list[tuple[int, str]], how: dict[str, Any]
) -> list[float]:
    """One join after the other: seconds of each."""
    seconds = []
    for member, group in wanted:
        hosted = _hosted[member]
        began = time.monotonic()
        hosted.groups[group] = await hosted.node.join(group, **how)
        seconds.append(time.monotonic() - began)
    return seconds


async def leave(worker: Worker, *, member: int, group: str) -> None:
    """One that joined leaves again."""
    await _hosted[member].groups.pop(group).leave()


async def forget(worker: Worker) -> None:
    """Count from here on."""
    _contexts.clear()
    _delays.clear()
    for hosted in _hosted.values():
        hosted.taken.clear()


async def send(worker: Worker, *, to: list[tuple[int, str]], per_second: float) -> None:
    """One message of each of these members to that group, at a steady rate."""
    start_at = time.monotonic()
    for number, (member, group) in enumerate(to):
        await asyncio.sleep(start_at + number / per_second - time.monotonic())
        began = time.monotonic()
        receipt = await _hosted[member].groups[group].multicast(bytes(100))
        await receipt.ordered()
        _delays.append(time.monotonic() - began)


async def settle(worker: Worker, *, count: int) -> None:
    """Wait until every node has so many messages of each of its groups."""
    await asyncio.gather(*(hosted.has(count) for hosted in _hosted.values()))


async def watch(worker: Worker) -> None:
    """Note from here on how long changes stop groups."""
    _pauses.clear()
    Changes._on_stop = _stopped  # type: ignore[method-assign]
    Changes._install = _installed  # type: ignore[method-assign]


def _stopped(self: Changes, groups: Groups, src: ProcessId, stop: Stop) -> None:
    now = time.monotonic()
    _unwatched_stop(self, groups, src, stop)
    for g in stop.scope:
        if groups.machine(g) is not None:
            _since.setdefault((id(self), g), now)


def _installed(self: Changes, groups: Groups, change: Change) -> None:
    _unwatched_install(self, groups, change)
    now = time.monotonic()
    for coming in change.groups:
        group = coming.row.entry
        since = _since.pop((id(self), group.gid), None)
        if since is not None:
            _pauses[group.name] = max(now - since, _pauses.get(group.name, 0.0))


async def crash(worker: Worker, *, member: int) -> None:
    """One of the nodes ends without a word."""
    presence = _hosted.pop(member).node._presence
    presence.engine.stop()
    presence.peers.close("a crash", goodbye=False)


async def pauses(worker: Worker) -> dict[str, float]:
    """Seconds for which groups were stopped, the longest at any node here."""
    return _pauses


async def report(worker: Worker) -> dict[str, list[Any]]:
    """What was seen since `forget`."""
    return {"contexts": _contexts, "delays": _delays}
