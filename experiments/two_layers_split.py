"""002: into how many subgroups a group is best cut, and what gateways and local processes do."""

from __future__ import annotations

from collections.abc import Callable
from math import log, sqrt

from experiments.claims import Claim, Holds, markdown_table
from experiments.crossover import delay_ms
from experiments.drawing import Figure, Line, Lines
from experiments.rows import Row, Value, against, distinct, middle, only

TITLE = "Two layers: how many subgroups"
ABOUT = """\
Groups of a fixed size, cut into k subgroups of equally many members, l with the gateway: at least
two subgroups of at least two, as the source has it. One message at a time, each confirmed by all
before the next: members tell their gateway, gateways tell each other. The work of a gateway is that
of the process which worked most, the work of a local process that of the one in the middle of all;
both with their share of all words that confirm a message. The delay is the median of the messages:
most senders are local processes, and a gateway that sends saves a round. Packets travel 10 µs. Runs
are in slow motion: all work and all journeys take a hundred times as long, and times are told
divided by that, so that the tick of the simulator, 10 µs, is 0.1 µs. At k = sqrt(n) there are also
runs in which an entry of a header costs a thousand times as much, so that little else counts."""

NETWORKS = (("one-to-one network", False), ("broadcast network", True))
NEAR = 1.1  # so many times the least still counts as the least, and a power as the same


def gateway_us(row: Row) -> float:
    """Work of the gateway that worked most, per message."""
    return float(row["busiest_us_per_message"]) / float(row["work_cost"])


def local_us(row: Row) -> float:
    """Work of a local process, per message. There are more of them than gateways."""
    return float(row["median_us_per_message"]) / float(row["work_cost"])


def between_gateways(row: Row) -> float:
    """Packets of gateways to gateways, per message."""
    kinds = row["packet_kinds"]
    return float((kinds["Global"] + kinds["GlobalConfirmation"]) / row["sent"])


def figure(rows: list[Row]) -> Figure:
    usual = only(rows, entry_cost=1.0)
    panels = []
    for what, up, value in (
        ("Work of a gateway", "µs per message", gateway_us),
        ("Work of a local process", "µs per message", local_us),
        ("Delay", "until all have a message, ms", delay_ms),
    ):
        for said, broadcast in NETWORKS:
            own = only(usual, broadcast=broadcast)
            lines = [
                Line(
                    f"n = {n}, root {sqrt(n):g}", against(only(own, members=n), "subgroups", value)
                )
                for n in distinct(own, "members")
            ]
            panels.append(Lines(f"{what}, {said}", "subgroups", up, lines))
    return Figure(TITLE, panels, shows="means of the messages of a run, and of delays the median")


def claims(rows: list[Row]) -> list[Claim]:
    usual = only(rows, entry_cost=1.0)
    return [_least_work(usual), _gateway(rows), _local(rows), _between(usual), _delay(usual)]


def _least_work(rows: list[Row]) -> Claim:
    table, near = _least(rows, gateway_us)
    formula = ", ".join(
        f"{_by_formula(only(rows, members=n))} for n = {n}" for n in distinct(rows, "members")
    )
    return Claim(
        claim="The minimum overhead of a gateway process is obtained for k = sqrt(n).",
        where="002, section 5",
        measured="Work of the gateway that worked most, µs per message:\n\n"
        f"{table}\n\nOf the numbers of subgroups that were run, the formula of the source, "
        f"(l + k) l + k², is least at {formula}. The root will do if it takes at most {NEAR:g} "
        "times the least.",
        holds=near,
        why="The formula adds up entries of vectors that a gateway has to do with: l vectors of "
        "l + k entries, k of k. On a computer each packet costs, too, and one to hand over each "
        "copy: l of the message and l of what all have, k of a confirmation. Both are sums of "
        "something that falls with k and something that rises, and flat near the least.",
    )


def _gateway(rows: list[Row]) -> Claim:
    table, holds = _growth(rows, gateway_us, lambda size, k: (size + k) * size + k * k)
    return Claim(
        claim="The overhead of a gateway process in a subgroup is O((l + k) l + k²).",
        where="002, section 5",
        measured=f"At the k next to sqrt(n), per message:\n\n{table}\n\n{RULE}",
        holds=holds,
        why="The formula counts entries, and as a bound it is kept. A gateway has to do with "
        "about l + k packets of l + k entries, and a packet costs what many entries cost: in "
        "groups of this size the work of a gateway grows like the number of its packets, "
        "with the root of n. Where little but entries costs it grows more nearly as the formula.",
    )


def _local(rows: list[Row]) -> Claim:
    table, holds = _growth(rows, local_us, lambda size, k: (size + k) * size)
    return Claim(
        claim="The overhead of each local process in a subgroup is O((l + k) l).",
        where="002, section 5",
        measured=f"At the k next to sqrt(n), per message:\n\n{table}\n\n{RULE}",
        holds=holds,
        why="A local process has to do with a fixed number of packets for a message, each with "
        "up to l + k entries: the factor l is that of a round in which all l send. Here it is "
        "told per message. And what a packet costs hides what its entries cost.",
    )


RULE = (
    "Yes if the work grows as the formula does, to a tenth of the power; in part if more slowly, "
    "as a bound allows; no if faster."
)


def _growth(
    rows: list[Row], work: Value, formula: Callable[[float, float], float]
) -> tuple[str, Holds]:
    """A table of the work at the root by size, and whether it grows like the formula."""
    lines: list[list[object]] = []
    grown: list[Holds] = []
    for cost in distinct(rows, "entry_cost"):
        for said, broadcast in NETWORKS:
            own = only(rows, entry_cost=cost, broadcast=broadcast)
            sizes = distinct(own, "members")
            at_root = {n: _next_to_root(only(own, members=n)) for n in sizes}
            us = [middle(own, work, members=n, subgroups=at_root[n]) for n in (sizes[0], sizes[-1])]
            by = [formula(n / at_root[n], at_root[n]) for n in (sizes[0], sizes[-1])]
            powers = [log(last / first) / log(sizes[-1] / sizes[0]) for first, last in (us, by)]
            times = (us[1] / us[0], by[1] / by[0])
            lines.append([said, f"{cost:g}", f"{sizes[0]} to {sizes[-1]}", *us, *times])
            if cost == 1:
                grown.append(_grows(*powers))
    head = [
        "network", "cost of an entry, times", "members", "µs at the least", "at the most",
        "grows, times", "formula, times",
    ]  # fmt: skip
    return markdown_table(head, lines), grown[0] if len(set(grown)) == 1 else "in part"


def _grows(measured: float, formula: float) -> Holds:
    """By powers of n."""
    if measured > NEAR * formula:
        return "no"
    return "yes" if measured >= formula / NEAR else "in part"


def _between(rows: list[Row]) -> Claim:
    most = distinct(rows, "members")[-1]
    own = only(rows, broadcast=False, members=most)
    splits = distinct(own, "subgroups")
    packets = {k: middle(own, between_gateways, subgroups=k) for k in splits}
    lines: list[list[object]] = [[most, k, packets[k], k * k] for k in splits]
    least, largest = splits[0], splits[-1]
    power = log(packets[largest] / packets[least]) / log(largest / least)
    return Claim(
        claim="The overhead for communication among gateway processes is O(k²).",
        where="002, section 5",
        measured="Packets from gateway to gateway, per message, on the one-to-one network:\n\n"
        f"{markdown_table(['members', 'subgroups', 'packets', 'k²'], lines)}\n\nFrom the least to "
        f"the most subgroups they grow with the power {power:.2f} of k. {RULE}",
        holds=_grows(power, 2.0),
        why="k - 1 packets bring the message to the other gateways, and each of the k gateways "
        "tells the k - 1 others that its subgroup has it.",
    )


def _delay(rows: list[Row]) -> Claim:
    table, near = _least(rows, delay_ms)
    return Claim(
        claim="We assume that every subgroup includes the same number of processes and "
        "k = sqrt(n) (for the figures of delay).",
        where="002, section 5",
        measured=f"Delay until all have a message, ms:\n\n{table}\n\nThe root will do if it takes "
        f"at most {NEAR:g} times the least.",
        holds=near,
        why="Three senders work one after the other: in two subgroups of n / k and among k "
        "gateways. Where each copy costs, 2 n / k + k is least for k = sqrt(2 n), a bit more than "
        "the root. Where only entries cost, the local headers with their l + k count twice.",
    )


def _by_formula(rows: list[Row]) -> int:
    """Of the splits that were run, the one with the least (l + k) l + k²."""
    splits: list[int] = distinct(rows, "subgroups")
    n: int = rows[0]["members"]
    return min(splits, key=lambda k: (n / k + k) * n / k + k * k)


def _next_to_root(rows: list[Row]) -> int:
    """Of the splits that were run."""
    splits: list[int] = distinct(rows, "subgroups")
    n: int = rows[0]["members"]
    return min(splits, key=lambda k: abs(k - sqrt(n)))


def _least(rows: list[Row], value: Value) -> tuple[str, Holds]:
    """A table of the best split against the root, and whether the root is as good."""
    lines: list[list[object]] = []
    near = []
    for said, broadcast in NETWORKS:
        for n in distinct(rows, "members"):
            own = only(rows, broadcast=broadcast, members=n)
            points = against(own, "subgroups", value)
            k, least, _, _ = min(points, key=lambda point: point[1])
            root = _next_to_root(own)
            there = middle(own, value, subgroups=root)
            ends = max(points[0][1], points[-1][1])
            lines.append([said, n, root, there, k, least, there / least, ends])
            near.append(there <= NEAR * least)
    head = [
        "network", "members", "k next to sqrt(n)", "with it", "best k of those run", "with that",
        "ratio", "with the worse of the least and the largest k",
    ]  # fmt: skip
    holds: Holds = "yes" if all(near) else "in part" if any(near) else "no"
    return markdown_table(head, lines), holds
