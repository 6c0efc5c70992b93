"""wellformed, no_duplication, no_creation, membership."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from ordercast.pipeline.relational.facts import declared
from ordercast.pipeline.relational.findings import finding


def log_order(rows: DataFrame) -> DataFrame:
    """What is wrong with the order of the rows in each log, counted per run.

    unproven  sends that the clock of their process puts before something it did earlier
    """
    in_order = Window.partitionBy("run", "process").orderBy("index")
    earlier = in_order.rowsBetween(Window.unboundedPreceding, -1)
    speaks = sf.when(sf.col("kind").isin("send", "deliver"), sf.col("time"))
    marked = rows.filter(sf.col("process").isNotNull()).select(
        "run", "kind",
        (sf.lag("index").over(in_order) == sf.col("index")).alias("same_index"),
        sf.lag("kind").over(in_order).isin("crash", "end").alias("after_stop"),
        (sf.max(speaks).over(earlier) > sf.col("time")).alias("back_in_time"),
    )  # fmt: skip
    return marked.groupBy("run").agg(
        sf.count_if("same_index").alias("same_index"),
        sf.count_if("after_stop").alias("after_stop"),
        sf.count_if((sf.col("kind") == "send") & sf.col("back_in_time")).alias("unproven"),
    )


def wellformed(order: DataFrame, sent: DataFrame, tally: DataFrame) -> list[DataFrame]:
    """Unique (process, index), nothing after crash or end, each message sent once, no circle.

    A circle needs a delivery that is recorded no later than its send, or a log whose clock goes
    back: where there is neither, there is none. Otherwise folds cannot tell.
    """
    name = "wellformed"
    broken = sf.col("same_index") + sf.col("after_stop")
    return [
        finding(order, name, violations=broken, undecided=sf.col("unproven")),
        finding(sent, name, violations=sf.col("resent")),
        finding(tally, name, violations=sf.col("too_early"), undecided=sf.col("unproven")),
    ]


def no_duplication(tally: DataFrame) -> list[DataFrame]:
    """No process delivers a message twice."""
    return [finding(tally, "no_duplication", violations=sf.col("repeated"))]


def no_creation(tally: DataFrame, order: DataFrame, processes: DataFrame) -> list[DataFrame]:
    """Each delivered m has a send (same group) that the delivery did not happen before.

    Without a send record it is certain only if the log that should have it is complete.
    A delivery that happened before its send lies on a circle: see `wellformed`.
    """
    name = "no_creation"
    anybody = processes.groupBy("run").agg(sf.max("incomplete").alias("some_incomplete"))
    named = processes.select("run", sf.col("process").alias("claimed"), "incomplete")
    unsent = (
        tally.filter(~sf.col("sent"))
        .join(named, on=["run", "claimed"], how="left")
        .join(anybody, on=["run"], how="left")
    )
    certain = sf.when(sf.col("claimed").isNull(), ~sf.col("some_incomplete")).otherwise(
        sf.coalesce(~sf.col("incomplete"), sf.lit(False))
    )
    return [
        finding(
            tally, name,
            violations=sf.col("elsewhere") + sf.col("too_early"), undecided=sf.col("unproven"),
        ),
        finding(order, name, undecided=sf.col("unproven")),
        finding(
            unsent, name,
            violations=sf.when(certain, sf.col("copies")).otherwise(0),
            doubts=sf.when(certain, 0).otherwise(sf.col("copies")),
        ),
    ]  # fmt: skip


def membership(tally: DataFrame, rare: DataFrame) -> list[DataFrame]:
    """Delivered only inside an interval.

    Of whom nothing is recorded in a group, it is a member where nobody is declared.
    """
    groups = declared(rare).select("run", "group").distinct()
    strangers = tally.filter("unsettled > 0").join(groups, on=["run", "group"], how="left_semi")
    return [
        finding(tally, "membership", violations=sf.col("outside")),
        finding(strangers, "membership", violations=sf.col("unsettled")),
    ]
