"""`ordercast explore`: what it prints, its exit codes, and that its page is true."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from ordercast.cli.app import app

PAGE = (Path(__file__).parents[2] / "docs" / "EXPLORE.md").read_text()


def invoke(*words: str) -> Result:
    return CliRunner().invoke(app, ["explore", *words])


def commands() -> list[list[str]]:
    blocks = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    return [shlex.split(line)[2:] for block in blocks for line in block.strip().splitlines()]


def test_the_commands_of_the_page_do_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    vector, link, lost, again = (invoke(*words) for words in commands())
    assert vector.exit_code == link.exit_code == 0
    assert vector.stdout.count("complete") == link.stdout.count("complete") == 3
    assert lost.exit_code == again.exit_code == 1
    (shown,) = re.findall(r"```\n(agreement.*?)```", PAGE, re.DOTALL)
    assert shown in lost.stdout
    assert "p0 delivers m1" in again.stdout
    assert "agreement.uniform: p0 delivered m1, p1 never did." in again.stdout


def test_json_has_the_figures_of_every_script() -> None:
    done = invoke("--protocol", "fifo", "--messages", "2", "--script", "free", "--json")
    assert done.exit_code == 0
    figures = json.loads(done.stdout)["free"]
    assert figures["result"] == "complete"
    assert figures["states"] > 5
    assert figures["outcomes"] == 6  # 2 orders in each of 3 logs, 2 of the 8 impossible
    assert figures["schedule"] is None


def test_a_limit_that_is_reached_is_inconclusive() -> None:
    done = invoke("--protocol", "fifo", "--limit", "10")
    assert done.exit_code == 3
    assert "stopped at 10 states" in done.stdout


def test_pruning_can_be_switched_off() -> None:
    words = ("--protocol", "fifo", "--script", "free", "--json")
    pruned, full = (json.loads(invoke(*words, *more).stdout) for more in ((), ("--no-prune",)))
    assert pruned["free"]["outcomes"] == full["free"]["outcomes"]
    assert pruned["free"]["states"] < full["free"]["states"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "give --protocol, one of basic"),
        (("--protocol", "nope"), "unknown protocol 'nope'; built are basic"),
        (("--protocol", "fifo", "--script", "song"), "unknown script 'song'; there are free"),
        (("--protocol", "fifo", "--messages", "0"), "messages=0 must be at least 1"),
        (("--protocol", "fifo", "--group", "a,b"), "members are numbers with commas, as 0,1,2"),
        (("--protocol", "fifo", "--group", "0,7"), "processes are 0 to 2"),
        (("--protocol", "fifo", "--group", "0,1", "--overlap"), "give only one of the two"),
        (("--protocol", "fifo", "--overlap", "--processes", "2"), "at least 3 processes"),
        (("--protocol", "fifo", "--loss", "1"), "loses nothing; losses are for"),
        (("--protocol", "fifo", "--limit", "0"), "limit=0 must be at least 1"),
        (
            ("--protocol", "fifo", "--expect", "causal"),
            "say one of causal.group, causal.group.uniform",
        ),
        (("--protocol", "fifo", "--expect", "haste"), "known are wellformed"),
        (("--protocol", "fifo", "--limit", "1", "--out", "/nowhere/x.json"), "there is no folder"),
        (("--replay", "nowhere.json"), "No such file"),
        (("--replay", "x.json", "--protocol", "fifo"), "--replay FILE and --protocol: the file"),
        (("--replay", "x.json", "--no-prune"), "--replay FILE and --prune: the file"),
    ],
)
def test_bad_input_is_refused_with_what_would_be_right(words: tuple[str, ...], says: str) -> None:
    done = invoke(*words)
    assert done.exit_code == 2
    assert says in " ".join(done.output.split())


def test_a_replay_that_breaks_nothing_says_so(tmp_path: Path) -> None:
    file = tmp_path / "fine.json"
    words = ("--protocol", "reliable", "--messages", "1", "--crash", "--out", str(file))
    invoke(*words, "--expect", "agreement.uniform")
    schedule = json.loads(file.read_text())
    file.write_text(json.dumps({**schedule, "steps": schedule["steps"][:1]}))
    done = invoke("--replay", str(file))
    assert done.exit_code == 0
    assert "no longer shows anything" in done.stdout
