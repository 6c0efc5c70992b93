"""All metrics of all runs in one long, tidy table: one row per metric and whatever it is of.

The many rows of a trace are folded once, into bars of histograms and counts by run, group, process
and view. Everything else is made of those few rows. A percentile is off by at most half a percent,
because bars are rounded to three digits; count, mean, min and max are exact.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from ordercast.judge.folds.folding import ONE_WAY
from ordercast.judge.folds.summing import PERCENTS
from ordercast.judge.folds.traffic import COUNTED, PACKET_HEADER
from ordercast.pipeline.measure.deliveries import current_views, folded, in_views
from ordercast.pipeline.measure.traffic import traffic
from ordercast.pipeline.spark.canonical import canonical

SPREADS = {
    "latency": "ns", "hold_back": "ns", "header": "bytes", PACKET_HEADER: "bytes",
    "payload": "bytes",
}  # fmt: skip
COUNTS = ("sends", "deliveries", "repeats", "early", "waited", "unmatched", *COUNTED.values())
RATES = ("sends_per_s", "deliveries_per_s")

LEVELS = {  # what a row can be of: the columns that say which one
    "run": (),
    "protocol": ("protocol",),
    "group": ("protocol", "group"),
    "process": ("protocol", "group", "process"),
    "view": ("protocol", "group", "view"),
}


def measure(events: DataFrame, *, per: Sequence[str] = tuple(LEVELS)) -> DataFrame:
    """One row per run, metric and run, protocol, group, process in a group, or view of a group.

    run, per      per: which of `LEVELS` the row is of
    protocol, group, process, view   which one; null where the row is over all of them
    metric, unit  see docs/MEASURE.md
    count         how many things were counted or measured
    value         the count itself, the mean, or the rate
    min, p50, p90, p99, max, percentiles   only where values are spread; the latter at `PERCENTS`

    For the memory of tasks see `deliveries`.
    """
    unknown = [level for level in per if level not in LEVELS]
    if unknown:
        raise ValueError(f"per={unknown[0]!r}: no such level; there are {', '.join(LEVELS)}")
    events = canonical(events)
    placed = in_views(events, current_views(events)) if "view" in per else events
    rows = folded(placed).unionByName(traffic(placed), allowMissingColumns=True)
    named = rows.join(sf.broadcast(_protocols(events)), ["run", "group"], "left")
    return levels(named, per)


def _protocols(events: DataFrame) -> DataFrame:
    declared = events.where("kind = 'group'").groupBy("run", "group")
    return declared.agg(sf.max("protocol").alias("protocol"))


def levels(rows: DataFrame, per: Sequence[str]) -> DataFrame:
    """Folded rows and counts of traffic, with a protocol, put together for each level."""
    keys = ("run", "metric", "protocol", "group", "process", "view")
    points = [percent / 100 for percent in PERCENTS]
    put_together = (
        rows.where(sf.col("metric") != ONE_WAY)
        .groupingSets([["run", "metric", *LEVELS[level]] for level in per], *keys)
        .agg(
            _level().alias("per"),
            sf.sum("count").alias("count"),
            sf.sum("total").alias("total"),
            sf.min("least").alias("min"),
            sf.max("most").alias("max"),
            sf.min("first").alias("first"),
            sf.max("last").alias("last"),
            sf.percentile("at", points, sf.col("count")).alias("points"),
        )
    )
    return _told(put_together)


def _level() -> Column:
    """The name of the grouping set that a row belongs to."""
    marks = [
        sf.when(sf.grouping(name) == 0, sf.lit(name))
        for name in ("process", "view", "group", "protocol")
    ]
    return sf.coalesce(*marks, sf.lit("run"))


def _told(rows: DataFrame) -> DataFrame:
    """With values and units; the pace of sends and deliveries as metrics of their own."""
    spread = sf.col("metric").isin(*SPREADS)
    span = sf.col("last") - sf.col("first")
    rate = sf.when(span > 0, sf.col("count") * 1e9 / span)
    value = sf.when(spread, sf.col("total") / sf.col("count")).otherwise(sf.col("count"))
    both = sf.array(
        sf.struct(sf.col("metric").alias("name"), value.cast("double").alias("value")),
        sf.struct(sf.concat("metric", sf.lit("_per_s")).alias("name"), rate.alias("value")),
    )
    rounded = sf.transform("points", lambda point: sf.round(point).cast("long"))
    told = rows.withColumn("percentiles", rounded).withColumn("one", sf.explode(both))
    return told.where("one.value is not null").select(
        "run", "per", "protocol", "group", "process", "view",
        sf.col("one.name").alias("metric"),
        _unit(sf.col("one.name")).alias("unit"),
        "count",
        sf.col("one.value").alias("value"),
        "min",
        *(_point(percent).alias(f"p{percent}") for percent in (50, 90, 99)),
        "max",
        "percentiles",
    )  # fmt: skip


def _unit(metric: Column) -> Column:
    units = {**SPREADS, **dict.fromkeys(RATES, "1/s"), **dict.fromkeys(COUNTS, "1")}
    return sf.create_map(*(sf.lit(text) for pair in units.items() for text in pair))[metric]


def _point(percent: int) -> Column:
    return sf.col("percentiles")[PERCENTS.index(percent)]
