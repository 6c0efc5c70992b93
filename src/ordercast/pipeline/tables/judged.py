"""From paths to an outcome by way of tables: what is in them already is not judged again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
from pyspark.sql import SparkSession

from ordercast.errors import TraceError
from ordercast.judge.conclusion import outcome_of
from ordercast.judge.expectations import expected_properties
from ordercast.judge.files import find_files, total_bytes
from ordercast.judge.measured import Measured
from ordercast.judge.outcome import Outcome
from ordercast.pipeline.spark.failures import failures_explained
from ordercast.pipeline.spark.session import local_session
from ordercast.pipeline.tables.files import read_runs
from ordercast.pipeline.tables.manifest import check_folder
from ordercast.pipeline.tables.schema import TABLES
from ordercast.pipeline.tables.write import Summary, write_tables
from ordercast.pipeline.verdict import LARGE_BYTES, Say
from ordercast.trace.mapping import LogMapping
from ordercast.trace.mapping.reading import Note, log_note


def judge_with_tables(
    folder: str | Path,
    paths: Sequence[str | Path],
    *,
    expect: Iterable[str] = (),
    quiescent: bool = False,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    mapping: LogMapping | None = None,
    say: Say = lambda step: None,
    note: Note = log_note,
    told: Callable[[Summary], None] = lambda summary: None,
) -> Outcome:
    """What `verdict.judge_paths` gives, with the tables in `folder` brought up to date.

    The outcome is on all runs in `paths`, judged now or before; `told` hears which.
    """
    expected = expected_properties(expect)
    check_folder(Path(folder))
    small = total_bytes(find_files(paths, mapping)) <= LARGE_BYTES
    say("starting Spark")
    spark = local_session(master or "local[*]", small=small, conf=conf)
    with failures_explained():
        summary = write_tables(
            spark, paths, folder, quiescent=quiescent, mapping=mapping, say=say, note=note
        )
        if not summary.runs:
            raise TraceError(", ".join(map(str, paths)), None, None, "there is not a single event")
        told(summary)
        return outcome_of_tables(spark, Path(folder).absolute(), summary.runs, expected)


def outcome_of_tables(
    spark: SparkSession, folder: Path, runs: Sequence[str], expected: Sequence[str] = ()
) -> Outcome:
    """The outcome of runs that are in the tables; `expected` are property names."""
    verdicts = read_runs(spark, folder, TABLES["verdicts"], runs).collect()
    figures = read_runs(spark, folder, TABLES["figures"], runs).collect()
    measured = {row["run"]: msgspec.json.decode(row["figures"], type=Measured) for row in figures}
    return outcome_of(verdicts, measured, expected)
