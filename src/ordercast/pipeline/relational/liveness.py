"""validity, agreement, agreement.uniform: what is owed is counted against what was delivered."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from ordercast.pipeline.relational.debtors import delivering, may_owe, owes
from ordercast.pipeline.relational.findings import finding
from ordercast.pipeline.relational.tally import CLASS, CUT, ENDED


def sent_by_members(sent: DataFrame, tally: DataFrame, rare: DataFrame) -> DataFrame:
    """The sends whose sender stays a member to the end, counted by group and process."""
    settled = delivering(tally, rare).withColumn("delivers", sf.lit(True))
    is_member = (sf.col("standing") == "bound") | (
        (sf.col("standing") == "unsettled") & sf.coalesce("delivers", sf.lit(False))
    )
    return (
        sent.join(settled, on=["run", "group", "process"], how="left")
        .filter(is_member)
        .select("run", "group", "process", "sends")
    )


def validity_of_members(
    sent: DataFrame, tally: DataFrame, rare: DataFrame, processes: DataFrame
) -> list[DataFrame]:
    """Whoever stays a member delivers what it sent."""
    own = tally.groupBy("run", "group", "process").agg(sf.sum("own").alias("own"))
    missing = sf.col("sends") - sf.coalesce("own", sf.lit(0))
    short = (
        sent_by_members(sent, tally, rare)
        .join(own, on=["run", "group", "process"], how="left")
        .join(processes, on=["run", "process"], how="left")
    )
    certain = sf.col("ended") & ~sf.col("lost")
    return [
        finding(
            short, "validity",
            violations=sf.when(certain, missing).otherwise(0),
            doubts=sf.when(certain, 0).otherwise(missing),
        )
    ]  # fmt: skip


def agreement(tally: DataFrame, debtors: DataFrame) -> list[DataFrame]:
    """What a process that did not crash delivered, every such member that owes it delivers."""
    plain = _missing(tally, debtors).filter(sf.col("trigger") >= CUT)
    return [_judged(plain, "agreement", believed_from=ENDED)]


def agreement_uniform(tally: DataFrame, debtors: DataFrame) -> list[DataFrame]:
    """The same for what any process delivered."""
    return [_judged(_missing(tally, debtors), "agreement.uniform", believed_from=0)]


def _missing(tally: DataFrame, debtors: DataFrame) -> DataFrame:
    """Per class and debtor, how many messages of the class it has not delivered."""
    of_class = tally.groupBy(*CLASS).agg(sf.sum("messages").alias("messages"))
    delivered = tally.groupBy(*CLASS, "process").agg(sf.sum("copies").alias("copies"))
    owed = of_class.withColumnRenamed("view", "message_view").join(
        debtors, on=["run", "group"], how="inner"
    )
    known = delivered.withColumnsRenamed({name: f"its_{name}" for name in (*CLASS, "process")})
    pairs = [("message_view", "its_view")] + [
        (name, f"its_{name}") for name in (*CLASS, "process") if name != "view"
    ]
    same = [sf.col(here).eqNullSafe(sf.col(there)) for here, there in pairs]
    return owed.join(known, on=same, how="left").select(
        "run", "trigger", "believed",
        (sf.col("messages") - sf.coalesce("copies", sf.lit(0))).alias("missing"),
        owes().alias("owes"),
        (may_owe() & sf.col("sent")).alias("may_owe"),
    )  # fmt: skip


def _judged(missing: DataFrame, name: str, *, believed_from: int) -> DataFrame:
    certain = sf.col("believed") & (sf.col("trigger") >= believed_from)
    count = sf.col("missing")
    return finding(
        missing, name,
        violations=sf.when(sf.col("owes") & certain, count).otherwise(0),
        doubts=sf.when(sf.col("owes") & ~certain, count).otherwise(0),
        undecided=sf.when(sf.col("may_owe") & certain, count).otherwise(0),
        unsure=sf.when(sf.col("may_owe") & ~certain, count).otherwise(0),
    )  # fmt: skip
