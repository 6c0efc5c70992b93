"""The halves of the protocol pages for users: all are there, and what their pictures show is so.

`tests/pictures.py` says how a picture is read.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import ordercast as oc
import pictures
from ordercast.protocols.registry import DEFAULTS, PROTOCOLS

DOCS = Path(__file__).parents[2] / "docs"
HEADINGS = ["When to use it", "An example", "What it costs", "What it does not promise"]
FOR_USERS = {path.stem: path.read_text() for path in (DOCS / "for_users").glob("*.md")}


def drawn(text: str) -> list[str]:
    """The pictures of a page."""
    blocks = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    return [block for block in blocks if "may happen" in block or "never" in block]


DRAWN = [
    pytest.param(name, picture, id=f"{name} {number}")
    for name, text in sorted(FOR_USERS.items())
    for number, picture in enumerate(drawn(text), start=1)
]


def test_every_protocol_has_a_half_for_users_and_no_other() -> None:
    assert FOR_USERS.keys() == PROTOCOLS.keys()


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_half_for_users_has_the_four_parts_and_a_picture_of_what_is_promised(name: str) -> None:
    headings = re.findall(r"^## (.+)$", FOR_USERS[name], re.MULTILINE)
    assert headings[:4] == HEADINGS
    example = FOR_USERS[name].split("## An example\n")[1].split("\n## ")[0]
    assert any("never" in picture for picture in drawn(example))


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_page_begins_with_the_half_for_users(name: str) -> None:
    page = (DOCS / "protocols" / f"{name}.md").read_text()
    head, paper = page.split("\n## For readers of the source\n")
    for_users = FOR_USERS[name][FOR_USERS[name].index("## ") :].strip()
    assert head.endswith(f"{for_users}\n")
    assert "Departures from the source" in paper


@pytest.mark.parametrize("name", PROTOCOLS)
def test_the_line_that_chooses_a_protocol_does(name: str) -> None:
    page = (DOCS / "protocols" / f"{name}.md").read_text()
    [line] = re.findall(r"`await (node\.join\(.+?\))`", page)

    async def choose() -> None:
        async with oc.Node("alice", bootstrap=True) as node:
            group: oc.Group = await eval(line)
            assert group.protocol == name
            await group.multicast(b"hello")
            heard = [event async for event in first_message(node)]
            assert [(one.group, one.body) for one in heard] == [("room", b"hello")]

    asyncio.run(asyncio.wait_for(choose(), 60))


async def first_message(node: oc.Node) -> AsyncIterator[oc.Message]:
    async for event in node:
        if isinstance(event, oc.Message):
            yield event
            return


def test_no_two_pages_have_one_title() -> None:
    pages = [(DOCS / "protocols" / f"{name}.md").read_text() for name in PROTOCOLS]
    assert len({page.partition("\n")[0] for page in pages}) == len(PROTOCOLS)


@pytest.mark.parametrize(("name", "picture"), DRAWN)
def test_what_a_picture_shows_can_happen_and_what_it_excludes_does_not(
    name: str, picture: str
) -> None:
    assert pictures.wrong_with(pictures.read(picture), PROTOCOLS[name]) == []


def test_a_picture_that_is_false_is_found_out() -> None:
    told = "alice sends a1, a2\nmay happen carol: a2 a1"
    assert pictures.wrong_with(pictures.read(told), PROTOCOLS["basic"]) == []
    [wrong] = pictures.wrong_with(pictures.read(told), PROTOCOLS["fifo"], most=100)
    assert wrong.startswith("it never happened")
    denied = told.replace("may happen", "never")
    [wrong] = pictures.wrong_with(pictures.read(denied), PROTOCOLS["basic"])
    assert wrong.startswith("it happened")


def test_a_line_that_is_in_no_picture_is_refused() -> None:
    with pytest.raises(ValueError, match="in no picture"):
        pictures.read("alice shouts a1")


def test_the_page_that_leads_to_a_protocol_names_them_all() -> None:
    page = (DOCS / "protocols" / "README.md").read_text()
    questions = page.split("## Side by side")[0]
    assert [name for name in PROTOCOLS if f"[`{name}`]({name}.md)" not in questions] == []
    for name in set(DEFAULTS.values()):
        assert re.search(rf"\[`{name}`\]\({name}\.md\)(, |.*)the default", questions)
