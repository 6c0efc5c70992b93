"""What survivors of a crash differ in: messages that only some of them have, and in which order.

A *survivor* is a process that did not crash. Of each view its deliveries are compared with those of
the survivor that got the most: are they the first of the same, in the same order?
"""

from __future__ import annotations

from collections import defaultdict

import msgspec

from ordercast.core.events import View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.simulation.agenda import TICKS_PER_MS
from ordercast.simulation.log import Ended, Sent, TraceLog, Weighed
from ordercast.simulation.payload import unpack

Message = tuple[GroupId, ProcessId, int]
"""(group, sender, number)"""


class Differences(msgspec.Struct, frozen=True):
    """Of one run."""

    uneven: int  # messages that some survivors delivered, and others that were members did not
    lacking: int  # ... and how many deliveries are lacking
    vanished: int  # messages of survivors that no survivor delivered
    no_prefix: int  # (view, survivor): not the first of what another delivered in it
    view_change_ms: float | None  # from the first crash until all survivors have a view without it


class _Stories:
    """Follows a log: who delivered what, in which view."""

    def __init__(self) -> None:
        self.view: dict[tuple[ProcessId, GroupId], View] = {}
        self.told: dict[tuple[GroupId, int], dict[ProcessId, list[Message]]] = {}
        self.sent: set[Message] = set()
        self.crashed: set[ProcessId] = set()
        self.first_crash: tuple[ProcessId, int] | None = None  # who, and in which tick
        self.without: dict[tuple[ProcessId, GroupId], int] = {}  # tick of the first view without it

    def crashes(self, p: ProcessId, tick: int) -> None:
        self.crashed.add(p)
        self.first_crash = self.first_crash or (p, tick)

    def begins(self, p: ProcessId, view: View, tick: int) -> None:
        self.view[p, view.group] = view
        if self.first_crash and self.first_crash[0] not in view.members:
            self.without.setdefault((p, view.group), tick)
        if p in view.members:
            self.told.setdefault((view.group, view.number), {})[p] = []

    def delivers(self, p: ProcessId, message: Message) -> None:
        number = self.view[p, message[0]].number
        self.told[message[0], number][p].append(message)

    def view_change_ms(self) -> float | None:
        """None if nobody crashed, or no survivor ever had such a view."""
        came = [tick for (p, _), tick in self.without.items() if p not in self.crashed]
        if self.first_crash is None or not came:
            return None
        return (max(came) - self.first_crash[1]) / TICKS_PER_MS

    def of_survivors(self) -> dict[tuple[GroupId, int], dict[ProcessId, list[Message]]]:
        """Per view of a group, what each of them delivered."""
        return {
            view: {p: story for p, story in stories.items() if p not in self.crashed}
            for view, stories in self.told.items()
        }


def differences_of(log: TraceLog) -> Differences:
    """What survivors of this run differ in."""
    stories = _Stories()
    for p, tick, row in log.rows():
        if isinstance(row, Sent):
            stories.sent.add((row.group, p, row.number))
        elif isinstance(row, View):
            stories.begins(p, row, tick)
        elif isinstance(row, Ended) and row.kind == "crash":
            stories.crashes(p, tick)
        elif type(row) is tuple or isinstance(row, Weighed):
            g, sender, _, _, payload = row.delivery if isinstance(row, Weighed) else row
            stories.delivers(p, (g, sender, unpack(payload)[0]))
    return _compared(stories)


def _compared(stories: _Stories) -> Differences:
    views = stories.of_survivors().values()
    has: dict[ProcessId, set[Message]] = defaultdict(set)
    for told in views:
        for p, story in told.items():
            has[p].update(story)
    lacks: list[Message] = []
    no_prefix = 0
    for told in views:
        longest = max(told.values(), key=len, default=[])
        no_prefix += sum(story != longest[: len(story)] for story in told.values())
        somebody_has = set[Message]().union(*told.values())
        lacks += (m for p in told for m in somebody_has - has[p])
    said = {m for m in stories.sent if m[1] not in stories.crashed}
    vanished = said - set[Message]().union(*has.values())
    change_ms = stories.view_change_ms()
    return Differences(len(set(lacks)), len(lacks), len(vanished), no_prefix, change_ms)
