"""The trace of a run: collected as cheaply as possible, made into events afterwards.

While the run goes on, all that one step handed over is one record: who, when, and the rows as the
machine gave them. Names and message ids are made only when somebody asks for the events.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

import msgspec

from ordercast.core.declaration import Declaration
from ordercast.core.events import View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.output import Delivery
from ordercast.simulation.agenda import TICK_NS
from ordercast.simulation.payload import unpack
from ordercast.trace.holds import MessageRun, message_id
from ordercast.trace.schema import Event
from ordercast.trace.watch import Observed

MOST_NAMES = 16_384  # of processes, and of groups, that are kept: rows name them again and again
MOST_MESSAGES = 65_536  # ... of messages


class Sent(msgspec.Struct, frozen=True):
    """The application handed a message over."""

    group: GroupId
    number: int
    size: int


class Weighed(msgspec.Struct, frozen=True):
    """A delivery, and the header bytes of the packet that brought it."""

    delivery: Delivery
    overhead: int


class Ended(msgspec.Struct, frozen=True):
    """The log is over: `crash`, or `end` for one that is complete."""

    kind: str


class Left(msgspec.Struct, frozen=True):
    """The process is a member no longer, by its own will."""

    group: GroupId


Row = Delivery | Weighed | View | Sent | Observed | Left | Ended


class Declared(msgspec.Struct, frozen=True):
    """A group as it was promised at the start."""

    group: GroupId
    members: tuple[ProcessId, ...]
    declaration: Declaration


Record = tuple[ProcessId, int, *tuple[Row, ...]]
"""(process, tick, row, row, ...)"""


class TraceLog:
    """Records, in the order in which things happened."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def rows(self) -> Iterator[tuple[ProcessId, int, Row]]:
        """(process, tick, row), one after the other."""
        for p, tick, *rows in self.records:
            for row in rows:
                yield p, tick, row

    def deliveries_per_step(self) -> list[int]:
        """How many messages each step delivered, where it delivered any.

        All but one of them had waited for the one that this step brought.
        """
        kinds = (tuple, Weighed)
        counts = (sum(type(row) in kinds for row in rows) for _, _, *rows in self.records)
        return [count for count in counts if count]


@lru_cache(maxsize=MOST_NAMES)
def process_name(p: ProcessId) -> str:
    """As traces name it: the first start of process p."""
    return f"p{p}#1"


@lru_cache(maxsize=MOST_NAMES)
def group_name(g: GroupId) -> str:
    """As traces name it."""
    return f"g{g}"


class SimulatedNames:
    """What things are called while the run goes on."""

    process = staticmethod(process_name)
    group = staticmethod(group_name)

    @staticmethod
    def messages(payload: bytes) -> MessageRun:
        """A simulated frame carries one message."""
        return unpack(payload)[0], 1


NAMES = SimulatedNames()


def declared_events(run: str, groups: Iterable[Declared]) -> Iterator[Event]:
    """The `group` rows: what was promised to whom."""
    for group in groups:
        yield Event(
            None,
            None,
            "group",
            group=group_name(group.group),
            run=run,
            members=tuple(map(process_name, group.members)),
            order=group.declaration.order,
            protocol=group.declaration.name,
            scope=group.declaration.scope,
        )


def logged_events(run: str, log: TraceLog, *, observed: bool = True) -> Iterator[Event]:
    """The rows of a log as events, in the order in which they happened.

    Without those that were `observed` there are holes among the indexes, which mean nothing.
    """
    names: dict[ProcessId, str] = {}
    lengths: dict[ProcessId, int] = {}  # of the logs so far
    lists: dict[tuple[ProcessId, ...], tuple[str, ...]] = {}  # members of views, named once
    for p, tick, row in log.rows():
        if p not in names:
            names[p], lengths[p] = process_name(p), 0
        lengths[p] += 1
        index, time = lengths[p], tick * TICK_NS
        if type(row) is tuple:
            yield _delivered(run, names[p], index, time, row)
        elif isinstance(row, Weighed):
            yield _delivered(run, names[p], index, time, row.delivery, row.overhead)
        elif isinstance(row, Sent):
            message = _message(p, row.group, row.number)
            group = group_name(row.group)
            yield Event(names[p], index, "send", message, group, run, time=time, size=row.size)
        elif isinstance(row, View):
            if row.members not in lists:
                lists[row.members] = tuple(map(process_name, row.members))
            yield _installed(run, names[p], index, time, row, lists[row.members])
        elif isinstance(row, Observed):
            if observed:
                yield _observed(run, names[p], index, time, row)
        elif isinstance(row, Left):
            group = group_name(row.group)
            yield Event(names[p], index, "leave", None, group, run, time=time)
        else:
            assert isinstance(row, Ended)
            yield Event(names[p], index, row.kind, run=run, time=time)


@lru_cache(maxsize=MOST_MESSAGES)
def _message(sender: ProcessId, group: GroupId, number: int) -> str:
    return message_id(process_name(sender), group_name(group), number)


def _delivered(
    run: str, name: str, index: int, time: int, delivery: Delivery, overhead: int | None = None
) -> Event:
    group, sender, _, seq, payload = delivery
    number, _ = unpack(payload)
    return Event(
        name,
        index,
        "deliver",
        _message(sender, group, number),
        group_name(group),
        run,
        sender=process_name(sender),
        time=time,
        seq=seq or None,
        size=len(payload),
        overhead=overhead,
    )


def _installed(
    run: str, name: str, index: int, time: int, view: View, members: tuple[str, ...]
) -> Event:
    return Event(
        name,
        index,
        "view",
        group=group_name(view.group),
        run=run,
        view=view.number,
        members=members,
        time=time,
        seq=view.start or None,
    )


def _observed(run: str, name: str, index: int, time: int, row: Observed) -> Event:
    return Event(
        name,
        index,
        row.kind,
        message_id(row.sender, row.group, row.first) if row.count else None,
        row.group,
        run,
        sender=row.sender,
        time=time,
        overhead=row.overhead or None,
        layer="protocol",
        note=row.note or None,
    )
