"""Runs of the sequencing service by chance: packets are lost, doubled and overtake each other,
members and guests come and go, groups are handed over.

Each seed draws its groups and what happens to them.
"""

from __future__ import annotations

from random import Random

from msgspec.structs import replace

from ordercast.core.events import Change
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import Options
from ordercast.membership.components import strong_components, weak_components
from ordercast.protocols.sequencing.service import SequencingService
from ordercast.trace.oracle import judge
from ordercast.trace.schema import Violation
from sequencers import AT_ONCE, S, Served, T

EVERYBODY = (1, 2, 3, 4)
GROUPS = (1, 2, 3)
STEPS = 160
OPTIONS = (AT_ONCE, Options(), Options(bodies_apart=True))
COMPONENTS = {"strong": strong_components, "weak": weak_components}


class Chances:
    """One run. It does what a coordinator would do: S1 or S2, and one change at a time."""

    def __init__(
        self, protocol: type[SequencingService], seed: int, *, bodies_stay: bool = False
    ) -> None:
        self.protocol = protocol
        self.rng = rng = Random(f"{protocol.__name__} {seed}")
        self.members = {g: set(rng.sample(EVERYBODY, rng.randint(2, 3))) for g in GROUPS}
        self.lingering: dict[GroupId, set[ProcessId]] = {g: set() for g in GROUPS}
        self.hosts = dict.fromkeys(GROUPS, S)
        for component in self.components():
            host = rng.choice((S, T, rng.choice(EVERYBODY)))
            self.hosts |= dict.fromkeys(component, host)
        placed = {g: (tuple(sorted(self.members[g])), self.hosts[g]) for g in GROUPS}
        outside = {g: sorted(set(EVERYBODY) - self.members[g]) for g in GROUPS}
        self.guests = {
            g: set(rng.sample(outside[g], rng.randint(0, len(outside[g])))) for g in GROUPS
        }
        guests = {g: tuple(sorted(self.guests[g])) for g in GROUPS}
        self.silent: set[tuple[GroupId, ProcessId]] = set()  # who asked to leave
        self.bench = Served(
            protocol,
            placed,
            guests=guests,
            others=(*EVERYBODY, S, T),
            options=replace(rng.choice(OPTIONS), bodies_stay=bodies_stay),
        )
        self.said = 0

    def components(self) -> list[frozenset[GroupId]]:
        """Groups that must have one sequencer; who left a moment ago counts."""
        groups = {g: frozenset(self.members[g] | self.lingering[g]) for g in GROUPS}
        if self.protocol.together not in COMPONENTS:
            return [frozenset((g,)) for g in GROUPS]
        return COMPONENTS[self.protocol.together](groups)

    def run(self) -> None:
        deeds = [self.say, self.say, self.arrive, self.arrive, self.arrive, self.arrive]
        deeds += [self.arrive, self.lose, self.repeat, self.ring, self.move, self.leave, self.join]
        deeds += [self.visit, self.settle]
        for _ in range(STEPS):
            self.rng.choice(deeds)()
        self.bench.settle()

    def say(self) -> None:
        g = self.rng.choice(GROUPS)
        views = ((p, self.bench.services[p].views.get(g)) for p in EVERYBODY)
        speakers = [
            p
            for p, view in views
            if view is not None and p in view.senders and (g, p) not in self.silent
        ]
        if speakers:
            self.said += 1
            self.bench.tell(self.rng.choice(speakers), g, f"m{self.said}")

    def arrive(self) -> None:
        if self.bench.flight:
            self.bench.arrive(self.rng.choice(self.bench.flight))

    def lose(self) -> None:
        linked = self.protocol.linked_headers
        lossy = [p for p in self.bench.flight if not isinstance(p.header, linked)]
        if lossy and self.rng.random() < 0.5:
            self.bench.flight.remove(self.rng.choice(lossy))

    def repeat(self) -> None:
        if self.bench.flight:
            self.bench.repeat(self.rng.choice(self.bench.flight))

    def ring(self) -> None:
        running = [(p, g, name) for p, ts in self.bench.timers.items() for g, name in ts]
        if running:
            p, g, name = self.rng.choice(running)
            self.bench.ring(p, name, g)

    def move(self) -> None:
        """A whole component; things happen while it is on its way."""
        if self.rng.random() < 0.4:
            groups = sorted(self.rng.choice(self.components()))
            source = self.hosts[groups[0]]
            to = self.rng.choice([p for p in (*EVERYBODY, S, T) if p != source])
            self.carry_to(groups, source, to)

    def carry_to(self, groups: list[GroupId], source: ProcessId, to: ProcessId) -> None:
        books = self.bench.freeze_all(groups, source, to)
        for _ in range(self.rng.randint(0, 4)):
            self.rng.choice((self.say, self.arrive, self.arrive, self.repeat))()
        self.bench.succeed_all(to, books)
        self.hosts |= dict.fromkeys(groups, to)
        for _ in range(self.rng.randint(0, 4)):
            self.rng.choice((self.say, self.arrive, self.arrive, self.repeat))()
        for g in groups:
            self.bench.tell_moved(g, source)

    def settle(self) -> None:
        """The sequencers tell who may be forgotten."""
        for g in GROUPS:
            settled = self.bench.part(self.hosts[g], g).settled_leavers()
            self.lingering[g].difference_update(settled)

    def leave(self) -> None:
        """A member or a guest goes when it has nothing under way."""
        g = self.rng.choice(GROUPS)
        p = self.rng.choice(sorted(self.members[g] | self.guests[g]))
        view = self.bench.services[p].views.get(g)
        inside = view is not None and p in (view.members if p in self.members[g] else view.guests)
        if not inside or self.bench.part(p, g).requests:
            return
        if self.members[g] != {p} and self.rng.random() < 0.3:
            if p in self.members[g]:
                self.lingering[g].add(p)
            self.members[g].discard(p)
            self.guests[g].discard(p)
            self.silent.add((g, p))
            self.bench.step(self.hosts[g], Change(g, left=(p,)))

    def outside(self, g: GroupId) -> list[ProcessId]:
        """Who is not in the group, and has heard of it if it left."""
        services = self.bench.services
        gone = [p for p in EVERYBODY if p not in self.members[g] | self.guests[g]]
        views = {p: services[p].views.get(g) for p in gone}
        return [p for p, view in views.items() if view is None or p not in view.senders]

    def visit(self) -> None:
        g = self.rng.choice(GROUPS)
        outside = self.outside(g)
        if outside and self.rng.random() < 0.3:
            p = self.rng.choice(outside)
            self.guests[g].add(p)
            self.silent.discard((g, p))
            self.bench.change(self.hosts[g], Change(g, guests=(p,)))

    def join(self) -> None:
        """Groups that will have to be together are brought together first."""
        g = self.rng.choice(GROUPS)
        able = [*self.outside(g), *self.guests[g]]
        if able and self.rng.random() < 0.5:
            p = self.rng.choice(able)
            self.members[g].add(p)
            together = next(component for component in self.components() if g in component)
            self.members[g].discard(p)
            for host in sorted({self.hosts[h] for h in together} - {self.hosts[g]}):
                groups = sorted(h for h in together if self.hosts[h] == host)
                self.carry_to(groups, host, self.hosts[g])
            self.members[g].add(p)
            self.guests[g].discard(p)
            self.lingering[g].discard(p)
            self.silent.discard((g, p))
            self.bench.services[p].wanted[g] = True
            self.bench.change(self.hosts[g], Change(g, joined=(p,)))

    def judged(self) -> list[Violation]:
        """Of each promise that was broken, the first case."""
        promises = (*self.protocol.declaration.promises, "wellformed", "views")
        verdicts = judge(self.bench.trace(), quiescent=True, only=promises)
        return [v.violations[0] for v in verdicts.values() if v.verdict == "violated"]
