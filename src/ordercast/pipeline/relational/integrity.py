"""wellformed, no_duplication, no_creation, membership, sending_view: each row by itself."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from ordercast.pipeline.relational.facts import declared
from ordercast.pipeline.relational.findings import finding, found


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


def in_logs(order: DataFrame) -> DataFrame:
    """wellformed: unique (process, index), nothing after crash or end.

    A circle of happened-before, and with it a delivery that happened before its send, needs a
    delivery that is recorded no later than its send, or a log whose clock goes back. Where there
    is neither, there is no circle. Otherwise folds cannot tell.
    """
    broken = sf.col("same_index") + sf.col("after_stop")
    return found(
        order,
        finding("wellformed", violations=broken, undecided=sf.col("unproven")),
        finding("no_creation", undecided=sf.col("unproven")),
    )


def in_sends(sent: DataFrame) -> DataFrame:
    """wellformed: each message is sent once."""
    return found(sent, finding("wellformed", violations=sf.col("resent")))


def in_deliveries(tally: DataFrame) -> DataFrame:
    """What a delivery and its send show by themselves.

    wellformed and no_creation: a process that delivers its own message before it sends it.
    no_creation: delivered in another group. no_duplication: delivered twice. membership: delivered
    outside an interval. sending_view: delivered in another view, or in none.
    """
    early, unproven = sf.col("too_early"), sf.col("unproven")
    return found(
        tally,
        finding("wellformed", violations=early, undecided=unproven),
        finding("no_creation", violations=sf.col("elsewhere") + early, undecided=unproven),
        finding("no_duplication", violations=sf.col("repeated")),
        finding("membership", violations=sf.col("outside")),
        finding("sending_view", violations=sf.col("astray")),
    )


def never_sent(tally: DataFrame, processes: DataFrame) -> DataFrame:
    """no_creation without a send record: certain if the log that should have it is complete."""
    anybody = processes.groupBy("run").agg(sf.max("incomplete").alias("some_incomplete"))
    named = processes.select("run", sf.col("process").alias("claimed"), "incomplete")
    unsent = (
        tally.filter(~sf.col("sent"))
        .join(sf.broadcast(named), on=["run", "claimed"], how="left")
        .join(sf.broadcast(anybody), on=["run"], how="left")
    )
    certain = sf.when(sf.col("claimed").isNull(), ~sf.col("some_incomplete")).otherwise(
        sf.coalesce(~sf.col("incomplete"), sf.lit(False))
    )
    copies = sf.col("copies")
    return found(
        unsent,
        finding(
            "no_creation",
            violations=sf.when(certain, copies).otherwise(0),
            doubts=sf.when(certain, 0).otherwise(copies),
        ),
    )


def by_strangers(tally: DataFrame, rare: DataFrame) -> DataFrame:
    """membership: delivered by a process that a group declares not, and that recorded nothing."""
    groups = declared(rare).select("run", "group").distinct()
    strangers = tally.filter("unsettled > 0").join(
        sf.broadcast(groups), on=["run", "group"], how="left_semi"
    )
    return found(strangers, finding("membership", violations=sf.col("unsettled")))
