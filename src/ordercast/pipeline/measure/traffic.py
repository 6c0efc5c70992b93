"""What went on below the application, from the rows of the kinds for statistics.

A recorder writes one row per message. A packet, or a copy sent again, with n messages of one sender
in it is therefore n rows: of one process, at one time, with one note, numbered on and on. They are
counted as one here. Where message ids do not end in a number, as ours do, each row counts. Header
bytes are shared out over the rows in the same way, and put together again here.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

COUNTED = {  # kind: the metric that counts it
    "receive": "packets_received",
    "retransmit": "retransmissions",
    "nack": "nacks",
    "null": "nulls",
    "forward": "forwards",
    "drop": "drops",
    "ack": "acks",
}
PACKET_HEADER = "packet_header"  # bytes of a packet that are no body
_NUMBER = r"/(\d{1,18})$"
_PLACE = ("run", "group", "process", "view")


def traffic(events: DataFrame) -> DataFrame:
    """One row per run, group, process, view and metric: how many. Rows that hold are no traffic.

    The header bytes of packets received are a histogram: one row for each size `at`, with the
    `total`, `least` and `most` of the sizes that it stands for.
    """
    number = sf.nullif(sf.regexp_extract("message", _NUMBER, 1), sf.lit("")).cast("long")
    rows = events.where(sf.col("kind").isin(*COUNTED)).select(
        *_PLACE, "index", "kind", "time", "sender", "note", "overhead",
        (sf.col("index") - number).alias("shift"),
    )  # fmt: skip
    once = rows.groupBy(
        *_PLACE, "kind", "time", "sender", "note",
        sf.coalesce("shift", "index"), sf.col("shift").isNull(),
    ).agg(sf.sum("overhead").alias("overhead"))  # fmt: skip
    return _counts(once).unionByName(_headers(once), allowMissingColumns=True)


def _counts(once: DataFrame) -> DataFrame:
    metric = sf.create_map(*(sf.lit(text) for pair in COUNTED.items() for text in pair))
    counted = once.groupBy(*_PLACE, "kind").agg(sf.count("*").alias("count"))
    return counted.select(*_PLACE, metric[sf.col("kind")].alias("metric"), "count")


def _headers(once: DataFrame) -> DataFrame:
    known = once.where("kind = 'receive' and overhead is not null")
    bars = known.groupBy(*_PLACE, _rounded(sf.col("overhead")).alias("at")).agg(
        sf.count("*").alias("count"),
        sf.sum("overhead").alias("total"),
        sf.min("overhead").alias("least"),
        sf.max("overhead").alias("most"),
    )
    return bars.select(
        *_PLACE, sf.lit(PACKET_HEADER).alias("metric"), "count", "at", "total", "least", "most"
    )


def _rounded(size: Column) -> Column:
    """To three digits, as everywhere in histograms."""
    step = sf.pow(sf.lit(10), sf.greatest(sf.floor(sf.log10(size)) - 2, sf.lit(0)))
    return (sf.round(size / step) * step).cast("long")
