"""What the agreement tells a driver: how its node stands in the cluster."""

from __future__ import annotations

import msgspec

from ordercast.core.ids import GroupId, ProcessId
from ordercast.membership.node_view import NodeView, ViewId


class Installed(msgspec.Struct, frozen=True):
    """A node view is in force."""

    view: NodeView
    excluded: tuple[ProcessId, ...] = ()  # were in the one before, and did not leave


class Blocked(msgspec.Struct, frozen=True):
    """This side is no majority: nothing is sent or delivered until the missing are back."""

    view: int
    missing: tuple[ProcessId, ...]


class Resumed(msgspec.Struct, frozen=True):
    """Enough are back."""


class Out(msgspec.Struct, frozen=True):
    """The others went on without this node, or it has left."""

    view: int
    by: ProcessId
    fenced: bool = False  # a later generation of the cluster goes on: this one was given up


class Dissolved(msgspec.Struct, frozen=True):
    """This side has ended in order; its nodes go over to the side of that node."""

    into: ProcessId
    former: tuple[str, ...]  # names of the nodes of this side


class Split(msgspec.Struct, frozen=True):
    """A node to which there is a connection is in a cluster of its own, which never was a side of
    this one, or was recovered without it. Only people can say which of the two should go on."""

    pid: ProcessId
    name: str
    view: ViewId  # that it has


class Mistaken(msgspec.Struct, frozen=True):
    """A group that was asked for is not to be had under this number: the coordinator that gave it
    is gone, and another group has the number, or this group another one."""

    group: GroupId


News = Installed | Blocked | Resumed | Out | Dissolved | Split | Mistaken
