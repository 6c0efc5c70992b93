"""Verdicts in a terminal: what happened in a sentence, what was expected in a table, then the rest.

Sentences come first, for people; the name of a property stands behind them in brackets, for
`--expect` and for programs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from ordercast.cli.exits import escape

if TYPE_CHECKING:
    from ordercast.judge.outcome import Outcome, RunOutcome

COLOURS = {"ok": "green", "violated": "bold red", "inconclusive": "yellow", "n/a": "dim"}
COLOURS_OF_RUNS = {0: "bold green", 1: "bold red", 3: "bold yellow"}  # by exit code
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
    from ordercast.judge.headline import headline

    for run in outcome.runs:
        if len(outcome.runs) <= 5 or run.exit_code:
            _show_run(run, console, has_report=has_report)
    if len(outcome.runs) > 1:
        _print(console, f"[{COLOURS_OF_RUNS[outcome.exit_code]}]{escape(headline(outcome))}[/]")


def named(sentence: str, name: str) -> str:
    """A sentence with the name of its property behind it."""
    return f"{escape(sentence)} [dim]({escape(name)})[/]"


def _show_run(run: RunOutcome, console: Console, *, has_report: bool) -> None:
    from ordercast.judge.headline import headline_of_run
    from ordercast.judge.meanings import meaning

    events = "event" if run.facts.events == 1 else "events"
    about = escape(f"run {run.run or '(unnamed)'}, {run.facts.events:,} {events}: ")
    colour = COLOURS_OF_RUNS[run.exit_code]
    _print(console, f"{about}[{colour}]{escape(headline_of_run(run))}[/]")
    table = Table()
    for column in ("verdict", "what is expected"):
        table.add_column(column)
    table.add_column("why", max_width=24)
    for one in run.expected:
        expected = named(meaning(one.property), one.property)
        table.add_row(_coloured(one.verdict), expected, escape(one.because))
    console.print(table)
    _show_reasons(run, console, has_report=has_report)
    _show_others(run, console)


def _show_reasons(run: RunOutcome, console: Console, *, has_report: bool) -> None:
    """For everything expected that does not hold: witnesses, or why it is undecided."""
    from ordercast.judge.headline import in_a_sentence, table_of

    shown = 0
    for one in run.expected:
        if one.verdict == "ok":
            continue
        table = table_of(run, one)
        broken = [v.sentence for v in table.violations if v.property == one.property]
        reasons = broken or list(table.doubts.get(one.property, ()))
        if reasons:
            _print(console, named(in_a_sentence(run, one), one.property) + ":")
        for why in reasons[:WITNESSES_EACH]:
            _print(console, f"  {escape(why)}")
        more = max(table.counts.get(one.property, 0), len(reasons)) - WITNESSES_EACH
        shown += len(reasons)
        if more > 0:
            _print(console, f"  ... and {more:,} more")
    if shown:
        drawn = "" if has_report else "--report FILE.html draws them, "
        _print(console, f"  [dim]{drawn}--json has them as data[/]")


def _show_others(run: RunOutcome, console: Console) -> None:
    """What no declared order asks for, judged over all groups together all the same."""
    from ordercast.judge.meanings import title

    if run.table.verdicts["wellformed"] == "violated":
        _print(console, "[bold red]The trace contradicts itself, so other verdicts mean little.[/]")
        if any(SAME_INDEX in one.sentence for one in run.table.violations):
            text = "Were several runs of one name read together? Then judge each by itself"
            _print(console, f"[yellow]{text}[/]")
    if all(one.because == "always expected" for one in run.expected):
        text = "No order was declared or asked for, so none counts: say for example --expect fifo"
        _print(console, f"[yellow]{text}[/]")
    expected = {one.property for one in run.expected if one.domain is None}
    text = "Judged over all groups together, not part of the declared order or --expect:"
    _print(console, f"[dim]{text}[/]")
    for verdict, word in OTHER_WORDS.items():
        names = [n for n, v in run.table.verdicts.items() if v == verdict and n not in expected]
        if verdict == "violated":
            shown = [f"{title(name)} ({name})" for name in _plain_first(names)]
        else:
            shown = names
        if shown:
            _print(console, f"[dim]  {word}: {', '.join(shown)}[/]")


def _plain_first(names: Sequence[str]) -> list[str]:
    """Without the uniform forms whose plain forms are among them: these imply them."""
    plain = {name for name in names if not name.endswith(".uniform")}
    return [name for name in names if name in plain or name.removesuffix(".uniform") not in plain]


def _print(console: Console, text: str) -> None:
    console.print(text, highlight=False, soft_wrap=True)


def _coloured(verdict: str) -> str:
    return f"[{COLOURS[verdict]}]{verdict}[/]"
