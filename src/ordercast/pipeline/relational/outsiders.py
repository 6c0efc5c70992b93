"""validity of a sender that is no member: some member that stays delivers its message.

Only the messages of outsiders are looked at, one by one. Most traces have few or none.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from ordercast.pipeline.relational.debtors import delivering, may_owe, owes
from ordercast.pipeline.relational.findings import finding
from ordercast.pipeline.relational.standing import at

_MESSAGE = ["hash", "run", "message"]
_REQUEST = ["run", "group", "message_view", "sender_ended", "served"]
NOT_SERVED, PERHAPS_SERVED, SERVED = 0, 1, 2


def requests(
    sends: DataFrame, tally: DataFrame, rare: DataFrame, processes: DataFrame
) -> DataFrame:
    """The messages that come from outside their group, by a sender that did not crash."""
    inside = delivering(tally, rare).select(
        "run", "group", sf.col("process").alias("sent_by"), sf.lit(True).alias("delivers")
    )
    ended = processes.select(
        "run", sf.col("process").alias("sent_by"), sf.col("ended").alias("sender_ended")
    )
    from_outside = (sf.col("standing") == "outside") | (
        (sf.col("standing") == "unsettled") & sf.col("delivers").isNull()
    )
    return (
        sends.filter(sf.col("standing").isin("outside", "unsettled"))
        .join(sf.broadcast(inside), on=["run", "group", "sent_by"], how="left")
        .filter(from_outside)
        .join(sf.broadcast(ended), on=["run", "sent_by"], how="left")
        .select(*_MESSAGE, "group", "sender_ended")
    )


def answers(asked: DataFrame, rows: DataFrame, life: DataFrame, debtors: DataFrame) -> DataFrame:
    """How many requests of each kind there are: their view, and whether a debtor served them."""
    heard = (
        rows.filter((sf.col("kind") == "deliver") & sf.col("message").isNotNull())
        .select("run", "message", "process", "index")
        .withColumn("hash", sf.xxhash64("run", "message"))
        .join(asked, on=_MESSAGE, how="inner")
        .groupBy(*_MESSAGE, "group", "process")
        .agg(sf.min("index").alias("index"))
    )
    lowest = sf.min("view").over(Window.partitionBy(*_MESSAGE))
    viewed = at(heard, life).select(*_MESSAGE, "group", "process", lowest.alias("message_view"))
    serves = (
        sf.when(sf.coalesce(owes(), sf.lit(False)), SERVED)
        .when(sf.coalesce(may_owe(), sf.lit(False)), PERHAPS_SERVED)
        .otherwise(NOT_SERVED)
    )
    served = (
        viewed.join(sf.broadcast(debtors), on=["run", "group", "process"], how="left")
        .groupBy(*_MESSAGE)
        .agg(sf.max(serves).alias("served"), sf.min("message_view").alias("message_view"))
    )
    return (
        asked.join(served, on=_MESSAGE, how="left")
        .withColumn("served", sf.coalesce("served", sf.lit(NOT_SERVED)))
        .groupBy(*_REQUEST)
        .agg(sf.count("*").alias("requests"))
    )


def validity_of_outsiders(answered: DataFrame, debtors: DataFrame) -> list[DataFrame]:
    """A request that is not served is violated if its sender and all debtors are believed."""
    open_ones = answered.filter(sf.col("served") != SERVED)
    counted = (
        open_ones.join(debtors, on=["run", "group"], how="inner")
        .groupBy(*_REQUEST, "requests")
        .agg(
            sf.count_if(owes()).alias("owing"),
            sf.count_if(may_owe()).alias("perhaps_owing"),
            sf.count_if(owes() & ~sf.col("believed")).alias("not_believed"),
        )
    )
    settled = sf.col("perhaps_owing") == 0
    missing = sf.when(settled & (sf.col("owing") > 0), sf.col("requests")).otherwise(0)
    certain = sf.col("sender_ended") & (sf.col("not_believed") == 0)
    return [
        finding(
            counted, "validity",
            violations=sf.when(certain, missing).otherwise(0),
            doubts=sf.when(certain, 0).otherwise(missing),
            undecided=sf.when(settled, 0).otherwise(sf.col("requests")),
        )
    ]  # fmt: skip
