"""The pipeline against the slow, obvious oracle, on ten thousand random traces.

Every trace is judged three times: by the oracle, by the kernels alone, and by Spark with all the
traces as runs of one job. The figures are differences, which must be 0, and how much the comparison
means: the share of traces with each hard feature, and how rare the rarest verdict is.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any

from ordercast.judge.kernels.judge import judge_table
from ordercast.pipeline import read_traces, verify
from ordercast.pipeline.spark.session import local_session
from ordercast.trace.oracle import unspecified, verdicts
from ordercast.trace.oracle.logs import Run
from ordercast.trace.oracle.membership import interval_at
from ordercast.trace.schema import PROPERTIES, Event
from ordercast.trace.tables import event_table
from ordercast.trace.write import write_jsonl

sys.path.append(str(Path(__file__).parent.parent / "tests"))  # the generator serves the tests first
from random_traces import random_trace

TRACES = 10_000
FIRST_SEED = 1_000_000  # none that the tests use
BLOCK = 100

Verdicts = Mapping[str, str]


def run() -> dict[str, Any]:
    """The figures of this part."""
    seeds = range(FIRST_SEED, FIRST_SEED + TRACES)
    blocks = [list(seeds[at : at + BLOCK]) for at in range(0, TRACES, BLOCK)]
    with get_context("spawn").Pool() as pool:
        rows = [row for block in pool.imap_unordered(_judge_block, blocks) for row in block]
    wanted = {seed: oracle for seed, oracle, _, _ in rows}
    by_kernels = _differences(wanted, {seed: kernels for seed, _, kernels, _ in rows})
    by_spark = _differences(wanted, _spark_verdicts(seeds))
    features = Counter(feature for *_, found in rows for feature in found)
    seen = Counter(item for oracle in wanted.values() for item in oracle.items())
    return {
        "traces": TRACES,
        "differences of the kernels to the oracle": len(by_kernels),
        "differences of Spark to the oracle": len(by_spark),
        "seeds that differ": sorted({*by_kernels, *by_spark})[:10],
        **{f"share with {name}": count / TRACES for name, count in sorted(features.items())},
        **_rarest(seen),
    }


def _rarest(seen: Counter[tuple[str, str]]) -> dict[str, str]:
    figures = {}
    for verdict in ("ok", "violated", "inconclusive"):
        counts = {name: seen[name, verdict] for name in PROPERTIES if seen[name, verdict]}
        name = min(counts, key=lambda one: counts[one])
        figures[f"fewest {verdict}"] = f"{counts[name]} ({name})"
    return figures


def trace_of(seed: int) -> list[Event]:
    return random_trace(Random(seed), run=str(seed))


def compared(events: list[Event], found: Verdicts) -> Verdicts:
    """The verdicts that mean something."""
    return {"wellformed": found["wellformed"]} if unspecified(events) else found


Judged = tuple[int, Verdicts, Verdicts, set[str]]  # seed, oracle, kernels, features


def _judge_block(seeds: list[int]) -> list[Judged]:
    return [_judge(seed) for seed in seeds]


def _judge(seed: int) -> Judged:
    events = trace_of(seed)
    kernels = {one.property: one.verdict for one in judge_table(event_table(events))}
    return seed, compared(events, verdicts(events)), kernels, features_of(events)


def _spark_verdicts(seeds: Iterable[int]) -> dict[int, Verdicts]:
    spark = local_session(app_name="oracle")
    found: dict[int, dict[str, str]] = {}
    try:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "runs.jsonl"
            write_jsonl((event for seed in seeds for event in trace_of(seed)), file)
            for row in verify(read_traces(spark, [file], small_bytes=0)).collect():
                found.setdefault(int(row["run"]), {})[row["property"]] = row["verdict"]
    finally:
        spark.stop()
    return dict(found)


def _differences(wanted: dict[int, Verdicts], found: dict[int, Verdicts]) -> list[int]:
    """The seeds whose verdicts differ; a trace without rows is no run."""
    return [
        seed
        for seed, verdict in wanted.items()
        if trace_of(seed) and any(found[seed][name] != verdict[name] for name in verdict)
    ]


def features_of(events: list[Event]) -> set[str]:
    """What is hard about a trace."""
    run = Run(events)
    names = {"crash": "a crash", "join": "joins", "leave": "leaves", "view": "views",
             "lost": "lost records"}  # fmt: skip
    found = {name for kind, name in names.items() if kind in run.kinds}
    if any(run.cut(process) for process in run.logs):
        found.add("a cut log")
    if any(_repeats(log) for log in run.logs.values()):
        found.add("duplicates")
    if any(_from_outside(run, message) for message in run.sends):
        found.add("open senders")
    if _overlap(run):
        found.add("overlapping groups")
    return found


def _repeats(log: list[Event]) -> bool:
    delivered = [event.message for event in log if event.kind == "deliver"]
    return len(delivered) > len(set(delivered))


def _from_outside(run: Run, message: str) -> bool:
    sender, position = run.sends[message]
    return interval_at(run, sender, run.group_of(message), position) is None


def _overlap(run: Run) -> bool:
    """Somebody delivers in two groups."""
    groups = ({run.group_of(message) for message in first} for first in run.deliveries.values())
    return any(len(own) > 1 for own in groups)
