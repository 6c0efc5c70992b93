"""Judge every run of a DataFrame of events.

Spark brings the rows of each run together; the task that has them judges one run after the other
with the kernels. Thousands of small runs share a task, so they cost no more than their rows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from ordercast.pipeline.columns import canonical
from ordercast.pipeline.kernels.judge import DEFAULT_WITNESSES, judge_table
from ordercast.pipeline.kernels.run import KERNEL_COLUMNS

_SPARK_VERDICTS = (
    "run string, property string, verdict string, violations long, doubts long, "
    "evidence array<struct<sentence: string, witness: string>>, reasons array<string>"
)
_ARROW_VERDICTS = pa.schema(
    [
        ("run", pa.string()),
        ("property", pa.string()),
        ("verdict", pa.string()),
        ("violations", pa.int64()),
        ("doubts", pa.int64()),
        ("evidence", pa.list_(pa.struct([("sentence", pa.string()), ("witness", pa.string())]))),
        ("reasons", pa.list_(pa.string())),
    ]
)

Batches = Iterable[pa.RecordBatch]


def verify(
    events: DataFrame, *, quiescent: bool = False, witnesses: int = DEFAULT_WITNESSES
) -> DataFrame:
    """One row per run and property: exactly the 32 names, for every run.

    Columns: run, property, verdict ("ok", "violated", "inconclusive", "n/a"), violations and doubts
    (how many), evidence (sentence and JSON witness of the first `witnesses` violations), reasons
    (why something is inconclusive). `quiescent` pretends that every cut log has `end`.
    """
    # Member lists travel as text: Spark takes 30 times as long for a column of (null) arrays.
    by_run = (
        canonical(events)
        .select("run", *KERNEL_COLUMNS)
        .withColumn("members", sf.to_json("members"))
        .repartition("run")
        .sortWithinPartitions("run")
    )
    return by_run.mapInArrow(_judge(quiescent, witnesses), _SPARK_VERDICTS)


def violations(verdicts: DataFrame) -> DataFrame:
    """One row per violation that `verify` kept evidence for: run, property, sentence, witness."""
    return verdicts.select("run", "property", sf.explode("evidence").alias("one")).select(
        "run", "property", "one.sentence", "one.witness"
    )


def _judge(quiescent: bool, witnesses: int) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    return partial(_judge_batches, quiescent=quiescent, witnesses=witnesses)


def _judge_batches(
    batches: Batches, *, quiescent: bool, witnesses: int
) -> Iterator[pa.RecordBatch]:
    for run, table in runs_of(batches):
        rows = [
            {
                "run": run,
                "property": judged.property,
                "verdict": judged.verdict,
                "violations": judged.findings.violations,
                "doubts": judged.findings.doubts,
                "evidence": [
                    {"sentence": sentence, "witness": json.dumps(witness)}
                    for sentence, witness in judged.findings.evidence
                ],
                "reasons": judged.findings.reasons,
            }
            for judged in judge_table(_with_lists(table), quiescent=quiescent, witnesses=witnesses)
        ]
        yield pa.RecordBatch.from_pylist(rows, schema=_ARROW_VERDICTS)


def _with_lists(table: pa.Table) -> pa.Table:
    """The table with member lists in the place of their texts."""
    place = table.column_names.index("members")
    lists = [None if text is None else json.loads(text) for text in table[place].to_pylist()]
    return table.set_column(place, "members", pa.array(lists, pa.list_(pa.string())))


def runs_of(batches: Batches) -> Iterator[tuple[str, pa.Table]]:
    """The rows of each run, from batches in which the rows of a run are neighbours."""
    current: str | None = None
    pending: list[pa.RecordBatch] = []
    for batch in batches:
        start = 0
        for stop in _run_ends(batch):
            run = batch.column("run")[start].as_py()
            if current is not None and run != current:
                yield current, pa.Table.from_batches(pending)
                pending = []
            current = run
            pending.append(batch.slice(start, stop - start))
            start = stop
    if current is not None:
        yield current, pa.Table.from_batches(pending)


def _run_ends(batch: pa.RecordBatch) -> list[int]:
    """Where in the batch each stretch of one run ends."""
    if not batch.num_rows:
        return []
    run = batch.column("run")
    changes = pc.not_equal(run.slice(1), run.slice(0, len(run) - 1))
    ends = pc.indices_nonzero(changes).to_pylist()
    return [*(end + 1 for end in ends), batch.num_rows]
