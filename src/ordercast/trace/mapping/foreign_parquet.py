"""Parquet with other column names: only the columns that the mapping speaks of are read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ordercast.errors import TraceError


def parquet_names(file: Path) -> list[str]:
    """The columns that a file has."""
    try:
        with pq.ParquetFile(file) as parquet:
            names: list[str] = parquet.schema_arrow.names
            return names
    except (pa.ArrowException, OSError) as reason:
        raise TraceError(file, None, None, f"not readable as Parquet: {reason}") from reason


def parquet_columns(
    file: Path, names: list[str], batch_rows: int
) -> Iterator[tuple[dict[str, list[Any]], int]]:
    """These columns, some rows at a time, and how many rows."""
    with pq.ParquetFile(file) as parquet:
        for batch in parquet.iter_batches(batch_rows, columns=names):
            yield {name: _values(batch.column(name)) for name in names}, batch.num_rows


def _values(column: Any) -> list[Any]:
    """Python values; a timestamp as an ISO text, which keeps its nanoseconds."""
    if pa.types.is_timestamp(column.type):
        column = pc.cast(column, pa.string())
    values: list[Any] = column.to_pylist()
    return values
