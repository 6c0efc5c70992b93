"""Causal order across overlapping groups by one vector per group.

Source      001 (Coulouris et al.), slides "Causal Ordering (2)", "(3)" and "Overlapping Groups";
            004 (Causal Blocks), 5.2 and figure 3, which cite CBCAST [BSS91].
Guarantees  causal order across all groups of a domain (so FIFO too), open groups as well.
Needs       reliable links, any order, duplicates allowed (N1).
Costs       n - 1 packets; two integers and three per entry that is news: at most all members of all
            groups that hang together, in one group as many as there are concurrent messages.

    CO-multicast(g, m) by pi      VV[g][i] := VV[g][i] + 1;  B-multicast(g, <m, VV>)
    B-deliver(<m, VVj>) from pj   hold back <m, VVj>;  wait until VVj[g][j] = VV[g][j] + 1
                                  and VVj[h][k] <= VV[h][k] for own groups h, (h, k) != (g, j);
                                  CO-deliver(m);  VV[g][j] := VV[g][j] + 1;
                                  VV[h] := max(VV[h], VVj[h]) for the groups h of others

A process never takes the maximum for a group of its own: that would claim messages that were not
delivered here. For the groups of others it must. In figure 3 four groups form a ring, and the last
process has to tell of a message that was sent where neither it nor its informant is a member.

Departures from the source
  D1  The slide also tests the sender's own copy, where the wait cannot end. A sender delivers its
      own message at once and sends itself no copy.                            (test_cbcast_D1_...)
  D2  The slide says V counts messages *received*. A message that is held back has caused nothing
      yet: VV counts messages delivered.                                       (test_cbcast_D2_...)
  D3  004 says that on a ring a message carries all groups. It carries the entries that changed
      since its sender's frame before in the same group. That is enough: a receiver takes the frames
      of a sender in a group one after the other, so at the one before it found all older entries
      satisfied or took their maximum, and VV never falls. VVj[g][j] is the frame's number, which
      stands apart.                                                            (test_cbcast_D3_...)
  D4  Nor does it carry what a frame says that was delivered to its sender in the same group
      since: all who get the one get the other, and this one waits for that.   (test_cbcast_D4_...)
  D5  A repeat, delivered or held back already, is dropped.                    (test_cbcast_D5_...)
  D6  All vectors restart at 0 together, and what was learned of the groups of others is dropped,
      when the views of all groups that hang together change. So a joiner has missed no entry, and a
      group of others never turns into an own one between two frames.          (test_cbcast_D6_...)
  D7  A crash may leave a message without one that it depends on. If that is of the same group, all
      survivors of the group miss it, and drop both. If it is of another group, some survivor may
      have delivered the message already: all deliver it.                      (test_cbcast_D7_...)
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import chain

import msgspec

from ordercast.core.declaration import Declaration
from ordercast.core.events import Kept, View
from ordercast.core.holdback import HoldBackQueue
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import Options, on
from ordercast.core.waiting import Awaited, Waiting, first_named
from ordercast.errors import PeerError
from ordercast.machinery.domain import DomainProtocol

MAX_FOREIGN = 65_536  # entries about the groups of others that peers can make us keep

Entry = tuple[GroupId, ProcessId, int]  # (h, k, VV[h][k]): also a frame, the one of that number
Held = tuple[GroupId, Kept, list[Entry]]  # a frame, and those of its entries still in question
Vectors = dict[GroupId, dict[ProcessId, int]]


class CausalData(msgspec.Struct, frozen=True, array_like=True):
    """Frame n; the sender's frames up to `stable` are delivered by all; what it depends on."""

    n: int  # VVj[g][j]
    stable: int
    changed: tuple[int, ...]  # h, k, VVj[h][k], h, k, VVj[h][k], ...


def entries(changed: tuple[int, ...]) -> Iterable[Entry]:
    """The entries that stand one after the other in a header or a stamp."""
    numbers = iter(changed)
    return zip(numbers, numbers, numbers)  # noqa: B905  to say strict=False costs time


class Cbcast(DomainProtocol):
    """CO-multicast over overlapping groups."""

    declaration = Declaration(
        name="cbcast",
        order="causal",
        scope="domain",
        network="N1",
        header="2+3c",
        packets="n-1",
        control="2(n-1)",
        exact=True,
        silence="nothing",
        source="004, 5.2 (CBCAST); 001, Causal Ordering (3)",
        promises=(
            "no_duplication", "no_creation", "membership", "validity",
            "fifo.group", "fifo.global", "causal.group", "causal.global",
        ),
        crash="a message whose sender crashes half-way reaches only some, until the view changes",
    )  # fmt: skip

    def __init__(self, me: ProcessId, options: Options | None = None) -> None:
        super().__init__(me, options)
        self.VV: Vectors = {}  # own groups: delivered from each sender; others': known to exist
        self.foreign = 0  # entries of VV about the groups of others
        self.news: dict[GroupId, set[Entry]] = {}  # what our next frame in each group must tell
        self.held: HoldBackQueue[Entry, Held] = HoldBackQueue()

    def on_view(self, view: View) -> None:
        super().on_view(view)
        g = view.group
        if g in self.stability:
            self.VV[g] = dict.fromkeys(view.senders, 0)
            self.news[g] = {(h, k, V[k]) for h, V in self.VV.items() for k in V if V[k]}

    def forget_group(self, g: GroupId) -> None:
        super().forget_group(g)
        self.news.pop(g, None)

    # CO-multicast(g, m) by pi
    def on_multicast(self, g: GroupId, m: bytes) -> None:
        n = self.stability[g].next_number()
        changed = self.changed_since_last(g)
        self.b_multicast(g, CausalData(n, self.stability[g].own_stable(), changed), m)
        self.set_entry(g, self.me, n)
        self.news[g].clear()  # D3: n says it
        self.deliver(g, self.me, n, m, changed)  # D1

    def changed_since_last(self, g: GroupId) -> tuple[int, ...]:
        """The entries that our next frame in g carries."""
        return tuple(chain.from_iterable(sorted(self.news[g])))

    def set_entry(self, h: GroupId, k: ProcessId, number: int) -> None:
        """VV[h][k] := number, and our next frame in each group says so."""
        V = self.VV[h]
        before, now = (h, k, V[k]), (h, k, number)
        V[k] = number
        for news in self.news.values():
            news.discard(before)
            news.add(now)

    # B-deliver(<m, VVj>) from pj
    @on(CausalData)
    def on_DATA(self, pj: ProcessId, g: GroupId, data: CausalData, m: bytes) -> None:
        self.stability[g].learn_stable(pj, data.stable)
        n, changed = data.n, data.changed
        missing = self.check(changed)
        if not self.received[g][pj].add(n):  # D5
            return
        frame = Kept(pj, n, changed, m)
        if missing or n != self.VV[g][pj] + 1:
            self.hold_back([(g, frame, missing)])
        elif released := self.co_deliver(g, frame):
            self.hold_back(released)
        if self.promised:
            self.keep_promise(g, pj)

    def check(self, changed: tuple[int, ...]) -> list[Entry]:
        """The entries that are not satisfied here. A PeerError if one can never be."""
        if len(changed) % 3:
            raise PeerError(f"{len(changed)} integers are no list of entries")
        VV, own, far = self.VV, self.member_of, self.options.max_held
        missing: list[Entry] = []
        for h, k, number in entries(changed):
            try:
                known = VV[h][k]
            except KeyError:
                self.meet(h, k)
                continue
            if number <= known:
                continue
            if k == self.me or number > known + far:
                self.check_number(h, k, number)
            if h in own:
                missing.append((h, k, number))
        return missing

    def meet(self, h: GroupId, k: ProcessId) -> None:
        """A first entry about k in h, a group of others."""
        if h in self.stability or k == self.me or h < 0 or k < 0:
            raise PeerError(f"process {k} does not send in group {h}")
        if self.foreign >= MAX_FOREIGN:
            raise PeerError(f"more than {MAX_FOREIGN} entries about groups of others")
        self.foreign += 1
        self.VV.setdefault(h, {})[k] = 0

    def check_number(self, h: GroupId, k: ProcessId, number: int) -> None:
        """Can there be so many frames of k in our group h?"""
        if k == self.me:
            raise PeerError(f"our frame {number} in group {h} is named, but was not sent")
        if h in self.member_of and number > self.mark(h, k) + self.options.max_held:
            raise PeerError(f"frame {number} of {k} is named, far above {self.mark(h, k)}")

    def hold_back(self, ready: list[Held]) -> None:
        """hold back <m, VVj>; wait until it may be delivered; CO-deliver(m)"""
        for g, frame, missing in ready:  # grows while delivering one frame releases others
            awaited = self.awaited(g, frame, missing)
            if awaited is None:
                ready += self.co_deliver(g, frame)
            else:
                self.held.hold(awaited, (g, frame, missing))

    def awaited(self, g: GroupId, frame: Kept, missing: list[Entry]) -> Entry | None:
        """What <m, VVj> waits for first: VVj[g][j] = VV[g][j] + 1, VVj[h][k] <= VV[h][k]."""
        if frame.n != self.VV[g][frame.origin] + 1:
            return g, frame.origin, frame.n - 1
        while missing:
            h, k, number = missing[-1]
            if number > self.VV[h][k]:
                return missing[-1]
            missing.pop()
        return None

    # CO-deliver(m);  VV[g][j] := VV[g][j] + 1;  VV[h] := max(VV[h], VVj[h])
    def co_deliver(self, g: GroupId, frame: Kept) -> list[Held]:
        """Returns what waited for it."""
        j, n, stamp = frame.origin, frame.n, frame.stamp
        self.deliver(g, j, n, frame.payload, stamp)
        self.set_entry(g, j, n)
        if stamp:
            if len(self.VV) > len(self.member_of) and self.options.hearsay:
                self.take_maximum(stamp)
            self.news[g].difference_update(entries(stamp))  # D4
        return self.held.release((g, j, n))

    def take_maximum(self, stamp: tuple[int, ...]) -> None:
        """VV[h] := max(VV[h], VVj[h]): own groups stay, as VVj[h][k] <= VV[h][k] was waited for."""
        for h, k, number in entries(stamp):
            if number > self.VV[h][k]:
                self.set_entry(h, k, number)

    # -- the cut ----------------------------------------------------------------------------------

    def settle(self, unions: dict[GroupId, list[Kept]], views: tuple[View, ...]) -> None:
        last = {g: self.last_frames(g, unions.get(g, ())) for g in sorted(self.member_of)}
        self.held.clear()
        for g in last:
            for frame in unions.get(g, ()):
                if self.VV[g][frame.origin] < frame.n <= last[g][frame.origin]:
                    bare = Kept(frame.origin, frame.n, (), frame.payload)
                    self.hold_back([(g, bare, self.without_lost(frame, last))])
        self.VV.clear()  # D6
        self.foreign = 0
        self.held.clear()

    def last_frames(self, g: GroupId, union: Sequence[Kept]) -> dict[ProcessId, int]:
        """D7: of each sender in g, the last frame that all survivors of g can deliver."""
        last = dict(self.VV[g])
        for frame in union:  # by sender, then number
            if frame.n == last[frame.origin] + 1:
                last[frame.origin] = frame.n
        lost: list[Kept] | None = None
        while lost is None or lost:
            lost = [f for f in union if self.depends_on_lost(g, f, last)]
            for frame in lost:
                last[frame.origin] = min(last[frame.origin], frame.n - 1)
        return last

    def depends_on_lost(self, g: GroupId, frame: Kept, last: dict[ProcessId, int]) -> bool:
        """Does it, not lost yet itself, name a frame of its own group that is lost?"""
        return self.VV[g][frame.origin] < frame.n <= last[frame.origin] and any(
            number > last[k] for h, k, number in entries(frame.stamp) if h == g
        )

    def without_lost(self, frame: Kept, last: Vectors) -> list[Entry]:
        """D7: what was lost in another group is not waited for."""
        told = (entry for entry in entries(frame.stamp) if entry[0] in last)
        return [(h, k, min(number, last[h][k])) for h, k, number in told]

    def well_stamped(self, g: GroupId, senders: tuple[ProcessId, ...], frame: Kept) -> bool:
        own: dict[GroupId, Container[ProcessId]] = {h: self.VV[h] for h in self.member_of}
        own.setdefault(g, senders)
        return len(frame.stamp) % 3 == 0 and all(
            k in own[h] if h in own else min(h, k) >= 0 for h, k, _ in entries(frame.stamp)
        )

    def held_back(self) -> list[Waiting]:
        return [
            Waiting(g, frame.origin, frame.n, first_named(self.missing(g, frame)), frame.payload)
            for _, (g, frame, _) in self.held
        ]

    def all_waiting(self) -> Iterable[tuple[GroupId, Kept]]:
        return ((g, frame) for _, (g, frame, _) in self.held)

    def missing(self, g: GroupId, frame: Kept) -> Iterator[Awaited]:
        """All that a frame waits for."""
        if frame.n != self.VV[g][frame.origin] + 1:
            yield Awaited("frame", g, frame.origin, frame.n - 1)
        for h, k, number in entries(frame.stamp):
            if h in self.member_of and number > self.VV[h][k]:
                yield Awaited("frame", h, k, number)
