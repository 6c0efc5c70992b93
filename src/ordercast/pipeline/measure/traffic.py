"""What went on below the application, from the rows of the kinds for statistics.

A recorder writes one row per message. A packet, or a copy sent again, with n messages of one sender
in it is therefore n rows: of one process, at one time, with one note, numbered on and on. They are
counted as one here. Where message ids do not end in a number, as ours do, each row counts.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

COUNTED = {  # kind: the metric that counts it
    "receive": "packets",
    "retransmit": "retransmissions",
    "nack": "nacks",
    "null": "nulls",
    "forward": "forwards",
    "drop": "drops",
    "ack": "acks",
}
_NUMBER = r"/(\d{1,18})$"


def traffic(events: DataFrame) -> DataFrame:
    """One row per run, group, process, view and metric: how many. Rows that hold are no traffic."""
    number = sf.nullif(sf.regexp_extract("message", _NUMBER, 1), sf.lit("")).cast("long")
    rows = events.where(sf.col("kind").isin(*COUNTED)).select(
        "run", "group", "process", "view", "index", "kind", "time", "sender", "note",
        (sf.col("index") - number).alias("shift"),
    )  # fmt: skip
    once = rows.groupBy(
        "run", "group", "process", "view", "kind", "time", "sender", "note",
        sf.coalesce("shift", "index"), sf.col("shift").isNull(),
    ).agg(sf.lit(1).alias("one"))  # fmt: skip
    metric = sf.create_map(*(sf.lit(text) for pair in COUNTED.items() for text in pair))
    return (
        once.groupBy("run", "group", "process", "view", "kind")
        .agg(sf.count("*").alias("count"))
        .select("run", "group", "process", "view", metric[sf.col("kind")].alias("metric"), "count")
    )
