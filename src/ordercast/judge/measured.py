"""From the rows of the measuring stages to plain data, one record per run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from ordercast.judge.figures import (
    MOST_NAMED,
    Bucket,
    ClockSkew,
    Figures,
    GroupFigures,
    LossyLog,
    Spread,
    Throughput,
    TraceHealth,
)
from ordercast.judge.folds.clocks import lowest, skews
from ordercast.judge.folds.facts import Fields, group_facts, run_facts
from ordercast.judge.folds.matching import KINDS, ROW_SCHEMA, of_kinds
from ordercast.judge.folds.slices import slice_length
from ordercast.judge.folds.summing import (
    DELIVERED_IN_SLICE,
    FIGURES_PLACE,
    PERCENTS,
    SENT_IN_SLICE,
    SUMMED_SCHEMA,
    fold_groups,
    sum_up,
)
from ordercast.judge.folds.tallies import tallied
from ordercast.judge.folds.traffic import COUNTED, PACKET_HEADER, fold_traffic
from ordercast.judge.outcome import GroupFacts, RunFacts
from ordercast.trace.schema import STATISTICAL_KINDS

Metrics = Mapping[str, Fields]
"""The rows of one group or run, by metric."""


@dataclass(frozen=True)
class Measured:
    """What is known of one run beside its verdicts."""

    facts: RunFacts
    groups: tuple[GroupFacts, ...]
    figures: Figures


def measured_here(events: pa.Table) -> dict[str, Measured]:
    """All that is measured, by run, for events with the columns of the schema, in this process."""
    counted = tallied(events)
    rows = events.select(ROW_SCHEMA.names).cast(ROW_SCHEMA)
    folded = fold_groups(of_kinds(rows, *KINDS), spans_of(counted))
    if is_watched(counted):
        folded = pa.concat_tables([folded, fold_traffic(events, FIGURES_PLACE)])
    return told(counted, sum_up(folded))


def unmeasured(events: pa.Table) -> dict[str, Measured]:
    """What is in each run, and no figures: that takes a fraction of the time."""
    facts = told(tallied(events), SUMMED_SCHEMA.empty_table())
    return {run: replace(one, figures=Figures()) for run, one in facts.items()}


def is_watched(tallies: pa.Table) -> bool:
    """Are there rows of the kinds for statistics?"""
    return bool(pc.any(pc.is_in(tallies["kind"], pa.array(STATISTICAL_KINDS))).as_py())


def spans_of(tallies: pa.Table) -> dict[str, tuple[int, int]]:
    moves = of_kinds(tallies, "send", "deliver")
    timed = moves.filter(pc.is_valid(moves["first"]))
    ends = timed.group_by("run").aggregate([("first", "min"), ("last", "max")])
    return {row["run"]: (row["first_min"], row["last_max"]) for row in ends.to_pylist()}


def told(counted: pa.Table, summed: pa.Table) -> dict[str, Measured]:
    spans, tallies = spans_of(counted), counted.to_pylist()
    declared = _by_run(group_facts(tallies))
    sums = _by_run(summed.to_pylist())
    return {
        row["run"]: _measured_run(
            row, declared.get(row["run"], []), sums.get(row["run"], []), spans.get(row["run"])
        )
        for row in run_facts(tallies)
    }


def _measured_run(
    row: Fields, own: Sequence[Fields], sums: Sequence[Fields], span: tuple[int, int] | None
) -> Measured:
    """From its facts, those of its groups, and its sums."""
    per: dict[str, list[Fields]] = {"run": [], "group": [], "pair": [], "slice": []}
    for one in sums:
        per[one["per"]].append(one)
    watched = row["watched"] > 0
    whole = {one["metric"]: one for one in per["run"]}
    protocols = {one["group"]: one["protocol"] for one in own}
    of_groups = tuple(_group_figures(per["group"], protocols, watched=watched))
    return Measured(
        _run_facts(row),
        tuple(_group_facts(own)),
        Figures(
            groups=of_groups,
            throughput=None if span is None else _throughput(span, per["slice"]),
            health=_health(row, whole, skews(per["pair"])),
            whole=_whole(whole, protocols.values(), watched=watched),
        ),
    )


def _by_run(rows: Iterable[Fields]) -> dict[str, list[Fields]]:
    found: dict[str, list[Fields]] = {}
    for row in rows:
        found.setdefault(row["run"], []).append(row)
    return found


def _run_facts(row: Fields) -> RunFacts:
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


def _group_facts(rows: Iterable[Fields]) -> Iterable[GroupFacts]:
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
    rows: Iterable[Fields], protocols: Mapping[str, str | None], *, watched: bool
) -> Iterable[GroupFigures]:
    """By name."""
    by_group: dict[str, dict[str, Fields]] = {}
    for row in rows:
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
        packet_headers=_spread(metrics, PACKET_HEADER),
        **{name: _count(metrics, name) if watched else None for name in COUNTED.values()},
    )


def _count(metrics: Metrics, name: str) -> int:
    return metrics[name]["count"] if name in metrics else 0


def _spread(metrics: Metrics, name: str) -> Spread | None:
    """With its true ends: the points between are rounded."""
    row = metrics.get(name)
    if row is None:
        return None
    low, high = row["least"], row["most"]
    points = (min(max(point, low), high) for point in row["percentiles"])
    ends = {0: low, 100: high}
    pairs = tuple((p, ends.get(p, point)) for p, point in zip(PERCENTS, points, strict=True))
    return Spread(row["count"], row["total"] / row["count"], pairs)


def _throughput(span: tuple[int, int], rows: Iterable[Fields]) -> Throughput:
    first, last = span
    counts = {(row["metric"], row["at"]): row["count"] for row in rows}
    length = slice_length(first, last)
    buckets = [
        Bucket(
            start,
            counts.get((SENT_IN_SLICE, start), 0),
            counts.get((DELIVERED_IN_SLICE, start), 0),
        )
        for start in range(0, last - first + 1, length)
    ]
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


def _health(row: Fields, metrics: Metrics, clocks: Sequence[ClockSkew]) -> TraceHealth:
    return TraceHealth(
        cut=tuple(row["cut_logs"]),
        lossy=tuple(LossyLog(**one) for one in row["lossy_logs"]),
        silent=tuple(row["silent_logs"]),
        untimed=tuple(row["untimed_logs"]),
        no_send=_count(metrics, "unmatched"),
        early=_count(metrics, "early"),
        skews=tuple(clocks[:MOST_NAMED]),
        skewed_pairs=sum(lowest(one) < 0 for one in clocks),
        pairs=len(clocks),
    )
