"""Work that Spark distributes by number: a task is told which pieces of a list are its own.

pieces = numbered(spark, len(files))              a row for each, over at most MOST_TASKS tasks
by_tasks(pieces, partial(read, files), schema)    read: for number in numbers(batches): ...
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

MOST_TASKS = 256
BATCH_ROWS = 100_000  # rows that a task hands to Spark at one time


def numbered(spark: SparkSession, count: int) -> DataFrame:
    """One row, its number, for each of so many pieces of work."""
    return spark.range(0, count, 1, min(count, MOST_TASKS))


def numbers(batches: Iterable[pa.RecordBatch]) -> Iterator[int]:
    """The numbers that a task was given."""
    for batch in batches:
        yield from batch.column("id").to_pylist()
