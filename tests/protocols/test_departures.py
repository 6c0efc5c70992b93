"""Every departure that the head of a protocol module lists has a test of its name."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from ordercast.protocols.registry import PROTOCOLS

SHARED = {("sequencer_pb", f"D{i}"): "sequencer" for i in range(1, 7)}  # with sequencer_bb
PAGES = {  # one page, several protocols
    name: "sequencing" for name, page in PROTOCOLS.items() if page.__module__.endswith(".orders")
}

FILES = Path(__file__).parent.glob("test_*.py")
TESTS = {
    name
    for file in FILES
    for name in re.findall(r"^def (test_\w+)", file.read_text(), re.MULTILINE)
}


def departures(protocol: str) -> dict[str, str]:
    """Each Dn in the head of the module, with the text that explains it."""
    head = sys.modules[PROTOCOLS[protocol].__module__].__doc__ or ""
    _, _, listed = head.partition("Departures from the source\n")
    found = re.findall(r"^  (D\d+)  (.*?)(?=^  D\d+  |\Z)", listed, re.MULTILINE | re.DOTALL)
    return dict(found)


LISTED = {
    (protocol, d): f"test_{SHARED.get((protocol, d), PAGES.get(protocol, protocol))}_{d}_"
    for protocol in PROTOCOLS
    for d in departures(protocol)
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_head_lists_departures_and_names_the_test_of_each(protocol: str) -> None:
    assert departures(protocol)
    for d, text in departures(protocol).items():
        assert f"({LISTED[protocol, d]}...)" in text


@pytest.mark.parametrize(("protocol", "d"), LISTED)
def test_a_departure_has_a_test(protocol: str, d: str) -> None:
    assert any(test.startswith(LISTED[protocol, d]) for test in TESTS)


def test_a_test_of_a_departure_names_one_that_is_listed() -> None:
    named = {match[0] for test in TESTS if (match := re.match(r"test_\w+?_D\d+_", test))}
    assert named == set(LISTED.values())
