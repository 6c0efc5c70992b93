"""The sections on one run, in the order in which a reader asks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ordercast.judge.outcome import RunOutcome
from ordercast.judge.report.advice import undecided
from ordercast.judge.report.costs import MOST_GROUPS, costs
from ordercast.judge.report.evidence import cards
from ordercast.judge.report.health import health
from ordercast.judge.report.legend import LEGEND
from ordercast.judge.report.markup import Markup, element, joined, prose, table
from ordercast.judge.report.names import LONGEST_IN_TABLE, shortened
from ordercast.judge.report.verdicts import (
    STATES,
    all_verdicts,
    expected_table,
    verdict,
    whole_run,
)

LONGEST_NAME = 80  # of a run
MOST_MEMBERS = 12  # named in a cell

Section = tuple[str, str, Markup]  # anchor, heading, content


def run_name(run: RunOutcome) -> str:
    """For people: not too long, and a trace of one run need not name it."""
    return shortened(run.run, LONGEST_NAME) or "(unnamed)"


def run_sections(run: RunOutcome, number: int, *, alone: bool) -> Markup:
    """The run with the given number in this report; folded if it is one of many and holds."""
    heading = "The run" if alone and not run.run else f"Run {run_name(run)}"
    sections = [*_sections(run)]
    written = [
        joined(element("h3", title, id=f"run-{number}-{anchor}"), content)
        for anchor, title, content in sections
    ]
    inside = joined(_facts(run), _contents(sections, number), *written)
    if not alone and run.exit_code == 0:
        inside = element("details", element("summary", "Show all about this run"), inside)
    outcome = Markup() if alone else joined(" ", verdict(STATES[run.exit_code]))
    return element(
        "section",
        element("h2", heading, outcome, title=run.run),
        inside,
        id=f"run-{number}",
        class_="run",
    )


def _sections(run: RunOutcome) -> Iterator[Section]:
    yield "expected", "What was expected", joined(_remarks(run), expected_table(run))
    yield from _broken_promises(run)
    if doubts := undecided(run):
        yield "undecided", "What could not be decided, and why", doubts
    yield "costs", "Speed and cost", costs(run.figures)
    yield "health", "Trace health", health(run)
    if run.groups:
        yield "groups", "Groups", _groups(run)
    yield "all", "All properties, on the whole run", joined(all_verdicts(run), _not_expected(run))


def _contents(sections: Sequence[Section], number: int) -> Markup:
    links = [
        element("a", re.split(r",| \(", title)[0], href=f"#run-{number}-{anchor}")
        for anchor, title, _ in sections
    ]
    return element("nav", *links, aria_label="Sections on this run")


def _remarks(run: RunOutcome) -> Markup:
    """What a reader should know before the table."""
    if run.table.verdicts["wellformed"] == "violated":
        text = "The trace contradicts itself (`wellformed`), so the other verdicts mean little."
    elif all(one.because == "always expected" for one in run.expected):
        text = (
            "No order was declared or asked for, so none counts. Say what you expect, for example "
            "`--expect fifo`."
        )
    else:
        return Markup()
    return element("p", prose(text), class_="remark")


def _broken_promises(run: RunOutcome) -> Iterator[Section]:
    expected = whole_run(run)
    broken = [one for one in run.table.violations if one.property in expected]
    if broken:
        yield "violations", "Violations", joined(LEGEND, cards(broken, run.table))
    for number, (domain, own) in enumerate(run.domains, start=1):
        names = {one.property for one in run.expected if one.domain == domain}
        broken = [one for one in own.violations if one.property in names]
        if broken:
            heading = f"Violations within {domain.name}"
            yield f"violations-{number}", heading, joined(LEGEND, cards(broken, own))


def _not_expected(run: RunOutcome) -> Markup:
    """What was not expected and did not hold: folded away, for those who want to see it."""
    expected = whole_run(run)
    others = [one for one in run.table.violations if one.property not in expected]
    if not others:
        return Markup()
    kinds = len({one.property for one in others})
    are = "property that is" if kinds == 1 else "properties that are"
    summary = f"{kinds} {are} violated, but not part of what was expected: examples"
    return element("details", element("summary", summary), LEGEND, cards(others, run.table))


def _facts(run: RunOutcome) -> Markup:
    facts = run.facts
    pairs = [
        ("processes", facts.processes),
        ("crashed", len(facts.crashed)),
        ("groups", len(run.groups)),
        ("views", facts.views),
        ("messages sent", facts.sends),
        ("deliveries", facts.deliveries),
        ("events", facts.events),
    ]
    tiles = [element("li", element("b", f"{number:,}"), name) for name, number in pairs]
    return element("ul", *tiles, class_="facts")


def _groups(run: RunOutcome) -> Markup:
    rows = [
        [
            shortened(group.name, LONGEST_NAME),
            group.order or "not declared",
            group.protocol or "",
            group.scope or "",
            f"{group.sends:,}",
            f"{group.deliveries:,}",
            _members(group.members),
        ]
        for group in run.groups[:MOST_GROUPS]
    ]
    headings = ["group", "order", "protocol", "scope", "sent", "delivered", "members"]
    left_out = len(run.groups) - MOST_GROUPS
    more = element("p", f"{left_out:,} more groups are not listed.", class_="soft")
    listing = table(headings, rows, label="Groups", numbers=(4, 5), class_="wordy")
    return joined(listing, more) if left_out > 0 else listing


def _members(members: tuple[str, ...]) -> str:
    named = ", ".join(shortened(name, LONGEST_IN_TABLE) for name in members[:MOST_MEMBERS])
    more = len(members) - MOST_MEMBERS
    return f"{named} and {more} more" if more > 0 else named
