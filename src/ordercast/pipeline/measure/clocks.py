"""How far the clocks of two processes are apart, from the messages between them."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from ordercast.pipeline.columns import canonical
from ordercast.pipeline.figures import MOST_NAMED
from ordercast.pipeline.measure.deliveries import folded
from ordercast.pipeline.measure.folding import ONE_WAY


def clocks(events: DataFrame) -> DataFrame:
    """One row per run and pair of processes with a delivery between them.

    first, second: the pair by name. forth, back: the smallest latency from first to second and
    from second to first, null where nothing was delivered that way. early: deliveries between them
    that are earlier than their sends.
    """
    return clocks_folded(folded(canonical(events)))


def clocks_folded(rows: DataFrame) -> DataFrame:
    """The same, where `folded(events)` is at hand already."""
    forth = sf.col("peer") < sf.col("process")
    return (
        rows.where(sf.col("metric") == ONE_WAY)
        .groupBy(
            "run",
            sf.least("peer", "process").alias("first"),
            sf.greatest("peer", "process").alias("second"),
        )
        .agg(
            sf.min(sf.when(forth, sf.col("least"))).alias("forth"),
            sf.min(sf.when(~forth, sf.col("least"))).alias("back"),
            sf.sum("count").alias("early"),
        )
    )


def worst_clocks(pairs: DataFrame) -> DataFrame:
    """One row per run, from `clocks`: how many pairs, how many that differ for sure, the worst.

    A latency below 0 is the least by which the clocks of a pair differ.
    """
    lowest = sf.least("forth", "back")  # of those that are not null
    differ = sf.greatest(-lowest, sf.lit(0))
    ranked = sf.struct((-differ).alias("rank"), "first", "second", "forth", "back", "early")
    return pairs.groupBy("run").agg(
        sf.count("*").alias("pairs"),
        sf.count_if(lowest < 0).alias("skewed"),
        sf.slice(sf.array_sort(sf.collect_list(ranked)), 1, MOST_NAMED).alias("worst"),
    )
