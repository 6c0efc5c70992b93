"""Crashes that others noted, settled by Spark: no task needs to hold a whole run for it.

A recording notes the crash of one process in the files of another. Such a note becomes the last
event of the log that it is about, if that has no end of its own.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from ordercast.judge.columns import ARROW_SCHEMA
from ordercast.trace.expand import CRASH_NOTE_INDEX
from ordercast.trace.schema import COLUMNS

_LOG = ["run", "process"]


def settled(events: DataFrame) -> DataFrame:
    """The events, in canonical columns, with crashes in the place of crash notes."""
    return without_notes(events).unionByName(noted_crashes(events))


def without_notes(events: DataFrame) -> DataFrame:
    """What processes say of themselves."""
    return events.where(~_noted()).select(*COLUMNS)


def noted_crashes(events: DataFrame) -> DataFrame:
    """The crashes that follow from the notes, each after the last index of its log.

    Several may have noted a crash: the earliest note counts.
    """
    logs = (
        events.where(~_noted())
        .groupBy(*_LOG)
        .agg(
            sf.max("index").alias("last"),
            sf.max(sf.col("kind").isin("crash", "end")).alias("closed"),
        )
    )
    earliest = sf.min_by(
        sf.struct(*COLUMNS),
        sf.struct(sf.coalesce("time", sf.lit(0)), sf.coalesce("note", sf.lit(""))),
    )
    notes = events.where(_noted()).groupBy(*_LOG).agg(earliest.alias("first"))
    return (
        notes.join(logs, _LOG, how="left")
        .where(~sf.coalesce("closed", sf.lit(False)))
        .select("first.*", "last")
        .withColumn("index", sf.coalesce("last", sf.lit(0)) + 1)
        .select(*COLUMNS)
    )


def _noted() -> Column:
    return (sf.col("kind") == "crash") & sf.col("index").eqNullSafe(CRASH_NOTE_INDEX)


def outline(events: pa.Table) -> pa.Table:
    """As few rows as `noted_crashes` needs: the notes, and the last row of each log and kind.

    Of the latter only run, process, kind and index are kept.
    """
    noted = _noted_rows(events)
    keys = [*_LOG, "kind"]
    last = events.filter(pc.invert(noted)).group_by(keys).aggregate([("index", "max")])
    last = last.rename_columns([*keys, "index"])
    return pa.concat_tables(
        [ARROW_SCHEMA.empty_table(), events.filter(noted), last], promote_options="default"
    )


def has_notes(events: pa.Table) -> bool:
    """Did anybody note the crash of another?"""
    return bool(pc.any(_noted_rows(events)).as_py())


def _noted_rows(events: pa.Table) -> pa.Array:
    noted = pc.and_(pc.equal(events["index"], CRASH_NOTE_INDEX), pc.equal(events["kind"], "crash"))
    return pc.fill_null(noted, False)
