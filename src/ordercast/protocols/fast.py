"""Causal order across overlapping groups, as early as possible, by last delivered numbers.

Source      004 (Macedo), 5.1 "Representing Causal Relationship precisely" and 5.4 "The Fast Causal
            Order Protocol", its vector keyed by group and process (Fast-G).
Guarantees  causal order (so FIFO too) across all groups of a domain, open groups as well.
Needs       reliable links, any order, duplicates allowed (N1).
Costs       n - 1 packets; three integers and three per entry that is news, at most all members
            of all groups that hang together.

    send(m) to g by s     BC := BC + 1;  m.b := BC;  m.L := L;  multicast m to the others in g;
                          L[g][s] := m.b;  deliver(m)
    receive(m) from s     DC:  wait until m.L[h][j] <= L[h][j] for all j, for all own groups h;
                          BC := max(BC, m.b);  deliver(m);  L[g][s] := m.b;
                          L[h] := max(L[h], m.L[h]) for the groups h of others

L[h][j] is the largest block number that this process delivered from j in h; for the groups of
others, the largest it has heard of. A message waits only for messages that it depends on.

Departures from the source
  D1  The paper keys the vector by process alone. A number that j used in a group to which we do not
      belong never comes here, and m waits for it for ever. So the key is (group, process), as in
      CBCAST, and the header is not smaller than that of CBCAST.                 (test_fast_D1_...)
  D2  A frame carries only the entries of L that no earlier frame in the same group has told, of
      its sender or of one that its sender delivered: who gets it delivers that one before. An
      entry for a frame of another group does not stand for what that frame told: not everybody
      here waits for it.                                                         (test_fast_D2_...)
  D3  A repeat, delivered or held back already, is dropped.                      (test_fast_D3_...)
  D4  The paper assumes that nobody fails or joins. A cut delivers what is left by number; then L
      begins again in all groups together. A frame that depends on one of the same group that nobody
      alive has is lost, too.                                                    (test_fast_D4_...)
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ordercast.core.declaration import Declaration
from ordercast.core.events import Kept, View
from ordercast.core.holdback import HoldBackQueue
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import Options, on
from ordercast.core.waiting import Awaited, Waiting, first_named
from ordercast.errors import PeerError
from ordercast.machinery.blocks import Blocks, check_block, is_numbered
from ordercast.machinery.changes import ChangingVector
from ordercast.machinery.domain import DomainProtocol

Place = int  # in a stamp (b, h, j, L[h][j], h, j, L[h][j], ...): where an entry begins
Entry = tuple[GroupId, ProcessId, int]  # also names the frame with that number


class FastData(msgspec.Struct, frozen=True, array_like=True):
    """Frame n of its sender, in block b; its frames up to `stable` are delivered by all."""

    n: int
    b: int
    stable: int
    L: tuple[int, ...]  # h, j, L[h][j], h, j, L[h][j], ...: the news


class Fast(DomainProtocol):
    """The Fast causal order protocol, in its group-qualified form."""

    declaration = Declaration(
        name="fast",
        order="causal",
        scope="domain",
        network="N1",
        header="3+3c",
        packets="n-1",
        control="2(n-1)",
        exact=True,
        silence="nothing",
        source="004, 5.4",
        promises=(
            "no_duplication", "no_creation", "membership", "validity",
            "fifo.group", "fifo.global", "causal.group", "causal.global",
        ),
        crash="a message whose sender crashes half-way reaches only some, until the view changes",
    )  # fmt: skip

    def __init__(self, me: ProcessId, options: Options | None = None) -> None:
        super().__init__(me, options)
        self.blocks = Blocks()  # BC
        self.L: ChangingVector[tuple[GroupId, ProcessId]] = ChangingVector()
        self.held: HoldBackQueue[Entry, tuple[GroupId, Kept, Place]] = HoldBackQueue()
        # ... under the first frame that is missing; the entries before that place are satisfied

    def parts(self) -> tuple[Blocks]:
        return (self.blocks,)

    # send(m) to g by s
    def on_multicast(self, g: GroupId, m: bytes) -> None:
        n, b = self.stability[g].next_number(), self.blocks.CA1()
        L = flat(self.L.tell(g))  # D2
        self.b_multicast(g, FastData(n, b, self.stability[g].own_stable(), L), m)
        self.hand_over(g, Kept(self.me, n, (b, *L), m))

    # receive(m) from s
    @on(FastData)
    def on_DATA(self, s: ProcessId, g: GroupId, data: FastData, m: bytes) -> None:
        self.stability[g].learn_stable(s, data.stable)
        self.check(data)
        if self.received[g][s].add(data.n):  # D3
            self.hold_back(g, Kept(s, data.n, (data.b, *data.L), m))
            self.keep_promise(g, s)

    def check(self, data: FastData) -> None:
        """Is it a header that an honest peer can send?"""
        L = data.L
        check_block(data.b)
        if not L:
            return
        if len(L) % 3:
            raise PeerError(f"{len(L)} integers are no entries of three")
        self.L.check_room(len(L) // 3)
        for at in range(0, len(L), 3):
            self.blocks.check_entry(L[at], L[at + 1], L[at + 2], data.b)

    def hold_back(self, g: GroupId, frame: Kept) -> None:
        """wait until m.L[h][j] <= L[h][j] for all own groups h;  deliver(m)"""
        ready: list[tuple[GroupId, Kept, Place]] = [(g, frame, 1)]
        for g, frame, place in ready:  # grows while delivering one frame releases others
            missing = self.first_missing(frame.stamp, place)
            if missing is None:
                self.deliver_in_turn(g, frame)
                ready += self.held.release((g, frame.origin, frame.stamp[0]))
            else:
                h, j, b = frame.stamp[missing : missing + 3]
                self.held.hold((h, j, b), (g, frame, missing))

    def first_missing(self, stamp: tuple[int, ...], place: Place) -> Place | None:
        """The first entry, from this place on, that is not satisfied."""
        for at in range(place, len(stamp), 3):
            if not self.DC(stamp[at], stamp[at + 1], stamp[at + 2]):
                return at
        return None

    def DC(self, h: GroupId, j: ProcessId, b: int) -> bool:
        """m.L[h][j] <= L[h][j], if h is an own group"""
        return b <= self.L.entries.get((h, j), 0) or h not in self.member_of  # D1

    def deliver_in_turn(self, g: GroupId, frame: Kept) -> None:
        """BC := max(BC, m.b);  deliver(m);  L[h] := max(L[h], m.L[h]) for the groups of others"""
        stamp = frame.stamp
        self.blocks.CA2(stamp[0])
        for at in range(1, len(stamp), 3):
            entry, b = (stamp[at], stamp[at + 1]), stamp[at + 2]
            if stamp[at] not in self.member_of and self.options.hearsay:
                self.L.raise_to(entry, b)
            self.L.was_told(g, entry, b)  # D2
        self.hand_over(g, frame)

    def hand_over(self, g: GroupId, frame: Kept) -> None:
        """deliver(m);  L[g][s] := m.b"""
        self.L.raise_to((g, frame.origin), frame.stamp[0])
        self.blocks.R[g][frame.origin] = frame.n
        self.deliver(g, frame.origin, frame.n, frame.payload, frame.stamp)

    # -- why it waits, and the cut ----------------------------------------------------------------

    def held_back(self) -> list[Waiting]:
        return [
            Waiting(g, frame.origin, frame.n, self.awaits(frame.stamp, place), frame.payload)
            for _, (g, frame, place) in self.held
        ]

    def all_waiting(self) -> Iterable[tuple[GroupId, Kept]]:
        return ((g, frame) for _, (g, frame, _) in self.held)

    def awaits(self, stamp: tuple[int, ...], place: Place) -> tuple[Awaited, ...]:
        """The next frame of everyone of whom something is missing: it, too, comes before m."""
        R = self.blocks.R
        return first_named(
            Awaited("frame", stamp[at], stamp[at + 1], R[stamp[at]].get(stamp[at + 1], 0) + 1)
            for at in range(place, len(stamp), 3)
            if not self.DC(stamp[at], stamp[at + 1], stamp[at + 2])
        )

    def well_stamped(self, g: GroupId, senders: tuple[ProcessId, ...], frame: Kept) -> bool:
        return is_numbered(frame.stamp) and len(frame.stamp) % 3 == 1

    def lost(self, g: GroupId, frame: Kept, top: dict[ProcessId, int]) -> bool:
        """Does the frame name one of its own group that was not delivered?"""
        stamp = frame.stamp
        return any(
            stamp[at] == g and stamp[at + 2] > self.L[g, stamp[at + 1]]
            for at in range(1, len(stamp), 3)
        )

    def settle(self, unions: dict[GroupId, list[Kept]], views: tuple[View, ...]) -> None:
        for g, frame in self.blocks.settled(unions, self.lost):
            self.hand_over(g, frame)
        self.L.clear()  # D4
        self.held.clear()

    def on_view(self, view: View) -> None:
        super().on_view(view)
        if self.me in view.senders:
            self.L.begin(view.group)

    def forget_group(self, g: GroupId) -> None:
        super().forget_group(g)
        self.L.forget_group(g)


def flat(entries: dict[tuple[GroupId, ProcessId], int]) -> tuple[int, ...]:
    """Entries one after the other, as they stand in a header."""
    return tuple(number for (h, j), b in entries.items() for number in (h, j, b))
