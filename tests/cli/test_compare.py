"""`ordercast compare`: two simulated runs, a difference of workload, wrong input."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from ordercast.cli.app import app
from ordercast.simulation.config import SimulationConfig
from ordercast.simulation.run import simulate
from ordercast.simulation.workload import all_senders

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.usefixtures("spark")]


def record(folder: Path, protocol: str, *, messages: int = 20, trace: str = "protocol") -> Path:
    config = SimulationConfig(
        protocol=protocol, members=3, messages=messages, workload=all_senders(), loss=0.1,
        trace=trace,  # type: ignore[arg-type]
    )  # fmt: skip
    simulate(config).write(folder)
    return folder


def compare(*words: str | Path) -> Result:
    return CliRunner().invoke(app, ["compare", *map(str, words)])


class Reader(HTMLParser):
    """Collects text, and insists that every element is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.words, self.drawn = "", 0
        self._open: list[str] = []
        self.feed(text)
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.drawn += tag == "svg"
        if tag != "meta":
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data


def test_runs_of_one_name_in_folders_of_a_folder_are_told_apart_by_protocol(
    tmp_path: Path,
) -> None:
    traces = tmp_path / "traces"
    record(traces / "one", "cbcast")
    record(traces / "two", "sequencer_pb")
    page = tmp_path / "page.html"
    done = compare(traces, "--json", "--out", page)
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["differences"] == []
    first, second = told["runs"]
    assert (first["label"], first["run"], first["state"]) == ("cbcast", "seed-0", "kept")
    assert (second["label"], second["orders"]) == ("sequencer_pb", ["total"])
    assert {run["figures"]["whole"]["sends"] for run in told["runs"]} == {20}
    assert {run["figures"]["whole"]["deliveries"] for run in told["runs"]} == {60}
    assert all(run["figures"]["whole"]["packets_received"] > 20 for run in told["runs"])
    read = Reader(page.read_text())
    assert "Same workload" in read.words
    assert all(name in read.words for name in ("cbcast", "sequencer_pb", "Packets", "Sent again"))
    assert "Header bytes" in read.words and "Header bytes in all" in read.words
    assert read.drawn >= 6
    assert "http" not in page.read_text().replace("http-equiv", "")


def test_another_workload_is_told_in_the_terminal_and_on_the_page(tmp_path: Path) -> None:
    one = record(tmp_path / "one", "cbcast", trace="application")
    two = record(tmp_path / "two", "cbcast", messages=15, trace="application")
    page = tmp_path / "page.html"
    done = compare(one, two, "--out", page)
    assert done.exit_code == 0, done.output
    assert "Not the same workload" in done.stdout
    assert "messages sent to g1: two has 15, one: 20" in done.stdout
    assert "no run has rows of a trace at protocol level" in done.stdout
    read = Reader(page.read_text())
    assert "messages sent to g1: two has 15, one: 20" in read.words
    assert "Packets" not in read.words and "Header bytes" not in read.words


def test_a_broken_promise_is_seen(tmp_path: Path) -> None:
    head = "process,index,kind,message,group,order,protocol,scope,members\n"
    log = (
        ",,group,,g,fifo,{name},group,a|b\na,1,send,m1,g,,,,\na,2,send,m2,g,,,,\n"
        "a,3,deliver,m1,g,,,,\na,4,deliver,m2,g,,,,\na,5,end,,,,,,\n"
        "b,1,deliver,{first},g,,,,\nb,2,deliver,{second},g,,,,\nb,3,end,,,,,,\n"
    )
    good, bad = tmp_path / "good.csv", tmp_path / "bad.csv"
    good.write_text(head + log.format(name="careful", first="m1", second="m2"))
    bad.write_text(head + log.format(name="hasty", first="m2", second="m1"))
    told = json.loads(compare(good, bad, "--json").stdout)
    assert {run["label"]: run["state"] for run in told["runs"]} == {
        "careful": "kept", "hasty": "violated",
    }  # fmt: skip
    said, page = "FIFO order within each group was broken once", tmp_path / "page.html"
    assert f"hasty: {said} (fifo.group)" in compare(good, bad, "--out", page).stdout
    assert f"hasty: {said} fifo.group" in Reader(page.read_text()).words


def test_one_run_is_nothing_to_compare(tmp_path: Path) -> None:
    done = compare(record(tmp_path / "one", "cbcast", messages=2, trace="application"))
    assert done.exit_code == 2
    assert "1 run there; a comparison needs two" in done.stderr


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["nowhere"], "nowhere"),
        ([".", "--out", "no/such/folder/page.html"], "there is no folder no/such/folder"),
        ([".", "--out", "."], "--out .: is a folder; name a file, for example comparison.html"),
        ([".", "--master", "cloud"], "'cloud' is no Spark master"),
        ([".", "--conf", "fast"], "not key=value"),
    ],
)
def test_what_is_wrong_is_said_with_exit_code_2(
    words: list[str], reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = compare(*words)
    assert done.exit_code == 2
    assert reason in done.stderr
    assert not list(tmp_path.iterdir())
