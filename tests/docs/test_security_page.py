"""The lines of docs/SECURITY.md make what a node needs, and its numbers are those of the code."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from ordercast.transport.contract import Limits
from ordercast.transport.security import MAX_KEY_BYTES, MIN_KEY_BYTES
from ordercast.wire.opening import MAX_OPENING

PAGE = (Path(__file__).parents[2] / "docs" / "SECURITY.md").read_text(encoding="utf-8")


def test_the_five_lines_make_a_node_that_the_example_can_start(tmp_path, monkeypatch):
    [lines] = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    [example] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(lines.strip().splitlines()) == 5
    subprocess.run(["sh", "-e", "-c", lines], cwd=tmp_path, check=True, capture_output=True)
    monkeypatch.chdir(tmp_path)
    exec(compile(example, "docs/SECURITY.md", "exec"), {})


def test_the_page_states_the_limits_that_hold():
    limits = Limits()
    assert f"is {MIN_KEY_BYTES} to {MAX_KEY_BYTES:,} bytes" in PAGE
    assert f"| kept of a peer without a Hello | {MAX_OPENING:,} bytes" in PAGE
    assert f"| such peers at a time | {limits.max_unknown};" in PAGE
    assert f"for the opening | {limits.hello_timeout_s:g} s each" in PAGE
