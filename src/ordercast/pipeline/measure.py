"""Facts and delivery latencies of runs, as Spark folds: for people, never for verdicts."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

LATENCY_PERCENTS = (*range(0, 100, 2), 99, 100)


def facts(events: DataFrame) -> DataFrame:
    """One row per run: how many events of which kind, and who crashed or was cut."""

    def count(kind: str) -> Column:
        return sf.count_if(sf.col("kind") == kind)

    by_process = (
        events.where("process is not null")
        .groupBy("run", "process")
        .agg(
            count("crash").alias("crash"),
            count("end").alias("end"),
            count("lost").alias("lost"),
        )
        .groupBy("run")
        .agg(
            sf.count("*").alias("processes"),
            sf.collect_list(sf.when(sf.col("crash") > 0, sf.col("process"))).alias("crashed"),
            sf.count_if((sf.col("crash") == 0) & (sf.col("end") == 0)).alias("cut"),
            sf.count_if(sf.col("lost") > 0).alias("lossy"),
        )
    )
    by_run = events.groupBy("run").agg(
        sf.count("*").alias("events"),
        count("send").alias("sends"),
        count("deliver").alias("deliveries"),
        count("view").alias("views"),
    )
    return by_run.join(by_process, "run", "left")


def groups(events: DataFrame) -> DataFrame:
    """One row per run and group: what was declared, and how much was sent and delivered in it."""
    named = sf.col("kind").isin("group", "view")  # rows whose members were in the group
    return (
        events.where("`group` is not null")
        .groupBy("run", "group")
        .agg(
            sf.max("order").alias("order"),
            sf.max("protocol").alias("protocol"),
            sf.max("scope").alias("scope"),
            sf.array_sort(
                sf.array_distinct(sf.flatten(sf.collect_set(sf.when(named, sf.col("members")))))
            ).alias("members"),
            sf.count_if(sf.col("kind") == "send").alias("sends"),
            sf.count_if(sf.col("kind") == "deliver").alias("deliveries"),
        )
    )


def latencies(events: DataFrame) -> DataFrame:
    """One row per run and group: percentiles of the time from send to delivery, in nanoseconds.

    Deliveries at the sender itself count too. Clocks are taken as they are: where two machines
    disagree, a latency can be negative.
    """
    sends = (
        events.where("kind = 'send' and time is not null")
        .groupBy("run", "message")
        .agg(sf.min("time").alias("sent"), sf.min("group").alias("group"))
    )
    deliveries = events.where("kind = 'deliver' and time is not null").select(
        "run", "message", "process", sf.col("time").alias("delivered")
    )
    points = [percent / 100 for percent in LATENCY_PERCENTS]
    return (
        deliveries.join(sends, ["run", "message"], "inner")
        .select("run", "group", (sf.col("delivered") - sf.col("sent")).alias("latency"))
        .groupBy("run", "group")
        .agg(
            sf.count("*").alias("deliveries"),
            sf.percentile_approx("latency", points, 10_000).alias("percentiles"),
        )
    )
