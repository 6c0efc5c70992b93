"""Verdicts in a terminal: what was expected in a table, the rest in a line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from ordercast.cli.exits import escape

if TYPE_CHECKING:
    from ordercast.judge.outcome import Outcome, RunOutcome

COLOURS = {"ok": "green", "violated": "bold red", "inconclusive": "yellow", "n/a": "dim"}
OTHER_WORDS = {
    "ok": "kept",
    "violated": "not kept",
    "inconclusive": "undecided",
    "n/a": "nothing to judge",
}
WITNESSES_EACH = 3  # per property
SAME_INDEX = "two events with index"  # in the sentence of a log that is probably two logs


def show(outcome: Outcome, console: Console, *, has_report: bool) -> None:
    """All runs; of many, the details only where something expected does not hold."""
    for run in outcome.runs:
        if len(outcome.runs) <= 5 or run.exit_code:
            _show_run(run, console, has_report=has_report)
    if len(outcome.runs) > 1:
        good = sum(1 for run in outcome.runs if not run.exit_code)
        console.print(f"{good} of {len(outcome.runs)} runs hold all that was expected")


def _show_run(run: RunOutcome, console: Console, *, has_report: bool) -> None:
    events = "event" if run.facts.events == 1 else "events"
    title = f"run {run.run or '(unnamed)'}: {run.facts.events} {events}"
    table = Table(title=escape(title), title_justify="left")
    for column in ("property", "verdict", "why expected"):
        table.add_column(column)
    for one in run.expected:
        table.add_row(one.property, _coloured(one.verdict), escape(one.because))
    console.print(table)
    _show_reasons(run, console, has_report=has_report)
    _show_others(run, console)


def _show_reasons(run: RunOutcome, console: Console, *, has_report: bool) -> None:
    """For everything expected that does not hold: a witness, or why it is undecided."""
    tables = dict(run.domains)
    shown = 0
    for one in run.expected:
        if one.verdict == "ok":
            continue
        table = run.table if one.domain is None else tables[one.domain]
        broken = [v.sentence for v in table.violations if v.property == one.property]
        reasons = broken or list(table.doubts.get(one.property, ()))
        for why in reasons[:WITNESSES_EACH]:
            console.print(f"  {one.property}: {escape(why)}", highlight=False, soft_wrap=True)
        more = max(table.counts.get(one.property, 0), len(reasons)) - WITNESSES_EACH
        shown += len(reasons)
        if more > 0:
            console.print(f"  {one.property}: and {more} more", highlight=False)
    if shown:
        drawn = "" if has_report else "--report FILE.html draws them, "
        console.print(f"  {drawn}--json has them as data", highlight=False)


def _show_others(run: RunOutcome, console: Console) -> None:
    """What no declared order asks for, judged over all groups together all the same."""
    if run.table.verdicts["wellformed"] == "violated":
        console.print("[bold red]the trace contradicts itself: other verdicts mean little[/]")
        if any(SAME_INDEX in one.sentence for one in run.table.violations):
            text = "Were several runs of one name read together? Then judge each by itself"
            console.print(f"[yellow]{text}[/]", highlight=False, soft_wrap=True)
    if all(one.because == "always expected" for one in run.expected):
        text = "No order was declared or asked for, so none counts: say for example --expect fifo"
        console.print(f"[yellow]{text}[/]", highlight=False, soft_wrap=True)
    named = {one.property for one in run.expected if one.domain is None}
    console.print(
        "[dim]Judged over all groups together, not part of the declared order or --expect:[/]"
    )
    for verdict, word in OTHER_WORDS.items():
        names = [n for n, v in run.table.verdicts.items() if v == verdict and n not in named]
        if names:
            text = f"  {word}: {', '.join(names)}"
            console.print(f"[dim]{text}[/]", highlight=False, soft_wrap=True)


def _coloured(verdict: str) -> str:
    return f"[{COLOURS[verdict]}]{verdict}[/]"
