"""What is in a trace, from its tallies: rows by kind, logs that stop or have holes, groups."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from ordercast.judge.figures import MOST_NAMED
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
