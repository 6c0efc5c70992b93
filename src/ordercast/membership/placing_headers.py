"""The packets by which the coordinator places groups at sequencers.

Each belongs to the node view, or rather to the last flush: one that comes later is void.
"""

from __future__ import annotations

import msgspec

from ordercast.core.ids import GroupId, ProcessId
from ordercast.machinery.transfer import BookEntry, BookState, LeftEntry
from ordercast.membership.nodes import GroupEntry


class Host(msgspec.Struct, frozen=True, array_like=True):
    """To a sequencer: number this group, which is new."""

    since: int
    group: GroupEntry
    number: int  # its views have higher numbers


class Alter(msgspec.Struct, frozen=True, array_like=True):
    """To a sequencer: these come into the group, and go."""

    since: int
    gid: GroupId
    joined: tuple[ProcessId, ...] = ()
    guests: tuple[ProcessId, ...] = ()
    left: tuple[ProcessId, ...] = ()


class HandOver(msgspec.Struct, frozen=True, array_like=True):
    """To a sequencer: give these groups to that node, all at once."""

    since: int
    gids: tuple[GroupId, ...]
    to: ProcessId


class Inherit(msgspec.Struct, frozen=True, array_like=True):
    """XFER-STATE, to the next sequencer: the book of a group. Its entries follow.

    Number nothing before all of `together` are there: groups that share members are in one order.
    """

    since: int
    group: GroupEntry
    state: BookState
    together: tuple[GroupId, ...]


class InheritEntry(msgspec.Struct, frozen=True, array_like=True):
    """One of them; its body follows."""

    since: int
    gid: GroupId
    entry: BookEntry


class InheritLeft(msgspec.Struct, frozen=True, array_like=True):
    """Some of them whose bodies stay behind."""

    since: int
    gid: GroupId
    entries: tuple[LeftEntry, ...]


class Inherited(msgspec.Struct, frozen=True, array_like=True):
    """XFER-ACK, to the former sequencer and to the coordinator: I number these groups now."""

    since: int
    gids: tuple[GroupId, ...]
    sole: tuple[GroupId, ...] = ()  # of these I alone have delivered something: keep copies
    moves: tuple[int, ...] = ()  # of each group, the hand-overs of its era before this one


class Settled(msgspec.Struct, frozen=True, array_like=True):
    """To the coordinator: all have delivered the view by which these left."""

    since: int
    gid: GroupId
    changes: int  # carried out so far
    left: tuple[ProcessId, ...]


class Load(msgspec.Struct, frozen=True, array_like=True):
    """To the coordinator: requests to this group since the last word, by their senders."""

    since: int
    gid: GroupId
    by_sender: tuple[tuple[ProcessId, int], ...]


class MigrateWish(msgspec.Struct, frozen=True, array_like=True):
    """To the coordinator: let that node number this group, and all that must be with it."""

    gid: GroupId
    to: ProcessId


class DrainWish(msgspec.Struct, frozen=True, array_like=True):
    """To the coordinator: that node is to number nothing any more."""

    pid: ProcessId


__all__ = [
    "PLACING_HEADERS", "Alter", "BookEntry", "BookState", "DrainWish", "HandOver", "Host",
    "Inherit", "InheritEntry", "InheritLeft", "Inherited", "LeftEntry", "Load", "MigrateWish",
    "Settled",
]  # fmt: skip

PLACING_HEADERS: tuple[type[msgspec.Struct], ...] = (
    Host, Alter, HandOver, Inherit, InheritEntry, Inherited, Settled, Load, MigrateWish,
    DrainWish, InheritLeft,
)  # fmt: skip
