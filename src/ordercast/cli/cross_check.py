"""`ordercast verify --cross-check`: the relational properties once more, by Spark SQL."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from ordercast.cli.exits import OUR_MISTAKE, escape, fail, progress
from ordercast.cli.spark import spark_settings
from ordercast.trace.mapping import read_mapping

if TYPE_CHECKING:
    from ordercast.judge.outcome import Outcome


def check_again(
    outcome: Outcome,
    paths: list[Path],
    console: Console,
    *,
    quiescent: bool,
    mapping: Path | None,
    master: str | None,
    conf: Iterable[str],
) -> None:
    """Say that both lanes agree, or name each difference and exit: one of them is wrong."""
    from ordercast.pipeline import crosscheck

    with progress.status("judging a second time, by Spark SQL ..."):
        found = crosscheck.cross_check(
            outcome,
            paths,
            quiescent=quiescent,
            mapping=None if mapping is None else read_mapping(mapping),
            master=master,
            conf=spark_settings(conf),
        )
    console.print(str(found), highlight=False, soft_wrap=True)
    for one in found.differences:
        progress.print(f"  {escape(str(one))}", highlight=False, soft_wrap=True)
    if found.differences:
        text = (
            "the two judgements differ, so one of them is wrong: please report it with this trace"
        )
        raise fail(text, OUR_MISTAKE)
