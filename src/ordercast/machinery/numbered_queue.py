"""The frames of a group that have numbers, at one member: held back, delivered, forgotten.

number N is here           hold it back until N = R + 1
it is in turn              deliver it;  R := N;  keep it until it is stable
the application took it    what it took may be acknowledged
stable(N) is told          forget the numbers up to N
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.output import Output
from ordercast.core.protocol import Options
from ordercast.core.state import PlainState
from ordercast.errors import PeerError
from ordercast.machinery.numbering import Numbered


class NumberedQueue(PlainState):
    """What a member has of one group, by number."""

    def __init__(self, me: ProcessId, options: Options) -> None:
        self.me = me
        self.options = options
        self.R = 0  # last number delivered here
        self.top = 0  # highest number known to be given
        self.stable = 0  # numbers up to here are delivered by all
        self.arrived: dict[int, Numbered] = {}  # numbered, not in turn yet
        self.kept: dict[int, Numbered] = {}  # delivered here, not known stable
        self.own: deque[tuple[int, int]] = deque()  # (number, n) of own frames, not stable
        self.handed: deque[int] = deque()  # numbers delivered, not consumed yet
        self.taken = 0  # last number consumed by the application
        self.acked = 0  # ... and told to the sequencer

    def start_after(self, number: int) -> None:
        """The next number expected here is the one after this."""
        self.R = self.top = self.stable = self.taken = self.acked = number
        self.arrived, self.kept = {}, {}
        self.handed = deque(0 for _ in self.handed)  # of the era before: nobody waits for it

    def deliver(self, g: GroupId, entry: Numbered, out: Output) -> None:
        """Deliver the frame that is in turn;  R := N;  keep it until it is stable."""
        self.R = N = self.R + 1
        self.kept[N] = entry
        out.deliveries.append((g, entry.origin, entry.n, N, entry.payload))
        if entry.origin == self.me:
            self.own.append((N, entry.n))
        if self.options.driver_consumes:
            self.handed.append(N)
        else:
            self.taken = N

    def consume(self, frames: int) -> None:
        """The application took so many more."""
        for _ in range(frames):
            self.taken = max(self.taken, self.handed.popleft())

    def settle(self, stable: int) -> int:
        """All have consumed the numbers up to this one: forget them. The last own frame among them,
        or 0."""
        if stable > self.taken:
            raise PeerError(f"number {stable} is called stable, but was not acknowledged here")
        for N in range(self.stable + 1, stable + 1):
            self.kept.pop(N, None)
        self.stable = stable
        n = 0
        while self.own and self.own[0][0] <= stable:
            _, n = self.own.popleft()
        return n

    def unstable(self) -> dict[int, Numbered]:
        """What some member may lack."""
        return {**self.kept, **self.arrived}

    def missing(self) -> Iterator[int]:
        """Numbers that were given, and are not here."""
        return (N for N in range(self.R + 1, self.top + 1) if N not in self.arrived)

    def is_missing(self, N: int) -> bool:
        """Is this number known to be given, and not here?"""
        return self.R < N <= self.top and N not in self.arrived

    def invariants(self) -> None:
        """What must always hold."""
        assert self.stable <= self.taken <= self.R, "stable is what was taken here, and by all"
        assert self.acked <= self.taken, "only what was taken is acknowledged"
        assert self.R + 1 not in self.arrived, "what is in turn is delivered"
        assert all(self.R < N for N in self.arrived), "what is delivered waits no more"
        assert len(self.kept) == self.R - self.stable, "what may be unstable is kept"
        assert all(self.stable < N for N, _ in self.own), "what is stable waits no more"
