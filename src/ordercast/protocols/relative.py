"""Causal order across overlapping groups: precise inside a group, by blocks across groups.

Source      004 (Macedo), 5.1 "Representing Causal Relationship precisely" and 5.5 "The Relative
            Causal Order Protocol", figures 5 to 7.
Guarantees  causal order (so FIFO too) across all groups of a domain.
Needs       reliable first-in first-out links per pair and group (N2f); everybody speaks.
Costs       n - 1 packets; three integers and two per entry that is news, at most the members of the
            group and all groups that hang together; NULLs of silent members.

    send(m) to x by s     BC := BC + 1;  m.b := BC;  m.ldv := LDV[x];  m.gbn := GBN;
                          multicast m to the other members of x;
                          LDV[x][s] := m.b;  GBN[x] := max(GBN[x], m.b);  deliver(m)
    receive(m) from s     m is represented in the block matrix of x;  wait until
                          C01  m.ldv <= LDV[x], and
                          C02  for every own group y other than x:  block m.gbn[y] is complete in
                               y, and all messages of y up to that number are delivered;
                          BC := max(BC, m.b);  deliver(m);  LDV[x][s] := m.b;
                          GBN[x] := max(GBN[x], m.b);  GBN[y] := max(GBN[y], m.gbn[y]) for y != x

LDV[x][j] is the largest number delivered from j in x; GBN[y] the largest sent or delivered in y or,
for the groups of others, heard of. A process that is in one group only waits for nothing but what
the message depends on.

Departures from the source
  D1  Figure 7 and its text deliver if m.ldv >= LDV. That blocks as soon as somebody else was heard,
      and it delivers a message before its cause. C01 is the right one.      (test_relative_D1_...)
  D2  The paper has one block counter per group. Then m in x and m' in y can each name the other's
      group with a higher number than their own, and a member of both waits for both. There is one
      counter per process, so each wait is for a smaller number.             (test_relative_D2_...)
  D3  The paper sets GBN[x] := m.b, which may lower it: a message with a smaller number may be
      delivered later. It is the maximum.                                    (test_relative_D3_...)
  D4  C02 says "m.gbn[y] is complete, and its messages delivered". It must be the messages of all
      blocks up to that number.                                              (test_relative_D4_...)
  D5  Figures 5 to 7 leave out m.gbn, and all that happens after delivery. (test_relative_D5_...)
  D6  A block is complete without a word of this process itself; one that has nothing to say sends
      NULL.                                                                  (test_relative_D6_...)
  D7  A frame carries only the entries that changed since its sender's frame before in the same
      group. Entries of ldv that a frame delivered there has told since are left out, too: who gets
      it delivers that one before. Not so those of gbn: the process that told of block B has not
      waited for B itself.                                                   (test_relative_D7_...)
  D8  The paper assumes that nobody fails or joins. A cut delivers what is left by number; then LDV
      and GBN begin again in all groups together. A frame that depends on one of the same group that
      nobody alive has is lost, too.                                         (test_relative_D8_...)
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush

import msgspec

from ordercast.core.declaration import Declaration
from ordercast.core.events import Kept, View
from ordercast.core.holdback import HoldBackQueue
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import Options, on
from ordercast.core.waiting import Awaited, Waiting, first_named
from ordercast.errors import PeerError
from ordercast.machinery.blocks import MAX_BLOCK, is_numbered
from ordercast.machinery.changes import ChangingVector
from ordercast.machinery.domain import DomainProtocol
from ordercast.machinery.silence import CLOSED, CompletedBlocks, Null

# A stamp is (b, where gbn begins, j, ldv[j], j, ldv[j], ..., y, gbn[y], y, gbn[y], ...).
Place = int  # in a stamp: where an entry begins
FIRST: Place = 2
Undelivered = tuple[int, ProcessId, int]  # (b, q, n)
Held = tuple[GroupId, Kept, Place]  # a frame; the entries before that place are satisfied


class RelativeData(msgspec.Struct, frozen=True, array_like=True):
    """Frame n of its sender, in block b; its frames up to `stable` are delivered by all."""

    n: int
    b: int
    stable: int
    ldv: tuple[int, ...]  # j, ldv[j], j, ldv[j], ...: the news
    gbn: tuple[int, ...]  # y, gbn[y], y, gbn[y], ...: the news


class Relative(DomainProtocol):
    """The Relative causal order protocol."""

    declaration = Declaration(
        name="relative",
        order="causal",
        scope="domain",
        network="N2f",
        header="3+2c",
        packets="n-1, NULLs",
        control="(n-1)(n+1)",
        exact=False,
        silence="NULL of every silent member",
        source="004, 5.5",
        promises=(
            "no_duplication", "no_creation", "membership", "validity",
            "fifo.group", "fifo.global", "causal.group", "causal.global",
        ),
        crash="what depends on another group may wait for its dead member, until the view changes",
        everyone_speaks=True,
        closed=CLOSED,
    )  # fmt: skip

    def __init__(self, me: ProcessId, options: Options | None = None) -> None:
        super().__init__(me, options)
        self.blocks = CompletedBlocks()  # BC
        self.LDV: dict[GroupId, ChangingVector[ProcessId]] = {}  # last delivered, per own group
        self.GBN: ChangingVector[GroupId] = ChangingVector()  # the group block numbers
        self.undelivered: dict[GroupId, list[Undelivered]] = {}  # heaps
        self.held: HoldBackQueue[tuple[GroupId, ProcessId, int], Held] = HoldBackQueue()
        # ... C01: under the frame that is missing
        self.waiters: dict[GroupId, list[tuple[int, Held]]] = {}  # C02: heaps, until y is clear

    def parts(self) -> tuple[CompletedBlocks]:
        return (self.blocks,)

    # send(m) to x by s
    def on_multicast(self, x: GroupId, m: bytes) -> None:
        n, b = self.stability[x].next_number(), self.blocks.next_block(x)
        ldv, gbn = flat(self.LDV[x].tell(x)), flat(self.GBN.tell(x), but=x)  # D7
        self.b_multicast(x, RelativeData(n, b, self.stability[x].own_stable(), ldv, gbn), m)
        self.GBN.raise_to(x, b)
        self.hand_over(x, Kept(self.me, n, (b, FIRST + len(ldv), *ldv, *gbn), m))

    # receive(m) from s
    @on(RelativeData)
    def on_DATA(self, s: ProcessId, x: GroupId, data: RelativeData, m: bytes) -> None:
        self.stability[x].learn_stable(s, data.stable)
        self.check(x, data)
        if self.blocks.in_turn(self.received[x][s], x, s, data.n, data.b):
            heappush(self.undelivered[x], (data.b, s, data.n))
            self.keep_promise(x, s)
            self.blocks.hear(self, x, s, data.b)
            stamp = (data.b, FIRST + len(data.ldv), *data.ldv, *data.gbn)
            self.hold_back([(x, Kept(s, data.n, stamp, m), FIRST), *self.woken(x)])

    def check(self, x: GroupId, data: RelativeData) -> None:
        """Is it a header that an honest peer can send?"""
        if len(data.ldv) % 2 or len(data.gbn) % 2:
            raise PeerError("the entries of a vector come in twos")
        self.GBN.check_room(len(data.gbn) // 2)
        self.LDV[x].check_room(len(data.ldv) // 2)
        for at in range(0, len(data.ldv), 2):
            self.blocks.check_entry(x, data.ldv[at], data.ldv[at + 1], data.b)
        if data.gbn and not 0 <= min(data.gbn) <= max(data.gbn[1::2]) < data.b:
            raise PeerError(f"group block numbers {data.gbn} before a message of block {data.b}")

    # NULL(b) from j in y
    @on(Null)
    def on_NULL(self, j: ProcessId, y: GroupId, null: Null, m: bytes) -> None:
        self.stability[y].check_sender(j)
        self.blocks.hear_null(self, y, j, null.b)  # D6
        self.hold_back(self.woken(y))

    def hold_back(self, ready: list[Held]) -> None:
        """wait until C01 and C02;  deliver(m)"""
        for x, frame, place in ready:  # grows while delivering one frame releases others
            missing = self.first_missing(x, frame.stamp, place)
            if missing is None:
                self.deliver_in_turn(x, frame)
                ready += self.held.release((x, frame.origin, frame.stamp[0]))
                ready += self.woken(x)
            else:
                who, b = frame.stamp[missing : missing + 2]
                if missing < frame.stamp[1]:
                    self.held.hold((x, who, b), (x, frame, missing))
                else:
                    heappush(self.waiters[who], (b, (x, frame, missing)))

    def first_missing(self, x: GroupId, stamp: tuple[int, ...], place: Place) -> Place | None:
        """The first entry, from this place on, that is not satisfied."""
        for at in range(place, len(stamp), 2):
            if not self.satisfied(x, stamp, at):
                return at
        return None

    def satisfied(self, x: GroupId, stamp: tuple[int, ...], at: Place) -> bool:
        """C01 for an entry of ldv, C02 for one of gbn"""
        if at < stamp[1]:
            return self.C01(x, stamp[at], stamp[at + 1])
        return self.C02(x, stamp[at], stamp[at + 1])

    def C01(self, x: GroupId, j: ProcessId, b: int) -> bool:
        """m.ldv[j] <= LDV[x][j]"""
        return b <= self.LDV[x][j]  # D1

    def C02(self, x: GroupId, y: GroupId, b: int) -> bool:
        """m.gbn[y] is complete in y, and all up to it delivered, if y is another own group"""
        return y == x or y not in self.blocks.BM or b <= self.clear(y)

    def clear(self, y: GroupId) -> int:
        """All messages of y up to this number are here and delivered. It never falls."""
        waiting, R = self.undelivered[y], self.blocks.R[y]
        while waiting and waiting[0][2] <= R[waiting[0][1]]:
            heappop(waiting)
        return min(self.blocks.BM[y].CBV, waiting[0][0] - 1 if waiting else MAX_BLOCK)  # D4

    def woken(self, y: GroupId) -> list[Held]:
        """What waited until y is clear as far as it is now."""
        waiters, clear = self.waiters[y], self.clear(y)
        ready = []
        while waiters and waiters[0][0] <= clear:
            ready.append(heappop(waiters)[1])
        return ready

    def deliver_in_turn(self, x: GroupId, frame: Kept) -> None:
        """BC := max(BC, m.b);  deliver(m);  GBN := max(GBN, m.gbn), and m.b in x"""
        stamp = frame.stamp
        self.blocks.CA2(stamp[0])
        for at in range(FIRST, stamp[1], 2):
            self.LDV[x].was_told(x, stamp[at], stamp[at + 1])  # D7
        for at in range(stamp[1], len(stamp), 2):
            if self.options.hearsay or stamp[at] in self.member_of:
                self.GBN.raise_to(stamp[at], stamp[at + 1])  # D5
        self.GBN.raise_to(x, stamp[0])  # D3
        self.hand_over(x, frame)

    def hand_over(self, x: GroupId, frame: Kept) -> None:
        """deliver(m);  LDV[x][s] := m.b"""
        self.LDV[x].raise_to(frame.origin, frame.stamp[0])
        self.blocks.R[x][frame.origin] = frame.n
        self.deliver(x, frame.origin, frame.n, frame.payload, frame.stamp)

    # -- why it waits -----------------------------------------------------------------------------

    def held_back(self) -> list[Waiting]:
        by_block = {y: sorted(frames) for y, frames in self.undelivered.items()}
        return [
            Waiting(x, f.origin, f.n, first_named(self.awaits(x, f, place, by_block)), f.payload)
            for x, f, place in self.all_held()
        ]

    def all_waiting(self) -> Iterable[tuple[GroupId, Kept]]:
        return ((x, frame) for x, frame, _ in self.all_held())

    def all_held(self) -> Iterable[Held]:
        """Every frame that waits."""
        for _, held in self.held:
            yield held
        for waiters in self.waiters.values():
            for _, held in waiters:
                yield held

    def awaits(
        self, x: GroupId, frame: Kept, place: Place, by_block: dict[GroupId, list[Undelivered]]
    ) -> Iterable[Awaited]:
        """The next frame of each who misses one; what keeps another group from being clear."""
        stamp = frame.stamp
        for at in range(place, len(stamp), 2):
            who, b = stamp[at], stamp[at + 1]
            if self.satisfied(x, stamp, at):
                continue
            if at < stamp[1]:
                yield Awaited("frame", x, who, self.blocks.R[x].get(who, 0) + 1)
                continue
            yield from self.blocks.silent(who, b)
            for number, q, n in by_block[who]:
                if number > b:
                    break
                if n > self.blocks.R[who][q]:
                    yield Awaited("frame", who, q, n)

    # -- the cut ----------------------------------------------------------------------------------

    def well_stamped(self, g: GroupId, senders: tuple[ProcessId, ...], frame: Kept) -> bool:
        stamp = frame.stamp
        return (
            is_numbered(stamp)
            and len(stamp) >= FIRST
            and len(stamp) % 2 == stamp[1] % 2 == 0
            and FIRST <= stamp[1] <= len(stamp)
        )

    def lost(self, g: GroupId, frame: Kept, top: dict[ProcessId, int]) -> bool:
        """Does the frame name one of its own group that was not delivered?"""
        stamp = frame.stamp
        return any(stamp[at + 1] > self.LDV[g][stamp[at]] for at in range(FIRST, stamp[1], 2))

    def settle(self, unions: dict[GroupId, list[Kept]], views: tuple[View, ...]) -> None:
        for x, frame in self.blocks.settled(unions, self.lost):
            self.hand_over(x, frame)
        self.blocks.end_era()
        self.GBN.clear()  # D8
        self.held.clear()

    def on_view(self, view: View) -> None:
        super().on_view(view)
        x = view.group
        if self.me in view.members:
            self.LDV[x] = ChangingVector()
            self.LDV[x].begin(x)
            self.GBN.begin(x)
            self.undelivered[x] = []
            self.waiters[x] = []

    def forget_group(self, g: GroupId) -> None:
        super().forget_group(g)
        self.GBN.forget_group(g)
        for table in (self.LDV, self.undelivered, self.waiters):
            table.pop(g, None)


def flat(entries: dict[int, int], but: int | None = None) -> tuple[int, ...]:
    """Entries one after the other, as they stand in a header."""
    return tuple(number for key, b in entries.items() if key != but for number in (key, b))
