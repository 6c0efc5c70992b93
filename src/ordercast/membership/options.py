"""How a cluster is set up: its delays, its votes, and what it does in a partition."""

from __future__ import annotations

from typing import Literal

import msgspec

Policy = Literal["primary", "merge"]  # what the sides of a partition do


class ClusterOptions(msgspec.Struct, frozen=True):
    """The delays and votes of a cluster. A tick is one heartbeat."""

    heartbeat_ms: int = 250
    suspect_ms: int = 2000
    detector: Literal["heartbeat", "accrual"] = "heartbeat"
    partition: Policy = "primary"
    refound_ms: int = 5_000  # an empty group waits so long for those who may have newer state
    balance: bool = True  # groups move by themselves to where they are numbered best
    electorate: tuple[str, ...] = ()  # names of all voters; the first node of a cluster says it
    max_groups: int = 65_536  # that are founded, as the coordinator sees it
    max_voters: int = 5  # without such a list, so many of the oldest nodes vote

    @property
    def timeout_ticks(self) -> int:
        """Silence of so many ticks is suspicious."""
        return max(2, -(-self.suspect_ms // self.heartbeat_ms))
