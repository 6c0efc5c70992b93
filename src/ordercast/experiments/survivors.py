"""What survivors of a crash differ in: messages that only some of them have, and in which order.

A *survivor* is a process that did not crash. Of each view its deliveries are compared with those of
the survivor that got the most: are they the first of the same, in the same order?
"""

from __future__ import annotations

from collections import defaultdict

import msgspec

from ordercast.core.events import View
from ordercast.core.ids import GroupId, ProcessId
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


class _Stories:
    """Follows a log: who delivered what, in which view."""

    def __init__(self) -> None:
        self.view: dict[tuple[ProcessId, GroupId], View] = {}
        self.told: dict[tuple[GroupId, int], dict[ProcessId, list[Message]]] = {}
        self.sent: set[Message] = set()
        self.crashed: set[ProcessId] = set()

    def begins(self, p: ProcessId, view: View) -> None:
        self.view[p, view.group] = view
        if p in view.members:
            self.told.setdefault((view.group, view.number), {})[p] = []

    def delivers(self, p: ProcessId, message: Message) -> None:
        number = self.view[p, message[0]].number
        self.told[message[0], number][p].append(message)

    def of_survivors(self) -> dict[tuple[GroupId, int], dict[ProcessId, list[Message]]]:
        """Per view of a group, what each of them delivered."""
        return {
            view: {p: story for p, story in stories.items() if p not in self.crashed}
            for view, stories in self.told.items()
        }


def differences_of(log: TraceLog) -> Differences:
    """What survivors of this run differ in."""
    stories = _Stories()
    for p, _, row in log.rows():
        if isinstance(row, Sent):
            stories.sent.add((row.group, p, row.number))
        elif isinstance(row, View):
            stories.begins(p, row)
        elif isinstance(row, Ended) and row.kind == "crash":
            stories.crashed.add(p)
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
    return Differences(len(set(lacks)), len(lacks), len(vanished), no_prefix)
