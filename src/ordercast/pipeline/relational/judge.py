"""All relational properties of every run."""

from __future__ import annotations

from pyspark.sql import DataFrame

from ordercast.pipeline.relational import integrity, liveness, view_checks
from ordercast.pipeline.relational.debtors import stayers
from ordercast.pipeline.relational.facts import (
    kinds_of_logs,
    kinds_of_runs,
    processes,
    rare_rows,
    told,
)
from ordercast.pipeline.relational.findings import verdicts
from ordercast.pipeline.relational.membership import stretches
from ordercast.pipeline.relational.outsiders import outsiders, requests, validity_of_outsiders
from ordercast.pipeline.relational.tally import copies, sends, sends_of_processes, tally


def relational(events: DataFrame, *, quiescent: bool = False) -> DataFrame:
    """One row per run and property of `RELATIONAL`: run, property, verdict, violations, doubts.

    The verdict is null where folds cannot tell. The events are folded at once, by Spark jobs that
    this call starts; what it returns is small. `quiescent` pretends that every cut log has `end`.
    """
    rows = told(events)
    rare = _kept(rare_rows(rows))
    kinds = _kept(kinds_of_logs(rows))
    logs = _kept(processes(kinds, rare, quiescent=quiescent))
    life = _kept(stretches(rare))
    all_sends = sends(rows, life, logs)
    sent = _kept(sends_of_processes(all_sends))
    counted = _kept(tally(copies(rows, all_sends, life, logs)))
    order = _kept(integrity.log_order(rows))
    debtors = _kept(stayers(life, counted, rare, logs))
    askers = _kept(outsiders(sent, counted, rare, logs))
    asked = _kept(requests(askers, rows, life, logs, debtors))
    said = [
        integrity.in_logs(order),
        integrity.in_sends(sent),
        integrity.in_deliveries(counted),
        integrity.never_sent(counted, logs),
        integrity.by_strangers(counted, rare),
        liveness.validity_of_members(sent, counted, rare, logs),
        validity_of_outsiders(asked, debtors),
        liveness.agreement(counted, debtors),
        view_checks.views(rare),
        view_checks.vsync(rare, counted, logs),
    ]
    unspecified = (
        order.filter("same_index > 0").select("run")
        .unionByName(sent.filter("contested > 0").select("run"))
        .unionByName(logs.filter("contradictory").select("run"))
    )  # fmt: skip
    return verdicts(said, kinds_of_runs(kinds), unspecified)


def _kept(small: DataFrame) -> DataFrame:
    """Worked out once, for the several checks that read it."""
    return small.localCheckpoint()
