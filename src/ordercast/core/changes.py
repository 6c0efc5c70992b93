"""Numbers that only rise, and which of them each group has not been told.

A header need not repeat what an earlier frame of its sender in the same group has said. Who gets it
has delivered that frame before, and found the older entries satisfied. So a frame carries only what
changed since the frame before it, and its price follows what happened, not the size of the groups.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

from ordercast.core.ids import GroupId
from ordercast.core.state import PlainState
from ordercast.errors import PeerError

MAX_ENTRIES = 65_536  # that peers can make us keep

K = TypeVar("K", bound=Hashable)


class ChangingVector(PlainState, Generic[K]):
    """Entries by key; an absent one is 0."""

    def __init__(self) -> None:
        self.entries: dict[K, int] = {}
        self.untold: dict[GroupId, dict[K, int]] = {}  # changed since our last frame in the group

    def __getitem__(self, key: K) -> int:
        return self.entries.get(key, 0)

    def check_room(self, more: int) -> None:
        """Is there room for what a header brings?"""
        if len(self.entries) + more > MAX_ENTRIES:
            raise PeerError(f"more than {MAX_ENTRIES} entries of processes and groups")

    def raise_to(self, key: K, number: int) -> None:
        """Take the maximum."""
        if number > self.entries.get(key, 0):
            self.entries[key] = number
            for changes in self.untold.values():
                changes[key] = number

    def begin(self, g: GroupId) -> None:
        """The first frame in g will tell everything."""
        self.untold[g] = dict(self.entries)

    def tell(self, g: GroupId) -> dict[K, int]:
        """What changed since this was asked before."""
        changes = self.untold[g]
        if changes:
            self.untold[g] = {}
        return changes

    def forget_group(self, g: GroupId) -> None:
        """Nothing more is sent to g."""
        self.untold.pop(g, None)

    def clear(self) -> None:
        """All entries are 0 again."""
        self.entries.clear()
        for changes in self.untold.values():
            changes.clear()
