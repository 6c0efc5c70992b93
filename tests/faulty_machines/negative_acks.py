"""Faults in reliable multicast by negative acknowledgements, as the slide prints it."""

from __future__ import annotations

from collections.abc import Iterator

from ordercast.core.ids import GroupId, ProcessId
from ordercast.protocols.nak import NakMulticast


class TakesTheNextForALoss(NakMulticast):
    """S > R is a loss, S = R + 1 too: the next message waits for itself, and is asked for."""

    def take_in(self, g: GroupId, q: ProcessId, s: int, m: bytes) -> None:
        if q == self.me:
            super().take_in(g, q, s, m)
            return
        self.store[q][s] = m
        self.exists(g, q, s)
        self.missed(g, q)

    def missing(self, q: ProcessId) -> Iterator[int]:
        return iter(range(self.R[q] + 1, self.top[q] + 1))


class NeverTellsItsStatus(NakMulticast):
    """Marks ride on messages only: a lost last message leaves no gap to see."""

    def _tell(self, g: GroupId) -> None:
        return


class AsksTheSenderAlone(NakMulticast):
    """Asks the sender, again and again; a dead one does not answer."""

    def ask(self, g: GroupId, q: ProcessId) -> None:
        if q in self.tries:
            self.tries[q] = 0
        super().ask(g, q)
