"""What a node is in its cluster: the one that leads, or one that follows. Both offer the same."""

from __future__ import annotations

from typing import Protocol

from ordercast.core.ids import GroupId, ProcessId
from ordercast.runtime.control import Control, GroupEntry
from ordercast.transport.tcp import Connection


class Role(Protocol):
    """How a node takes part in the management of its cluster."""

    async def enter(self, name: str, order: str, protocol: str | None) -> GroupEntry:
        """The group of that name, made if there is none; `OrderMismatch` if it is another one."""

    def prepared(self, gid: GroupId) -> None:
        """This node can read packets of the group: its first view may come."""

    def leave(self, gid: GroupId) -> None:
        """This node wants to be out of the group's next view."""

    def handle(self, conn: Connection, pid: ProcessId | None, message: Control) -> None:
        """A control message from another node, or from somebody who is no node yet."""

    def lost(self, pid: ProcessId, reason: str) -> None:
        """The connection to that node broke."""

    def unbound_closed(self, conn: Connection, reason: str) -> None:
        """A connection that was nobody's is gone."""
