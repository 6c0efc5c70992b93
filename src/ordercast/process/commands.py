"""What a driver tells a process. What it is told stands in `membership.news`."""

from __future__ import annotations

import msgspec

from ordercast.core.ids import GroupId, ProcessId
from ordercast.membership.node_view import NodeEntry
from ordercast.views.groups import GroupEntry
from ordercast.views.headers import Part


class Found(msgspec.Struct, frozen=True):
    """Begin a cluster of this node alone."""


class Seek(msgspec.Struct, frozen=True):
    """Join the cluster of these nodes: any of them will do."""

    contacts: tuple[ProcessId, ...]


class Connected(msgspec.Struct, frozen=True):
    """There is a connection to that node."""

    pid: ProcessId
    name: str


class Broken(msgspec.Struct, frozen=True):
    """The connection to a node broke."""

    pid: ProcessId


class Met(msgspec.Struct, frozen=True):
    """These are nodes of another side of this cluster, which none of this side has met."""

    nodes: tuple[NodeEntry, ...]


class Heard(msgspec.Struct, frozen=True):
    """A node gave a sign of life outside the packets of the cluster."""

    pid: ProcessId


class Join(msgspec.Struct, frozen=True):
    """Get this node into a group."""

    group: GroupEntry
    part: Part
    former: tuple[str, ...] = ()  # nodes of our former side that were in it, and will ask too
    memory: int = 0  # the view of the group that this program remembers; 0: none


class Leave(msgspec.Struct, frozen=True):
    """Get this node out of a group."""

    gid: GroupId


class Depart(msgspec.Struct, frozen=True):
    """Take this node out of the cluster. It is in no group any more."""


class Migrate(msgspec.Struct, frozen=True):
    """Let that node number this group, and all that must be with it."""

    gid: GroupId
    to: ProcessId


class Drain(msgspec.Struct, frozen=True):
    """That node is to number nothing any more, or may number again."""

    pid: ProcessId
    drained: bool = True


class Refound(msgspec.Struct, frozen=True):
    """Of an operator: nobody who is absent from that group is waited for."""

    gid: GroupId


class Forget(msgspec.Struct, frozen=True):
    """Of an operator: these nodes are gone, and count in no vote; none: all that are not here."""

    pids: tuple[ProcessId, ...] = ()


Command = (
    Found
    | Seek
    | Connected
    | Broken
    | Met
    | Heard
    | Join
    | Leave
    | Depart
    | Migrate
    | Drain
    | Refound
    | Forget
)
COMMANDS = (
    Found, Seek, Connected, Broken, Met, Heard, Join, Leave, Depart, Migrate, Drain, Refound,
    Forget,
)  # fmt: skip
