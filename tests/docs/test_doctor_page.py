"""docs/DOCTOR.md is true: its program and command print what it says, and nothing is missing."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import typer

from ordercast.cli.app import app
from ordercast.runtime.diagnosis.catalogue import CATALOGUE

PAGE = (Path(__file__).parents[2] / "docs" / "DOCTOR.md").read_text()
ORDERCAST = str(Path(sys.executable).parent / "ordercast")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_command_begins_with_what_the_page_shows() -> None:
    [command] = blocks("sh")
    words = command.split()
    assert words[0] == "ordercast"
    done = subprocess.run([ORDERCAST, *words[1:]], capture_output=True, text=True, timeout=120)
    assert done.returncode == 4
    assert done.stdout.startswith(blocks("text")[0])


def test_the_program_prints_what_the_page_shows() -> None:
    [program] = blocks("python")
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.stdout == blocks("text")[1], done.stderr


def test_every_finding_stands_in_the_table_in_its_order() -> None:
    rows = re.findall(r"^\| `(\w+)` \|.*\|.*\|.*\|$", PAGE, re.MULTILINE)
    assert rows == list(CATALOGUE)


def test_every_option_stands_on_the_page() -> None:
    command = typer.main.get_command(app).commands["doctor"]
    options = [name for one in command.params if not one.hidden for name in one.opts]
    assert [name for name in options if name.startswith("--") and name not in PAGE] == []
