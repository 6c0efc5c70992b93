"""The canonical columns of a trace as Spark and its tasks see them, with plain types."""

from __future__ import annotations

import pyarrow as pa

from ordercast.trace.schema import COLUMNS

_LONGS = ("index", "view", "time", "seq", "size", "overhead")


def _arrow_type(column: str) -> pa.DataType:
    if column in _LONGS:
        return pa.int64()
    return pa.list_(pa.string()) if column == "members" else pa.string()


def spark_type(column: str) -> str:
    if column in _LONGS:
        return "long"
    return "array<string>" if column == "members" else "string"


ARROW_SCHEMA = pa.schema([(column, _arrow_type(column)) for column in COLUMNS])
SPARK_SCHEMA = ", ".join(f"`{column}` {spark_type(column)}" for column in COLUMNS)
