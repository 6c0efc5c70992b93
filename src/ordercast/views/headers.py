"""The packets by which groups change. They travel on the channel of the cluster.

Every packet of a change carries the *term*: the number of the node view since which nobody has
gone. A packet of an older term is void, one of a later term waits for its node view.
"""

from __future__ import annotations

from functools import cached_property
from typing import Literal

import msgspec

from ordercast.core.changing import End, Held
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.waiting import NOBODY
from ordercast.core.whereabouts import Subgroups
from ordercast.views.groups import GroupEntry

Part = Literal["member", "guest"]


class Absent(msgspec.Struct, frozen=True, array_like=True):
    """A member that went without a word: it may come back with a newer state than anybody has."""

    name: str
    incarnation: int
    view: int  # the last one that it was in


class Row(msgspec.Struct, frozen=True, array_like=True, dict=True):
    """One group in the directory, the same at all nodes."""

    entry: GroupEntry
    number: int  # of its view; it rises for ever
    era: int  # rises with every change of the group
    members: tuple[ProcessId, ...]
    guests: tuple[ProcessId, ...]  # where guests are part of the view
    leader: ProcessId  # numbers its frames, where one process does
    absent: tuple[Absent, ...] = ()
    subgroups: Subgroups = ()  # of its members, where the protocol has any

    @cached_property
    def concerned(self) -> tuple[ProcessId, ...]:
        """All that take part in a change of it."""
        leader = () if self.leader == NOBODY else (self.leader,)
        return tuple(dict.fromkeys((*self.members, *self.guests, *leader)))


class Next(msgspec.Struct, frozen=True, array_like=True):
    """What a change does to one group."""

    row: Row  # of the era that begins
    end: End  # of the era that ends


class Change(msgspec.Struct, frozen=True, array_like=True):
    """A change of some groups that hang together. Changes are numbered for the whole cluster."""

    number: int
    name: tuple[int, int]  # (term, attempt) that decided it
    groups: tuple[Next, ...]
    who: tuple[ProcessId, ...]  # takes part: old and new members, guests, leaders; and who votes


class WantIn(msgspec.Struct, frozen=True, array_like=True):
    """To the coordinator, until it is so: I want to be in that group."""

    group: GroupEntry
    part: Part
    former: tuple[str, ...] = ()  # nodes of our former side that were in it, and will ask too
    memory: int = 0  # the view of the group that this process still remembers; 0: none


class WantOut(msgspec.Struct, frozen=True, array_like=True, repr_omit_defaults=True):
    """To the coordinator, until it is so: I want to be out of that group."""

    gid: GroupId
    number: int = 0  # of a wish that the coordinator is to confirm; 0: the next view tells


class LeaveConfirmed(msgspec.Struct, frozen=True, array_like=True):
    """From the coordinator, to one that is out of that group and wants to be: no change that is
    under way lets it in."""

    term: int
    gid: GroupId
    number: int  # of its wish


class WantMoved(msgspec.Struct, frozen=True, array_like=True):
    """To the coordinator: let that node number this group, and all that must be with it."""

    gid: GroupId
    to: ProcessId


class WantDrained(msgspec.Struct, frozen=True, array_like=True):
    """To the coordinator: let that node number nothing any more; or let it number again."""

    pid: ProcessId
    drained: bool = True


class WantRefounded(msgspec.Struct, frozen=True, array_like=True):
    """To the coordinator: nobody who is absent from that group is waited for any more."""

    gid: GroupId


class Load(msgspec.Struct, frozen=True, array_like=True):
    """To the coordinator: what this node numbered since its last word, by group and sender."""

    counts: tuple[tuple[GroupId, ProcessId, int], ...]


class Stop(msgspec.Struct, frozen=True, array_like=True):
    """From the coordinator: stop these groups, and report."""

    term: int
    attempt: int
    scope: tuple[GroupId, ...]
    anew: bool = False  # the first of a term: say what was installed and prepared


class Report(msgspec.Struct, frozen=True, array_like=True):
    """To the coordinator: what this node holds. No bodies, no contexts."""

    term: int
    attempt: int
    done: int  # the last change that is installed here
    newest: Change | None  # ... itself
    prepared: Change | None  # for which everything is here
    stopped: tuple[GroupId, ...]  # groups that this node numbers and that are stopped
    held: tuple[tuple[GroupId, Held], ...]


class Plan(msgspec.Struct, frozen=True, array_like=True):
    """From the coordinator: fetch what you lack up to the ends, and say so."""

    term: int
    attempt: int
    change: Change


class Ready(msgspec.Struct, frozen=True, array_like=True):
    """To the coordinator: everything is here."""

    term: int
    attempt: int


class Install(msgspec.Struct, frozen=True, array_like=True):
    """From the coordinator to all: the change is decided."""

    term: int
    change: Change


class Installed(msgspec.Struct, frozen=True, array_like=True):
    """To the coordinator, from who took part: it is installed here."""

    term: int
    number: int


class AskRows(msgspec.Struct, frozen=True, array_like=True):
    """From a new coordinator, to one that knows more: send me the directory."""

    term: int


class Rows(msgspec.Struct, frozen=True, array_like=True, repr_omit_defaults=True):
    """To one that has no directory, or an old one: all of it."""

    term: int
    number: int  # of the last change in it
    newest: Change | None  # ... itself: the next coordinator may need it for others
    rows: tuple[Row, ...]
    floor: int = 0  # no group that is not among them has come to a higher era


CHANGE_HEADERS: tuple[type[msgspec.Struct], ...] = (
    WantIn, WantOut, WantMoved, WantDrained, WantRefounded, Load, Stop, Report, Plan, Ready,
    Install, Installed, AskRows, Rows, LeaveConfirmed,
)  # fmt: skip
