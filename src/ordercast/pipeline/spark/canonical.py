"""Any DataFrame of events as one with the canonical columns."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from ordercast.errors import TraceError
from ordercast.judge.columns import spark_type
from ordercast.trace.schema import COLUMNS, REQUIRED_COLUMNS


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
    column = column.cast(spark_type(name))
    return (sf.coalesce(column, sf.lit("")) if name == "run" else column).alias(name)
