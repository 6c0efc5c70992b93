"""docs/COOKBOOK.md is true: its programs print what it says, its quotations stand in examples."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "COOKBOOK.md").read_text()
EXAMPLES = ROOT / "examples"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
PROGRAMS = [block for block in BLOCKS if block.startswith("import ")]
PRINTED = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize(("program", "printed"), [*zip(PROGRAMS, PRINTED, strict=True)])
def test_a_program_of_the_page_prints_what_the_page_says(
    program: str, printed: str, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(EXAMPLES)},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == printed


def test_what_the_page_quotes_stands_in_the_examples() -> None:
    sources = [path.read_text() for path in EXAMPLES.glob("*.py")]
    quoted = [block for block in BLOCKS if block not in PROGRAMS]
    assert len(PROGRAMS) == 4 and quoted
    assert [block for block in quoted if not any(block in source for source in sources)] == []
