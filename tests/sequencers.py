"""The sequencing service on a bench: several groups, several sequencers, changes by hand.

A change goes as the coordinator leads it, without its packets: `end` stops the groups and decides
from all reports where their eras end, `prepare` lets everybody fetch what is missing, and `install`
begins the next eras at one process, so a test may choose who is how far.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from machines import Bench, Packet
from ordercast.core.changing import Ending, Held, NextEra
from ordercast.core.events import Multicast, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import Options
from ordercast.protocols.sequencing.headers import Accept, Number
from ordercast.protocols.sequencing.service import SequencingService

Placed = Mapping[GroupId, tuple[tuple[ProcessId, ...], ProcessId]]  # members, and who numbers
Guests = Mapping[GroupId, tuple[ProcessId, ...]]
Coming = Sequence[NextEra]

AT_ONCE = Options(resilience=0)  # a frame leaves for another group without waiting for a holder
S, T = 8, 9  # sequencers that are in no group


class Served(Bench):
    """One machine per process serves all its groups. The network may lose packets."""

    def __init__(
        self,
        protocol: type[SequencingService],
        groups: Placed,
        *,
        guests: Guests | None = None,
        others: tuple[ProcessId, ...] = (),
        options: Options = AT_ONCE,
        lossy: bool = True,
    ) -> None:
        self.guests = guests or {}
        options = msgspec.structs.replace(options, lossy=lossy)
        views = {g: View(g, 1, members, leader) for g, (members, leader) in groups.items()}
        known = {p for view in views.values() for p in self.concerned(view)}
        self.services = {p: protocol(p, options) for p in sorted(known | set(others))}
        super().__init__(dict(self.services))
        self.views = views
        self.changes = 0
        for g, view in views.items():
            for p in self.concerned(view):
                if options.resilience is not None:
                    self.services[p].count_holders(g, options.resilience)
                self.step(p, view)

    def concerned(self, view: View) -> tuple[ProcessId, ...]:
        """Members, guests and the sequencer of a group."""
        guests = self.guests.get(view.group, ())
        return tuple(dict.fromkeys((view.leader, *view.members, *guests)))

    def tell(self, p: ProcessId, g: GroupId, *texts: str) -> None:
        """The application at p multicasts to g, one step per message."""
        for text in texts:
            self.step(p, Multicast(g, text.encode()))

    def context(self, text: str) -> dict[GroupId, int]:
        """The numbers that this message comes after, as its ACCEPT says that is under way."""
        header = self.find(header=Accept, text=text)[0].header
        assert isinstance(header, Accept)
        return {h: N for h, _, N in header.context}

    def numbers(self, p: ProcessId | None = None) -> list[Packet]:
        """ACCEPTs and NUMBERs under way, to p or to anybody."""
        return [x for x in self.find(dst=p) if isinstance(x.header, Accept | Number)]

    def of_group(self, g: GroupId, *args: object, **looks: object) -> list[Packet]:
        """Packets of this group under way that look like this."""
        return [p for p in self.find(*args, **looks) if p.receive.group == g]  # type: ignore[arg-type]

    # -- what a coordinator does ------------------------------------------------------------------

    def end(self, groups: Placed) -> Coming:
        """The eras of these groups end; the next ones have these members and sequencers."""
        reports: dict[GroupId, dict[ProcessId, Held]] = {g: {} for g in groups}
        for p, service in self._living():
            self._do(p, lambda service: service.stop(groups))
            for g in groups:
                held = service.report(g)
                if held is not None:
                    reports[g][p] = held
        endings = {
            g: Ending(self.views[g].era, reports[g], frozenset(self.crashed)) for g in groups
        }
        kind = type(next(iter(self.services.values())))
        ends = kind.decide(endings)
        coming = []
        for g, (members, leader) in groups.items():
            before = self.views[g]
            number = before.number + (members != before.members)
            after = View(g, number, members, leader, before.era + 1)
            coming.append(NextEra(after, ends[g], before))
            self.views[g] = after
        return coming

    def prepare(self, coming: Coming, *who: ProcessId) -> None:
        """These fetch what they lack; nobody named: all."""
        for p, _ in self._living():
            if not who or p in who:
                self._do(p, lambda service: service.prepare(coming))

    def install(self, coming: Coming, *who: ProcessId) -> None:
        """The next eras begin at these; nobody named: at all."""
        self.changes += 1
        for p, _ in self._living():
            if not who or p in who:
                self._do(p, lambda service: self._begin(service, coming))

    def _begin(self, service: SequencingService, coming: Coming) -> None:
        service.unprepare({e.view.group for e in coming})
        service.change(self.changes, coming)

    def change(self, groups: Placed) -> None:
        """A whole change; nothing else happens meanwhile."""
        coming = self.end(groups)
        self.prepare(coming)
        self.fetch(coming)
        self.install(coming)

    def fetch(self, coming: Coming) -> None:
        """What is under way arrives until everybody is ready."""
        for _ in range(40):
            if all(s.is_ready(e.view.group, e.end) for _, s in self._living() for e in coming):
                return
            self.go_on(rounds=1)
        raise AssertionError("somebody is never ready")

    def _living(self) -> list[tuple[ProcessId, SequencingService]]:
        return [(p, service) for p, service in self.services.items() if p not in self.crashed]

    def _do(self, p: ProcessId, act: Callable[[SequencingService], None]) -> None:
        service = self.services[p]
        service.out.clear()
        act(service)
        self.carry_out(p, service.out)
