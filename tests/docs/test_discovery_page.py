"""docs/DISCOVERY.md is true: its example runs, and its numbers are those of the code."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from datagrams import free_group
from ordercast.runtime.node_discovery import LISTEN_S
from ordercast.transport.answering import ANSWERERS, ANSWERS_PER_S
from ordercast.transport.discovery import FIRST_PAUSE_S, Discovery
from ordercast.wire.discovery import QUESTION_BYTES

PAGE = (Path(__file__).parents[2] / "docs" / "DISCOVERY.md").read_text()


def test_the_example_of_the_page_finds_a_cluster(tmp_path: Path) -> None:
    [example] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert "239.192.7.7:7701" in example
    script = tmp_path / "example.py"
    script.write_text(example.replace("239.192.7.7:7701", free_group()))
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "2 nodes\n"


def test_the_page_states_the_limits_that_hold() -> None:
    text = " ".join(PAGE.split())
    assert f"again after {FIRST_PAUSE_S:g} s" in text
    assert f"listens for {LISTEN_S:g} s first" in text
    assert f"exactly {QUESTION_BYTES} bytes" in text
    assert f"about {ANSWERERS} nodes answer each question" in text
    assert f"at most {ANSWERS_PER_S} in a second" in text


def test_every_option_of_discovery_stands_on_the_page() -> None:
    assert [n for n in Discovery.__struct_fields__ if f"\n| `{n}` | " not in PAGE] == []
