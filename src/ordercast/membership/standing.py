"""What a driver tells the cluster machine, and what that tells the driver."""

from __future__ import annotations

from typing import Literal

import msgspec

from ordercast.core.ids import GroupId, ProcessId
from ordercast.membership.cluster_headers import Part
from ordercast.membership.nodes import GroupEntry, NodeView

Policy = Literal["primary", "merge"]


class ClusterOptions(msgspec.Struct, frozen=True):
    """The delays of a cluster. A tick is one heartbeat."""

    heartbeat_ms: int = 250
    suspect_ms: int = 2000
    detector: Literal["heartbeat", "accrual"] = "heartbeat"
    partition: Policy = "primary"

    balance: bool = True  # groups move by themselves to where they are numbered best

    @property
    def timeout_ticks(self) -> int:
        """Silence of so many ticks is suspicious."""
        return max(2, -(-self.suspect_ms // self.heartbeat_ms))


# -- from the driver ------------------------------------------------------------------------------


class Found(msgspec.Struct, frozen=True):
    """Begin a cluster of this node alone."""


class GetIn(msgspec.Struct, frozen=True):
    """Join the cluster of these nodes: any of them will do."""

    contacts: tuple[ProcessId, ...]


class Ask(msgspec.Struct, frozen=True):
    """Get this node into a group that is open here."""

    group: GroupEntry
    part: Part
    former: tuple[str, ...] = ()


class Quit(msgspec.Struct, frozen=True):
    """Get this node out of a group."""

    gid: GroupId


class GoAway(msgspec.Struct, frozen=True):
    """Take this node out of the cluster. It is in no group any more."""


class Broken(msgspec.Struct, frozen=True):
    """The connection to a node broke."""

    pid: ProcessId


class Migrate(msgspec.Struct, frozen=True):
    """Let that node number this group, and all that must be with it."""

    gid: GroupId
    to: ProcessId


class Drain(msgspec.Struct, frozen=True):
    """That node is to number nothing any more."""

    pid: ProcessId


Command = Found | GetIn | Ask | Quit | GoAway | Broken | Migrate | Drain
COMMANDS = (Found, GetIn, Ask, Quit, GoAway, Broken, Migrate, Drain)


# -- to the driver --------------------------------------------------------------------------------


class Installed(msgspec.Struct, frozen=True):
    """A node view is in force."""

    view: NodeView
    excluded: tuple[ProcessId, ...] = ()  # were in the one before, and did not leave


class Blocked(msgspec.Struct, frozen=True):
    """This side is no majority: nothing is sent or delivered until the missing are back."""

    view: int
    missing: tuple[ProcessId, ...]


class Resumed(msgspec.Struct, frozen=True):
    """Enough are back; the view that follows goes on."""


class Out(msgspec.Struct, frozen=True):
    """The others went on without this node, or it has left."""

    view: int
    by: ProcessId


class Dissolved(msgspec.Struct, frozen=True):
    """This side has ended in order; its nodes go over to the side of that node."""

    into: ProcessId
    former: tuple[str, ...]  # names of the nodes of this side


News = Installed | Blocked | Resumed | Out | Dissolved
