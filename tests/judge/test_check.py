"""`ordercast check` and `assert_order`: the judge in this process, without Spark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from notation import trace
from ordercast.cli import app as command_line
from ordercast.errors import TraceError, TraceTooLarge
from ordercast.judge.check import bytes_to_judge, check_paths
from ordercast.judge.figures import Figures
from ordercast.simulation.config import SimulationConfig
from ordercast.simulation.run import simulate
from ordercast.testing import assert_order
from ordercast.trace.write import write_jsonl, write_parquet

SWAPPED = """
group g: p,q
p: send a g; send b g; deliver a g; deliver b g; end
q: deliver b g; deliver a g; end
"""
CUT = "group g: p,q,r\np: send a g; deliver a g\nq: deliver a g; end"

WITHOUT_SPARK = """
import sys
sys.modules["pyspark"] = None  # whoever imports it gets an ImportError
from ordercast.cli.app import main
try:
    main()
finally:
    loaded = {name.partition(".")[0] for name, module in sys.modules.items() if module}
    print(loaded & {"pyspark", "py4j"}, file=sys.stderr)
"""


@pytest.fixture
def simulated(tmp_path: Path) -> Path:
    """A run of ours at protocol level, as a recorder would have written it."""
    config = SimulationConfig(members=4, messages=30, seed=3, protocol="cbcast", trace="protocol")
    write_parquet(simulate(config).events(), tmp_path / "simulated")
    return tmp_path / "simulated"


def swapped(tmp_path: Path) -> Path:
    write_jsonl(trace(SWAPPED), tmp_path / "swapped.jsonl")
    return tmp_path / "swapped.jsonl"


def test_the_command_needs_no_spark(tmp_path: Path, simulated: Path) -> None:
    arguments = ["check", str(simulated), "--report", str(tmp_path / "report.html")]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_SPARK, *arguments],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "set()\n")
    assert "causal" in done.stdout
    assert "<svg" in (tmp_path / "report.html").read_text("utf-8")


@pytest.mark.parametrize(("expect", "code"), [("fifo", 1), ("no_creation", 0), ("views", 3)])
def test_the_exit_code_is_that_of_verify(tmp_path: Path, expect: str, code: int) -> None:
    arguments = ["check", str(swapped(tmp_path)), "--expect", expect, "--json"]
    done = CliRunner().invoke(command_line.app, arguments)
    assert done.exit_code == code, done.output
    assert msgspec.json.decode(done.stdout)["exit_code"] == code


def test_what_cannot_be_read_is_told_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text('{"process": "p"\n', encoding="utf-8")
    done = CliRunner().invoke(command_line.app, ["check", str(tmp_path / "bad.jsonl")])
    assert done.exit_code == 2
    with pytest.raises(TraceError, match=r"bad\.jsonl:1"):
        check_paths([tmp_path / "bad.jsonl"])


def test_without_figures_the_verdicts_are_the_same(simulated: Path) -> None:
    with_figures, without = check_paths([simulated]), check_paths([simulated], figures=False)
    (one,), (other,) = with_figures.runs, without.runs
    assert one.figures.groups and other.figures == Figures()
    assert (one.table, one.expected, one.facts) == (other.table, other.expected, other.facts)


@pytest.mark.parametrize(("part_bytes", "parts"), [(1, 2), (1 << 20, 1)])
def test_large_runs_are_read_one_at_a_time_and_small_ones_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part_bytes: int, parts: int
) -> None:
    for name in ("one", "two"):
        write_parquet(trace(SWAPPED, run=name), tmp_path)
    monkeypatch.setattr("ordercast.judge.check.PART_BYTES", part_bytes)
    steps: list[str] = []
    outcome = check_paths([tmp_path], say=steps.append)
    assert [run.run for run in outcome.runs] == ["one", "two"]
    assert sum(step.startswith("reading") for step in steps) == parts
    assert steps[-1] == ("measuring 9 events (2 of 2)" if parts == 2 else "measuring 18 events")


def test_what_would_not_fit_into_memory_is_refused_before_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "large.jsonl").write_text("no trace at all\n" * 1000, encoding="utf-8")
    with pytest.raises(TraceTooLarge, match=r"`ordercast verify` judges it with Spark"):
        check_paths([tmp_path], free_bytes=100_000)


def test_rows_and_bytes_are_counted_without_reading_them(simulated: Path, tmp_path: Path) -> None:
    (parquet,) = simulated.rglob("*.parquet")
    (run,) = check_paths([simulated], figures=False).runs
    assert bytes_to_judge(parquet) >= 100 * run.facts.events
    assert bytes_to_judge(swapped(tmp_path)) >= 8 * 100


# -- in a test of one's own -----------------------------------------------------------------------


def test_an_order_that_held_is_asserted(simulated: Path) -> None:
    assert_order(simulated)
    assert_order([simulated], "causal", "no_duplication")


def test_an_order_that_was_broken_fails_with_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(AssertionError) as failed:
        assert_order(swapped(tmp_path), "fifo")
    first, sentence, *_ = str(failed.value).splitlines()
    assert first == "run '': fifo.global is violated (asked for)"
    assert sentence == "  q delivers b before a, but p sent a before b"


def test_what_is_not_decided_fails_too(tmp_path: Path) -> None:
    write_jsonl(trace(CUT), tmp_path / "cut.jsonl")
    with pytest.raises(AssertionError, match="agreement is inconclusive"):
        assert_order(tmp_path, "agreement")
    with pytest.raises(AssertionError, match="agreement is violated"):
        assert_order(tmp_path, "agreement", quiescent=True)


# -- the command line -----------------------------------------------------------------------------


def test_only_the_command_that_is_called_is_imported() -> None:
    script = (
        "import sys; from ordercast.cli.app import application; application(['check', 'x']);"
        "print([name for name in sys.modules if name in ('ordercast.runtime.node', 'asyncio')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_every_command_is_where_the_table_says() -> None:
    listed = CliRunner().invoke(command_line.app, ["--help"], env={"COLUMNS": "100"}).stdout
    for name in command_line.COMMANDS:
        assert f" {name} " in listed
        alone = CliRunner().invoke(command_line.application([name]), [name, "--help"])
        assert alone.exit_code == 0, alone.output


def test_a_command_that_is_not_there_is_told_with_the_nearest() -> None:
    done = CliRunner().invoke(command_line.application(["chek"]), ["chek"])
    assert done.exit_code == 2 and "Did you mean" in done.output
