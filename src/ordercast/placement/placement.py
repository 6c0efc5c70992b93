"""Where groups are sequenced: the decisions of the coordinator, without the doing.

Source      000 (Kindberg), section 4.2 (S1, S2, `resolve`) and 7 (the majority sender).

    JOIN(G, p)   comp = the component of G once p is in;  hosts = {sequencer(g): g in comp}
                 if |hosts| > 1: dest = resolve(comp, hosts); transfer every g in comp not at dest
    resolve      cost(h) = load(h) + the sum of weight(g), g in comp not at h;
                 least cost; tie: least weight moved; tie: lowest id

Departures from the source
  D1  The source resolves one pair of groups. We resolve the component: several may fuse at once.
      (test_D1_...)

New groups, and groups whose host died, are placed here at once. All other answers are proposals:
they count when the caller reports `moved`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import Together
from ordercast.placement.balance import Balance, Placed, best_move
from ordercast.placement.components import Groups, strong_components, weak_components
from ordercast.placement.hosting import Hosting

__all__ = ["Groups", "Move", "Placement", "Together", "strong_components", "weak_components"]

Move = tuple[frozenset[GroupId], ProcessId]  # a component, and where it should go


class Placement(Hosting):
    """Where every group of one domain is sequenced. Kept by the coordinator."""

    def __init__(self, *, together: Together) -> None:
        super().__init__(together=together)
        self.balance = Balance()

    def resolve(self, part: Iterable[GroupId], hosts: Iterable[ProcessId]) -> ProcessId:
        """The best of these hosts for all these groups."""
        here = self.spread(part)
        total = sum(here.values())

        def cost(h: ProcessId) -> tuple[float, float, ProcessId]:
            moved = total - here.get(h, 0.0)
            return self.load(h) + moved, moved, h

        return min(hosts, key=cost)

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
        spread = [(part, self.spread(part)) for part in parts]
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
