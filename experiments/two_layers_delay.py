"""002, figures 7 and 8: delay against group size, flat and two-layered, on this computer."""

from __future__ import annotations

from pathlib import Path

from experiments.claims import Claim, Holds, markdown_table
from experiments.crossover import (
    FLAT,
    LAYERED,
    Crossing,
    crossing,
    delay_ms,
    of_protocol,
    told_range,
    wire_us,
)
from experiments.drawing import Figure, Line, Lines
from experiments.rows import Row, against, distinct, middle, only
from ordercast.simulation.costs import read_calibration

TITLE = "Two layers: delay against group size"
ABOUT = """\
One message at a time, in a group in which nothing else happens. The delay is that of the source:
from when a process creates the message until all processes have it. The flat group is `vector`:
every header has an entry for each member. The two-layered one is `two_layered`, cut into about
sqrt(n) subgroups; its gateways are members, too. All packets travel equally long: the µs in
the figure. On the one-to-one
network a sender hands a packet over once for each receiver, on the broadcast network once. What
work costs is calibrated, for each of the two protocols, in groups of up to 625 members. Runs are in
slow motion: all work and all journeys take a hundred times as long, and delays are told divided by
that, so that the tick of the simulator, 10 µs, is 0.1 µs. The last panel: what if an entry cost
more."""

COSTS = Path(__file__).parent / "costs"
ERRORS = {name: read_calibration(COSTS / f"{name}.json").error for name in (FLAT, LAYERED)}
"""By which share the steps of a protocol cost more or less than its model says, on average."""

CLAIMED = 900  # members, on the broadcast network
NETWORKS = (("one-to-one network", False), ("broadcast network", True))
NAMES = {FLAT: "flat", LAYERED: "two layers"}


def figure(rows: list[Row]) -> Figure:
    panels = [
        Lines(title, "members of the group", "delay until all have a message, ms", lines)
        for title, lines in _panels(rows)
    ]
    return Figure(TITLE, panels, shows="the median of the messages of a run")


def _panels(rows: list[Row]) -> list[tuple[str, list[Line]]]:
    usual = only(rows, entry_cost=1.0)
    found = [
        (said.capitalize(), _curves(only(usual, broadcast=broadcast)))
        for said, broadcast in NETWORKS
    ]
    for cost in distinct(rows, "entry_cost")[1:]:
        dear = only(rows, entry_cost=cost, broadcast=True)
        found.append((f"Broadcast network, an entry costs {cost:g} times as much", _curves(dear)))
    return found


def _curves(rows: list[Row]) -> list[Line]:
    """The colour is the kind of group, the dashes are the wire."""
    return [
        Line(
            f"{name}, {wire:g} µs",
            against(_on_wire(of_protocol(rows, protocol), wire), "members", delay_ms),
            colour=colour,
            dash=dash,
        )
        for colour, (protocol, name) in enumerate(NAMES.items())
        for dash, wire in enumerate(_wires(rows))
    ]


def _wires(rows: list[Row]) -> list[float]:
    return sorted({wire_us(row) for row in rows})


def _on_wire(rows: list[Row], wire: float) -> list[Row]:
    return [row for row in rows if wire_us(row) == wire]


def claims(rows: list[Row]) -> list[Claim]:
    usual = only(rows, entry_cost=1.0)
    return [
        _one_to_one(only(usual, broadcast=False)),
        _broadcast(only(rows, broadcast=True)),
    ]


def _one_to_one(rows: list[Row]) -> Claim:
    found = _crossings(rows)
    least = distinct(rows, "members")[0]
    everywhere = all(one.latest == least for one in found.values())
    somewhere = any(one.at is not None for one in found.values())
    said = ", ".join(f"{told_range(one, rows)} with {wire:g} µs" for wire, one in found.items())
    return Claim(
        claim="Where a process sends a message to each destination, the two-layered group implies "
        "shorter delay time than the flat group.",
        where="002, section 5, figure 7",
        measured=f"{_table(rows)}\n\nTwo layers are faster from so many members on: {said} on the "
        f"wire. {_uncertain()}",
        holds="yes" if everywhere else "in part" if somewhere else "no",
        why="A flat sender hands over n - 1 copies one after the other, with two layers a sender "
        "and two gateways hand over about sqrt(n) each. In a small group there is little to save, "
        "and two more hops cost two more packets to read and two more journeys: the longer the "
        "wire, the larger a group must be. The figure of the source has no scale that we know of.",
    )


def _broadcast(rows: list[Row]) -> Claim:
    usual = only(rows, entry_cost=1.0)
    table: list[list[object]] = []
    for cost in distinct(rows, "entry_cost"):
        own = only(rows, entry_cost=cost)
        found = _crossings(own).values()
        table.append([f"{cost:g}", *(told_range(one, own) for one in found)])
    wires = _wires(usual)
    head = ["cost of an entry, times the calibrated one", *(f"wire {w:g} µs" for w in wires)]
    return Claim(
        claim="Where a message reaches all by one transmission, the two-layered group implies "
        f"shorter delay time than the flat group if n >= {CLAIMED}.",
        where="002, section 5, figure 8",
        measured=f"{_table(usual)}\n\nTwo layers are faster from so many members on:\n\n"
        f"{markdown_table(head, table)}\n\n{_uncertain()} The first line is judged: yes if two "
        f"layers are faster from {CLAIMED} on for sure on every wire, no if for sure on none.",
        holds=_by_claimed(list(_crossings(usual).values())),
        why="A broadcast saves no copies, only entries: a flat header has n of them, in two layers "
        "a message meets three headers of up to 2 sqrt(n). That must outweigh two more hops, so "
        "the size is no constant: the dearer an entry is against a packet, the smaller the group "
        "that gains; the longer the wire, the larger. The source has no wire in its figures: "
        "sender and receiver ran on one processor.",
    )


def _by_claimed(found: list[Crossing]) -> Holds:
    """Whether two layers gain at the size that the source names: for sure, perhaps, or not."""
    sure = [one.latest is not None and one.latest <= CLAIMED for one in found]
    perhaps = [one.earliest is not None and one.earliest <= CLAIMED for one in found]
    return "yes" if all(sure) else "in part" if any(perhaps) else "no"


def _crossings(rows: list[Row]) -> dict[float, Crossing]:
    """By the time that packets travel."""
    return {
        wire: crossing(_on_wire(rows, wire), ERRORS[FLAT], ERRORS[LAYERED]) for wire in _wires(rows)
    }


def _uncertain() -> str:
    return (
        "In brackets: between which sizes that lies if work costs more or less than the calibrated "
        f"model says by its mean error, {ERRORS[FLAT]:.0%} of the flat group and "
        f"{ERRORS[LAYERED]:.0%} of the two-layered one."
    )


def _table(rows: list[Row]) -> str:
    """Delays in ms, by size and wire."""
    wires, sizes = _wires(rows), distinct(rows, "members")
    head = ["members", *(f"{name}, {w:g} µs" for w in wires for name in NAMES.values())]
    lines: list[list[object]] = [
        [
            n,
            *(
                middle(_on_wire(rows, wire), delay_ms, members=n, protocol=protocol)
                for wire in wires
                for protocol in NAMES
            ),
        ]
        for n in sizes
    ]
    return f"Milliseconds, by the time that a packet travels:\n\n{markdown_table(head, lines)}"
