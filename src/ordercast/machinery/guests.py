"""The sequencer's book of guests: processes that send to the group and get nothing delivered.

A guest's frames are numbered like a member's. It does not see the numbers, so it is answered with
marks of its own count: so many of your frames are numbered, so many are delivered by all.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping

from ordercast.core.ids import ProcessId
from ordercast.core.state import PlainState


class GuestBook(PlainState):
    """The guests of one era of one group."""

    def __init__(self, guests: Iterable[ProcessId], done: Mapping[ProcessId, int]) -> None:
        self.stable = {p: done.get(p, 0) for p in guests}  # frames up to n: delivered by all
        self.pending: dict[ProcessId, deque[tuple[int, int]]] = {p: deque() for p in self.stable}
        # ... (number, n) of those that are numbered and not stable

    def numbered(self, p: ProcessId, n: int, N: int) -> None:
        """Frame n of p got the number N."""
        if p in self.pending:
            self.pending[p].append((N, n))

    def settle(self, stable: int) -> Iterator[ProcessId]:
        """All have consumed the numbers up to this one: the guests for whom that is news."""
        for p, frames in self.pending.items():
            if frames and frames[0][0] <= stable:
                while frames and frames[0][0] <= stable:
                    _, self.stable[p] = frames.popleft()
                yield p

    def forget(self, p: ProcessId) -> None:
        """p is dead."""
        self.stable.pop(p, None)
        self.pending.pop(p, None)

    def invariants(self) -> None:
        """What must always hold."""
        assert self.stable.keys() == self.pending.keys(), "every guest has both"
        for p, frames in self.pending.items():
            assert all(n > self.stable[p] for _, n in frames), "what is stable is settled"
