"""Columns of Python values as an Arrow table. Needs pyarrow."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from ordercast.trace.mapping.apply import Columns
from ordercast.trace.schema import COLUMNS
from ordercast.trace.tables import TABLE_SCHEMA

Table = Any  # pyarrow.Table; pyarrow ships no type information


def column_table(columns: Columns) -> Table:
    """The columns with the types of TABLE_SCHEMA."""
    return pa.table([_array(name, columns[name]) for name in COLUMNS], schema=TABLE_SCHEMA)


def _array(name: str, values: list[Any]) -> Any:
    wanted = TABLE_SCHEMA.field(name).type
    if pa.types.is_dictionary(wanted):
        return pa.array(values, pa.string()).dictionary_encode()
    return pa.array(values, wanted)
