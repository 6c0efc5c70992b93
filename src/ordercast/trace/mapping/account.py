"""What people are told of a reading: nothing is left out without a word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ordercast.trace.mapping.section import listed
from ordercast.trace.mapping.spec import LogMapping
from ordercast.trace.mapping.survey import Survey
from ordercast.trace.schema import Event

MOST_WORDS = 5  # ignored words that are named, the most frequent first


def said(surveys: Iterable[Survey], mapping: LogMapping, added: Iterable[Event]) -> str:
    """In words: how many rows became events, what was added or left out and why, what seems odd."""
    surveys = list(surveys)
    rows = sum(survey.rows for survey in surveys)
    kinds: Counter[str] = sum((Counter(survey.kinds) for survey in surveys), Counter())
    ignored: Counter[str] = sum((Counter(survey.ignored) for survey in surveys), Counter())
    filtered = sum(survey.filtered for survey in surveys)
    unmatched = sum(survey.unmatched for survey in surveys)
    events = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    taken = f"{kinds.total()} of {rows} rows are events" + (f" ({events})" if events else "")
    parts = [taken + _declared(Counter(event.kind for event in added))]
    if ignored:
        words = [f"{count} {word!r}" for word, count in ignored.most_common(MOST_WORDS)]
        others = len(ignored) - MOST_WORDS
        more = f", and {others} other words" if others > 0 else ""
        parts.append(f"{ignored.total()} ignored ({', '.join(words)}{more})")
    if filtered:
        parts.append(f"{filtered} left out by [where] or [unless]")
    if unmatched:
        lines = "line does" if unmatched == 1 else "lines do"
        parts.append(f"{unmatched} {lines} not match the pattern")
    if kinds:
        parts += _never_seen(surveys, mapping)
    return "; ".join(parts)


def _declared(kinds: Counter[str]) -> str:
    """The rows that stand in no file: groups, and the ends of logs that are complete."""
    if not kinds:
        return ""
    counts = [(n, kind if n == 1 else f"{kind}s") for kind, n in kinds.items()]
    if len(counts) == 1:
        return ", and {} declared {}".format(*counts[0])
    told = ", ".join(f"{n} {name}" for n, name in counts)
    return f", and {kinds.total()} declared rows: {told}"


def _never_seen(surveys: list[Survey], mapping: LogMapping) -> Iterable[str]:
    """Declared names that no row has: perhaps rightly so, perhaps a slip of the pen."""
    groups = {group for survey in surveys for group in survey.groups}
    processes = {log.process for survey in surveys for log in survey.logs}
    members = {name for group in mapping.groups for name in group.members or ()}
    for what, declared, seen in (
        ("group", {group.name for group in mapping.groups}, groups),
        ("member", members, processes),
    ):
        if unseen := sorted(declared - seen):
            there = listed(sorted(seen))
            yield f"no row of the declared {what} {listed(unseen)} (there is {there})"
