"""Rows that belong together, in one task, with no more of them than a task can hold."""

from __future__ import annotations

from pyspark.sql import DataFrame

ROWS_EACH = 1_000_000  # rows of a partition, which a task holds in memory, on average


def together(rows: DataFrame, *keys: str, count: int = 0) -> DataFrame:
    """The rows by `keys`, in the session's number of partitions, or more for `count` rows.

    Spark puts small partitions together where the number is its own choice, so that is left to it
    as long as it serves.
    """
    usual = int(rows.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
    needed = -(-count // ROWS_EACH)
    return rows.repartition(needed, *keys) if needed > usual else rows.repartition(*keys)
