"""What is in a trace: rows by kind, logs that stop or have holes, groups and their members."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from ordercast.pipeline.figures import MOST_NAMED
from ordercast.trace.schema import STATISTICAL_KINDS

_TOLD_LOSS = r"^(\d{1,18}) records missing$"  # as our recorder notes it


def facts(events: DataFrame) -> DataFrame:
    """One row per run.

    events, sends, deliveries, views, watched (rows of kinds for statistics), processes, cut, lossy
    are counts; crashed lists names; cut_logs, lossy_logs, untimed_logs and silent_logs the first
    few, by name.
    """
    by_process = logs(events)
    process = sf.col("process")
    there = process.isNotNull()
    cut = there & (sf.col("crash") == 0) & (sf.col("end") == 0)
    lossy = sf.col("lost") > 0
    loss = sf.struct("process", sf.col("lost").alias("places"), sf.col("records"))
    by_run = by_process.groupBy("run").agg(
        *(sf.sum(name).alias(name) for name in ("events", "sends", "deliveries", "views")),
        sf.sum("watched").alias("watched"),
        sf.count_if(there).alias("processes"),
        sf.array_sort(sf.collect_list(sf.when(sf.col("crash") > 0, process))).alias("crashed"),
        sf.count_if(cut).alias("cut"),
        sf.count_if(there & lossy).alias("lossy"),
        _first(sf.when(cut, process)).alias("cut_logs"),
        _first(sf.when(there & lossy, loss)).alias("lossy_logs"),
        _first(sf.when(there & (sf.col("untimed") > 0), process)).alias("untimed_logs"),
    )
    return by_run.join(_silent(events, by_process), "run", "left")


def _first(names: Column) -> Column:
    return sf.slice(sf.array_sort(sf.collect_list(names)), 1, MOST_NAMED)


def logs(events: DataFrame) -> DataFrame:
    """One row per run and process: rows by kind; how many records its `lost` rows say are missing.

    Rows that belong to nobody's log (`group`) have the process null.
    """

    def count(*kinds: str) -> Column:
        return sf.count_if(sf.col("kind").isin(*kinds))

    lost = sf.when(sf.col("kind") == "lost", sf.coalesce("note", sf.lit("")))
    told = sf.nullif(sf.regexp_extract(lost, _TOLD_LOSS, 1), sf.lit("")).cast("long")
    untimed = sf.col("kind").isin("send", "deliver") & sf.col("time").isNull()
    return events.groupBy("run", "process").agg(
        sf.count("*").alias("events"),
        count("send").alias("sends"),
        count("deliver").alias("deliveries"),
        count("view").alias("views"),
        count(*STATISTICAL_KINDS).alias("watched"),
        count("crash").alias("crash"),
        count("end").alias("end"),
        count("lost").alias("lost"),
        sf.when(count("lost") == sf.count(told), sf.sum(told)).alias("records"),
        sf.count_if(untimed).alias("untimed"),
    )


def _silent(events: DataFrame, by_process: DataFrame) -> DataFrame:
    """Declared members without a row of their own."""
    declared = (
        events.where("kind = 'group'")
        .select("run", sf.explode("members").alias("process"))
        .distinct()
    )
    return (
        declared.join(by_process, ["run", "process"], "left_anti")
        .groupBy("run")
        .agg(_first(sf.col("process")).alias("silent_logs"))
    )


def groups(events: DataFrame) -> DataFrame:
    """One row per run and group: what was declared, and how much was sent and delivered in it.

    A name that occurs in rows for statistics only is no group: links may use one for themselves.
    """
    named = sf.col("kind").isin("group", "view")  # rows whose members were in the group
    return (
        events.where(sf.col("group").isNotNull() & ~sf.col("kind").isin(*STATISTICAL_KINDS))
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
