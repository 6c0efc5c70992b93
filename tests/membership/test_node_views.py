"""A cluster on a bench: every packet is carried by hand, time passes in ticks."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from machines import Bench, Packet
from ordercast.core.events import Event, Multicast, Receive
from ordercast.core.ids import ProcessId
from ordercast.core.output import Output
from ordercast.machinery.numbering import ViewEntry
from ordercast.machinery.sequencer_headers import Accept
from ordercast.membership.cluster_headers import (
    CLUSTER_GROUP,
    Attempt,
    Depart,
    EndView,
    InstallView,
    Join,
    Nodes,
    NoPrimary,
    Overruled,
    PrepareView,
    Stuck,
)
from ordercast.membership.knowledge import ballot_of
from ordercast.membership.nodes import LEAP, Ballot, GroupEntry, NodeEntry, NodeView, first_unused
from ordercast.membership.standing import (
    Ask,
    Blocked,
    Broken,
    ClusterOptions,
    Dissolved,
    Found,
    GetIn,
    GoAway,
    Installed,
    Out,
    Policy,
    Quit,
    Resumed,
)
from ordercast.protocols.fifo import Fifo
from ordercast.protocols.sequencer_pb import SequencerPB
from ordercast.stack.clustered import ClusteredStack

TIMEOUT = 5  # ticks
GROUP = GroupEntry(1, "g", "fifo", "fifo", 0)
NUMBERED = GroupEntry(1, "g", "total", "sequencer_pb", 0)
PAGES = {"fifo": Fifo, "sequencer_pb": SequencerPB}


class ClusterBench(Bench):
    """Nodes that are in one view, and what each of them was told."""

    def __init__(self, size: int, partition: Policy = "primary") -> None:
        options = ClusterOptions(heartbeat_ms=20, suspect_ms=20 * TIMEOUT, partition=partition)
        nodes = {
            p: ClusteredStack(
                NodeEntry(p, f"n{p}", 1), PAGES, cluster_options=options, network="N2"
            )
            for p in range(size)
        }
        super().__init__(dict(nodes))
        self.nodes = nodes
        self.news: dict[ProcessId, list[msgspec.Struct]] = {p: [] for p in nodes}
        self.step(0, Found())  # type: ignore[arg-type]
        for p in range(1, size):
            self.step(p, GetIn((0,)))  # type: ignore[arg-type]
            self.carry()
        self.tick(2)  # by then all know that all are in

    def step(self, p: ProcessId, *events: Event) -> Output:
        out = super().step(p, *events)
        self.news[p] += out.news
        return out

    def tick(self, times: int = 1, *, cut: Callable[[Packet], bool] | None = None) -> None:
        """A tick at every node that lives, and all its packets but those that are cut off."""
        for _ in range(times):
            for p in tuple(self.timers):
                if (CLUSTER_GROUP, "tick") in self.timers[p]:
                    self.ring(p, "tick", CLUSTER_GROUP)
            while self.flight:
                packet = self.flight[0]
                if cut is not None and cut(packet):
                    self.flight.remove(packet)
                else:
                    self.arrive(packet)

    def breaks(self, dead: ProcessId, *, at: tuple[ProcessId, ...]) -> None:
        """These see their connection to that node break."""
        for p in at:
            self.step(p, Broken(dead))  # type: ignore[arg-type]

    def settle_numbers(self) -> None:
        """The timers of groups fire, and what follows from it arrives, a few times."""
        for _ in range(5):
            for p in tuple(self.timers):
                for group, name in tuple(self.timers[p]):
                    if group != CLUSTER_GROUP and (group, name) in self.timers[p]:
                        self.ring(p, name, group)
            self.carry()

    def views(self) -> set[tuple[ProcessId, ...]]:
        """The node views in force, at those who live and are not out."""
        return {n.pids for p, n in self.nodes.items() if p not in self.crashed and not n.out_of_it}

    def told(self, p: ProcessId, kind: type) -> list[msgspec.Struct]:
        """The news of this kind at p."""
        return [news for news in self.news[p] if isinstance(news, kind)]


def between(*side: ProcessId) -> Callable[[Packet], bool]:
    """Packets that would cross from this side to the other."""
    return lambda packet: (packet.src in side) != (packet.dst in side)


def test_newcomers_are_in_one_view_in_the_order_of_their_coming() -> None:
    bench = ClusterBench(4)
    assert bench.views() == {(0, 1, 2, 3)}
    assert {node.acting() for node in bench.nodes.values()} == {0}


def test_the_next_in_the_list_takes_over_when_the_coordinator_dies() -> None:
    bench = ClusterBench(4)
    bench.crash(0)
    bench.breaks(0, at=(1, 2, 3))
    bench.carry()
    assert bench.views() == {(1, 2, 3)}
    assert bench.nodes[1].coordinates


def test_a_node_that_is_silent_is_excluded_after_the_timeout_and_not_before() -> None:
    bench = ClusterBench(3)
    bench.crash(2)
    bench.tick(TIMEOUT - 1)
    assert bench.views() == {(0, 1, 2)}
    bench.tick(2)
    assert bench.views() == {(0, 1)}


def test_whoever_ends_the_view_may_die_at_any_word_of_it() -> None:
    for word in (EndView, PrepareView, InstallView):
        bench = ClusterBench(5)
        bench.crash(4)
        bench.breaks(4, at=(0,))
        while not bench.find(src=0, header=word):
            bench.arrive(bench.flight[0])
        bench.arrive(bench.find(src=0, header=word)[0])  # one hears it, the others do not
        bench.lose(src=0)
        bench.crash(0)
        bench.breaks(0, at=(1, 2, 3))
        bench.tick(TIMEOUT + 3)
        assert bench.views() == {(1, 2, 3)}, word
        assert not any(bench.nodes[p].stopped for p in (1, 2, 3))


def test_of_two_nodes_the_first_goes_on_alone() -> None:
    bench = ClusterBench(2)
    bench.crash(1)
    bench.breaks(1, at=(0,))
    assert bench.views() == {(0,)}
    assert not bench.told(0, Blocked)


def test_of_two_nodes_the_second_is_blocked_and_told_who_is_missing() -> None:
    bench = ClusterBench(2)
    bench.crash(0)
    bench.breaks(0, at=(1,))
    assert bench.views() == {(0, 1)}
    assert bench.told(1, Blocked) == [Blocked(2, (0,))]


def test_of_two_nodes_the_second_goes_on_if_the_first_has_left_in_order() -> None:
    bench = ClusterBench(2)
    bench.step(0, GoAway())  # type: ignore[arg-type]
    bench.carry()
    bench.tick(TIMEOUT)
    assert bench.views() == {(1,)}
    assert not bench.told(1, Blocked)


def test_one_that_is_cut_off_goes_on_when_the_one_it_misses_says_good_bye() -> None:
    bench = ClusterBench(2)
    bench.tick(2 * TIMEOUT, cut=lambda packet: packet.src == 0)  # 1 does not hear 0
    assert bench.told(1, Blocked)
    bench.step(0, GoAway())  # type: ignore[arg-type]
    (good_bye,) = bench.find(0, 1, Depart)
    bench.arrive(good_bye)  # nothing else is heard of 0 meanwhile
    assert bench.nodes[1].pids == (1,)
    assert bench.told(1, Resumed)


def test_a_good_bye_reaches_the_coordinator_also_from_one_that_suspects_it() -> None:
    bench = ClusterBench(3)
    bench.breaks(0, at=(2,))
    bench.flight.clear()  # nobody else has lost it, and what 2 says of it is lost
    bench.step(2, GoAway())  # type: ignore[arg-type]
    bench.tick(2)
    assert bench.nodes[0].pids == bench.nodes[1].pids == (0, 1)
    assert bench.told(2, Out)


def test_a_coordinator_does_not_leave_before_all_have_what_it_numbered() -> None:
    bench = ClusterBench(2)
    for p, node in bench.nodes.items():
        node.open_group(NUMBERED)
        bench.step(p, Ask(NUMBERED, "member"))  # type: ignore[arg-type]
        bench.carry()
    bench.step(0, Multicast(1, b"m"))
    bench.lose(0, 1, Accept)
    bench.step(0, Quit(1))  # type: ignore[arg-type]
    bench.step(0, GoAway())  # type: ignore[arg-type]
    assert not bench.find(0, 1, Depart)
    bench.settle_numbers()
    bench.tick(2)
    assert (0, b"m") in bench.log[1]
    assert bench.nodes[1].pids == (1,)


def test_the_last_who_leaves_a_group_has_its_last_view_also_if_another_node_dies_meanwhile() -> (
    None
):
    """0 numbers the view without 1, in which nobody is left; the word of it is lost."""
    bench = ClusterBench(3)
    bench.nodes[1].open_group(NUMBERED)
    bench.step(1, Ask(NUMBERED, "member"))  # type: ignore[arg-type]
    bench.carry()
    bench.step(1, Quit(1))  # type: ignore[arg-type]
    bench.bring(1, 0)
    bench.lose(0, 1, ViewEntry)
    bench.crash(2)
    bench.breaks(2, at=(0, 1))
    bench.carry()
    assert bench.nodes[0].pids == bench.nodes[1].pids == (0, 1)
    view = bench.nodes[1].view(1)
    assert view is not None and view.members == ()
    assert bench.nodes[1].is_out(1)


def test_a_side_that_tries_in_vain_for_long_does_not_use_up_the_numbers() -> None:
    bench = ClusterBench(5)
    bench.tick(200 * TIMEOUT, cut=between(3, 4))
    followed = bench.nodes[3].followed
    assert bench.told(3, Blocked) and followed is not None
    assert followed.number < 5 + LEAP + 200  # one step with each try, not a leap


def test_who_hears_of_a_view_above_one_that_is_ready_here_finishes_that_one_first() -> None:
    bench = ClusterBench(4)
    bench.crash(0)
    bench.breaks(0, at=(1,))  # 1 ends the view; 2 and 3 are ready
    while not bench.find(src=1, header=InstallView):
        bench.arrive(bench.flight[0])
    bench.lose(1, None, InstallView)  # it has begun at 1 alone
    ready = bench.nodes[2].prepared
    assert ready is not None and bench.nodes[1].pids == (1, 2, 3)
    bench.nodes[2].blocked = Blocked(4, (0, 1))
    view = NodeView(ready.view.number + 1, (*ready.view.nodes, NodeEntry(9, "n9", 1)))
    ballots = (ballot_of(ready.view), ballot_of(view))
    bench.step(2, _packet(9, Nodes(view, ballots, ready.attempt)))
    assert bench.nodes[2].installed == ready.attempt
    assert bench.nodes[2].pids == (1, 2, 3, 9)


def test_who_is_ready_for_a_view_begins_it_when_it_hears_that_another_has() -> None:
    bench = ClusterBench(4)
    bench.crash(0)
    bench.breaks(0, at=(1,))
    while not bench.find(src=1, header=InstallView):
        bench.arrive(bench.flight[0])
    bench.lose(1, 2, InstallView)
    bench.carry()
    assert bench.nodes[2].stopped and not bench.nodes[3].stopped
    bench.tick(1, cut=lambda packet: packet.src != 3)  # a heartbeat of 3
    assert bench.nodes[2].pids == (1, 2, 3) and not bench.nodes[2].stopped


def test_a_view_announced_after_one_that_is_only_ready_elsewhere_has_a_number_of_its_own() -> None:
    """1 begins the view for which the others are ready, and lets 9 in; they hear neither."""
    bench = ClusterBench(5)
    bench.crash(0)
    bench.breaks(0, at=(1,))
    while not bench.find(src=1, header=InstallView):
        bench.arrive(bench.flight[0])
    bench.step(1, _packet(9, Join(NodeEntry(9, "n9", 1))))
    bench.flight.clear()
    announced = bench.nodes[1].node_view
    assert announced is not None and announced.pids == (1, 2, 3, 4, 9)
    bench.crash(1)
    bench.tick(3 * TIMEOUT)
    after = bench.nodes[2].node_view
    assert after is not None and after.pids == (2, 3, 4)
    assert after.number > announced.number


def test_who_tries_a_number_among_those_of_anothers_view_takes_higher_ones() -> None:
    bench = ClusterBench(4)
    bench.crash(0)
    bench.breaks(0, at=(1, 2))
    while not bench.find(src=1, header=InstallView):
        bench.arrive(bench.flight[0])
    bench.flight.clear()  # 2 and 3 are ready for a view of 1
    ready = bench.nodes[3].prepared
    assert ready is not None
    tried = Attempt(ready.attempt.number + 1, 2, 2)
    bench.step(3, _packet(2, EndView(tried, (2, 3), (), None)))
    (word,) = bench.find(3, 2, Overruled)
    assert isinstance(word.header, Overruled)
    assert word.header.followed.number == first_unused(ready.attempt.number) - 1


@pytest.mark.parametrize(
    ("before", "goes_on"),
    [
        ((0, 1), True),  # 0 announced the view after it, and counts that one, too
        ((0, 7), True),
        ((0, 7, 8), False),  # 7 and 8 may never have heard of it, and go on
    ],
)
def test_a_view_need_not_be_won_if_only_who_announced_a_later_one_is_missing(
    before: tuple[ProcessId, ...], *, goes_on: bool
) -> None:
    bench = ClusterBench(3)
    for p in (1, 2):  # the word that a majority has view 3 is lost
        nodes = bench.nodes[p]
        nodes.ballots = [Ballot(2, 0, before), *nodes.ballots]
        nodes.departed = {7} if len(before) == 2 else set()
    bench.crash(0)
    bench.breaks(0, at=(1, 2))
    bench.carry()
    assert (bench.nodes[1].pids == (1, 2)) == goes_on
    assert bool(bench.told(1, Blocked)) != goes_on


def test_word_that_a_side_was_too_small_is_void_where_a_view_began_since() -> None:
    bench = ClusterBench(3)
    bench.nodes[2].followed = Attempt(9, 1, 1)
    bench.step(2, _packet(1, NoPrimary(Attempt(9, 1, 1), 3, (0,))))
    assert not bench.told(2, Blocked) and bench.nodes[2].blocked is None


def test_a_newcomer_looks_for_those_who_were_lost_before_it_came() -> None:
    bench = ClusterBench(3)
    bench.tick(2 * TIMEOUT, cut=between(2))
    assert bench.nodes[0].pids == (0, 1)
    bench.step(0, _packet(9, Join(NodeEntry(9, "n9", 1))))
    (word,) = bench.find(0, 9, Nodes)
    assert isinstance(word.header, Nodes)
    assert [node.pid for node in word.header.lost] == [2]
    options = ClusterOptions(heartbeat_ms=20, suspect_ms=20 * TIMEOUT)
    newcomer = ClusteredStack(NodeEntry(9, "n9", 1), PAGES, cluster_options=options, network="N2")
    newcomer.step([GetIn((0,)), word.receive])  # type: ignore[list-item]
    assert list(newcomer.lost) == [2]


def test_those_who_installed_different_views_vote_together_and_one_side_of_them_goes_on() -> None:
    bench = ClusterBench(5)

    def until_installed_at(first: ProcessId) -> None:
        while not bench.find(src=first, header=InstallView):
            bench.arrive(bench.flight[0])
        bench.lose(first, None, InstallView)

    bench.crash(4)
    bench.breaks(4, at=(0,))
    until_installed_at(0)  # 0, 1, 2, 3 are ready for the next view; it begins at 0 alone
    bench.breaks(4, at=(1,))
    bench.breaks(0, at=(1,))
    until_installed_at(1)  # 1, 2, 3 are ready for another, which begins at 1 alone
    bench.crash(1)
    bench.tick(6 * TIMEOUT)
    standing = {p: bench.nodes[p] for p in (0, 2, 3)}
    assert any(node.node_view.number > 6 and not node.stopped for node in standing.values())
    assert all(bench.told(p, Out) or not node.stopped for p, node in standing.items())


@pytest.mark.parametrize("leavers", [(0, 1, 2), (2, 1, 0), (0, 1), (1, 0)])
def test_nodes_that_leave_at_once_do_not_wait_for_each_other(
    leavers: tuple[ProcessId, ...],
) -> None:
    bench = ClusterBench(3)
    for p in leavers:
        bench.step(p, GoAway())  # type: ignore[arg-type]
    bench.carry()
    bench.tick(1)
    assert all(bench.told(p, Out) for p in leavers)
    assert 2 in leavers or bench.nodes[2].pids == (2,)


def test_a_side_without_a_majority_waits_and_goes_on_when_the_others_are_back() -> None:
    bench = ClusterBench(4)
    for p in (1, 2, 3):  # each is alone for a while
        bench.breaks(0, at=(p,))
    bench.tick(2 * TIMEOUT, cut=lambda packet: packet.dst != packet.src)
    assert all(bench.told(p, Blocked) for p in range(4))
    bench.tick(4 * TIMEOUT)
    assert len(bench.views()) == 1
    assert all(bench.told(p, Resumed) for p in range(4) if not bench.told(p, Out))


def test_a_node_that_was_excluded_learns_that_it_is_out() -> None:
    bench = ClusterBench(3)
    bench.tick(2 * TIMEOUT, cut=between(2))
    assert bench.views() == {(0, 1), (0, 1, 2)}
    assert bench.told(2, Blocked)
    bench.tick(TIMEOUT)
    assert bench.views() == {(0, 1)}
    (out,) = bench.told(2, Out)
    assert isinstance(out, Out) and out.by in (0, 1)


def test_of_two_that_do_not_hear_each_other_the_younger_goes_but_not_at_once() -> None:
    bench = ClusterBench(4)

    def apart(packet: Packet) -> bool:
        return {packet.src, packet.dst} == {1, 3}

    bench.tick(TIMEOUT + 1, cut=apart)
    assert bench.views() == {(0, 1, 2, 3)}  # both complain; 0 hears both
    bench.tick(2 * TIMEOUT, cut=apart)
    assert bench.views() == {(0, 1, 2)}


def test_the_first_who_says_that_another_is_dead_does_not_go_in_its_place() -> None:
    bench = ClusterBench(4)
    bench.crash(1)
    bench.breaks(1, at=(3,))
    bench.carry()  # 3 is younger than 1; 0 has heard 1 a moment ago
    bench.tick(TIMEOUT + 1)
    assert bench.views() == {(0, 2, 3)}


def test_a_coordinator_that_is_overruled_tries_again_with_a_higher_number() -> None:
    bench = ClusterBench(4)
    promised = Attempt(900, 1, 1)
    end = EndView(promised, (1, 2, 3))
    bench.step(2, _packet(1, end))  # 1 tried to end the view, and only 2 heard of it
    bench.lose(src=2)
    bench.crash(3)
    bench.breaks(3, at=(0,))
    bench.bring(src=0, dst=2, header=EndView)
    (overruled,) = bench.find(src=2, dst=0, header=Overruled)
    assert isinstance(overruled.header, Overruled) and overruled.header.followed == promised
    bench.carry()
    bench.tick(TIMEOUT)
    assert bench.views() == {(0, 1, 2)}
    assert all(_number(bench, p) > 900 for p in (0, 1, 2))


def test_a_node_that_stopped_for_a_view_that_does_not_come_says_so() -> None:
    bench = ClusterBench(3)
    lost = EndView(Attempt(90, 0, 0), (0, 1, 2))
    bench.step(2, _packet(0, lost))
    bench.lose(src=2)  # its report; and 0 knows nothing of that attempt
    assert bench.nodes[2].stopped
    heard: list[type] = []

    def listen(packet: Packet) -> bool:
        heard.append(type(packet.header))
        return False

    bench.tick(5 * TIMEOUT, cut=listen)
    assert Stuck in heard
    assert bench.views() == {(0, 1, 2)}
    assert not any(node.stopped for node in bench.nodes.values())


def test_the_smaller_side_is_dissolved_and_told_where_to_go() -> None:
    bench = ClusterBench(5, partition="merge")
    bench.tick(2 * TIMEOUT, cut=between(3, 4))
    assert bench.views() == {(0, 1, 2), (3, 4)}
    bench.tick(4 * TIMEOUT)
    assert [bench.told(p, Dissolved) for p in (3, 4)] == [[Dissolved(0, ("n3", "n4"))]] * 2
    assert not any(bench.told(p, Dissolved) for p in (0, 1, 2))


def test_old_announcements_and_words_of_old_attempts_change_nothing() -> None:
    bench = ClusterBench(4)
    kept: list[Packet] = []

    def keep(packet: Packet) -> bool:
        if isinstance(packet.header, Nodes | EndView | PrepareView | InstallView):
            kept.append(packet)
        return False

    bench.crash(3)
    bench.breaks(3, at=(0, 1, 2))
    bench.tick(2, cut=keep)
    bench.crash(0)
    bench.breaks(0, at=(1, 2))
    bench.tick(2, cut=keep)
    numbers = {p: _number(bench, p) for p in (1, 2)}
    assert kept and bench.views() == {(1, 2)}
    for packet in kept:
        if packet.dst in (1, 2):
            bench.step(packet.dst, packet.receive)
    bench.carry()
    assert {p: _number(bench, p) for p in (1, 2)} == numbers
    for p in (1, 2):
        installed = [n.view.number for n in bench.news[p] if isinstance(n, Installed)]
        assert installed == sorted(set(installed))


def test_what_was_said_while_the_view_ended_is_delivered_in_the_next_one() -> None:
    bench = ClusterBench(3)
    for p, node in bench.nodes.items():
        node.open_group(GROUP)
        bench.step(p, Ask(GROUP, "member"))  # type: ignore[arg-type]
        bench.carry()
    bench.crash(2)
    bench.breaks(2, at=(0,))
    bench.bring(src=0, dst=1, header=EndView)
    assert bench.nodes[1].stopped
    bench.step(1, Multicast(1, b"meanwhile"))
    assert not bench.find(src=1, text="meanwhile")
    bench.carry()
    for p in (0, 1):
        assert bench.story(p)[-2:] == ["01", "meanwhile"]


def _packet(src: ProcessId, header: msgspec.Struct) -> Event:
    return Receive(src, CLUSTER_GROUP, 0, header, b"")


def _number(bench: ClusterBench, p: ProcessId) -> int:
    view = bench.nodes[p].node_view
    assert view is not None
    return view.number
