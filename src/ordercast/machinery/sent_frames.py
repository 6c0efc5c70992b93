"""The frames that one process sent to a group that has a sequencer, until nothing can go wrong."""

from __future__ import annotations

from itertools import takewhile

from ordercast.core.ids import GroupId
from ordercast.core.output import Output
from ordercast.core.state import PlainState


class SentFrames(PlainState):
    """What this process sent, and how far it has come."""

    def __init__(self, S_first: int) -> None:
        self.S = 0  # frames this process sent
        self.S_first = S_first  # ... before it (last) joined; -1: it may not send
        self.pending: dict[int, bytes] = {}  # frames n, not delivered; of a guest, not stable
        self.numbered = 0  # of a guest: its frames up to this one have numbers

    def add(self, m: bytes) -> int:
        """The next frame, and its n."""
        self.S = n = self.S + 1
        self.pending[n] = m
        return n

    @property
    def settled(self) -> int:
        """All own frames up to this one are not pending any more."""
        return next(iter(self.pending), self.S + 1) - 1

    def unnumbered(self) -> list[int]:
        """Those that, as far as is known here, have no number."""
        return [n for n in self.pending if n > self.numbered]

    def tell_stable(self, g: GroupId, n: int, out: Output) -> None:
        """All have delivered our frames up to n. The application counts those of this stay."""
        out.stable.append((g, n - self.S_first))

    def learn_as_guest(self, g: GroupId, n: int, stable: int, out: Output) -> None:
        """Our frames up to n have numbers, those up to `stable` are delivered by all. Those that
        are not stable are kept: a sequencer may die with the number, and the next one must be
        asked again."""
        if n > self.numbered:
            self.numbered = n
            out.ordered.append((g, n - self.S_first))
        settled = list(takewhile(stable.__ge__, self.pending))  # they stand in order
        for k in settled:
            del self.pending[k]
        if settled:
            self.tell_stable(g, stable, out)

    def invariants(self) -> None:
        """What must always hold."""
        assert self.S_first <= self.S, "counts go on"
        assert all(0 < n <= self.S for n in self.pending), "only what was sent is pending"
        assert 0 <= self.numbered <= self.S, "only what was sent has a number"
