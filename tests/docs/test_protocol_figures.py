"""What the protocol pages say of delays, of nodes that hang, and of figures that were measured."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ordercast.protocols.registry import PROTOCOLS
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
FOR_USERS = {path.stem: path.read_text() for path in (DOCS / "for_users").glob("*.md")}

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
