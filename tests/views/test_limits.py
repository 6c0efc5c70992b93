"""What one node can make another keep, or send, in a change: bounded in bytes, whatever it says."""

from __future__ import annotations

import pytest

from ordercast.core.events import Receive
from ordercast.process.commands import Join, Leave
from ordercast.protocols.registry import PROTOCOLS
from ordercast.views.ahead import MAX_AHEAD, MAX_AHEAD_BYTES
from ordercast.views.flush import PIECE, PIECE_BYTES, FetchFrames, FrameBody
from ordercast.views.groups import GroupEntry
from ordercast.views.headers import Stop
from tests.fuzzing.few_nodes import FewNodes

LATER = 99  # a term that is far from beginning
LARGE = 400_000  # bytes of a body: three of them fill a piece


def test_packets_of_a_later_term_are_bounded_in_bytes_and_the_sender_is_at_fault():
    cluster = FewNodes(3)
    wide = Stop(LATER, 1, tuple(range(1, 60_000)))
    for _ in range(100):
        cluster.hear(1, 2, wide)
    ahead = cluster.nodes[1].changes.ahead
    assert ahead.used[2][1] <= MAX_AHEAD_BYTES and len(ahead.kept) < 100
    assert {(at, by) for at, by, _ in cluster.faults} == {(1, 2)}
    assert len(cluster.faults) == 100 - len(ahead.kept)
    assert f"{MAX_AHEAD_BYTES} bytes" in cluster.faults[0][2]


def test_packets_of_a_later_term_are_bounded_in_number():
    cluster = FewNodes(3)
    for attempt in range(MAX_AHEAD + 3):
        cluster.hear(1, 2, Stop(LATER, attempt, ()))
    assert len(cluster.nodes[1].changes.ahead.kept) == MAX_AHEAD and len(cluster.faults) == 3


def test_whoever_fills_its_room_for_later_terms_takes_none_of_others_and_ends_nothing():
    cluster = FewNodes(3)
    for _ in range(100):
        cluster.hear(1, 2, Stop(LATER, 1, tuple(range(1, 60_000))))
    faults = len(cluster.faults)
    cluster.hear(1, 0, Stop(LATER, 1, ()))
    assert len(cluster.faults) == faults
    cluster.kill(2)
    cluster.say(1, b"goes on")
    cluster.carry()
    assert cluster.nodes[0].rows[1].members == (0, 1) and cluster.delivered[0] == [b"goes on"]


class Weighed(FewNodes):
    """It notes the most bytes of bodies that are under way between two nodes in a change."""

    def __init__(self, protocol):
        declaration = PROTOCOLS[protocol].declaration
        self.most = 0
        super().__init__(4, GroupEntry(1, "g", declaration.order, protocol, 0))

    def step(self, p, event):
        super().step(p, event)
        under_way = {}
        for q, packet in self.flight:
            if isinstance(packet.header, FrameBody):
                way = (packet.src, q)
                under_way[way] = under_way.get(way, 0) + len(packet.payload)
        self.most = max(self.most, *under_way.values(), 0)


def told_to_one_alone(protocol, sizes):
    """Node 0 says bodies of these sizes, and only node 1 hears them."""
    cluster = Weighed(protocol)
    bodies = [bytes([number]) * size for number, size in enumerate(sizes)]
    for m in bodies:
        cluster.say(0, m)
        cluster.flight = [(q, packet) for q, packet in cluster.flight if q == 1]
        cluster.carry()
    return cluster, bodies


def test_a_node_that_has_left_many_groups_keeps_nothing_of_them():
    cluster = FewNodes(2)
    changes = cluster.nodes[1].changes
    for g in range(2, 30):
        cluster.step(1, Join(GroupEntry(g, f"g{g}", "causal", "cbcast", 0), "member"))
        cluster.carry()
        assert changes.wants.keys() == {1, g} and not changes.unmet
        cluster.step(1, Leave(g))
        cluster.carry()
    assert changes.wants.keys() == {1} and not changes.unmet
    kept = {name for name, table in vars(changes).items() if isinstance(table, set | dict | list)}
    assert all(len(getattr(changes, name)) <= 2 for name in kept)


def test_a_change_that_was_planned_before_a_wish_to_be_out_does_not_keep_a_node_in():
    """The coordinator dies between the two words, after it planned with the first alone: what all
    have prepared is installed, and the next coordinator hears again who wants to be out."""
    cluster = FewNodes(3)
    entry = GroupEntry(2, "h", "causal", "cbcast", 0)
    cluster.step(2, Join(entry, "member"))
    while cluster.nodes[2].changes.prepared is None:
        p, packet = cluster.flight.pop(0)
        cluster.step(p, packet)
    cluster.flight = [(q, packet) for q, packet in cluster.flight if q != 0]
    cluster.step(2, Leave(2))
    assert cluster.nodes[2].changes.unmet == {2}, "it is out, and that is not confirmed"
    cluster.kill(0)
    assert cluster.nodes[1].rows[2].members == () and not cluster.nodes[2].changes.unmet
    assert cluster.nodes[1].rows[2].number == 2, "it was in, and went"


FLUSHED = [name for name, page in PROTOCOLS.items() if page.together is None]


@pytest.mark.parametrize("protocol", FLUSHED)
@pytest.mark.parametrize(
    "sizes",
    [[LARGE] * (PIECE + 4), [1] * PIECE + [LARGE] * PIECE + [1] * 3, [2 * PIECE_BYTES] * 3],
    ids=["large", "mixed", "each more than a piece"],
)
def test_bodies_that_a_change_fetches_come_in_pieces_of_so_many_bytes(protocol, sizes):
    cluster, bodies = told_to_one_alone(protocol, sizes)
    cluster.kill(0)
    for p in cluster.nodes:
        assert sorted(cluster.delivered[p]) == sorted(bodies)
    assert cluster.most <= PIECE_BYTES + max(sizes)
    assert not cluster.faults and not cluster.flight


def test_a_node_that_asks_for_bodies_again_and_again_gets_a_piece_for_each_word():
    cluster, _ = told_to_one_alone("cbcast", [LARGE] * PIECE)
    term = cluster.nodes[1].changes.term
    cluster.hear(1, 0, Stop(term, 1000, (1,)))
    cluster.flight.clear()
    frames = list(cluster.nodes[1].groups.flushes[1].held[1])
    assert len(frames) >= PIECE
    for asked in (frames[:PIECE], frames[:1] * PIECE):
        era = cluster.nodes[1].view(1).era
        cluster.step(1, Receive(3, 1, era, FetchFrames(tuple(asked))))
        sent = [packet.payload for q, packet in cluster.flight if q == 3]
        assert PIECE_BYTES <= sum(map(len, sent)) < PIECE_BYTES + LARGE
        cluster.flight.clear()
