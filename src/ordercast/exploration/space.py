"""The states of a scenario, what can happen in each, and where that leads.

What can happen: a process says its next message; a packet arrives, arrives and will come again, or
is lost; a timer fires; a process crashes; a packet is lost with the process that sent it. Every
one of these is a step of *one* process, the one that speaks, receives or crashes. That is what
makes pruning possible (`exploration.pruning`), and to keep it so, the faults a run may have are
dealt out at the start: there is a first state for every way to say whom the losses, the duplicates
and the crash will strike.

Where a protocol hears of crashes, the word of a crash is under way to the others from then on, like
a packet of the process that crashed; it overtakes, and is overtaken, but never lost.

Timers fire only when no packet is under way and nobody has anything to say. They fire in rounds: in
a round every timer that runs fires once, in any order, and what is set meanwhile waits for the next
round. So no timer starves, whatever order is chosen. After `rounds` rounds in a row that brought
no progress (`rounds_after_crash`, after a crash), we say that nothing more will happen.

Once every living process has said and delivered everything, the logs are handed out to be judged
and replaced by one mark (`close_logs`). What follows (acknowledgements, pruning) is explored once,
not once for each order of delivery that leads there; a delivery after that point is a mistake by
itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple, TypeVar

from ordercast.core.events import Crashed
from ordercast.core.ids import ProcessId
from ordercast.exploration.network import Inbox, Medium
from ordercast.exploration.process import (
    CLOSED,
    Log,
    PacketNumber,
    Process,
    Processes,
    ProcessState,
    TimerName,
)
from ordercast.exploration.scenario import MessageId, Scenario

T = TypeVar("T")
Faults = tuple[int, int, int]  # that may still strike a process: losses, duplicates, crashes


class State(NamedTuple):
    """Everything that decides what can happen next, and what was delivered."""

    processes: tuple[ProcessState, ...]
    inboxes: tuple[Inbox, ...]
    faults: tuple[Faults, ...]
    idle: int  # rounds of timers without progress


class Action(NamedTuple):
    """One thing that can happen."""

    kind: str  # say, arrive, repeat, lose, gone, timer, crash
    p: ProcessId  # to whom
    subject: PacketNumber | TimerName | MessageId | None  # the packet, the timer, the message


class Outcome(NamedTuple):
    """The logs of a run, as far as they matter."""

    logs: tuple[Log, ...]
    crashed: tuple[bool, ...]
    ended: bool  # nothing more will happen: what was not delivered never will be


class Space:
    """The states of one scenario."""

    def __init__(self, scenario: Scenario, *, close_logs: bool = True) -> None:
        self.scenario = scenario
        self.close_logs = close_logs
        self.processes = Processes(scenario)
        self.medium = Medium(scenario.protocol.declaration.network, self.processes.packets)

    # -- first states -----------------------------------------------------------------------------

    def roots(self) -> Iterator[State]:
        """One for every way to deal out the faults."""
        scenario, n = self.scenario, self.scenario.processes
        for losses, duplicates, crashes in product(
            _shares(scenario.losses, n),
            _shares(scenario.duplicates, n),
            _shares(int(scenario.crash), n),
        ):
            yield self._root(tuple(zip(losses, duplicates, crashes, strict=True)))

    def generous_root(self) -> State:
        """Every fault may strike everybody: from here any schedule of the scenario is possible."""
        one = (self.scenario.losses, self.scenario.duplicates, int(self.scenario.crash))
        return self._root((one,) * self.scenario.processes)

    def _root(self, faults: tuple[Faults, ...]) -> State:
        firsts = [self.processes.first(p) for p in range(self.scenario.processes)]
        state = State(tuple(first.after for first in firsts), ((),) * len(firsts), faults, 0)
        for first in firsts:
            state = self._put_under_way(state, first.sent)
        return self._begin_round_if_idle(state)

    # -- what can happen --------------------------------------------------------------------------

    def actions(self, state: State) -> list[list[Action]]:
        """Everything that can happen, for each process."""
        per_process = [self._actions_at(state, p) for p in range(len(state.processes))]
        if self.is_idle(state):
            for p, number in enumerate(state.processes):
                due = sorted(self.processes.known[number].due)
                per_process[p] += [Action("timer", p, timer) for timer in due]
        return per_process

    def is_idle(self, state: State) -> bool:
        """Nothing is under way, and nobody has anything to say."""
        speaks = self.processes.speaks
        return not any(state.inboxes) and not any(speaks[number] for number in state.processes)

    def _actions_at(self, state: State, p: ProcessId) -> list[Action]:
        losses, duplicates, crashes = state.faults[p]
        found = []
        if self.processes.speaks[state.processes[p]]:
            found.append(Action("say", p, self.processes.next_message(state.processes[p])))
        if state.inboxes[p]:
            for packet in self.medium.next(state.inboxes[p]):
                found.append(Action("arrive", p, packet))
                if self._is_notice(packet):
                    continue
                if duplicates:
                    found.append(Action("repeat", p, packet))
                if losses:
                    found.append(Action("lose", p, packet))
                if self.scenario.crash and self._sender_crashed(state, packet):
                    found.append(Action("gone", p, packet))
        if crashes:
            found.append(Action("crash", p, None))
        return found

    def _sender_crashed(self, state: State, packet: PacketNumber) -> bool:
        sender = state.processes[self.processes.packets[packet].receive.src]
        return self.processes.known[sender].crashed

    def _is_notice(self, packet: PacketNumber) -> bool:
        return isinstance(self.processes.packets[packet].receive.header, Crashed)

    # -- where it leads ---------------------------------------------------------------------------

    def after(self, state: State, action: Action) -> tuple[State, Outcome | None]:
        """The next state, and the logs if this is the moment to judge them."""
        if action.kind == "crash":
            state = self._crash(state, action.p)
        elif action.kind in ("lose", "gone"):
            state = self._lose(state, action)
        else:
            state = self._step(state, action)
        outcome = None
        if self.close_logs and self.is_finished(state) and not self._is_closed(state):
            outcome = self.outcome(state, ended=True)
            closed = tuple(map(self.processes.close, state.processes))
            state = state._replace(processes=closed, idle=0)
        return self._begin_round_if_idle(state), outcome

    def is_finished(self, state: State) -> bool:
        """Every living process has said and delivered everything."""
        finished = self.processes.finished
        return all(finished[number] for number in state.processes)

    def _is_closed(self, state: State) -> bool:
        return self.processes.known[state.processes[0]].log[:1] == CLOSED

    def outcome(self, state: State, *, ended: bool) -> Outcome:
        """The logs as they are."""
        known = [self.processes.known[number] for number in state.processes]
        crashed = tuple(process.crashed for process in known)
        logs = tuple(process.log for process in known)
        return Outcome(logs, crashed, ended)

    def _step(self, state: State, action: Action) -> State:
        p, stimulus = action.p, None if action.kind == "say" else action.subject
        reaction = self.processes.react(state.processes[p], stimulus)
        inboxes, faults = state.inboxes, state.faults
        if action.kind == "arrive":
            assert isinstance(stimulus, int)
            inboxes = _put(inboxes, p, self.medium.without(inboxes[p], stimulus))
        elif action.kind == "repeat":
            losses, duplicates, crashes = faults[p]
            faults = _put(faults, p, (losses, duplicates - 1, crashes))
        if self.processes.known[reaction.after].crashed:  # its machine broke
            inboxes = _put(inboxes, p, ())
        idle = 0 if reaction.progress else state.idle
        state = State(_put(state.processes, p, reaction.after), inboxes, faults, idle)
        return self._put_under_way(state, reaction.sent)

    def _lose(self, state: State, action: Action) -> State:
        p, packet = action.p, action.subject
        assert isinstance(packet, int)
        inbox, faults = state.inboxes[p], state.faults
        if action.kind == "gone":
            inbox = self.medium.without_queue(inbox, packet)
        else:
            losses, duplicates, crashes = faults[p]
            inbox = self.medium.without(inbox, packet)
            faults = _put(faults, p, (losses - 1, duplicates, crashes))
        return state._replace(inboxes=_put(state.inboxes, p, inbox), faults=faults)

    def _crash(self, state: State, p: ProcessId) -> State:
        crashed = self.processes.crash(state.processes[p])
        state = state._replace(
            processes=_put(state.processes, p, crashed),
            inboxes=_put(state.inboxes, p, ()),
            faults=tuple((losses, duplicates, 0) for losses, duplicates, _ in state.faults),
        )
        return self._put_under_way(state, self.processes.notices(p))

    def _put_under_way(self, state: State, packets: tuple[PacketNumber, ...]) -> State:
        inboxes = state.inboxes
        for packet in packets:
            dst = self.processes.packets[packet].dst
            if not self.processes.known[state.processes[dst]].crashed:
                inboxes = _put(inboxes, dst, self.medium.add(inboxes[dst], packet))
        return state._replace(inboxes=inboxes) if packets else state

    def _begin_round_if_idle(self, state: State) -> State:
        if not self.is_idle(state):
            return state
        known = [self.processes.known[number] for number in state.processes]
        if state.idle >= self._most_rounds(state, known):
            return state
        if any(process.due for process in known) or not any(process.later for process in known):
            return state
        begun = tuple(map(self.processes.next_round, state.processes))
        return state._replace(processes=begun, idle=state.idle + 1)

    def _most_rounds(self, state: State, known: list[Process]) -> int:
        if self.is_finished(state):
            return self.scenario.rounds_after
        if any(process.crashed for process in known):
            return self.scenario.rounds_after_crash
        return self.scenario.rounds


def _put(row: tuple[T, ...], place: int, value: T) -> tuple[T, ...]:
    return (*row[:place], value, *row[place + 1 :])


def _shares(faults: int, processes: int) -> Iterator[tuple[int, ...]]:
    """Every way to deal out so many faults."""
    if processes == 1:
        yield (faults,)
        return
    for own in range(faults, -1, -1):
        for rest in _shares(faults - own, processes - 1):
            yield own, *rest
