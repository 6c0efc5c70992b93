"""docs/TABLES.md is true: its command, its Python and its queries do what it says."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from notation import trace
from ordercast.cli.app import app
from ordercast.pipeline.tables import TABLES
from ordercast.pipeline.tables.files import LONGEST_NAME
from ordercast.pipeline.tables.write import RUNS_EACH
from ordercast.trace.schema import Event
from ordercast.trace.write import write_parquet

pytestmark = pytest.mark.xdist_group("spark")

PAGE = (Path(__file__).parents[2] / "docs" / "TABLES.md").read_text()
GOOD = "group g: p,q\np: send a g; send b g; deliver a g; deliver b g; end\n"
KEPT = GOOD + "q: deliver a g; deliver b g; end"
SWAPPED = GOOD + "q: deliver b g; deliver a g; end"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def timed(text: str, run: str, protocol: str, tick: int) -> list[Event]:
    """A run with one event per `tick`, and an order declared."""
    promise = {"order": "fifo", "protocol": protocol, "scope": "group"}
    return [
        replace(event, **promise) if event.kind == "group" else replace(event, time=place * tick)
        for place, event in enumerate(trace(text, run=run))
    ]


@pytest.fixture(scope="module")
def asked(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the command says of one run, then of two, and what the page's code says."""
    folder = tmp_path_factory.mktemp("page")
    told: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        words = shlex.split(blocks("sh")[0])[1:]
        runs = {"007": timed(KEPT, "007", "slow", 10**6), "late": timed(SWAPPED, "late", "fast", 7)}
        for run, events in runs.items():
            write_parquet(events, Path("traces"))
            told[run] = CliRunner().invoke(app, [*words, "--json"])
        told["direct"] = CliRunner().invoke(app, ["verify", "traces", "--json"])
        told["python"] = {"spark": spark}
        exec(blocks("python")[0], told["python"])
        told["queries"] = [spark.sql(query).collect() for query in blocks("sql")]
    return told


def test_the_command_judges_what_is_new_and_tells_of_all(asked: dict[str, Any]) -> None:
    first, second, direct = asked["007"], asked["late"], asked["direct"]
    assert "judged 1 new run, kept 0" in first.stderr
    assert "judged 1 new run, kept 1" in second.stderr
    assert (first.exit_code, second.exit_code) == (0, 1)
    assert json.loads(second.stdout) == json.loads(direct.stdout)
    assert [run["run"] for run in json.loads(second.stdout)["runs"]] == ["007", "late"]


def test_the_python_of_the_page_finds_nothing_new(asked: dict[str, Any]) -> None:
    summary = asked["python"]["summary"]
    assert (summary.judged, summary.kept) == ((), ("007", "late"))


def test_the_queries_of_the_page_answer_its_questions(asked: dict[str, Any]) -> None:
    worst, broken, history = asked["queries"]
    assert [(row["protocol"], row["run"]) for row in worst] == [("slow", "007"), ("fast", "late")]
    assert worst[0]["worst_ms"] == 5.0
    assert [row["run"] for row in broken] == ["late"]
    assert json.loads(broken[0]["witness"])["messages"] == ["a", "b"]
    assert [(row["runs"], row["violated"], row["undecided"]) for row in history] == [(2, 1, 0)]


def test_the_page_shows_every_table_and_limit() -> None:
    [folder] = blocks("text")
    assert re.findall(r"^  (\w+)/run=NAME/", folder, re.MULTILINE) == list(TABLES)
    assert f"over {LONGEST_NAME} bytes" in PAGE
    assert f"written {RUNS_EACH:,} at a time" in PAGE
