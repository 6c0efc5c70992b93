"""Machines of several groups on a bench: the test carries every packet by hand."""

from __future__ import annotations

from collections.abc import Mapping

from machines import Bench
from ordercast.core.domain import DomainProtocol
from ordercast.core.events import Cut, Flush, Multicast, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import Options

Members = Mapping[GroupId, tuple[ProcessId, ...]]

RING: Members = {1: (1, 2, 3, 4), 2: (3, 4, 5, 6), 3: (5, 6, 7, 8), 4: (1, 2, 7, 8)}  # 004, fig. 3
CHAIN: Members = {1: (1, 2, 3), 2: (3, 4, 5), 3: (5, 6)}


class Overlap(Bench):
    """One machine per process for all its groups."""

    def __init__(
        self,
        protocol: type[DomainProtocol],
        groups: Members,
        guests: Members | None = None,
        options: Options | None = None,
    ) -> None:
        self.groups = dict(groups)
        self.guests = dict(guests or {})
        self.era = 1
        everybody = sorted(
            {p for table in (groups, self.guests) for m in table.values() for p in m}
        )
        self.domain = {p: protocol(p, options) for p in everybody}
        super().__init__(dict(self.domain))
        for p in everybody:
            self.step(p, Cut((), tuple(self.views_of(p))))

    def views_of(self, p: ProcessId) -> list[View]:
        """The views of this era that p installs."""
        views = [
            View(g, self.era, members, members[0], self.era, guests=self.guests.get(g, ()))
            for g, members in self.groups.items()
        ]
        return [view for view in views if p in view.senders]

    def tell(self, p: ProcessId, g: GroupId, *texts: str) -> None:
        """The application at p multicasts to g, one step per message."""
        for text in texts:
            self.step(p, Multicast(g, text.encode()))

    def cut(self, groups: Members) -> None:
        """All groups that are left end, and begin with these members."""
        unions: dict[GroupId, tuple[object, ...]] = {}
        old = {p: self.views_of(p) for p in self.domain}
        alive = [p for p in self.domain if p not in self.crashed]
        for g, members in self.groups.items():
            senders = (*members, *self.guests.get(g, ()))
            reports = (self.domain[p].unstable(g) for p in senders if p in alive)
            unions[g] = tuple({(f.origin, f.n): f for report in reports for f in report}.values())
        self.groups = dict(groups)
        self.guests = {g: tuple(p for p in who if p in alive) for g, who in self.guests.items()}
        self.era += 1
        for p in alive:
            flushes = tuple(Flush(v.group, unions[v.group]) for v in old[p])  # type: ignore[arg-type]
            left = [
                View(v.group, self.era, groups[v.group], p, self.era)
                for v in old[p]
                if p not in groups.get(v.group, (p,)) and p not in self.guests.get(v.group, ())
            ]
            self.step(p, Cut(flushes, (*self.views_of(p), *left)))
