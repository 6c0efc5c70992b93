"""`ordercast verify` and `ordercast demo`, with real Spark."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ordercast.cli.app import app
from ordercast.trace.schema import PROPERTIES

pytestmark = pytest.mark.xdist_group("spark")

HEAD = "process,index,kind,message,group,sender,order,protocol,scope,members\n"
GOOD = HEAD + (
    ",,group,,g,,fifo,hand,group,a|b\n"
    "a,1,send,m1,g,,,,,\na,2,deliver,m1,g,a,,,,\na,3,send,m2,g,,,,,\na,4,deliver,m2,g,a,,,,\n"
    "a,5,end,,,,,,,\nb,1,deliver,m1,g,a,,,,\nb,2,deliver,m2,g,a,,,,\nb,3,end,,,,,,,\n"
)
SWAPPED = GOOD.replace("b,1,deliver,m1", "b,1,deliver,m2").replace(
    "b,2,deliver,m2", "b,2,deliver,m1"
)


@pytest.fixture
def trace(tmp_path):
    def write(text: str, name: str = "trace.csv") -> str:
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return write


def verify(*words: str):
    return CliRunner().invoke(app, ["verify", *words])


def test_a_good_trace_exits_0_and_reports_exactly_the_32_properties(trace):
    done = verify(trace(GOOD), "--json")
    assert done.exit_code == 0, done.output
    [run] = json.loads(done.stdout)["runs"]
    assert list(run["verdicts"]) == list(PROPERTIES)
    assert run["violations"] == []
    assert set(run["verdicts"].values()) <= {"ok", "violated", "inconclusive", "n/a"}


def test_a_broken_promise_exits_1_with_a_witness(trace, tmp_path):
    report = tmp_path / "report.html"
    done = verify(trace(SWAPPED), "--json", "--report", str(report))
    assert done.exit_code == 1, done.output
    [run] = json.loads(done.stdout)["runs"]
    [violation] = [one for one in run["violations"] if one["property"] == "fifo.group"]
    assert all(f'"{name}"' in json.dumps(violation["witness"]) for name in ("b", "m1", "m2"))
    page = report.read_text()
    assert "<svg" in page and "http://" not in page.replace("http://www.w3.org", "")


def test_what_was_not_declared_does_not_change_the_exit_code(trace, tmp_path):
    lines = SWAPPED.replace(",,group,,g,,fifo,hand,group,a|b\n", "")
    done = verify(trace(lines), "--report", str(tmp_path / "r.html"))
    assert done.exit_code == 0, done.output
    assert "not part of the declared order" in done.stdout and "fifo.group" in done.stdout
    page = (tmp_path / "r.html").read_text()
    # A protocol may promise more than its order: the trace does not tell.
    assert "not part of what was expected" in page
    assert "nobody promised" not in page + done.stdout


def test_a_report_is_offered_only_to_who_did_not_ask_for_one(trace, tmp_path):
    path = trace(SWAPPED)
    assert "--report FILE.html draws them, --json has" in verify(path).stdout
    asked = verify(path, "--report", str(tmp_path / "r.html")).stdout
    assert "  --json has them as data" in asked and "FILE.html" not in asked


def test_two_runs_of_one_name_are_suspected_where_indexes_are_equal(trace, tmp_path):
    trace(GOOD)
    trace(GOOD.replace("m1", "m3").replace("m2", "m4"), "again.csv")
    said = "Were several runs of one name read together?"
    assert said in verify(str(tmp_path)).stdout
    assert said not in verify(trace(SWAPPED)).stdout


def test_expect_takes_orders_and_properties(trace):
    path = trace(SWAPPED)
    assert verify(path, "--expect", "agreement").exit_code == 0
    assert verify(path, "--expect", "fifo").exit_code == 1
    assert verify(path, "--expect", "agreement", "--expect", "total.group").exit_code == 1


def test_a_cut_log_is_inconclusive_unless_it_is_called_quiescent(trace):
    cut = trace(GOOD.replace("b,2,deliver,m2,g,a,,,,\nb,3,end,,,,,,,\n", ""))
    assert verify(cut, "--expect", "agreement").exit_code == 3
    assert verify(cut, "--expect", "agreement", "--quiescent").exit_code == 1


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        ("process,index,kind,message\na,1,send,m\n", "t.csv", "group"),
        (GOOD.replace("a,1,send", "a,one,send"), "t.csv", "index"),
        (GOOD.replace("a,1,send", "a,1,shout"), "t.csv", "shout"),
        ('{"process": "a", "index": 1, "kind"', "t.jsonl", "t.jsonl:1"),
        ("not parquet", "t.parquet", "t.parquet"),
        ("", "t.csv", "t.csv"),
    ],
)
def test_a_trace_that_cannot_be_read_exits_2_and_says_where(text, name, said, trace):
    done = verify(trace(text, name))
    assert done.exit_code == 2, done.output
    assert said in done.stderr.replace("\n", "")


def test_a_path_that_is_not_there_exits_2(tmp_path):
    done = verify(str(tmp_path / "nowhere.csv"))
    assert done.exit_code == 2
    assert "nowhere.csv" in done.stderr.replace("\n", "")


def test_an_unknown_expectation_exits_2_with_the_nearest_name(trace):
    done = verify(trace(GOOD), "--expect", "casual")
    assert done.exit_code == 2
    assert "did you mean 'causal'" in done.stderr


def test_the_demo_kills_a_broker_and_a_sequencer_and_every_guarantee_holds(tmp_path):
    ordercast = str(Path(sys.executable).parent / "ordercast")
    done = subprocess.run(
        [ordercast, "demo", "--out", str(tmp_path), "--messages", "60"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told = re.search(
        r"kill -9 of broker dora.*CMC moves from (\S+) to (\S+), .*kill -9 of (\S+), which numbers",
        done.stdout,
        re.DOTALL,
    )
    assert told and told[1] != told[2]  # by the time of the kill it may have moved again by itself
    assert "all who are left have equal boards" in done.stdout
    assert re.search(r"[1-9]\d* sales seen, 0 of them before their reason", done.stdout)
    assert (tmp_path / "report.html").stat().st_size > 10_000
    again = CliRunner().invoke(app, ["verify", str(tmp_path / "traces"), "--json"])
    [run] = json.loads(again.stdout)["runs"]
    assert again.exit_code == 0
    declared = "declared: hybrid by sequencing_hybrid (domain scope): CMC, chips, copper, oil"
    across = [one for one in run["expected"] if one["property"] == "hybrid.kindberg"]
    assert [one["because"] for one in across] == [declared]


def test_the_demo_does_not_delete_a_folder_that_is_not_its_own(tmp_path):
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "thesis.txt").write_text("precious")
    done = CliRunner().invoke(app, ["demo", "--out", str(tmp_path)])
    assert done.exit_code == 2
    assert (tmp_path / "traces" / "thesis.txt").read_text() == "precious"
