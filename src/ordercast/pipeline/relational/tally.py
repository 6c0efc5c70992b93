"""The one pass over all sends and deliveries: what each process delivered, counted.

A message belongs to a class: its group, the view it counts for, who delivered it. Whoever owes one
message of a class owes all of them. So it is enough to count the messages of a class and those of
them that a process delivered: no set of names is kept, and the result is small.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from ordercast.pipeline.relational.membership import at

# The hash comes first, so that sorting compares numbers. The names keep it exact.
_MESSAGE = ("hash", "run", "message")
CLASS = ("run", "group", "view", "trigger", "sent")
NOBODY, CUT, ENDED = 0, 1, 2  # the best of those who delivered a message and did not crash


def sends(rows: DataFrame, life: DataFrame, processes: DataFrame) -> DataFrame:
    """One row per message that was sent: the first send counts.

    standing  "bound": the sender stays a member to the end, so it must deliver the message itself
              "outside": it is no member. "unsettled": nothing is recorded about it in this group;
              it is a member if it delivers in it. null: it goes away, or it crashed
    """
    first = sf.min(sf.struct("index", "process", "group", "time")).alias("first")
    folded = (
        _of_kind(rows, "send")
        .groupBy(*_MESSAGE)
        .agg(
            first,
            sf.count("*").alias("times"),
            (sf.min("process") != sf.max("process")).alias("contested"),
        )
        .select(*_MESSAGE, "first.*", "times", "contested")
    )
    correct = processes.filter(~sf.col("crashed")).select(
        "run", "process", sf.lit(True).alias("correct")
    )
    return (
        at(folded, life)
        .join(sf.broadcast(correct), on=["run", "process"], how="left")
        .select(
            *_MESSAGE, "times", "contested", "group",
            sf.col("process").alias("sent_by"),
            sf.col("index").alias("sent_at"),
            sf.col("time").alias("sent_when"),
            sf.col("own_view").alias("sent_in"),
            sf.when(sf.col("correct"), _standing()).alias("standing"),
        )
    )  # fmt: skip


def _standing() -> Column:
    return (
        sf.when(sf.col("member").isNull(), "unsettled")
        .when(~sf.col("member"), "outside")
        .when(sf.col("lasting"), "bound")
    )


def sends_of_processes(all_sends: DataFrame) -> DataFrame:
    """The sends counted by group, process and standing."""
    process = sf.col("sent_by").alias("process")
    return all_sends.groupBy("run", "group", process, "standing").agg(
        sf.count("*").alias("sends"),
        sf.count_if(sf.col("times") > 1).alias("resent"),
        sf.count_if("contested").alias("contested"),
    )


def copies(rows: DataFrame, sent: DataFrame, life: DataFrame, processes: DataFrame) -> DataFrame:
    """One row per message and process that delivered it: its first delivery, beside the send.

    view         the view that the message counts for, `current` that of the process
    trigger      the best of all who delivered the message: NOBODY, CUT or ENDED
    one_of_them  true for one copy of each message
    """
    one_message = Window.partitionBy(*_MESSAGE)
    matched = _first_deliveries(rows, processes).join(
        sent.drop("times", "contested").withColumnRenamed("group", "sent_to"),
        on=list(_MESSAGE),
        how="left",
    )
    told_group = sf.when(sf.col("sent_to").isNull(), sf.col("told_group"))
    lowest = sf.min(told_group).over(one_message)
    best = sf.max("trigger").over(one_message)
    known = matched.withColumns({"group": sf.coalesce("sent_to", lowest), "trigger": best})
    placed = at(known, life).withColumnRenamed("view", "current")
    return placed.withColumn("view", sf.coalesce("sent_in", sf.min("current").over(one_message)))


def tally(all_copies: DataFrame) -> DataFrame:
    """How many copies there are, and how many break something, per class, process and view.

    `messages` counts each message of a class once. `claimed` is the sender that a delivery names,
    where there is no send record.
    """
    here, sender = sf.col("process"), sf.col("sent_by")
    sent = sender.isNotNull()
    own = sent & (here == sender)
    later = sf.when(own, sf.col("index") > sf.col("sent_at")).otherwise(
        sf.col("time") > sf.col("sent_when")
    )
    astray = sf.col("sent_in").isNotNull() & ~sf.col("current").eqNullSafe(sf.col("sent_in"))
    named = [
        sf.col("run"), sf.col("group"), sf.col("view"), sf.col("trigger"), sent.alias("sent"),
        here, sf.col("between"), sf.when(~sent, sf.col("claimed")).alias("claimed"),
    ]  # fmt: skip
    return all_copies.groupBy(*named).agg(
        sf.count_if("one_of_them").alias("messages"),
        sf.count("*").alias("copies"),
        sf.count_if("repeated").alias("repeated"),
        sf.count_if(sent & (sf.col("told_group") != sf.col("group"))).alias("elsewhere"),
        sf.count_if(own & (sf.col("index") < sf.col("sent_at"))).alias("too_early"),
        sf.count_if(sent & ~sf.coalesce(later, sf.lit(False))).alias("unproven"),
        sf.count_if(~sf.col("member")).alias("outside"),
        sf.count_if(sf.col("member").isNull()).alias("unsettled"),
        sf.count_if(astray).alias("astray"),
        sf.count_if(own & sf.col("standing").isin("bound", "unsettled")).alias("own"),
        sf.bit_xor(sf.xxhash64("message")).alias("one_digest"),
        sf.bit_xor(sf.xxhash64(sf.lit("other"), "message")).alias("other_digest"),
    )


def _of_kind(rows: DataFrame, kind: str) -> DataFrame:
    its = rows.filter(
        (sf.col("kind") == kind) & sf.col("message").isNotNull() & sf.col("process").isNotNull()
    )
    return its.withColumn("hash", sf.xxhash64("run", "message"))


def _first_deliveries(rows: DataFrame, processes: DataFrame) -> DataFrame:
    """The first delivery of each message at each process; `repeated`: it was not the only one."""
    in_order = Window.partitionBy(*_MESSAGE).orderBy("process", "index")
    previous, following = (f("process").over(in_order) for f in (sf.lag, sf.lead))
    here = sf.col("process")
    trigger = sf.when(sf.col("crashed"), NOBODY).when(sf.col("ended"), ENDED).otherwise(CUT)
    stops = processes.select("run", "process", trigger.alias("trigger"))
    return (
        _of_kind(rows, "deliver")
        .select(
            *_MESSAGE, "process", "index", "time",
            sf.col("group").alias("told_group"),
            sf.col("sender").alias("claimed"),
        )
        .join(sf.broadcast(stops), on=["run", "process"], how="left")
        .repartition(*_MESSAGE)
        .withColumns({"previous": previous, "repeated": following.eqNullSafe(here)})
        .filter(~sf.col("previous").eqNullSafe(here))
        .withColumn("one_of_them", sf.col("previous").isNull())
        .drop("previous")
    )  # fmt: skip
