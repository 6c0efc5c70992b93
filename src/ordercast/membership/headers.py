"""The packets of a view change."""

from __future__ import annotations

import msgspec

from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.whereabouts import Subgroups


class Propose(msgspec.Struct, frozen=True, array_like=True):
    """These eras are to come: stop sending in their groups, and report."""

    attempt: int
    eras: tuple[tuple[GroupId, int], ...]


class Unstable(msgspec.Struct, frozen=True, array_like=True):
    """One unstable frame on its way to the leader, or one of the union on its way back."""

    attempt: int
    origin: ProcessId
    n: int
    stamp: tuple[int, ...]


class Report(msgspec.Struct, frozen=True, array_like=True):
    """So many frames are unstable here; each comes in a packet of its own, in its group."""

    attempt: int
    frames: int
    mark: int  # of this process's numbers, where the protocol needs it


class NextView(msgspec.Struct, frozen=True, array_like=True, repr_omit_defaults=True):
    """A view that begins."""

    group: GroupId
    number: int
    members: tuple[ProcessId, ...]
    guests: tuple[ProcessId, ...]
    era: int
    subgroups: Subgroups = ()  # where the protocol has any


class Install(msgspec.Struct, frozen=True, array_like=True):
    """These views will begin. Say so when the union of so many frames is here."""

    attempt: int
    frames: int
    start: int  # the highest mark that was reported
    views: tuple[NextView, ...]


class Ready(msgspec.Struct, frozen=True, array_like=True):
    """To the leader: the union is here."""

    attempt: int


class Go(msgspec.Struct, frozen=True, array_like=True):
    """All have the union: deliver it, and begin the views."""

    attempt: int


MEMBERSHIP_HEADERS: tuple[type[msgspec.Struct], ...] = (
    Go, Install, Propose, Ready, Report, Unstable,
)  # fmt: skip
