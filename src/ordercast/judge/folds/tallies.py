"""How many rows of each sort a trace has: a small table that facts about it are made of.

Rows that are the same but for message, index and time are one row here. A tally may be spread over
several rows, so the rows of a trace themselves are a table of tallies, too.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

MANY = ("run", "process", "group", "kind")
DECLARED = ("order", "protocol", "scope", "members", "note")  # null in nearly all rows
_TOLD = ("count", "timed", "first", "last")
COLUMNS = (*MANY, *DECLARED, *_TOLD)


def tallied(events: pa.Table) -> pa.Table:
    """The same for a table in memory; rows that declare something stay one by one."""
    lost = pc.equal(events["kind"], "lost")
    note = pc.if_else(lost, events["note"], pa.scalar(None, pa.string()))
    events = events.set_column(events.column_names.index("note"), "note", note)
    ones = pa.array(np.ones(events.num_rows, np.int64))
    timed = pc.is_valid(events["time"]).cast(pa.int64())
    time = events["time"]
    names = (*MANY, *DECLARED)
    rows = pa.table([*(events[name] for name in names), ones, timed, time, time], names=COLUMNS)
    declares = pc.is_valid(rows["note"])
    for name in DECLARED[:-1]:
        declares = pc.or_(declares, pc.is_valid(rows[name]))
    few, many = rows.filter(declares), rows.filter(pc.invert(declares))
    put_together = many.group_by(list(MANY)).aggregate(
        [("count", "sum"), ("timed", "sum"), ("first", "min"), ("last", "max")]
    )
    return pa.concat_tables(
        [few, put_together.rename_columns([*MANY, *_TOLD])], promote_options="default"
    ).select(COLUMNS)
