"""`ordercast watch`: what it refuses, before Spark is started."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from ordercast.cli.app import app
from ordercast.cli.watch import milliseconds
from ordercast.pipeline.streaming.journal import RunStatus, Status
from ordercast.pipeline.streaming.watcher import exit_code


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("500ms", 500),
        ("5s", 5_000),
        ("5", 5_000),
        ("0.5s", 500),
        ("2m", 120_000),
        ("1h", 3_600_000),
    ],
)
def test_a_duration_is_read_with_its_unit(text: str, expected: int) -> None:
    assert milliseconds(text) == expected


@pytest.mark.parametrize("text", ["", "soon", "0s", "-1s", "5 days"])
def test_what_is_no_duration_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="for example 500ms, 5s, 2m"):
        milliseconds(text)


def test_wrong_arguments_are_refused_at_once(tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"
    file.write_text("")
    wrong = {
        (str(file),): "watch a folder",
        (str(tmp_path / "none"), "--once"): "there is no folder",
        (str(tmp_path), "--master", "nonsense"): "is no Spark master",
        (str(tmp_path), "--master", "sc://localhost"): "session of its own",
        (str(tmp_path), "--expect", "totl"): "did you mean 'total'",
        (str(tmp_path), "--stable-after", "soon"): "is no duration",
    }
    for arguments, reason in wrong.items():
        done = CliRunner().invoke(app, ["watch", *arguments])
        assert (done.exit_code, reason in done.output.replace("\n", " ")) == (2, True), done.output


def run(**values: object) -> Status:
    plain = RunStatus("r", 1, 1, 0, 0, 0, 0, 0, True, (), ("wellformed",), {})
    fields = {name: getattr(plain, name) for name in plain.__struct_fields__}
    return Status(0, {"r": RunStatus(**{**fields, **values})})  # type: ignore[arg-type]


def test_exit_codes_are_those_of_verify() -> None:
    assert exit_code(run()) == 0
    assert exit_code(run(violated=("wellformed",), overdue=1)) == 1
    assert exit_code(run(overdue=1)) == 3
    assert exit_code(run(doubts={"late rows": 1})) == 3
    assert exit_code(run(waiting_rows=1)) == 3
    assert exit_code(Status()) == 3
