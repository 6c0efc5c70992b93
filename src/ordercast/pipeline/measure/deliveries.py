"""The stages that bring the rows of a message together: matched deliveries, and what is folded.

Spark sends all rows of a message to one task, which matches and folds them as Arrow tables. So a
run of any size is shared among tasks, and a small one costs a single shuffle. A task holds its rows
in memory: whoever knows how many there are says so (`together.ROWS_EACH`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema

from ordercast.judge.folds.folding import FOLDED_SCHEMA, fold
from ordercast.judge.folds.matching import DELIVERY_SCHEMA, KINDS, ROW_SCHEMA, match
from ordercast.judge.folds.slices import Spans
from ordercast.judge.folds.summing import fold_groups
from ordercast.pipeline.measure.together import together
from ordercast.pipeline.spark.canonical import canonical
from ordercast.pipeline.spark.task_code import by_tasks
from ordercast.pipeline.spark.tasks import BATCH_ROWS

Batches = Iterable[pa.RecordBatch]
Work = Callable[[pa.Table], pa.Table]


def deliveries(events: DataFrame) -> DataFrame:
    """One row per run, message and process: its first delivery there, beside its send.

    run, message, group, sender, process   group and sender of the send, else of the delivery
    index         of the delivery, in the log of `process`
    view          of `process` at the delivery: as its row says, else its last `view` row before
    sent, delivered, latency   nanoseconds; null where a row has no time or there is no send
    held          nanoseconds from the arrival of somebody else's message to its delivery; null
                  where no `receive` or `hold` row tells when it came
    size          body bytes, as the send says, else the delivery
    overhead      header bytes, as the delivery says
    has_send      whether there is a send
    repeats       deliveries of the same message by the same process after the first

    A task holds the rows of a partition in memory. Events are not counted for that: there are
    as many partitions as the session has for shuffles (`spark.sql.shuffle.partitions`).
    """
    events = canonical(events)
    placed = in_views(events, current_views(events))
    return _by_message(placed.where(_of_messages()), match, DELIVERY_SCHEMA)


def folded(events: DataFrame) -> DataFrame:
    """Bars of histograms and counts, by run, group, process and view: several rows for each."""
    return _by_message(events.where(_of_messages()), fold, FOLDED_SCHEMA)


def folded_by_group(events: DataFrame, spans: Spans, count: int) -> DataFrame:
    """The same by run and group, and what was sent and delivered in slices of time.

    `count` is how many rows of `KINDS` there are.
    """
    moves = events.where(_of_messages() | sf.col("kind").isin("send", "deliver"))
    return _by_message(moves, partial(fold_groups, spans=spans), FOLDED_SCHEMA, count)


def _of_messages() -> Column:
    """Rows that tell what became of a message."""
    return sf.col("kind").isin(*KINDS) & sf.col("message").isNotNull()


def _by_message(events: DataFrame, work: Work, schema: pa.Schema, count: int = 0) -> DataFrame:
    rows = together(events.select(*ROW_SCHEMA.names), "run", "message", count=count)
    return by_tasks(rows, partial(_whole_task, work=work), from_arrow_schema(schema))


def _whole_task(batches: Batches, *, work: Work) -> Iterator[pa.RecordBatch]:
    """A message may be spread over the batches of a task, so all of them are one table."""
    own = list(batches)
    if own:
        rows = pa.Table.from_batches(own).cast(ROW_SCHEMA)
        yield from work(rows).to_batches(max_chunksize=BATCH_ROWS)


def current_views(events: DataFrame) -> DataFrame:
    """One row per stay of a process in a view of a group: its log between `after` and `until`.

    They are few, so they may be sent to every task.
    """
    log = Window.partitionBy("run", "process", "group").orderBy("index")
    stays = events.where("kind in ('view', 'leave')").select(
        "run", "process", "group", "kind",
        sf.col("view").alias("current"),
        sf.col("index").alias("after"),
        sf.lead("index").over(log).alias("until"),
    )  # fmt: skip
    return stays.where("kind = 'view'").drop("kind")


def in_views(rows: DataFrame, stays: DataFrame) -> DataFrame:
    """The rows with the view in which their process was, where their own column says nothing."""
    row, stay = rows.alias("row"), sf.broadcast(stays).alias("stay")
    there = [
        sf.col(f"row.{name}") == sf.col(f"stay.{name}") for name in ("run", "process", "group")
    ]
    later = sf.col("row.index") > sf.col("stay.after")
    before = sf.col("stay.until").isNull() | (sf.col("row.index") < sf.col("stay.until"))
    others = [f"row.{name}" for name in rows.columns if name != "view"]
    return row.join(stay, [*there, later, before], "left").select(
        *others, sf.coalesce("row.view", "stay.current").alias("view")
    )
