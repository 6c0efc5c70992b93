"""From the rows of verdicts to an outcome: what was expected of each run, and what held.

The verdict table is on the whole trace. What a trace declares for some of its groups only is
judged on the sub-trace of those groups, in a table of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ordercast.judge.domains import Domain
from ordercast.judge.expectations import ALWAYS, promised
from ordercast.judge.measured import Measured
from ordercast.judge.outcome import Expectation, Outcome, RunOutcome, Table
from ordercast.trace.schema import PROPERTIES, Violation

Row = Any
"""One verdict, with the columns of `verdict_rows`: a row of Spark, or a dict."""


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
