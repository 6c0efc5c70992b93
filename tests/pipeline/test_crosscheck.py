"""Judged twice: what is said of equal and of different verdicts."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import ordercast.pipeline.crosscheck
from notation import trace
from ordercast.cli.app import app
from ordercast.cli.exits import OUR_MISTAKE
from ordercast.pipeline.crosscheck import Difference, compared, differences
from ordercast.pipeline.relational import RELATIONAL
from ordercast.trace.write import write_jsonl

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.usefixtures("spark")]

OK = dict.fromkeys(RELATIONAL, "ok")
TRACE = "group g: p,q\np: send a g; deliver a g; end\nq: deliver a g; end"


def folds(run: str, **others: str | None) -> dict[tuple[str, str], str | None]:
    return {(run, name): verdict for name, verdict in {**OK, **others}.items()}


def test_equal_verdicts_are_counted() -> None:
    found = compared({"r": OK}, folds("r"))
    assert str(found) == "cross-check: 10 verdicts judged twice, all equal"


def test_what_folds_cannot_tell_is_not_compared() -> None:
    found = compared({"r": OK}, folds("r", agreement=None))
    assert found.differences == ()
    judged = "9 verdicts judged twice, all equal"
    assert str(found) == f"cross-check: {judged} (1 that Spark SQL alone cannot decide)"


def test_a_difference_names_run_property_and_both_verdicts() -> None:
    found = compared({"r": OK, "": OK}, {**folds("r", vsync="violated"), **folds("")})
    assert found.differences == (Difference("r", "vsync", "ok", "violated"),)
    assert str(found) == "cross-check: 20 verdicts judged twice, 1 differ"
    assert str(found.differences[0]) == "run r, vsync: the kernels say ok, Spark SQL says violated"


def test_rows_of_both_lanes_are_joined_where_they_differ(spark: SparkSession) -> None:
    names = "run string, property string, verdict string"
    kernels = [("r", "views", "ok"), ("r", "vsync", "ok"), ("r", "total.group", "ok")]
    mine = [("r", "views", "violated"), ("r", "vsync", None)]
    found = differences(
        spark.createDataFrame(kernels, names), spark.createDataFrame(mine, names)
    ).collect()
    assert [tuple(row) for row in found] == [("r", "views", "ok", "violated")]


def test_the_flag_says_that_both_lanes_agree(tmp_path: Path) -> None:
    write_jsonl(trace(TRACE), tmp_path / "trace.jsonl")
    done = CliRunner().invoke(app, ["verify", str(tmp_path), "--cross-check"])
    assert done.exit_code == 0, done.output
    assert "verdicts judged twice, all equal" in done.output


def test_a_difference_is_a_mistake_of_ours_and_exits_70(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def astray(*_: object, **__: object) -> object:
        return compared({"": OK}, folds("", membership="violated"))

    monkeypatch.setattr(ordercast.pipeline.crosscheck, "cross_check", astray)
    write_jsonl(trace(TRACE), tmp_path / "trace.jsonl")
    done = CliRunner().invoke(app, ["verify", str(tmp_path), "--cross-check"])
    assert done.exit_code == OUR_MISTAKE
    assert "membership: the kernels say ok, Spark SQL says violated" in done.output
