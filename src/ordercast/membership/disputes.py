"""Which nodes say that they do not hear each other, and who of them has to go.

All of it comes from other nodes. So what is not said again expires.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from ordercast.core.ids import ProcessId
from ordercast.core.state import PlainState


class Disputes(PlainState):
    """Who says that it does not hear whom. A word counts for `patience` ticks; a dispute is ripe
    when the word was repeated for as long.

    Who goes: the node that is at odds with the most others. Of just two that are at odds, the
    accuser, so that nobody removes another by its word alone; if each accuses the other, no link is
    left between them, and the younger goes.
    """

    def __init__(self, patience: int) -> None:
        self.patience = patience
        self.words: dict[tuple[ProcessId, ProcessId], tuple[int, int]] = {}  # first, last tick

    def accuse(self, accuser: ProcessId, accused: ProcessId, now: int) -> None:
        first, _ = self.words.get((accuser, accused), (now, now))
        self.words[accuser, accused] = (first, now)

    def expire(self, now: int) -> None:
        self.words = {k: w for k, w in self.words.items() if now - w[1] <= self.patience}

    def accusers(self, accused: ProcessId) -> set[ProcessId]:
        return {accuser for accuser, other in self.words if other == accused}

    def ripe(self) -> set[tuple[ProcessId, ProcessId]]:
        return {k for k, (first, last) in self.words.items() if last - first >= self.patience}

    def is_given_up(self, leader: ProcessId, others: Collection[ProcessId]) -> bool:
        """Do more than half of the others no longer hear the one that leads?"""
        against = {accuser for accuser, accused in self.ripe() if accused == leader}
        return 2 * len(against.intersection(others)) > len(others)

    def who_goes(self, oldest_first: tuple[ProcessId, ...], leader: ProcessId) -> ProcessId | None:
        """As the one that leads sees it."""
        ripe = {pair for pair in self.ripe() if set(pair) <= set(oldest_first)}
        at_odds = Counter(p for pair in {frozenset(pair) for pair in ripe} for p in pair)
        at_odds.pop(leader, None)
        if not at_odds:
            return None
        worst = max(at_odds.values())
        candidates = [p for p in oldest_first if at_odds.get(p) == worst]
        if worst == 1:
            accuser, accused = min(ripe, key=lambda pair: sorted(map(oldest_first.index, pair)))
            answer = (accused, accuser)
            if accused != leader and answer in self.words and answer not in ripe:
                return None  # the other says the same, and began a moment later
            if accused == leader or answer not in ripe:
                return accuser if accuser != leader else accused
            candidates = [p for p in candidates if p in (accuser, accused)]
        return candidates[-1]
