"""From paths to an outcome, with Spark: read, verify, compare with what is expected, measure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from ordercast.errors import TraceError
from ordercast.judge.conclusion import outcome_of
from ordercast.judge.expectations import expected_properties
from ordercast.judge.files import find_files, read_here, total_bytes
from ordercast.judge.measured import measured_here
from ordercast.judge.outcome import Outcome
from ordercast.judge.run_files import runs_of_files
from ordercast.pipeline.measure.whole import measured
from ordercast.pipeline.read import SMALL_BYTES, read_checked, read_traces
from ordercast.pipeline.spark.canonical import canonical
from ordercast.pipeline.spark.failures import failures_explained
from ordercast.pipeline.spark.session import local_session
from ordercast.pipeline.verify import verify_promises, verify_runs, verify_table
from ordercast.trace.mapping import LogMapping
from ordercast.trace.mapping.reading import log_note

LARGE_BYTES = 64 * 1024 * 1024  # from here on Spark's slower start pays
DIRECT_BYTES = 4 * 1024 * 1024  # from here on it pays that tasks read the files themselves

Say = Callable[[str], None]


def judge_paths(
    paths: Sequence[str | Path],
    *,
    expect: Iterable[str] = (),
    quiescent: bool = False,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    mapping: LogMapping | None = None,
    say: Say = lambda step: None,
    note: Say = log_note,
) -> Outcome:
    """Judge the traces in `paths` on a session of our own; `say` is told each step.

    With a `mapping` they may be anybody's logs; `note` is told how many rows were left out.
    The session is on `master`, with the settings `conf` on top of those that fit there.

    Raises `TraceError` for input that cannot be read and `ValueError` for an unknown expectation;
    the latter, and a path that holds no trace, before Spark is started.
    """
    expected = expected_properties(expect)
    files = find_files(paths, mapping)
    size = total_bytes(files)
    say("starting Spark")
    spark = local_session(master or "local[*]", small=size <= LARGE_BYTES, conf=conf)
    with failures_explained():
        direct = mapping is None and size > DIRECT_BYTES
        runs = runs_of_files(files) if direct else None
        if size <= SMALL_BYTES:
            say("reading")
            table = read_here(files.values(), mapping=mapping, note=note)
            outcome = judge_table(spark, table, expected=expected, quiescent=quiescent, say=say)
        elif runs is None:
            say("reading")
            events = read_traces(spark, paths, mapping=mapping, note=note)
            outcome = judge_events(events, expected=expected, quiescent=quiescent, say=say)
        else:
            say("reading and verifying")
            verdicts = verify_runs(spark, runs, quiescent=quiescent).collect()
            say("measuring")
            outcome = outcome_of(verdicts, measured(read_checked(spark, files)), expected)
    if not outcome.runs:
        raise TraceError(", ".join(map(str, paths)), None, None, "there is not a single event")
    return outcome


def judge_table(
    spark: SparkSession,
    events: pa.Table,
    *,
    expected: Sequence[str] = (),
    quiescent: bool = False,
    say: Say = lambda step: None,
) -> Outcome:
    """The same for a small table with the columns of the schema: judged in one job."""
    say(f"verifying {_amount(events)}")
    verdicts = verify_table(spark, events, quiescent=quiescent).collect()
    say(f"measuring {_amount(events)}")
    figures = measured_here(events)
    return outcome_of(verdicts, figures, expected)


def _amount(events: pa.Table) -> str:
    runs = pc.count_distinct(events["run"]).as_py()
    return f"{events.num_rows:,} events of {runs:,} {'run' if runs == 1 else 'runs'}"


def judge_events(
    events: DataFrame,
    *,
    expected: Sequence[str] = (),
    quiescent: bool = False,
    say: Say = lambda step: None,
) -> Outcome:
    """The same for events at hand, on their own session; `expected` are property names."""
    events = canonical(events).cache()
    try:
        say("verifying")
        verdicts = verify_promises(events, quiescent=quiescent).collect()
        say("measuring")
        return outcome_of(verdicts, measured(events), expected)
    finally:
        events.unpersist()
