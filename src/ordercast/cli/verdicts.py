"""Verdicts in a terminal: what was expected in a table, the rest in a line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from ordercast.cli.exits import escape

if TYPE_CHECKING:
    from ordercast.pipeline.outcome import Outcome, RunOutcome

COLOURS = {"ok": "green", "violated": "bold red", "inconclusive": "yellow", "n/a": "dim"}
SHOWN_WITNESSES = 10


def show(outcome: Outcome, console: Console) -> None:
    """All runs; of many, the details only where something expected does not hold."""
    for run in outcome.runs:
        if len(outcome.runs) <= 5 or run.exit_code:
            _show_run(run, console)
    if len(outcome.runs) > 1:
        good = sum(1 for run in outcome.runs if not run.exit_code)
        console.print(f"{good} of {len(outcome.runs)} runs hold all that was expected")


def _show_run(run: RunOutcome, console: Console) -> None:
    title = f"run {run.run or '(unnamed)'}: {run.facts.events} events"
    table = Table(title=escape(title), title_justify="left")
    for column in ("property", "verdict", "why expected"):
        table.add_column(column)
    for one in run.expected:
        table.add_row(one.property, _coloured(one.verdict), escape(one.because))
    console.print(table)
    _show_reasons(run, console)
    _show_others(run, console)


def _show_reasons(run: RunOutcome, console: Console) -> None:
    """For everything expected that does not hold: the witness, or why it is undecided."""
    tables = dict(run.domains)
    sentences: dict[str, None] = {}
    for one in run.expected:
        if one.verdict == "ok":
            continue
        table = run.table if one.domain is None else tables[one.domain]
        broken = [v.sentence for v in table.violations if v.property == one.property]
        reasons = broken or table.doubts.get(one.property, ())
        sentences.update(dict.fromkeys(f"{one.property}: {why}" for why in reasons))
    for sentence in list(sentences)[:SHOWN_WITNESSES]:
        console.print(f"  {escape(sentence)}", highlight=False, soft_wrap=True)
    if len(sentences) > SHOWN_WITNESSES:
        console.print(f"  and {len(sentences) - SHOWN_WITNESSES} more; --json has them all")


def _show_others(run: RunOutcome, console: Console) -> None:
    """What nobody promised, judged on the whole trace all the same."""
    named = {one.property for one in run.expected if one.domain is None}
    for verdict in ("ok", "violated", "inconclusive", "n/a"):
        names = [n for n, v in run.table.verdicts.items() if v == verdict and n not in named]
        if names:
            text = f"whole trace, not expected, {verdict}: {', '.join(names)}"
            console.print(f"[dim]{text}[/]", highlight=False, soft_wrap=True)


def _coloured(verdict: str) -> str:
    return f"[{COLOURS[verdict]}]{verdict}[/]"
