"""Who must deliver what in the end: the members that stay, and the messages they owe."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from ordercast.pipeline.relational.facts import declared
from ordercast.pipeline.relational.membership import ENDLESS

_LIFE = ["run", "group", "process"]


def delivering(tally: DataFrame, rare: DataFrame) -> DataFrame:
    """Members because they deliver in a group of which nobody declared or recorded anything."""
    groups = declared(rare).select("run", "group").distinct()
    return (
        tally.filter("unsettled > 0")
        .select(*_LIFE)
        .distinct()
        .join(sf.broadcast(groups), on=["run", "group"], how="left_anti")
    )


def stayers(life: DataFrame, tally: DataFrame, rare: DataFrame, processes: DataFrame) -> DataFrame:
    """The processes that did not crash and are members at the end, with what `owes` asks for.

    since      index of the event that made it a member; null: from the start of the log
    installed  the views of the group in its log, `lacking` the highest that it is not in
    believed   its log has `end` and lacks nothing: what is not in it did not happen
    lenient    its log is cut or has `lost`: it is taken to have installed every view
    """
    recorded = rare.filter(sf.col("kind") == "view")
    lists = recorded.select("run", "group", "view", "members").distinct()
    viewed = lists.select("run", "group", sf.lit(True).alias("viewed")).distinct()
    installed = recorded.groupBy(*_LIFE).agg(sf.collect_set("view").alias("installed"))
    by_record = life.filter(sf.col("lasting") & (sf.col("until") == ENDLESS))
    from_the_start = sf.lit(None).cast("long").alias("since")
    members = by_record.select(*_LIFE, "since").unionByName(
        delivering(tally, rare).select(*_LIFE, from_the_start)
    )
    lacking = (
        members.join(sf.broadcast(lists), on=["run", "group"], how="inner")
        .filter(~sf.array_contains("members", sf.col("process")))
        .groupBy(*_LIFE)
        .agg(sf.max("view").alias("lacking"))
    )
    correct = processes.filter(~sf.col("crashed"))
    return (
        members.join(sf.broadcast(correct), on=["run", "process"], how="inner")
        .join(sf.broadcast(viewed), on=["run", "group"], how="left")
        .join(sf.broadcast(installed), on=_LIFE, how="left")
        .join(sf.broadcast(lacking), on=_LIFE, how="left")
        .select(
            *_LIFE, "since", "installed", "lacking",
            sf.coalesce("viewed", sf.lit(False)).alias("viewed"),
            (sf.col("ended") & ~sf.col("lost")).alias("believed"),
            (sf.col("cut") | sf.col("lost")).alias("lenient"),
        )
    )  # fmt: skip


def owes() -> Column:
    """Whether a stayer owes the messages that count for `message_view`, for certain."""
    view = sf.col("message_view")
    present = sf.coalesce(sf.col("lacking") < view, view.isNotNull())
    has_it = sf.coalesce(sf.array_contains("installed", view), sf.lit(False))
    by_views = view.isNotNull() & present & (has_it | sf.col("lenient"))
    return sf.when(sf.col("viewed"), by_views).otherwise(sf.col("since").isNull())


def may_owe() -> Column:
    """It joined on the way: it owes a message if its join happened before the send."""
    return ~sf.col("viewed") & sf.col("since").isNotNull()
