"""Machines in several groups on a bench: the test carries every packet and makes every cut."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

import msgspec

from machines import Bench, Change, Plan
from ordercast.core.events import Cut, Flush, Kept, Multicast, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import Options, OrderingProtocol
from ordercast.core.waiting import Waiting

Groups = Mapping[GroupId, tuple[ProcessId, ...]]

AT_ONCE = Options(resilience=0)  # a frame leaves for another group without waiting for a holder
LEADER = 0  # leads all groups and is in none

RING: Groups = {1: (1, 2, 3, 4), 2: (3, 4, 5, 6), 3: (5, 6, 7, 8), 4: (1, 2, 7, 8)}  # 004, fig. 3
CHAIN: Groups = {1: (1, 2, 3), 2: (3, 4, 5), 3: (5, 6)}

P = TypeVar("P", bound=OrderingProtocol)
H = TypeVar("H", bound=msgspec.Struct)


class Overlap(Bench, Generic[P]):
    """One machine per process serves all its groups."""

    def __init__(
        self,
        protocol: type[P],
        groups: Groups,
        options: Options = AT_ONCE,
        *,
        guests: Groups | None = None,
    ) -> None:
        super().__init__({})
        self.protocol = protocol
        self.options = options
        self.protocols: dict[ProcessId, P] = {}
        self.views = {g: View(g, 0, (), LEADER, 0) for g in groups}  # in force
        self.cut(groups, guests)

    def tell(self, p: ProcessId, g: GroupId, *texts: str) -> None:
        """The application at p multicasts to g, one step per message."""
        for text in texts:
            self.step(p, Multicast(g, text.encode()))

    # -- what the leader does ---------------------------------------------------------------------

    def cut(self, groups: Groups, guests: Groups | None = None) -> None:
        """All groups end and begin with these members, and more guests; the crashed are gone."""
        plans = [self._plan(g, groups[g], (guests or {}).get(g, ())) for g in self.views]
        unions = {plan.view.group: self._union(plan) for plan in plans}
        marks = (self.protocols[p].report_mark(plan.view.group) for plan, p in _survivors(plans))
        start = max(marks, default=0)
        for plan in plans:
            self.views[plan.view.group] = plan.next_view(start)
        for p in sorted({p for plan in plans for p in plan.audience}):
            self._install(p, [plan for plan in plans if p in plan.audience], unions)

    def _plan(
        self, g: GroupId, members: tuple[ProcessId, ...], guests: tuple[ProcessId, ...]
    ) -> Plan:
        plan = Plan(self.views[g])
        joined = tuple(p for p in members if p not in plan.members)
        left = tuple(p for p in plan.members if p not in members)
        plan.apply(Change(g, joined, guests, left, tuple(self.crashed)))
        return plan

    def _union(self, plan: Plan) -> tuple[Kept, ...]:
        held = {p: self.protocols[p].unstable(plan.view.group) for p in plan.survivors}
        return plan.union(self.protocol, held)

    def _install(
        self, p: ProcessId, plans: list[Plan], unions: dict[GroupId, tuple[Kept, ...]]
    ) -> None:
        if p not in self.protocols:
            self._make(p)
        ended = (plan.view.group for plan in plans if p in plan.view.members)
        views = (self.views[plan.view.group] for plan in plans)
        self.step(p, Cut(tuple(Flush(g, unions[g]) for g in ended), tuple(views)))

    def _make(self, p: ProcessId) -> None:
        self.protocols[p] = self.machines[p] = self.protocol(p, self.options)
        self.log[p], self.timers[p], self.stable[p] = [], {}, 0

    # -- what the test looks at -------------------------------------------------------------------

    def header(self, kind: type[H], text: str, src: ProcessId | None = None) -> H:
        """The header of a message under way."""
        found = self.find(src, header=kind, text=text)[0].header
        assert isinstance(found, kind)
        return found

    def held(self, p: ProcessId) -> list[Waiting]:
        """What waits at p."""
        return sorted(self.protocols[p].held_back())

    def held_texts(self, p: ProcessId) -> list[str]:
        """The messages that wait at p."""
        return sorted(waiting.payload.decode() for waiting in self.held(p))

    def numbers(self, p: ProcessId) -> int:
        """The block counter of p."""
        return self.blocks(p).BC

    def blocks(self, p: ProcessId) -> Any:
        """The block numbers of p."""
        machine: Any = self.protocols[p]
        return machine.order.blocks if hasattr(machine, "order") else machine.blocks


def _survivors(plans: list[Plan]) -> list[tuple[Plan, ProcessId]]:
    return [(plan, p) for plan in plans for p in plan.survivors]
