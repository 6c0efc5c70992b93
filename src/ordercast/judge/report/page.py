"""The report: how it turned out at a glance, the runs in a table, the worst of them in full."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ordercast.judge.headline import headline
from ordercast.judge.meanings import title
from ordercast.judge.outcome import Outcome, RunOutcome
from ordercast.judge.report.document import document
from ordercast.judge.report.markup import Markup, element, joined, listed, table
from ordercast.judge.report.run import run_name, run_sections
from ordercast.judge.report.scene import natural
from ordercast.judge.report.verdicts import SIGNS, STATES, in_short, verdict

MOST_DETAILED_RUNS = 25  # a page with thousands of runs shows these in full, the worst first
MOST_LISTED_RUNS = 1000


def page(outcome: Outcome, *, story: Sequence[str] = ()) -> str:
    """The whole document. `story`: what befell the system, told by whoever ran it."""
    runs = sorted(outcome.runs, key=lambda run: (_badness(run), natural(run.run)))
    alone = len(runs) == 1
    main = joined(
        _banner(outcome),
        _happened(story) if story else Markup(),
        Markup() if alone else _overview(runs),
        *(run_sections(run, k, alone=alone) for k, run in _detailed(runs)),
    )
    sign = SIGNS[STATES[outcome.exit_code]]
    return document("Ordercast report", main, made_by="ordercast verify", sign=sign)


def _detailed(runs: Sequence[RunOutcome]) -> Sequence[tuple[int, RunOutcome]]:
    return list(enumerate(runs, start=1))[:MOST_DETAILED_RUNS]


def _badness(run: RunOutcome) -> int:
    return (1, 3, 0).index(run.exit_code)


def _banner(outcome: Outcome) -> Markup:
    expected = [one for run in outcome.runs for one in run.expected]
    state = STATES[outcome.exit_code]
    counts = Counter(one.verdict for one in expected)
    undecided = counts["inconclusive"] + counts["n/a"]
    total = f"{len(expected):,} expected properties"
    words = [f"{counts['violated']:,} of {total} violated"] if counts["violated"] else []
    if undecided:
        of_all = "" if words else f" of {total}"
        words.append(f"{undecided:,}{of_all} could not be decided")
    text = f"{'; '.join(words)}. " if words else ""
    events = sum(run.facts.events for run in outcome.runs)
    runs = "1 run" if len(outcome.runs) == 1 else f"{len(outcome.runs):,} runs"
    return element(
        "div",
        element("span", SIGNS[state], class_="bigsign", aria_hidden="true"),
        element(
            "div",
            element("p", headline(outcome), class_="headline"),
            element("p", f"{text}Judged: {runs}, {events:,} events."),
        ),
        class_=f"banner {state}",
    )


def _happened(story: Sequence[str]) -> Markup:
    steps = (element("li", step) for step in story)
    return element("section", element("h2", "What happened"), element("ol", *steps))


def _overview(runs: Sequence[RunOutcome]) -> Markup:
    return element(
        "section",
        element("h2", "Runs"),
        _proportions(runs),
        _by_property(runs),
        *_listing(runs),
    )


def _proportions(runs: Sequence[RunOutcome]) -> Markup:
    """A bar of how many runs turned out how, and the same in words."""
    counts = Counter(STATES[run.exit_code] for run in runs)
    parts = [
        element("span", class_=state, style=f"flex-grow:{counts[state]}")
        for state in ("violated", "inconclusive", "ok")
        if counts[state]
    ]
    words = [
        joined(verdict(state), f" {counts[state]:,}")
        for state in ("violated", "inconclusive", "ok")
        if counts[state]
    ]
    bar = element("div", *parts, class_="proportions", aria_hidden="true")
    return joined(bar, element("p", listed(words)))


def _by_property(runs: Sequence[RunOutcome]) -> Markup:
    """In how many runs each expected property turned out how."""
    counts: dict[str, Counter[str]] = {}
    for run in runs:
        for one in run.expected:
            counts.setdefault(one.property, Counter())[one.verdict] += 1
    rows = [
        [in_short(name), *(f"{found[v]:,}" if found[v] else "" for v in SIGNS)]
        for name, found in sorted(counts.items(), key=lambda pair: -pair[1]["violated"])
    ]
    headings = ["what is expected", *(f"{sign} {name}" for name, sign in SIGNS.items())]
    return table(headings, rows, label="Verdicts per property", numbers=(1, 2, 3, 4))


def _listing(runs: Sequence[RunOutcome]) -> list[Markup]:
    """The worst runs; the others are folded away if they are many."""
    numbered = list(enumerate(runs, start=1))[:MOST_LISTED_RUNS]
    shown, others = numbered, numbered[:0]
    parts = []
    if len(runs) > MOST_DETAILED_RUNS:
        shown, others = numbered[:MOST_DETAILED_RUNS], numbered[MOST_DETAILED_RUNS:]
        note = f"The {MOST_DETAILED_RUNS} worst, which are shown in full below:"
        parts.append(element("p", note, class_="soft"))
    parts.append(_run_table(shown, "Runs"))
    if others:
        limit = "" if len(runs) <= MOST_LISTED_RUNS else f", the worst {MOST_LISTED_RUNS:,} of all"
        summary = element("summary", f"{len(others):,} more runs{limit}")
        parts.append(element("details", summary, _run_table(others, "More runs")))
    return parts


def _run_table(numbered: Sequence[tuple[int, RunOutcome]], label: str) -> Markup:
    rows = [
        [
            _link(number, run),
            verdict(STATES[run.exit_code]),
            f"{run.facts.events:,}",
            "; ".join(dict.fromkeys(title(o.property) for o in run.expected if o.verdict != "ok")),
        ]
        for number, run in numbered
    ]
    headings = ["run", "outcome", "events", "expected, but violated or undecided"]
    return table(headings, rows, label=label, numbers=(2,), class_="wordy")


def _link(number: int, run: RunOutcome) -> str:
    name = run_name(run)
    return element("a", name, href=f"#run-{number}") if number <= MOST_DETAILED_RUNS else name
