"""`--help` says what the docs say: every setting is explained in one place."""

from __future__ import annotations

import pytest
import typer

from ordercast.cli.app import app
from ordercast.cli.meanings import OF_DAEMONS, OF_NODES

COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]


def helps_of(command: str) -> dict[str, str]:
    return {one.name: getattr(one, "help", None) or "" for one in COMMANDS[command].params}


@pytest.mark.parametrize("command", ["node", "sequencer"])
def test_the_flags_of_a_daemon_are_explained_as_its_settings_are(command: str) -> None:
    told = helps_of(command)
    shared = (told.keys() & OF_DAEMONS.keys()) - {"key"}
    assert len(shared) > 10
    assert [name for name in shared if not told[name].startswith(OF_DAEMONS[name])] == []


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("chat", ["bind", "insecure"]),
        ("doctor", ["cluster", "heartbeat_ms", "suspect_ms", "insecure"]),
        ("status", ["insecure"]),
    ],
)
def test_options_of_a_node_are_explained_alike_by_every_command(
    command: str, options: list[str]
) -> None:
    told = helps_of(command)
    assert [name for name in options if told[name] != OF_NODES[name]] == []


def test_a_terminal_is_shown_no_marks_of_markdown() -> None:
    assert [text for text in (*OF_NODES.values(), *OF_DAEMONS.values()) if "`" in text] == []
