"""validity of a sender that is no member: some member that stays delivers its message.

Only the messages of outsiders are looked at, one by one. Most traces have few or none.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from ordercast.pipeline.relational.debtors import delivering, may_owe, owes
from ordercast.pipeline.relational.findings import finding, found
from ordercast.pipeline.relational.membership import at
from ordercast.pipeline.relational.tally import sends

_MESSAGE = ["hash", "run", "message"]
_REQUEST = ["run", "group", "message_view", "sender_ended", "served"]
NOT_SERVED, PERHAPS_SERVED, SERVED = 0, 1, 2


def outsiders(
    sent: DataFrame, tally: DataFrame, rare: DataFrame, processes: DataFrame
) -> DataFrame:
    """Who sent to a group from outside and did not crash: run, group, sent_by, standing."""
    inside = delivering(tally, rare)
    asked = sent.filter(sf.col("standing") == "outside").unionByName(
        sent.filter(sf.col("standing") == "unsettled").join(
            sf.broadcast(inside), on=["run", "group", "process"], how="left_anti"
        )
    )
    ended = processes.select("run", "process", sf.col("ended").alias("sender_ended"))
    return asked.join(sf.broadcast(ended), on=["run", "process"], how="left").select(
        "run", "group", sf.col("process").alias("sent_by"), "standing", "sender_ended"
    )


def requests(
    askers: DataFrame, rows: DataFrame, life: DataFrame, processes: DataFrame, debtors: DataFrame
) -> DataFrame:
    """How many messages of outsiders there are, by view and by whether a debtor served them."""
    runs = askers.select("run").distinct()
    concerned = rows.join(sf.broadcast(runs), on=["run"], how="left_semi")
    asked = (
        sends(concerned, life, processes)
        .join(sf.broadcast(askers), on=["run", "group", "sent_by", "standing"], how="inner")
        .select(*_MESSAGE, "group", "sender_ended")
    )
    served = _served(_heard(asked, concerned, life), debtors)
    return (
        asked.join(served, on=_MESSAGE, how="left")
        .withColumn("served", sf.coalesce("served", sf.lit(NOT_SERVED)))
        .groupBy(*_REQUEST)
        .agg(sf.count("*").alias("requests"))
    )


def _heard(asked: DataFrame, rows: DataFrame, life: DataFrame) -> DataFrame:
    """Who delivered these messages, and the view that each of them counts for."""
    first = (
        rows.filter((sf.col("kind") == "deliver") & sf.col("message").isNotNull())
        .select(sf.xxhash64("run", "message").alias("hash"), "run", "message", "process", "index")
        .join(asked, on=_MESSAGE, how="inner")
        .groupBy(*_MESSAGE, "group", "process")
        .agg(sf.min("index").alias("index"))
    )
    lowest = sf.min("view").over(Window.partitionBy(*_MESSAGE))
    return at(first, life).select(*_MESSAGE, "group", "process", lowest.alias("message_view"))


def _served(heard: DataFrame, debtors: DataFrame) -> DataFrame:
    is_debtor = sf.col("viewed").isNotNull()
    serves = (
        sf.when(is_debtor & owes(), SERVED)
        .when(is_debtor & may_owe(), PERHAPS_SERVED)
        .otherwise(NOT_SERVED)
    )
    return (
        heard.join(sf.broadcast(debtors), on=["run", "group", "process"], how="left")
        .groupBy(*_MESSAGE)
        .agg(sf.max(serves).alias("served"), sf.min("message_view").alias("message_view"))
    )


def validity_of_outsiders(asked: DataFrame, debtors: DataFrame) -> DataFrame:
    """A request that is not served is violated if its sender and all debtors are believed."""
    counted = (
        asked.filter(sf.col("served") != SERVED)
        .join(sf.broadcast(debtors), on=["run", "group"], how="inner")
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
    return found(
        counted,
        finding(
            "validity",
            violations=sf.when(certain, missing).otherwise(0),
            doubts=sf.when(certain, 0).otherwise(missing),
            undecided=sf.when(settled, 0).otherwise(sf.col("requests")),
        ),
    )
