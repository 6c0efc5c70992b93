"""From the rows of the measuring stages to plain data, one record per run."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame

from ordercast.pipeline import measure
from ordercast.pipeline.figures import Figures
from ordercast.pipeline.outcome import GroupFacts, Latency, RunFacts


@dataclass(frozen=True)
class Measured:
    """What is known of one run beside its verdicts."""

    facts: RunFacts
    groups: tuple[GroupFacts, ...]
    latencies: tuple[Latency, ...]
    figures: Figures


def measured(events: DataFrame) -> dict[str, Measured]:
    """All that is measured, by run, for events with the columns of the schema."""
    groups, latencies = _groups(events), _latencies(events)
    return {
        run: Measured(
            facts, tuple(groups.get(run, ())), tuple(latencies.get(run, ())), Figures()
        )
        for run, facts in _facts(events).items()
    }  # fmt: skip


def _facts(events: DataFrame) -> dict[str, RunFacts]:
    return {
        row["run"]: RunFacts(
            events=row["events"],
            sends=row["sends"],
            deliveries=row["deliveries"],
            views=row["views"],
            processes=row["processes"] or 0,
            crashed=tuple(sorted(row["crashed"] or ())),
            cut=row["cut"] or 0,
            lossy=row["lossy"] or 0,
        )
        for row in measure.facts(events).collect()
    }


def _groups(events: DataFrame) -> dict[str, list[GroupFacts]]:
    found: dict[str, list[GroupFacts]] = {}
    for row in measure.groups(events).orderBy("run", "group").collect():
        found.setdefault(row["run"], []).append(
            GroupFacts(
                name=row["group"],
                order=row["order"],
                protocol=row["protocol"],
                scope=row["scope"],
                members=tuple(row["members"]),
                sends=row["sends"],
                deliveries=row["deliveries"],
            )
        )
    return found


def _latencies(events: DataFrame) -> dict[str, list[Latency]]:
    found: dict[str, list[Latency]] = {}
    for row in measure.latencies(events).orderBy("run", "group").collect():
        points = tuple(zip(measure.LATENCY_PERCENTS, row["percentiles"], strict=True))
        found.setdefault(row["run"], []).append(Latency(row["group"], row["deliveries"], points))
    return found
