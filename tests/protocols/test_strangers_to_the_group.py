"""A node of the cluster that is not in a group sends its members every packet of the protocol.

Nothing is delivered, nothing changes, the packet is dropped with a note or is a fault of its
sender, and nothing else is raised: for every protocol of the registry, so a new one is looked at
without an edit. The requests of guests of the sequencing service are for any node to say.
"""

from __future__ import annotations

import random
from functools import cache

import pytest

from fuzz.mutate import Seen, drawn
from ordercast.core.events import View
from ordercast.core.state import canonical
from ordercast.process.headers import headers_of
from ordercast.protocols.registry import PROTOCOLS
from ordercast.protocols.sequencing.headers import Request
from ordercast.views.groups import GroupEntry
from tests.fuzzing.few_nodes import FewNodes

MEMBERS, STRANGER = (0, 1, 2), 3
G = 1
TRIES = 4  # packets of each kind that are drawn from its type

KINDS = [
    pytest.param(name, kind, id=f"{name}-{kind.__name__}")
    for name, page in PROTOCOLS.items()
    for kind in headers_of(page)
]


@cache
def scene(name):
    """Some of it is said, and not all of that has arrived everywhere."""
    page = PROTOCOLS[name]
    group = GroupEntry(G, "g", page.declaration.order, name, page.header_version, 1)
    few = FewNodes(4, group, MEMBERS)
    seen = Seen()
    for p in MEMBERS:
        few.say(p, b"before")
    while few.flight:
        p, packet = few.flight.pop(0)
        seen.note(packet.header)
        few.step(p, packet)
    for p in MEMBERS:
        few.say(p, b"on its way")
    for _, packet in few.flight:
        seen.note(packet.header)
    few.flight.clear()
    assert not few.faults
    views = [few.nodes[p].view(G) for p in MEMBERS]
    assert [view.members for view in views] == [MEMBERS] * 3 and STRANGER not in views[0].peers
    assert all(node.node_view.pids == (0, 1, 2, 3) for node in few.nodes.values())
    return few, seen


def footprint(node):
    """All that a packet of the group may change."""
    groups = node.groups
    gates = [canonical(gate) for gate in groups.gates.all()]
    flushes = [
        canonical([flush.held, flush.queued, flush.lacking, flush.asked, flush.part])
        for flush in groups.flushes.values()
    ]
    machines = [machine.fingerprint() for machine in groups.every()]
    waits = canonical([node.early, node.ahead, node.said])
    cluster = node.agreement.fingerprint(), node.changes.fingerprint()
    return cluster, machines, flushes, gates, waits


def packets(name, kind):
    """What members said, if they said any, and others: the same ones every time."""
    _, seen = scene(name)
    rng = random.Random(f"{name} {kind.__name__}")
    return [*seen.of.get(kind, ())[-3:], *(drawn(kind, seen, rng) for _ in range(TRIES))]


def asked(name):
    """Members that hear it: who leads the group, or numbers it, and one that does not."""
    view = scene(name)[0].nodes[0].view(G)
    leader = view.leader if view.leader in MEMBERS else 0
    return tuple(dict.fromkeys((leader, *MEMBERS)))[:2]


class Heard:
    """What comes of packets of the stranger at a copy of one member."""

    def __init__(self, name, p):
        self.few, self.p = scene(name)[0], p
        self.node = self.few.nodes[p].copy()
        self.before = footprint(self.node)

    def hear(self, header, era):
        """One more packet: (faults, notes, what is sent)."""
        few, p = self.few, self.p
        known, few.nodes[p] = few.nodes[p], self.node
        few.faults, few.notes, few.flight = [], [], []
        delivered = len(few.delivered[p])
        try:
            few.hear(p, STRANGER, header, G, era, b"forged")
        finally:
            few.nodes[p] = known
        assert len(few.delivered[p]) == delivered, f"{header} of a stranger is delivered"
        return few.faults, few.notes, few.flight


@pytest.mark.parametrize(("name", "kind"), KINDS)
@pytest.mark.parametrize("age", [0, 1], ids=["era in force", "era that is over"])
def test_a_member_does_nothing_for_a_node_that_is_not_in_the_group(name, kind, age):
    if kind is Request:  # it is for any node to say: see below
        return
    era = scene(name)[0].nodes[0].view(G).era - age
    for p in asked(name):
        member = Heard(name, p)
        for header in packets(name, kind):
            faults, notes, said = member.hear(header, era)
            assert footprint(member.node) == member.before, f"{header} changes {p}"
            assert not said, f"{header} is answered by {p}: {said}"
            blamed = {who for _, who, _ in faults}
            dropped = {note[3] for note in notes if note[1] == "drop"}
            assert blamed | dropped == {STRANGER} or (age and not blamed), (
                f"{header} is not counted by {p}"
            )


@pytest.mark.parametrize("name", [n for n, page in PROTOCOLS.items() if page.together is not None])
def test_a_request_of_a_guest_changes_nothing_but_at_who_numbers(name):
    view = scene(name)[0].nodes[0].view(G)
    for p in asked(name):
        member = Heard(name, p)
        for header in packets(name, Request) if p != view.leader else ():
            _, _, said = member.hear(header, view.era)
            assert footprint(member.node) == member.before and not said


@pytest.mark.parametrize(("name", "kind"), KINDS)
def test_what_it_says_of_an_era_to_come_only_waits(name, kind):
    """It may be in the view that begins it."""
    era = scene(name)[0].nodes[0].view(G).era + 1
    for p in asked(name):
        member = Heard(name, p)
        for header in packets(name, kind):
            faults, _, said = member.hear(header, era)
            assert not said, f"{header} is answered by {p}: {said}"
            assert all(who == STRANGER for _, who, _ in faults)
            for machine in member.node.groups.every():
                assert all(packet.src == STRANGER for packet in machine.early)
        for gate in member.node.groups.gates.all():
            holders = gate.groups[G]
            holders.begin(View(G, era, MEMBERS, MEMBERS[0], era))
            assert not {STRANGER}.intersection(holders.words)
