"""`ordercast sweep`: a grid of simulated runs, spread over Spark, every run judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ordercast.cli.exits import (
    INCONCLUSIVE,
    VIOLATED,
    console,
    errors_as_exits,
    escape,
    progress,
)
from ordercast.cli.spark import check_master, spark_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ordercast.experiments.plan import Plan
    from ordercast.experiments.sweep import Session, Summary


def sweep(
    plan: Path = typer.Argument(help="A TOML file that says which runs: see docs/EXPERIMENTS.md."),
    out: Path = typer.Option(
        ..., help="Folder for tables and traces. A sweep that was cut off there goes on."
    ),
    quick: bool = typer.Option(
        False, help="Run the quick form of the plan, which its table [quick] describes."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print the summary as JSON."),
    master: str | None = typer.Option(None, help="Spark master. Default: this machine."),
    conf: list[str] = typer.Option([], "--conf", help="Spark setting key=value; repeatable."),
) -> None:
    """Run a grid of simulated runs on Spark, judge each, and write a table of figures."""
    with errors_as_exits():
        check_master(master)
        settings = spark_settings(conf)
        from ordercast.experiments.plan import read_plan

        planned = read_plan(plan, quick=quick)
        with session_on(master, settings) as session:
            summary = swept(session, planned, out)
    if as_json:
        print(msgspec.json.format(msgspec.json.encode(summary)).decode())
    else:
        console.print(str(summary), highlight=False)
        for witness in summary.first_bad:
            console.print(f"  {escape(witness)}", highlight=False, soft_wrap=True)
        console.print(f"table: {out / 'runs.parquet'}", highlight=False, soft_wrap=True)
    raise typer.Exit(_exit_code(summary.verdicts))


def swept(session: Session, plan: Plan, out: Path) -> Summary:
    """Run the plan with a bar."""
    from ordercast.experiments.sweep import run_sweep
    from ordercast.pipeline.spark.failures import failures_explained

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=progress) as shown, failures_explained():
        bar = shown.add_task(plan.name, total=len(plan.runs))
        return run_sweep(
            session, plan, out, told=lambda done, of: shown.update(bar, completed=done, total=of)
        )


@contextmanager
def session_on(master: str | None, conf: Mapping[str, str] | None = None) -> Iterator[Session]:
    """A session that starts when it is asked for, and ends with the block."""
    from ordercast.pipeline.spark.session import local_session

    with ExitStack() as ending:

        @cache
        def session() -> SparkSession:
            spark = local_session(master or "local[*]", app_name="ordercast sweep", conf=conf)
            ending.callback(spark.stop)
            return spark

        yield session


def _exit_code(verdicts: Mapping[str, int]) -> int:
    if verdicts.keys() & {"violated", "failed"}:
        return VIOLATED
    return INCONCLUSIVE if "undecided" in verdicts else 0
