"""The sections of the report, each a function from an outcome to markup."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ordercast.pipeline.outcome import Expectation, Latency, Outcome, RunOutcome, Table
from ordercast.pipeline.report.diagram import draw
from ordercast.pipeline.report.markup import Markup, element, joined, table
from ordercast.pipeline.report.meanings import meaning
from ordercast.pipeline.report.plot import MOST_GROUPS, duration, latency_plot
from ordercast.pipeline.report.style import STYLE
from ordercast.trace.schema import PROPERTIES, Violation

MOST_DETAILED_RUNS = 25  # a page with thousands of runs shows these in full, the worst first
MOST_DIAGRAMS = 3  # per property and run

_SIGNS = {"ok": "✓", "violated": "✗", "inconclusive": "?", "n/a": "–"}
_LEGEND = element(
    "p",
    "Only the events involved are drawn, time runs to the right. Open dot: send. Full dot: "
    "delivery. Ring: where the promise is broken. Cross: a delivery that never came.",
    class_="soft",
)
_STATES = {0: "ok", 1: "violated", 3: "inconclusive"}
# No script, no image, no font, no request: only the styles in the page itself.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def page(outcome: Outcome) -> str:
    """The whole document."""
    title = "Ordercast report"
    head = element(
        "head",
        Markup('<meta charset="utf-8">'),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'),
        Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        element("title", title),
        element("style", Markup(STYLE)),
    )
    runs = sorted(outcome.runs, key=lambda run: (_badness(run), run.run))
    main = element(
        "main",
        element("h1", title),
        _banner(outcome),
        _overview(runs) if len(runs) > 1 else "",
        *(_run_section(run, alone=len(runs) == 1) for run in runs[:MOST_DETAILED_RUNS]),
    )
    document = element("html", head, element("body", main), lang="en")
    return f"<!doctype html>\n{document}\n"


def _badness(run: RunOutcome) -> int:
    return (1, 3, 0).index(run.exit_code)


def _banner(outcome: Outcome) -> Markup:
    expected = [one for run in outcome.runs for one in run.expected]
    state = _STATES[outcome.exit_code]
    broken = sum(one.verdict == "violated" for one in expected)
    undecided = sum(one.verdict in ("inconclusive", "n/a") for one in expected)
    words = [f"{broken} of {len(expected)} expected properties violated"] if broken else []
    words += [f"{undecided} could not be decided"] if undecided else []
    text = "; ".join(words) or f"All {len(expected)} expected properties hold"
    runs = "" if len(outcome.runs) == 1 else f" Judged: {len(outcome.runs)} runs."
    return element("p", f"{_SIGNS[state]} {text}.{runs}", class_=f"banner {state}")


def _overview(runs: Sequence[RunOutcome]) -> Markup:
    rows: list[list[str]] = [
        [
            _run_name(run),
            _verdict(_STATES[run.exit_code]),
            f"{run.facts.events:,}",
            ", ".join(one.property for one in run.expected if one.verdict != "ok"),
        ]
        for run in runs
    ]
    left_out = len(runs) - MOST_DETAILED_RUNS
    note = f"The {MOST_DETAILED_RUNS} worst are shown in full below." if left_out > 0 else ""
    return joined(
        element("h2", "Runs"),
        element("p", note, class_="soft"),
        table(["run", "outcome", "events", "expected, but not so"], rows),
    )


def _run_name(run: RunOutcome) -> str:
    return run.run or "(unnamed)"


def _verdict(verdict: str) -> Markup:
    class_ = "verdict " + verdict.replace("/", "")
    return element("span", f"{_SIGNS[verdict]} {verdict}", class_=class_)


def _run_section(run: RunOutcome, *, alone: bool) -> Markup:
    heading = "The run" if alone and not run.run else f"Run {_run_name(run)}"
    return element(
        "section",
        element("h2", heading),
        _facts(run),
        _groups(run),
        _expected(run),
        *_broken_promises(run),
        _latency(run.latencies),
        element("h3", "All properties, on the whole run"),
        _all_verdicts(run),
        _doubts(run),
        _not_expected(run),
    )


def _whole_run(run: RunOutcome) -> set[str]:
    """What is expected of the run as a whole, not only of some of its groups."""
    return {one.property for one in run.expected if one.domain is None}


def _broken_promises(run: RunOutcome) -> list[Markup]:
    expected = _whole_run(run)
    broken = [one for one in run.table.violations if one.property in expected]
    parts = list(_violations(broken, run.table, "Violations")) if broken else []
    for domain, own in run.domains:
        names = {one.property for one in run.expected if one.domain == domain}
        broken = [one for one in own.violations if one.property in names]
        if broken:
            parts += _violations(broken, own, f"Violations within {domain.name}")
    return parts


def _not_expected(run: RunOutcome) -> Markup:
    """What was not expected and did not hold: folded away, for who wants to see."""
    expected = _whole_run(run)
    others = [one for one in run.table.violations if one.property not in expected]
    if not others:
        return Markup("")
    kinds = len({one.property for one in others})
    summary = f"{kinds} properties that are not part of the declared order do not hold: examples"
    cards = _violations(others, run.table, "Not part of the declared order, not kept")
    return element("details", element("summary", summary), *cards, class_="others")


def _facts(run: RunOutcome) -> Markup:
    facts = run.facts
    pairs = [
        ("processes", facts.processes),
        ("crashed", len(facts.crashed)),
        ("groups", len(run.groups)),
        ("messages sent", facts.sends),
        ("deliveries", facts.deliveries),
        ("events", facts.events),
    ]
    tiles = [element("li", element("b", f"{number:,}"), name) for name, number in pairs]
    notes = []
    if facts.crashed:
        notes.append(f"Crashed: {', '.join(facts.crashed)}.")
    if facts.cut:
        notes.append(f"Logs that simply stop, without crash or end: {facts.cut}.")
    if facts.lossy:
        notes.append(f"Logs with lost records: {facts.lossy}.")
    return joined(element("ul", *tiles, class_="facts"), element("p", " ".join(notes)))


def _groups(run: RunOutcome) -> Markup:
    rows: list[list[str]] = [
        [
            group.name,
            group.order or "not declared",
            group.protocol or "",
            group.scope or "",
            ", ".join(group.members) if len(group.members) <= 12 else f"{len(group.members)}",
            f"{group.sends:,}",
            f"{group.deliveries:,}",
        ]
        for group in run.groups
    ]
    headings = ["group", "order", "protocol", "scope", "members", "sent", "delivered"]
    return table(headings, rows) if rows else Markup("")


def _expected(run: RunOutcome) -> Markup:
    expected = [_expected_row(run, one) for one in run.expected]
    return joined(
        element("h3", "What was expected"),
        table(["property", "verdict", "violations", "why it is expected"], expected),
    )


def _expected_row(run: RunOutcome, one: Expectation) -> list[str]:
    own = next((table for domain, table in run.domains if domain == one.domain), run.table)
    count = own.counts.get(one.property, 0)
    name = element("code", one.property)
    return [name, _verdict(one.verdict), f"{count:,}" if count else "", one.because]


def _all_verdicts(run: RunOutcome) -> Markup:
    """One row per property; the uniform form, where there is one, beside the plain one."""
    own, expected = run.table, _whole_run(run)
    rows: list[list[str]] = []
    for name in PROPERTIES:
        if name.endswith(".uniform"):
            continue
        uniform = f"{name}.uniform"
        both = [
            _counted(own, form, form in expected) if form in PROPERTIES else ""
            for form in (name, uniform)
        ]
        rows.append([element("code", name), *both, meaning(name)])
    return joined(
        element(
            "p",
            "Grey: not part of the order declared for all groups of this run together, and judged "
            "all the same: a protocol may promise more than its order. "
            "The uniform form binds processes that crashed, too.",
            class_="soft",
        ),
        table(["property", "verdict", "uniform", "what it says"], rows),
    )


def _counted(own: Table, name: str, expected: bool) -> Markup:
    count = own.counts[name]
    times = element("span", f" {count:,}×", class_="soft") if count else ""
    class_ = "counted" if expected or own.verdicts[name] == "ok" else "counted unpromised"
    return element("span", _verdict(own.verdicts[name]), times, class_=class_)


def _violations(violations: Sequence[Violation], own: Table, heading: str) -> tuple[Markup, ...]:
    """One card per piece of evidence. Properties that show the same one share it."""
    shared: dict[str, list[Violation]] = {}
    for one in violations:
        shared.setdefault(one.sentence, []).append(one)
    cards, shown, left_out = [], dict.fromkeys(own.counts, 0), 0
    for same in shared.values():
        first = same[0].property
        if shown[first] >= MOST_DIAGRAMS:
            left_out += 1
            continue
        shown[first] += 1
        cards.append(_card(same))
    more = element("p", f"{left_out} more of the same kinds are in the JSON output.", class_="soft")
    return (element("h3", heading), _LEGEND, *cards, *((more,) if left_out else ()))


def _card(same: Sequence[Violation]) -> Markup:
    drawing = draw(same[0].witness)
    names = [element("code", one.property) for one in same]
    return element(
        "div",
        element("p", same[0].sentence),
        element("div", _verdict("violated"), " ", _listed(names), class_="soft"),
        element("div", drawing, class_="scroll") if drawing else "",
        element(
            "details",
            element("summary", "witness"),
            element("pre", json.dumps(same[0].witness, indent=1, ensure_ascii=False)),
        ),
        class_="card",
    )


def _listed(names: Sequence[Markup]) -> Markup:
    parts: list[str] = []
    for name in names:
        parts += [", "] * bool(parts) + [name]
    return joined(*parts)


def _doubts(run: RunOutcome) -> Markup:
    items: dict[str, list[Markup]] = {}
    for name, reasons in run.table.doubts.items():
        if run.table.verdicts[name] == "inconclusive":
            for reason in reasons[:MOST_DIAGRAMS]:
                items.setdefault(reason, []).append(element("code", name))
    if not items:
        return Markup("")
    rows: list[list[str]] = [[_listed(names), reason] for reason, names in items.items()]
    return joined(
        element("h3", "Why some things are inconclusive"),
        table(["property", "what the trace cannot decide"], rows),
    )


def _latency(latencies: Sequence[Latency]) -> Markup:
    if not latencies:
        return joined(
            element("h3", "Delivery latency"),
            element("p", "The trace has no times of sends and deliveries.", class_="soft"),
        )
    ordered = sorted(latencies, key=lambda one: -one.deliveries)
    rows: list[list[str]] = []
    for k, one in enumerate(ordered):
        at = dict(one.percentiles)
        swatch = element("svg", element("path", d="M0 5H34", class_=f"curve curve{k}"),
                         class_="swatch") if k < MOST_GROUPS else "not drawn"  # fmt: skip
        rows.append(
            [swatch, one.group, f"{one.deliveries:,}", duration(at[50]), duration(at[90]),
             duration(at[99]), duration(at[100])]
        )  # fmt: skip
    headings = ["", "group", "deliveries", "half within", "90 %", "99 %", "longest"]
    return joined(element("h3", "Delivery latency"), latency_plot(ordered), table(headings, rows))
