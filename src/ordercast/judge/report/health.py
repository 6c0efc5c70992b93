"""How far the trace can be trusted: cut logs, lost records, clocks that disagree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ordercast.judge.figures import ClockSkew, LossyLog, TraceHealth
from ordercast.judge.outcome import RunOutcome
from ordercast.judge.report.markup import Markup, element, joined, listed, table
from ordercast.judge.report.names import LONGEST_IN_TABLE, Names, shortened
from ordercast.judge.report.scale import Scale, duration

MOST_NAMED = 12  # in a cell; the number beside is complete
MOST_PAIRS = 12  # pairs of clocks drawn


def health(run: RunOutcome) -> Markup:
    """What is wrong with the record, and what that means for the verdicts."""
    rows = [*_findings(run)]
    if not rows:
        return element(
            "p", "✓ Every log is complete, no record was lost, and no delivery is earlier than its "
            "send.", class_="fine",
        )  # fmt: skip
    headings = ["finding", "where", "what it means"]
    return joined(
        table(headings, rows, label="Trace health", class_="wordy"), _clocks(run.figures.health)
    )


def _findings(run: RunOutcome) -> Iterator[list[str]]:
    """What was found, where, and what it means."""
    facts, told = run.facts, run.figures.health
    if facts.crashed:
        means = "Plain properties excuse these processes; uniform ones do not."
        yield [f"processes that crashed: {len(facts.crashed):,}", _named(facts.crashed), means]
    if facts.cut:
        means = "These logs stop without crash or end: missing deliveries may have come later."
        yield [f"logs that are cut: {facts.cut:,}", _named(told.cut), means]
    if facts.lossy:
        means = "Missing events may have happened. A wrong order is still a violation."
        names = [_lossy(log) for log in told.lossy]
        yield [f"logs with lost records: {facts.lossy:,}", _named(names), means]
    if told.silent:
        means = "Nothing is known of what these members did. Are files missing?"
        yield [f"members without a log: {len(told.silent):,}", _named(told.silent), means]
    if told.no_send:
        means = "These messages do not count for FIFO and causal order, nor for latencies."
        yield [f"deliveries without a send: {told.no_send:,}", "", means]
    if told.untimed:
        means = "Latencies leave these logs out. No verdict uses a time."
        yield [f"logs without times: {len(told.untimed):,}", _named(told.untimed), means]
    if told.early:
        means = "The clocks do not agree. Latencies are wrong, verdicts are not affected."
        yield [f"deliveries earlier than their send: {told.early:,}", _pairs(told), means]


def _lossy(log: LossyLog) -> str:
    return log.process if log.records is None else f"{log.process} ({log.records:,})"


def _pairs(told: TraceHealth) -> str:
    return f"{told.skewed_pairs:,} of {told.pairs:,} pairs of processes"


def _named(names: Sequence[str]) -> Markup:
    shown = [
        element("code", shortened(name, LONGEST_IN_TABLE), title=name)
        for name in names[:MOST_NAMED]
    ]
    more = len(names) - len(shown)
    return joined(listed(shown), f" and {more:,} more" if more > 0 else "")


def _clocks(told: TraceHealth) -> Markup:
    """For pairs of processes, between which bounds the difference of their clocks lies."""
    sure = [skew for skew in told.skews if skew.sureness in ("proven", "unsteady")]
    if not sure:
        return Markup()
    shown = sure[:MOST_PAIRS]
    scale = Scale([0, *(bound for skew in shown for bound in _bounds(skew))])
    names = Names(LONGEST_IN_TABLE)
    rows = [
        [names.label(skew.first), names.label(skew.second), _range(skew, scale), _in_words(skew)]
        for skew in shown
    ]
    left_out = told.skewed_pairs - len(shown)
    more = element("p", f"{left_out:,} more pairs.", class_="soft") if left_out > 0 else ""
    headings = ["clock of", "and of", "second minus first", "in words"]
    return joined(element("h4", "Clocks"), table(headings, rows, label="Clocks"), more)


def _bounds(skew: ClockSkew) -> tuple[float, float]:
    """A message takes no less than no time, in either direction."""
    ends = [-skew.back_ns if skew.back_ns is not None else None, skew.forth_ns]
    known = [float(end) for end in ends if end is not None]
    return min(known), max(known)


def _range(skew: ClockSkew, scale: Scale) -> Markup:
    low, high = (130 * scale.share(bound) + 5 for bound in _bounds(skew))
    zero = 130 * scale.share(0) + 5
    return element(
        "svg",
        element("path", d=f"M{zero:.1f} 0V18", class_="zero"),
        element("path", d=f"M{low:.1f} 9H{high:.1f}M{low:.1f} 4v10M{high:.1f} 4v10", class_="span"),
        viewBox="0 0 140 18",
        class_="range",
        aria_hidden="true",
    )


def _in_words(skew: ClockSkew) -> str:
    if skew.sureness == "unsteady":
        return "no fixed difference fits: a clock was set, or runs at another speed"
    if skew.offset_ns is None or skew.uncertainty_ns is None:
        least = -min(one for one in (skew.forth_ns, skew.back_ns) if one is not None)
        side = "behind" if skew.back_ns is None else "ahead"
        return f"the second is {side} by at least {duration(least)}"
    side = "behind" if skew.offset_ns < 0 else "ahead"
    about, within = duration(abs(skew.offset_ns)), duration(skew.uncertainty_ns)
    return f"the second is {side} by {about}, give or take {within}"
