"""The files of a table: FOLDER/TABLE/run=NAME/*.parquet, as Spark names and reads them.

Spark escapes a run's name for its folder, and calls that of the empty name NO_RUN_FOLDER. It would
read the run "007" as the number 7 if the schema were not given.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from ordercast.errors import TraceError
from ordercast.pipeline.tables.manifest import load_manifest
from ordercast.pipeline.tables.schema import TABLES, Table
from ordercast.trace.layout import NO_RUN_FOLDER, run_of_folder

LONGEST_NAME = 240  # bytes of a run's name, escaped: file systems allow 255 with "run="


def read_table(spark: SparkSession, folder: str | Path, name: str) -> DataFrame:
    """One table, of all runs that are finished. Raises `ValueError` for an unknown name."""
    if name not in TABLES:
        raise ValueError(f"no table {name!r}; there are {', '.join(TABLES)}")
    folder = Path(folder).absolute()
    if not (folder / name).is_dir():
        raise TraceError(folder, None, None, f"no table {name!r} here; write_tables makes it")
    finished = load_manifest(folder).runs
    unfinished = [run for run, _ in run_folders(folder, name) if run not in finished]
    rows = _rows(spark, folder, TABLES[name])
    return rows.where(~sf.col("run").isin(unfinished)) if unfinished else rows


def read_runs(spark: SparkSession, folder: Path, table: Table, runs: Collection[str]) -> DataFrame:
    """The rows of these runs, finished or not."""
    return _rows(spark, folder, table).where(sf.col("run").isin(list(runs)))


def _rows(spark: SparkSession, folder: Path, table: Table) -> DataFrame:
    rows = spark.read.schema(table.schema).parquet(str(folder / table.name))
    named = rows.withColumn("run", sf.coalesce("run", sf.lit("")))
    return named.select(*(column.name for column in table.columns))


def append(rows: DataFrame, folder: Path, table: Table) -> None:
    """Write the rows of runs that the table does not hold.

    Few files: the rows of a run come together, those of a very large run in a few parts.
    """
    wanted = rows.select(*(column.name for column in table.columns))
    if table.order:
        by_run = wanted.hint("rebalance", sf.col("run"))
        wanted = by_run.sortWithinPartitions("run", *table.order)
    writer = wanted.write.mode("append").partitionBy("run").option("compression", "zstd")
    writer.parquet(str(folder / table.name))


def remove_runs(folder: Path, runs: Collection[str]) -> None:
    """Take the rows of these runs out of every table."""
    for name in TABLES:
        for run, path in run_folders(folder, name):
            if run in runs:
                shutil.rmtree(path)


def whole_runs(folder: Path) -> set[str]:
    """The runs that have a folder wherever every run has rows."""
    tables = ("recorded", "clean", "verdicts", "figures")
    return set.intersection(*({run for run, _ in run_folders(folder, name)} for name in tables))


def run_files(folder: Path, name: str, runs: Collection[str]) -> list[Path]:
    """The files of these runs in one table."""
    return [
        file
        for run, path in run_folders(folder, name)
        if run in runs
        for file in sorted(path.glob("*.parquet"))
    ]


def run_folders(folder: Path, name: str) -> Iterator[tuple[str, Path]]:
    """The runs of one table, and where each lies."""
    for path in sorted((folder / name).glob("run=*")):
        yield run_of_folder(path), path


def check_names(runs: Iterable[str]) -> None:
    """Raise `ValueError` for a run whose name cannot be that of a folder."""
    for run in runs:
        if run == NO_RUN_FOLDER or "\0" in run:
            raise ValueError(f"a run called {run!r} cannot have a folder in the tables: rename it")
        size = sum(_escaped_bytes(letter) for letter in run)
        if size > LONGEST_NAME:
            raise ValueError(
                f"the run {run[:40]!r}... has a name of {size} bytes when escaped for a folder; "
                f"the tables allow {LONGEST_NAME}: give it a shorter one"
            )


def _escaped_bytes(letter: str) -> int:
    """How long a letter can become in the name of a folder."""
    if letter.isascii():
        return 1 if letter.isalnum() or letter in "-_. " else 3
    return len(letter.encode("utf-8", "surrogatepass"))
