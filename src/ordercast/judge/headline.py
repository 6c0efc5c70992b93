"""How runs turned out, in one sentence: what the terminal says first, and the report at its top."""

from __future__ import annotations

from collections import Counter

from ordercast.judge.expectations import OK, VIOLATED
from ordercast.judge.meanings import broken, title
from ordercast.judge.outcome import Expectation, Outcome, RunOutcome, Table


def headline(outcome: Outcome) -> str:
    """Of all runs together."""
    if len(outcome.runs) == 1:
        return headline_of_run(outcome.runs[0])
    codes = Counter(run.exit_code for run in outcome.runs)
    runs = f"{len(outcome.runs):,} runs"
    if bad := codes[VIOLATED]:
        return f"{bad:,} of {runs} {'breaks' if bad == 1 else 'break'} what is expected of them"
    if codes[OK] == len(outcome.runs):
        return f"All {runs} keep what is expected of them"
    open_ = len(outcome.runs) - codes[OK]
    return f"Nothing is violated, but {open_:,} of {runs} {'is' if open_ == 1 else 'are'} undecided"


def headline_of_run(run: RunOutcome) -> str:
    """The first thing that broke, with how often; else what is undecided; else that all holds."""
    found = broken_promises(run)
    if found:
        [(name, count), *others] = found.items()
        return f"{broken(name, count)}{_and_more(len(others))}"
    undecided = list(dict.fromkeys(one.property for one in run.expected if one.verdict != "ok"))
    total = len(run.expected)
    if len(undecided) == 1:
        return f"Nothing is violated, but this could not be decided: {title(undecided[0])}"
    if undecided:
        return f"Nothing is violated, but {len(undecided)} properties could not be decided"
    if total == 1:
        return f"The expected property holds: {title(run.expected[0].property)}"
    return f"All {total} properties expected of this run hold"


def broken_promises(run: RunOutcome) -> dict[str, int]:
    """The expected properties that are violated, in their order, each with how often."""
    found: dict[str, int] = {}
    for one in run.expected:
        if one.verdict == "violated":
            found[one.property] = found.get(one.property, 0) + violations(run, one)
    return found


def what_is_wrong(run: RunOutcome) -> list[tuple[str, str]]:
    """For each expected property that does not hold: a sentence, and the name of the property."""
    told = [(in_a_sentence(run, one), one.property) for one in run.expected if one.verdict != "ok"]
    return list(dict.fromkeys(told))


def in_a_sentence(run: RunOutcome, one: Expectation) -> str:
    """What happened, where an expected property does not hold."""
    if one.verdict == "violated":
        return broken(one.property, violations(run, one))
    return f"Could not be decided: {title(one.property)}"


def violations(run: RunOutcome, one: Expectation) -> int:
    """How many there are of an expected property, where it was judged."""
    return table_of(run, one).counts.get(one.property, 0)


def table_of(run: RunOutcome, one: Expectation) -> Table:
    """The verdicts on the part of the run that the expectation is about."""
    return next((table for domain, table in run.domains if domain == one.domain), run.table)


def _and_more(others: int) -> str:
    if not others:
        return ""
    what = "property is" if others == 1 else "properties are"
    return f"; {others} more {what} violated"
