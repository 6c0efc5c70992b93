"""`ordercast verify --map`: what is wrong with a mapping is told before Spark starts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ordercast.cli.app import app

EXAMPLE = Path(__file__).parents[2] / "examples" / "foreign" / "app-logs"


def test_a_mapping_that_makes_no_sense_is_bad_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ordercast.pipeline.verdict", None)  # cannot be imported
    text = (EXAMPLE / "mapping.toml").read_text()
    (tmp_path / "mapping.toml").write_text(text.replace('message = "msg_id"', 'mesage = "msg_id"'))
    words = ["verify", "--map", str(tmp_path / "mapping.toml"), str(EXAMPLE)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2
    told = " ".join(done.output.split())
    assert "[columns] has the unknown key 'mesage'; did you mean 'message'?" in told


@pytest.mark.xdist_group("spark")
def test_what_became_of_the_rows_is_told_beside_the_verdicts() -> None:
    words = ["verify", "--map", str(EXAMPLE / "mapping.toml"), str(EXAMPLE), "--expect", "causal"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 1
    assert (
        "34 of 45 rows are events (22 deliver, 11 send, 1 drop), and 1 declared group; 11 ignored"
        in done.stderr
    )
    _, heading, witness = done.stdout.partition("Causal order was broken once (causal.global):\n")
    assert heading and witness.startswith("  shipping delivers 0b7e0007 before 0b7e0006")
