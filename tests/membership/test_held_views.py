"""That a majority has a view comes to be known, whatever is lost or comes too early.

Until then the view could come to nothing, and who is not in it must stay: its vote would be missed.
"""

from __future__ import annotations

from machines import Packet
from membership.test_node_views import TIMEOUT, ClusterBench, between
from ordercast.core.ids import ProcessId
from ordercast.membership.cluster_headers import (
    CLUSTER_GROUP,
    InstallView,
    NodesAck,
    PrepareView,
)
from ordercast.membership.standing import Out


def lose_the_first(bench: ClusterBench, src: ProcessId, header: type) -> None:
    """All arrives until src says this to the others; to none of them it comes."""
    while not bench.find(src, header=header):
        bench.arrive(bench.flight[0])
    bench.lose(src, header=header)
    bench.carry()


def one_that_cannot_go_on_with_the_others() -> ClusterBench:
    """2, 3 and 4 have begun a view that 1, who comes before them, can begin no more."""
    bench = ClusterBench(6)
    bench.crash(5)
    bench.breaks(5, at=(0,))
    lose_the_first(bench, 0, InstallView)  # 1, 2, 3, 4 are ready for the next view
    bench.breaks(5, at=(1,))
    bench.breaks(0, at=(1,))
    lose_the_first(bench, 1, PrepareView)  # 1 is ready for another since
    bench.ring(0, "tick", CLUSTER_GROUP)
    bench.crash(0)
    bench.carry()  # by its heartbeat 2, 3, 4 hear that the view of 0 has begun
    assert [bench.nodes[p].pids for p in (2, 3, 4)] == [(0, 1, 2, 3, 4)] * 3
    assert bench.nodes[1].pids == (0, 1, 2, 3, 4, 5)
    return bench


def test_a_view_that_all_others_have_before_its_coordinator_is_known_to_be_held() -> None:
    bench = one_that_cannot_go_on_with_the_others()
    at_two: list[type] = []  # that came while 2 was not in the next view

    def word_for_two(packet: Packet) -> bool:
        if packet.dst == 2 and bench.nodes[2].pids != (2, 3, 4):
            at_two.append(type(packet.header))
        return packet.dst == 2 and isinstance(packet.header, InstallView)

    bench.tick(4 * TIMEOUT, cut=word_for_two)  # 1 ends the view for them, and is not in the next
    assert bench.views() == {(2, 3, 4)}
    assert at_two.count(NodesAck) == 2  # of 3 and 4: both too early
    (out,) = bench.told(1, Out)
    assert isinstance(out, Out) and out.view == bench.nodes[2].held


def test_who_missed_the_word_that_a_view_is_held_is_told_again() -> None:
    bench = ClusterBench(3)
    apart = between(2)

    def word_for_one(packet: Packet) -> bool:
        return packet.dst == 1 and isinstance(packet.header, NodesAck)

    bench.tick(2 * TIMEOUT, cut=lambda packet: apart(packet) or word_for_one(packet))
    assert bench.nodes[1].pids == (0, 1)
    bench.tick(TIMEOUT, cut=lambda packet: {packet.src, packet.dst} == {0, 2})
    (out,) = bench.told(2, Out)
    assert isinstance(out, Out) and out.by == 1  # 2 hears nobody else
