"""Several runs side by side: the same workload, another protocol, what did it cost?

Each path is read by itself, so two runs may have the same name. All are judged and measured at
once. A comparison of different workloads says little, so differences are told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from ordercast.errors import TraceError
from ordercast.pipeline.figures import GroupFigures
from ordercast.pipeline.outcome import RunOutcome
from ordercast.pipeline.read import find_files, read_traces, total_bytes
from ordercast.pipeline.spark.session import local_session
from ordercast.pipeline.verdict import LARGE_BYTES, Say, judge_events

MOST_RUNS = 64  # side by side; more is a table for a notebook: `measure`
MOST_DIFFERENCES = 3  # told of each run
_MARK = "\x1f"  # between the number of a path and the name of a run

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


def compare_paths(
    paths: Sequence[str | Path],
    *,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    say: Say = lambda step: None,
) -> Comparison:
    """Compare the runs in `paths` on a session of our own; `say` is told each step.

    A folder that only has folders in it, none of them a run, stands for those.
    """
    places = [place for path in paths for place in _places(Path(path))]
    small = total_bytes(find_files(places)) <= LARGE_BYTES
    say("starting Spark")
    spark = local_session(master or "local[*]", small=small, conf=conf)
    say("reading")
    outcome = judge_events(_side_by_side(spark, places), say=say)
    _check_number(len(outcome.runs), paths)
    numbered = sorted((int(one.run.partition(_MARK)[0]), one.run, one) for one in outcome.runs)
    return compared(
        [(str(places[n]), one.renamed(run.partition(_MARK)[2])) for n, run, one in numbered]
    )


def compared(found: Sequence[tuple[str, RunOutcome]]) -> Comparison:
    """The comparison of runs at hand, each with the path it came from."""
    labels = _labels(found)
    runs = [
        Compared(label, path, run) for label, (path, run) in zip(labels, found, strict=True)
    ]  # fmt: skip
    return Comparison(tuple(runs), tuple(_differences(runs)))


def _places(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    inside = sorted(one for one in path.iterdir() if one.name[0] not in "._")
    folders = [one for one in inside if one.is_dir()]
    if len(folders) < len(inside) or any(one.name.startswith("run=") for one in folders):
        return [path]
    return folders or [path]


def _side_by_side(spark: SparkSession, places: Sequence[Path]) -> DataFrame:
    parts = [
        read_traces(spark, [place]).withColumn(
            "run", sf.concat(sf.lit(f"{number}{_MARK}"), sf.col("run"))
        )
        for number, place in enumerate(places)
    ]
    return reduce(DataFrame.unionByName, parts)


def _check_number(runs: int, paths: Sequence[str | Path]) -> None:
    where = ", ".join(map(str, paths))
    if runs < 2:
        reason = f"{runs or 'no'} run{'s' if not runs else ''} there; a comparison needs two"
        raise TraceError(where, None, None, reason)
    if runs > MOST_RUNS:
        reason = f"{runs} runs there; at most {MOST_RUNS} are put side by side"
        raise TraceError(where, None, None, reason)


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
