"""Try everything that can happen in a scenario, each state once.

The search goes deep first, so that it soon meets states in which nothing more can happen: only
there one sees that a message is never delivered. Once something is found to be wrong, it looks
again, nearest states first, for the shortest schedule that shows it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import msgspec

from ordercast.exploration.judging import Judge
from ordercast.exploration.pruning import Pruning
from ordercast.exploration.scenario import Scenario
from ordercast.exploration.schedule import Schedule
from ordercast.exploration.space import Action, Outcome, Space, State
from ordercast.exploration.words import line

DEFAULT_LIMIT = 1_000_000  # states
NEARBY = 100_000  # states that are looked at for a shorter schedule

Path = list[Action]


class Exploration(msgspec.Struct, frozen=True, kw_only=True):
    """What came out."""

    scenario: Scenario
    complete: bool  # all was tried; otherwise the limit was reached, or something is wrong
    states: int
    transitions: int
    outcomes: frozenset[Outcome]  # all that was judged
    violated: tuple[str, ...]  # names of properties; only the first, unless all were asked for
    schedule: Schedule | None = None  # that shows the first violation


def explore(
    scenario: Scenario,
    *,
    limit: int = DEFAULT_LIMIT,
    prune: bool = True,
    close_logs: bool = True,
    stop_at_first: bool = True,
) -> Exploration:
    """Try everything; stop at `limit` states, or when something is wrong.

    Without `close_logs` what follows the last delivery is explored for each order of deliveries.
    """
    if limit < 1:
        raise ValueError(f"limit={limit} must be at least 1")
    search = Search(scenario, limit=limit, prune=prune, close_logs=close_logs)
    violated: list[str] = []
    schedule = None
    for name, path in search.run():
        if schedule is None:
            schedule = _shortest(scenario, search.lines(path))
        if name not in violated:
            violated.append(name)
        if stop_at_first:
            break
    return Exploration(
        scenario=scenario,
        complete=search.complete and not (violated and stop_at_first),
        states=len(search.came_from),
        transitions=search.transitions,
        outcomes=frozenset(search.judge.verdicts),
        violated=tuple(violated),
        schedule=schedule,
    )


def _shortest(scenario: Scenario, lines: list[str]) -> Schedule:
    """What was found, or something shorter."""
    found = Schedule.of(scenario, lines)
    nearest = Search(scenario, limit=NEARBY, prune=False, nearest_first=True)
    for _, path in nearest.run():
        return min(found, Schedule.of(scenario, nearest.lines(path)), key=lambda s: len(s.steps))
    return found


class Search:
    """One walk through the states of a scenario."""

    def __init__(
        self,
        scenario: Scenario,
        *,
        limit: int,
        prune: bool,
        close_logs: bool = True,
        nearest_first: bool = False,
    ) -> None:
        self.space = Space(scenario, close_logs=close_logs)
        self.judge = Judge(scenario)
        self.pruning = Pruning(self.space) if prune else None
        self.limit = limit
        self.nearest_first = nearest_first  # then incomplete logs are judged too
        self.came_from: dict[State, tuple[State, Action] | None] = {}
        self.transitions = 0
        self.complete = False

    def run(self) -> Iterator[tuple[str, Path]]:
        """Every broken promise as it is found: its name, and the way there."""
        waiting = deque(self.space.roots())
        self.came_from.update(dict.fromkeys(waiting))
        while waiting:
            state = waiting.popleft() if self.nearest_first else waiting.pop()
            actions = self._to_try(state)
            if not any(action.kind != "crash" for action in actions):
                yield from self._judge(self.space.outcome(state, ended=True), state)
            for action in actions:
                self.transitions += 1
                after, outcome = self.space.after(state, action)
                if outcome is None and self.nearest_first:
                    outcome = self.space.outcome(after, ended=False)
                if outcome is not None:  # judged even where the next state is known
                    yield from self._judge(outcome, state, action)
                if after in self.came_from:
                    continue
                if len(self.came_from) == self.limit:
                    return
                self.came_from[after] = state, action
                waiting.append(after)
        self.complete = True

    def lines(self, path: Path) -> list[str]:
        """The way as people read it."""
        return [line(self.space.processes, action) for action in path]

    def _to_try(self, state: State) -> list[Action]:
        actions = self.space.actions(state)
        if self.pruning is None:
            return [action for own in actions for action in own]
        return self.pruning.enough(state, actions)

    def _judge(self, outcome: Outcome, state: State, *more: Action) -> Iterator[tuple[str, Path]]:
        if violation := self.judge.violation(outcome):
            yield violation.property, [*self._path(state), *more]

    def _path(self, state: State) -> Path:
        path = []
        while (step := self.came_from[state]) is not None:
            state, action = step
            path.append(action)
        return path[::-1]
