"""The experiments in their quick form, and the results in the repository."""

from __future__ import annotations

import re
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from experiments import results
from experiments.catalogue import EXPERIMENTS
from experiments.claims import Claim, calibrated, caption, markdown_table
from experiments.drawing import Axis, Bars, Figure, Line, Lines, svg
from experiments.results import FOLDER, RESULTS, draw_experiment
from experiments.rows import against, middle, only
from ordercast.cli import sweep as command
from ordercast.cli.app import app
from ordercast.experiments import read_plan, read_runs
from ordercast.experiments.sweep import run_sweep

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "EXPERIMENTS.md").read_text()


@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_quick_form_of_every_experiment_has_a_figure_and_says_something(
    name: str, spark: SparkSession, tmp_path: Path
) -> None:
    plan = read_plan(FOLDER / f"{name}.toml", quick=True)
    summary = run_sweep(lambda: spark, plan, tmp_path / "out")
    assert summary.verdicts == {"kept": len(plan.runs)}, summary.first_bad
    table = tmp_path / "out" / "runs.parquet"
    [drawn] = draw_experiment(name, table, tmp_path, png=False)
    texts = ["".join(one.itertext()) for one in ET.parse(drawn).iter() if one.tag.endswith("text")]
    said = " ".join(texts)
    assert EXPERIMENTS[name].TITLE in texts
    assert "seed" in said and "PySpark" in said and "Costs of work:" in said
    shutil.copy(table, tmp_path / f"{name}.parquet")
    page = results.page(tmp_path)
    assert page.count("**Does it hold?**") == len(EXPERIMENTS[name].claims(read_runs(table)[0]))


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_table_in_the_repository_is_of_the_plan_and_every_run_was_kept(name: str) -> None:
    plan = read_plan(FOLDER / f"{name}.toml")
    rows, about = read_runs(RESULTS / f"{name}.parquet")
    found = {(row["protocol"], row["members"], row["loss"], row["seed"]) for row in rows}
    assert found == {(run.protocol, run.members, run.loss, run.seed) for run in plan.runs}
    assert len(rows) == len(plan.runs) == about["runs"]
    assert {row["verdict"] for row in rows} == {"kept"}
    for suffix in ("svg", "png"):
        assert (RESULTS / f"{name}.{suffix}").exists()


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_figure_in_the_repository_is_drawn_from_the_table(name: str, tmp_path: Path) -> None:
    [drawn] = draw_experiment(name, RESULTS / f"{name}.parquet", tmp_path, png=False)
    assert drawn.read_text() == (RESULTS / f"{name}.svg").read_text()


@pytest.mark.xdist_group("spark")
def test_the_commands_and_the_program_of_the_page_work(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    [plan] = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    [program] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "plan.toml").write_text(plan)
    shutil.copy(FOLDER / "costs" / "cbcast.json", tmp_path / "costs.json")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "session_on", _SessionOn(spark))
    _, *words = re.findall(r"```sh\n(ordercast .*?)\n", PAGE)[0].split()
    with pytest.raises(SystemExit) as ended:
        app(words)
    assert ended.value.code == 0
    assert "16 runs: 16 kept; ran 16, 0 were finished" in capsys.readouterr().out
    exec(program, {})
    assert re.match(r"cbcast: \d+\.\d\d ms\nagreed: \d+\.\d\d ms\n", capsys.readouterr().out)


class _SessionOn:
    """In the place of a session of its own: the one that all tests share."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark

    def __call__(self, *_: object) -> _SessionOn:
        return self

    def __enter__(self) -> object:
        return lambda: self.spark

    def __exit__(self, *_: object) -> None:
        pass


# -- the parts -----------------------------------------------------------------------------------


def test_medians_are_over_the_rows_that_fit() -> None:
    rows = [{"n": n, "seed": s, "ms": n * 10 + s} for n in (2, 4) for s in (0, 1, 5)]
    assert middle(rows, "ms", n=4) == 41
    assert middle(rows, lambda row: row["ms"] / 2, n=(2, 4), seed=0) == 15
    assert against(rows, "n", "ms") == [(2, 21, 20, 25), (4, 41, 40, 45)]
    assert len(only(rows, n=2, seed=(0, 1))) == 2
    with pytest.raises(ValueError, match="is that in the plan"):
        middle(rows, "ms", n=3)


def test_an_axis_has_powers_of_ten_where_values_lie_far_apart() -> None:
    assert Axis([1, 1000], 0, 300).marks() == [1, 10, 100, 1000]
    assert Axis([1, 1000], 0, 300).place(10) == 100
    assert not Axis([0, 1000], 0, 300).powers
    assert Axis([0, 10], 0, 102).place(5) == pytest.approx(50)


def test_an_axis_by_powers_of_ten_has_room_for_nothing_at_all() -> None:
    axis = Axis([0, 1, 100], 0, 300, zero=True)
    assert axis.marks() == [0, 1, 10, 100]
    assert [axis.place(v) for v in axis.marks()] == [0, 100, 200, 300]


def test_a_figure_says_which_scale_it_has_and_which_line_lies_under_another() -> None:
    points = [(100, 1, 1, 1), (10_000 / 3, 100, 90, 110)]
    panel = Lines("t", "per s", "ms", [Line("a", points), Line("b", points), Line("c", points[:1])])
    drawn = svg(Figure("title", [panel]))
    texts = ["".join(one.itertext()) for one in ET.fromstring(drawn) if one.tag.endswith("text")]
    assert {"a", "under b", "b", "c", "ms (log scale)", "per s (log scale)", "3,333"} <= {*texts}


def test_a_figure_shows_every_line_and_says_what_is_not_told() -> None:
    lines = Lines(
        "t", "x in s", "y in B", [Line("a & b", [(1, 2, 1, 3)]), Line("c", [(2, 9, 9, 9)])]
    )
    bars = Bars("u", "ms", ["p", "q"], {"one": [1.0, None], "two": [2.0, 3.0]})
    drawn = svg(Figure("title", [lines, bars], ["caption"]))
    texts = ["".join(one.itertext()) for one in ET.fromstring(drawn) if one.tag.endswith("text")]
    assert {"title", "a & b", "c", "x in s", "y in B", "p", "q", "not told", "caption"} <= {*texts}


def test_a_caption_says_when_a_run_was_not_kept() -> None:
    about = {
        "runs": 2,
        "seeds": [0],
        "code": {"basic": "ab"},
        "versions": {"ordercast": "1", "python": "3", "pyspark": "4"},
        "calibrations": {},
    }
    rows = [{"verdict": "kept"}, {"verdict": "violated"}]
    first, second = caption(about, rows, "means")
    assert "1 of them not kept" in first and "seed 0: means." in first
    assert "Work takes no time" in second


def test_a_caption_does_not_call_made_up_costs_calibrated() -> None:
    measured = {"machine": {"system": "Linux", "when": "2026-01-02T03:04"}}
    made_up = {"machine": {"system": "as the source counts"}}
    assert "calibrated on Linux, 2026-01-02" in calibrated({"calibrations": {"": measured}})
    assert calibrated({"calibrations": {"": made_up}}) == "Costs of work: as the source counts."


def test_a_claim_that_does_not_hold_says_why() -> None:
    said = results.told(Claim("c", "w", "m", "no", "because"))
    assert said.endswith("**Does it hold?** No.\n\n**Why not.** because")


def test_numbers_of_a_table_stand_to_the_right() -> None:
    table = markdown_table(["name", "n"], [["`a`", 1234.5], ["`b`", 2.0]])
    assert table.splitlines()[1:] == ["| --- | ---: |", "| `a` | 1,234 |", "| `b` | 2.00 |"]
