"""The page of `ordercast compare`: one table, one plot of all latencies, bars for each price."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from ordercast.judge.compare_table import (
    AGAIN,
    HEADERS,
    HEADERS_IN_ALL,
    NULLS,
    PACKETS,
    PRICE,
    PRICE_TITLE,
    SPEED,
    SPEED_TITLE,
    Figure,
    told,
    untold,
)
from ordercast.judge.comparison import Compared, Comparison
from ordercast.judge.figures import GroupFigures, Spread
from ordercast.judge.headline import what_is_wrong
from ordercast.judge.report.charts import CHART_STYLE, bars, ranges
from ordercast.judge.report.document import document
from ordercast.judge.report.markup import Markup, element, joined, prose, table
from ordercast.judge.report.plot import MOST_LINES, Line, distribution, swatch
from ordercast.judge.report.verdicts import STATES, property_name, verdict

_PRICES = (
    (HEADERS, "Header bytes", "header bytes per delivery, on average"),
    (HEADERS_IN_ALL, "Header bytes in all", "of all packets received, per message sent"),
    (PACKETS, "Packets", "packets received per message sent"),
    (AGAIN, "Sent again", "retransmissions per message sent"),
    (NULLS, "Null messages", "null messages per message sent"),
)

Chosen = Callable[[GroupFigures], Spread | None]


def write_comparison(comparison: Comparison, path: str | Path) -> Path:
    """Write the page to `path`, which must be in a folder that exists."""
    path = Path(path)
    path.write_text(comparison_page(comparison), encoding="utf-8")
    return path


def comparison_page(comparison: Comparison) -> str:
    """The whole document."""
    runs = comparison.runs
    main = joined(
        element("h2", f"{len(runs)} runs side by side"),
        _workload(comparison),
        _numbers(runs),
        _times(runs, "Delivery latency", "time from send to delivery", lambda g: g.latency),
        _times(runs, "Hold-back time", "time from arrival to delivery", lambda g: g.hold_back),
        element("div", *(_price(runs, *price) for price in _PRICES), class_="figures"),
    )
    return document("Ordercast comparison", main, made_by="ordercast compare", style=CHART_STYLE)


def _workload(comparison: Comparison) -> Markup:
    if not comparison.differences:
        return element(
            "p", "Same workload: equal numbers of members, messages and bytes.", class_="fine"
        )
    items = [element("li", text) for text in comparison.differences]
    return element(
        "div",
        element("p", element("b", "Not the same workload: differences may come from that.")),
        element("ul", *items),
        class_="remark",
    )


def _numbers(runs: Sequence[Compared]) -> Markup:
    speed, price = told(SPEED, runs), told(PRICE, runs)
    speeds = [
        [
            element("b", run.label),
            ", ".join(run.orders),
            verdict(STATES[run.outcome.exit_code]),
            *(figure.cell(run) for figure in speed),
        ]
        for run in runs
    ]
    prices = [[element("b", run.label), *(figure.cell(run) for figure in price)] for run in runs]
    wrong = [
        element("li", element("b", run.label), f": {sentence} ", property_name(name))
        for run in runs
        for sentence, name in what_is_wrong(run.outcome)
    ]
    notes = [element("p", f"{text}.", class_="soft") for text in untold(runs)]
    return joined(
        _table(["run", "order", "as declared"], speeds, speed, SPEED_TITLE),
        element("ul", *wrong) if wrong else "",
        _table(["run"], prices, price, PRICE_TITLE) if price else "",
        *notes,
    )


def _table(first: list[str], rows: list[list[str]], figures: list[Figure], title: str) -> Markup:
    headings = [*first, *(figure.heading for figure in figures)]
    places = range(len(first), len(headings))
    return joined(element("h3", title), table(headings, rows, label=title, numbers=places))


def _times(runs: Sequence[Compared], title: str, words: str, pick: Chosen) -> Markup:
    """Lines for the first few, since more cannot be told apart; a range for every run."""
    spreads = [(run.label, pick(run.figures) if run.figures else None) for run in runs]
    known = [(name, spread) for name, spread in spreads if spread is not None]
    if not known:
        return Markup()
    lines = [
        Line(name, tuple((float(value), float(percent)) for percent, value in spread.percentiles))
        for name, spread in known[:MOST_LINES]
    ]
    keys = [element("span", swatch(k), line.name) for k, line in enumerate(lines)]
    more = len(known) - len(lines)
    note = f"{more} more are in the chart of ranges only." if more else ""
    return joined(
        element("h3", title),
        element(
            "div",
            element(
                "figure",
                distribution(lines, words=words),
                element("p", *keys, element("span", note), class_="legend"),
            ),
            element(
                "figure",
                ranges(spreads, words=words),
                element("p", prose("Thick: 10 % to 90 %. Mark: half. Whisker: 99 %."),
                        class_="soft"),
            ),
            class_="figures",
        ),
    )  # fmt: skip


def _price(runs: Sequence[Compared], figure: Figure, title: str, words: str) -> Markup:
    values = [(run.label, figure.value(run)) for run in runs]
    if not any(value for _, value in values):
        return Markup()
    drawn = bars(values, words=words, written=figure.written)
    return element("figure", element("h3", title), drawn)
