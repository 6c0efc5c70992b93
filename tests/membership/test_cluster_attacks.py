"""Schedules that once broke a cluster, carried by hand."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from machines import Packet
from membership.test_node_views import GROUP, TIMEOUT, ClusterBench
from ordercast.core.events import Multicast, Receive
from ordercast.core.ids import ProcessId
from ordercast.membership.cluster_headers import (
    CLUSTER_GROUP,
    InstallView,
    Join,
    Nodes,
    PrepareView,
    Sighted,
    UnstableFrame,
    Welcome,
)
from ordercast.membership.headers import Go
from ordercast.membership.nodes import GroupEntry, NodeEntry
from ordercast.membership.standing import Ask, Dissolved, GetIn, GoAway, Installed
from ordercast.protocols.fifo import Fifo
from ordercast.stack.clustered import ClusteredStack


def carry_only(bench: ClusterBench, passes: Callable[[Packet], bool]) -> None:
    """Until nothing is under way: these packets arrive, the others are lost."""
    while bench.flight:
        if passes(bench.flight[0]):
            bench.arrive(bench.flight[0])
        else:
            bench.flight.pop(0)


def among(*nodes: ProcessId, but: type | None = None) -> Callable[[Packet], bool]:
    """Packets between these nodes, but for those with this header."""
    return lambda packet: {packet.src, packet.dst} <= {*nodes} and type(packet.header) is not but


def cast(bench: ClusterBench, p: ProcessId, header: msgspec.Struct, src: ProcessId) -> None:
    bench.step(p, Receive(src, CLUSTER_GROUP, 0, header, b""))


def in_one_group(
    bench: ClusterBench,
    durability: int | None = None,
    members: tuple[ProcessId, ...] = (0, 1, 2, 3, 4),
) -> GroupEntry:
    entry = msgspec.structs.replace(GROUP, durability=durability)
    for p in members:
        bench.nodes[p].open_group(entry)
        bench.step(p, Ask(entry, "member"))  # type: ignore[arg-type]
    bench.carry()
    bench.tick(2)
    return entry


def let_in(bench: ClusterBench, p: ProcessId, *former: str) -> None:
    entry = NodeEntry(p, f"n{p}", 1, former=former)
    options = bench.nodes[0].cluster_options
    node = ClusteredStack(entry, {"fifo": Fifo}, cluster_options=options)
    bench.machines[p] = bench.nodes[p] = node
    bench.news[p], bench.log[p], bench.timers[p] = [], [], {}
    bench.step(p, GetIn((0,)))  # type: ignore[arg-type]


def suspect(bench: ClusterBench, p: ProcessId, *dead: ProcessId) -> None:
    """p suspects all of these, and acts upon it once."""
    for q in dead[1:]:
        bench.nodes[p].detector.told(q)
    bench.breaks(dead[0], at=(p,))


def test_two_views_never_have_one_number_even_if_two_nodes_lead_at_once() -> None:
    bench = ClusterBench(5)
    bench.crash(0)
    bench.breaks(0, at=(2, 3, 4))
    bench.breaks(1, at=(2, 3, 4))
    carry_only(bench, among(2, 3, 4, but=InstallView))  # 2 alone begins (2, 3, 4)
    bench.crash(2)
    for p in (3, 4):
        bench.nodes[p].detector.trust(1)
    bench.nodes[1].detector.told(2)
    bench.breaks(0, at=(1,))  # it knows nothing of 2's attempt, and gives the same number
    bench.carry()
    bench.tick(3)
    assert bench.views() == {(1, 3, 4)}
    views: dict[int, set[tuple[ProcessId, ...]]] = {}
    for p in bench.news:
        for news in bench.told(p, Installed):
            assert isinstance(news, Installed)
            views.setdefault(news.view.number, set()).add(news.view.pids)
    assert all(len(lists) == 1 for lists in views.values()), views


def test_a_newcomer_that_is_not_in_a_view_that_comes_late_has_not_left() -> None:
    bench = ClusterBench(3)
    late: list[Packet] = []  # on the way from 0 to 2

    def slow(packet: Packet) -> bool:
        if (packet.src, packet.dst) == (0, 2):
            late.append(packet)
        return (packet.src, packet.dst) != (0, 2) and type(packet.header) is not InstallView

    for p in (3, 4):
        let_in(bench, p)
        carry_only(bench, slow)
    bench.step(0, GoAway())  # type: ignore[arg-type]
    carry_only(bench, slow)  # all are ready for (1, 2, 3, 4); 1 begins it, and the network parts
    bench.crash(0)
    bench.breaks(2, at=(1,))
    bench.breaks(3, at=(1,))
    carry_only(bench, among(1, 4))
    bench.breaks(0, at=(2, 3))
    bench.breaks(1, at=(2, 3))
    carry_only(bench, among(2, 3))
    for packet in late:  # now 2 hears of 3, and only then of 4
        if isinstance(packet.header, Nodes):
            bench.step(2, packet.receive)
    bench.breaks(4, at=(2, 3))
    for _ in range(4 * TIMEOUT):
        for p in (2, 3):
            bench.ring(p, "tick", CLUSTER_GROUP)
            carry_only(bench, among(2, 3))
    assert bench.nodes[1].pids == (1, 4) and not bench.nodes[1].stopped
    assert bench.nodes[2].stopped and bench.nodes[3].stopped


def test_who_says_good_bye_tells_for_what_it_has_voted() -> None:
    bench = ClusterBench(4)
    for p in (4, 5):  # they come together
        let_in(bench, p, "n4", "n5")
    carry_only(bench, among(0, 3, 4, 5))  # with 3 it is a majority: the next view is in force
    assert len(bench.nodes[0].ballots) == 1 and len(bench.nodes[0].pids) == 6
    bench.step(3, GoAway())  # type: ignore[arg-type]
    bench.breaks(0, at=(1, 2))
    for p in (1, 2):
        bench.breaks(p, at=(0,))
    carry_only(bench, lambda packet: among(0, 3, 4, 5)(packet) or among(1, 2, 3)(packet))
    assert bench.nodes[0].pids == (0, 4, 5) and not bench.nodes[0].stopped
    assert bench.nodes[1].stopped and bench.nodes[2].stopped


def test_what_a_newcomer_without_a_view_has_prepared_is_not_in_force() -> None:
    bench = ClusterBench(7)
    let_in(bench, 7)
    carry_only(bench, lambda packet: (packet.src, packet.dst) != (0, 7))  # it is in; nobody told it
    suspect(bench, 1, 5, 6, 0)
    others = among(1, 2, 3, 4, 7, but=PrepareView)
    carry_only(bench, lambda packet: others(packet) or {packet.src, packet.dst} == {1, 7})
    assert bench.nodes[7].prepared and not any(bench.nodes[p].prepared for p in (2, 3, 4))
    bench.crash(1)
    suspect(bench, 0, 1, 2, 3, 7)
    carry_only(bench, among(0, 4, 5, 6))
    bench.ring(0, "tick", CLUSTER_GROUP)
    carry_only(bench, among(0, 4, 5, 6))
    assert bench.nodes[0].pids == (0, 4, 5, 6)
    suspect(bench, 2, 0, 4, 5, 6, 1)
    carry_only(bench, among(2, 3, 7))
    assert bench.nodes[2].stopped and bench.nodes[3].stopped  # three of eight


def test_a_node_that_crashes_again_and_again_comes_in_once() -> None:
    bench = ClusterBench(2)
    for _ in range(2):
        bench.nodes[0].flapping.excluded("x")  # it has to wait
    bench.crashed.update((13, 14, 15, 16))
    for incarnation in (3, 4, 5, 6):  # it asks, crashes, and is started again
        cast(bench, 0, Join(NodeEntry(10 + incarnation, "x", incarnation)), src=1)
    wait = bench.nodes[0].flapping.waits("x")
    bench.tick(wait + 1)
    assert bench.views() == {(0, 1, 16)}
    bench.tick(TIMEOUT + 1)  # the last one has crashed, too
    assert bench.views() == {(0, 1)} and not bench.nodes[0].stopped


def test_what_one_delivered_as_it_began_a_view_survives_it() -> None:
    bench = ClusterBench(5)
    in_one_group(bench, durability=2)
    bench.step(3, Multicast(GROUP.gid, b"m"))
    carry_only(bench, among(0, 3))
    bench.crash(3)
    bench.breaks(3, at=(0,))
    carry_only(bench, among(0, 1, 2, 4, but=InstallView))
    assert bench.texts(0) == ["m"]  # all were ready for it; then only 0 heard that they were
    bench.crash(0)
    bench.breaks(3, at=(1, 2, 4))
    bench.breaks(0, at=(1, 2, 4))
    bench.carry()
    bench.tick(3)
    assert bench.views() == {(1, 2, 4)}
    assert [bench.texts(p) for p in (1, 2, 4)] == [["m"]] * 3


def test_what_one_delivered_as_it_let_another_into_a_group_survives_it() -> None:
    bench = ClusterBench(6)
    entry = in_one_group(bench, durability=2, members=(0, 1, 2, 3, 4))
    bench.step(3, Multicast(GROUP.gid, b"m"))
    carry_only(bench, among(0, 3))
    bench.nodes[5].open_group(entry)
    bench.step(5, Ask(entry, "member"))  # type: ignore[arg-type]
    carry_only(bench, among(0, 1, 2, 3, 4, 5, but=Go))
    assert bench.texts(0) == ["m"]  # all were ready to begin the next view of the group
    bench.crash(0, 3)
    for p in (1, 2, 4, 5):
        suspect(bench, p, 0, 3)
    bench.carry()
    bench.tick(3)
    assert bench.views() == {(1, 2, 4, 5)}
    assert [bench.texts(p) for p in (1, 2, 4)] == [["m"]] * 3


def test_a_view_that_is_only_on_its_way_does_not_displace_one_that_is_ready() -> None:
    bench = ClusterBench(5)
    in_one_group(bench)
    bench.step(4, Multicast(GROUP.gid, b"m"))
    carry_only(bench, among(1, 4))
    bench.crash(4)
    bench.breaks(4, at=(0, 1, 2, 3))
    carry_only(bench, among(0, 1, 2, 3, but=InstallView))  # only 0 begins (0, 1, 2, 3)
    bench.breaks(0, at=(1,))
    carry_only(bench, among(1, 2, 3, but=UnstableFrame))  # another view is on its way to 2 and 3
    bench.crash(1)
    bench.breaks(1, at=(0, 2, 3))
    bench.tick(8)
    assert bench.views() == {(0, 2, 3)}
    assert [bench.texts(p) for p in (0, 2, 3)] == [["m"]] * 3


def test_no_side_goes_over_to_one_that_it_did_not_ask() -> None:
    for partition in ("primary", "merge"):
        bench = ClusterBench(3, partition)  # type: ignore[arg-type]
        cast(bench, 0, Welcome(), src=9)
        bench.carry()
        assert not bench.told(0, Dissolved)


def test_where_one_side_goes_on_talk_of_another_is_a_fault() -> None:
    bench = ClusterBench(3)
    cast(bench, 0, Sighted(9, 5), src=1)
    assert bench.faults and not bench.flight
