"""What a type checker tells a program that uses the library: which options there are, and of what
type. It sees the library as it is installed, by its `py.typed`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
USES = Path(__file__).with_name("typed_uses.py")
ERROR = re.compile(r"^[^:]+:(\d+): error: (.+)$", re.MULTILINE)
MARK = re.compile(r"  # wrong: (.+)$")


def errors_of_mypy(program: Path, cache: Path) -> dict[int, str]:
    """What it says, by line. What it finds in the library itself is no matter of programs."""
    done = subprocess.run(
        [
            sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent",
            f"--config-file={os.devnull}", f"--cache-dir={cache}", program,
        ],
        env={**os.environ, "MYPYPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return {int(line): text for line, text in ERROR.findall(done.stdout)}


def test_mypy_refuses_each_wrong_use_of_an_option_and_no_right_one(tmp_path: Path) -> None:
    lines = enumerate(USES.read_text().splitlines(), 1)
    wanted = {number: mark[1] for number, line in lines if (mark := MARK.search(line))}
    said = errors_of_mypy(USES, tmp_path)
    assert wanted
    assert said.keys() == wanted.keys(), said
    for number, pattern in wanted.items():
        assert re.search(pattern, said[number]), (number, said[number])
