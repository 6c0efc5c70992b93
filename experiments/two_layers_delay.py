"""002, figures 7 and 8: delay against group size, flat and two-layered, on this computer."""

from __future__ import annotations

from collections.abc import Iterable

from experiments.claims import Claim, Holds, markdown_table
from experiments.crossover import DELAY, FLAT, LAYERED, crossover, of_protocol, told, wire_us
from experiments.drawing import Figure, Line, Lines
from experiments.rows import Row, against, distinct, middle, only

TITLE = "Two layers: delay against group size"
ABOUT = """\
One message at a time, in a group in which nothing else happens. The delay is that of the source:
from when a process creates the message until all processes have it. The flat group is `vector`:
every header has an entry for each member. The two-layered one is `two_layered`, cut into about
sqrt(n) subgroups; its gateways are members, too. All packets travel equally long: the µs in
the figure. On the one-to-one
network a sender hands a packet over once for each receiver, on the broadcast network once. What
work costs is calibrated, for each of the two protocols, in groups of up to 625 members. The last
panel: what if an entry cost more."""

CLAIMED = 900  # members, on the broadcast network
NETWORKS = (("one-to-one network", False), ("broadcast network", True))
NAMES = {FLAT: "flat", LAYERED: "two layers"}


def figure(rows: list[Row]) -> Figure:
    panels = [
        Lines(title, "members of the group", "delay until all have a message, ms", lines)
        for title, lines in _panels(rows)
    ]
    return Figure(TITLE, panels)


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
    return [
        Line(f"{name}, {wire:g} µs", against(_on_wire(own, wire), "members", DELAY))
        for protocol, name in NAMES.items()
        for own in [of_protocol(rows, protocol)]
        for wire in _wires(own)
    ]


def _wires(rows: list[Row]) -> list[float]:
    return sorted({wire_us(row) for row in rows})


def _on_wire(rows: list[Row], wire: float) -> list[Row]:
    return [row for row in rows if wire_us(row) == wire]


def claims(rows: list[Row]) -> list[Claim]:
    usual = only(rows, entry_cost=1.0)
    return [
        _one_to_one(only(usual, broadcast=False)),
        _broadcast(only(usual, broadcast=True)),
        _depends(only(rows, broadcast=True)),
    ]


def _one_to_one(rows: list[Row]) -> Claim:
    found = _crossovers(rows)
    sizes = distinct(rows, "members")
    everywhere = all(at == sizes[0] for at in found.values())
    return Claim(
        claim="Where a process sends a message to each destination, the two-layered group implies "
        "shorter delay time than the flat group.",
        where="002, section 5, figure 7",
        measured=f"{_table(rows)}\n\n{_said(found, rows)}",
        holds="yes" if everywhere else "in part" if any(found.values()) else "no",
        why="A flat sender hands over n - 1 copies one after the other, with two layers a sender "
        "and two gateways hand over about sqrt(n) each. In a small group there is little to save, "
        "and two more hops cost two more packets to read and two more journeys: the longer the "
        "wire, the larger a group must be. The figure of the source has no scale that we know of.",
    )


def _broadcast(rows: list[Row]) -> Claim:
    found = _crossovers(rows)
    return Claim(
        claim="Where a message reaches all by one transmission, the two-layered group implies "
        f"shorter delay time than the flat group if n >= {CLAIMED}.",
        where="002, section 5, figure 8",
        measured=f"{_table(rows)}\n\n{_said(found, rows)}",
        holds=_held(at is not None and at <= CLAIMED for at in found.values()),
        why="A broadcast saves no copies, only entries: a flat header has n of them, in two layers "
        "a message meets three headers of up to 2 sqrt(n). That must outweigh two more hops, so "
        "the size depends on what a packet, an entry and the wire cost. The source has no wire in "
        "its figures: sender and receiver ran on one processor.",
    )


def _depends(rows: list[Row]) -> Claim:
    costs, wires = distinct(rows, "entry_cost"), _wires(rows)
    table: list[list[object]] = []
    found: dict[tuple[float, float], float | None] = {}
    for cost in costs:
        own = only(rows, entry_cost=cost)
        for wire in wires:
            found[cost, wire] = crossover(_on_wire(own, wire))
        table.append([f"{cost:g}", *(told(found[cost, wire], own) for wire in wires)])
    head = ["cost of an entry, times the calibrated one", *(f"wire {w:g} µs" for w in wires)]
    near = [at is not None and abs(at / CLAIMED - 1) < 0.1 for at in found.values()]
    return Claim(
        claim=f"n >= {CLAIMED}: the size is given without what it depends on.",
        where="002, section 5, figure 8",
        measured="Two layers are faster on the broadcast network from so many members on:\n\n"
        + markdown_table(head, table),
        holds=_held(near),
        why="It is no constant. The dearer an entry is against a packet, the smaller the group "
        "that gains; the longer the wire, the larger.",
    )


def _held(each: Iterable[bool]) -> Holds:
    """Everywhere, somewhere, or nowhere."""
    found = list(each)
    return "yes" if all(found) else "in part" if any(found) else "no"


def _crossovers(rows: list[Row]) -> dict[float, float | None]:
    """By the time that packets travel."""
    return {wire: crossover(_on_wire(rows, wire)) for wire in _wires(rows)}


def _said(found: dict[float, float | None], rows: list[Row]) -> str:
    told_of = (f"{told(at, rows)} with {wire:g} µs" for wire, at in found.items())
    return f"Two layers are faster from so many members on: {', '.join(told_of)} on the wire."


def _table(rows: list[Row]) -> str:
    """Delays in ms, by size and wire."""
    wires, sizes = _wires(rows), distinct(rows, "members")
    head = ["members", *(f"{name}, {w:g} µs" for w in wires for name in NAMES.values())]
    lines: list[list[object]] = [
        [
            n,
            *(
                middle(_on_wire(rows, wire), DELAY, members=n, protocol=protocol)
                for wire in wires
                for protocol in NAMES
            ),
        ]
        for n in sizes
    ]
    return f"Milliseconds, by the time that a packet travels:\n\n{markdown_table(head, lines)}"
