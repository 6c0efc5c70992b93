"""The sequencer's book of guests: processes that send to the group and get nothing delivered.

A guest's frames are numbered like a member's. It does not see the numbers, so it is answered with
marks of its own count: so many of your frames are numbered, so many are delivered by all. It must
know who the members are, so it gets every view, again and again until it says that it has it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping

from ordercast.core.ids import ProcessId
from ordercast.core.state import PlainState
from ordercast.machinery.numbering import ViewEntry


class GuestBook(PlainState):
    """The guests of one era of one group."""

    def __init__(self, guests: Iterable[ProcessId], done: Mapping[ProcessId, int]) -> None:
        self.stable = {p: done.get(p, 0) for p in guests}  # frames up to n: delivered by all
        self.pending: dict[ProcessId, deque[tuple[int, int]]] = {p: deque() for p in self.stable}
        # ... (number, n) of those that are numbered and not stable
        self.untold: dict[ProcessId, tuple[ViewEntry, ...]] = {}  # views that p did not confirm

    def change(self, entry: ViewEntry) -> None:
        """A view is numbered: these are the guests now; all of them, and those who go, are told."""
        last = dict(entry.last)
        told = {*self.stable, *entry.guests} - {*entry.members}
        self.untold = {p: v for p, v in self.untold.items() if p not in entry.members}
        for p in sorted(told):
            # Who goes must have come: it may not have heard of that yet.
            before = () if p in entry.guests else self.untold.get(p, ())[-1:]
            self.untold[p] = (*before, entry)
        self.stable = {p: self.stable.get(p, last.get(p, 0)) for p in entry.guests}
        self.pending = {p: self.pending.get(p, deque()) for p in entry.guests}

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

    def confirmed(self, p: ProcessId, N: int) -> None:
        """p has the view of this number."""
        left = tuple(entry for entry in self.untold.pop(p, ()) if entry.N > N)
        if left:
            self.untold[p] = left

    def forget(self, p: ProcessId) -> None:
        """p is dead."""
        for table in (self.stable, self.pending, self.untold):
            table.pop(p, None)
