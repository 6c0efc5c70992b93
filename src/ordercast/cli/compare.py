"""`ordercast compare`: runs of several protocols side by side, what they kept and what it cost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from ordercast.cli.exits import console, errors_as_exits, escape, progress
from ordercast.cli.pages import check_page
from ordercast.cli.spark import check_master, spark_settings
from ordercast.cli.verdicts import named

if TYPE_CHECKING:
    from ordercast.judge.compare_table import Figure
    from ordercast.judge.comparison import Compared, Comparison

COLOURS = {"kept": "green", "violated": "bold red", "undecided": "yellow"}


def compare(
    paths: list[Path] = typer.Argument(
        help="Traces of at least two runs: files, folders, or a folder with one folder for each."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print all figures as JSON."),
    out: Path | None = typer.Option(None, help="Write a self-contained HTML page with plots."),
    master: str | None = typer.Option(None, help="Spark master. Default: this machine."),
    conf: list[str] = typer.Option([], "--conf", help="Spark setting key=value; repeatable."),
) -> None:
    """Put runs side by side: latency, hold-back, bytes, packets, and whether promises were kept."""
    with errors_as_exits():
        check_master(master)
        settings = spark_settings(conf)
        check_page("--out", out, "comparison.html")
        from ordercast.pipeline.compare import compare_paths
        from ordercast.pipeline.spark.failures import failures_explained

        with progress.status("loading Spark") as status, failures_explained():
            comparison = compare_paths(
                paths,
                master=master,
                conf=settings,
                say=lambda step: status.update(f"{step} ..."),
            )
        if out is not None:
            from ordercast.judge.report.comparison import write_comparison

            write_comparison(comparison, out)
    if as_json:
        print(msgspec.json.format(msgspec.json.encode(comparison.as_json())).decode())
        return
    show(comparison, console)
    if out is not None:
        console.print(f"plots: {out}", highlight=False, soft_wrap=True)


def show(comparison: Comparison, console: Console) -> None:
    """One row per run, then what broke; columns for which no run has figures are left out, and
    named."""
    from ordercast.judge.compare_table import (
        PRICE,
        PRICE_TITLE,
        SPEED,
        SPEED_TITLE,
        told,
        untold,
    )
    from ordercast.judge.headline import what_is_wrong

    runs = comparison.runs
    speed, price = told(SPEED, runs), told(PRICE, runs)
    table = _table(SPEED_TITLE, "order", "promise")
    for run in runs:
        state = f"[{COLOURS[run.state]}]{run.state}[/]"
        _add(table, speed, run, escape(", ".join(run.orders)), state)
    console.print(table)
    if price:
        table = _table(PRICE_TITLE)
        for run in runs:
            _add(table, price, run)
        console.print(table)
    for run in runs:
        for sentence, name in what_is_wrong(run.outcome):
            console.print(
                f"{escape(run.label)}: {named(sentence, name)}", highlight=False, soft_wrap=True
            )
    for text in untold(runs):
        console.print(f"[dim]{text}[/]", highlight=False, soft_wrap=True)
    if comparison.differences:
        console.print("[bold yellow]Not the same workload: compare with care[/]")
        for text in comparison.differences:
            console.print(f"  {escape(text)}", highlight=False, soft_wrap=True)


def _table(title: str, *columns: str) -> Table:
    table = Table(
        title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0)
    )
    table.add_column("run", overflow="fold", min_width=12)
    for name in columns:
        table.add_column(name, overflow="fold")
    return table


def _add(table: Table, figures: Sequence[Figure], run: Compared, *cells: str) -> None:
    if not table.row_count:
        for figure in figures:
            table.add_column(figure.heading, justify="right", no_wrap=True)
    table.add_row(escape(run.label), *cells, *(figure.cell(run) for figure in figures))
