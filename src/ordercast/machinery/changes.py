"""Numbers that only rise, and which of them each group has not been told.

A header need not repeat what an earlier frame in the same group has said, of the same sender or of
one that its sender delivered. Who gets it delivers that frame before, and finds those entries
satisfied. So a frame carries only what is news in its group, and its price follows what happened,
not the size of the groups.
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
        self.untold: dict[GroupId, dict[K, int]] = {}  # what is news in the group

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

    def was_told(self, g: GroupId, key: K, number: int) -> None:
        """A frame that was delivered in g says so: it is no news there, unless it rose since."""
        changes = self.untold[g]
        if changes.get(key, number + 1) <= number:
            del changes[key]

    def begin(self, g: GroupId) -> None:
        """The first frame in g will tell everything."""
        self.untold[g] = dict(self.entries)

    def tell(self, g: GroupId) -> dict[K, int]:
        """What is news in g, and from now on is not."""
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
