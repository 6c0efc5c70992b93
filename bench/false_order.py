"""Two-layered groups: how many concurrent messages are ordered by accident (002, Theorem 4).

Which messages are concurrent is found from the trace: from what the applications sent and were
handed, not from any header. Which of them the protocol takes to be ordered is found from the
vectors in its packets, by three tests:

    gateways   M_1.RSQ < M_2.RSQ: a gateway lets M_2 wait for M_1 (ordering rule 2)
    waits      m_1.rsq < m_2.rsq in a subgroup: a member lets m_2 wait for m_1
    rule 1     both m_1.rsq < m_2.rsq and m_1.RSQ < m_2.RSQ: what the source calls ordered

The false-order rate of a test is the share of pairs that it orders among the concurrent ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from operator import le

import msgspec

from ordercast.core.events import Receive
from ordercast.protocols.two_layered.headers import Found, Global, GlobalFound, Local, Vector
from ordercast.simulation import SimulationConfig, Uniform, Workload, simulate
from ordercast.simulation.log import group_name, process_name
from ordercast.trace.schema import Event

MEMBERS = (9, 25, 49)
MESSAGES = 60
GAPS_US = (500.0, 5_000.0, 50_000.0)  # on the average between two messages of the workload
SEEDS = range(5)

Message = str  # as the trace names it
Pair = tuple[Message, Message]


class Rates(msgspec.Struct, frozen=True):
    """Of one run, or of several."""

    concurrent: int = 0  # pairs of messages
    same_subgroup: int = 0  # ... of one subgroup
    gateways_same: int = 0  # pairs of one subgroup that the gateways order
    gateways_other: int = 0  # ... of two subgroups
    seen: int = 0  # pairs, once in each subgroup: what its members see
    waits: int = 0  # ... of which one waits for the other
    rule_1: int = 0  # ... that rule 1 orders

    def __add__(self, other: Rates) -> Rates:
        mine, theirs = msgspec.structs.astuple(self), msgspec.structs.astuple(other)
        return Rates(*(a + b for a, b in zip(mine, theirs, strict=True)))


class Vectors:
    """Sees every packet of a run, and notes the vectors of each message."""

    def __init__(self) -> None:
        self.home: dict[Message, int] = {}  # the subgroup of the source
        self.RSQ: dict[Message, Vector] = {}  # among the gateways
        self.local: dict[tuple[int, Message], tuple[Vector, Vector]] = {}  # rsq, RSQ in a subgroup
        self.layer_of: dict[int, int] = {}  # of each process its subgroup

    def look(self, packet: Receive) -> Receive:
        """As a transform of packets that changes nothing."""
        header = packet.header
        if isinstance(header, Found | GlobalFound):
            header = header.message
        if isinstance(header, Global):
            self.RSQ[self._name(header.SP, header.n)] = header.RSQ
        elif isinstance(header, Local):
            i = self.layer_of[packet.src]
            self.local[i, self._name(header.sp, header.n)] = (header.rsq, header.RSQ)
        return packet

    def _name(self, p: int, n: int) -> Message:
        name = f"{process_name(p)}/{group_name(1)}/{n}"
        self.home[name] = self.layer_of[p]
        return name


def causes(events: Iterable[Event]) -> dict[Message, set[Message]]:
    """Of each message all that happened before it, by what the applications did and saw.

    Events stand in the order in which they happened, as a simulated run records them.
    """
    past: dict[str, set[Message]] = {}
    found: dict[Message, set[Message]] = {}
    for event in events:
        if event.kind not in ("send", "deliver"):
            continue
        assert event.process is not None and event.message is not None
        before = past.setdefault(event.process, set())
        if event.kind == "send":
            found[event.message] = set(before)
        before |= {event.message, *found[event.message]}
    return found


def concurrent(causes: Mapping[Message, set[Message]]) -> Iterator[Pair]:
    """Pairs of which neither happened before the other."""
    for a, b in combinations(sorted(causes), 2):
        if a not in causes[b] and b not in causes[a]:
            yield a, b


def false_order(events: Iterable[Event], vectors: Vectors) -> Rates:
    """The rates of one run."""
    total = Rates()
    for a, b in concurrent(causes(events)):
        if a in vectors.RSQ and b in vectors.RSQ:
            total += _among_gateways(vectors, a, b)
            for i in sorted(set(vectors.layer_of.values())):
                if (i, a) in vectors.local and (i, b) in vectors.local:
                    total += _in_subgroup(vectors.local[i, a], vectors.local[i, b])
    return total


def _among_gateways(vectors: Vectors, a: Message, b: Message) -> Rates:
    ordered = _ordered(vectors.RSQ[a], vectors.RSQ[b])
    if vectors.home[a] == vectors.home[b]:
        return Rates(concurrent=1, same_subgroup=1, gateways_same=ordered)
    return Rates(concurrent=1, gateways_other=ordered)


def _in_subgroup(a: tuple[Vector, Vector], b: tuple[Vector, Vector]) -> Rates:
    both = (_below(a[0], b[0]) and _below(a[1], b[1])) or (
        _below(b[0], a[0]) and _below(b[1], a[1])
    )
    return Rates(seen=1, waits=_ordered(a[0], b[0]), rule_1=int(both))


def _ordered(one: Vector, other: Vector) -> int:
    return int(_below(one, other) or _below(other, one))


def _below(one: Vector, other: Vector) -> bool:
    return one != other and all(map(le, one, other))


def measured(members: int, gap_us: float, seed: int) -> Rates:
    """One simulated run of a two-layered group of about sqrt(n) subgroups."""
    vectors = Vectors()
    config = SimulationConfig(
        protocol="two_layered",
        members=members,
        messages=MESSAGES,
        delay=Uniform(500, 1500),
        workload=Workload(every_us=gap_us, reply=0.3, depth=3),
        transform=vectors.look,
        seed=seed,
    )
    page = config.protocol_of(config.group_list()[0][1])(0)
    subgroups = page.subgroups(tuple(range(members)))
    vectors.layer_of = {p: i for i, inside in enumerate(subgroups) for p in inside}
    outcome = simulate(config)
    assert outcome.quiescent, f"seed {seed} never came to rest"
    return false_order(outcome.events(), vectors)


def run() -> dict[str, object]:
    """The rates, per cent, over the size of the group and how much is said."""
    figures: dict[str, object] = {}
    for members in MEMBERS:
        for gap_us in GAPS_US:
            total = sum((measured(members, gap_us, seed) for seed in SEEDS), Rates())
            other = total.concurrent - total.same_subgroup
            name = f"n={members}, a message every {gap_us / 1000:g} ms"
            figures[f"{name}: concurrent pairs"] = total.concurrent
            for what, part, whole in (
                ("gateways, same subgroup", total.gateways_same, total.same_subgroup),
                ("gateways, two subgroups", total.gateways_other, other),
                ("waits in a subgroup", total.waits, total.seen),
                ("rule 1 in a subgroup", total.rule_1, total.seen),
            ):
                figures[f"{name}: {what}, per cent"] = (
                    round(100 * part / whole, 1) if whole else 0.0
                )
    return figures
