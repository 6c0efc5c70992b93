"""`ordercast calibrate`, and a simulated run that takes the time it found."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from ordercast.cli.app import app
from ordercast.simulation import read_costs


def test_a_calibration_is_a_cost_model_that_a_simulated_run_takes(tmp_path: Path) -> None:
    file, run = tmp_path / "costs.json", tmp_path / "run.jsonl"
    asked = ["calibrate", "--protocol", "sequencer_pb", "--messages", "30", "--out", str(file)]
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 0, done.output
    assert "mean error of the fit" in done.output
    costs = read_costs(file)
    assert costs.receive_us > 0 and costs.destination_us > 0
    found = json.loads(file.read_text())
    assert found["protocols"] == ["sequencer_pb"] and found["steps"] > 1000
    asked = ["simulate", "--protocol", "sequencer_pb", "--out", str(run), "--json"]
    figures = json.loads(CliRunner().invoke(app, [*asked, "--costs", str(file)]).stdout)
    assert figures["throughput_per_s"] > 0 and 0 < figures["busiest_process"] < 1
    assert "throughput_per_s" not in json.loads(CliRunner().invoke(app, asked).stdout)


def test_a_protocol_that_is_not_built_and_a_file_that_is_not_there_are_bad_input(
    tmp_path: Path,
) -> None:
    wrong = CliRunner().invoke(app, ["calibrate", "--protocol", "pigeon", "--out", str(tmp_path)])
    assert wrong.exit_code == 2 and "pigeon" in wrong.output
    asked = ["simulate", "--protocol", "vector", "--out", "x.jsonl", "--costs", "none.json"]
    missing = CliRunner().invoke(app, asked)
    assert missing.exit_code == 2 and "ordercast calibrate" in missing.output
