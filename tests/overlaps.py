"""Machines in several groups on a bench: the test carries every packet and makes every cut."""

from __future__ import annotations

from collections.abc import Mapping

from machines import Bench
from ordercast.core.events import Cut, Flush, Kept, Multicast, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import Options, OrderingProtocol
from ordercast.core.waiting import Waiting

Members = tuple[ProcessId, ...]

AT_ONCE = Options(resilience=0)  # a frame leaves though nobody holds the one before, elsewhere


class Overlap(Bench):
    """One machine per process serves all its groups."""

    def __init__(
        self,
        protocol: type[OrderingProtocol],
        groups: Mapping[GroupId, Members],
        options: Options = AT_ONCE,
    ) -> None:
        everybody = sorted({p for members in groups.values() for p in members})
        self.protocols = {p: protocol(p, options) for p in everybody}
        super().__init__(dict(self.protocols))
        self.views = {g: View(g, 1, members, members[0]) for g, members in groups.items()}
        for view in self.views.values():
            for p in view.members:
                self.step(p, view)

    def tell(self, p: ProcessId, g: GroupId, *texts: str) -> None:
        """The application at p multicasts to g, one step per message."""
        for text in texts:
            self.step(p, Multicast(g, text.encode()))

    def held(self, p: ProcessId) -> list[Waiting]:
        """What waits at p."""
        return sorted(self.protocols[p].held_back())

    def held_texts(self, p: ProcessId) -> list[str]:
        """The messages that wait at p."""
        return sorted(waiting.payload.decode() for waiting in self.held(p))

    def numbers(self, p: ProcessId) -> int:
        """The block counter of p."""
        return int(self.protocols[p].BC)  # type: ignore[attr-defined]

    def cut(self, groups: Mapping[GroupId, Members], joining: Members = ()) -> None:
        """All views change together: what the living hold is put together and given to all."""
        alive = [p for p in self.machines if p not in joining]
        old, unions = self.views, {}
        for g, view in old.items():
            union: dict[tuple[ProcessId, int], Kept] = {}
            for p in alive:
                for kept in self.protocols[p].unstable(g) if p in view.members else ():
                    key = (kept.origin, kept.n)
                    better = self.protocols[p].better
                    union[key] = better(union[key], kept) if key in union else kept
            unions[g] = tuple(union.values())
        start = max(self.protocols[p].report_mark(g) for g in old for p in alive)
        self.flight.clear()
        self.views = {
            g: View(g, old[g].number + 1, members, members[0], old[g].era + 1, start)
            for g, members in groups.items()
        }
        for p in self.machines:
            flushes = tuple(
                Flush(g, unions[g], start) for g in groups if p in old[g].members and p in alive
            )
            views = tuple(v for g, v in self.views.items() if p in v.members or p in old[g].members)
            self.step(p, Cut(flushes, views))

    def join(self, protocol: type[OrderingProtocol], p: ProcessId) -> None:
        """A new machine; its first view comes with the next cut."""
        self.protocols[p] = self.machines[p] = protocol(p, AT_ONCE)
        self.log[p], self.timers[p], self.stable[p] = [], {}, 0
