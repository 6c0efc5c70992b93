"""`ordercast verify`: judge traces, ours or anybody's, with Spark."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import typer

from ordercast.cli.cross_check import check_again
from ordercast.cli.exits import console, errors_as_exits, escape, progress
from ordercast.cli.pages import check_page
from ordercast.cli.spark import check_master, spark_settings
from ordercast.cli.verdicts import show
from ordercast.trace.mapping import read_mapping

if TYPE_CHECKING:
    from ordercast.judge.outcome import Outcome


def verify(
    paths: list[Path] = typer.Argument(help="Trace files or folders: Parquet, JSONL, CSV."),
    as_json: bool = typer.Option(False, "--json", help="Print all verdicts as JSON."),
    report: Path | None = typer.Option(None, help="Write a self-contained HTML report."),
    quiescent: bool = typer.Option(
        False, help="Treat every log as complete, even if it was cut off."
    ),
    expect: list[str] = typer.Option(
        [],
        help="An order such as causal, judged over all groups, or one of the 32 properties of "
        "docs/PROPERTIES.md; repeatable. Default: what the trace declares.",
    ),
    mapping: Path | None = typer.Option(
        None, "--map", help="A TOML file that says what the fields of foreign logs mean."
    ),
    tables: Path | None = typer.Option(
        None,
        help="Keep events, verdicts and figures as Parquet tables in this folder; judge only "
        "new or changed runs.",
    ),
    cross_check: bool = typer.Option(
        False, help="Judge a second time by Spark SQL, where it can, and compare the verdicts."
    ),
    master: str | None = typer.Option(None, help="Spark master. Default: this machine."),
    conf: list[str] = typer.Option([], "--conf", help="Spark setting key=value; repeatable."),
) -> None:
    """Judge recorded runs: which guarantees held, and a witness for each that did not."""
    with errors_as_exits():
        check_page("--report", report, "report.html")
        outcome = judge(
            paths,
            expect=expect,
            quiescent=quiescent,
            mapping=mapping,
            tables=tables,
            master=master,
            conf=conf,
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
    if cross_check:
        with errors_as_exits():
            check_again(
                outcome,
                paths,
                progress if as_json else console,
                quiescent=quiescent,
                mapping=mapping,
                master=master,
                conf=conf,
            )
    raise typer.Exit(outcome.exit_code)


def judge(
    paths: list[Path],
    *,
    expect: list[str],
    quiescent: bool = False,
    mapping: Path | None = None,
    tables: Path | None = None,
    master: str | None = None,
    conf: Iterable[str] = (),
) -> Outcome:
    """Judge with Spark, saying on the way what is being done."""
    check_master(master)
    settings = spark_settings(conf)
    logs = None if mapping is None else read_mapping(mapping)
    from ordercast.pipeline.spark.failures import failures_explained
    from ordercast.pipeline.tables.judged import judge_with_tables
    from ordercast.pipeline.verdict import judge_paths

    judged = judge_paths
    if tables is not None:
        judged = partial(judge_with_tables, tables, told=lambda done: progress.print(str(done)))
    with progress.status("loading Spark") as status, failures_explained():
        return judged(
            paths,
            expect=expect,
            quiescent=quiescent,
            master=master,
            conf=settings,
            mapping=logs,
            note=lambda text: progress.print(f"{mapping}: {escape(text)}", soft_wrap=True),
            say=lambda step: status.update(f"{step} ..."),
        )
