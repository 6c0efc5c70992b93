"""One run as arrays of dense integers.

    rows        all events, sorted by process and then by index; a row is a place in these columns
    messages    numbered as they are first met; columns over messages say who sent them and where
    deliveries  the first delivery of each message by each process, in the order of rows

Rows of process p are start[p] .. start[p + 1] - 1, its deliveries likewise by delivery_start.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ordercast.judge.kernels.ids import NONE, Ids
from ordercast.judge.kernels.scratch import Scratch
from ordercast.trace.schema import KINDS

__all__ = ["NONE", "Declaration", "Run", "Turn"]

Ints = npt.NDArray[Any]  # int32 unless a comment says otherwise
Bools = npt.NDArray[np.bool_]

SEND, DELIVER, VIEW, JOIN, LEAVE, CRASH, END, LOST, GROUP = range(9)
assert KINDS[:9] == (
    "send", "deliver", "view", "join", "leave", "crash", "end", "lost", "group",
)  # fmt: skip

KERNEL_COLUMNS = (
    "process", "index", "kind", "message", "group", "sender", "view", "members",
    "order", "protocol", "scope",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Turn:
    """A `view`, `join` or `leave`: an event that may change who is a member."""

    row: int
    kind: int
    group: int
    view: int = 0
    members: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Declaration:
    """A `group` row: who is in the group, and what it is promised."""

    group: int
    members: tuple[str, ...]
    order: str | None
    protocol: str | None
    scope: str | None


@dataclass
class Run:
    """All logs of one run, and where each message was sent."""

    processes: list[str]  # sorted; declared members without a row too
    groups: list[str]
    ids: Ids  # the names of the messages
    kinds: frozenset[str]  # the kinds that occur anywhere
    declarations: list[Declaration]
    scratch: Scratch

    # By row.
    start: Ints  # process -> its first row; one entry more
    index: Ints  # int64, as recorded
    kind: Ints  # int8
    message: Ints  # NONE: the event has none
    group: Ints
    named_sender: Ints  # place in `names`, NONE: not named
    names: list[str]

    # By process.
    crashed: Bools
    ended: Bools  # nothing more would have been delivered
    lost: Bools  # records are missing somewhere
    turns: list[list[Turn]]

    # By message.
    sender: Ints  # process of its first send, NONE: no send is recorded
    sent_row: Ints
    number: Ints  # which send of its sender it is, from 1
    group_of: Ints  # NONE: neither sent nor delivered

    # By delivery.
    delivery_start: Ints  # process -> its first delivery; one entry more
    delivered: Ints  # the message
    delivered_row: Ints

    repeated_sends: Ints = field(default_factory=lambda: np.empty(0, np.int32))  # rows
    repeats: Ints = field(default_factory=lambda: np.empty(0, np.int32))  # rows

    # Sizes.

    def __len__(self) -> int:
        return len(self.index)

    @property
    def message_count(self) -> int:
        return len(self.sender)

    @cached_property
    def declared(self) -> dict[int, set[str]]:
        """Per declared group the union of its declarations."""
        found: dict[int, set[str]] = {}
        for one in self.declarations:
            found.setdefault(one.group, set()).update(one.members)
        return found

    # A process.

    def rows(self, process: int) -> slice:
        return slice(int(self.start[process]), int(self.start[process + 1]))

    def deliveries(self, process: int) -> slice:
        """Its part of the columns by delivery."""
        return slice(int(self.delivery_start[process]), int(self.delivery_start[process + 1]))

    def process_of(self, row: int) -> int:
        return int(np.searchsorted(self.start, row, side="right")) - 1

    @cached_property
    def complete(self) -> Bools:
        return self.ended & ~self.crashed & ~self.lost

    # Messages by group.

    @cached_property
    def _by_group(self) -> tuple[Ints, Ints]:
        small = len(self.groups) < 1 << 15  # numbers of 16 bits are sorted in linear time
        groups = self.group_of.astype(np.int16) if small else self.group_of
        order = np.argsort(groups, kind="stable").astype(np.int32)
        bounds = np.searchsorted(self.group_of[order], np.arange(len(self.groups) + 1))
        return order, bounds

    def messages_of(self, group: int) -> Ints:
        """The messages of a group, ascending."""
        order, bounds = self._by_group
        return order[bounds[group] : bounds[group + 1]]

    def deliveries_by_group(self, process: int) -> list[tuple[int, Ints]]:
        """Per group of which the process delivers something: places in the columns by delivery."""
        here = self.deliveries(process)
        groups = self.group_of[self.delivered[here]]
        if not len(groups):
            return []
        if (groups == groups[0]).all():
            return [(int(groups[0]), np.arange(here.start, here.stop, dtype=np.int32))]
        small = len(self.groups) < 1 << 15
        order = np.argsort(groups.astype(np.int16) if small else groups, kind="stable")
        bounds = np.flatnonzero(np.diff(groups[order])) + 1
        return [
            (int(groups[part[0]]), (part + here.start).astype(np.int32))
            for part in np.split(order, bounds)
        ]

    # For witnesses: slow, and asked for the first few of each property only.

    def where(self, process: int, message: int) -> int | None:
        """The row of the first delivery of `message` at `process`."""
        here = self.deliveries(process)
        found = np.flatnonzero(self.delivered[here] == message)
        return int(self.delivered_row[here][found[0]]) if len(found) else None

    def deliverers(self, message: int) -> list[int]:
        """The processes that deliver `message`, ascending."""
        places = np.flatnonzero(self.delivered == message)
        found = np.searchsorted(self.delivery_start, places, side="right") - 1
        return [int(p) for p in found]

    def name(self, message: int) -> str:
        return self.ids.name(int(message))

    def event(self, row: int, kind: str | None = None) -> dict[str, object]:
        """An event as part of a witness."""
        message = int(self.message[row])
        found: dict[str, object] = {
            "process": self.processes[self.process_of(row)],
            "index": int(self.index[row]),
            "kind": kind or KINDS[self.kind[row]],
        }
        if message != NONE:
            found["message"] = self.name(message)
        if self.group[row] != NONE:
            found["group"] = self.groups[self.group[row]]
        return found

    def send_event(self, message: int) -> list[dict[str, object]]:
        """The send of `message` for a witness, if it was recorded."""
        return [] if self.sender[message] == NONE else [self.event(int(self.sent_row[message]))]

    def delivery_event(self, process: int, message: int) -> list[dict[str, object]]:
        """The first delivery of `message` at `process` for a witness, if there is one."""
        row = self.where(process, message)
        return [] if row is None else [self.event(row)]
