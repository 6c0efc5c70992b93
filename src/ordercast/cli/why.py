"""`ordercast why`: what was held back, for what, since when, and what released it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import msgspec
import typer
from rich.table import Table

from ordercast.cli.exits import console, errors_as_exits, escape, progress
from ordercast.trace.holds import joined
from ordercast.trace.read import read_events
from ordercast.trace.schema import Event
from ordercast.trace.waits import Moment, Wait, has_protocol_rows, longest_first, read_waits

HOW_TO_RECORD = (
    "the trace does not say what was held back: it has only what applications sent and got. "
    "Record it with Node(..., trace=DIR, trace_level='protocol'), or in the simulator with "
    "ordercast simulate --trace protocol"
)
MANY = 10_000  # names that are compared one by one to find the nearest


def why(
    paths: list[Path] = typer.Argument(help="Trace files or folders: Parquet, JSONL, CSV."),
    message: str | None = typer.Option(None, help="Only this message, with its whole story."),
    process: str | None = typer.Option(None, help="Only messages that waited at this process."),
    top: int = typer.Option(10, min=1, help="Number of waits to show, the longest first."),
    as_json: bool = typer.Option(False, "--json", help="Print the waits as JSON."),
) -> None:
    """Explain from a trace at protocol level why messages were held back."""
    with errors_as_exits():
        with progress.status("reading the trace"):
            events = read_events(paths)
        if not has_protocol_rows(events):
            raise ValueError(HOW_TO_RECORD)
        _check_exists("message", message, lambda: {e.message for e in events if e.message})
        _check_exists("process", process, lambda: {e.process for e in events if e.process})
        waits = [
            wait
            for wait in longest_first(read_waits(events))
            if process in (None, wait.process) and message in (None, wait.message)
        ]
    if as_json:
        print(msgspec.json.format(msgspec.json.encode([_plain(w) for w in waits[:top]])).decode())
        return
    if not waits:
        _say_nothing_waited(events, message, process)
        return
    starts = _starts(events)
    if message is None:
        _show_table(waits[:top], starts, len(waits))
    for wait in waits[:top]:
        _tell(wait, starts[wait.run])


def _check_exists(what: str, wanted: str | None, names: Callable[[], set[str]]) -> None:
    if wanted is None:
        return
    known = names()
    if wanted in known:
        return
    near = _nearest(wanted, sorted(known))
    hint = f"the nearest is {near!r}" if near else "it has none at all"
    raise ValueError(f"the trace has no {what} {wanted!r}; {hint}")


def _nearest(wanted: str, known: list[str]) -> str:
    """Of those with the same sender and number, or the same number, or of all."""
    sender, number = wanted.partition("/")[0], wanted.rpartition("/")[2]
    alike = [name for name in known if name.rpartition("/")[2] == number]
    likely = [name for name in alike if name.startswith(sender)] or alike or known
    return next(iter(get_close_matches(wanted, likely[:MANY], n=1, cutoff=0.0)), "")


def _say_nothing_waited(events: list[Event], message: str | None, process: str | None) -> None:
    what = "nothing was" if message is None else f"{message} was not"
    where = "anywhere" if process is None else f"at {process}"
    console.print(f"{escape(what)} held back {escape(where)}", highlight=False, soft_wrap=True)
    for event in events:
        if event.kind == "deliver" and event.message == message and message is not None:
            text = f"  {event.process} delivered it as soon as it came (row {event.index})"
            if process in (None, event.process):
                console.print(escape(text), highlight=False, soft_wrap=True)


def _starts(events: Iterable[Event]) -> dict[str, int]:
    """When each run began, as far as the trace tells times."""
    starts: dict[str, int] = {}
    for event in events:
        starts[event.run] = min(starts.get(event.run, event.time or 0), event.time or 0)
    return starts


def _show_table(waits: list[Wait], starts: dict[str, int], total: int) -> None:
    longest = "the longest" if len(waits) == 1 else f"the {len(waits)} longest"
    title = f"{longest} of {total} held back" if len(waits) < total else f"held back: {total}"
    table = Table(title=title, title_justify="left")
    several = len(starts) > 1
    columns = ["message", "at", "from", "held", "waited last for", "released by"]
    for column in ["run", *columns] if several else columns:
        table.add_column(column, overflow="fold")
    for wait in waits:
        cells = [
            wait.name,
            wait.process,
            _when(wait.began, starts[wait.run]),
            _length(wait),
            joined(wait.stages[-1].awaits) or "not recorded",
            _released(wait),
        ]
        table.add_row(*map(escape, [wait.run, *cells] if several else cells))
    console.print(table)


def _released(wait: Wait) -> str:
    if wait.ended is None:
        return "STILL HELD"
    return wait.by or "not recorded"


def _tell(wait: Wait, start: int) -> None:
    verb = "holds" if wait.ended is None else "held"
    name = f"message {wait.name}" if wait.message else wait.name
    head = f"{wait.process} {verb} {name} back, for {_length(wait)}"
    if wait.ended is None:
        end = {"end": "the run ended", "crash": "it crashed"}.get(
            wait.log_end, "its log breaks off"
        )
        head += f": {end} before what it waits for came"
    _print(head)
    for stage in wait.stages:
        waits = f"waits for {joined(stage.awaits)}" if stage.awaits else "waits"
        after = f" ({stage.by})" if stage.by else ""
        _print(f"  {_when(stage.at, start)}  {waits}{after}")
    if wait.ended is not None:
        ended = f"{wait.by or 'something'} ended its wait for {joined(wait.gone) or 'its turn'}"
        _print(f"  {_when(wait.ended, start)}  {ended}")
        if wait.delivered is not None:
            _print(f"  {_when(wait.delivered, start)}  delivered to the application")


def _print(line: str) -> None:
    console.print(escape(line), highlight=False, soft_wrap=True)


def _when(moment: Moment, start: int) -> str:
    at = f"row {moment.index}"
    return at if moment.time is None else f"{_ms(moment.time - start)}, {at}"


def _length(wait: Wait) -> str:
    if wait.lasted is not None:
        return _ms(wait.lasted)
    return f"{(wait.ended or wait.log_ended).index - wait.began.index} rows"


def _ms(ns: int) -> str:
    return f"{ns / 1e6:.2f} ms" if ns < 10**9 else f"{ns / 1e9:.3f} s"


def _plain(wait: Wait) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(wait)
    return {**fields, "held_ns": wait.lasted, "still_held": wait.ended is None}
