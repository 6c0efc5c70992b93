"""Text of others, and how commands end."""

from __future__ import annotations

import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from ordercast.cli import app as app_module
from ordercast.cli import sweep
from ordercast.cli.app import app, main
from ordercast.cli.exits import errors_as_exits, escape
from ordercast.errors import ConfigError, JoinTimeout, NodeEnded, PeerError, UsageError


def test_the_text_of_others_is_neither_markup_nor_a_command_to_the_terminal():
    assert escape("[red]x[/]") == "\\[red]x\\[/]"
    assert escape("\x1b[2J") == "\\x1b\\[2J"


def test_ctrl_c_ends_with_130_and_one_word(capsys):
    with pytest.raises(typer.Exit) as end, errors_as_exits():
        raise KeyboardInterrupt
    assert end.value.exit_code == 130
    assert capsys.readouterr().err.strip() == "interrupted"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (JoinTimeout.__new__(JoinTimeout, "nobody answers"), 4),
        (NodeEnded("the node has ended"), 4),
        (PeerError("it speaks another version"), 4),
        (ConnectionRefusedError("refused"), 4),
        (TimeoutError(), 4),
        (UsageError("that cannot be"), 2),
        (ConfigError("window_bytes=-1"), 2),
        (ValueError("no number"), 2),
        (FileNotFoundError("no such file"), 2),
    ],
    ids=lambda one: type(one).__name__,
)
def test_an_error_ends_a_command_with_the_code_of_its_kind(error, code, capsys):
    with pytest.raises(typer.Exit) as end, errors_as_exits():
        raise error
    assert end.value.exit_code == code
    assert (str(error) or type(error).__name__) in capsys.readouterr().err


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [
        ({"kept": 3}, 0),
        ({"kept": 3, "undecided": 1}, 3),
        ({"kept": 3, "violated": 1}, 1),
        ({"kept": 3, "failed": 1}, 1),
        ({"undecided": 1, "violated": 1}, 1),
        ({"undecided": 1, "failed": 1}, 1),
    ],
    ids=str,
)
def test_a_sweep_ends_with_the_code_of_its_worst_run(verdicts, code):
    assert sweep._exit_code(verdicts) == code


def test_a_package_that_is_not_installed_is_named_with_the_way_to_get_it(capsys):
    with pytest.raises(typer.Exit) as end, errors_as_exits():
        raise ModuleNotFoundError("no", name="pyspark.sql")
    assert end.value.exit_code == 2
    assert "needs pyspark; install the extra 'pipeline'" in capsys.readouterr().err


def test_a_mistake_of_ours_does_not_look_like_a_verdict(monkeypatch, capsys):
    def broken(arguments: list[str]) -> None:
        raise RuntimeError("unforeseen")

    monkeypatch.setattr(app_module, "application", broken)
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 70
    assert "unforeseen" in capsys.readouterr().err


def test_verify_refuses_what_is_no_spark_master_before_spark_starts():
    done = CliRunner().invoke(app, ["verify", "x.csv", "--master", "bogus"])
    assert done.exit_code == 2
    assert "no Spark master" in done.stderr


def test_verify_refuses_a_report_in_a_folder_that_is_not_there_before_spark_starts():
    done = CliRunner().invoke(app, ["verify", "x.csv", "--report", "/nowhere/r.html"])
    assert done.exit_code == 2
    assert "there is no folder" in done.stderr


def test_verify_refuses_a_folder_as_report_before_spark_starts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    done = CliRunner().invoke(app, ["verify", "x.csv", "--report", "empty"])
    assert done.exit_code == 2
    said = "--report empty: is a folder; name a file, for example empty/report.html"
    assert said in done.stderr.replace("\n", " ")


@pytest.mark.parametrize("said", ["print('x' * 10**6)", "print('x', flush=True)"])
def test_a_command_whose_reader_is_gone_does_not_go_on(said):
    program = (
        "import sys; from ordercast.cli.exits import a_lost_reader_ends_it\n"
        "sys.stdin.read()\n"
        f"with a_lost_reader_ends_it(): {said}; sys.stderr.write('it went on')"
    )
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen([sys.executable, "-c", program], **pipes) as process:
        process.stdout.close()
        process.stdin.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=60) == 141


@pytest.mark.parametrize("words", [["protocols"], ["protocols", "--json"], ["--help"]])
def test_a_reader_that_goes_away_is_no_verdict_and_no_traceback(words):
    command = [sys.executable, "-c", "from ordercast.cli.app import main; main()", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        said = process.stderr.read()
        assert process.wait(timeout=60) == 141
    assert said == b""
