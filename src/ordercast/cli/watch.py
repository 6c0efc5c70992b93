"""`ordercast watch`: judge a system while it runs."""

from __future__ import annotations

import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import typer
from rich.status import Status as Spinner

from ordercast.cli.exits import BAD_INPUT, INCONCLUSIVE, console, errors_as_exits, escape, progress
from ordercast.cli.spark import check_master
from ordercast.cli.verdicts import named

if TYPE_CHECKING:
    from ordercast.pipeline.streaming.journal import JournalEntry, RunStatus, Status
    from ordercast.pipeline.streaming.watcher import Watcher

LOOK_SECONDS = 0.25
ENDINGS = (signal.SIGINT, signal.SIGTERM)
COLOURS = {"violated": "bold red", "overdue": "yellow", "limit": "magenta"}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)?")
_UNITS = {"ms": 1, "s": 1_000, None: 1_000, "m": 60_000, "h": 3_600_000}


def watch(
    folder: Path = typer.Argument(help="The folder that a running system records into."),
    stable_after: str = typer.Option(
        "5s", help="Time after which a missing delivery is overdue: 500ms, 5s, 2m."
    ),
    expect: list[str] = typer.Option(
        [],
        help="A property or an order, as for verify; repeatable. Default: what the trace declares.",
    ),
    checkpoint: Path | None = typer.Option(
        None, help="Where the watch keeps its memory. Default: a folder inside the watched one."
    ),
    once: bool = typer.Option(
        False, help="Judge what is recorded so far, wait until it is stable, stop."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON object per line."),
    master: str | None = typer.Option(None, help="Spark master. Default: this machine."),
) -> None:
    """Watch a running system: print each violation within seconds, with a witness."""
    with errors_as_exits():
        stable_ms = milliseconds(stable_after)
        _check(folder, master, once)
        with _interrupts() as interrupted, progress.status("loading Spark") as spinner:
            watcher = _start(folder, checkpoint, expect, stable_ms, master, spinner, interrupted)
            if watcher is None:
                raise typer.Exit(_nothing(folder))
            code = _follow_to_the_end(watcher, once, as_json, spinner, interrupted)
    raise typer.Exit(code)


def milliseconds(text: str) -> int:
    """A duration such as 500ms, 5s, 2m; a ValueError says what would be right."""
    match = _DURATION.fullmatch(text.strip())
    if match is None or not float(match[1]):
        raise ValueError(f"--stable-after {text!r} is no duration; for example 500ms, 5s, 2m")
    return max(1, round(float(match[1]) * _UNITS[match[2]]))


def _check(folder: Path, master: str | None, once: bool) -> None:
    check_master(master)
    if master is not None and master.startswith("sc://"):
        raise ValueError("watch needs a session of its own: spark://, yarn, k8s:// or local")
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; watch a folder (verify judges files)")
    if once and not folder.exists():
        raise ValueError(f"there is no folder {folder}")


@contextmanager
def _interrupts() -> Iterator[threading.Event]:
    """Ctrl-C and a polite kill set the event: a call to Java is never broken off."""
    interrupted = threading.Event()
    before = {one: signal.signal(one, lambda *_: interrupted.set()) for one in ENDINGS}
    try:
        yield interrupted
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def _start(
    folder: Path,
    checkpoint: Path | None,
    expect: list[str],
    stable_ms: int,
    master: str | None,
    spinner: Spinner,
    interrupted: threading.Event,
) -> Watcher | None:
    """None if there was no folder until Ctrl-C."""
    from ordercast.judge.expectations import expected_properties
    from ordercast.pipeline.spark.java_process import java_ignores_sigterm
    from ordercast.pipeline.spark.session import local_session
    from ordercast.pipeline.streaming.query import JAVA_OPTIONS, WatchOptions
    from ordercast.pipeline.streaming.terms import check_terms, named
    from ordercast.pipeline.streaming.watcher import CHECKPOINT, Watcher

    options = WatchOptions(stable_ms=stable_ms, expected=expected_properties(expect))
    memory = checkpoint or folder / CHECKPOINT
    check_terms(memory, options.expected, stable_ms)
    text = (
        f"watching {folder}, expecting {named(options.expected)}, "
        f"stable after {stable_ms / 1000:g} s, checkpoint {memory}"
    )
    progress.print(escape(text), highlight=False, soft_wrap=True)
    while not folder.is_dir():
        spinner.update(f"waiting for the folder {escape(str(folder))} ...")
        if interrupted.wait(LOOK_SECONDS):
            return None
    spinner.update("starting Spark ...")
    with java_ignores_sigterm():
        spark = local_session(master or "local[*]", java=JAVA_OPTIONS)
    return Watcher(spark, folder, memory, options)


def _follow_to_the_end(
    watcher: Watcher, once: bool, as_json: bool, spinner: Spinner, interrupted: threading.Event
) -> int:
    """Tell what comes and, also if a bad row was the end, how things stand; the exit code."""
    from ordercast.pipeline.streaming.watcher import exit_code

    try:
        _follow(watcher, once, as_json, spinner, interrupted)
    except ValueError:
        _sum_up(watcher.status(), BAD_INPUT, as_json)
        raise
    code = exit_code(watcher.status())
    _sum_up(watcher.status(), code, as_json)
    return code


def _follow(
    watcher: Watcher, once: bool, as_json: bool, spinner: Spinner, interrupted: threading.Event
) -> None:
    """Print what comes until Ctrl-C, or with `once` until everything there is judged."""
    tell: Callable[[JournalEntry], None] = _tell_json if as_json else _tell
    try:
        while not interrupted.wait(LOOK_SECONDS):
            watcher.check()
            for told in watcher.news():
                tell(told)
            spinner.update(_status_line(watcher.status(), has_begun=watcher.has_begun()))
            if once and watcher.has_caught_up():
                break
    finally:
        watcher.stop()
        for told in watcher.news():
            tell(told)


def _tell(told: JournalEntry) -> None:
    notice = told.notice
    run = f"{told.run}: " if told.run else ""
    name = notice.property if notice.kind != "overdue" else ""
    kind = f"[{COLOURS.get(notice.kind, 'dim')}]{notice.kind}[/]"
    sentence = run + notice.sentence
    text = named(sentence, name) if name else escape(sentence)
    console.print(f"{kind}  {text}", highlight=False, soft_wrap=True)


def _tell_json(told: JournalEntry) -> None:
    line = {"run": told.run, "batch": told.batch, "number": told.number}
    print(msgspec.json.encode(line | msgspec.structs.asdict(told.notice)).decode(), flush=True)


def _status_line(status: Status, *, has_begun: bool) -> str:
    runs = list(status.runs.values())
    if not runs:
        return "nothing recorded yet, waiting ..." if has_begun else "starting Spark ..."
    newest = max(run.latest_ns for run in runs)
    age = f", newest {max(0.0, time.time() - newest / 1e9):.0f} s old" if newest else ""
    return (
        f"{sum(run.events for run in runs):,} events judged{age}, "
        f"{sum(run.remembered for run in runs):,} messages and "
        f"{sum(run.waiting_rows for run in runs):,} waiting rows held, "
        f"{sum(run.overdue for run in runs):,} overdue"
    )


def _nothing(folder: Path) -> int:
    console.print(f"there was no folder {escape(str(folder))}: nothing was judged")
    return INCONCLUSIVE


def _sum_up(status: Status, code: int, as_json: bool) -> None:
    if as_json:
        line = {"kind": "summary", "exit_code": code, "runs": list(status.runs.values())}
        print(msgspec.json.encode(line).decode(), flush=True)
        return
    for run in status.runs.values():
        _sum_up_run(run)
    if not status.runs:
        console.print("nothing was recorded: nothing was judged")


def _sum_up_run(run: RunStatus) -> None:
    from ordercast.judge.meanings import meaning

    kept = [name for name in run.expected if name not in run.violated]
    events = _counted(run.events, "event", "events")
    processes = _counted(run.processes, "process", "processes")
    lines = [escape(f"run {run.run or '(unnamed)'}: {events} of {processes}")]
    lines += [f"  [bold red]violated:[/] {named(meaning(name), name)}" for name in run.violated]
    lines += [f"  no violation seen: {named(meaning(name), name)}" for name in kept]
    if run.overdue:
        lines.append(f"  {_counted(run.overdue, 'delivery', 'deliveries')} overdue")
    if run.waiting_rows:
        rows = _counted(run.waiting_rows, "row waits", "rows wait")
        lines.append(f"  {rows} for a send that was not read")
    lines += [escape(f"  not complete: {what} ({count:,})") for what, count in run.doubts.items()]
    for line in lines:
        console.print(line, highlight=False, soft_wrap=True)


def _counted(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"
