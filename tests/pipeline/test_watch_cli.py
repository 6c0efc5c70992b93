"""`ordercast watch`: what it refuses before Spark is started, and how it ends."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from rich.status import Status as Spinner
from typer.testing import CliRunner

from ordercast.cli.app import app
from ordercast.cli.watch import _follow_to_the_end, _interrupts, _status_line, _sum_up, milliseconds
from ordercast.pipeline.streaming.journal import JournalEntry, RunStatus, Status
from ordercast.pipeline.streaming.terms import keep_terms
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


def test_the_first_line_says_what_is_watched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_spark(*_: object, **__: object) -> None:
        raise ValueError("no Spark today")

    monkeypatch.setattr("ordercast.pipeline.spark.session.local_session", no_spark)
    said = refused(tmp_path, "--expect", "fifo", "--stable-after", "500ms")
    memory = tmp_path / "_ordercast_watch"
    terms = f"expecting fifo.global, stable after 0.5 s, checkpoint {memory}"
    assert f"watching {tmp_path}, {terms} error: no Spark today" in said


def test_nothing_is_called_absent_before_the_folder_was_looked_at() -> None:
    assert _status_line(Status(), has_begun=False) == "starting Spark ..."
    assert _status_line(Status(), has_begun=True) == "nothing recorded yet, waiting ..."


def refused(folder: Path, *options: str) -> str:
    done = CliRunner().invoke(app, ["watch", str(folder), *options])
    assert done.exit_code == 2
    return done.output.replace("\n", " ")


def test_a_checkpoint_that_judges_something_else_is_refused(tmp_path: Path) -> None:
    memory = tmp_path / "_ordercast_watch"
    keep_terms(memory, ("fifo.global",), 5_000)
    way_out = "; name another --checkpoint, or delete it to begin anew"
    said = f"this checkpoint ({memory}) judges fifo.global{way_out}"
    assert said in refused(tmp_path, "--expect", "total")
    assert said in refused(tmp_path)
    stable = refused(tmp_path, "--expect", "fifo", "--stable-after", "6s")
    assert f"judges with --stable-after 5s{way_out}" in stable


def test_a_checkpoint_that_judges_what_is_declared_is_refused_for_an_order(tmp_path: Path) -> None:
    keep_terms(tmp_path / "memory", (), 5_000)
    said = refused(tmp_path, "--expect", "fifo", "--checkpoint", str(tmp_path / "memory"))
    assert "judges what each run declares; name another" in said


def test_a_checkpoint_goes_on_with_the_same_in_any_order(tmp_path: Path) -> None:
    keep_terms(tmp_path, ("fifo.group", "causal.group"), 5_000)
    keep_terms(tmp_path, ("causal.group", "fifo.group"), 5_000)


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_and_a_polite_kill_end_it_alike(ending: signal.Signals) -> None:
    before = signal.getsignal(ending)
    with _interrupts() as interrupted:
        signal.raise_signal(ending)
        assert interrupted.is_set()
    assert signal.getsignal(ending) is before


class EndedByABadRow:
    """A watcher whose query is over."""

    def check(self) -> None:
        raise ValueError("one.jsonl:8: bad")

    def stop(self) -> None:
        pass

    def news(self) -> Iterator[JournalEntry]:
        return iter(())

    def status(self) -> Status:
        return run(violated=("wellformed",))


def test_a_bad_row_leaves_the_summary_of_what_was_found_before(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(ValueError, match=r"one\.jsonl:8"):
        _follow_to_the_end(
            EndedByABadRow(),  # type: ignore[arg-type]
            False, True, Spinner(""), threading.Event(),
        )  # fmt: skip
    summary = msgspec.json.decode(capsys.readouterr().out)
    assert (summary["kind"], summary["exit_code"]) == ("summary", 2)
    assert summary["runs"][0]["violated"] == ["wellformed"]


def test_the_summary_speaks_of_one_and_of_many_and_leaves_out_what_is_not_there(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _sum_up(run(violated=("wellformed",), overdue=1, waiting_rows=1), 1, as_json=False)
    assert capsys.readouterr().out.splitlines() == [
        "run r: 1 event of 1 process",
        "  violated: the rows of the trace do not contradict one another (wellformed)",
        "  1 delivery overdue",
        "  1 row waits for a send that was not read",
    ]
    _sum_up(run(events=2, processes=3, overdue=4), 3, as_json=False)
    assert capsys.readouterr().out.splitlines() == [
        "run r: 2 events of 3 processes",
        "  no violation seen: the rows of the trace do not contradict one another (wellformed)",
        "  4 deliveries overdue",
    ]
