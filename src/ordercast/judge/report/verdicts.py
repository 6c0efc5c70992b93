"""The verdict tables of a run: what was expected of it, and all properties."""

from __future__ import annotations

from ordercast.judge.headline import violations
from ordercast.judge.meanings import FAMILIES, meaning, title
from ordercast.judge.outcome import RunOutcome, Table
from ordercast.judge.report.markup import Markup, element, joined, prose, table
from ordercast.trace.schema import PROPERTIES

SIGNS = {"ok": "✓", "violated": "✗", "inconclusive": "?", "n/a": "–"}
_UNEXPECTED = {"violated": "not kept", "inconclusive": "undecided", "n/a": "– n/a"}
STATES = {0: "ok", 1: "violated", 3: "inconclusive"}  # how a run turned out, by its exit code


def verdict(name: str) -> Markup:
    """A verdict in a word, with a sign and a colour."""
    sign = element("span", SIGNS[name], aria_hidden="true")
    return element("span", sign, f" {name}", class_="verdict " + name.replace("/", ""))


def whole_run(run: RunOutcome) -> set[str]:
    """What is expected of the run as a whole, not only of some of its groups."""
    return {one.property for one in run.expected if one.domain is None}


def expected_table(run: RunOutcome) -> Markup:
    """One row per property that the run was to have; violations are counted if there are any."""
    counts = [violations(run, one) for one in run.expected]
    rows = [
        [
            verdict(one.verdict),
            in_words(one.property),
            one.because,
            *([f"{count:,}" if count else ""] if any(counts) else []),
        ]
        for one, count in zip(run.expected, counts, strict=True)
    ]
    headings = ["verdict", "what is expected", "why"]
    headings += ["violations"] if any(counts) else []
    return table(headings, rows, label="What was expected", numbers=(3,), class_="expected")


def in_words(name: str) -> Markup:
    """What a property promises, with its name behind."""
    return joined(f"{meaning(name)} ", property_name(name))


def in_short(name: str) -> Markup:
    """The property in a few words, with its name behind."""
    return joined(f"{title(name)} ", property_name(name))


def property_name(name: str) -> Markup:
    """The name as one types it, never broken between lines."""
    return element("code", name, class_="property")


def all_verdicts(run: RunOutcome) -> Markup:
    """One row per property; the uniform form, where there is one, beside the plain one."""
    expected = whole_run(run)
    headings = ["what it promises", "verdict", "crashed processes included"]
    parts = [
        element(
            "p",
            prose(
                "Grey: these properties are judged all the same, but they are not expected of all "
                "groups of this run together, so nothing is broken. The last column is the uniform "
                "form (`.uniform`), which also binds processes that crashed."
            ),
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
    return [in_words(name), *forms]


def _counted(own: Table, name: str, expected: bool) -> Markup:
    found, count = own.verdicts[name], own.counts[name]
    times = element("span", f" {count:,}×", class_="soft") if count else ""
    if expected or found == "ok":
        return element("span", verdict(found), times, class_="counted")
    return element("span", _UNEXPECTED[found], times, class_="counted soft")
