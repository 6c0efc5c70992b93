"""A schedule: what happened, step by step, in words that can be followed again.

A step *is* its line of text. To replay a schedule, everything that can happen in a state is put
into words, and the line says which of them it was. So a schedule can be read, shortened and
changed with an editor.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Self

import msgspec

from ordercast.core.protocol import Options, OrderingProtocol
from ordercast.exploration.judging import Judge
from ordercast.exploration.scenario import (
    ROUNDS,
    ROUNDS_AFTER,
    ROUNDS_AFTER_CRASH,
    Members,
    Scenario,
    Script,
)
from ordercast.exploration.space import Action, Space, State
from ordercast.exploration.words import held_back, line, logged
from ordercast.trace.schema import Violation

SETTING = tuple(name for name in Scenario.__struct_fields__ if name != "protocol")


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """A run that breaks a promise, as it is kept in a file."""

    protocol: str
    processes: int
    groups: tuple[Members, ...]
    script: Script
    losses: int = 0
    duplicates: int = 0
    crash: bool = False
    rounds: int = ROUNDS
    rounds_after_crash: int = ROUNDS_AFTER_CRASH
    rounds_after: int = ROUNDS_AFTER
    expect: tuple[str, ...] = ()
    options: Options = Options()
    property: str
    sentence: str
    witness: dict[str, Any] = {}
    steps: tuple[str, ...]

    @classmethod
    def of(cls, scenario: Scenario, lines: Iterable[str]) -> Self:
        """The part of these steps that breaks a promise, and which one."""
        steps: list[str] = []
        violation = None
        for shown in replay(scenario, lines):
            steps.append(shown.line)
            violation = shown.violation
            if violation is not None:
                break
        assert violation is not None, "these steps break no promise"
        return cls(
            protocol=scenario.protocol.declaration.name,
            property=violation.property,
            sentence=violation.sentence,
            witness=violation.witness,
            steps=tuple(steps),
            **{name: getattr(scenario, name) for name in SETTING},
        )

    def scenario(self, protocol: type[OrderingProtocol]) -> Scenario:
        """What it was found in."""
        return Scenario(protocol=protocol, **{name: getattr(self, name) for name in SETTING})

    def write(self, path: Path) -> None:
        """As JSON."""
        path.write_bytes(msgspec.json.format(msgspec.json.encode(self)) + b"\n")

    @classmethod
    def read(cls, path: Path) -> Self:
        """From JSON; a ValueError says what is wrong with the file."""
        try:
            return msgspec.json.decode(path.read_bytes(), type=cls)
        except msgspec.MsgspecError as reason:
            raise ValueError(f"{path} is no schedule of `ordercast explore`: {reason}") from reason


class Shown(msgspec.Struct, frozen=True):
    """One step of a replay."""

    line: str
    logged: tuple[str, ...]  # what the process said or delivered
    held_back: tuple[str, ...]  # all that waits afterwards, and for what
    violation: Violation | None  # the first promise that is broken now


def replay(scenario: Scenario, lines: Iterable[str]) -> Iterator[Shown]:
    """Follow the lines; a ValueError says where that is impossible, and what would be possible."""
    space, judge = Space(scenario, close_logs=False), Judge(scenario)
    state = space.generous_root()
    for number, wanted in enumerate(lines, start=1):
        action = _find(space, state, number, wanted)
        before = space.processes.known[state.processes[action.p]]
        state, _ = space.after(state, action)
        after = space.processes.known[state.processes[action.p]]
        ended = not any(action.kind != "crash" for own in space.actions(state) for action in own)
        yield Shown(
            wanted,
            tuple(logged(action.p, entry) for entry in after.log[len(before.log) :]),
            tuple(held_back(space.processes.known[process] for process in state.processes)),
            judge.violation(space.outcome(state, ended=ended)),
        )


def _find(space: Space, state: State, number: int, wanted: str) -> Action:
    possible = {
        line(space.processes, action): action for own in space.actions(state) for action in own
    }
    if wanted not in possible:
        listed = "\n  ".join(possible) or "nothing"
        raise ValueError(f"step {number}, {wanted!r}, cannot happen here; possible is\n  {listed}")
    return possible[wanted]
