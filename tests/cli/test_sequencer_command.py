"""`ordercast sequencer`: settings are shown, or refused, before anything is started."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from ordercast.cli.app import app
from ordercast.cli.exits import console


@pytest.fixture(autouse=True)
def wide_and_without_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "width", 120)
    monkeypatch.delenv("ORDERCAST_CHROMIUM", raising=False)


def invoke(*words: str, **variables: str):
    return CliRunner(env=variables).invoke(app, ["sequencer", *words])


def rows(shown: str) -> dict[str, tuple[str, str]]:
    cells = [line.split("│")[1:4] for line in shown.splitlines() if line.startswith("│")]
    return {key.strip(): (value.strip(), place.strip()) for key, value, place in cells}


def test_check_shows_every_setting_and_where_it_comes_from(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text('listen = "127.0.0.1:7701"\n[node]\nheartbeat_ms = 100\n')
    done = invoke(
        "--check", "--config", str(file), "--bootstrap", "--option", "suspect_ms=900",
        ORDERCAST_LOG_LEVEL="debug",
    )  # fmt: skip
    assert done.exit_code == 0, done.stderr
    shown = rows(done.stdout)
    assert shown["listen"][0] == "127.0.0.1:7701"
    assert shown["log_level"] == ("debug", "$ORDERCAST_LOG_LEVEL")
    assert shown["bootstrap"] == ("True", "--bootstrap")
    assert shown["cluster"] == ("ordercast", "default")
    assert shown["node.heartbeat_ms"][0] == "100"
    assert shown["node.suspect_ms"] == ("900", "--option suspect_ms")
    assert shown["name"][0].endswith("-7701")


def test_the_file_may_be_named_in_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text('bootstrap = true\nname = "s7"\n')
    assert rows(invoke("--check", ORDERCAST_CONFIG=str(file)).stdout)["name"][0] == "s7"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "neither bootstrap nor peers"),
        (["--bootstrap", "--listen", "7700"], "--listen: listen='7700' is not an address"),
        (["--peers", "a:1,b"], "--peers: peers='b' is not an address"),
        (["--bootstrap", "--log-format", "xml"], "--log-format: log_format = 'xml' is wrong"),
        (["--bootstrap", "--option", "hartbeat_ms=1"], "did you mean 'node.heartbeat_ms'?"),
        (["--bootstrap", "--option", "heartbeat_ms"], "write NAME=VALUE, as heartbeat_ms=100"),
        (["--bootstrap", "--key-file", "/nowhere/key"], "/nowhere/key"),
        (["--bootstrap", "--config", "/nowhere/s.toml"], "/nowhere/s.toml"),
        (["--bootstrap", "--tls-cert", "a.pem"], "TLS needs all three"),
    ],
)
def test_wrong_settings_end_it_with_2_before_it_starts(words: list[str], said: str) -> None:
    done = invoke(*words)
    assert done.exit_code == 2
    assert said in done.stderr
