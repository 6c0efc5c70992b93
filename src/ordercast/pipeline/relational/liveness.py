"""validity, agreement, agreement.uniform: what is owed is counted against what was delivered."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from ordercast.pipeline.relational.debtors import delivering, may_owe, owes
from ordercast.pipeline.relational.findings import finding, found
from ordercast.pipeline.relational.tally import CLASS, CUT, ENDED


def sent_by_members(sent: DataFrame, tally: DataFrame, rare: DataFrame) -> DataFrame:
    """The sends whose sender stays a member to the end, counted by group and process."""
    settled = delivering(tally, rare).withColumn("delivers", sf.lit(True))
    is_member = (sf.col("standing") == "bound") | (
        (sf.col("standing") == "unsettled") & sf.coalesce("delivers", sf.lit(False))
    )
    return (
        sent.join(sf.broadcast(settled), on=["run", "group", "process"], how="left")
        .filter(is_member)
        .select("run", "group", "process", "sends")
    )


def validity_of_members(
    sent: DataFrame, tally: DataFrame, rare: DataFrame, processes: DataFrame
) -> DataFrame:
    """Whoever stays a member delivers what it sent."""
    own = tally.groupBy("run", "group", "process").agg(sf.sum("own").alias("own"))
    missing = sf.col("sends") - sf.coalesce("own", sf.lit(0))
    short = (
        sent_by_members(sent, tally, rare)
        .join(sf.broadcast(own), on=["run", "group", "process"], how="left")
        .join(sf.broadcast(processes), on=["run", "process"], how="left")
    )
    certain = sf.col("ended") & ~sf.col("lost")
    return found(
        short,
        finding(
            "validity",
            violations=sf.when(certain, missing).otherwise(0),
            doubts=sf.when(certain, 0).otherwise(missing),
        ),
    )


def agreement(tally: DataFrame, debtors: DataFrame) -> DataFrame:
    """What a process that did not crash delivered, every such member that owes it delivers.

    agreement.uniform: the same for what any process delivered.
    """
    plain = sf.col("trigger") >= CUT
    believed, surely = sf.col("believed"), sf.col("trigger") >= ENDED
    return found(
        _missing(tally, debtors),
        _judged("agreement", counts=plain, certain=believed & surely),
        _judged("agreement.uniform", counts=sf.lit(True), certain=believed),
    )


def _missing(tally: DataFrame, debtors: DataFrame) -> DataFrame:
    """Per class and debtor, how many messages of the class it has not delivered."""
    of_class = tally.groupBy(*CLASS).agg(sf.sum("messages").alias("messages"))
    delivered = tally.groupBy(*CLASS, "process").agg(sf.sum("copies").alias("copies"))
    owed = of_class.withColumnRenamed("view", "message_view").join(
        sf.broadcast(debtors), on=["run", "group"], how="inner"
    )
    known = delivered.withColumnsRenamed({name: f"its_{name}" for name in (*CLASS, "process")})
    pairs = [("message_view", "its_view")] + [
        (name, f"its_{name}") for name in (*CLASS, "process") if name != "view"
    ]
    same = [sf.col(here).eqNullSafe(sf.col(there)) for here, there in pairs]
    return owed.join(sf.broadcast(known), on=same, how="left").select(
        "run", "trigger", "believed",
        (sf.col("messages") - sf.coalesce("copies", sf.lit(0))).alias("missing"),
        owes().alias("owes"),
        (may_owe() & sf.col("sent")).alias("may_owe"),
    )  # fmt: skip


def _judged(name: str, *, counts: Column, certain: Column) -> Column:
    def where(condition: Column) -> Column:
        return sf.when(counts & condition, sf.col("missing")).otherwise(0)

    owed, perhaps = sf.col("owes"), sf.col("may_owe")
    return finding(
        name,
        violations=where(owed & certain),
        doubts=where(owed & ~certain),
        undecided=where(perhaps & certain),
        unsure=where(perhaps & ~certain),
    )
