"""The canonical columns of a trace as Spark and its tasks see them, with plain types."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from ordercast.errors import TraceError
from ordercast.trace.schema import COLUMNS, REQUIRED_COLUMNS

_LONGS = ("index", "view", "time", "seq", "size", "overhead")


def _arrow_type(column: str) -> pa.DataType:
    if column in _LONGS:
        return pa.int64()
    return pa.list_(pa.string()) if column == "members" else pa.string()


def _spark_type(column: str) -> str:
    if column in _LONGS:
        return "long"
    return "array<string>" if column == "members" else "string"


ARROW_SCHEMA = pa.schema([(column, _arrow_type(column)) for column in COLUMNS])
SPARK_SCHEMA = ", ".join(f"`{column}` {_spark_type(column)}" for column in COLUMNS)


def canonical(events: DataFrame) -> DataFrame:
    """All columns of the schema, in its order: absent ones as nulls, an absent run as "".

    So a DataFrame with the five required columns can be judged. `time` may be a timestamp.
    """
    for column in REQUIRED_COLUMNS:
        if column not in events.columns:
            have = ", ".join(events.columns)
            raise TraceError("the DataFrame", None, column, f"no such column; it has {have}")
    return events.select(*(_canonical(events, column) for column in COLUMNS))


def _canonical(events: DataFrame, name: str) -> Column:
    if name not in events.columns:
        column = sf.lit(None)
    elif name == "time" and events.schema[name].dataType.typeName().startswith("timestamp"):
        column = sf.unix_micros(sf.col(name).cast("timestamp")) * 1000
    else:
        column = sf.col(name)
    column = column.cast(_spark_type(name))
    return (sf.coalesce(column, sf.lit("")) if name == "run" else column).alias(name)
