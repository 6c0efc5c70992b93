"""Judge every run of a trace: three ways to bring the rows of a run to the task that judges it.

    verify        any DataFrame of events: Spark shuffles the rows of each run together and hands
                  them over. Thousands of small runs share a task, so they cost no more than their
                  rows.
    verify_runs   traces that are laid out by run: a task reads the columns of its run itself, and
                  a large run is judged in parts by several tasks.
    verify_table  a small table: it is sent along with the one task that judges it.

All end in the same kernels, and give the same verdicts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from ordercast.errors import TraceError
from ordercast.pipeline.columns import canonical
from ordercast.pipeline.kernels.judge import DEFAULT_WITNESSES, WHOLE, Part, judge_run
from ordercast.pipeline.kernels.load import RunLoader
from ordercast.pipeline.kernels.promises import promises as declared
from ordercast.pipeline.kernels.promises import restricted
from ordercast.pipeline.kernels.run import KERNEL_COLUMNS, Run
from ordercast.pipeline.laid_out import CLOCK_SHARES, SPLIT_FROM, RunFiles, Work, bins, load_run
from ordercast.pipeline.spark.ship import by_tasks
from ordercast.pipeline.spark.tasks import numbered, numbers
from ordercast.pipeline.spark.visible import refuse_invisible
from ordercast.pipeline.verdict_rows import (
    SPARK_PARTS,
    SPARK_VERDICTS,
    fault_batch,
    merged,
    of_part,
    refuse_faults,
    verdict_batch,
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
    judged = verify_promises(events, quiescent=quiescent, witnesses=witnesses, promises=False)
    return judged.drop("promise")


def verify_promises(
    events: DataFrame,
    *,
    quiescent: bool = False,
    witnesses: int = DEFAULT_WITNESSES,
    promises: bool = True,
) -> DataFrame:
    """The same, and 32 rows more for each domain that a run declares an order for.

    `promise` says which domain a row is about (order, protocol, scope, groups); null: the run.
    """
    # Member lists travel as text: Spark takes 30 times as long for a column of (null) arrays.
    by_run = (
        canonical(events)
        .select("run", *KERNEL_COLUMNS)
        .withColumn("members", sf.to_json("members"))
        .repartition("run")
        .sortWithinPartitions("run")
    )
    judge = partial(_judge_batches, quiescent=quiescent, witnesses=witnesses, promises=promises)
    return by_tasks(by_run, judge, SPARK_VERDICTS)


def verify_table(
    spark: SparkSession,
    events: pa.Table,
    *,
    quiescent: bool = False,
    witnesses: int = DEFAULT_WITNESSES,
    promises: bool = True,
) -> DataFrame:
    """What `verify_promises` gives, for a small table: it is sent to one task, in one job."""
    own = events.select(["run", *KERNEL_COLUMNS]).sort_by("run").combine_chunks()
    judge = partial(_judge_table, own, quiescent=quiescent, witnesses=witnesses, promises=promises)
    return by_tasks(numbered(spark, 1), judge, SPARK_VERDICTS)


def verify_runs(
    spark: SparkSession,
    runs: Sequence[RunFiles],
    *,
    quiescent: bool = False,
    witnesses: int = DEFAULT_WITNESSES,
    promises: bool = True,
    split_from: int = SPLIT_FROM,
    shares: int = CLOCK_SHARES,
) -> DataFrame:
    """What `verify_promises` gives, for runs in files. Raises `TraceError` for what is no trace.

    A run of `split_from` bytes or more is judged in parts, its clock in so many `shares`.
    """
    work = bins(runs, split_from=split_from, shares=shares)
    judge = partial(_judge_work, work, quiescent=quiescent, witnesses=witnesses, promises=promises)
    judged = by_tasks(numbered(spark, len(work)), judge, SPARK_PARTS)
    split = any(one.part != WHOLE for several in work for one in several)
    judged = merged(judged, witnesses) if split else judged.drop("place")
    found = judged.toArrow()
    refuse_faults(found)
    return spark.createDataFrame(found.combine_chunks())


def violations(verdicts: DataFrame) -> DataFrame:
    """One row per violation that `verify` kept evidence for: run, property, sentence, witness."""
    return verdicts.select("run", "property", sf.explode("evidence").alias("one")).select(
        "run", "property", "one.sentence", "one.witness"
    )


def _judge_batches(
    batches: Batches, *, quiescent: bool, witnesses: int, promises: bool
) -> Iterator[pa.RecordBatch]:
    for name, pieces in groupby(pieces_of(batches), key=itemgetter(0)):
        loader = RunLoader()
        for _, piece in pieces:
            loader.add(piece)
        run = loader.finish(quiescent=quiescent)
        yield from _judged(name, run, WHOLE, quiescent, witnesses, promises)


def _judge_table(
    table: pa.Table, batches: Batches, *, quiescent: bool, witnesses: int, promises: bool
) -> Iterator[pa.RecordBatch]:
    """The same for all runs of a table, once for the one row that the task is given."""
    for _ in batches:
        yield from _judge_batches(
            table.to_batches(), quiescent=quiescent, witnesses=witnesses, promises=promises
        )


def _judge_work(
    work: Sequence[Sequence[Work]],
    batches: Batches,
    *,
    quiescent: bool,
    witnesses: int,
    promises: bool,
) -> Iterator[pa.RecordBatch]:
    """The same for the runs whose place in `work` a task was given, and the place of each part."""
    for one in (one for place in numbers(batches) for one in work[place]):
        name = one.files.run
        try:
            refuse_invisible(one.files.files)
            run = load_run(one.files.files, quiescent=quiescent)
        except TraceError as fault:
            yield of_part(fault_batch(name, fault), one.part.place)
            continue
        for batch in _judged(name, run, one.part, quiescent, witnesses, promises):
            yield of_part(batch, one.part.place)


def _judged(
    name: str, run: Run, part: Part, quiescent: bool, witnesses: int, promises: bool
) -> Iterator[pa.RecordBatch]:
    """The rows of a run, and of each domain that it declares."""
    judged = judge_run(run, part, witnesses=witnesses)
    yield verdict_batch(name, None, judged)
    for promise in declared(run) if promises else ():
        if promise.everything:
            yield verdict_batch(name, promise, judged)
        else:
            inside = restricted(run, promise.groups, quiescent=quiescent)
            yield verdict_batch(name, promise, judge_run(inside, part, witnesses=witnesses))


def pieces_of(batches: Batches) -> Iterator[tuple[str, pa.Table]]:
    """Stretches of rows of one run, from batches in which the rows of a run are neighbours."""
    for batch in batches:
        start = 0
        for stop in _run_ends(batch):
            yield batch.column("run")[start].as_py(), pa.table(batch.slice(start, stop - start))
            start = stop


def _run_ends(batch: pa.RecordBatch) -> list[int]:
    """Where in the batch each stretch of one run ends."""
    if not batch.num_rows:
        return []
    run = batch.column("run")
    changes = pc.not_equal(run.slice(1), run.slice(0, len(run) - 1))
    ends = pc.indices_nonzero(changes).to_pylist()
    return [*(end + 1 for end in ends), batch.num_rows]
