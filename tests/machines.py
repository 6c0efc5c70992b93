"""Machines on a bench: the test carries every packet by hand and chooses what arrives when."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Protocol

import msgspec

from ordercast.core.changing import Ending, FrameAt, FrameId, FramesHeld
from ordercast.core.declaration import Network
from ordercast.core.events import (
    Crashed,
    Cut,
    Event,
    Flush,
    Kept,
    Multicast,
    Receive,
    Timer,
    View,
)
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.numbers import ViewNumbers
from ordercast.core.output import Output
from ordercast.core.protocol import Options, OrderingProtocol
from ordercast.core.uniting import FrameKey, unite
from ordercast.process.given import GivenGroups
from ordercast.protocols.registry import PROTOCOLS
from ordercast.trace.schema import Event as Row

G = 1  # the group of most tests

FLUSHED = {name: page for name, page in PROTOCOLS.items() if page.together is None}
"""Protocols whose views a test may change: `change`. Groups of the others change as the nodes of a
cluster agree: `simulate_cluster`, and the bench in `sequencers`."""


class Machine(Protocol):
    """A protocol alone, or a process with its groups."""

    def step(self, events: Iterable[Event]) -> Output: ...
    def invariants(self) -> None: ...


class Packet(NamedTuple):
    """Under way to one process."""

    dst: ProcessId
    receive: Receive

    @property
    def src(self) -> ProcessId:
        return self.receive.src

    @property
    def header(self) -> msgspec.Struct:
        return self.receive.header


class Bench:
    """Machines, and the packets between them."""

    def __init__(self, machines: dict[ProcessId, Machine]) -> None:
        self.machines = machines
        self.flight: list[Packet] = []  # in the order of sending
        self.log: dict[ProcessId, list[View | tuple[ProcessId, bytes]]] = {p: [] for p in machines}
        self.stable: dict[ProcessId, int] = dict.fromkeys(machines, 0)  # the last report
        self.timers: dict[ProcessId, dict[tuple[int, str], int]] = {p: {} for p in machines}
        self.crashed: set[ProcessId] = set()
        self.faults: list[tuple[ProcessId, ProcessId, str]] = []  # (who says it, of whom, what)
        self.rows: dict[ProcessId, list[Row]] = defaultdict(list)  # the trace of each

    # -- what the test does -----------------------------------------------------------------------

    def step(self, p: ProcessId, *events: Event) -> Output:
        """Hand events to p; its packets go under way."""
        for event in events:
            if isinstance(event, Multicast):
                self._record(p, "send", event.group, message=event.payload.decode())
        out = self.machines[p].step(events)
        self.machines[p].invariants()
        return self.carry_out(p, out)

    def carry_out(self, p: ProcessId, out: Output) -> Output:
        """What p wants done."""
        for to, group, era, header, payload in out.transmits:
            packet = Receive(p, group, era, header, payload)
            self.flight += [Packet(q, packet) for q in to if q not in self.crashed]
        for d in out.deliveries:
            self._record_delivery(p, d)
            self.log[p].append(d if isinstance(d, View) else (d[1], d[4]))
        for g, name, delay in out.timers:
            self.timers[p].pop((g, name), None)
            if delay >= 0:
                self.timers[p][g, name] = delay
        for _, n in out.stable:
            self.stable[p] = n
        self.faults += [(p, peer, reason) for peer, reason in out.faults]
        return out

    def view(self, *members: ProcessId, leader: ProcessId | None = None) -> None:
        """Give the static view to all machines."""
        view = View(G, 1, members, members[0] if leader is None else leader)
        for p in self.machines:
            self.step(p, view)

    def say(self, p: ProcessId, *texts: str) -> None:
        """The application at p multicasts, one step per message."""
        for text in texts:
            self.step(p, Multicast(G, text.encode()))

    def find(
        self,
        src: ProcessId | None = None,
        dst: ProcessId | None = None,
        header: type | msgspec.Struct | None = None,
        text: str | None = None,
    ) -> list[Packet]:
        """Packets under way that look like this."""
        return [
            packet
            for packet in self.flight
            if (src is None or packet.src == src)
            and (dst is None or packet.dst == dst)
            and (header is None or header in (packet.header, type(packet.header)))
            and (text is None or packet.receive.payload == text.encode())
        ]

    def arrive(self, *packets: Packet) -> None:
        """These arrive, in this order."""
        for packet in packets:
            self.flight.remove(packet)
            self.step(packet.dst, packet.receive)

    def bring(self, *args: object, **looks: object) -> None:
        """All packets that look like this arrive, in the order of sending; there must be one."""
        packets = self.find(*args, **looks)  # type: ignore[arg-type]
        assert packets, f"nothing under way looks like {args} {looks}"
        self.arrive(*packets)

    def repeat(self, *packets: Packet) -> None:
        """Copies of these arrive; the originals stay under way."""
        for packet in packets:
            self.step(packet.dst, packet.receive)

    def lose(self, *args: object, **looks: object) -> None:
        """All packets that look like this are lost; there must be one."""
        packets = self.find(*args, **looks)  # type: ignore[arg-type]
        assert packets, f"nothing under way looks like {args} {looks}"
        for packet in packets:
            self.flight.remove(packet)

    def crash(self, *dead: ProcessId) -> None:
        """These stop, and the others hear of it if they want to; packets to them are lost, theirs
        are still under way."""
        self.crashed |= set(dead)
        for p in dead:
            self._record(p, "crash")
            del self.machines[p], self.timers[p]
        self.flight = [packet for packet in self.flight if packet.dst not in self.crashed]
        for p, machine in self.machines.items():
            if isinstance(machine, OrderingProtocol) and machine.hears_of_crashes:
                self.step(p, *(Crashed(G, q) for q in dead))

    def carry(self) -> None:
        """Everything under way arrives, and what follows from it, in the order of sending."""
        while self.flight:
            self.arrive(self.flight[0])

    def ring(self, p: ProcessId, name: str, group: int = G) -> None:
        """A timer of p fires; it must be running."""
        del self.timers[p][group, name]
        self.step(p, Timer(group, name))

    def settle(self, *, rounds: int = 200) -> None:
        """Packets and timers until nothing is under way and no timer runs."""
        self.go_on(rounds=rounds)
        assert not any(self.timers.values()), f"it never comes to rest: {self.timers}"

    def go_on(self, *, rounds: int = 20) -> None:
        """Packets and timers, so many rounds or until nothing is left: a machine may be stuck."""
        for _ in range(rounds):
            self.carry()
            for p, timers in self.timers.items():
                for g, name in list(timers):
                    if (g, name) in timers:
                        self.ring(p, name, g)
            if not self.flight and not any(self.timers.values()):
                return

    # -- what the test looks at -------------------------------------------------------------------

    def texts(self, p: ProcessId) -> list[str]:
        """The messages p delivered."""
        return [entry[1].decode() for entry in self.log[p] if not isinstance(entry, View)]

    def story(self, p: ProcessId) -> list[str]:
        """What the application at p saw: messages, and views as their member lists."""
        return [
            "".join(map(str, entry.members)) if isinstance(entry, View) else entry[1].decode()
            for entry in self.log[p]
        ]

    def trace(self, run: str = "") -> list[Row]:
        """What the applications did and saw; nothing more comes to those who are alive."""
        for p in self.machines:
            if not self.rows[p] or self.rows[p][-1].kind != "end":
                self._record(p, "end")
        rows = [row for log in self.rows.values() for row in log]
        return [msgspec.structs.replace(row, run=run) for row in rows]

    def _record_delivery(self, p: ProcessId, d: View | tuple[int, int, int, int, bytes]) -> None:
        if isinstance(d, View):
            members = tuple(f"p{q}" for q in d.members)
            self._record(p, "view", d.group, view=d.number, members=members)
        else:
            self._record(p, "deliver", d[0], message=d[4].decode(), sender=f"p{d[1]}")

    def _record(self, p: ProcessId, kind: str, g: int = 0, **fields: Any) -> None:
        group = f"g{g}" if g else None
        index = len(self.rows[p]) + 1
        self.rows[p].append(Row(f"p{p}", index, kind, group=group, **fields))


def bench(
    protocol: type[OrderingProtocol],
    *members: ProcessId,
    leader: ProcessId | None = None,
    options: Options | None = None,
) -> Bench:
    """One bare protocol per member (and leader), the static view installed."""
    everybody = dict.fromkeys(members if leader is None else (*members, leader))
    made = Bench({p: protocol(p, options) for p in everybody})
    made.view(*members, leader=leader)
    return made


def stacks(
    protocol: type[OrderingProtocol],
    *processes: ProcessId,
    network: Network = "N1",
    options: Options | None = None,
) -> Bench:
    """One process each, the group opened everywhere and no view installed."""
    made = Bench({p: GivenGroups(p, network=network, options=options) for p in processes})
    for machine in made.machines.values():
        assert isinstance(machine, GivenGroups)
        machine.open(G, protocol)
    return made


class Change(NamedTuple):
    """Processes come to a group or go."""

    group: GroupId
    joined: tuple[ProcessId, ...] = ()
    guests: tuple[ProcessId, ...] = ()  # come in to send only
    left: tuple[ProcessId, ...] = ()  # asked to leave: they still take part in the change
    dead: tuple[ProcessId, ...] = ()  # nothing more is expected of them


class Plan:
    """The next view of one group, and who is to be told of it."""

    def __init__(self, view: View) -> None:
        self.view = view  # in force
        self.members = view.members
        self.guests = view.guests
        self.audience = view.senders  # who gets the view: old, leaving, new

    def apply(self, change: Change) -> None:
        """Somebody comes or goes."""
        gone = (*change.left, *change.dead)
        members = [p for p in self.members if p not in gone]
        members += [p for p in change.joined if p not in members]
        guests = [p for p in self.guests if p not in gone and p not in members]
        guests += [p for p in change.guests if p not in members and p not in guests]
        told = [p for p in self.audience if p not in change.dead]
        told += [p for p in (*members, *guests) if p not in told]
        self.members, self.guests, self.audience = tuple(members), tuple(guests), tuple(told)

    @property
    def survivors(self) -> tuple[ProcessId, ...]:
        """Those of the view in force who take part in its end."""
        return tuple(p for p in self.audience if p in self.view.senders)

    @property
    def dead(self) -> tuple[ProcessId, ...]:
        """Those of the view in force who do not."""
        return tuple(p for p in self.view.senders if p not in self.audience)

    def next_view(self, start: int) -> View:
        """A new era; a new number only if the members differ."""
        view, number = self.view, self.view.number
        if self.members != view.members:
            number = ViewNumbers().after(number, view.leader)
        era = view.era + 1
        return View(view.group, number, self.members, view.leader, era, start, guests=self.guests)

    def union(
        self, protocol: type[OrderingProtocol], held: dict[ProcessId, tuple[Kept, ...]]
    ) -> tuple[Kept, ...]:
        """Everything unstable that a survivor holds."""
        union: dict[tuple[ProcessId, int], Kept] = {}
        for p in self.survivors:
            for kept in held[p]:
                key = (kept.origin, kept.n)
                union[key] = protocol.better(union[key], kept) if key in union else kept
        return tuple(protocol.attested(kept, self.dead) for kept in union.values())


def with_view(
    protocol: type[OrderingProtocol],
    *members: ProcessId,
    leader: ProcessId,
    others: tuple[ProcessId, ...] = (),
    network: Network = "N1",
    options: Options | None = None,
) -> Bench:
    """A group whose members are in view 1; the others wait outside."""
    everybody = dict.fromkeys((leader, *members, *others))
    made = stacks(protocol, *everybody, network=network, options=options)
    for p in dict.fromkeys((leader, *members)):
        made.step(p, View(G, 1, members, leader))
    return made


def change(
    b: Bench,
    protocol: type[OrderingProtocol],
    *,
    joined: tuple[ProcessId, ...] = (),
    guests: tuple[ProcessId, ...] = (),
    left: tuple[ProcessId, ...] = (),
    dead: tuple[ProcessId, ...] = (),
) -> None:
    """The view changes in one instant at all who are in it: what a survivor holds, all get."""
    machines = {p: _ordering(m) for p, m in b.machines.items()}
    views = [m.views[G] for m in machines.values() if G in m.views]
    plan = Plan(max(views, key=lambda view: (view.era, len(view.senders))))
    plan.apply(Change(G, joined, guests, left, dead))
    reporting = [p for p in (*plan.survivors, plan.view.leader) if p in machines]
    held = {p: _held(machines[p], plan.view) for p in reporting}
    [(_, end)] = unite(protocol, {G: Ending(plan.view.era, held, frozenset(plan.dead))})
    here = {p: {(k.origin, k.n): k for k in _frames(machines[p], plan.view)} for p in reporting}
    view = msgspec.structs.replace(plan.next_view(end.mark), last=end.last)
    for p in dict.fromkeys((view.leader, *plan.audience)):
        union = tuple(_fetched(machines[p], f, here.get(p, {}), here[f.holder]) for f in end.frames)
        flushes = (Flush(G, union),) if p in plan.view.members else ()
        b.step(p, Cut(flushes, (view,)))


def _ordering(machine: Machine) -> OrderingProtocol:
    found = machine.groups.machines[G] if isinstance(machine, GivenGroups) else machine
    assert isinstance(found, OrderingProtocol)
    return found


def outside(b: Bench, p: ProcessId, protocol: type[OrderingProtocol]) -> None:
    """A process that has nothing of the group yet, or nothing any more."""
    b.machines[p] = protocol(p)
    b.timers[p] = {}
    b.log.setdefault(p, [])
    b.stable.setdefault(p, 0)


def _fetched(
    machine: OrderingProtocol,
    frame: FrameAt,
    here: Mapping[FrameKey, Kept],
    there: Mapping[FrameKey, Kept],
) -> Kept:
    """A member delivers its own body, if that is the one named; else that of the holder."""
    key = (frame.origin, frame.n)
    kept = here.get(key)
    if kept is None or machine.gives_way(G, kept, frame):
        kept = there[key]
    return Kept(*key, frame.stamp, kept.payload)


def _frames(machine: OrderingProtocol, view: View) -> tuple[Kept, ...]:
    """One that only leads the group has something if it numbers."""
    takes_part = machine.me in view.senders or machine.declaration.sequenced
    return tuple(map(machine.stamped, machine.unstable(G))) if takes_part else ()


def _held(machine: OrderingProtocol, view: View) -> FramesHeld:
    return FramesHeld(
        view.era,
        tuple(FrameId(kept.origin, kept.n, kept.stamp) for kept in _frames(machine, view)),
        G in machine.member_of,
        machine.report_mark(G) if machine.me in view.senders else 0,
        machine.numbers_delivered(G),
        machine.frames_delivered(G),
    )
