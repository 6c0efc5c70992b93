"""Traces and verdicts as tables of Parquet files, kept up to date run by run: docs/TABLES.md."""

from ordercast.pipeline.tables.files import read_table
from ordercast.pipeline.tables.schema import TABLES
from ordercast.pipeline.tables.write import Summary, write_tables

__all__ = ["TABLES", "Summary", "read_table", "write_tables"]
