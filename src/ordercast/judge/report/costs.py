"""What a run cost: latency, hold-back time, header bytes, packets, throughput."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ordercast.judge.figures import Figures, GroupFigures, Spread, Throughput
from ordercast.judge.report.markup import Markup, element, joined, prose, table
from ordercast.judge.report.names import LONGEST_IN_TABLE, Names
from ordercast.judge.report.plot import MOST_LINES, Line, distribution, rates, swatch
from ordercast.judge.report.scale import compact, duration

_TOLD_BY_PROTOCOL_TRACES = (
    'Not recorded in this trace. Traces recorded with `trace="protocol"` have a row for each '
    "arrival, and so the hold-back time."
)
MOST_GROUPS = 50  # rows of a table, those with most deliveries first
_COUNTS = (
    ("packets_received", "packets received"),
    ("retransmissions", "sent again"),
    ("nacks", "asked for again"),
    ("nulls", "null messages"),
    ("forwards", "forwarded"),
    ("drops", "dropped"),
    ("acks", "acknowledged"),
)


def costs(figures: Figures) -> Markup:
    """All figures, each with its plot and its numbers."""
    names = Names(LONGEST_IN_TABLE)
    groups = [
        replace(one, group=names.label(one.group))
        for one in sorted(figures.groups, key=lambda one: (-one.deliveries, one.group))
    ]
    plots = element(
        "div",
        _figure("Delivery latency", _latency(groups)),
        _figure("Hold-back time", _hold_back(groups)),
        _figure("Throughput", _throughput(figures.throughput)),
        _figure("Bytes", _bytes(groups)),
        class_="figures",
    )
    left_out = len(groups) - MOST_GROUPS
    more = f"{left_out:,} more groups with fewer deliveries are not listed: `--json` has them."
    return joined(
        plots, _figure("Traffic", _traffic(groups)), _soft(more) if left_out > 0 else Markup()
    )


def _figure(title: str, inside: Markup) -> Markup:
    return element("figure", element("h4", title), inside) if inside else Markup()


def _soft(text: str) -> Markup:
    return element("p", prose(text), class_="soft")


def _latency(groups: Sequence[GroupFigures]) -> Markup:
    known = [(one.group, one.latency) for one in groups if one.latency]
    if not known:
        return _soft("The trace has no times for sends and their deliveries.")
    if all(spread.at(0) == spread.at(100) == 0 for _, spread in known):
        return _soft(
            "Each delivery has the time of its send: the clock was too coarse to measure latency."
        )
    return _spreads(known, "time from send to delivery", "deliveries")


def _hold_back(groups: Sequence[GroupFigures]) -> Markup:
    known = [(one, one.hold_back) for one in groups if one.hold_back]
    if not known:
        return _soft(_TOLD_BY_PROTOCOL_TRACES)
    waited = sum(one.waited or 0 for one, _ in known)
    total = sum(spread.count for _, spread in known)
    if not waited:
        return _soft(f"None of {total:,} deliveries had to wait: each was handed over on arrival.")
    spreads = [(one.group, spread) for one, spread in known]
    return joined(
        _spreads(spreads, "time from arrival to delivery", "deliveries"),
        _soft(f"{waited:,} of {total:,} deliveries had to wait for something to come first."),
    )


def _spreads(known: Sequence[tuple[str, Spread]], words: str, things: str) -> Markup:
    lines = [
        Line(name, tuple((float(value), float(percent)) for percent, value in spread.percentiles))
        for name, spread in known[:MOST_LINES]
    ]
    rows = [
        [swatch(k), name, f"{spread.count:,}", *(duration(spread.at(p)) for p in (50, 90, 99, 100))]
        for k, (name, spread) in enumerate(known[:MOST_GROUPS])
    ]
    headings = ["", "group", things, "half within", "90 %", "99 %", "longest"]
    numbers = table(headings, rows, label=words, numbers=range(2, 7), class_="dense")
    return joined(distribution(lines, words=words), numbers)


def _bytes(groups: Sequence[GroupFigures]) -> Markup:
    """Bars: the headers of a delivery beside the body of a message."""
    known = [one for one in groups if one.headers]
    if not known:
        return _soft("Header bytes are not recorded in this trace (column `overhead`).")
    longest = max(_mean(one.headers) + _mean(one.payload) for one in known) or 1
    bars = [_bar(one, longest) for one in known[: MOST_LINES * 2]]
    legend = element(
        "p", element("span", class_="key header"), " header per delivery ",
        element("span", class_="key body"), " body per message, on average",
        class_="soft",
    )  # fmt: skip
    left_out = len(known) - len(bars)
    more = _soft(f"{left_out} more groups are not drawn.") if left_out else Markup()
    return joined(element("ul", *bars, class_="bars"), legend, more)


def _bar(one: GroupFigures, longest: float) -> Markup:
    header, body = _mean(one.headers), _mean(one.payload)
    share = f" ({header / (header + body):.0%} header)" if one.payload and header + body else ""
    sizes = f"{compact(header)} + {compact(body)}" if one.payload else compact(header)
    return element(
        "li",
        element("span", one.group, class_="barname"),
        element("span", f"{sizes} bytes{share}", class_="barvalue"),
        element(
            "span",
            element("span", class_="header", style=f"width:{100 * header / longest:.1f}%"),
            element("span", class_="body", style=f"width:{100 * body / longest:.1f}%"),
            class_="bar", aria_hidden="true",
        ),
    )  # fmt: skip


def _mean(spread: Spread | None) -> float:
    return spread.mean if spread else 0.0


def _traffic(groups: Sequence[GroupFigures]) -> Markup:
    """Rows of the kinds for statistics, as far as there are any."""
    used = [(key, words) for key, words in _COUNTS if any(getattr(g, key) for g in groups)]
    if any(one.repeats for one in groups):
        used.append(("repeats", "delivered again"))
    if not used:
        return Markup()
    rows = [
        [one.group, f"{one.deliveries:,}", *(_count(getattr(one, key)) for key, _ in used)]
        for one in groups[:MOST_GROUPS]
    ]
    headings = ["group", "deliveries", *(words for _, words in used)]
    return table(headings, rows, label="Traffic", numbers=range(1, len(headings)), class_="dense")


def _count(number: int | None) -> str:
    return "" if number is None else f"{number:,}"


def _throughput(throughput: Throughput | None) -> Markup:
    if throughput is None:
        return _soft("The trace has no times.")
    sends, deliveries = throughput.sends_per_s, throughput.deliveries_per_s
    if sends is None or deliveries is None or not throughput.buckets:
        return _soft("By the clocks, all events happened at the same time.")
    per_second = 1e9 / throughput.bucket_ns
    lines = [
        Line(name, tuple((float(b.start_ns), getattr(b, name) * per_second)
                         for b in throughput.buckets))
        for name in ("deliveries", "sends")
    ]  # fmt: skip
    last = throughput.buckets[-1]
    words = f"per second, in slices of {duration(throughput.bucket_ns)}"
    legend = element(
        "p", swatch(0), f" deliveries, all processes together: {compact(deliveries)}/s. ",
        swatch(1), f" messages sent: {compact(sends)}/s. Over {duration(throughput.duration_ns)}.",
        class_="soft",
    )  # fmt: skip
    end = float(last.start_ns + throughput.bucket_ns)
    return joined(rates(lines, end=end, words=words), legend)
