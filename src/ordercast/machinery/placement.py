"""Where groups are sequenced: the decisions of the coordinator, without the doing.

Source      000 (Kindberg), section 4.2 (S1, S2, `resolve`) and 7 (the majority sender).

    JOIN(G, p)   comp = the component of G once p is in;  hosts = {sequencer(g): g in comp}
                 if |hosts| > 1: dest = resolve(comp, hosts); transfer every g in comp not at dest
    LEAVE(G, p)  p counts until all have delivered its leave; a join before that cancels it
    resolve      cost(h) = load(h) + the sum of weight(g), g in comp not at h;
                 least cost; tie: least weight moved; tie: lowest id

Departures from the source
  D1  The source resolves one pair of groups. We resolve the component: several may fuse at once.
      (test_D1_...)
  D2  The source splits when a member leaves. Messages numbered before that may still be under way,
      so a leaver counts until the caller says that everybody delivered the leave. (test_D2_...)

New groups, and groups whose host died, are placed here at once. All other answers are proposals:
they count when the caller reports `moved`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final, Literal

from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.state import PlainState
from ordercast.machinery.balance import Balance, Placed, best_move
from ordercast.machinery.components import (
    NEVER,
    STRONG,
    WEAK,
    Components,
    Groups,
    strong_components,
    weak_components,
)
from ordercast.machinery.load import Load, Requests

__all__ = ["Groups", "Move", "Placement", "Together", "strong_components", "weak_components"]

Together = Literal["strong", "weak", "none"]  # S2; S1; any group anywhere
Move = tuple[frozenset[GroupId], ProcessId]  # a component, and where it should go

SHARE: Final[dict[Together, int]] = {"strong": STRONG, "weak": WEAK, "none": NEVER}


class Placement(PlainState):
    """Where every group of one domain is sequenced. Kept by the coordinator."""

    def __init__(self, *, together: Together) -> None:
        self.components = Components(SHARE[together])  # its members include leavers that count
        self.leaving: dict[GroupId, set[ProcessId]] = {}  # those that left and still count
        self.host: dict[GroupId, ProcessId] = {}  # the sequencer of each group
        self.loads = Load()
        self.requests = Requests()
        self.balance = Balance()

    @property
    def members(self) -> dict[GroupId, set[ProcessId]]:
        """Who counts as a member of each group: members, and leavers that are not settled."""
        return self.components.members

    # What the coordinator knows

    def know(self, g: GroupId, members: Iterable[ProcessId], host: ProcessId) -> None:
        """The group stands like this, as reported. What was measured stays."""
        members = set(members)
        if g not in self.host:
            self.components.add(g)
            self.host[g] = host
        for p in self.members[g] - members:
            self.components.leave(g, p)
        for p in members:
            self.components.enter(g, p)
        self.leaving.pop(g, None)
        self.moved(g, host)

    def forget(self, g: GroupId) -> None:
        """The group exists no more."""
        if g in self.host:
            self.components.remove(g)
            self.leaving.pop(g, None)
            self.loads.forget(g, self.host.pop(g))
            self.requests.forget(g)

    def joined(self, g: GroupId, p: ProcessId) -> None:
        """p is a member. If its former leave was not settled, that leave counts no more."""
        self._stays(g, p)
        self.components.enter(g, p)
        self._weigh(g)

    def left(self, g: GroupId, p: ProcessId) -> None:
        """p left. It counts until `settled`: its group may not be placed apart before."""
        if p in self.members[g]:
            self.leaving.setdefault(g, set()).add(p)
            self._weigh(g)

    def settled(self, g: GroupId, p: ProcessId) -> None:
        """All that were in g with p, p too, delivered its last leave, or are excluded."""
        if p in self.leaving.get(g, ()):
            self._stays(g, p)
            self.components.leave(g, p)

    def moved(self, g: GroupId, to: ProcessId) -> None:
        """The group is sequenced at `to` from now on. Its majority sender is judged afresh."""
        if self.host[g] != to:
            self.loads.lift(g, self.host[g])
            self.requests.forget(g)
            self.host[g] = to
        self._weigh(g)

    def measured(self, g: GroupId, rate: float, by_sender: Mapping[ProcessId, int]) -> None:
        """A window ended: requests per second, and requests of each sender.

        Called for every group in every window, also for idle ones.
        """
        if g in self.host:
            self.loads.measured(g, rate)
            self.requests.measured(g, by_sender)
            self._weigh(g)

    # What follows from it

    def load(self, host: ProcessId) -> float:
        """The sum of the weights of the groups sequenced there."""
        return self.loads.loads.get(host, 0.0)

    def weight(self, g: GroupId) -> float:
        """What the group costs its sequencer, in packets per second."""
        return self.loads.weights[g]

    def component(self, g: GroupId, joining: Iterable[ProcessId] = ()) -> frozenset[GroupId]:
        """The groups that must be together with g once these have joined it."""
        return self.components.component(g, joining)

    def resolve(self, part: Iterable[GroupId], hosts: Iterable[ProcessId]) -> ProcessId:
        """The best of these hosts for all these groups."""
        here = self._spread(part)
        total = sum(here.values())

        def cost(h: ProcessId) -> tuple[float, float, ProcessId]:
            moved = total - here.get(h, 0.0)
            return self.load(h) + moved, moved, h

        return min(hosts, key=cost)

    # What to do

    def place_new(
        self, g: GroupId, eligible: Collection[ProcessId], founders: Iterable[ProcessId] = ()
    ) -> ProcessId:
        """Place a group that has no members yet: at the least loaded; tie: the first of these.

        If it must be together with other groups once its founders are in: where those are.
        """
        assert g not in self.host
        part = self.component(g, founders) - {g}
        near = {self.host[x] for x in part}
        if near:
            host = self.resolve(part, near & set(eligible) or near)
        else:
            host = min(eligible, key=self.load)
        self.know(g, (), host)
        return host

    def moves_for_join(
        self, g: GroupId, joining: Iterable[ProcessId], eligible: Collection[ProcessId]
    ) -> tuple[ProcessId, list[GroupId]]:
        """Where g's component must be before these join g, and its groups that are not there."""
        part = self.component(g, joining)
        hosts = {self.host[x] for x in part}
        if len(hosts) == 1:
            return self.host[g], []
        dest = self.resolve(part, hosts & set(eligible) or eligible or hosts)
        return dest, sorted(x for x in part if self.host[x] != dest)

    def place_all(
        self, lost: Iterable[GroupId], eligible: Collection[ProcessId]
    ) -> dict[GroupId, ProcessId]:
        """Groups lost their host: place each component at one host; say where all these are now.

        A component goes where most of its weight survived; tie: the lowest id. If none of its
        hosts is eligible: to the least loaded; tie: the first of these. The heaviest goes first.
        """
        lost = set(lost)
        before = dict(self.host)
        parts = self._heaviest_first(self.components.with_any(lost))
        spread = [(part, self._spread(part)) for part in parts]
        for part, at in sorted(spread, key=lambda s: s[1].keys().isdisjoint(eligible)):
            survived = at.keys() & set(eligible)
            if survived:
                dest = min(survived, key=lambda h: (-at[h], h))
            else:  # after all that could stay: their load is known now
                dest = min(eligible, key=self.load)
            for g in part:
                self.moved(g, dest)
        return {g: h for g, h in self.host.items() if g in lost or before[g] != h}

    def rebalance(self, eligible: Iterable[ProcessId]) -> Move | None:
        """The one component whose move would even out the load, if it is time. Ask once per window.

        Those at their majority sender stay, or the two policies would move them to and fro.
        """
        loads = {h: self.load(h) for h in eligible}
        if not self.balance.is_time(loads):
            return None
        move = best_move(loads, [c for c in self._placed() if self._may_move(c)])
        if move:
            self.balance.moving()
        return move

    def majority_sender(self, eligible: Collection[ProcessId]) -> Move | None:
        """The component that a process elsewhere sent most requests to, in two windows in a row.

        If there are several, the one with the most requests.
        """
        found = []
        for part, host, _ in self._placed():
            last, before = self.requests.majorities(part)
            if last is not None and last == before and last != host and last in eligible:
                found.append((part, last))
        return min(found, key=lambda m: (-self.requests.total(m[0]), min(m[0])), default=None)

    def drain(self, host: ProcessId, eligible: Iterable[ProcessId]) -> list[Move]:
        """Where each component of this host should go; nowhere if no other host is eligible."""
        loads = {h: self.load(h) for h in eligible if h != host}
        here = {g for g, h in self.host.items() if h == host}
        moves = []
        for part in self._heaviest_first(self.components.with_any(here)) if loads else ():
            near = {self.host[g] for g in part} & loads.keys()
            dest = min(near or loads, key=lambda h: (loads[h], h))
            loads[dest] += sum(self.weight(g) for g in part if self.host[g] != dest)
            moves.append((part, dest))
        return moves

    def _stays(self, g: GroupId, p: ProcessId) -> None:
        if p in self.leaving.get(g, ()):
            self.leaving[g].remove(p)
            if not self.leaving[g]:
                del self.leaving[g]

    def _weigh(self, g: GroupId) -> None:
        size = len(self.members[g]) - len(self.leaving.get(g, ()))
        self.loads.weigh(g, size, self.host[g])

    def _spread(self, part: Iterable[GroupId]) -> dict[ProcessId, float]:
        """How much of the weight of these groups is at each host."""
        spread: dict[ProcessId, float] = {}
        for g in part:
            spread[self.host[g]] = spread.get(self.host[g], 0.0) + self.weight(g)
        return spread

    def _heaviest_first(self, parts: Iterable[frozenset[GroupId]]) -> list[frozenset[GroupId]]:
        return sorted(parts, key=lambda part: (-sum(map(self.weight, part)), min(part)))

    def _placed(self) -> list[Placed]:
        """The components that are at one host; the others are moving."""
        placed = []
        for part in self.components.all():
            hosts = {self.host[g] for g in part}
            if len(hosts) == 1:
                placed.append(Placed(part, hosts.pop(), sum(map(self.weight, part))))
        return placed

    def _may_move(self, c: Placed) -> bool:
        return self.requests.known(c.part) and c.host not in self.requests.majorities(c.part)
