"""The table `clean`: one log per process, in order, that the verifier reads without a shuffle."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from ordercast.trace.expand import CRASH_NOTE_INDEX
from ordercast.trace.schema import COLUMNS

_LOG = ["run", "process"]
_COPY = ["run", "process", "message"]


def clean(recorded: DataFrame) -> DataFrame:
    """The events in canonical columns, crash notes settled, and whether a delivery is a repeat."""
    return with_repeats(settled(recorded.select(*COLUMNS)))


def settled(events: DataFrame) -> DataFrame:
    """A crash that others noted becomes the last event of the log, if that has no end of its own.

    Several may have noted it: the earliest note counts.
    """
    noted = (sf.col("kind") == "crash") & sf.col("index").eqNullSafe(CRASH_NOTE_INDEX)
    own = events.where(~noted)
    logs = own.groupBy(*_LOG).agg(
        sf.max("index").alias("last"),
        sf.max(sf.col("kind").isin("crash", "end")).alias("closed"),
    )
    earliest = sf.min_by(
        sf.struct(*COLUMNS),
        sf.struct(sf.coalesce("time", sf.lit(0)), sf.coalesce("note", sf.lit(""))),
    )
    notes = events.where(noted).groupBy(*_LOG).agg(earliest.alias("first"))
    crashes = (
        notes.join(logs, _LOG, how="left")
        .where(~sf.coalesce("closed", sf.lit(False)))
        .select("first.*", "last")
        .withColumn("index", sf.coalesce("last", sf.lit(0)) + 1)
    )
    return own.unionByName(crashes.select(*COLUMNS))


def with_repeats(events: DataFrame) -> DataFrame:
    """Mark deliveries of what the process had delivered before. They are few."""
    repeated = (
        events.where("kind = 'deliver'")
        .groupBy(*_COPY)
        .agg(sf.min("index").alias("first"), sf.count("*").alias("times"))
        .where("times > 1")
        .select(*_COPY, "first")
    )
    later = (sf.col("kind") == "deliver") & (sf.col("index") > sf.col("first"))
    return events.join(repeated, _COPY, how="left").select(
        *COLUMNS, sf.coalesce(later, sf.lit(False)).alias("repeat")
    )
