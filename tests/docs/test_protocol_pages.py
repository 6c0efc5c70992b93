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
from ordercast.simulation import (
    Constant,
    Crash,
    Outcome,
    SimulationConfig,
    Workload,
    one_sender,
    simulate,
)

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


# -- delays, and what a member that hangs holds up -------------------------------------------------

CHOOSING = (DOCS / "protocols" / "README.md").read_text()
HOP_MS = 10
MEMBERS, SENDER, SEQUENCER = 4, 3, 0


def rows(heading: str) -> list[tuple[list[str], str]]:
    """Of the table with this heading: the protocols that a row names first, and the whole row."""
    table = CHOOSING.split(f"{heading}\n")[1].split("\n\n")[0]
    return [(re.findall(r"`(\w+)`", row), row) for row in table.splitlines()[1:]]


def delays(protocol: str) -> set[float]:
    """In hops, of a lone message at members that do not number."""
    sent: dict[str | None, int] = {}
    found = set()
    for event in talk(protocol, one_sender(SENDER, every_us=500_000)).events():
        if event.kind == "send":
            sent[event.message] = event.time or 0
        elif event.kind == "deliver" and event.process not in (event.sender, f"p{SEQUENCER}#1"):
            found.add(((event.time or 0) - sent[event.message]) / 1e6 / HOP_MS)
    return found


def talk(protocol: str, workload: Workload, *hang: int) -> Outcome:
    """On a network that keeps the order, like TCP. Who hangs does so before anybody speaks."""
    config = SimulationConfig(
        protocol=protocol, members=MEMBERS, messages=8, workload=workload, fifo=True,
        delay=Constant(1000 * HOP_MS), faults=tuple(Crash(p, at_ms=1) for p in hang),
        consume_ms=1.0, limit_ms=20_000,
    )  # fmt: skip
    return simulate(config)


HOPS = {"one hop": 1, "two hops": 2, "three hops": 3, "as soon as": 2 + 20 / HOP_MS}


@pytest.mark.parametrize("says", HOPS)
def test_messages_take_as_many_hops_as_the_table_says(says: str) -> None:
    table = rows("| delivered at another member after | protocols |")
    [row] = [row for _, row in table if row.startswith(f"| {says}")]
    named = re.findall(r"`(\w+)`", row.split(" | ")[1].split("; `fast_p`")[0])
    assert named
    found = [max(delays(name)) for name in named]
    assert max(found) == pytest.approx(HOPS[says])
    if says != "as soon as":  # that is a limit
        assert min(found) == max(found)


def held_up(protocol: str, hangs: int) -> bool:
    """Do the others get less than all that two of them say?"""
    outcome = talk(protocol, Workload(senders=(1, 2), reply=0, start_ms=50), hangs)
    return outcome.statistics.deliveries < outcome.statistics.multicasts * (MEMBERS - 1)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_who_hangs_holds_up_what_the_table_says(name: str) -> None:
    table = rows("| protocols | what stops while a node hangs |")
    [row] = [row for names, row in table if name in names]
    assert held_up(name, 3) == ("every delivery" in row and "nothing" not in row)
    assert held_up(name, 0) == ("every delivery" in row or "gateway" in row)


# -- figures ---------------------------------------------------------------------------------------

RESULTS = (DOCS / "RESULTS.md").read_text()
MEASURED = re.compile(r"(.*?)\(\[measured\]\(\.\./RESULTS\.md#([\w-]+)\)\)", re.DOTALL)
FIGURE = re.compile(r"(?<![\w.`])\d[\d,]*(?:\.\d+)?(?![\w.,]*\d)")


def section(anchor: str) -> str:
    """What stands in RESULTS.md under the heading of this anchor."""
    for part in RESULTS.split("\n## ")[1:]:
        heading, _, text = part.partition("\n")
        if re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") == anchor:
            return text
    raise AssertionError(f"RESULTS.md has no heading {anchor}")


def figures(text: str) -> list[str]:
    """Numbers as they are written, without those below ten that count something."""
    found = [figure.replace(",", "") for figure in FIGURE.findall(text)]
    return [figure for figure in found if "." in figure or int(figure) >= 10]


MEASURES = [
    pytest.param(name, said.rpartition("\n\n")[2], anchor, id=f"{name} {anchor}")
    for name, text in sorted(FOR_USERS.items())
    for said, anchor in MEASURED.findall(text)
]


def named(text: str) -> set[str]:
    return PROTOCOLS.keys() & set(re.findall(r"\w+", text))


@pytest.mark.parametrize(("name", "said", "anchor"), MEASURES)
def test_what_is_said_to_be_measured_stands_in_the_results(
    name: str, said: str, anchor: str
) -> None:
    """Rounded as it may be, and not in a row of a protocol that is not spoken of."""
    meant = {name} | named(said)
    lines = section(anchor).splitlines()
    rows = [line for line in lines if not named(line) or named(line) & meant]
    known = [float(figure.replace(",", "")) for figure in FIGURE.findall("\n".join(rows))]
    for figure in figures(said):
        digits = len(figure.partition(".")[2])
        assert any(abs(one - float(figure)) <= 0.5001 * 10**-digits for one in known), figure
