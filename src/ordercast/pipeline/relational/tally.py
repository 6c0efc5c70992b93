"""The one pass over all sends and deliveries: what each process delivered, counted.

A message belongs to a class: its group, the view it counts for, who delivered it. Whoever owes one
message of a class owes all of them. So it is enough to count the messages of a class and those of
them that a process delivered: no set of names is kept, and the result is small.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from ordercast.pipeline.relational.standing import at

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
    """One row per message and process that delivered it: its first delivery, beside the send."""
    one_message = Window.partitionBy(*_MESSAGE)
    matched = _first_deliveries(rows).join(
        sent.drop("times", "contested").withColumnRenamed("group", "sent_to"),
        on=list(_MESSAGE),
        how="left",
    )
    of_message = sf.coalesce("sent_to", sf.min("told_group").over(one_message))
    placed = at(matched.withColumn("group", of_message), life)
    stops = sf.broadcast(processes.select("run", "process", "crashed", "ended"))
    known = placed.join(stops, on=["run", "process"], how="left")
    trigger = sf.when(sf.col("crashed"), NOBODY).when(sf.col("ended"), ENDED).otherwise(CUT)
    return (
        known.withColumn("current", sf.col("view"))
        .withColumn("view", sf.coalesce("sent_in", sf.min("current").over(one_message)))
        .withColumn("trigger", sf.max(trigger).over(one_message))
        .withColumn("one_of_them", sf.min("process").over(one_message) == sf.col("process"))
    )


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


def _first_deliveries(rows: DataFrame) -> DataFrame:
    here = Window.partitionBy(*_MESSAGE, "process").orderBy("index")
    return (
        _of_kind(rows, "deliver")
        .select(
            *_MESSAGE, "process", "index", "time",
            sf.col("group").alias("told_group"),
            sf.col("sender").alias("claimed"),
        )
        .repartition(*_MESSAGE)
        .withColumn("place", sf.row_number().over(here))
        .withColumn("repeated", sf.lead("index").over(here).isNotNull())
        .filter("place = 1")
        .drop("place")
    )  # fmt: skip
