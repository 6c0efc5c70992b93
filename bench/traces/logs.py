"""The log of one process as arrays, and its rows as Arrow tables of bounded size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bench.traces.world import STEP, Extra, Ints, World
from ordercast.trace.schema import COLUMNS, KINDS, Event
from ordercast.trace.tables import TABLE_SCHEMA, event_table

ROWS = 1_000_000  # of one table, and of one row group
SEND, DELIVER = KINDS.index("send"), KINDS.index("deliver")
START_NS = 1_700_000_000_000_000_000

Codes = npt.NDArray[Any]


@dataclass(frozen=True)
class Messages:
    """Every message of a run by its number: its name, and the codes of its sender and group."""

    names: Any  # pyarrow string array
    sender: Codes
    group: Codes


def messages_of(world: World) -> Messages:
    """sender/group/number, as our own recorder names them."""
    sender = np.concatenate([world.sender, np.array(world.more_senders, np.int16)])
    group = np.concatenate([world.group, np.array(world.more_groups, np.int16)])
    pair = sender.astype(np.int32) * len(world.groups) + group
    order = np.argsort(pair, kind="stable")
    sizes = np.bincount(pair, minlength=world.processes * len(world.groups))
    number = np.empty(len(pair), np.int64)
    number[order] = np.arange(len(pair)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    words = pa.array([f"{p}/{g.name}/" for p in world.names for g in world.groups])
    texts = pc.cast(pa.array(number), pa.string())
    names = pc.binary_join_element_wise(words.take(pa.array(pair)), texts, "")
    return Messages(names, sender, group)


@dataclass
class Log:
    """One process's rows in order; `extra` is the place in `extras`, -1 for a regular row."""

    process: int
    time: Ints
    kind: Codes
    message: Codes
    extra: Codes
    extras: list[Extra]


def log_of(world: World, q: int) -> Log:
    """Sends, deliveries, and what else the world holds for q, by time; at last `end`."""
    times = world.delays(q)
    sent = np.flatnonzero(world.sender == q)
    delivered = _delivered(world, q, times)
    extras = [extra for extra in world.extras if extra.process == q]
    stop = next((extra.time for extra in extras if extra.kind == "crash"), None)
    if stop is None:
        stop = max(int(times[-1]), *(extra.time for extra in extras)) + STEP
        extras.append(Extra(q, stop, "end"))
    time = np.concatenate([sent * STEP, times[delivered], [extra.time for extra in extras]])
    kind = np.concatenate(
        [
            np.full(len(sent), SEND, np.int8),
            np.full(len(delivered), DELIVER, np.int8),
            np.array([KINDS.index(extra.kind) for extra in extras], np.int8),
        ]
    )
    message = np.concatenate(
        [sent, delivered, np.array([extra.message for extra in extras], np.int64)]
    ).astype(np.int32)
    extra = np.full(len(time), -1, np.int32)
    extra[len(extra) - len(extras) :] = np.arange(len(extras))
    order = np.argsort(time, kind="stable")
    order = order[: np.searchsorted(time[order], stop, side="right")]
    return Log(q, time[order], kind[order], message[order], extra[order], extras)


def _delivered(world: World, q: int, times: Ints) -> Ints:
    """The regular messages that q delivers, in order."""
    takes = np.zeros(world.count, bool)
    leaves = {e.group: e.time for e in world.extras if e.process == q and e.kind == "leave"}
    for g, group in enumerate(world.groups):
        for stay in (stay for stay in group.stays if stay.process == q):
            own = slice(stay.first, stay.stop)
            takes[own] |= world.group[own] == g
            if stay.stop < world.count:
                late = times[own] >= leaves[g]
                takes[own] &= ~(late & (world.group[own] == g))
    for process, message in world.dropped:
        if process == q:
            takes[message] = False
    return np.flatnonzero(takes)


def tables_of(world: World, messages: Messages, log: Log, rows: int = ROWS) -> Iterator[Any]:
    """The rows of a log, `rows` at a time, with the columns of TABLE_SCHEMA."""
    for first in range(0, len(log.time), rows):
        yield _table(world, messages, log, np.arange(first, min(first + rows, len(log.time))))


def shuffled_tables_of(
    world: World, messages: Messages, log: Log, rows: int = ROWS
) -> Iterator[Any]:
    """The same rows in any order."""
    places = np.random.default_rng((world.shape.seed, log.process, 1)).permutation(len(log.time))
    for first in range(0, len(places), rows):
        yield _table(world, messages, log, places[first : first + rows])


def declarations(world: World) -> Any:
    """The `group` rows of a run."""
    return event_table(
        Event(
            None,
            None,
            "group",
            group=group.name,
            run=world.shape.run,
            members=tuple(world.names[p] for p in group.declared),
        )
        for group in world.groups
        if group.declared is not None
    )


def _table(world: World, messages: Messages, log: Log, places: Codes) -> Any:
    kind, message = log.kind[places], log.message[places]
    none, deliver = message < 0, kind == DELIVER
    columns = {
        "process": _constant(world.names[log.process], len(places)),
        "index": pa.array(places + 1),
        "kind": _named(kind, KINDS),
        "message": messages.names.take(pa.array(message, mask=none)),
        "group": _groups(world, messages, log, places),
        "run": _constant(world.shape.run, len(places)),
        "sender": _named(messages.sender[message], world.names, absent=~deliver),
        "time": pa.array(START_NS + log.time[places] * 1000),
        "size": pa.array(np.full(len(places), 100), mask=kind != SEND),
        "overhead": pa.array(12 + message.astype(np.int64) % 41, mask=~deliver),
        **_views(world, log, places),
    }
    arrays = [
        columns[name] if name in columns else pa.nulls(len(places), TABLE_SCHEMA.field(name).type)
        for name in COLUMNS
    ]
    return pa.table(arrays, schema=TABLE_SCHEMA)


def _named(codes: Codes, names: Any, absent: Codes | None = None) -> Any:
    indexes = pa.array(codes.astype(np.int32), mask=absent)
    return pa.DictionaryArray.from_arrays(indexes, pa.array(names, pa.string()))


def _constant(name: str, rows: int) -> Any:
    return _named(np.zeros(rows, np.int32), [name])


def _groups(world: World, messages: Messages, log: Log, places: Codes) -> Any:
    message, extra = log.message[places], log.extra[places]
    codes = np.where(message >= 0, messages.group[message], -1).astype(np.int32)
    for row in np.flatnonzero(extra >= 0):
        if (group := log.extras[extra[row]].group) >= 0:
            codes[row] = group
    for (process, number), group in world.regrouped.items():
        if process == log.process:
            codes[(message == number) & (log.kind[places] == DELIVER)] = group
    return _named(codes, [group.name for group in world.groups], absent=codes < 0)


def _views(world: World, log: Log, places: Codes) -> dict[str, Any]:
    """view and members: null but for a few rows."""
    rows = [
        (int(row), log.extras[log.extra[places[row]]])
        for row in np.flatnonzero(log.extra[places] >= 0)
        if log.extras[log.extra[places[row]]].view is not None
    ]
    numbers = np.zeros(len(places), np.int64)
    known = np.zeros(len(places), bool)
    offsets = np.zeros(len(places) + 1, np.int32)
    names: list[str] = []
    for row, extra in rows:
        numbers[row], known[row] = extra.view, True
        listed = [world.names[p] for p in extra.members or ()]
        offsets[row + 1] = len(listed)
        names += listed
    lists = pa.ListArray.from_arrays(
        pa.array(np.cumsum(offsets, dtype=np.int32)), pa.array(names, pa.string()),
        mask=pa.array(~known),
    )  # fmt: skip
    return {"view": pa.array(numbers, mask=~known), "members": lists}
