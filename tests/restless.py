"""Nodes that cannot make up their minds: they join and quit one group by chance, while packets are
lost, doubled and overtake each other, the group is handed over, and perhaps a node crashes.

Each seed is one run. In the end all must have what they wished for last.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from msgspec.structs import replace

from attack import MORE_NODES, Attack, G, H
from machines import Packet
from ordercast.core.events import Multicast
from ordercast.core.ids import ProcessId
from ordercast.core.protocol import Options
from ordercast.membership.cluster_headers import CLUSTER_GROUP, Heartbeat, Part
from ordercast.membership.standing import Broken, Migrate, Quit
from ordercast.protocols.sequencing.service import SequencingService
from ordercast.trace.oracle import judge
from ordercast.trace.schema import Event as Row
from placings.scene import Group

STEPS = 220
SETTLED = 60  # rounds that they get in the end


class Restless:
    """One run."""

    def __init__(
        self, seed: int, protocol: type[SequencingService], options: Options, *, crash: bool
    ) -> None:
        self.rng = rng = Random(seed)
        self.crash = crash
        self.wishes: dict[ProcessId, Part | None] = dict.fromkeys(MORE_NODES)
        self.wishes |= {2: "member", 3: "member"}
        guests = (1,) if rng.random() < 0.5 else ()
        self.wishes |= dict.fromkeys(guests, "guest")
        groups = {
            H: Group((2, 3), 5, guests=guests),
            G: Group((2, 3, 4), 6 if protocol.together == "none" else 5),
        }
        daemons = (4, 5, 6, 7) if rng.random() < 0.7 else ()
        self.bench = Attack(groups, daemons, MORE_NODES, protocol=protocol, options=options)
        self.linked = protocol.linked_headers
        declared = set(protocol.declaration.promises) - {"validity", "total.gapless"}
        self.promises = (*sorted(declared), "wellformed", "views")
        self.dead: ProcessId | None = None
        self.said = 0

    @property
    def living(self) -> list[ProcessId]:
        return [p for p in MORE_NODES if p != self.dead]

    def run(self) -> None:
        deeds = [
            (62, self.arrive), (12, self.ring), (8, self.say), (7, self.quit), (6, self.join),
            (2, self.tick), (2, self.migrate), (1, self.strike),
        ]  # fmt: skip
        weights, doings = zip(*deeds, strict=True)
        for _ in range(STEPS):
            self.rng.choices(doings, weights)[0]()
            if self.rng.random() < 0.1:
                for p in self.living:
                    if self.wishes[p] is None:
                        self.bench.close_if_left(p)
        self.bench.wait(SETTLED)

    # -- what may happen --------------------------------------------------------------------------

    def arrive(self) -> None:
        b, rng = self.bench, self.rng
        if not b.flight:
            return
        packet = b.flight[rng.randrange(min(len(b.flight), 12))]
        if self._is_reliable(packet):
            way = (packet.src, packet.dst)
            in_turn = (p for p in b.flight if self._is_reliable(p) and (p.src, p.dst) == way)
            b.arrive(next(in_turn))
        elif rng.random() < 0.12:
            b.flight.remove(packet)
        elif rng.random() < 0.05:
            b.repeat(packet)
        else:
            b.arrive(packet)

    def _is_reliable(self, packet: Packet) -> bool:
        return packet.receive.group not in (H, G) or isinstance(packet.header, self.linked)

    def ring(self) -> None:
        p = self.rng.choice(self.living)
        names = [key for key in self.bench.timers[p] if key[0] != CLUSTER_GROUP]
        if names:
            g, name = self.rng.choice(names)
            self.bench.ring(p, name, g)

    def say(self) -> None:
        g = self.rng.choice((H, G))
        views = {p: self.bench.stacks[p].view(g) for p in self.living}
        speakers = [p for p, view in views.items() if view is not None and p in view.senders]
        if speakers:
            self.said += 1
            text = f"{g}:{self.said}".encode()
            self.bench.step(self.rng.choice(speakers), Multicast(g, text))

    def quit(self) -> None:
        inside = [p for p in self.living if self.wishes[p] is not None]
        if inside:
            p = self.rng.choice(inside)
            self.wishes[p] = None
            self.bench.command(p, Quit(H))
            if self.rng.random() < 0.3:
                self._ask(p)

    def join(self) -> None:
        outside = [p for p in self.living if self.wishes[p] is None]
        if outside:
            self._ask(self.rng.choice(outside))

    def _ask(self, p: ProcessId) -> None:
        part: Part = "guest" if self.rng.random() < 0.4 else "member"
        self.wishes[p] = part
        self.bench.ask(p, part)

    def tick(self) -> None:
        for p in self.living:
            if (CLUSTER_GROUP, "tick") in self.bench.timers[p]:  # else it is out
                self.bench.ring(p, "tick", CLUSTER_GROUP)
        for packet in self.bench.find(header=Heartbeat):
            if packet in self.bench.flight:
                self.bench.arrive(packet)

    def migrate(self) -> None:
        g, to = self.rng.choice((H, G)), self.rng.choice(self.living)
        self.bench.command(self.living[0], Migrate(g, to))

    def strike(self) -> None:
        if self.crash and self.dead is None:
            self.dead = self.rng.choice(MORE_NODES)
            self.bench.crash(self.dead)
            self.bench.command(self.living[0], Broken(self.dead))

    # -- what is promised -------------------------------------------------------------------------

    def complaints(self) -> list[str]:
        """In words; nothing, one hopes. A node that missed what a dead one alone had cannot go on,
        and is told so: it would come back as another, which is not played here."""
        if any(self.bench.stacks[p].out_of_it for p in self.living):
            return []
        found = [f"{who} says of {whom}: {what}" for who, whom, what in self.bench.faults]
        for p in self.living:
            found += self._unfulfilled(p)
            found += self._stuck(p)
        found += self._broken()
        return found

    def _unfulfilled(self, p: ProcessId) -> Iterator[str]:
        view, wish = self.bench.stacks[p].view(H), self.wishes[p]
        if wish is None:
            if view is not None and p in view.senders:
                yield f"{p} is not out"
        elif view is None or p not in (view.members if wish == "member" else view.guests):
            yield f"{p} is no {wish}"

    def _stuck(self, p: ProcessId) -> Iterator[str]:
        stack = self.bench.stacks[p]
        part = self.bench.part(p) if H in stack.protocols else None
        if part is None:
            return
        if part.undismissed or part.copies or part.left or part.legacy:
            yield f"{p} keeps something for others"
        if part.service.unsent:
            yield f"{p} does not send {list(part.service.unsent)}"
        book = part.book
        if book is None:
            return
        if book.stable < book.N or book.joining or book.leaving or part.departing:
            yield f"{p} waits for others"

    def _broken(self) -> Iterator[str]:
        """Promises of the protocol. What nobody delivered had no number when its sender quit, or
        died."""
        rows = self.bench.trace()
        delivered = {row.message for row in rows if row.kind == "deliver"}
        rows = [row for row in rows if row.kind != "send" or row.message in delivered]
        verdicts = judge(_counted(rows), quiescent=True, only=self.promises)
        for name, judgement in verdicts.items():
            if judgement.verdict == "violated":
                yield f"{name}: {judgement.violations[0].sentence}"


def _counted(rows: list[Row]) -> list[Row]:
    """Each log without gaps in its count."""
    counts: dict[str | None, int] = {}
    counted = []
    for row in rows:
        counts[row.process] = counts.get(row.process, 0) + 1
        counted.append(replace(row, index=counts[row.process]))
    return counted
