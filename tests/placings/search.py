"""All states of a scene: each is looked at once, the nearest first."""

from __future__ import annotations

import msgspec

from placings.judging import Judge
from placings.scene import Scene
from placings.space import Action, Space, State

DEFAULT_LIMIT = 1_000_000  # states


class Found(msgspec.Struct, frozen=True):
    """What a search saw."""

    states: int
    transitions: int
    interleavings: int  # different ways from the first state to an end
    ends: int  # states in which nothing more can happen
    outcomes: int  # different logs
    rescued: int  # ends at which timers had to fire
    complete: bool  # all states were looked at
    complaint: str = ""  # a promise that is broken ...
    schedule: tuple[str, ...] = ()  # ... and the shortest way there

    @property
    def summary(self) -> str:
        """For people."""
        how = "complete" if self.complete else "stopped"
        ways = f"{self.interleavings:.2e}" if self.interleavings > 10**6 else self.interleavings
        return (
            f"{how}: {self.states} states, {self.transitions} transitions, {ways} interleavings, "
            f"{self.ends} ends, {self.outcomes} outcomes, {self.rescued} needed timers"
        )


def explore(scene: Scene, *, limit: int = DEFAULT_LIMIT, prune: bool = True) -> Found:
    """Look at everything that can happen, or stop at the first broken promise."""
    return _Search(scene, limit, prune=prune).run()


class _Search:
    def __init__(self, scene: Scene, limit: int, *, prune: bool) -> None:
        self.space = Space(scene, prune=prune)
        self.judge = Judge(self.space)
        self.limit = limit
        first = self.space.first()
        self.states = [first]
        self.numbers = {first: 0}
        self.came_from: list[tuple[int, Action] | None] = [None]
        self.edges: list[tuple[int, ...]] = []

    def run(self) -> Found:
        ends = 0
        while len(self.edges) < len(self.states) <= self.limit:
            at = len(self.edges)
            state = self.states[at]
            actions = self.space.actions(state)
            self.edges.append(tuple(self._follow(at, state, action) for action in actions))
            if not actions:
                ends += 1
                if complaint := self.judge.complaint(state):
                    return self._found(ends, complaint, self._schedule(at))
        return self._found(ends)

    def _follow(self, at: int, state: State, action: Action) -> int:
        after = self.space.after(state, action)
        number = self.numbers.setdefault(after, len(self.states))
        if number == len(self.states):
            self.states.append(after)
            self.came_from.append((at, action))
        return number

    def _found(self, ends: int, complaint: str = "", schedule: tuple[str, ...] = ()) -> Found:
        complete = len(self.edges) == len(self.states)
        return Found(
            len(self.states),
            sum(map(len, self.edges)),
            self._ways() if complete else 0,
            ends,
            len(self.judge.verdicts),
            self.judge.rescued,
            complete and not complaint,
            complaint,
            schedule,
        )

    def _ways(self) -> int:
        """How many ways lead to an end: each state passes on those that lead to it, once all have
        come. Nothing leads back, as every step uses something up."""
        to_come = [0] * len(self.states)
        for following in self.edges:
            for number in following:
                to_come[number] += 1
        ways = [0] * len(self.states)
        ways[0], ready, ended = 1, [0], 0
        while ready:
            at = ready.pop()
            ended += 0 if self.edges[at] else ways[at]
            for number in self.edges[at]:
                ways[number] += ways[at]
                to_come[number] -= 1
                if not to_come[number]:
                    ready.append(number)
        return ended

    def _schedule(self, at: int) -> tuple[str, ...]:
        lines = []
        while (step := self.came_from[at]) is not None:
            at, action = step
            lines.append(self.space.words(action))
        return tuple(lines[::-1])
