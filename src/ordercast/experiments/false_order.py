"""Two-layered groups: how many concurrent messages are ordered by accident (002, Theorem 4).

Which messages are concurrent is found from the trace: from what the applications sent and were
handed, not from any header. Which of them the protocol takes to be ordered is found from the
vectors in its packets, by three tests:

    gateways   M_1.RSQ < M_2.RSQ: a gateway lets M_2 wait for M_1 (ordering rule 2)
    waits      m_1.rsq < m_2.rsq in a subgroup: a member lets m_2 wait for m_1
    rule 1     both m_1.rsq < m_2.rsq and m_1.RSQ < m_2.RSQ: what the source calls ordered

The false-order rate of a test is the share of pairs that it orders among the concurrent ones. All
pairs are looked at: this is for runs of few messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from operator import le

import msgspec

from ordercast.core.events import Receive
from ordercast.core.ids import ProcessId
from ordercast.core.whereabouts import Whereabouts
from ordercast.machinery.subgroups import subgroups_of
from ordercast.protocols.two_layered.headers import Found, Global, GlobalFound, Local, Vector
from ordercast.simulation.config import SimulationConfig
from ordercast.simulation.log import group_name, process_name
from ordercast.trace.schema import Event

Message = str  # as the trace names it
Pair = tuple[Message, Message]


class Pairs(msgspec.Struct):
    """Pairs of concurrent messages in one run. Columns of the table have these names."""

    concurrent_pairs: int = 0
    same_subgroup_pairs: int = 0  # ... of one subgroup
    gateways_same: int = 0  # pairs of one subgroup that the gateways order
    gateways_other: int = 0  # ... of two subgroups
    seen_pairs: int = 0  # pairs, once in each subgroup: what its members see
    waiting_pairs: int = 0  # ... of which one waits for the other
    rule_1_pairs: int = 0  # ... that rule 1 orders


class Vectors:
    """Sees every packet of a run, and notes the vectors of each message."""

    def __init__(self, layer_of: Mapping[ProcessId, int]) -> None:
        self.layer_of = layer_of  # of each process its subgroup
        self.home: dict[Message, int] = {}  # the subgroup of the source
        self.RSQ: dict[Message, Vector] = {}  # among the gateways
        self.local: dict[tuple[int, Message], tuple[Vector, Vector]] = {}  # rsq, RSQ in a subgroup

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


def layers(config: SimulationConfig) -> dict[ProcessId, int]:
    """The subgroup of each process, of the one group of a run."""
    [(_, group)] = config.group_list()
    places = {p: Whereabouts(site) for p, site in enumerate(config.sites) if site}
    found = subgroups_of(group.members, places)
    return {p: i for i, inside in enumerate(found) for p in inside}


def false_order(events: Iterable[Event], vectors: Vectors) -> Pairs:
    """What one run shows."""
    found = Pairs()
    subgroups = sorted(set(vectors.layer_of.values()))
    for a, b in concurrent(causes(events)):
        if a in vectors.RSQ and b in vectors.RSQ:
            _among_gateways(found, vectors, a, b)
            for i in subgroups:
                if (i, a) in vectors.local and (i, b) in vectors.local:
                    _in_subgroup(found, vectors.local[i, a], vectors.local[i, b])
    return found


def _among_gateways(found: Pairs, vectors: Vectors, a: Message, b: Message) -> None:
    ordered = _ordered(vectors.RSQ[a], vectors.RSQ[b])
    found.concurrent_pairs += 1
    if vectors.home[a] == vectors.home[b]:
        found.same_subgroup_pairs += 1
        found.gateways_same += ordered
    else:
        found.gateways_other += ordered


def _in_subgroup(found: Pairs, a: tuple[Vector, Vector], b: tuple[Vector, Vector]) -> None:
    found.seen_pairs += 1
    found.waiting_pairs += _ordered(a[0], b[0])
    found.rule_1_pairs += (_below(a[0], b[0]) and _below(a[1], b[1])) or (
        _below(b[0], a[0]) and _below(b[1], a[1])
    )


def _ordered(one: Vector, other: Vector) -> bool:
    return _below(one, other) or _below(other, one)


def _below(one: Vector, other: Vector) -> bool:
    return one != other and all(map(le, one, other))
