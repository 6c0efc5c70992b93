"""From the rows of the measuring stages to plain data, one record per run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as sf

from ordercast.pipeline.figures import (
    Bucket,
    ClockSkew,
    Figures,
    GroupFigures,
    LossyLog,
    Spread,
    Throughput,
    TraceHealth,
)
from ordercast.pipeline.measure.clocks import clocks_folded, worst_clocks
from ordercast.pipeline.measure.deliveries import folded
from ordercast.pipeline.measure.facts import facts, groups
from ordercast.pipeline.measure.pace import pace
from ordercast.pipeline.measure.table import PERCENTS, levels
from ordercast.pipeline.measure.traffic import COUNTED, traffic
from ordercast.pipeline.outcome import GroupFacts, Latency, RunFacts

Metrics = Mapping[str, Row]
"""The rows of one group or run, by metric."""


@dataclass(frozen=True)
class Measured:
    """What is known of one run beside its verdicts."""

    facts: RunFacts
    groups: tuple[GroupFacts, ...]
    latencies: tuple[Latency, ...]
    figures: Figures


def measured(events: DataFrame) -> dict[str, Measured]:
    """All that is measured, by run, for events with the columns of the schema."""
    runs = {row["run"]: row for row in facts(events).collect()}
    declared = _by_run(groups(events).collect())
    table, skews = _folded(events, watched=any(row["watched"] for row in runs.values()))
    slices = _by_run(pace(events).collect())
    found = {}
    for run, row in runs.items():
        metrics = table.get(run, [])
        whole = {one["metric"]: one for one in metrics if one["per"] == "run"}
        own = sorted(declared.get(run, ()), key=lambda one: one["group"])
        protocols = {one["group"]: one["protocol"] for one in own}
        of_groups = tuple(_group_figures(metrics, protocols, watched=row["watched"] > 0))
        found[run] = Measured(
            _run_facts(row),
            tuple(_group_facts(own)),
            tuple(_latencies(of_groups)),
            Figures(
                groups=of_groups,
                throughput=_throughput(slices.get(run, [])),
                health=_health(row, whole, skews.get(run)),
                whole=_whole(whole, protocols.values(), watched=row["watched"] > 0),
            ),
        )  # fmt: skip
    return found


def _folded(events: DataFrame, *, watched: bool) -> tuple[dict[str, list[Row]], dict[str, Row]]:
    """The rows of the table of metrics for runs and groups, and the worst clocks, by run."""
    rows = folded(events).persist()
    try:
        every = rows.unionByName(traffic(events), allowMissingColumns=True) if watched else rows
        named = every.withColumn("protocol", sf.lit(None).cast("string"))
        table = _by_run(levels(named, ("run", "group")).collect())
        return table, {row["run"]: row for row in worst_clocks(clocks_folded(rows)).collect()}
    finally:
        rows.unpersist()


def _by_run(rows: Iterable[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row["run"], []).append(row)
    return found


def _run_facts(row: Row) -> RunFacts:
    return RunFacts(
        events=row["events"],
        sends=row["sends"],
        deliveries=row["deliveries"],
        views=row["views"],
        processes=row["processes"],
        crashed=tuple(row["crashed"]),
        cut=row["cut"],
        lossy=row["lossy"],
    )


def _group_facts(rows: Iterable[Row]) -> Iterable[GroupFacts]:
    for row in rows:
        yield GroupFacts(
            name=row["group"],
            order=row["order"],
            protocol=row["protocol"],
            scope=row["scope"],
            members=tuple(row["members"]),
            sends=row["sends"],
            deliveries=row["deliveries"],
        )


def _group_figures(
    rows: Iterable[Row], protocols: Mapping[str, str | None], *, watched: bool
) -> Iterable[GroupFigures]:
    """By name."""
    by_group: dict[str, dict[str, Row]] = {}
    for row in rows:
        if row["per"] == "group" and row["group"] is not None:
            by_group.setdefault(row["group"], {})[row["metric"]] = row
    for group, metrics in sorted(by_group.items()):
        yield _figures(group, protocols.get(group), metrics, watched=watched)


def _whole(
    metrics: Metrics, protocols: Iterable[str | None], *, watched: bool
) -> GroupFigures | None:
    """All groups together, with a protocol if they have but one."""
    if not metrics:
        return None
    names = set(protocols)
    return _figures("", names.pop() if len(names) == 1 else None, metrics, watched=watched)


def _figures(group: str, protocol: str | None, metrics: Metrics, *, watched: bool) -> GroupFigures:
    """Where the run was `watched`, what does not occur is 0 and not unknown."""
    hold_back = _spread(metrics, "hold_back")
    return GroupFigures(
        group=group,
        protocol=protocol,
        sends=_count(metrics, "sends"),
        deliveries=_count(metrics, "deliveries"),
        repeats=_count(metrics, "repeats"),
        latency=_spread(metrics, "latency"),
        hold_back=hold_back,
        waited=None if hold_back is None else _count(metrics, "waited"),
        headers=_spread(metrics, "header"),
        payload=_spread(metrics, "payload"),
        **{name: _count(metrics, name) if watched else None for name in COUNTED.values()},
    )


def _count(metrics: Metrics, name: str) -> int:
    return metrics[name]["count"] if name in metrics else 0


def _spread(metrics: Metrics, name: str) -> Spread | None:
    """With its true ends: the points between are rounded."""
    row = metrics.get(name)
    if row is None:
        return None
    low, high = row["min"], row["max"]
    points = (min(max(point, low), high) for point in row["percentiles"])
    ends = {0: low, 100: high}
    pairs = tuple((p, ends.get(p, point)) for p, point in zip(PERCENTS, points, strict=True))
    return Spread(row["count"], row["value"], pairs)


def _latencies(of_groups: Iterable[GroupFigures]) -> Iterable[Latency]:
    for one in of_groups:
        if one.latency is not None:
            yield Latency(one.group, one.latency.count, one.latency.percentiles)


def _throughput(rows: list[Row]) -> Throughput | None:
    if not rows:
        return None
    first, last, length = rows[0]["first"], rows[0]["last"], rows[0]["slice"]
    by_start = {row["start"]: row for row in rows}
    buckets = []
    for start in range(0, last - first + 1, length):
        row = by_start.get(start)
        counts = (row["sends"], row["deliveries"]) if row else (0, 0)
        buckets.append(Bucket(start, *counts))
    duration = last - first

    def rate(count: int) -> float | None:
        return count * 1e9 / duration if duration else None

    return Throughput(
        duration_ns=duration,
        sends_per_s=rate(sum(one.sends for one in buckets)),
        deliveries_per_s=rate(sum(one.deliveries for one in buckets)),
        bucket_ns=length,
        buckets=tuple(buckets),
    )


def _health(row: Row, metrics: Metrics, clock: Row | None) -> TraceHealth:
    return TraceHealth(
        cut=tuple(row["cut_logs"]),
        lossy=tuple(LossyLog(one["process"], one["places"], one["records"])
                    for one in row["lossy_logs"]),
        silent=tuple(row["silent_logs"] or ()),
        untimed=tuple(row["untimed_logs"]),
        no_send=_count(metrics, "unmatched"),
        early=_count(metrics, "early"),
        skews=() if clock is None else tuple(map(_skew, clock["worst"])),
        skewed_pairs=0 if clock is None else clock["skewed"],
        pairs=0 if clock is None else clock["pairs"],
    )  # fmt: skip


def _skew(one: Row) -> ClockSkew:
    return ClockSkew(one["first"], one["second"], one["forth"], one["back"], one["early"])
