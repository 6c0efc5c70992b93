"""The Spark verdict on the traces of many runs: one session, a batch of folders at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from chaos.judge import Finding
from ordercast.judge.domains import Domain
from ordercast.judge.outcome import RunOutcome, Table
from ordercast.pipeline.verdict import judge_paths

BATCH = 50  # runs that are judged together
ALWAYS = ("wellformed", "membership", "views", "vsync", "agreement")


def spark_verdicts(
    folders: Sequence[Path], settled: Callable[[int], bool], master: str
) -> tuple[dict[str, int], list[tuple[int, Finding]]]:
    """Runs by verdict, and what is wrong, by seed. A run that did not settle may stay undecided."""
    counts: Counter[str] = Counter()
    found: list[tuple[int, Finding]] = []
    for batch in _batches(folders):
        for run in judge_paths([folder / "trace" for folder in batch], master=master).runs:
            seed = int(run.run.removeprefix("chaos-"))
            wrong = list(_wrong(run, settled(seed)))
            counts["violated" if wrong else "ok" if settled(seed) else "not violated"] += 1
            found += [(seed, Finding(f"spark {name}", sentence)) for name, sentence in wrong]
    return dict(counts), found


def _batches(folders: Sequence[Path]) -> Iterator[list[Path]]:
    rest = iter(folders)
    while batch := list(islice(rest, BATCH)):
        yield batch


def _wrong(run: RunOutcome, settled: bool) -> Iterator[tuple[str, str]]:
    """Properties that do not hold as they should, each with a witness."""
    tables: dict[Domain | None, Table] = dict(run.domains)
    asked = [(one.property, one.verdict, tables.get(one.domain, run.table)) for one in run.expected]
    asked += [(name, run.table.verdicts[name], run.table) for name in ALWAYS]
    for name, verdict, table in asked:
        if verdict == "violated" or (settled and verdict != "ok"):
            sentences = [one.sentence for one in table.violations if one.property == name]
            witness = next(iter([*sentences, *table.doubts.get(name, ())]), "no witness")
            yield name, f"{verdict}: {witness}"
