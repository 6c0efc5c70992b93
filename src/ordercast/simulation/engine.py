"""The driver of a simulated run: it hands events to machines and carries out what they ask for.

An *event* is something handed to a machine: a packet, a timer, a multicast, a consumption, a view
or its change. Everything that decides is a list, a dict in insertion order, or a seeded random
number, so a run is the same in every interpreter.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import partial
from typing import Literal, Protocol

import msgspec

from ordercast.core.events import (
    Consumed,
    Crashed,
    Cut,
    Event,
    Flush,
    Kept,
    Multicast,
    Timer,
    View,
)
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.output import Delivery, Output
from ordercast.core.protocol import OrderingProtocol
from ordercast.core.waiting import Waiting
from ordercast.simulation.agenda import TICKS_PER_MS, Agenda, Alarm, Arrival
from ordercast.simulation.checked import Checked, Steps
from ordercast.simulation.log import NAMES, Ended, Row, Sent, TraceLog
from ordercast.simulation.network import Medium
from ordercast.simulation.payload import pack, unpack
from ordercast.simulation.seats import Roster, Seat
from ordercast.simulation.timers import Timers
from ordercast.simulation.weighing import Scale
from ordercast.simulation.workload import Application
from ordercast.trace.watch import Observed, Watch

EndReason = Literal["quiescent", "quiet", "time limit", "event limit"]

MAX_FAULTS_KEPT = 100  # remarks on peers that broke the protocol; all are counted


class Machine(Protocol):
    """Everything of one process, as the driver sees it."""

    def open(self, g: GroupId, protocol: type[OrderingProtocol]) -> None: ...
    def close(self, g: GroupId) -> None: ...
    def step(self, events: Iterable[Event]) -> Output: ...
    def unstable(self, g: GroupId) -> tuple[Kept, ...]: ...
    def report_mark(self, g: GroupId) -> int: ...
    def held_back(self) -> list[Waiting]: ...
    def view(self, g: GroupId) -> View | None: ...
    def invariants(self) -> None: ...


DETECTED_AFTER_MS = 100  # until the others know of a crash


class Limits:
    """When a run is stopped though it is not over; all in ticks, except the events."""

    def __init__(self, *, ticks: int, events: int, quiet: int) -> None:
        self.ticks = ticks
        self.events = events
        self.quiet = quiet  # no application was handed or said anything for so long


class Simulation:
    """Machines, a network, applications and a trace."""

    def __init__(
        self,
        machines: Sequence[Machine],
        applications: Sequence[Application | None],
        rosters: Mapping[GroupId, Roster],
        agenda: Agenda,
        medium: Medium,
        *,
        size: int,
        window: int | None = None,
        consume_ticks: Sequence[int] = (),
        watch: bool = False,
        checks: bool = False,
    ) -> None:
        self.machines = machines
        self.applications = applications
        self.rosters = rosters
        self.agenda = agenda
        self.medium = medium
        self.size = size  # bytes of a message
        self.window = window  # own messages to a group that are not yet delivered by all
        self.consume_ticks = consume_ticks  # how long each application takes; (): none consumes
        self.timers = Timers(len(machines), agenda.alarms)
        self.log = TraceLog()
        self.record = self.log.records.append
        self.now = 0
        self.last_event = 0  # when a machine was last handed something
        self.news = 0  # when an application last said or was handed something
        self.alive: list[Steps | None] = list(machines)  # None once the process has crashed
        self.scales: list[Scale] = []  # one per process, if watched
        if watch:
            self.scales = [Scale(p, rosters) for p in range(len(machines))]
            self.alive = [
                Watch(m, NAMES, partial(self._observe, p), self.scales[p].arrived)
                for p, m in enumerate(machines)
            ]
        if checks:
            self.alive = [Checked(m, self.alive[p] or m) for p, m in enumerate(machines)]
        self.seats: list[dict[GroupId, Seat]] = [{} for _ in machines]
        self.groups_in: list[tuple[GroupId, ...]] = [() for _ in machines]  # that it may send to
        self.intents: deque[tuple[GroupId, int]] = deque()  # what the process at work will say
        self.events = 0
        self.timers_fired = 0
        self.consumptions = 0
        self.missed = 0  # packets that reached a crashed process
        self.unsaid = 0  # messages planned for a crashed process
        self.notes: Counter[str] = Counter()
        self.faults = 0
        self.first_faults: list[tuple[ProcessId, ProcessId, str]] = []  # (at, by, what)

    # -- a run ----------------------------------------------------------------------------------

    def start(self) -> None:
        """Open all groups and give the first views."""
        for g, roster in self.rosters.items():
            first = roster.first_view(g)
            roster.note_view(first)
            takers = dict.fromkeys((roster.leader, *roster.members, *roster.guests))
            for p in takers:
                self.open(p, g)
            for p in takers:
                self.hand(p, (first,))

    def run(self, limits: Limits) -> EndReason:
        """Work off the agenda until it is empty or a limit is reached; say which."""
        agenda, turns = self.agenda, self.agenda.turns
        while (tick := agenda.next_tick()) is not None:
            if tick > limits.ticks:
                agenda.put_back(tick)
                return "time limit"
            if self.events >= limits.events:
                return "event limit"
            if tick - self.news > limits.quiet and not agenda.acts:
                return "quiet"
            self.now, before = tick, self.events
            for act in agenda.acts.pop(tick, ()):
                act()
            for alarm in agenda.alarms.pop(tick, ()):
                self._ring(alarm)
            if turns:
                self._take_turns(turns.pop(tick, ()))
            if tick in agenda.packets:
                self._arrive(agenda.packets.pop(tick))
            if self.events != before:  # not only alarms that no longer count
                self.last_event = tick
        return "quiescent"

    def finish(self) -> None:
        """The run is over and drained: every log that is left is complete."""
        for p, machine in enumerate(self.alive):
            if machine is not None:
                self.record((p, self.last_event, Ended("end")))

    # -- what scripts do ------------------------------------------------------------------------

    def say(self, p: ProcessId, groups: Iterable[GroupId]) -> None:
        """The application at p multicasts one message to each of these groups, in this order."""
        if self.alive[p] is not None:
            self.intents.extend((g, 0) for g in groups)
            self._speak(p)
        else:
            self.unsaid += sum(1 for _ in groups)

    def hand(self, p: ProcessId, events: Sequence[Event]) -> None:
        """Hand events to the machine at p, and carry out everything that follows at once."""
        machine = self.alive[p]
        if machine is not None:
            self.events += len(events)
            self._carry_out(p, machine.step(events))
            if self.intents:
                self._speak(p)

    def open(self, p: ProcessId, g: GroupId) -> None:
        """p will take part in g."""
        seat = self._seat(p, g)
        if not seat.opened:
            seat.opened = True
            self.machines[p].open(g, self.rosters[g].protocol)

    def crash(self, p: ProcessId, lose: float = 0.0) -> None:
        """p stops for good; each of its packets under way is lost with probability `lose`."""
        if self.alive[p] is None:
            return
        self.alive[p] = None
        self.timers.stop(p)
        self.record((p, self.now, Ended("crash")))
        if lose:
            self.medium.forget_sender(p, lose)
        self._tell_of_crash(p)

    def _tell_of_crash(self, p: ProcessId) -> None:
        """A while later the others of its groups know, if their protocol hears of crashes."""
        groups = [g for g, roster in self.rosters.items() if roster.protocol.hears_of_crashes]
        concerned = [(q, g) for q, seats in enumerate(self.seats) for g in groups if g in seats]
        if any(q == p for q, _ in concerned):
            tick = self.now + DETECTED_AFTER_MS * TICKS_PER_MS
            self.agenda.acts[tick].append(partial(self._note_crash, p, concerned))

    def _note_crash(self, p: ProcessId, concerned: list[tuple[ProcessId, GroupId]]) -> None:
        for q, g in concerned:
            if q != p:
                self.hand(q, (Crashed(g, p),))

    def flush(self, views: Mapping[GroupId, tuple[ProcessId, ...]], leader: ProcessId) -> None:
        """Change views in one instant: survivors share what is unstable, then install.

        Groups of one protocol that hang together must change together. Guests that live stay.
        """
        alive = {p for p, machine in enumerate(self.alive) if machine is not None}
        guests = {g: self._staying_guests(g, members) for g, members in views.items()}
        takers = {g: alive & {*members, *guests[g], leader} for g, members in views.items()}
        survivors = {g: [p for p in takers[g] if self._holds_frames(p, g)] for g in views}
        mark = max(
            (self.machines[p].report_mark(g) for g in views for p in survivors[g]), default=0
        )
        unions = {g: self._union(g, survivors[g]) for g in views}
        cuts: dict[ProcessId, tuple[list[Flush], list[View]]] = {}
        for g, members in views.items():
            view = self._next_view(g, members, leader, mark, guests[g])
            self._exclude(g, takers[g])
            for p in sorted(takers[g]):
                flushes, begun = cuts.setdefault(p, ([], []))
                begun.append(view)
                if p not in survivors[g]:
                    self.open(p, g)
                elif not self._seat(p, g).guest:
                    flushes.append(Flush(g, unions[g]))
        for p, (flushes, begun) in cuts.items():
            self.hand(p, (Cut(tuple(flushes), tuple(begun)),))

    def _holds_frames(self, p: ProcessId, g: GroupId) -> bool:
        """One that only leads a group has frames of it if it numbers them."""
        seat = self._seat(p, g)
        return seat.opened and (seat.may_send or self.rosters[g].protocol.declaration.sequenced)

    def _staying_guests(self, g: GroupId, members: tuple[ProcessId, ...]) -> tuple[ProcessId, ...]:
        view = self.rosters[g].view
        guests = () if view is None else view.guests
        return tuple(p for p in guests if p not in members and self.alive[p] is not None)

    def _union(self, g: GroupId, survivors: Iterable[ProcessId]) -> tuple[Kept, ...]:
        union: dict[tuple[ProcessId, int], Kept] = {}
        better = self.rosters[g].protocol.better
        for p in survivors:
            for kept in self.machines[p].unstable(g):
                key = (kept.origin, kept.n)
                union[key] = better(union[key], kept) if key in union else kept
        return tuple(union[key] for key in sorted(union))

    def _next_view(
        self,
        g: GroupId,
        members: tuple[ProcessId, ...],
        leader: ProcessId,
        mark: int,
        guests: tuple[ProcessId, ...],
    ) -> View:
        roster = self.rosters[g]
        now = roster.view
        assert now is not None
        view = View(g, now.number + 1, members, leader, now.era + 1, mark, guests)
        roster.note_view(view)
        return view

    def unsent(self) -> int:
        """Messages that were never handed to a machine: no view, no room, or crashed before."""
        return self.unsaid + sum(
            len(seat.waiting) for seats in self.seats for seat in seats.values()
        )

    # -- what falls due -------------------------------------------------------------------------

    def _arrive(self, arrivals: list[Arrival]) -> None:
        # Most of a run is spent here; this is `hand` written out for one packet after the other.
        alive, now = self.alive, self.now
        carry, hand_over, request = self.medium.carry, self._hand_over, self.timers.request
        missed = 0
        for p, batch in arrivals:
            machine = alive[p]
            if machine is None:
                missed += 1
                continue
            out = machine.step(batch)
            if out.transmits:
                carry(p, now, out.transmits)
            if out.deliveries:
                hand_over(p, out.deliveries)
            if out.timers:
                request(p, now, out.timers)
            if out.stable or out.notes or out.faults or out.guest or out.news:
                self._take_reports(p, out)
            if self.intents:
                self._speak(p)
        self.missed += missed
        self.events += len(arrivals) - missed

    def _take_turns(self, processes: Sequence[ProcessId]) -> None:
        raise AssertionError("only processes that take time take turns")

    def _ring(self, alarm: Alarm) -> None:
        if self.timers.take(self.now, alarm):
            self._ring_now(alarm)

    def _ring_now(self, alarm: Alarm) -> None:
        p, group, name = alarm
        self.timers_fired += 1
        self.hand(p, (Timer(group, name),))

    def _consume(self, p: ProcessId, g: GroupId) -> None:
        if self.alive[p] is not None:
            seat = self.seats[p][g]
            frames, seat.unconsumed = seat.unconsumed, 0
            self.consumptions += 1
            self.hand(p, (Consumed(g, frames),))

    def _exclude(self, g: GroupId, kept: Container[ProcessId]) -> None:
        for p, seats in enumerate(self.seats):
            if g in seats and seats[g].opened and p not in kept and self.alive[p] is not None:
                self.machines[p].close(g)
                self.timers.cancel(p, g)
                seats[g].opened = seats[g].in_view = seats[g].guest = False
                self._note_groups(p)

    # -- what machines ask for ------------------------------------------------------------------

    def _carry_out(self, p: ProcessId, out: Output) -> None:
        """The effects of one step, in the order that `Output` states."""
        if out.transmits:
            self.medium.carry(p, self.now, out.transmits)
        if out.deliveries:
            self._hand_over(p, out.deliveries)
        if out.timers:
            self.timers.request(p, self.now, out.timers)
        self._take_reports(p, out)

    def _hand_over(self, p: ProcessId, deliveries: list[Delivery | View]) -> None:
        now = self.news = self.now
        if self.scales:
            self.record((p, now, *self.scales[p].weighed(deliveries)))
        else:
            self.record((p, now, *self.rows_of(p, deliveries)))
        application = self.applications[p]
        for delivery in deliveries:
            if type(delivery) is tuple:
                if application is not None:
                    self._let_answer(p, application, delivery)
            elif isinstance(delivery, View):
                self._installed(p, delivery)
        if self.consume_ticks:
            self._take_later(p, deliveries, now + self.consume_ticks[p])

    def rows_of(self, p: ProcessId, deliveries: list[Delivery | View]) -> Sequence[Row]:
        """What the log says of this."""
        return deliveries

    def _let_answer(self, p: ProcessId, application: Application, delivery: Delivery) -> None:
        group, sender, _, _, payload = delivery
        _, depth = unpack(payload)
        for g in application.answer(group, sender, depth, self.groups_in[p]):
            self.intents.append((g, depth + 1))

    def _installed(self, p: ProcessId, view: View) -> None:
        self.rosters[view.group].note_view(view)
        seat = self.seats[p][view.group]
        seat.stands(member=p in view.members, guest=seat.guest)
        self._note_groups(p)
        self._release(p, view.group)

    def _note_groups(self, p: ProcessId) -> None:
        seats = self.seats[p]
        self.groups_in[p] = tuple(g for g in sorted(seats) if seats[g].may_send)

    def _take_later(self, p: ProcessId, deliveries: Iterable[Delivery | View], tick: int) -> None:
        for delivery in deliveries:
            if not isinstance(delivery, View):
                seat = self.seats[p][delivery[0]]
                if not seat.unconsumed:
                    self.agenda.acts[tick].append(partial(self._consume, p, delivery[0]))
                seat.unconsumed += 1
            elif p not in delivery.members:  # of a stay that is over nothing is reported
                self.seats[p][delivery.group].unconsumed = 0

    def _take_reports(self, p: ProcessId, out: Output) -> None:
        for g, is_guest in out.guest:
            seat = self.seats[p][g]
            seat.stands(member=seat.in_view, guest=is_guest)
            self._note_groups(p)
            self._release(p, g)
        for g, n in out.stable:
            self.seats[p][g].are_stable(n)
            self._release(p, g)
        for note in out.notes:
            self.notes[note[0]] += 1
        for news in out.news:
            self.take_news(p, news)
        self.faults += len(out.faults)
        for peer, reason in out.faults:
            if len(self.first_faults) < MAX_FAULTS_KEPT:
                self.first_faults.append((p, peer, reason))

    def take_news(self, p: ProcessId, news: msgspec.Struct) -> None:
        """Something happened to the cluster that p is in."""
        raise AssertionError("only a clustered run has news")

    def _observe(self, p: ProcessId, row: Observed) -> None:
        self.record((p, self.now, row))

    def _release(self, p: ProcessId, g: GroupId) -> None:
        seat = self.seats[p][g]
        for _ in range(min(len(seat.waiting), seat.room(self.window))):
            self.intents.append((g, seat.waiting.popleft()))

    def _seat(self, p: ProcessId, g: GroupId) -> Seat:
        seats = self.seats[p]
        if g not in seats:
            seats[g] = Seat()
        return seats[g]

    def _speak(self, p: ProcessId) -> None:
        """Hand over what the application at p wants to say, or keep it until it may.

        What it says is handed over only after all deliveries of a step: the machine has made them
        all, so it may be past a view that the application has not seen yet.
        """
        machine = self.alive[p]
        assert machine is not None
        while self.intents:
            g, depth = self.intents.popleft()
            seat = self._seat(p, g)
            if seat.room(self.window) <= 0:
                seat.waiting.append(depth)
                continue
            seat.sent += 1
            self.news = self.now
            self.record((p, self.now, Sent(g, seat.sent, self.size)))
            self.events += 1
            self._multicast(p, machine, Multicast(g, pack(seat.sent, depth, self.size)))

    def _multicast(self, p: ProcessId, machine: Steps, message: Multicast) -> None:
        self._carry_out(p, machine.step((message,)))
