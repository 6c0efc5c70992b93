"""The barrier of one domain: its deliveries wait here while a joiner of theirs waits for its state.

Only what comes after the joiner's first view waits, and only in that domain: all its groups, if its
protocol keeps the order across groups; else the one group. Otherwise a message of another group
could be handed over before one of this group that it depends on.

Two joins may wait at once. What lies between the two first views passes when the first has its
state. Members of a domain see its views in one order, so no two nodes wait for each other.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ordercast.runtime.membership import Membership, Parcel


class StateBarrier:
    """On the way of deliveries to the streams."""

    def __init__(self) -> None:
        self.parcels: deque[Parcel] = deque()  # behind the first view of one that waits
        self._waiting: set[Membership] = set()  # joined, or about to be, without their state

    def wait(self, member: Membership) -> None:
        """From its first view on nothing passes, until `admit`."""
        self._waiting.add(member)

    def put(self, parcel: Parcel) -> None:
        """One more delivery: to its stream, or behind those that wait."""
        if self.parcels or (self._waiting and parcel[0] in self._waiting):
            self.parcels.append(parcel)
        else:
            parcel[0].seat.inbox.put(parcel)

    def open(self) -> None:
        """The node is out: what is in order passes, but nothing of those that have no state."""
        for member in tuple(self._waiting):
            member.muted = True
            self.admit(member)

    def admit(self, member: Membership) -> None:
        """It has its state, or needs none any more."""
        self._waiting.discard(member)
        while self.parcels and self.parcels[0][0] not in self._waiting:
            parcel = self.parcels.popleft()
            parcel[0].seat.inbox.put(parcel)
