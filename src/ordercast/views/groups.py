"""A group of the cluster, as all nodes know it."""

from __future__ import annotations

from typing import Literal

import msgspec

from ordercast.core.durability import Durability, in_words
from ordercast.core.ids import GroupId
from ordercast.core.protocol import DeliveryLevel

SlowPolicy = Literal["wait", "exclude"]
"""What becomes of a member whose program does not read: all wait for it, or it leaves the group."""


class GroupEntry(msgspec.Struct, frozen=True, array_like=True, repr_omit_defaults=True):
    """One group of the cluster. Its number is the channel of its packets."""

    gid: GroupId
    name: str
    order: str
    protocol: str
    header_version: int  # of that protocol's headers: both sides must read the same
    durability: Durability = None  # how many must hold what is delivered
    delivery_level: DeliveryLevel | None = None  # None: the protocol has none
    slow: SlowPolicy = "wait"  # for a member whose program does not read

    @property
    def promise(self) -> str:
        """How a mismatch is told to people."""
        level = "" if self.delivery_level is None else f"delivery_level {self.delivery_level!r}"
        slow = "" if self.slow == "wait" else f"slow {self.slow!r}"
        parts = (f"protocol {self.protocol!r}", in_words(self.durability), level, slow)
        return f"order {self.order!r} ({', '.join(filter(None, parts))})"
