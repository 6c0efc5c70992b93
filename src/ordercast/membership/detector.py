"""Who is believed to be dead: silence counted in ticks.

Source      the accrual detector is Hayashibara, Defago, Yared, Katayama: "The phi accrual failure
            detector" (2004), with arrivals counted in ticks instead of read off a clock.
Guarantees  a watched peer that is silent for ever is suspected at last (completeness). A peer that
            lives may be suspected wrongly: no timeout can rule that out.
Needs       the owner calls `tick` every heartbeat interval and every peer says something as often.
Costs       one counter per peer; the accrual detector also keeps the last intervals of each.

    something comes from p         silence[p] := 0
    a tick                         silence[p] := silence[p] + 1 for each p;
                                   suspect p if silence[p] has reached the limit of p
    the connection to p breaks, or another node suspects p        suspect p

No clock is read. A process that was stopped for a minute wakes to one late tick, not to a thousand:
its peers' silence has grown by one, what they sent meanwhile is read before the next tick, and so
it suspects nobody at once. A tick is thus never worth more than one interval.

A suspicion stays until the owner lifts it (`trust`) or no longer watches the peer. Hearing from p
ends its silence but not the suspicion: others may have been told, and a view change may be running.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from math import erfc, inf, log10, sqrt
from typing import Literal

from ordercast.core.ids import ProcessId
from ordercast.core.state import PlainState

MIN_TICKS = 2  # after one tick without a word, the word may only be late
WINDOW = 100  # intervals remembered per peer
WARM_UP = 10  # with fewer intervals than this, the plain timeout holds
THRESHOLD = 8.0  # phi: a peer that behaves as observed is suspected wrongly once in 10**8 intervals
LEAST_DEVIATION = 0.5  # ticks: a very regular peer may still be late by a part of one
LONGEST = 2  # timeouts: however irregular the peer, it is suspected after this


class Detector(PlainState):
    """The same timeout for every peer."""

    def __init__(self, *, timeout_ticks: int) -> None:
        if timeout_ticks < MIN_TICKS:
            raise ValueError(f"timeout_ticks={timeout_ticks} must be at least {MIN_TICKS}")
        self.timeout_ticks = timeout_ticks
        self.silence: dict[ProcessId, int] = {}  # ticks since each watched peer was heard
        self.suspected: set[ProcessId] = set()  # always among the watched

    def watch(self, peers: Iterable[ProcessId]) -> None:
        """From now on exactly these are watched; what was known of those who stay is kept."""
        self.silence = {p: self.silence.get(p, 0) for p in peers}
        self.suspected &= self.silence.keys()

    def heard(self, p: ProcessId) -> None:
        """Something came from p. This does not lift a suspicion."""
        if p in self.silence:
            self.silence[p] = 0

    def broken(self, p: ProcessId) -> None:
        """The connection to p broke: its host said so, there is nothing to wait for."""
        self._suspect(p)

    def told(self, p: ProcessId) -> None:
        """Another node suspects p. Whoever does not join in would hold the view change up."""
        self._suspect(p)

    def tick(self) -> tuple[ProcessId, ...]:
        """One heartbeat interval is over: those now suspected because of their silence."""
        for p in self.silence:
            self.silence[p] += 1
        late = sorted(p for p in self.silence if p not in self.suspected and self.is_late(p))
        self.suspected.update(late)
        return tuple(late)

    def trust(self, p: ProcessId) -> None:
        """p turned out to live: its silence begins anew."""
        self.suspected.discard(p)
        if p in self.silence:
            self.silence[p] = 0

    def silent_for(self, p: ProcessId) -> int:
        """Ticks since p was heard, or since it is watched; 0 if it is not."""
        return self.silence.get(p, 0)

    def is_late(self, p: ProcessId) -> bool:
        """Whether the silence of this watched peer has reached its limit."""
        return self.silence[p] >= self.timeout_ticks

    def _suspect(self, p: ProcessId) -> None:
        if p in self.silence:
            self.suspected.add(p)


class AccrualDetector(Detector):
    """A timeout for each peer that follows how regularly it was heard.

    Until enough intervals were seen, and for a peer that never spoke, the plain timeout holds.
    """

    def __init__(self, *, timeout_ticks: int) -> None:
        super().__init__(timeout_ticks=timeout_ticks)
        self.intervals: dict[ProcessId, deque[int]] = {}  # in ticks, of each peer heard so far

    def watch(self, peers: Iterable[ProcessId]) -> None:
        """From now on exactly these are watched; what was known of those who stay is kept."""
        super().watch(peers)
        self.intervals = {p: seen for p, seen in self.intervals.items() if p in self.silence}

    def heard(self, p: ProcessId) -> None:
        """An arrival: the ticks since the one before are an interval. Several in a tick are one.

        The pause that led to a suspicion counts too, up to the longest one that is waited for:
        a peer that pauses now and then is given more time.
        """
        interval = self.silent_for(p)
        super().heard(p)
        if p not in self.silence:
            return
        if p not in self.intervals:  # there was no arrival before
            self.intervals[p] = deque(maxlen=WINDOW)
        elif interval:
            self.intervals[p].append(min(interval, self.longest))

    @property
    def longest(self) -> int:
        """Ticks of silence after which any peer is suspected."""
        return LONGEST * self.timeout_ticks

    def is_late(self, p: ProcessId) -> bool:
        """Whether silence this long is too unlikely for a peer that lives."""
        silence = self.silence[p]
        if silence < MIN_TICKS or silence >= self.longest:
            return silence >= MIN_TICKS
        if len(self.intervals.get(p, ())) < WARM_UP:
            return super().is_late(p)
        return self.phi(p) >= THRESHOLD

    def phi(self, p: ProcessId) -> float:
        """-log10 of the chance that the next word of p takes even longer than it has by now.

        0 as long as nothing is known of p. Intervals are taken as normally distributed.
        """
        seen = self.intervals.get(p)
        if not seen:
            return 0.0
        mean = sum(seen) / len(seen)
        variance = sum((interval - mean) ** 2 for interval in seen) / len(seen)
        deviation = max(sqrt(variance), LEAST_DEVIATION)
        later = erfc((self.silence[p] - mean) / (deviation * sqrt(2))) / 2
        return -log10(later) if later else inf


def detector(kind: Literal["heartbeat", "accrual"], timeout_ticks: int) -> Detector:
    """The detector that this option of a node names."""
    chosen = {"heartbeat": Detector, "accrual": AccrualDetector}[kind]
    return chosen(timeout_ticks=timeout_ticks)
