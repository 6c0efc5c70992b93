"""docs/STATE.md is true: its programs run, and its figures are those of the code."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from ordercast.runtime import state_transfer, states

PAGE = (Path(__file__).parents[2] / "docs" / "STATE.md").read_text()


def test_the_replicas_of_the_page_agree(tmp_path) -> None:
    [printed] = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
    programs = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(programs) == 2
    for program, expected in zip(programs, (printed, ""), strict=True):
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True,
            timeout=60,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert done.stdout == expected


def test_the_limits_on_the_page_are_those_of_the_code() -> None:
    assert state_transfer.CHUNK == 256 * 1024 and "pieces of 256 KiB" in PAGE
    assert state_transfer.CHUNKS_UNDER_WAY == 8 and "eight of them under way" in PAGE
    assert states.MAX_GIVING == 16 and re.search(r"at most 16\s+states at a time", PAGE)
