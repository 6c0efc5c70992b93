"""What was run and found: a line for each run in the output folder, a summary in the repository.

Records belong to one state of the sources: the product, the rig, and chaos itself. When a file of
these changes, the records of before count no more, and `--seed 0` begins again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import msgspec

ROOT = Path(__file__).parent.parent
SOURCES = ("src/ordercast", "netlab", "chaos")
SLOWEST = 10  # recoveries that are named
RESULTS = Path(__file__).with_name("results.json")


class Found(msgspec.Struct, frozen=True):
    """One finding of one run."""

    seed: int
    property: str
    sentence: str
    rule: str = ""  # the known rule that explains it; empty: unexplained

    def __str__(self) -> str:
        why = f" ({self.rule})" if self.rule else ""
        return (
            f"seed {self.seed}: {self.property}: {self.sentence}{why}\n"
            f"    replay: python -m chaos --seed {self.seed} --runs 1"
        )


class Record(msgspec.Struct, frozen=True):
    """One run."""

    seed: int
    sources: str
    kinds: tuple[str, ...]
    seconds: float
    sends: int
    deliveries: int
    recovery: float | None  # seconds from the end of the faults; None: it did not recover
    findings: tuple[Found, ...] = ()


class Summary(msgspec.Struct):
    """All runs, for people."""

    date: str
    sources: str
    runs: int
    sends: int
    deliveries: int
    recovered: int
    recovery_median: float | None
    recovery_90: float | None
    slowest: list[tuple[int, float]]  # seeds and seconds of the slowest recoveries
    unexplained: int  # runs with a finding that no rule explains
    explained: dict[str, int]  # runs by rule
    spark: dict[str, int]  # runs by what Spark said: ok, violated, ...
    kinds: dict[str, dict[str, Any]]
    findings: list[Found]


def hash_of_sources() -> str:
    """Changes when a Python file changes on which runs or their verdicts depend."""
    digest = blake2b(digest_size=16)
    for folder in SOURCES:
        for file in sorted((ROOT / folder).rglob("*.py")):
            digest.update(str(file.relative_to(ROOT)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


class Ledger:
    """The records in an output folder, one JSON line each."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / "records.jsonl"
        self.sources = hash_of_sources()

    def records(self) -> list[Record]:
        """Those of the present sources, the newest of each seed."""
        if not self._path.exists():
            return []
        lines = self._path.read_bytes().splitlines()
        found = [msgspec.json.decode(line, type=Record) for line in lines]
        newest = {one.seed: one for one in found if one.sources == self.sources}
        return [newest[seed] for seed in sorted(newest)]

    def add(self, record: Record) -> None:
        with self._path.open("ab") as file:
            file.write(msgspec.json.encode(record) + b"\n")


def summary(
    records: Sequence[Record], sources: str, spark: dict[str, int], more: Iterable[Found] = ()
) -> Summary:
    """Counts and recoveries, over all and for each kind of fault; `more` is what Spark found."""
    findings = [found for record in records for found in record.findings] + list(more)
    news = {found.seed for found in findings if not found.rule}
    rules = {(found.seed, found.rule) for found in findings if found.rule}
    times = _times(records)
    return Summary(
        date=datetime.now(UTC).date().isoformat(),
        sources=sources,
        runs=len(records),
        sends=sum(record.sends for record in records),
        deliveries=sum(record.deliveries for record in records),
        recovered=len(times),
        recovery_median=_median(times),
        recovery_90=_ninety(times),
        slowest=_slowest(records),
        unexplained=len(news),
        explained=dict(Counter(rule for _, rule in sorted(rules))),
        spark=spark,
        kinds=_by_kind(records, findings),
        findings=sorted(findings, key=lambda found: (bool(found.rule), found.seed)),
    )


def _by_kind(records: Sequence[Record], findings: Sequence[Found]) -> dict[str, dict[str, Any]]:
    kinds: dict[str, dict[str, Any]] = {}
    for kind in sorted({kind for record in records for kind in record.kinds}):
        runs = [record for record in records if kind in record.kinds]
        seeds, times = {record.seed for record in runs}, _times(runs)
        kinds[kind] = {
            "runs": len(runs),
            "recovered": len(times),
            "recovery_median": _median(times),
            "recovery_90": _ninety(times),
            "explained": len({f.seed for f in findings if f.rule and f.seed in seeds}),
            "unexplained": len({f.seed for f in findings if not f.rule and f.seed in seeds}),
        }
    return kinds


def _times(records: Iterable[Record]) -> list[float]:
    return [record.recovery for record in records if record.recovery is not None]


def _slowest(records: Iterable[Record]) -> list[tuple[int, float]]:
    done = [(record.seed, record.recovery) for record in records if record.recovery is not None]
    return sorted(done, key=lambda one: -one[1])[:SLOWEST]


def _median(times: list[float]) -> float | None:
    return round(median(times), 3) if times else None


def _ninety(times: list[float]) -> float | None:
    """What nine of ten do not exceed."""
    return round(quantiles(times, n=10)[-1], 3) if len(times) > 1 else None


def write(result: Summary, path: Path = RESULTS) -> None:
    """A line for each kind and for each finding."""
    head = msgspec.to_builtins(result)
    kinds, findings = head.pop("kinds"), head.pop("findings")
    lines = [f'"{key}": {_json(value)}' for key, value in head.items()]
    rows = ",\n".join(f"{_json(kind)}: {_json(row)}" for kind, row in kinds.items())
    found = ",\n".join(_json(one) for one in findings)
    lines += [f'"kinds": {{\n{rows}\n}}', f'"findings": [\n{found}\n]']
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def read(path: Path = RESULTS) -> Summary:
    return msgspec.json.decode(path.read_bytes(), type=Summary)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
