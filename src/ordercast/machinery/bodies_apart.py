"""Bodies from their senders, numbers from the sequencer: a member puts the two together.

<m, id> at a member     hold back <m, id> until its number comes
<id, N> at a member     wait for the body;  if it does not come, fetch it from the sequencer
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.state import PlainState
from ordercast.core.waiting import Awaited, Waiting, WaitingFrame
from ordercast.errors import PeerError
from ordercast.machinery.numbered_queue import NumberedQueue
from ordercast.machinery.numbering import Numbered
from ordercast.machinery.sequenced_waiting import Gaps

FrameKey = tuple[ProcessId, int]


class BodiesApart(PlainState):
    """Of one era of one group: bodies without a number, numbers without a body."""

    def __init__(self, limit: int) -> None:
        self.bodies: dict[FrameKey, bytes] = {}  # held back, without a number
        self.bodiless: dict[FrameKey, tuple[int, Numbered]] = {}  # without a body
        self.limit = limit  # of bodies, and of numbers

    def paired(self, p: ProcessId, n: int, m: bytes) -> tuple[int, Numbered] | None:
        """The body of frame n of p came: its number, if that is here, and both together."""
        numbered = self.bodiless.pop((p, n), None)
        if numbered is None:
            return None
        N, entry = numbered
        return N, msgspec.structs.replace(entry, payload=m)

    def await_body(self, key: FrameKey, N: int) -> None:
        """Number N goes to this frame, whose body will come."""
        if key not in self.bodiless and len(self.bodiless) >= self.limit:
            raise PeerError(f"more than {self.limit} orders without a body")
        self.bodiless[key] = (N, Numbered(*key, b""))

    def hold(self, key: FrameKey, m: bytes, done: Mapping[ProcessId, int]) -> None:
        """Its number will come. `done` are the last frames that were delivered."""
        if len(self.bodies) >= self.limit:
            self._drop_stale(done)
        self.bodies[key] = m

    def _drop_stale(self, done: Mapping[ProcessId, int]) -> None:
        # A body that comes after its entry was fetched gets no number here.
        self.bodies = {(p, n): m for (p, n), m in self.bodies.items() if n > done.get(p, 0)}
        if len(self.bodies) >= self.limit:
            raise PeerError(f"more than {self.limit} bodies without an order")

    def settled(self, key: FrameKey) -> None:
        """The frame has a number and a body."""
        if self.bodies or self.bodiless:
            self.bodies.pop(key, None)
            self.bodiless.pop(key, None)

    # -- what waits, and why ----------------------------------------------------------------------

    def without_body(self, g: GroupId, queue: NumberedQueue, gaps: Gaps) -> Iterator[Waiting]:
        """Numbers that wait for their bodies, and for what is missing before."""
        for number, entry in self._lone_numbers(queue):
            awaits = tuple(gap for N, gap in gaps if number >= N)
            yield Waiting(g, entry.origin, entry.n, awaits, b"")

    def bodiless_frames(self, g: GroupId, queue: NumberedQueue) -> Iterator[WaitingFrame]:
        """The same without the reasons."""
        return ((g, entry.origin, entry.n, b"") for _, entry in self._lone_numbers(queue))

    def _lone_numbers(self, queue: NumberedQueue) -> Iterator[tuple[int, Numbered]]:
        return ((N, entry) for N, entry in self.bodiless.values() if queue.is_missing(N))

    def without_number(
        self, g: GroupId, queue: NumberedQueue, done: Mapping[ProcessId, int]
    ) -> Iterator[WaitingFrame]:
        """Bodies that wait for the sequencer."""
        ordered = {(entry.origin, entry.n) for entry in queue.arrived.values()}
        for (p, n), m in self.bodies.items():
            repeat = (p, n) in ordered or n <= done.get(p, 0)
            if not repeat:
                yield g, p, n, m

    def named(self, g: GroupId, gaps: Mapping[int, Awaited]) -> dict[int, Awaited]:
        """Where the number is here, its body is missing."""
        bodies = {
            N: Awaited("body", g, entry.origin, entry.n) for N, entry in self.bodiless.values()
        }
        return {N: bodies.get(N, gap) for N, gap in gaps.items()}

    # -- always -----------------------------------------------------------------------------------

    def invariants(self) -> None:
        """What must always hold."""
        most = max(len(self.bodies), len(self.bodiless))
        assert most <= self.limit, "there is room for so many"
        assert not self.bodies.keys() & self.bodiless, "a number and its body are put together"
