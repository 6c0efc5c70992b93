"""What one process can do. Each step of each process is computed once, however often it happens.

A small configuration has millions of global states, but each process in it has only some
thousands of states of its own. So the explorer gives a number to every state a process can be in
and to every packet, and remembers what each stimulus does to each state: `reactions`. A global
state is then a few numbers, and exploring it is mostly looking things up.

Two states of a process are equal if the fingerprints of its machines are, if the same timers run,
and if its log is the same: the log is what is judged.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from ordercast.core.events import Crashed, Event, Multicast, Receive, Timer, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.output import Output
from ordercast.core.protocol import OrderingProtocol
from ordercast.core.state import canonical
from ordercast.exploration.scenario import MessageId, Scenario, message_name

ProcessState = int  # a number in `Processes.known`
PacketNumber = int  # a number in `Processes.packets`
TimerName = tuple[GroupId, str]
Stimulus = PacketNumber | TimerName | None
"""A packet that arrives, a timer that fires, or None: the process says its next message"""


class Entry(NamedTuple):
    """One line of a log."""

    kind: str  # send, deliver, fault (it blames a peer), error (the machine broke)
    what: str  # the message; of a fault or an error, the reason
    group: GroupId


Log = tuple[Entry, ...]
CLOSED: Log = (Entry("closed", "all was delivered everywhere; judged already", 0),)


class Packet(NamedTuple):
    """Something under way to one process."""

    dst: ProcessId
    receive: Receive


class Process(msgspec.Struct, frozen=True, eq=False):
    """One process in one state. It is never changed: a step makes another."""

    p: ProcessId
    machines: tuple[OrderingProtocol, ...]  # one for all groups, or one for each
    prints: tuple[str, ...]  # their fingerprints
    due: frozenset[TimerName]  # timers that may fire in this round
    later: frozenset[TimerName]  # ... and those set in this round
    log: Log
    said: int  # how many of its messages
    crashed: bool = False

    def key(self) -> tuple[object, ...]:
        """Equal for equal states."""
        return self.p, self.prints, self.due, self.later, self.log, self.said, self.crashed


class Reaction(NamedTuple):
    """What a stimulus does to a process."""

    after: ProcessState
    sent: tuple[PacketNumber, ...]
    progress: bool  # something was said or delivered


class Processes:
    """All states of all processes that were met so far."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.script: list[list[MessageId]] = [  # the messages of each process
            [k for k, saying in enumerate(scenario.script) if saying.process == p]
            for p in range(scenario.processes)
        ]
        self.wanted: list[set[str]] = [  # the messages that each process is to deliver
            {
                message_name(k)
                for k, saying in enumerate(scenario.script)
                if p in scenario.members(saying.group)
            }
            for p in range(scenario.processes)
        ]
        self.homes = [scenario.groups_of(p) for p in range(scenario.processes)]
        self.known: list[Process] = []
        self.numbers: dict[tuple[object, ...], ProcessState] = {}
        self.packets: list[Packet] = []
        self.packet_numbers: dict[str, PacketNumber] = {}
        self.reactions: dict[tuple[ProcessState, Stimulus], Reaction] = {}
        self.speaks: list[bool] = []  # has this state something to say now?
        self.finished: list[bool] = []  # has it said and delivered all, or crashed?
        self.rounds: dict[ProcessState, ProcessState] = {}
        self.closings: dict[ProcessState, ProcessState] = {}

    # -- states that are not reached by a stimulus ------------------------------------------------

    def first(self, p: ProcessId) -> Reaction:
        """p with its static views, and what it sends because of them."""
        scenario = self.scenario
        groups = self.homes[p]
        views = [View(g, 1, scenario.members(g), scenario.leader(g)) for g in groups]
        domain = scenario.protocol.declaration.scope == "domain"
        machines = tuple(
            scenario.protocol(p, scenario.options) for _ in (groups[:1] if domain else groups)
        )
        prints = tuple(machine.fingerprint() for machine in machines)
        process = Process(p, machines, prints, frozenset(), frozenset(), (), 0)
        sent: tuple[PacketNumber, ...] = ()
        for view in views:
            process, more = self._step(process, view.group, view)
            sent += more
        return Reaction(self._number(process), sent, False)

    def next_round(self, state: ProcessState) -> ProcessState:
        """The timers that run may fire."""
        if state not in self.rounds:
            process = self.known[state]
            process = msgspec.structs.replace(process, due=process.later, later=frozenset())
            self.rounds[state] = self._number(process)
        return self.rounds[state]

    def crash(self, state: ProcessState) -> ProcessState:
        """It stops for good."""
        process = self.known[state]
        none: frozenset[TimerName] = frozenset()
        return self._number(msgspec.structs.replace(process, due=none, later=none, crashed=True))

    def notices(self, p: ProcessId) -> tuple[PacketNumber, ...]:
        """p has crashed: what is under way to those whose protocol hears of it."""
        if not self.scenario.protocol.hears_of_crashes:
            return ()
        return tuple(
            self._packet(Packet(q, Receive(p, g, 1, Crashed(g, p))))
            for g in self.homes[p]
            for q in self.scenario.members(g)
            if q != p
        )

    def close(self, state: ProcessState) -> ProcessState:
        """Its log was judged. What may come after no longer depends on it."""
        if state not in self.closings:
            process = self.known[state]
            self.closings[state] = self._number(msgspec.structs.replace(process, log=CLOSED))
        return self.closings[state]

    def next_message(self, state: ProcessState) -> MessageId:
        """What a process that speaks says next."""
        process = self.known[state]
        return self.script[process.p][process.said]

    # -- reactions --------------------------------------------------------------------------------

    def react(self, state: ProcessState, stimulus: Stimulus) -> Reaction:
        """What this stimulus does to a process in this state."""
        found = self.reactions.get((state, stimulus))
        if found is None:
            found = self.reactions[state, stimulus] = self._react(self.known[state], stimulus)
        return found

    def _react(self, process: Process, stimulus: Stimulus) -> Reaction:
        if stimulus is None:
            k = self.script[process.p][process.said]
            group, text = self.scenario.script[k].group, message_name(k)
            said = Entry("send", text, group)
            before = msgspec.structs.replace(
                process, log=(*process.log, said), said=process.said + 1
            )
            after, sent = self._step(before, group, Multicast(group, text.encode()))
        elif isinstance(stimulus, tuple):
            group, _ = stimulus
            before = msgspec.structs.replace(process, due=process.due - {stimulus})
            after, sent = self._step(before, group, Timer(*stimulus))
        else:
            receive = self.packets[stimulus].receive
            notice = receive.header
            event = notice if isinstance(notice, Crashed) else receive
            after, sent = self._step(process, receive.group, event)
        return Reaction(self._number(after), sent, after.log != process.log)

    def _step(
        self, process: Process, group: GroupId, event: Event
    ) -> tuple[Process, tuple[PacketNumber, ...]]:
        place = self._place(process.p, group)
        if place is None:  # no machine serves that group here
            return process, ()
        machine = process.machines[place].copy()
        try:
            out = machine.step((event,))
            machine.invariants()
        except Exception as error:  # a find like any other: it is shown with its schedule
            broken = Entry("error", f"{type(error).__name__}: {error}", group)
            return msgspec.structs.replace(process, log=(*process.log, broken), crashed=True), ()
        machines, prints = list(process.machines), list(process.prints)
        machines[place], prints[place] = machine, machine.fingerprint()
        due, later = _timers(process, out)
        after = msgspec.structs.replace(
            process,
            machines=tuple(machines),
            prints=tuple(prints),
            due=due,
            later=later,
            log=process.log + _entries(out),
        )
        return after, self._packets(process.p, out)

    def _place(self, p: ProcessId, group: GroupId) -> int | None:
        groups = self.homes[p]
        if self.scenario.protocol.declaration.scope == "domain":
            return 0 if groups else None
        return groups.index(group) if group in groups else None

    def _packets(self, p: ProcessId, out: Output) -> tuple[PacketNumber, ...]:
        return tuple(
            self._packet(Packet(dst, Receive(p, group, era, header, payload)))
            for to, group, era, header, payload in out.transmits
            for dst in to
        )

    def _packet(self, packet: Packet) -> PacketNumber:
        key = repr((packet.dst, canonical(packet.receive)))
        number = self.packet_numbers.setdefault(key, len(self.packets))
        if number == len(self.packets):
            self.packets.append(packet)
        return number

    def _number(self, process: Process) -> ProcessState:
        number = self.numbers.setdefault(process.key(), len(self.known))
        if number == len(self.known):
            self.known.append(process)
            self.speaks.append(self._speaks(process))
            self.finished.append(self._finished(process))
        return number

    def _speaks(self, process: Process) -> bool:
        script = self.script[process.p]
        if process.crashed or process.said == len(script):
            return False
        after = self.scenario.script[script[process.said]].after
        return after is None or message_name(after) in _delivered(process.log)

    def _finished(self, process: Process) -> bool:
        if process.crashed or process.log[:1] == CLOSED:
            return True
        everything_said = process.said == len(self.script[process.p])
        return everything_said and self.wanted[process.p] <= _delivered(process.log)


def _delivered(log: Log) -> set[str]:
    return {entry.what for entry in log if entry.kind == "deliver"}


def _entries(out: Output) -> Log:
    delivered = (row for row in out.deliveries if not isinstance(row, View))
    messages = (Entry("deliver", row[4].decode(errors="replace"), row[0]) for row in delivered)
    faults = (Entry("fault", f"p{peer}: {reason}", 0) for peer, reason in out.faults)
    return (*messages, *faults)


def _timers(process: Process, out: Output) -> tuple[frozenset[TimerName], frozenset[TimerName]]:
    """A timer that is set, anew or again, fires in the next round at the earliest."""
    due, later = process.due, process.later
    for group, name, delay_ms in out.timers:
        due -= {(group, name)}
        later = later | {(group, name)} if delay_ms >= 0 else later - {(group, name)}
    return due, later
