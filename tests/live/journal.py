"""What a node's stream gave, and when. Runs inside the worker process, in place of its own reader.

Moments are `time.monotonic()`, one clock for all processes of a machine.
"""

from __future__ import annotations

import asyncio
import time
from itertools import groupby
from typing import Any

from ordercast import Message, View
from ordercast.errors import NodeEnded, NodeOut
from ordercast.runtime.worker import Worker

MAX_ENTRIES = 200_000

Entry = list[Any]  # moment, kind, then by kind: see `read`

_journals: dict[Worker, list[Entry]] = {}


async def keep(worker: Worker) -> None:
    """Read the stream from now on. The worker was started with `consume=False`."""
    _journals[worker] = []
    worker._consumer = asyncio.ensure_future(_consume(worker))


async def read(worker: Worker, *, after: float = 0.0) -> list[Entry]:
    """Entries since a moment.

    [moment, "view", group, number, members]   [moment, "messages", group, count]
    [moment, "error", kind, text]              [moment, "event", kind, text]
    """
    return [entry for entry in _journals[worker] if entry[0] >= after]


async def wait_for(worker: Worker, *, kind: str, what: str, after: float) -> Entry:
    """Wait for an entry since that moment: an "error" of that kind, or an "event"."""
    while True:
        for entry in _journals[worker]:
            if entry[0] >= after and entry[1:3] == [kind, what]:
                return entry
        worker.changed.clear()
        await worker.changed.wait()


async def wait_for_node(worker: Worker, *, name: str) -> None:
    """Wait until this node knows one of that name."""
    while worker.node._presence.directory.named(name) is None:
        await asyncio.sleep(0)


async def _consume(worker: Worker) -> None:
    """Read on after an outage; the stream has ended if it raises the same once more."""
    last: NodeEnded | None = None
    while worker.ended is None:
        try:
            async for batch in worker.node.batches():
                _note(worker, batch)
            return
        except NodeEnded as reason:
            if reason is not last:
                _enter(worker, "error", type(reason).__name__, str(reason))
            if reason is last or not isinstance(reason, NodeOut):
                worker.ended = reason
            last = reason
        finally:
            worker.changed.set()


def _note(worker: Worker, batch: list[Any]) -> None:
    for group, messages in groupby(batch, key=_group_of_message):
        if group is None:
            for event in messages:
                _note_event(worker, event)
        else:
            count = sum(1 for _ in messages)
            worker.delivered[group] += count
            _enter(worker, "messages", group, count)
    worker.changed.set()


def _group_of_message(event: Any) -> str | None:
    return event.group if isinstance(event, Message) else None


def _note_event(worker: Worker, event: Any) -> None:
    if isinstance(event, View):
        worker.views[event.group] = event
        _enter(worker, "view", event.group, event.number, list(event.members))
    else:
        _enter(worker, "event", type(event).__name__, repr(event))


def _enter(worker: Worker, *entry: Any) -> None:
    journal = _journals[worker]
    if len(journal) >= MAX_ENTRIES:
        raise OverflowError(f"more than {MAX_ENTRIES} entries in a journal")
    journal.append([time.monotonic(), *entry])
