"""Several runs side by side: the same workload, another protocol, what did it cost?

A comparison of different workloads says little, so differences are told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ordercast.judge.figures import GroupFigures
from ordercast.judge.outcome import RunOutcome

MOST_DIFFERENCES = 3  # told of each run

STATES = {0: "kept", 1: "violated", 3: "undecided"}


@dataclass(frozen=True)
class Compared:
    """One run of a comparison."""

    label: str  # unique: the protocol if that says which run it is
    path: str  # where it was found
    outcome: RunOutcome

    @property
    def figures(self) -> GroupFigures | None:
        """Over all its groups; None if nothing was sent or delivered."""
        return self.outcome.figures.whole

    @property
    def state(self) -> str:
        """Whether it kept what it declares, and what every run must keep."""
        return STATES[self.outcome.exit_code]

    @property
    def orders(self) -> tuple[str, ...]:
        """What it declares."""
        return tuple(sorted({one.order for one in self.outcome.groups if one.order}))

    def as_json(self) -> dict[str, object]:
        """The shape in `ordercast compare --json`."""
        told = self.outcome.as_json()
        kept = {"state": self.state, "expected": told["expected"]}
        names = {"label": self.label, "path": self.path, "run": self.outcome.run}
        return {**names, "orders": list(self.orders), **kept, "figures": told["figures"]}


@dataclass(frozen=True)
class Comparison:
    """Runs side by side, and why they may not be comparable."""

    runs: tuple[Compared, ...]
    differences: tuple[str, ...]  # of the workloads, in words; none: they are the same

    def as_json(self) -> dict[str, object]:
        """The shape that `ordercast compare --json` prints."""
        runs = [one.as_json() for one in self.runs]
        return {"runs": runs, "differences": list(self.differences)}


def compared(found: Sequence[tuple[str, RunOutcome]]) -> Comparison:
    """The comparison of runs at hand, each with the path it came from."""
    labels = _labels(found)
    runs = [
        Compared(label, path, run) for label, (path, run) in zip(labels, found, strict=True)
    ]  # fmt: skip
    return Comparison(tuple(runs), tuple(_differences(runs)))


def _labels(found: Sequence[tuple[str, RunOutcome]]) -> list[str]:
    """The shortest of these that is different for all runs."""
    protocols = [_protocols(run) for _, run in found]
    paths = [Path(path).stem for path, _ in found]
    runs = [run.run for _, run in found]
    whole = [f"{path} {run}".rstrip() for (path, _), run in zip(found, runs, strict=True)]
    for names in (protocols, runs, paths, _pairs(protocols, runs), _pairs(protocols, paths)):
        if all(names) and len(set(names)) == len(names):
            return names
    return whole


def _protocols(run: RunOutcome) -> str:
    return " + ".join(sorted({one.protocol for one in run.groups if one.protocol}))


def _pairs(first: Sequence[str], second: Sequence[str]) -> list[str]:
    return [f"{a} {b}".strip() for a, b in zip(first, second, strict=True)]


def _differences(runs: Sequence[Compared]) -> list[str]:
    """In what the workload of each run differs from that of the first."""
    first, *others = runs
    expected = _workload(first)
    told = []
    for one in others:
        own = _workload(one)
        different = [what for what in expected | own if own.get(what) != expected.get(what)]
        for what in different[:MOST_DIFFERENCES]:
            amounts = f"{_told(own.get(what))}, {first.label}: {_told(expected.get(what))}"
            told.append(f"{what}: {one.label} has {amounts}")
        if len(different) > MOST_DIFFERENCES:
            told.append(f"and {len(different) - MOST_DIFFERENCES} more differences of {one.label}")
    return told


def _workload(one: Compared) -> dict[str, float | None]:
    """What an application decides, whatever the protocol."""
    facts: dict[str, float | None] = {}
    for group in one.outcome.groups:
        facts[f"members of {group.name}"] = len(group.members)
        facts[f"messages sent to {group.name}"] = group.sends
    for figures in one.outcome.figures.groups:
        if figures.payload is not None:
            facts[f"bytes of a message to {figures.group}, on average"] = figures.payload.mean
    return facts


def _told(amount: float | None) -> str:
    return "none" if amount is None else f"{amount:,.10g}"
