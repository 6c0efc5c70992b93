"""How many rows of each sort a trace has: a small table that facts about it are made of.

Rows that are the same but for message, index and time are one row here. A tally may be spread over
several rows, so the rows of a trace themselves are a table of tallies, too.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

_MANY = ("run", "process", "group", "kind")
_DECLARED = ("order", "protocol", "scope", "members", "note")  # null in nearly all rows
_TOLD = ("count", "timed", "first", "last")
COLUMNS = (*_MANY, *_DECLARED, *_TOLD)


def tallies(events: DataFrame) -> DataFrame:
    """One row for rows that are alike: how many, how many with a time, the first and last of these.

    A note is kept of rows of kind `lost` only.
    """
    note = sf.when(sf.col("kind") == "lost", sf.col("note"))
    rows = events.select(*_MANY, *_DECLARED[:-1], note.alias("note"), "time")
    return rows.groupBy(*_MANY, *_DECLARED).agg(
        sf.count("*").alias("count"),
        sf.count("time").alias("timed"),
        sf.min("time").alias("first"),
        sf.max("time").alias("last"),
    )


def tallied(events: pa.Table) -> pa.Table:
    """The same for a table in memory; rows that declare something stay one by one."""
    lost = pc.equal(events["kind"], "lost")
    note = pc.if_else(lost, events["note"], pa.scalar(None, pa.string()))
    events = events.set_column(events.column_names.index("note"), "note", note)
    ones = pa.array(np.ones(events.num_rows, np.int64))
    timed = pc.is_valid(events["time"]).cast(pa.int64())
    time = events["time"]
    names = (*_MANY, *_DECLARED)
    rows = pa.table([*(events[name] for name in names), ones, timed, time, time], names=COLUMNS)
    declares = pc.is_valid(rows["note"])
    for name in _DECLARED[:-1]:
        declares = pc.or_(declares, pc.is_valid(rows[name]))
    few, many = rows.filter(declares), rows.filter(pc.invert(declares))
    put_together = many.group_by(list(_MANY)).aggregate(
        [("count", "sum"), ("timed", "sum"), ("first", "min"), ("last", "max")]
    )
    return pa.concat_tables(
        [few, put_together.rename_columns([*_MANY, *_TOLD])], promote_options="default"
    ).select(COLUMNS)
