"""One run as dense integers: a log per process, ordered by `index`.

Processes, groups and messages become numbers. A position is a place in a process's log, counted
from 0. The order of rows in the input means nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ordercast.trace.schema import KINDS

Ints = npt.NDArray[np.int64]
NONE = -1  # no message, no group, not sent

SEND, DELIVER, VIEW, JOIN, LEAVE, CRASH, END, LOST, GROUP = range(9)
assert KINDS[:9] == (
    "send", "deliver", "view", "join", "leave", "crash", "end", "lost", "group",
)  # fmt: skip

KERNEL_COLUMNS = ("process", "index", "kind", "message", "group", "sender", "view", "members")


@dataclass(frozen=True, slots=True)
class Turn:
    """A `view`, `join` or `leave`: an event that may change who is a member."""

    position: int
    kind: int
    group: int
    view: int = 0
    members: tuple[str, ...] = ()


@dataclass(slots=True)
class Log:
    """What one process did, or the part of it that was recorded."""

    name: str
    indexes: Ints  # index of the event at each position
    kinds: Ints
    crashed: bool = False
    ended: bool = False  # nothing more would have been delivered
    lost: bool = False  # records are missing somewhere
    sends: list[int] = field(default_factory=list)  # messages first sent here, in order
    sent_at: list[int] = field(default_factory=list)
    deliveries: list[int] = field(default_factory=list)  # messages, first delivery of each
    delivered_at: list[int] = field(default_factory=list)
    delivered_in: list[int] = field(default_factory=list)  # the group named by the row
    named_sender: list[str | None] = field(default_factory=list)
    repeats: list[tuple[int, int]] = field(default_factory=list)  # (message, position)
    where: dict[int, int] = field(default_factory=dict)  # message -> position of first delivery
    turns: list[Turn] = field(default_factory=list)

    @property
    def cut(self) -> bool:
        return not (self.crashed or self.ended)

    @property
    def complete(self) -> bool:
        return self.ended and not self.crashed and not self.lost


@dataclass
class Run:
    """All logs of one run, and where each message was sent."""

    processes: list[str]
    groups: list[str]
    messages: list[str]
    kinds: frozenset[str]  # the kinds that occur anywhere
    logs: list[Log]
    declared: dict[int, set[str]]  # group -> union of its declarations
    sender: list[int]  # message -> process of its send, or NONE
    sent_at: list[int]  # message -> position of its send
    number: list[int]  # message -> which send of its sender it is, from 1
    group_of: list[int]  # message -> its group; NONE: neither sent nor delivered
    repeated_sends: list[tuple[int, int, int]]  # (message, process, position)

    def event(self, process: int, position: int, kind: str, message: int) -> dict[str, object]:
        """An event as part of a witness."""
        log = self.logs[process]
        row: dict[str, object] = {
            "process": log.name,
            "index": int(log.indexes[position]),
            "kind": kind,
        }
        if message != NONE:
            row["message"] = self.messages[message]
            row["group"] = self.groups[self.group_of[message]]
        return row

    def send_event(self, message: int) -> list[dict[str, object]]:
        """The send of `message` for a witness, if it was recorded."""
        if self.sender[message] == NONE:
            return []
        return [self.event(self.sender[message], self.sent_at[message], "send", message)]

    def delivery_event(self, process: int, message: int) -> list[dict[str, object]]:
        """The first delivery of `message` at `process` for a witness, if there is one."""
        position = self.logs[process].where.get(message)
        return [] if position is None else [self.event(process, position, "deliver", message)]


def build_run(table: pa.Table, *, quiescent: bool = False) -> Run:
    """The run whose rows are `table` (columns `KERNEL_COLUMNS`)."""
    is_declaration = pc.equal(table["kind"], "group")
    declarations = table.filter(is_declaration).select(["group", "members"]).to_pylist()
    rows = table.filter(pc.invert(is_declaration)).combine_chunks()
    groups = _Names(table["group"])
    messages = _Names(rows["message"])
    declared = _declared(declarations, groups)
    names = sorted({*rows["process"].unique().to_pylist(), *set().union(*declared.values())})
    run = Run(
        processes=names,
        groups=groups.names,
        messages=messages.names,
        kinds=frozenset(table["kind"].unique().to_pylist()),
        logs=[],
        declared=declared,
        sender=[NONE] * len(messages.names),
        sent_at=[NONE] * len(messages.names),
        number=[0] * len(messages.names),
        group_of=[NONE] * len(messages.names),
        repeated_sends=[],
    )
    _fill_logs(run, rows, groups, messages, quiescent)
    _place_unsent(run)
    return run


class _Names:
    """The distinct values of a column, numbered."""

    def __init__(self, column: pa.ChunkedArray) -> None:
        self.names: list[str] = [n for n in column.unique().to_pylist() if n is not None]
        self.number = {name: k for k, name in enumerate(self.names)}
        self._values = pa.array(self.names, pa.string())

    def codes(self, column: pa.ChunkedArray) -> Ints:
        return _codes(column, self._values)


def _codes(column: pa.ChunkedArray, values: pa.Array) -> Ints:
    found = pc.index_in(column, values).fill_null(NONE)
    return np.asarray(found.to_numpy(), dtype=np.int64)


def _declared(rows: list[dict[str, object]], groups: _Names) -> dict[int, set[str]]:
    declared: dict[int, set[str]] = {}
    for row in rows:
        members = row["members"] or ()
        assert isinstance(members, list | tuple)
        declared.setdefault(groups.number[str(row["group"])], set()).update(map(str, members))
    return declared


def _fill_logs(run: Run, rows: pa.Table, groups: _Names, messages: _Names, quiescent: bool) -> None:
    process = _codes(rows["process"], pa.array(run.processes, pa.string()))
    index = np.asarray(rows["index"].to_numpy(), dtype=np.int64)
    order = np.lexsort((index, process))
    kinds = _codes(rows["kind"], pa.array(KINDS))[order]
    message = messages.codes(rows["message"])[order]
    group = groups.codes(rows["group"])[order]
    bounds = np.searchsorted(process[order], np.arange(len(run.processes) + 1))
    for p, name in enumerate(run.processes):
        here = slice(bounds[p], bounds[p + 1])
        log = Log(name, index[order[here]], kinds[here])
        present = set(np.unique(log.kinds).tolist())
        log.crashed, log.lost = CRASH in present, LOST in present
        log.ended = END in present or (quiescent and not log.crashed)
        run.logs.append(log)
        _fill_sends(run, p, message[here], group[here])
        _fill_deliveries(log, message[here], group[here], rows["sender"], order[here])
        _fill_turns(log, group[here], rows, order[here])


def _fill_sends(run: Run, p: int, message: Ints, group: Ints) -> None:
    log = run.logs[p]
    for position in np.flatnonzero(log.kinds == SEND).tolist():
        m = int(message[position])
        if run.sender[m] != NONE:
            run.repeated_sends.append((m, p, position))
            continue
        log.sends.append(m)
        log.sent_at.append(position)
        run.sender[m], run.sent_at[m], run.number[m] = p, position, len(log.sends)
        run.group_of[m] = int(group[position])


def _fill_deliveries(
    log: Log, message: Ints, group: Ints, senders: pa.ChunkedArray, rows: Ints
) -> None:
    positions = np.flatnonzero(log.kinds == DELIVER)
    if not len(positions):
        return
    named = senders.take(pa.array(rows[positions])).to_pylist()
    where = log.where
    for position, m, g, sender in zip(
        positions.tolist(), message[positions].tolist(), group[positions].tolist(), named,
        strict=True,
    ):  # fmt: skip
        if m in where:
            log.repeats.append((m, position))
            continue
        where[m] = position
        log.deliveries.append(m)
        log.delivered_at.append(position)
        log.delivered_in.append(g)
        log.named_sender.append(sender)


def _fill_turns(log: Log, group: Ints, rows: pa.Table, places: Ints) -> None:
    for position in np.flatnonzero((log.kinds >= VIEW) & (log.kinds <= LEAVE)).tolist():
        kind, g = int(log.kinds[position]), int(group[position])
        if kind != VIEW:
            log.turns.append(Turn(position, kind, g))
            continue
        row = int(places[position])
        members = tuple(rows["members"][row].as_py())
        log.turns.append(Turn(position, kind, g, rows["view"][row].as_py(), members))


def _place_unsent(run: Run) -> None:
    """A message without a send record belongs to the lowest group named by a first delivery."""
    unsent: dict[int, int] = {}
    for log in run.logs:
        for m, g in zip(log.deliveries, log.delivered_in, strict=True):
            if run.sender[m] == NONE:
                best = unsent.setdefault(m, g)
                if run.groups[g] < run.groups[best]:
                    unsent[m] = g
    for m, g in unsent.items():
        run.group_of[m] = g
