"""Protocols that keep their promise across groups: one machine serves all groups of a domain.

Groups *hang together* if they share a member, directly or through other groups. Their views change
together: at a cut all of them stand still, everything unstable is delivered, and the numbers of all
of them begin again. So a number named in a header always belongs to the era of its reader, whatever
group it is of, and nothing learned of foreign groups outlives a cut.

    Cut(flushes, views)    deliver what is left of all unions, in this protocol's order;
                           put all views in force;  take the packets that overtook them

A crash may take a message with it on which others depend. Inside one group the flush sees that all
survivors miss it, and drops what depends on it. Across groups it cannot: p sends m1 to g1, then m2
to g2, and dies; m1 is lost, but somebody who is not in g1 has delivered m2 already. Hence the send
rule: a frame leaves for g only when every frame that this process sent to *another* group is held
by so many others that it survives the crashes it must. That is one other if nothing was asked for:
the process asks one (`AskHeld`). With resilience k it is k others; a gate counts who holds what,
and tells (`held_at`). With resilience 0 the rule is off, and such a gap is possible.

The rule says nothing of what was *delivered* here. Without a gate a frame that was delivered is
held by its sender and by this process: one crash cannot lose it. With a gate the application has
seen only what more than k hold; what it has not seen, nothing that it says can depend on.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Iterator, Sequence

import msgspec

from ordercast.core.durability import holders_needed
from ordercast.core.events import Cut, Kept, Multicast, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import Options, on
from ordercast.core.waiting import NOBODY, Awaited, Waiting, first_named
from ordercast.errors import PeerError
from ordercast.machinery.acknowledged import Ack, AcknowledgedProtocol


class AskHeld(msgspec.Struct, frozen=True, array_like=True):
    """To one member: say so when you hold all my frames up to n."""

    n: int


class Held(msgspec.Struct, frozen=True, array_like=True):
    """Your frames up to n are held here, delivered or not."""

    n: int


class DomainProtocol(AcknowledgedProtocol):
    """One machine for all groups of a process that share an order and a protocol."""

    def __init__(self, me: ProcessId, options: Options | None = None) -> None:
        super().__init__(me, options)
        self.deferred: deque[Multicast] = deque()  # held up by the send rule, in order
        # where a gate counts the holders; 0: no rule. It is the group's, and outlives a stay in it
        self.durability: dict[GroupId, int] = {}
        self.held_by: dict[GroupId, dict[ProcessId, int]] = {}  # own frames up to here, per member
        self.safe: dict[GroupId, int] = {}  # own frames up to here are held by as many as need be
        self.asked: dict[GroupId, int] = {}  # AskHeld was sent for frames up to here
        self.promised: dict[tuple[GroupId, ProcessId], int] = {}  # AskHeld that waits for frames

    # -- sending ----------------------------------------------------------------------------------

    def _multicast(self, multicast: Multicast) -> None:
        self.deferred.append(multicast)
        self._send_deferred()

    def _send_deferred(self) -> None:
        while self.deferred:
            exposed = self._exposed(self.deferred[0].group)
            if exposed:
                for h in exposed:
                    self._ask(h)
                return
            super()._multicast(self.deferred.popleft())

    def _exposed(self, g: GroupId) -> list[GroupId]:
        """Groups other than g with a frame of ours that too few others are known to hold."""
        return [
            h
            for h, record in self.stability.items()
            if h != g and self.safe[h] < record.S and self._others_needed(h)
        ]

    def _copies_missing(self, h: GroupId) -> int:
        """How many others must still hold our last frame in h."""
        S = self.stability[h].S
        return self._others_needed(h) - sum(1 for n in self.held_by[h].values() if n >= S)

    def _others_needed(self, h: GroupId) -> int:
        if h not in self.durability:  # one crash at a time, unless that was declined
            return 0 if self.options.resilience == 0 else min(1, len(self.others[h]))
        if not self.durability[h]:
            return 0
        members = self.views[h].members
        return holders_needed(self.durability[h], len(members)) - (self.me in members)

    def held_up(self) -> Iterator[Waiting]:
        exposed: dict[GroupId, None] = {}
        seen: set[GroupId] = set()
        awaits: tuple[Awaited, ...] = ()
        for multicast in self.deferred:  # each also waits for all before it
            g = multicast.group
            if g not in seen:
                seen.add(g)
                exposed.update(dict.fromkeys(self._exposed(g)))
                awaits = first_named(
                    Awaited("copies", h, NOBODY, self._copies_missing(h)) for h in exposed
                )
            yield Waiting(g, self.me, 0, awaits, multicast.payload)

    def _ask(self, h: GroupId) -> None:
        # One is enough. If it dies, the cut that follows delivers our frames to all.
        S = self.stability[h].S
        if self.asked[h] < S and h not in self.durability:
            self.asked[h] = S
            self.send(self.others[h][0], h, AskHeld(S))

    @on(AskHeld)
    def on_ASK_HELD(self, q: ProcessId, g: GroupId, ask: AskHeld, m: bytes) -> None:
        self.check_sender(g, q)
        if ask.n > self.mark(g, q) + self.options.max_held:
            raise PeerError(f"it asks for frame {ask.n}, far above {self.mark(g, q)}")
        self.promised[g, q] = max(ask.n, self.promised.get((g, q), 0))
        self.keep_promise(g, q)

    def keep_promise(self, g: GroupId, q: ProcessId) -> None:
        """A page calls this after a frame of q was held or delivered in g."""
        if self.promised and (n := self.promised.get((g, q))) is not None and self.mark(g, q) >= n:
            del self.promised[g, q]
            self.send(q, g, Held(n))

    @on(Held)
    def on_HELD(self, p: ProcessId, g: GroupId, held: Held, m: bytes) -> None:
        if p not in self.others[g]:
            raise PeerError(f"process {p} is no member, and holds nothing")
        if held.n > self.stability[g].S:
            raise PeerError(f"it holds frame {held.n}, but only {self.stability[g].S} were sent")
        self.held_at(g, p, held.n)

    @on(Ack)
    def on_ACK(self, p: ProcessId, g: GroupId, ack: Ack, m: bytes) -> None:
        super().on_ACK(p, g, ack, m)
        if p in self.others[g]:  # who consumed a frame has held it
            self.held_at(g, p, ack.n)

    def count_holders(self, g: GroupId, durability: int) -> None:
        self.durability[g] = durability

    def held_at(self, g: GroupId, p: ProcessId, n: int) -> None:
        marks = self.held_by.get(g)
        if marks is None or n <= marks.get(p, 0):  # this process is out of g, or knows it
            return
        marks[p] = n
        needed = self._others_needed(g)
        if 0 < needed <= len(marks):
            safe = sorted(marks.values())[-needed]
            if safe > self.safe[g]:
                self.safe[g] = safe
                self._send_deferred()

    # -- the cut ----------------------------------------------------------------------------------

    def cut(self, cut: Cut) -> None:
        """Settle what all groups left; then begin all of them, then look at packets."""
        self.settle({f.group: self.fitting(f.group, f.union) for f in cut.flushes})
        super().cut(Cut((), cut.views))
        self._send_deferred()

    @abstractmethod
    def settle(self, unions: dict[GroupId, list[Kept]]) -> None:
        """All groups stand still: deliver, in this protocol's order, what it can of the unions.

        Every survivor of g must deliver the same frames of g. A frame that is here already may be
        among them.
        """

    def on_flush(self, g: GroupId, union: Sequence[Kept]) -> None:
        raise AssertionError("groups that hang together end together: they need a Cut")

    def on_view(self, view: View) -> None:
        super().on_view(view)
        g = view.group
        self.held_by[g] = {}
        self.safe[g] = self.asked[g] = 0
        self.promised = {key: n for key, n in self.promised.items() if key[0] != g}
        if self.me not in view.senders:
            self.forget_group(g)

    def forget_group(self, g: GroupId) -> None:
        """This process is out of g. Pages drop what they keep of it, too."""
        for table in (self.stability, self.held_by, self.safe, self.asked):
            table.pop(g, None)
        self.early = [packet for packet in self.early if packet.group != g]
        self.member_of.discard(g)
        self.deferred = deque(m for m in self.deferred if m.group != g)
