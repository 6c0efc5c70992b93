"""Parquet with other column names: only the columns that the mapping speaks of are read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ordercast.errors import TraceError
from ordercast.trace.mapping.fields import Record


def parquet_names(file: Path) -> list[str]:
    """The columns that a file has."""
    try:
        with pq.ParquetFile(file) as parquet:
            names: list[str] = parquet.schema_arrow.names
            return names
    except (pa.ArrowException, OSError) as reason:
        raise TraceError(file, None, None, f"not readable as Parquet: {reason}") from reason


def parquet_records(file: Path, names: list[str], batch_rows: int) -> Iterator[list[Record]]:
    """The rows of these columns."""
    with pq.ParquetFile(file) as parquet:
        for batch in parquet.iter_batches(batch_rows, columns=names):
            columns = [_values(batch.column(name)) for name in names]
            yield [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _values(column: Any) -> list[Any]:
    """Python values; a timestamp as an ISO text, which keeps its nanoseconds."""
    if pa.types.is_timestamp(column.type):
        column = pc.cast(column, pa.string())
    values: list[Any] = column.to_pylist()
    return values
