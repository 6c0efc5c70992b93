"""002, figures 7 and 8 by the cost model of the source: is the crossover what its formula says."""

from __future__ import annotations

from math import sqrt
from pathlib import Path
from statistics import median

from experiments.claims import Claim, markdown_table
from experiments.crossover import FLAT, LAYERED, crossover, delay_ms, of_protocol, told, wire_us
from experiments.drawing import Figure, Line, Lines
from experiments.rows import Row, against, distinct, middle, only
from ordercast.simulation.agenda import TICK_US
from ordercast.simulation.costs import read_costs

TITLE = "Two layers: the crossover by the costs of the source"
ABOUT = """\
The same as before, with costs as the source counts them and none of a real computer: whoever sends
or reads a packet works c0, and c1 for each entry of its header; a sender of n copies does so n
times. The source gives no numbers. The ratio c0 / c1 is chosen such that its formulas give the
crossover of its figure 8, so that this crossover is no finding; that the protocols, run packet by
packet, have the delays of the formulas is one. Then the ratio and the wire are changed."""

COSTS = read_costs(Path(__file__).parent / "costs" / "source_002.json")
C0, C1 = COSTS.receive_us, COSTS.receive_entry_us
CLAIMED = 900  # members, on the broadcast network
LARGEST = 100_000  # no crossover is looked for beyond
NEAR = 0.1
"""A formula fits if it is off by no more than this share: headers have some entries besides their
vectors, and a simulated moment is a whole tick."""


def flat_us(n: int, c1: float, wire: float, *, broadcast: bool) -> float:
    """The delay in a flat group: n copies are sent, one is read."""
    work = C0 + c1 * n
    return (1 if broadcast else n) * work + wire + work


def layered_us(n: int, c1: float, wire: float, *, broadcast: bool) -> float:
    """Sent in a subgroup, among gateways, and in a subgroup; each time read."""
    k = sqrt(n)
    local, between = C0 + c1 * (2 * k + 1), C0 + c1 * k
    near, far = (1.0, 1.0) if broadcast else (k, k - 1)
    return 2 * (near * local + wire + local) + far * between + wire + between


def predicted(c1: float, wire: float, *, broadcast: bool) -> int | None:
    """The size from which on two layers are faster, by the formulas."""

    def gains(n: int) -> bool:
        two = layered_us(n, c1, wire, broadcast=broadcast)
        return two < flat_us(n, c1, wire, broadcast=broadcast)

    return next((n for n in range(4, LARGEST) if gains(n)), None)


GROUPS = (("flat", FLAT, flat_us), ("two layers", LAYERED, layered_us))


def figure(rows: list[Row]) -> Figure:
    usual = only(rows, entry_cost=1.0)
    shortest = min(map(wire_us, usual))
    own = [row for row in usual if wire_us(row) == shortest]
    up = "delay until all have a message, ms"
    panels = [
        Lines(f"{said}, c0 / c1 = {C0 / C1:g}", "members of the group", up,
              _curves(only(own, broadcast=broadcast), broadcast=broadcast))
        for said, broadcast in (("One-to-one network", False), ("Broadcast network", True))
    ]  # fmt: skip
    crossings = Lines(
        "Broadcast network: what the crossover depends on",
        "c0 / c1",
        "members from which on two layers are faster",
        _crossing_lines([row for row in only(rows, broadcast=True) if wire_us(row) == shortest]),
    )
    shows = "the median of the messages of a run"
    return Figure(TITLE, [*panels, crossings], shows=shows)


def _curves(rows: list[Row], *, broadcast: bool) -> list[Line]:
    """Formulas are drawn over runs, in their own colour."""
    runs: list[Line] = []
    formulas: list[Line] = []
    for name, protocol, formula in GROUPS:
        own = of_protocol(rows, protocol)
        runs.append(Line(f"{name}, run", against(own, "members", delay_ms)))
        by_formula = {
            row["members"]: formula(row["members"], C1, wire_us(row), broadcast=broadcast) / 1000
            for row in own
        }
        points = [(n, *3 * (ms,)) for n, ms in sorted(by_formula.items())]
        formulas.append(_formula(f"{name}, formula", points, 3 + len(formulas)))
    return runs + formulas


def _formula(name: str, points: list[tuple[float, float, float, float]], colour: int) -> Line:
    return Line(name, points, colour=colour, dash=1, dots=False)


def _crossing_lines(rows: list[Row]) -> list[Line]:
    run, formula = [], []
    for cost in reversed(distinct(rows, "entry_cost")):
        own = only(rows, entry_cost=cost)
        ratio = C0 / C1 / cost
        found, said = crossover(own), predicted(C1 * cost, wire_us(own[0]), broadcast=True)
        if found is not None:
            run.append((ratio, *3 * (found,)))
        if said is not None:
            formula.append((ratio, *3 * (float(said),)))
    return [Line("run", run), _formula("formula", formula, 3)]


def claims(rows: list[Row]) -> list[Claim]:
    return [_delays(rows), _one_to_one(rows), _crossovers(rows)]


def _off(row: Row) -> float:
    """How much longer the delay of a run is than by its formula, as a share."""
    [formula] = [formula for _, protocol, formula in GROUPS if protocol == row["protocol"]]
    c1, broadcast = C1 * row["entry_cost"], row["broadcast"]
    us = formula(row["members"], c1, wire_us(row), broadcast=broadcast)
    return 1000 * delay_ms(row) / us - 1


def _delays(rows: list[Row]) -> Claim:
    table: list[list[object]] = []
    near = [abs(_off(row)) <= NEAR for row in rows]
    for network, broadcast in (("one-to-one", False), ("broadcast", True)):
        for name, protocol, _ in GROUPS:
            own = of_protocol(only(rows, broadcast=broadcast), protocol)
            off = sorted(100 * _off(row) for row in own)
            table.append([network, name, len(own), off[0], median(off), off[-1]])
    head = ["network", "group", "runs", "% off, least", "median", "most"]
    return Claim(
        claim="It takes three rounds to deliver messages in the two-layered group while it takes "
        "one round in the flat group; a process sends n messages in a flat group, l local and k "
        "global ones in a two-layered group, and one in either on a broadcast network.",
        where="002, section 5",
        measured="The delay of the runs against that of the formulas which follow from this, "
        f"`experiments/two_layers_model.py`:\n\n{markdown_table(head, table)}\n\n"
        f"{sum(near)} of {len(near)} runs are within {NEAR:.0%}.",
        holds="yes" if all(near) else "in part" if any(near) else "no",
        why="A process sends itself no copy, which counts in a small group. A header has three "
        "entries besides its vectors. And where the sender is a gateway, a round is saved.",
    )


def _one_to_one(rows: list[Row]) -> Claim:
    own = only(rows, broadcast=False, entry_cost=1.0)
    table: list[list[object]] = []
    faster, slower = [], []
    for n in distinct(own, "members"):
        flat, two = (middle(own, delay_ms, members=n, protocol=p) for _, p, _ in GROUPS)
        table.append([n, flat, two, two / flat])
        tie = abs(flat - two) <= 1.5 * TICK_US / 1000
        faster.append(two < flat and not tie)
        slower.append(two > flat and not tie)
    ties = [line[0] for line, *won in zip(table, faster, slower, strict=True) if not any(won)]
    tied = f", {len(ties)} ties: n = {', '.join(map(str, ties))}" if ties else ""
    return Claim(
        claim="Where a process sends a message to each destination, the two-layered group implies "
        "shorter delay time than the flat group.",
        where="002, section 5, figure 7",
        measured="With the costs of the source, milliseconds:\n\n"
        f"{markdown_table(['members', 'flat', 'two layers', 'ratio'], table)}\n\n"
        f"Two layers are faster at {sum(faster)} of {len(faster)} sizes, slower at {sum(slower)}"
        f"{tied}. A difference of one tick of {TICK_US} µs is a tie.",
        holds="yes" if all(faster) else "in part" if any(faster) else "no",
        why="In the smallest group copies are few: what two layers save is what two more rounds "
        "cost. From there on they gain the more, the larger the group is.",
    )


def _crossovers(rows: list[Row]) -> Claim:
    one = only(rows, broadcast=True)
    table: list[list[object]] = []
    near, fits = [], []
    for cost in reversed(distinct(one, "entry_cost")):
        for wire in sorted({wire_us(row) for row in only(one, entry_cost=cost)}):
            own = [row for row in only(one, entry_cost=cost) if wire_us(row) == wire]
            found, said = crossover(own), predicted(C1 * cost, wire, broadcast=True)
            table.append([f"{C0 / C1 / cost:.0f}", f"{wire:g}", str(said), told(found, own)])
            near.append(found is not None and abs(found / CLAIMED - 1) <= NEAR)
            if found is not None and said is not None:
                fits.append(abs(found / said - 1) <= NEAR)
    head = ["c0 / c1", "wire, µs", "by the formulas", "by the runs"]
    fit = f"{sum(fits)} of {len(fits)} crossovers are within {NEAR:.0%} of the formulas."
    return Claim(
        claim=f"If n >= {CLAIMED}, the two-layered group implies shorter delay time than the flat "
        "group on a broadcast network.",
        where="002, section 5, figure 8",
        measured="Two layers are faster on the broadcast network from so many members on:\n\n"
        f"{markdown_table(head, table)}\n\n{fit}",
        holds="yes" if all(near) else "in part" if any(near) else "no",
        why="It says something of a computer and its network: two layers gain where "
        "c1 (n - 5 sqrt(n) - 2) > 2 c0 + w, for w on every wire. It is true of one ratio of the "
        "costs, and of a wire that takes no time.",
    )
