"""The verdict tables of a run: what was expected of it, and all properties."""

from __future__ import annotations

from ordercast.pipeline.outcome import Expectation, RunOutcome, Table
from ordercast.pipeline.report.markup import Markup, element, joined, table
from ordercast.pipeline.report.meanings import FAMILIES, meaning
from ordercast.trace.schema import PROPERTIES

SIGNS = {"ok": "✓", "violated": "✗", "inconclusive": "?", "n/a": "–"}
STATES = {0: "ok", 1: "violated", 3: "inconclusive"}  # how a run turned out, by its exit code


def verdict(name: str) -> Markup:
    """A verdict in a word, with a sign and a colour."""
    sign = element("span", SIGNS[name], aria_hidden="true")
    return element("span", sign, f" {name}", class_="verdict " + name.replace("/", ""))


def whole_run(run: RunOutcome) -> set[str]:
    """What is expected of the run as a whole, not only of some of its groups."""
    return {one.property for one in run.expected if one.domain is None}


def expected_table(run: RunOutcome) -> Markup:
    """One row per property that the run was to have."""
    rows = [_expected_row(run, one) for one in run.expected]
    headings = ["verdict", "property", "what it says", "violations", "why it is expected"]
    return table(headings, rows, label="What was expected", numbers=(3,), class_="expected")


def _expected_row(run: RunOutcome, one: Expectation) -> list[str]:
    own = next((table for domain, table in run.domains if domain == one.domain), run.table)
    count = own.counts.get(one.property, 0)
    return [
        verdict(one.verdict),
        element("code", one.property),
        meaning(one.property),
        f"{count:,}" if count else "",
        one.because,
    ]


def all_verdicts(run: RunOutcome) -> Markup:
    """One row per property; the uniform form, where there is one, beside the plain one."""
    expected = whole_run(run)
    headings = ["property", "verdict", "uniform", "what it says"]
    parts = [
        element(
            "p",
            "Grey: not part of the order declared for all groups of this run together, and judged "
            "all the same. A protocol may promise more than its order. "
            "The uniform form binds processes that crashed, too.",
            class_="soft",
        )
    ]
    for heading, beginnings in FAMILIES:
        names = [n for n in PROPERTIES if n.startswith(beginnings) and not n.endswith(".uniform")]
        rows = [_row(run.table, name, expected) for name in names]
        parts += [element("h4", heading), table(headings, rows, label=heading, class_="verdicts")]
    return joined(*parts)


def _row(own: Table, name: str, expected: set[str]) -> list[str]:
    forms = [
        _counted(own, form, form in expected) if form in PROPERTIES else ""
        for form in (name, f"{name}.uniform")
    ]
    return [element("code", name), *forms, meaning(name)]


def _counted(own: Table, name: str, expected: bool) -> Markup:
    count = own.counts[name]
    times = element("span", f" {count:,}×", class_="soft") if count else ""
    class_ = "counted" if expected or own.verdicts[name] == "ok" else "counted unpromised"
    return element("span", verdict(own.verdicts[name]), times, class_=class_)
