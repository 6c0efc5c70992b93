"""Causal order across overlapping groups with one number per process.

Source      004 (Macedo), 5.4 "The Fast Causal Order Protocol": its small vector, with the delivery
            test that makes it live.
Guarantees  causal order (so FIFO too) across all groups of a domain.
Needs       reliable first-in first-out links per pair, all groups together (N2); everybody speaks.
Costs       n - 1 packets; three integers and two per entry that is news, at most all processes
            of all groups that hang together; NULLs of silent members.

    send(m) to g by s     BC := BC + 1;  m.b := BC;  m.gldv := GLDV;  multicast m to the others;
                          deliver(m)
    receive(m) from s     rp[s] := m.b;
                          wait until no earlier message of s waits, and
                          DC:  for every other k that shares a group with me:  rp[k] >= m.gldv[k],
                               and no waiting message of k has a number up to m.gldv[k];
                          BC := max(BC, m.b);  deliver(m);
                          GLDV := max(GLDV, m.gldv);  GLDV[s] := m.b

rp[k] is the highest number received from k in any group, NULLs included. As all that k sends comes
here in order, whatever k sent to one of our groups up to rp[k] is here.

Departures from the source
  D1  The paper waits until GLDV[k] >= m.gldv[k], where GLDV holds numbers *delivered*. The number
      may belong to a message that k sent to a group of others; it is never delivered here, and m
      waits for ever. Here it is enough that k has spoken up to that number.   (test_fast_p_D1_...)
  D2  One that has nothing to say sends NULL, or k may never speak again in a group of ours.
                                                                               (test_fast_p_D2_...)
  D3  A frame carries only the entries that no earlier frame in the same group has told, of its
      sender or of one that its sender delivered: who gets it delivers that one before. The sender's
      own entry is not among them: first-in first-out stands for it.
                                                                               (test_fast_p_D3_...)
  D4  The paper assumes that nobody fails or joins. A cut delivers what is left by number; the
      vector begins again, so nobody waits for the dead. Frames of two that died at once may be
      lost as in `machinery/vouching`.                                         (test_fast_p_D4_...)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from heapq import heappop, heappush

import msgspec

from ordercast.core.declaration import Declaration
from ordercast.core.events import Kept, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import Options, on
from ordercast.core.waiting import Awaited, Waiting, first_named
from ordercast.errors import PeerError
from ordercast.machinery import vouching
from ordercast.machinery.changes import ChangingVector
from ordercast.machinery.domain import DomainProtocol
from ordercast.machinery.silence import CLOSED, CompletedBlocks, Null
from ordercast.machinery.vouching import VOUCHED, Unvouched, vouched

Place = int  # in a stamp (b, vouched, k, gldv[k], k, gldv[k], ...): where an entry begins
FIRST: Place = 2
Head = tuple[ProcessId, Place]  # the first waiting frame of a sender; all before is satisfied


class FastPData(msgspec.Struct, frozen=True, array_like=True):
    """Frame n of its sender, in block b; its frames up to `stable` are delivered by all."""

    n: int
    b: int
    stable: int
    gldv: tuple[int, ...]  # k, gldv[k], k, gldv[k], ...: the news


class FastP(DomainProtocol):
    """The Fast causal order protocol with its vector keyed by process."""

    declaration = Declaration(
        name="fast_p",
        order="causal",
        scope="domain",
        network="N2",
        header="3+2c",
        packets="n-1, NULLs",
        control="(n-1)(n+1)",
        exact=False,
        silence="NULL of every silent member",
        source="004, 5.4",
        promises=(
            "no_duplication", "no_creation", "membership", "validity",
            "fifo.group", "fifo.global", "causal.group", "causal.global",
        ),
        crash="what depends on a dead member's message may wait, until the view changes",
        everyone_speaks=True,
        closed=CLOSED,
    )  # fmt: skip

    better = staticmethod(vouching.better)
    attested = staticmethod(vouching.attested)

    def __init__(self, me: ProcessId, options: Options | None = None) -> None:
        super().__init__(me, options)
        self.blocks = CompletedBlocks()  # BC
        self.GLDV: ChangingVector[ProcessId] = ChangingVector()  # largest number, per process
        self.rp: dict[ProcessId, int] = {}  # heard of each that shares a group with us
        self.queue: dict[
            ProcessId, deque[tuple[GroupId, Kept]]
        ] = {}  # received, waiting; by sender
        self.waiters: dict[ProcessId, list[tuple[int, Head]]] = {}  # heaps: until k is clear to b

    def parts(self) -> tuple[CompletedBlocks]:
        return (self.blocks,)

    # send(m) to g by s
    def on_multicast(self, g: GroupId, m: bytes) -> None:
        n, b = self.stability[g].next_number(), self.blocks.next_block(g)
        changes = self.GLDV.tell(g)  # D3
        gldv = tuple(number for entry in changes.items() for number in entry)
        self.b_multicast(g, FastPData(n, b, self.stability[g].own_stable(), gldv), m)
        self.hand_over(g, Kept(self.me, n, (b, VOUCHED, *gldv), m))

    # receive(m) from s
    @on(FastPData)
    def on_DATA(self, s: ProcessId, g: GroupId, data: FastPData, m: bytes) -> None:
        self.stability[g].learn_stable(s, data.stable)
        self.check(data)
        if self.blocks.in_turn(self.received[g][s], g, s, data.n, data.b):
            self.queue[s].append((g, Kept(s, data.n, (data.b, 0, *data.gldv), m)))
            self.keep_promise(g, s)
            self.blocks.hear(self, g, s, data.b)
            self.rp[s] = max(self.rp[s], data.b)
            heads = [(s, FIRST)] if len(self.queue[s]) == 1 else []
            self.deliver_heads(heads + self.woken(s))

    def check(self, data: FastPData) -> None:
        """Is it a header that an honest peer can send?"""
        if len(data.gldv) % 2:
            raise PeerError(f"{len(data.gldv)} integers are no entries of two")
        self.GLDV.check_room(len(data.gldv) // 2)
        if data.gldv and not 0 <= min(data.gldv) <= max(data.gldv[1::2]) < data.b:
            raise PeerError(f"numbers {data.gldv} before a message of block {data.b}")

    # NULL(b) from j in g
    @on(Null)
    def on_NULL(self, j: ProcessId, g: GroupId, null: Null, m: bytes) -> None:
        self.stability[g].check_sender(j)
        self.blocks.hear_null(self, g, j, null.b)
        self.rp[j] = max(self.rp[j], null.b)  # D2
        self.deliver_heads(self.woken(j))

    def deliver_heads(self, heads: list[Head]) -> None:
        """wait until no earlier message of s waits, and DC;  deliver(m)"""
        for s, place in heads:  # grows while delivering one frame wakes others
            queue = self.queue[s]
            while queue:
                g, frame = queue[0]
                missing = self.first_missing(frame.stamp, place)
                if missing is not None:
                    k, b = frame.stamp[missing : missing + 2]
                    heappush(self.waiters[k], (b, (s, missing)))
                    break
                queue.popleft()
                self.deliver_in_turn(g, frame)
                heads += self.woken(s)
                place = FIRST

    def first_missing(self, stamp: tuple[int, ...], place: Place) -> Place | None:
        """The first entry, from this place on, that is not satisfied."""
        for at in range(place, len(stamp), 2):
            if not self.DC(stamp[at], stamp[at + 1]):
                return at
        return None

    def DC(self, k: ProcessId, b: int) -> bool:
        """rp[k] >= m.gldv[k], and no waiting message of k has a number up to m.gldv[k]"""
        return k not in self.rp or b <= self.clear(k)  # D1

    def clear(self, k: ProcessId) -> int:
        """All that k sent here up to this number is here and delivered. It never falls."""
        queue = self.queue[k]
        return queue[0][1].stamp[0] - 1 if queue else self.rp[k]

    def woken(self, k: ProcessId) -> list[Head]:
        """What waited until k is clear as far as it is now."""
        waiters, clear = self.waiters[k], self.clear(k)
        heads = []
        while waiters and waiters[0][0] <= clear:
            heads.append(heappop(waiters)[1])
        return heads

    def deliver_in_turn(self, g: GroupId, frame: Kept) -> None:
        """BC := max(BC, m.b);  deliver(m);  GLDV := max(GLDV, m.gldv);  GLDV[s] := m.b"""
        stamp = frame.stamp
        self.blocks.CA2(stamp[0])
        for at in range(FIRST, len(stamp), 2):
            if stamp[at] != self.me:
                self.GLDV.raise_to(stamp[at], stamp[at + 1])
                self.GLDV.was_told(g, stamp[at], stamp[at + 1])  # D3
        self.GLDV.raise_to(frame.origin, stamp[0])
        self.hand_over(g, frame)

    def hand_over(self, g: GroupId, frame: Kept) -> None:
        """deliver(m), and count it."""
        self.blocks.R[g][frame.origin] = frame.n
        self.deliver(g, frame.origin, frame.n, frame.payload, vouched(frame).stamp)

    # -- why it waits -----------------------------------------------------------------------------

    def held_back(self) -> list[Waiting]:
        found = []
        for s, queue in self.queue.items():
            before: tuple[Awaited, ...] = ()
            for g, frame in queue:
                awaits = before or first_named(self.awaits(frame.stamp))
                found.append(Waiting(g, s, frame.n, awaits, frame.payload))
                before = (Awaited("frame", g, s, frame.n),)
        return found

    def all_waiting(self) -> Iterable[tuple[GroupId, Kept]]:
        return (waiting for queue in self.queue.values() for waiting in queue)

    def awaits(self, stamp: tuple[int, ...]) -> Iterable[Awaited]:
        """Who must speak, and the frames that must be delivered before."""
        for at in range(FIRST, len(stamp), 2):
            k, b = stamp[at], stamp[at + 1]
            if self.DC(k, b):
                continue
            if self.rp[k] < b:
                yield Awaited("block", self.shared_group(k), k, b)
            for g, frame in self.queue[k]:
                if frame.stamp[0] <= b:
                    yield Awaited("frame", g, k, frame.n)

    def shared_group(self, k: ProcessId) -> GroupId:
        """The first group in which k can speak to us."""
        return next(g for g, matrix in self.blocks.BM.items() if k in matrix.last.marks)

    # -- the cut ----------------------------------------------------------------------------------

    def well_stamped(self, g: GroupId, senders: tuple[ProcessId, ...], frame: Kept) -> bool:
        return vouching.has_word(frame.stamp) and len(frame.stamp) % 2 == 0

    @staticmethod
    def may_depend_on(frame: Kept, p: ProcessId) -> int:
        """The highest number of p that can have caused this frame."""
        entries = zip(frame.stamp[FIRST::2], frame.stamp[FIRST + 1 :: 2], strict=True)
        return dict(entries).get(p, 0)

    def settle(self, unions: dict[GroupId, list[Kept]], views: tuple[View, ...]) -> None:
        lost = Unvouched(self.views, views, self.may_depend_on)
        for g, frame in self.blocks.settled(unions, lost):
            self.hand_over(g, frame)
        self.blocks.end_era()
        self.GLDV.clear()  # D4
        for table in (self.rp, self.queue, self.waiters):
            table.clear()

    def on_view(self, view: View) -> None:
        super().on_view(view)
        if self.me not in view.members:
            return
        self.GLDV.begin(view.group)
        for k in self.others[view.group]:
            self.rp[k] = max(self.rp.get(k, 0), view.start)
            self.queue.setdefault(k, deque())
            self.waiters.setdefault(k, [])

    def forget_group(self, g: GroupId) -> None:
        super().forget_group(g)
        self.GLDV.forget_group(g)
