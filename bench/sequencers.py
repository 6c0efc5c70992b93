"""How much several sequencers can order, against the overlap of their groups: by simulation.

Nodes live in cells of 8. A group has 5 members of its cell, but for a share of them that is drawn
from anywhere else. Some further processes do nothing but number messages. Groups that an order
keeps together have one sequencer; apart from that the load is spread as evenly as it can be. Every
member of every group sends equally many messages, as fast as its window allows: how long the run
takes is the limit. What work costs comes from a calibration (`ordercast calibrate`).

    python -m bench.sequencers --protocol sequencing --protocol sequencing_hybrid
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from random import Random

import msgspec

from bench.plot import write_plot, write_png
from ordercast.cli.calibrate import calibrated
from ordercast.core.events import Receive
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import Options
from ordercast.membership.components import strong_components, weak_components
from ordercast.protocols.registry import PROTOCOLS
from ordercast.simulation import (
    Constant,
    CostModel,
    GroupConfig,
    SimulationConfig,
    Workload,
    read_costs,
    simulate,
)
from ordercast.simulation.costs import entries_of
from ordercast.simulation.workload import Planned

CELL = 8  # nodes
SIZE = 5  # members of a group
SHARES = (0, 1, 5, 20, 100)  # percent of the members that are drawn from outside the cell
SEQUENCERS = (1, 2, 4, 8)
SETTINGS = ("groups", "cells", "each", "window", "size", "seed")
LINK_US = 100.0
PATIENT = Options(retry_ms=60_000, gap_ms=60_000)  # nothing is lost: who is slow is only busy

Groups = dict[GroupId, frozenset[ProcessId]]


class Even(Workload, frozen=True, kw_only=True):
    """Every member sends `each` messages to each of its groups, all at the start."""

    each: int

    def plan(
        self, messages: int, groups_of: Mapping[ProcessId, tuple[GroupId, ...]], rng: Random
    ) -> list[Planned]:
        """In turn to each group. Nodes begin one after the other, and not cell by cell."""
        senders = [p for p, groups in groups_of.items() if groups]
        rng.shuffle(senders)
        return [Planned(1 + k, p, groups_of[p] * self.each) for k, p in enumerate(senders)]


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """One run."""

    protocol: str
    sequencers: int
    outside_percent: int
    components: int  # sets of groups that must be together
    largest: float  # the largest of them, as a share of all groups
    throughput: float  # messages per second
    busiest_sequencer: float  # share of the time it worked
    busiest_member: float
    entries: float  # mean number of entries in the header of a message that was numbered
    delay_p50_ms: float
    delay_p99_ms: float
    messages: int
    ended: str
    took_s: float  # of this computer's time


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """All runs, and what they have in common."""

    costs: CostModel
    settings: dict[str, int]
    runs: list[Measured]


class Headers:
    """Looks at the messages that sequencers send."""

    def __init__(self, first: ProcessId) -> None:
        self.first = first  # the first sequencer
        self.seen = 0
        self.entries = 0

    def __call__(self, packet: Receive) -> Receive:
        """Count its header, and let it pass."""
        if packet.src >= self.first and packet.payload:
            self.seen += 1
            self.entries += entries_of(packet.header)
        return packet

    def mean(self) -> float:
        """Entries of a header."""
        return self.entries / max(self.seen, 1)


def celled_groups(cells: int, groups: int, outside: float, rng: Random) -> Groups:
    """Groups in cells, with a share of members from outside."""
    nodes = range(cells * CELL)
    found: Groups = {}
    for g in range(1, groups + 1):
        first = g % cells * CELL
        inside = rng.sample(range(first, first + CELL), SIZE)
        members = {p for p in inside if rng.random() >= outside}
        elsewhere = [p for p in nodes if not first <= p < first + CELL]
        members.update(rng.sample(elsewhere, SIZE - len(members)))
        found[g] = frozenset(members)
    return found


def together(protocol: str, groups: Groups) -> list[frozenset[GroupId]]:
    """The sets of groups that one sequencer must have, for this protocol."""
    rule = getattr(PROTOCOLS[protocol], "together", "none")
    if rule == "strong":
        return strong_components(groups)
    if rule == "weak":
        return weak_components(groups)
    return [frozenset((g,)) for g in groups]


def placed(parts: Iterable[frozenset[GroupId]], hosts: Sequence[ProcessId]) -> dict[int, int]:
    """The sequencer of each group: the largest part first, each to whoever has the least."""
    load = dict.fromkeys(hosts, 0)
    place: dict[GroupId, ProcessId] = {}
    for part in sorted(parts, key=lambda part: (-len(part), min(part))):
        host = min(hosts, key=lambda h: (load[h], h))
        load[host] += len(part)
        place.update(dict.fromkeys(part, host))
    return place


def measure(
    protocol: str, sequencers: int, percent: int, costs: CostModel, asked: argparse.Namespace
) -> Measured:
    """One run; its groups depend on the overlap and the seed only."""
    before = time.process_time()
    groups = celled_groups(
        asked.cells, asked.groups, percent / 100, Random(f"{asked.seed} {percent}")
    )
    nodes = asked.cells * CELL
    headers = Headers(nodes)
    parts = together(protocol, groups)
    place = placed(parts, range(nodes, nodes + sequencers))
    config = SimulationConfig(
        protocol=protocol,
        members=nodes + sequencers,
        groups=tuple(
            GroupConfig(members=tuple(sorted(members)), leader=place[g])
            for g, members in groups.items()
        ),
        workload=Even(each=asked.each, reply=0.0, size=asked.size),
        transform=headers,
        window=asked.window,
        delay=Constant(LINK_US),
        costs=costs,
        options=PATIENT,
        seed=asked.seed,
    )
    outcome = simulate(config)
    figures = outcome.performance()
    assert not outcome.statistics.faults, outcome.first_faults
    return Measured(
        protocol=protocol,
        sequencers=sequencers,
        outside_percent=percent,
        components=len(parts),
        largest=round(max(map(len, parts)) / len(groups), 4),
        throughput=round(figures.throughput, 1),
        busiest_sequencer=round(max(figures.busy[nodes:]), 4),
        busiest_member=round(max(figures.busy[:nodes]), 4),
        entries=round(headers.mean(), 2),
        delay_p50_ms=figures.delay_p50_ms,
        delay_p99_ms=figures.delay_p99_ms,
        messages=outcome.statistics.multicasts,
        ended=outcome.ended,
        took_s=round(time.process_time() - before, 2),
    )


def draw(found: Sequence[Measured], folder: Path) -> list[Path]:
    """The limit against the overlap; a line for each number of sequencers."""
    curves: dict[str, dict[float, float]] = {}
    for one in found:
        dashes = "" if one.protocol == found[0].protocol else " (dashed)"
        name = f"{one.protocol} × {one.sequencers}{dashes}"
        curves.setdefault(name, {})[one.outside_percent] = one.throughput
    svg = folder / "sequencers.svg"
    write_plot(
        svg,
        "Throughput limit of several sequencers (simulated, calibrated costs)",
        "% of members from outside the cell",
        "messages per second",
        curves,
        even_steps=True,
        dashed=[name for name in curves if name.endswith("(dashed)")],
        colours_repeat=len({one.sequencers for one in found}),
    )
    png = write_png(svg)
    return [svg] if png is None else [svg, png]


def main() -> None:
    """Run all that was asked for and is not in the file yet; it is written after every run."""
    options = argparse.ArgumentParser(prog="python -m bench.sequencers", description=__doc__)
    options.add_argument("--protocol", action="append", choices=PROTOCOLS, required=True)
    options.add_argument("--sequencers", type=int, nargs="+", default=SEQUENCERS)
    options.add_argument("--outside", type=int, nargs="+", default=SHARES, help="percent")
    options.add_argument("--groups", type=int, default=400)
    options.add_argument("--cells", type=int, default=25)
    options.add_argument("--each", type=int, default=10, help="messages of a member to a group")
    options.add_argument("--window", type=int, default=4, help="of them not yet delivered by all")
    options.add_argument("--size", type=int, default=100, help="bytes of a message")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--costs", type=Path, help="a calibration; else one is made")
    options.add_argument("--out", type=Path, default=Path("out/sequencers"))
    asked = options.parse_args()
    file = asked.costs or asked.out / "costs.json"
    if asked.costs is None and not file.exists():
        calibrated(asked.protocol).write(file)
    costs = read_costs(file)
    settings = {name: getattr(asked, name) for name in SETTINGS}
    results = Results(costs=costs, settings=settings, runs=[])
    path = asked.out / "sequencers.json"
    if path.exists():
        results = _resumed(path, results)
    done = {(run.protocol, run.outside_percent, run.sequencers) for run in results.runs}
    for todo in product(asked.protocol, asked.outside, asked.sequencers):
        if todo not in done:
            protocol, percent, sequencers = todo
            results.runs.append(measure(protocol, sequencers, percent, costs, asked))
            print(msgspec.json.encode(results.runs[-1]).decode(), flush=True)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(msgspec.json.format(msgspec.json.encode(results)) + b"\n")
    for drawn in draw(results.runs, asked.out):
        print(f"written to {drawn}")


def _resumed(path: Path, new: Results) -> Results:
    """The runs that are there already, if they are of the same kind."""
    old = msgspec.json.decode(path.read_bytes(), type=Results)
    if (old.costs, old.settings) != (new.costs, new.settings):
        raise SystemExit(f"{path} has runs with other costs or settings; give another --out")
    return old


if __name__ == "__main__":
    main()
