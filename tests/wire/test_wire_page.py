"""The examples of docs/WIRE.md do what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ordercast.transport.contract import Limits
from ordercast.transport.datagram import HEADER, MAX_AUDIENCE_BYTES
from ordercast.wire.control import (
    DIGEST_BYTES,
    MAX_PROOF_BYTES,
    MAX_REFUSE_TEXT_BYTES,
    NONCE_BYTES,
    SESSION_BYTES,
)
from ordercast.wire.frame import FIXED_SIZE
from ordercast.wire.opening import MAX_OPENING

PAGE = (Path(__file__).parents[2] / "docs" / "WIRE.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_of_the_page_runs(example):
    exec(compile(example, "docs/WIRE.md", "exec"), {})


def test_the_page_has_an_example():
    assert EXAMPLES


def test_the_page_states_the_limits_that_hold():
    assert f"at most {MAX_OPENING:,} |" in PAGE
    assert f"| at most {MAX_PROOF_BYTES} bytes: a digest" in PAGE
    assert f"{NONCE_BYTES} random bytes, new for" in PAGE
    assert f"| {DIGEST_BYTES} bytes, see below" in PAGE
    assert f"printable, at most {MAX_REFUSE_TEXT_BYTES} bytes" in PAGE
    assert f"The fixed part is {FIXED_SIZE} bytes" in PAGE
    assert f"at most {MAX_AUDIENCE_BYTES} bytes of bits" in PAGE
    assert f"{SESSION_BYTES} random bytes" in PAGE
    for option in re.findall(r"`(hello_timeout_s|max_\w+)`", PAGE):
        assert option in Limits.__struct_fields__


def test_the_page_lists_the_fields_of_a_datagram_in_their_order_and_size():
    table = PAGE.partition("## Datagrams")[2].partition("| kind | body |")[0]
    fields = re.findall(r"^\| ([\w ]+) \| (\d+) \|", table, re.MULTILINE)
    assert [name for name, _ in fields] == [
        "magic", "version", "kind", "audience size", "sender", "session", "number",
    ]  # fmt: skip
    assert sum(int(size) for _, size in fields) == HEADER.size
