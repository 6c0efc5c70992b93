"""What a leader plans for a group, and which groups must change together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ordercast.core.events import Change, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.numbers import next_view_number
from ordercast.core.state import PlainState
from ordercast.core.whereabouts import Subgroups
from ordercast.membership.headers import NextView


class Plan(PlainState):
    """The next view of one group, and who is to be told of it."""

    def __init__(self, view: View) -> None:
        self.view = view  # in force
        self.members = view.members
        self.guests = view.guests
        self.audience = view.senders  # who gets the INSTALL: old, leaving, new

    def apply(self, change: Change) -> bool:
        """Somebody comes or goes; False if that changes nothing."""
        before = (self.members, self.guests, self.audience)
        gone = (*change.left, *change.dead)
        members = [p for p in self.members if p not in gone]
        members += [p for p in change.joined if p not in members]
        guests = [p for p in self.guests if p not in gone and p not in members]
        guests += [p for p in change.guests if p not in members and p not in guests]
        told = [p for p in self.audience if p not in change.dead]
        told += [p for p in (*members, *guests) if p not in told]
        self.members, self.guests, self.audience = tuple(members), tuple(guests), tuple(told)
        return before != (self.members, self.guests, self.audience)

    @property
    def survivors(self) -> tuple[ProcessId, ...]:
        """Those of the view in force who take part in its end: they report."""
        return tuple(p for p in self.audience if p in self.view.senders)

    @property
    def dead(self) -> tuple[ProcessId, ...]:
        """Those of the view in force who do not."""
        return tuple(p for p in self.view.senders if p not in self.audience)

    def next_view(self, stride: int, subgroups: Subgroups = ()) -> NextView:
        """A new era; a new number only if the members differ."""
        number = self.view.number
        if self.members != self.view.members:
            number = next_view_number(number, self.view.leader, stride)
        group, era = self.view.group, self.view.era + 1
        return NextView(group, number, self.members, self.guests, era, subgroups)


def hanging_together(
    changed: Iterable[GroupId], processes: Mapping[GroupId, Iterable[ProcessId]]
) -> list[GroupId]:
    """The groups connected to these by shared processes, in ascending order."""
    found = set(changed)
    reached: set[ProcessId] = set()
    grew = True
    while grew:
        reached.update(*(processes[g] for g in found))
        more = {g for g, who in processes.items() if g not in found and not reached.isdisjoint(who)}
        found |= more
        grew = bool(more)
    return sorted(found)
