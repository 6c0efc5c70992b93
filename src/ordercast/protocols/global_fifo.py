"""FIFO order across overlapping groups by a table of sequence numbers.

Source      001 (Coulouris et al.), slides "FIFO Ordering (2)" and "Overlapping Groups". The slides
            state the order and say that the protocol of one group does not give it; the rule is
            theirs with all numbers of the sender in the header.
Guarantees  messages of one sender are delivered in the order in which it sent them, whatever groups
            of a domain it sent them to; open groups as well.
Needs       reliable links, any order, duplicates allowed (N1).
Costs       n - 1 packets; two integers and two per other group that the sender spoke to since.

    FO-multicast(g, m) by p    S[g] := S[g] + 1;  B-multicast(g, <m, S>)
    B-deliver(<m, S>) from q   hold back <m, S>;  wait until S[g] = R[q, g] + 1
                               and S[h] <= R[q, h] for own groups h != g;
                               FO-deliver(m);  R[q, g] := S[g]

Departures from the source
  D1  The slides do not say what happens to S[g] <= R[q, g]: it is a repeat, and is dropped.
                                                                          (test_global_fifo_D1_...)
  D2  The table carries what changed since the sender's frame before in the same group. That is
      enough: the receiver takes the frames of a sender in a group one after the other, so it found
      the older numbers satisfied already, and R never falls. So no table needs to be pruned.
                                                                          (test_global_fifo_D2_...)
  D3  A sender delivers its own message at once and sends itself no copy. (test_global_fifo_D3_...)
  D4  All numbers restart at 0 together, when the views of all groups that hang together change. So
      a joiner has missed nothing.                                        (test_global_fifo_D4_...)
  D5  A crash may leave a message without an earlier one of its sender. If that was sent to the same
      group, all survivors of the group miss it, and drop both. If it was sent to another group,
      some survivor may have delivered the message already: all deliver it.
                                                                          (test_global_fifo_D5_...)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from ordercast.core.declaration import Declaration
from ordercast.core.events import Kept, View
from ordercast.core.holdback import HoldBackQueue
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import Options, on
from ordercast.core.waiting import Awaited, Waiting, first_named
from ordercast.errors import PeerError
from ordercast.machinery.domain import DomainProtocol

Place = tuple[ProcessId, GroupId, int]  # a frame: its sender, group and number
Table = dict[GroupId, dict[ProcessId, int]]


class GlobalFifoData(msgspec.Struct, frozen=True, array_like=True):
    """Frame n; the sender's frames up to `stable` are delivered by all; what it sent elsewhere."""

    n: int  # S[g]
    stable: int
    changed: tuple[int, ...]  # h, S[h], h, S[h], ...


def numbers(changed: tuple[int, ...]) -> Iterable[tuple[GroupId, int]]:
    """The pairs (h, S[h]) that stand one after the other in a header or a stamp."""
    integers = iter(changed)
    return zip(integers, integers, strict=True)


class GlobalFifo(DomainProtocol):
    """FO-multicast over overlapping groups."""

    declaration = Declaration(
        name="global_fifo",
        order="fifo",
        scope="domain",
        network="N1",
        header="2+2c",
        packets="n-1",
        control="2(n-1)",
        exact=True,
        silence="nothing",
        source="001, FIFO Ordering (2) and Overlapping Groups",
        promises=(
            "no_duplication", "no_creation", "membership", "validity",
            "fifo.group", "fifo.global",
        ),
        crash="a message whose sender crashes half-way reaches only some, until the view changes",
    )  # fmt: skip

    def __init__(self, me: ProcessId, options: Options | None = None) -> None:
        super().__init__(me, options)
        self.R: Table = {}  # the latest frame delivered, per group and sender; R[g][me] is S[g]
        self.news: dict[GroupId, set[GroupId]] = {}  # spoken to since our last frame in this one
        self.held: HoldBackQueue[Place, tuple[GroupId, Kept]] = HoldBackQueue()

    def on_view(self, view: View) -> None:
        super().on_view(view)
        g = view.group
        if g in self.stability:
            self.R[g] = dict.fromkeys(view.senders, 0)
            self.news[g] = {h for h in self.R if self.R[h][self.me]}

    def forget_group(self, g: GroupId) -> None:
        super().forget_group(g)
        for table in (self.R, self.news):
            table.pop(g, None)
        for news in self.news.values():
            news.discard(g)

    # FO-multicast(g, m) by p
    def on_multicast(self, g: GroupId, m: bytes) -> None:
        S = self.stability[g].next_number()
        changed = tuple(x for h in sorted(self.news[g]) for x in (h, self.R[h][self.me]))
        self.b_multicast(g, GlobalFifoData(S, self.stability[g].own_stable(), changed), m)
        self.R[g][self.me] = S
        for news in self.news.values():
            news.add(g)
        self.news[g].clear()
        self.deliver(g, self.me, S, m, changed)  # D3

    # B-deliver(<m, S>) from q
    @on(GlobalFifoData)
    def on_DATA(self, q: ProcessId, g: GroupId, data: GlobalFifoData, m: bytes) -> None:
        self.stability[g].learn_stable(q, data.stable)
        received = self.received[g][q]
        if data.n not in received:  # D1
            self.check(q, data.changed)
            received.add(data.n)
            self.hold_back(g, Kept(q, data.n, data.changed, m))
            self.keep_promise(g, q)

    def check(self, q: ProcessId, changed: tuple[int, ...]) -> None:
        """A PeerError if this cannot be what q sent to other groups."""
        if len(changed) % 2:
            raise PeerError(f"{len(changed)} integers are no table of numbers")
        for h, S in numbers(changed):
            if h not in self.member_of:
                continue
            if q not in self.received[h]:
                raise PeerError(f"process {q} does not send in group {h}")
            if self.mark(h, q) + self.options.max_held < S:
                raise PeerError(f"frame {S} of {q} is named, far above {self.mark(h, q)}")

    def hold_back(self, g: GroupId, frame: Kept) -> None:
        """hold back <m, S>; wait until it may be delivered; FO-deliver(m); R[q, g] := S[g]"""
        ready = [(g, frame)]
        for g, frame in ready:  # grows while delivering one frame releases others
            q, n = frame.origin, frame.n
            awaited = next(self.awaited(g, frame), None)
            if awaited is not None:
                self.held.hold(awaited, (g, frame))
                continue
            self.R[g][q] = n
            self.deliver(g, q, n, frame.payload, frame.stamp)
            ready += self.held.release((q, g, n))

    def awaited(self, g: GroupId, frame: Kept) -> Iterator[Place]:
        """What <m, S> waits for: S[g] = R[q, g] + 1 and S[h] <= R[q, h] for own groups h != g."""
        q = frame.origin
        if frame.n != self.R[g][q] + 1:
            yield q, g, frame.n - 1
        for h, S in numbers(frame.stamp):
            if h in self.member_of and self.R[h][q] < S:
                yield q, h, S

    # -- the cut ----------------------------------------------------------------------------------

    def settle(self, unions: dict[GroupId, list[Kept]], views: tuple[View, ...]) -> None:
        last = {g: self.last_frames(g, unions.get(g, ())) for g in sorted(self.member_of)}
        self.held.clear()
        for g in last:
            for frame in unions.get(g, ()):
                if self.R[g][frame.origin] < frame.n <= last[g][frame.origin]:
                    self.hold_back(g, self.without_lost(frame, last))
        self.R.clear()  # D4
        self.held.clear()

    def last_frames(self, g: GroupId, union: Iterable[Kept]) -> dict[ProcessId, int]:
        """D5: of each sender in g, the last frame before one that nobody alive has."""
        last = dict(self.R[g])
        for frame in union:  # by sender, then number
            if frame.n == last[frame.origin] + 1:
                last[frame.origin] = frame.n
        return last

    def without_lost(self, frame: Kept, last: Table) -> Kept:
        """D5: what was lost in another group is not waited for."""
        q = frame.origin
        kept = ((h, min(S, last[h][q])) for h, S in numbers(frame.stamp) if h in last)
        return Kept(q, frame.n, tuple(x for pair in kept for x in pair), frame.payload)

    def well_stamped(self, g: GroupId, senders: tuple[ProcessId, ...], frame: Kept) -> bool:
        return len(frame.stamp) % 2 == 0 and all(
            h not in self.member_of or frame.origin in self.R[h] for h, _ in numbers(frame.stamp)
        )

    def held_back(self) -> list[Waiting]:
        return [
            Waiting(g, frame.origin, frame.n, first_named(self.missing(g, frame)), frame.payload)
            for _, (g, frame) in self.held
        ]

    def all_waiting(self) -> Iterable[tuple[GroupId, Kept]]:
        return ((g, frame) for _, (g, frame) in self.held)

    def missing(self, g: GroupId, frame: Kept) -> Iterator[Awaited]:
        """All that a frame waits for."""
        for q, h, n in self.awaited(g, frame):
            yield Awaited("frame", h, q, n)
