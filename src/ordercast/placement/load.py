"""What groups cost their sequencers, and who asks for it.

Source      000 (Kindberg), section 4.2, leaves the load metric open. Ours counts packets:

    weight(g) = IDLE_WEIGHT + rate(g) x (1 + |g|)     one request in, one copy out per member
    load(h)   = the sum of the weights of the groups sequenced at h

rate(g) is a moving average of its DO-MULTICAST requests per second. A group that is idle counts a
little, so new groups spread over the sequencers before they carry anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.state import PlainState

IDLE_WEIGHT: Final = 1.0  # of a group that nobody uses, in packets per second
NEWEST_SHARE: Final = 0.3  # of the newest window in the moving average
GRAIN: Final = 1024  # weights are multiples of 1/GRAIN: their sums are exact, in any order
LEAST_REQUESTS: Final = 32  # in a window; with fewer no sender has a majority


class Load(PlainState):
    """The weight of every group, and the sum of the weights at every sequencer."""

    def __init__(self) -> None:
        self.rates: dict[GroupId, float] = {}  # requests per second, averaged
        self.weights: dict[GroupId, float] = {}
        self.loads: dict[ProcessId, float] = {}  # only of those that have groups

    def measured(self, g: GroupId, rate: float) -> None:
        """So many requests per second in the window that ended. Weigh the group after this."""
        before = self.rates.get(g, 0.0)
        self.rates[g] = before + NEWEST_SHARE * (rate - before)

    def weigh(self, g: GroupId, size: int, host: ProcessId) -> None:
        """The group has `size` members and is sequenced at `host`."""
        weight = IDLE_WEIGHT + self.rates.get(g, 0.0) * (1 + size)
        self.lift(g, host)
        self.weights[g] = round(weight * GRAIN) / GRAIN
        self.loads[host] = self.loads.get(host, 0.0) + self.weights[g]

    def lift(self, g: GroupId, host: ProcessId) -> None:
        """The group is not at `host`; it keeps its rate."""
        if g in self.weights:
            self.loads[host] -= self.weights.pop(g)
            if not self.loads[host]:
                del self.loads[host]

    def forget(self, g: GroupId, host: ProcessId) -> None:
        """The group exists no more."""
        self.lift(g, host)
        self.rates.pop(g, None)


class Requests(PlainState):
    """Who sent how many requests to each group, in the last two windows at its sequencer."""

    def __init__(self) -> None:
        self.last: dict[GroupId, dict[ProcessId, int]] = {}
        self.before: dict[GroupId, dict[ProcessId, int]] = {}

    def measured(self, g: GroupId, by_sender: Mapping[ProcessId, int]) -> None:
        """A window ended."""
        if g in self.last:
            self.before[g] = self.last[g]
        self.last[g] = dict(by_sender)

    def forget(self, g: GroupId) -> None:
        """The group is gone, or elsewhere: begin again."""
        self.last.pop(g, None)
        self.before.pop(g, None)

    def known(self, part: Iterable[GroupId]) -> bool:
        """Have two windows passed for each of these groups since it was placed?"""
        return self.before.keys() >= set(part)

    def majorities(self, part: Iterable[GroupId]) -> list[ProcessId | None]:
        """Who sent more than half, in the last window and in the one before."""
        part = list(part)
        return [_majority(window, part) for window in (self.last, self.before)]

    def total(self, part: Iterable[GroupId]) -> int:
        """Requests to these groups in the last window."""
        return sum(sum(self.last.get(g, {}).values()) for g in part)


def _majority(
    window: Mapping[GroupId, Mapping[ProcessId, int]], part: Iterable[GroupId]
) -> ProcessId | None:
    sent: Counter[ProcessId] = Counter()
    for g in part:
        sent.update(window.get(g, {}))
    total = sent.total()
    if total < LEAST_REQUESTS:
        return None
    return next((p for p, n in sent.items() if 2 * n > total), None)
