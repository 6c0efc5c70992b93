"""Columns of Python values as an Arrow table. Needs pyarrow."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from ordercast.trace.mapping.apply import Events
from ordercast.trace.schema import COLUMNS
from ordercast.trace.tables import TABLE_SCHEMA

Table = Any  # pyarrow.Table; pyarrow ships no type information


def column_table(events: Events) -> Table:
    """The columns with the types of TABLE_SCHEMA."""
    count = len(events["kind"])
    arrays = [_array(name, events.get(name), count) for name in COLUMNS]
    return pa.table(arrays, schema=TABLE_SCHEMA)


def _array(name: str, values: list[Any] | None, count: int) -> Any:
    wanted = TABLE_SCHEMA.field(name).type
    if values is None:
        return pa.nulls(count, wanted)
    if pa.types.is_dictionary(wanted):
        return pa.array(values, pa.string()).dictionary_encode()
    return pa.array(values, wanted)
