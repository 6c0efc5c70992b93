"""What is in a trace: rows by kind, logs that stop or have holes, groups and their members."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from ordercast.judge.folds.facts import (
    FACTS_SCHEMA,
    GROUP_SCHEMA,
    Fields,
    Tally,
    group_facts,
    run_facts,
)
from ordercast.pipeline.measure.tallies import tallies
from ordercast.pipeline.spark.canonical import canonical
from ordercast.pipeline.spark.task_code import by_tasks

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
