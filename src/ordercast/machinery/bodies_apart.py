"""Bodies from their senders, numbers from the sequencer: a member puts the two together.

<m, id> at a member     hold back <m, id> until its number comes
<id, N> at a member     wait for the body;  if it does not come, fetch it from the sequencer
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ordercast.core.events import View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import Options
from ordercast.core.waiting import Awaited, Holdings, Waiting, WaitingFrame
from ordercast.errors import PeerError
from ordercast.machinery.numbering import Numbered
from ordercast.machinery.sequencer import SequencedProtocol


class BodiesApart(SequencedProtocol):
    """One group whose bodies may come apart from their numbers."""

    def __init__(self, me: ProcessId, options: Options | None = None) -> None:
        super().__init__(me, options)
        self.bodies: dict[tuple[ProcessId, int], bytes] = {}  # held back, without a number
        self.bodiless: dict[tuple[ProcessId, int], tuple[int, Numbered]] = {}  # without a body

    def on_view(self, view: View) -> None:
        super().on_view(view)
        if not view.start:
            self.bodies, self.bodiless = {}, {}

    def take_body(self, g: GroupId, p: ProcessId, n: int, m: bytes) -> None:
        """Frame n of p. Its number is here, or will come."""
        numbered = self.bodiless.pop((p, n), None)
        if numbered is not None:
            N, entry = numbered
            self.place(g, N, self.stable, msgspec.structs.replace(entry, payload=m))
        elif n > self.done.get(p, 0):
            if len(self.bodies) >= self.options.max_held:
                self._drop_stale_bodies(g)
            self.bodies[p, n] = m

    def _drop_stale_bodies(self, g: GroupId) -> None:
        # A body that comes after its entry was fetched, or whose sender left, gets no number here.
        self.bodies = {
            (p, n): m
            for (p, n), m in self.bodies.items()
            if n > self.done.get(p, 0) and p in self.views[g].peers
        }
        if len(self.bodies) >= self.options.max_held:
            raise PeerError(f"more than {self.options.max_held} bodies without an order")

    def take_number(self, g: GroupId, N: int, stable: int, entry: Numbered) -> None:
        """Number N goes to this frame, whose body comes from its sender."""
        self.check_near(N)
        origin, n = entry.origin, entry.n
        body = self.requests.get(n) if origin == self.me else self.bodies.get((origin, n))
        if body is not None:
            self.place(g, N, stable, msgspec.structs.replace(entry, payload=body))
            return
        if N > self.R and N not in self.arrived:
            self.bodiless[origin, n] = (N, entry)
        self.learn(g, N, stable)  # a gap as long as the body is not here

    def place(self, g: GroupId, N: int, stable: int, entry: Numbered) -> None:
        if self.bodies or self.bodiless:
            self.bodies.pop((entry.origin, entry.n), None)
            self.bodiless.pop((entry.origin, entry.n), None)
        super().place(g, N, stable, entry)

    # -- what waits, and why ----------------------------------------------------------------------

    def holdings(self, g: GroupId) -> Holdings:
        here = super().holdings(g)
        return msgspec.structs.replace(here, held=here.held + len(self.bodies))

    def held_back(self) -> list[Waiting]:
        """Also numbers without a body, and bodies without a number."""
        held = super().held_back()
        for g in self.views:
            held += self._bodiless(g)
            held += self.unordered(self._lone_bodies(g))
        return held

    def waiting_frames(self) -> list[WaitingFrame]:
        frames = super().waiting_frames()
        for g in self.views:
            frames += ((g, entry.origin, entry.n, b"") for _, entry in self._lone_numbers())
            frames += self._lone_bodies(g)
        return frames

    def _bodiless(self, g: GroupId) -> Iterator[Waiting]:
        gaps = self.first_gaps(g)
        for number, entry in self._lone_numbers():
            awaits = tuple(gap for N, gap in gaps if number >= N)
            yield Waiting(g, entry.origin, entry.n, awaits, b"")

    def _lone_numbers(self) -> Iterator[tuple[int, Numbered]]:
        return ((N, entry) for N, entry in self.bodiless.values() if self.is_gap(N))

    def _lone_bodies(self, g: GroupId) -> Iterator[WaitingFrame]:
        ordered = {(entry.origin, entry.n) for entry in self.arrived.values()}
        for (p, n), m in self.bodies.items():
            repeat = (p, n) in ordered or n <= self.done.get(p, 0)
            if not repeat and p in self.views[g].peers:
                yield g, p, n, m

    def gaps(self, g: GroupId) -> dict[int, Awaited]:
        """Where the number is here, its body is missing."""
        bodies = {
            N: Awaited("body", g, entry.origin, entry.n) for N, entry in self.bodiless.values()
        }
        return {N: bodies.get(N, gap) for N, gap in super().gaps(g).items()}
