"""What one process sends to its groups of one order: in which order, and when.

A sender is never blocked. Where the order is causal, a frame waits here until those that were sent
to other groups are back with their numbers. With resilience 0 it leaves at once if the same
sequencer numbers them: that one waits for their numbers (`after`). The source puts SEQ(id) in place
of a number that is not known yet, and lets members wait: that deadlocks, also when read leniently.
"""

from __future__ import annotations

from collections import deque
from typing import ClassVar

from ordercast.core.durability import holders_needed
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import Options, OrderingProtocol
from ordercast.machinery.numbering import Context
from ordercast.protocols.sequencing.headers import Ids
from ordercast.protocols.sequencing.part import GroupPart


class SenderToGroups(OrderingProtocol):
    """The sender of the service: what it has seen, and what it sent that is not settled."""

    causal: ClassVar[bool]  # contexts name what the sender had seen

    def __init__(self, me: ProcessId, options: Options | None = None) -> None:
        self.parts: dict[GroupId, GroupPart] = {}
        super().__init__(me, options)
        self.paused = False
        self.settling = False  # a cut: groups end, and nothing leaves
        self.releasing = False  # inside `send_released`
        self.parted: set[GroupId] = set()  # named by own requests at another sequencer than theirs
        self.seen: dict[GroupId, int] = {}  # C_p: numbers that what is sent now comes after
        self.sent: dict[tuple[GroupId, int], None] = {}  # own frames not settled, as they were sent
        self.unsent: deque[tuple[GroupId, int]] = deque()  # ... of them, those not asked for yet
        self.durability: dict[GroupId, int] = {}  # groups with a gate
        self.holders: dict[GroupId, dict[ProcessId, int]] = {}  # numbers that others hold, there

    def on_multicast(self, g: GroupId, m: bytes) -> None:
        part = self.parts[g]
        part.S += 1
        part.requests[part.S] = m
        self.sent[g, part.S] = None
        self.unsent.append((g, part.S))
        self.send_released()

    def send_released(self) -> None:
        """DO-MULTICAST for what need not wait for the numbers of other groups any more.

        A frame that is numbered here may be delivered, and release the next: that is left to the
        loop, or a long line of them would end on the stack.
        """
        if self.releasing:
            return
        self.releasing = True
        while self.unsent and not (self.paused or self.settling) and self._release_first():
            pass
        self.releasing = False

    def _release_first(self) -> bool:
        """May the first leave? Then it has left."""
        g, n = self.unsent[0]
        part = self.parts[g]
        if n not in part.requests:  # the group was left
            self.unsent.popleft()
            return True
        if self._must_hold(g):
            return False
        part.stamps[n] = self._stamp(g, part) if self.causal else ((), ())
        self.unsent.popleft()
        part.released = n
        part.request(g, n, part.requests[n])
        part.start_timer(g, "retry", self.options.retry_ms)
        return True

    def _must_hold(self, g: GroupId) -> bool:
        exposed = self.exposed_before(g)
        for h in exposed:
            self.parts[h].ask_held(h, self.seen[h])
        return bool(exposed) or bool(self.unsettled_before(g))

    def unsettled_before(self, g: GroupId) -> list[GroupId]:
        """Where a frame of ours must be settled before the next one to g may leave."""
        if self.options.blocking:  # as the source has it at first
            return [h for h, part in self.parts.items() if part.released and self._unsettled(h)]
        if not self.causal:
            return []
        leader = self.parts[g].leader
        # One sequencer may number both in a row. If it died when only the second had reached
        # anybody, the first would come after it, with another number.
        in_a_row = self.options.resilience == 0
        return [
            h
            for h in self._spoke_in(g)
            if self._unsettled(h)
            and not (in_a_row and self.parts[h].leader == leader and h not in self.durability)
        ]

    def exposed_before(self, g: GroupId) -> list[GroupId]:
        """Numbered here, seen here, and nobody else may have it: a frame to g must not tell. Or
        said there as a guest that has left since, and does not know who has it."""
        if not self.causal or self.options.resilience == 0:
            return []
        others = [h for h in self.seen if h != g and h in self.parts]
        return [h for h in others if self._is_exposed(h, self.parts[h])]

    def _is_exposed(self, h: GroupId, part: GroupPart) -> bool:
        if part.undismissed:
            return True
        if h in self.durability:
            return False
        return part.exposed(h, self.seen[h]) or part.is_new_here()

    def _spoke_in(self, g: GroupId) -> list[GroupId]:
        return [h for h, other in self.parts.items() if h != g and other.released]

    def _unsettled(self, h: GroupId) -> bool:
        """Is there a frame of ours in h whose number may still be lost, or is not known?"""
        return self.is_unnumbered(h) or self.copies_missing(h) > 0

    def is_unnumbered(self, h: GroupId) -> bool:
        """Was a number asked for, and is not known here?"""
        part = self.parts[h]
        if h not in self.member_of:
            return part.numbered < part.released
        return bool(part.requests) and next(iter(part.requests)) <= part.released

    def copies_missing(self, h: GroupId) -> int:
        """How many more must hold our last frame in h."""
        part, member = self.parts[h], h in self.member_of
        if h not in self.durability:  # a guest does not know who has it but the sequencer
            return int(not member and part.held < part.released)
        last = (part.own[-1][0] if part.own else 0) if member else part.last_number
        if last <= part.settled:
            return 0
        if part.is_new_here():
            return 1
        members, marks = self.views[h].members, self.holders.get(h, {})
        able = [p for p in members if part.came_in.get(p, 0) < last]  # others came after it
        needed = min(holders_needed(self.durability[h], len(members)), len(able))
        return needed - sum(p == self.me or marks.get(p, 0) >= last for p in able)

    def _stamp(self, g: GroupId, part: GroupPart) -> tuple[Context, Ids]:
        parts = self.parts
        for h in [h for h, N in self.seen.items() if h in parts and parts[h].settled >= N]:
            del self.seen[h]
        after = tuple((h, self.parts[h].released) for h in self._spoke_in(g) if self._unsettled(h))
        return tuple((h, N) for h, N in self.seen.items() if h != g), after

    def resolved(self, context: Context, after: Ids) -> tuple[Context, Ids]:
        """A request is repeated: which of the frames before it still have no number?"""
        left = tuple((h, n) for h, n in after if h in self.parts and self.parts[h].lacks_number(n))
        if left == after:
            return context, after
        numbers = dict(context)
        for h, n in after:
            if (h, n) not in left and h in self.seen:
                numbers[h] = max(self.seen[h], numbers.get(h, 0))
        return tuple(numbers.items()), left

    def settled_own(self, g: GroupId, n: int) -> None:
        """Our frame n was delivered here."""
        self.sent.pop((g, n), None)
        if g in self.parted:
            self._tell_number(g, n)

    def _tell_number(self, g: GroupId, n: int) -> None:
        """Our frame n has its number: requests that named it are at another sequencer, which will
        not see it numbered, and go out again."""
        for h, part in self.parts.items():
            for k in [k for k, (_, after) in part.stamps.items() if (g, n) in after]:
                if k in part.requests:
                    part.request(h, k, part.requests[k])
        self._look_who_parted()

    def _look_who_parted(self) -> None:
        parts = self.parts
        self.parted = {
            h
            for part in parts.values()
            for _, after in part.stamps.values()
            for h, n in after
            if h in parts and parts[h].leader != part.leader and n in parts[h].requests
        }

    def ask_again_after(self, g: GroupId) -> None:
        """Another numbers this group: requests that named its frames go out again, if need be, and
        its own that named frames of others: their numbers may be known here, and not there."""
        for h, part in self.parts.items():
            named = self.parts if h == g else (g,)
            for n in part.requests_after(named):
                if n in part.requests and n <= part.released:
                    part.request(h, n, part.requests[n])
        self._look_who_parted()
        self.send_released()

    def count_holders(self, g: GroupId, durability: int) -> None:
        if durability:
            self.durability[g] = durability

    def held_at(self, g: GroupId, p: ProcessId, n: int) -> None:
        marks = self.holders.setdefault(g, {})
        if n > marks.get(p, 0):
            marks[p] = n
            self.send_released()

    def saw(self, g: GroupId, N: int, context: Context) -> None:
        """This was delivered, or numbered, here: what is sent now comes after it."""
        if self.causal:
            seen = self.seen
            if seen.get(g, 0) < N:
                seen[g] = N
            for h, n in context:
                if n > seen.get(h, 0):
                    seen[h] = n
