"""When a frame may leave for one group, after others to another: the send rule of a domain.

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

from collections import deque
from collections.abc import Iterator, Mapping

from ordercast.core.durability import holders_needed
from ordercast.core.events import Multicast
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.state import PlainState
from ordercast.core.waiting import NOBODY, Awaited, Waiting, first_named
from ordercast.machinery.stability import Stability


class SendRule(PlainState):
    """What this process wants to send, and who is known to hold what it sent before."""

    def __init__(self, resilience: int | None) -> None:
        self.asks = resilience != 0  # one crash at a time, unless that was declined
        self.deferred: deque[Multicast] = deque()  # held up, in order
        # where a gate counts the holders; 0: no rule. It is the group's, and outlives a stay in it
        self.durability: dict[GroupId, int] = {}
        self.held_by: dict[GroupId, dict[ProcessId, int]] = {}  # own frames up to here, per member
        self.safe: dict[GroupId, int] = {}  # own frames up to here are held by as many as need be
        self.asked: dict[GroupId, int] = {}  # AskHeld was sent for frames up to here

    def begin(self, g: GroupId) -> None:
        """The frames of an earlier era are delivered."""
        self.held_by[g] = {}
        self.safe[g] = self.asked[g] = 0

    def forget_group(self, g: GroupId) -> None:
        """This process is out of g."""
        for table in (self.held_by, self.safe, self.asked):
            table.pop(g, None)
        self.deferred = deque(m for m in self.deferred if m.group != g)

    def exposed(self, sent: Mapping[GroupId, Stability], g: GroupId) -> list[GroupId]:
        """Groups other than g with a frame of ours that too few others are known to hold."""
        return [
            h
            for h, record in sent.items()
            if h != g and self.safe[h] < record.S and self._others_needed(record)
        ]

    def _others_needed(self, record: Stability) -> int:
        members, h = len(record.A.marks), record.group
        if h not in self.durability:
            return min(1, members - record.listens) if self.asks else 0
        if not self.durability[h]:
            return 0
        return holders_needed(self.durability[h], members) - record.listens

    def invariants(self, sent: Mapping[GroupId, Stability]) -> None:
        """What must always hold."""
        for h, record in sent.items():
            assert self.asked[h] <= record.S, "one asks only about what was sent"
            assert self.held_by[h].keys() <= record.A.marks.keys(), "only members hold frames"
        first = self.deferred[0].group if self.deferred else None
        assert first is None or self.exposed(sent, first), "what may leave has left"

    def must_ask(self, record: Stability) -> bool:
        """Is nobody asked yet who holds our last frame in this group?

        One is enough. If it dies, the cut that follows delivers our frames to all.
        """
        h = record.group
        if h in self.durability or self.asked[h] >= record.S:
            return False
        self.asked[h] = record.S
        return True

    def held_at(self, sent: Mapping[GroupId, Stability], g: GroupId, p: ProcessId, n: int) -> bool:
        """Member p holds our frames in g up to n. True if more of them are safe because of it."""
        marks = self.held_by.get(g)
        if marks is None or n <= marks.get(p, 0):  # this process is out of g, or knows it
            return False
        marks[p] = n
        needed = self._others_needed(sent[g])
        if not 0 < needed <= len(marks):
            return False
        safe = sorted(marks.values())[-needed]
        if safe <= self.safe[g]:
            return False
        self.safe[g] = safe
        return True

    def held_up(self, sent: Mapping[GroupId, Stability], me: ProcessId) -> Iterator[Waiting]:
        """Every multicast that may not leave yet, and how many copies of others it waits for."""
        exposed: dict[GroupId, None] = {}
        seen: set[GroupId] = set()
        awaits: tuple[Awaited, ...] = ()
        for multicast in self.deferred:  # each also waits for all before it
            g = multicast.group
            if g not in seen:
                seen.add(g)
                exposed.update(dict.fromkeys(self.exposed(sent, g)))
                awaits = first_named(
                    Awaited("copies", h, NOBODY, self._copies_missing(sent[h])) for h in exposed
                )
            yield Waiting(g, me, 0, awaits, multicast.payload)

    def _copies_missing(self, record: Stability) -> int:
        """How many others must still hold our last frame in this group."""
        holders = self.held_by[record.group].values()
        return self._others_needed(record) - sum(1 for n in holders if n >= record.S)
