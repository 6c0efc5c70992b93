"""docs/WHY.md is true: its program and its commands print what it says."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import get_args

import msgspec

from ordercast.core.waiting import IN_WORDS, Missing
from ordercast.runtime.held_back import HeldBack
from ordercast.trace.holds import HoldNote

PAGE = (Path(__file__).parents[2] / "docs" / "WHY.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def run(command: list[str], folder: Path) -> str:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True,
        timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def without_figures(text: str) -> str:
    return re.sub(r"for [\d.]+( to [\d.]+)? s", "for a while", text.strip())


def test_the_program_prints_why_its_message_waits(tmp_path) -> None:
    [program] = blocks("python")
    printed = run([sys.executable, "-c", program], tmp_path)
    assert without_figures(printed) == without_figures(blocks("text")[0])


def test_the_commands_tell_the_story_of_the_page(tmp_path) -> None:
    [commands] = blocks("sh")
    for command in commands.strip().splitlines():
        printed = run(shlex.split(command), tmp_path)
    assert printed.strip() == blocks("text")[1].strip()


def test_everything_that_can_be_awaited_stands_in_the_table() -> None:
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| [^|]+ \|$", PAGE, re.MULTILINE)
    assert sorted(rows) == sorted(get_args(Missing)) == sorted(IN_WORDS)


def test_every_field_that_is_public_stands_on_the_page() -> None:
    for shape in (HeldBack, HoldNote):
        for field in msgspec.structs.fields(shape):
            assert f"`{field.name}`" in PAGE
