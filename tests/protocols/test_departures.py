"""Every departure from a source that the head of a module lists has a test of its name.

The heads are looked for in all of `src/ordercast`, and the tests in all of `tests`.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from ordercast.protocols.registry import PROTOCOLS

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "ordercast"
LISTED = re.compile(r"^  (D\d+) +(?!to )(.*?)(?=^  D\d+ |\Z)", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"\((test_(?:\w+?_)?(D\d+)_)\.\.\.\)")
TESTED = re.compile(r"^ *(?:async )?def (test_(?:\w+?_)?D\d+_)", re.MULTILINE)

SHARED = {("sequencer_pb", f"D{i}"): "sequencer" for i in range(1, 7)}  # with sequencer_bb
PAGES = {  # one page, several protocols
    name: "sequencing" for name, page in PROTOCOLS.items() if page.__module__.endswith(".orders")
}


def departures(head: str) -> dict[str, str]:
    """Each Dn that a head lists, with the text that explains it."""
    _, _, listed = head.partition("Departures from the source\n")
    return dict(LISTED.findall(listed))


def heads() -> dict[str, str]:
    """The head of every module that departs from its source, by the name of the module."""
    found = {}
    for file in sorted(SOURCE.rglob("*.py")):
        head = ast.get_docstring(ast.parse(file.read_text()), clean=False) or ""
        if "Departures from the source" in head:
            name = file.relative_to(SOURCE.parent).with_suffix("")
            found[".".join(name.parts)] = head
    return found


HEADS = heads()
TESTS = {
    test
    for file in (ROOT / "tests").rglob("test_*.py")
    for test in TESTED.findall(file.read_text())
}
CLAIMED = {  # (module, Dn): the tests of it begin so
    (module, d): named[1]
    for module, head in HEADS.items()
    for d, text in departures(head).items()
    if (named := NAMED.search(text))
}


@pytest.mark.parametrize("module", HEADS)
def test_a_head_names_the_test_of_each_departure(module: str) -> None:
    listed = departures(HEADS[module])
    assert listed
    for d, text in listed.items():
        assert [named for _, named in NAMED.findall(text)] == [d], (
            f"{d} names no test, or a wrong one"
        )


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_tests_of_a_protocol_bear_its_name(protocol: str) -> None:
    listed = departures(HEADS[PROTOCOLS[protocol].__module__])
    for d, text in listed.items():
        name = SHARED.get((protocol, d), PAGES.get(protocol, protocol))
        assert f"(test_{name}_{d}_...)" in text


@pytest.mark.parametrize("module", HEADS)
def test_no_number_is_left_out(module: str) -> None:
    numbers = sorted(int(d[1:]) for d in departures(HEADS[module]))
    assert numbers == list(range(numbers[0], numbers[-1] + 1))


def test_a_head_is_read_beyond_its_ninth_departure() -> None:
    head = "Departures from the source\n" + "".join(
        f"  D{n}  Text that goes on\n      here. (test_x_D{n}_...)\n" for n in range(1, 13)
    )
    assert list(departures(head)) == [f"D{n}" for n in range(1, 13)]
    assert "D10" in departures(head.replace("D10  Text", "D10 Text"))


@pytest.mark.parametrize(("module", "d"), CLAIMED)
def test_a_departure_has_a_test(module: str, d: str) -> None:
    assert CLAIMED[module, d] in TESTS


def test_a_test_of_a_departure_names_one_that_is_listed() -> None:
    assert TESTS - set(CLAIMED.values()) == set()
