"""What is in a trace: rows by kind, logs that stop or have holes, groups and their members."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from ordercast.pipeline.columns import canonical
from ordercast.pipeline.figures import MOST_NAMED
from ordercast.pipeline.measure.tallies import tallies
from ordercast.pipeline.spark.ship import by_tasks
from ordercast.trace.schema import STATISTICAL_KINDS

_TOLD_LOSS = re.compile(r"(\d{1,18}) records missing", re.ASCII)  # as our recorder notes it
_NAMES = pa.list_(pa.string())
_LOSS = pa.struct([("process", pa.string()), ("places", pa.int64()), ("records", pa.int64())])
_COUNTS = ("events", "sends", "deliveries", "views", "watched", "processes", "cut", "lossy")
FACTS_SCHEMA = pa.schema(
    [
        ("run", pa.string()),
        *((name, pa.int64()) for name in _COUNTS),
        ("crashed", _NAMES),
        ("cut_logs", _NAMES),
        ("lossy_logs", pa.list_(_LOSS)),
        ("untimed_logs", _NAMES),
        ("silent_logs", _NAMES),
    ]
)
GROUP_SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("run", "group", "order", "protocol", "scope")),
        ("members", _NAMES),
        ("sends", pa.int64()),
        ("deliveries", pa.int64()),
    ]
)

Fields = dict[str, Any]
Tally = Mapping[str, Any]  # a row of `tallies`
Work = Callable[[Iterable[Tally]], Iterable[Fields]]


def facts(events: DataFrame) -> DataFrame:
    """One row per run.

    events, sends, deliveries, views, watched (rows of kinds for statistics), processes, cut, lossy
    are counts; crashed lists names; cut_logs, lossy_logs, untimed_logs and silent_logs the first
    few, by name.
    """
    return _by_run(events, run_facts, FACTS_SCHEMA)


def groups(events: DataFrame) -> DataFrame:
    """One row per run and group: what was declared, and how much was sent and delivered in it.

    A name that occurs in rows for statistics only is no group: links may use one for themselves.
    """
    return _by_run(events, group_facts, GROUP_SCHEMA)


def _by_run(events: DataFrame, work: Work, schema: pa.Schema) -> DataFrame:
    together = tallies(canonical(events)).repartition("run")
    task = partial(_whole_task, work=work, schema=schema)
    return by_tasks(together, task, from_arrow_schema(schema))


def _whole_task(
    batches: Iterable[pa.RecordBatch], *, work: Work, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    rows = (row for batch in batches for row in batch.to_pylist())
    yield pa.RecordBatch.from_pylist(list(work(rows)), schema=schema)


class _Log:
    """The log of one process, or of nobody, in numbers."""

    def __init__(self) -> None:
        self.kinds: Counter[str] = Counter()
        self.untimed = 0  # sends and deliveries without a time
        self.missing: int | None = 0  # records that `lost` rows say are missing; None: one does not

    def add(self, tally: Tally) -> None:
        kind, count = tally["kind"], tally["count"]
        self.kinds[kind] += count
        if kind in ("send", "deliver"):
            self.untimed += count - tally["timed"]
        elif kind == "lost":
            told = _TOLD_LOSS.fullmatch(tally["note"] or "")
            if told is None or self.missing is None:
                self.missing = None
            else:
                self.missing += count * int(told[1])

    @property
    def cut(self) -> bool:
        return not self.kinds["crash"] and not self.kinds["end"]


def run_facts(tallies: Iterable[Tally]) -> Iterator[Fields]:
    """The rows of `facts`, from all tallies of some runs."""
    runs: dict[str, dict[str | None, _Log]] = defaultdict(lambda: defaultdict(_Log))
    declared: dict[str, set[str]] = defaultdict(set)
    for tally in tallies:
        runs[tally["run"]][tally["process"]].add(tally)
        if tally["kind"] == "group":
            declared[tally["run"]].update(tally["members"] or ())
    for run, logs in runs.items():
        kinds: Counter[str] = sum((log.kinds for log in logs.values()), Counter())
        names = sorted(name for name in logs if name is not None)
        named = [(name, logs[name]) for name in names]
        cut = [name for name, log in named if log.cut]
        lossy = [
            {"process": name, "places": log.kinds["lost"], "records": log.missing}
            for name, log in named
            if log.kinds["lost"]
        ]
        yield {
            "run": run,
            "events": kinds.total(),
            "sends": kinds["send"],
            "deliveries": kinds["deliver"],
            "views": kinds["view"],
            "watched": sum(kinds[kind] for kind in STATISTICAL_KINDS),
            "processes": len(named),
            "cut": len(cut),
            "lossy": len(lossy),
            "crashed": [name for name, log in named if log.kinds["crash"]],
            "cut_logs": cut[:MOST_NAMED],
            "lossy_logs": lossy[:MOST_NAMED],
            "untimed_logs": [name for name, log in named if log.untimed][:MOST_NAMED],
            "silent_logs": sorted(declared[run] - logs.keys())[:MOST_NAMED],
        }


def group_facts(tallies: Iterable[Tally]) -> Iterator[Fields]:
    """The rows of `groups`, from all tallies of some runs."""
    found: dict[tuple[str, str], list[Tally]] = defaultdict(list)
    for tally in tallies:
        if tally["group"] is not None and tally["kind"] not in STATISTICAL_KINDS:
            found[tally["run"], tally["group"]].append(tally)
    for (run, group), own in sorted(found.items()):
        counts: Counter[str] = Counter()
        members: set[str] = set()
        for tally in own:
            counts[tally["kind"]] += tally["count"]
            if tally["kind"] in ("group", "view"):
                members.update(tally["members"] or ())
        yield {
            "run": run,
            "group": group,
            **{name: _greatest(own, name) for name in ("order", "protocol", "scope")},
            "members": sorted(members),
            "sends": counts["send"],
            "deliveries": counts["deliver"],
        }


def _greatest(own: Iterable[Tally], name: str) -> object:
    return max((tally[name] for tally in own if tally[name] is not None), default=None)
