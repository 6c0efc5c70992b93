"""From paths to an outcome: read, verify, compare with what is expected, measure.

The verdict table is on the whole trace. What a trace declares for some of its groups only is
judged on the sub-trace of those groups, in a table of its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Row, SparkSession

from ordercast.errors import TraceError
from ordercast.pipeline.columns import canonical
from ordercast.pipeline.domains import Domain
from ordercast.pipeline.expectations import ALWAYS, expected_properties, promised
from ordercast.pipeline.laid_out import runs_of_files
from ordercast.pipeline.measured import Measured, measured, measured_here
from ordercast.pipeline.outcome import Expectation, Outcome, RunOutcome, Table
from ordercast.pipeline.read import (
    SMALL_BYTES,
    find_files,
    read_checked,
    read_here,
    read_traces,
    total_bytes,
)
from ordercast.pipeline.spark.session import local_session
from ordercast.pipeline.spark.trouble import told_plainly
from ordercast.pipeline.verify import verify_promises, verify_runs, verify_table
from ordercast.trace.mapping import LogMapping
from ordercast.trace.mapping.reading import log_note
from ordercast.trace.schema import PROPERTIES, Violation

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
    with told_plainly():
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


def outcome_of(
    verdicts: Iterable[Row], figures: Mapping[str, Measured], expected: Sequence[str]
) -> Outcome:
    """What is to be said of all runs; `figures` is what was measured of each."""
    runs = []
    for run, tables in sorted(_tables(verdicts).items()):
        table = tables[None]
        domains = sorted(domain for domain in tables if domain is not None)
        own = {d: tables[d] for d in domains if not d.everything}
        runs.append(
            RunOutcome(
                run=run,
                table=table,
                domains=tuple(own.items()),
                expected=tuple(_expectations(table, domains, own, expected)),
                facts=figures[run].facts,
                groups=figures[run].groups,
                figures=figures[run].figures,
            )
        )
    return Outcome(tuple(runs))


def _tables(verdicts: Iterable[Row]) -> dict[str, dict[Domain | None, Table]]:
    """By run: the verdict table of the whole (None), and that of each domain that it declares."""
    rows: dict[str, dict[Domain | None, dict[str, Row]]] = {}
    for row in verdicts:
        own = rows.setdefault(row["run"], {}).setdefault(_domain(row), {})
        own[row["property"]] = row
    return {
        run: {domain: _table([one[name] for name in PROPERTIES]) for domain, one in several.items()}
        for run, several in rows.items()
    }


def _domain(row: Row) -> Domain | None:
    promise = row["promise"]
    if promise is None:
        return None
    return Domain(
        row["run"],
        promise["order"],
        promise["protocol"],
        promise["scope"],
        tuple(promise["groups"]),
        promise["everything"],
    )


def _table(rows: Sequence[Row]) -> Table:
    return Table(
        verdicts={row["property"]: row["verdict"] for row in rows},
        violations=tuple(
            Violation(row["property"], one["sentence"], json.loads(one["witness"]))
            for row in rows
            for one in row["evidence"]
        ),
        counts={row["property"]: row["violations"] for row in rows},
        doubts={row["property"]: tuple(row["reasons"]) for row in rows},
    )


def _expectations(
    table: Table, promises: Sequence[Domain], parts: dict[Domain, Table], asked: Sequence[str]
) -> Iterable[Expectation]:
    """What was asked for; else what every run must keep and what the trace declares."""
    if asked:
        yield from (Expectation(name, table.verdicts[name], "asked for") for name in asked)
        return
    yield from (Expectation(name, table.verdicts[name], "always expected") for name in ALWAYS)
    for domain in promises:
        because = f"declared: {domain.name}"
        own = parts.get(domain)
        names = promised(domain.order, domain.scope)
        if not names:  # an order that we do not know cannot be checked, and that is said
            yield Expectation(domain.order, "n/a", because)
        for name in names:
            verdicts = (own or table).verdicts
            yield Expectation(name, verdicts[name], because, domain if own else None)
