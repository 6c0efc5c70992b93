"""Faults in total order by agreement."""

from __future__ import annotations

from ordercast.core.events import Kept, View
from ordercast.machinery.placing import Id, Key, PlacingQueue
from ordercast.protocols.agreed import AgreedOrder

BELOW_ALL = -1_000_000  # a rank is lower than the id of any process, and two ranks differ


class FirstComeFirst(PlacingQueue):
    """Messages with the same number stand in the order in which they came here."""

    def __init__(self) -> None:
        super().__init__()
        self.ranks: dict[Id, int] = {}

    def put(self, id: Id, key: Key, m: bytes) -> None:
        self.ranks[id] = BELOW_ALL + len(self.ranks)
        super().put(id, (key[0], self.ranks[id]), m)

    def fix(self, id: Id, key: Key) -> None:
        super().fix(id, (key[0], self.ranks[id]))


class WithoutATieRule(AgreedOrder):
    """Orders by the agreed number alone, which two messages may share."""

    def on_view(self, view: View) -> None:
        super().on_view(view)
        self.queue = FirstComeFirst()


class SettlesByTheProposalsThereAre(AgreedOrder):
    """In a flush an undecided message gets the highest proposal that some survivor knows of."""

    def settled_order(self, frames: dict[Id, Kept]) -> list[Kept]:
        return sorted(super().settled_order(frames), key=lambda frame: frame.stamp[:2])
