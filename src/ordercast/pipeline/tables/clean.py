"""The table `clean`: one log per process, in order, that the verifier reads without a shuffle."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from ordercast.pipeline.crash_notes import settled
from ordercast.trace.schema import COLUMNS

_COPY = ["run", "process", "message"]


def clean(recorded: DataFrame) -> DataFrame:
    """The events in canonical columns, crash notes settled, and whether a delivery is a repeat."""
    return with_repeats(settled(recorded.select(*COLUMNS)))


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
