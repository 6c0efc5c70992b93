"""Which steps need not be tried, because another order of the same steps is tried anyway.

Steps of different processes commute: each changes its own process, takes from its own inbox, and
adds to other inboxes, where adding and taking do not disturb each other. So if we knew that nobody
can send anything to p until p itself moves, it would be enough to try the steps of p now: whatever
the others do first, p will find the same choices afterwards, and the same states are reached in
the other order. Such a set of steps is called *persistent*; a search that tries only a persistent
set in each state still reaches every state in which nothing more can happen (P. Godefroid,
"Partial-Order Methods for the Verification of Concurrent Systems", 1996, chapter 4). These states
are the ones we judge, and logs only grow, so nothing that can be seen in a log is lost.

How we know: a process is *quiet* if all that it can do with what is under way to it now, in every
order, transmits nothing. If every process but p is quiet, nothing new comes to p. This is
computed, not assumed: `Processes.react` tells what each step transmits, and the answers are kept.

Four things are no step of one process alone:
  - losses and duplicates are limited in number, so one at q would use up one at p. They are dealt
    out at the start (`exploration.space`), and each process has its own.
  - timers fire only when nothing else can happen. As long as p has not moved something else can,
    and in a state with timers to fire nothing is pruned.
  - a crash lets packets of the crashed process be lost elsewhere. While a process may still
    crash, only its own steps are a persistent set.
  - a crash need not happen. A set without any step that must happen some day (a packet under way,
    a message to be said) is not taken.
"""

from __future__ import annotations

from collections.abc import Iterable

from ordercast.core.ids import ProcessId
from ordercast.exploration.network import Inbox
from ordercast.exploration.process import ProcessState
from ordercast.exploration.space import Action, Space, State


class Pruning:
    """Finds persistent sets in the states of one space."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.answers: dict[tuple[ProcessState, Inbox, int], bool] = {}

    def enough(self, state: State, actions: list[list[Action]]) -> list[Action]:
        """Of everything that can happen, steps that suffice: those of one process, or all."""
        if not self.space.is_idle(state):
            sets = [actions[p] for p in self._candidates(state, actions)]
            sets = [own for own in sets if _some_must_happen(own)]
            if sets:
                return min(sets, key=len)
        return [action for own in actions for action in own]

    def _candidates(self, state: State, actions: list[list[Action]]) -> Iterable[ProcessId]:
        """Those to whom nobody else can send anything before they move."""
        noisy = [
            q
            for q, number in enumerate(state.processes)
            if actions[q] and not self._is_quiet(number, state.inboxes[q], state.faults[q][1])
        ]
        if len(noisy) > 1:
            return ()
        may_crash = [p for p, (_, _, crashes) in enumerate(state.faults) if crashes]
        return [p for p in may_crash or range(len(actions)) if noisy in ([], [p])]

    def _is_quiet(self, number: ProcessState, inbox: Inbox, duplicates: int) -> bool:
        """Nothing is transmitted by what it can do now, nor by what it can do then."""
        key = (number, inbox, duplicates)
        if key not in self.answers:
            self.answers[key] = self._look_ahead(number, inbox, duplicates)
        return self.answers[key]

    def _look_ahead(self, number: ProcessState, inbox: Inbox, duplicates: int) -> bool:
        # A packet that is lost needs no look: without it less can happen, and that is looked at.
        processes, medium = self.space.processes, self.space.medium
        if processes.speaks[number]:
            said = processes.react(number, None)
            if said.sent or not self._is_quiet(said.after, inbox, duplicates):
                return False
        for packet in medium.next(inbox):
            came = processes.react(number, packet)
            if came.sent:
                return False
            if not self._is_quiet(came.after, medium.without(inbox, packet), duplicates):
                return False
            if duplicates and not self._is_quiet(came.after, inbox, duplicates - 1):
                return False
        return True


def _some_must_happen(actions: list[Action]) -> bool:
    return any(action.kind in ("say", "arrive") for action in actions)
