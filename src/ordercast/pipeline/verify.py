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

from collections.abc import Iterator, Sequence
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from ordercast.errors import TraceError
from ordercast.judge.judging import Batches, judge_batches, judged_run
from ordercast.judge.kernels.judge import DEFAULT_WITNESSES, WHOLE
from ordercast.judge.kernels.run import KERNEL_COLUMNS
from ordercast.judge.run_files import CLOCK_SHARES, SPLIT_FROM, RunFiles, Work, bins, load_run
from ordercast.judge.verdict_rows import (
    SPARK_PARTS,
    SPARK_VERDICTS,
    fault_batch,
    of_part,
    refuse_faults,
)
from ordercast.pipeline.spark.canonical import canonical
from ordercast.pipeline.spark.cluster_checks import check_files_visible
from ordercast.pipeline.spark.task_code import by_tasks
from ordercast.pipeline.spark.tasks import MOST_TASKS, numbered, numbers


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
    judge = partial(judge_batches, quiescent=quiescent, witnesses=witnesses, promises=promises)
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
    work = bins(runs, split_from=split_from, shares=shares, most=MOST_TASKS)
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


def _judge_table(
    table: pa.Table, batches: Batches, *, quiescent: bool, witnesses: int, promises: bool
) -> Iterator[pa.RecordBatch]:
    """The same for all runs of a table, once for the one row that the task is given."""
    for _ in batches:
        yield from judge_batches(
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
            check_files_visible(one.files.files)
            run = load_run(one.files.files, quiescent=quiescent)
        except TraceError as fault:
            yield of_part(fault_batch(name, fault), one.part.place)
            continue
        for batch in judged_run(name, run, one.part, quiescent, witnesses, promises):
            yield of_part(batch, one.part.place)


def merged(parts: DataFrame, witnesses: int) -> DataFrame:
    """One row where several parts had a say on one property of one run or domain.

    What they say stands in the order of their places, whichever task is done first.
    """
    said = [
        sf.slice(sf.flatten(sf.col(f"said.{name}")), 1, witnesses).alias(name)
        for name in ("evidence", "reasons")
    ]
    return (
        parts.groupBy("run", "promise", "property")
        .agg(
            sf.min("verdict").alias("verdict"),
            sf.sum("violations").alias("violations"),
            sf.sum("doubts").alias("doubts"),
            sf.sort_array(sf.collect_list(sf.struct("place", "evidence", "reasons"))).alias("said"),
        )
        .select("run", "promise", "property", "verdict", "violations", "doubts", *said)
        .withColumn(
            "verdict",
            sf.when(sf.col("verdict") == "n/a", "n/a")
            .when(sf.col("violations") > 0, "violated")
            .when(sf.col("doubts") > 0, "inconclusive")
            .otherwise("ok"),
        )
    )
