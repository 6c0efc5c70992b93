"""`ordercast check`: judge traces in this process, without Spark: an answer in a second."""

from __future__ import annotations

from pathlib import Path

import msgspec
import typer

from ordercast.cli.exits import console, errors_as_exits, escape, progress
from ordercast.cli.pages import check_page
from ordercast.cli.verdicts import show
from ordercast.trace.mapping import read_mapping


def check(
    paths: list[Path] = typer.Argument(help="Trace files or folders: Parquet, JSONL, CSV."),
    as_json: bool = typer.Option(False, "--json", help="Print all verdicts as JSON."),
    report: Path | None = typer.Option(None, help="Write a self-contained HTML report."),
    quiescent: bool = typer.Option(
        False, help="Take every log as complete, also one that was cut off."
    ),
    expect: list[str] = typer.Option(
        [], help="A property or an order (as over all groups: fifo is fifo.global); repeatable."
    ),
    mapping: Path | None = typer.Option(
        None, "--map", help="A TOML file that says what the fields of foreign logs mean."
    ),
    figures: bool = typer.Option(True, help="Measure delays and costs, too."),
) -> None:
    """Judge recorded runs like `verify`, without Spark: for traces that fit into memory."""
    with errors_as_exits():
        check_page("--report", report, "report.html")
        logs = None if mapping is None else read_mapping(mapping)
        from ordercast.judge.check import check_paths

        with progress.status("reading") as status:
            outcome = check_paths(
                paths,
                expect=expect,
                quiescent=quiescent,
                mapping=logs,
                figures=figures,
                note=lambda text: progress.print(f"{mapping}: {escape(text)}", soft_wrap=True),
                say=lambda step: status.update(f"{step} ..."),
            )
        if report is not None:
            from ordercast.judge.report import write_report

            write_report(outcome, report)
    if as_json:
        print(msgspec.json.format(msgspec.json.encode(outcome.as_json())).decode())
    else:
        show(outcome, console, has_report=report is not None)
        if report is not None:
            console.print(f"report: {report}", highlight=False, soft_wrap=True)
    raise typer.Exit(outcome.exit_code)
