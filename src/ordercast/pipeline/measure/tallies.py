"""Tallies of a trace (`folds.tallies`) as a stage."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from ordercast.judge.folds.tallies import DECLARED, MANY


def tallies(events: DataFrame) -> DataFrame:
    """One row for rows that are alike: how many, how many with a time, the first and last of these.

    A note is kept of rows of kind `lost` only.
    """
    note = sf.when(sf.col("kind") == "lost", sf.col("note"))
    rows = events.select(*MANY, *DECLARED[:-1], note.alias("note"), "time")
    return rows.groupBy(*MANY, *DECLARED).agg(
        sf.count("*").alias("count"),
        sf.count("time").alias("timed"),
        sf.min("time").alias("first"),
        sf.max("time").alias("last"),
    )
