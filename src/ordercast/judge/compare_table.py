"""The numbers of a comparison: which columns there are, and how their values are written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ordercast.judge.comparison import Compared
from ordercast.judge.figures import GroupFigures, Spread
from ordercast.judge.report.scale import compact, duration

Value = float | None


@dataclass(frozen=True)
class Figure:
    """One number of every run."""

    heading: str
    value: Callable[[Compared], Value]
    written: Callable[[float], str]
    needs: str  # what a trace must have to tell it

    def cell(self, run: Compared) -> str:
        """As it stands in a table; empty where the trace has no such figure."""
        value = self.value(run)
        return "" if value is None else self.written(value)


def _of(pick: Callable[[GroupFigures], Value]) -> Callable[[Compared], Value]:
    return lambda run: None if run.figures is None else pick(run.figures)


def _at(spread: Spread | None, percent: int) -> Value:
    return None if spread is None else spread.at(percent)


def _per(count: int | None, total: int) -> Value:
    return None if count is None or not total else count / total


def _total(spread: Spread | None, things: int) -> Value:
    """The sum over all that was measured, for each of these things."""
    return None if spread is None or not things else spread.mean * spread.count / things


def _deliveries_per_s(run: Compared) -> Value:
    pace = run.outcome.figures.throughput
    return None if pace is None else pace.deliveries_per_s


def _share(value: float) -> str:
    return f"{value:.0%}"


_TIMES = "times of sends and deliveries"
_PROTOCOL = "rows of a trace at protocol level"

HEADERS = Figure(
    "hdr B",
    _of(lambda all_: all_.headers.mean if all_.headers else None),
    compact,
    "header bytes (column overhead)",
)
HEADERS_IN_ALL = Figure(
    "all hdr",
    _of(lambda all_: _total(all_.packet_headers, all_.sends)),
    compact,
    "header bytes of packets (column overhead of rows of kind receive)",
)
PACKETS = Figure(
    "packets", _of(lambda all_: _per(all_.packets_received, all_.sends)), compact, _PROTOCOL
)
AGAIN = Figure(
    "again", _of(lambda all_: _per(all_.retransmissions, all_.sends)), compact, _PROTOCOL
)
NULLS = Figure("nulls", _of(lambda all_: _per(all_.nulls, all_.sends)), compact, _PROTOCOL)
WAITED = Figure(
    "held",
    _of(lambda all_: _per(all_.waited, all_.hold_back.count) if all_.hold_back else None),
    _share,
    _PROTOCOL,
)
SPEED_TITLE = "Promises kept, and speed"
PRICE_TITLE = "Cost; all hdr, packets, again, nulls: per message sent"
SPEED = (
    Figure("sent", _of(lambda all_: all_.sends), compact, "sends"),
    Figure("delivered", _of(lambda all_: all_.deliveries), compact, "deliveries"),
    Figure("lat. p50", _of(lambda all_: _at(all_.latency, 50)), duration, _TIMES),
    Figure("lat. p99", _of(lambda all_: _at(all_.latency, 99)), duration, _TIMES),
    Figure("deliv./s", _deliveries_per_s, compact, _TIMES),
)
PRICE = (
    WAITED,
    Figure("wait p50", _of(lambda all_: _at(all_.hold_back, 50)), duration, _PROTOCOL),
    Figure("wait p99", _of(lambda all_: _at(all_.hold_back, 99)), duration, _PROTOCOL),
    HEADERS,
    HEADERS_IN_ALL,
    PACKETS,
    AGAIN,
    NULLS,
)


def told(figures: Sequence[Figure], runs: Sequence[Compared]) -> list[Figure]:
    """Those of the figures that at least one run has."""
    return [one for one in figures if any(one.value(run) is not None for run in runs)]


def untold(runs: Sequence[Compared]) -> list[str]:
    """The figures that no run has, and the rows or columns that they need."""
    missing: dict[str, list[str]] = {}
    for one in (*SPEED, *PRICE):
        if one not in told([one], runs):
            missing.setdefault(one.needs, []).append(one.heading)
    return [f"{', '.join(names)}: no run has {needs}" for needs, names in missing.items()]
