"""How much was sent and delivered in each slice of a run's time."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

MOST_SLICES = 60  # of one run, with round numbers for their length
_STEPS = (1, 2, 5, 10)


def pace(events: DataFrame) -> DataFrame:
    """One row per run and slice in which something was sent or delivered.

    start: nanoseconds since the first send or delivery of the run that has a time. slice: the
    length of each. sends, deliveries: rows in it. first, last: the ends of the run, as recorded.
    """
    timed = events.where("kind in ('send', 'deliver') and time is not null").select(
        "run", "kind", "time"
    )
    spans = timed.groupBy("run").agg(sf.min("time").alias("first"), sf.max("time").alias("last"))
    sliced = timed.join(
        sf.broadcast(spans.withColumn("slice", _slice(sf.col("last") - sf.col("first") + 1))),
        "run",
        "inner",
    )
    since = sf.col("time") - sf.col("first")
    return sliced.groupBy(
        "run", "first", "last", "slice", (since - since % sf.col("slice")).alias("start")
    ).agg(
        sf.count_if(sf.col("kind") == "send").alias("sends"),
        sf.count_if(sf.col("kind") == "deliver").alias("deliveries"),
    )


def _slice(duration: Column) -> Column:
    """The smallest of 1, 2, 5, 10, 20, ... nanoseconds of which `MOST_SLICES` are enough."""
    least = sf.ceil(duration / MOST_SLICES)
    power = sf.pow(sf.lit(10.0), sf.floor(sf.log10(least))).cast("long")
    return sf.coalesce(*(sf.when(power * step >= least, power * step) for step in _STEPS))
