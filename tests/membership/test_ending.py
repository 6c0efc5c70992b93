"""From the reports of the nodes to the next views, or to what must be done before."""

from __future__ import annotations

from typing import Any

import pytest

from ordercast.core.events import Kept
from ordercast.errors import PeerError
from ordercast.membership.cluster_headers import Attempt, GroupReport, NodeReport, UnstableFrame
from ordercast.membership.ending import Ending, Finish, Minority, NextViews, Without
from ordercast.membership.nodes import Ballot, GroupEntry, NodeEntry, NodeView
from ordercast.protocols.fifo import Fifo

G = GroupEntry(1, "g", "fifo", "fifo", 0)
NOW = Attempt(9, 1, 1)
MADE = Attempt(5, 0, 0)  # the attempt that made view 5


def view(number: int, *pids: int) -> NodeView:
    return NodeView(number, tuple(NodeEntry(p, f"n{p}", 1) for p in pids))


def ballot(number: int, *pids: int) -> Ballot:
    return Ballot(number, pids[0], pids)


def group(*members: int, number: int = 3, era: int = 7, **fields: Any) -> GroupReport:
    plain = {"delivers": True, "mark": 0, "progress": 0, "last": ()}
    return GroupReport(G, number, era, members, (), **{**plain, **fields})


def report(node_view: NodeView, *groups: GroupReport, **fields: Any) -> NodeReport:
    plain = {
        "installed": MADE,
        "ballots": (ballot(node_view.number, *node_view.pids),),
        "departed": (),
        "ready": None,
        "frames": 0,
        "top_group": 1,
    }
    return NodeReport(NOW, view=node_view, groups=groups, **{**plain, **fields})


def begin(*nodes: int) -> Ending:
    return Ending(NOW, nodes, into=None)


def next_of(ending: Ending, *, voting: bool = True) -> Any:
    return ending.resolve(voting=voting, stride=1, pages=lambda _: Fifo)


def resolve(reports: dict[int, NodeReport], *, voting: bool = True) -> Any:
    ending = begin(*reports)
    for p, said in reports.items():
        ending.reported(p, said)
    assert ending.complete()
    return next_of(ending, voting=voting)


FIVE = view(5, 0, 1, 2, 3, 4)


def test_a_majority_begins_the_next_view_with_the_number_of_the_attempt() -> None:
    found = resolve({p: report(FIVE, group(0, 1, 2, 3, 4)) for p in (1, 2, 4)})
    assert isinstance(found, NextViews)
    assert (found.view.number, found.view.pids) == (9, (1, 2, 4))
    assert found.groups[1].members == (1, 2, 4)
    assert found.groups[1].number > 3 and found.groups[1].era > 7


def test_a_group_that_loses_nobody_begins_a_new_era() -> None:
    found = resolve({p: report(FIVE, group(1, 2)) for p in (1, 2, 4)})
    assert (found.groups[1].members, found.groups[1].era) == ((1, 2), 8)
    assert found.groups[1].number > 3  # who led before may have made view 4, unseen by others


def test_too_few_are_told_who_is_missing() -> None:
    found = resolve({p: report(FIVE) for p in (1, 2)})
    assert isinstance(found, Minority)
    assert (found.ballot.number, found.missing) == (5, (0, 3, 4))


def test_where_sides_may_merge_any_side_goes_on() -> None:
    assert isinstance(resolve({1: report(FIVE)}, voting=False), NextViews)


def test_a_view_that_only_one_of_them_has_prepared_decides_too() -> None:
    both = (ballot(5, 0, 1, 2, 3, 4), ballot(6, 0, 1, 3, 4))
    reports = {p: report(FIVE) for p in (2, 3, 4)}
    assert isinstance(resolve(reports), NextViews)
    found = resolve({**reports, 4: report(FIVE, ballots=both)})
    assert isinstance(found, Minority) and found.ballot.number == 6


def test_a_view_that_is_known_to_be_over_decides_no_more() -> None:
    later = view(8, 3, 4)
    old = report(FIVE, ballots=(ballot(5, 0, 1, 2, 3, 4), ballot(8, 3, 4)))
    knows = report(later, installed=Attempt(8, 0, 3))
    found = resolve({3: old, 4: knows})
    assert not isinstance(found, Minority)


def test_who_has_said_good_bye_does_not_count_in_the_vote() -> None:
    pair = view(5, 0, 1)
    assert isinstance(resolve({1: report(pair)}), Minority)
    assert isinstance(resolve({1: report(pair, departed=(0,))}), NextViews)


def test_those_who_are_ready_for_what_another_has_installed_finish_it_first() -> None:
    made = Attempt(6, 0, 0)
    reports = {
        1: report(view(6, 1, 2, 3), installed=made),
        2: report(FIVE, ready=made),
        3: report(FIVE, ready=made),
    }
    assert resolve(reports) == Finish((), made)


def test_one_that_is_not_ready_for_what_another_has_installed_votes_and_cannot_go_on() -> None:
    made = Attempt(6, 0, 0)
    reports = {1: report(view(6, 1, 2, 3), installed=made), 2: report(FIVE, ready=None)}
    assert resolve(reports).view.pids == (1,)  # two of three, though 2 is not in it
    assert isinstance(resolve({1: reports[1]}), Minority)
    assert resolve(reports, voting=False) == Without(frozenset({2}))


def test_one_that_is_ready_for_a_view_without_it_does_not_finish_that() -> None:
    made = Attempt(6, 0, 0)
    reports = {1: report(view(6, 1, 3), installed=made), 2: report(FIVE, ready=made)}
    found = resolve({**reports, 3: report(FIVE, ready=made)})
    assert found == Finish((), made)  # 3 does
    found = resolve({**reports, 3: reports[1]})
    assert found.view.pids == (1, 3)


def test_an_era_of_a_group_that_somebody_has_begun_is_finished_by_those_who_are_ready() -> None:
    begun, waits = group(0, 1, 2, era=8), group(0, 1, era=7, ready=8)
    found = resolve({0: report(FIVE, begun), 1: report(FIVE, waits), 2: report(FIVE, begun)})
    assert found == Finish(((1, 8),), None)


def test_the_union_holds_what_any_member_has() -> None:
    ending = begin(1, 2, 3)
    for p in (1, 2, 3):
        ending.reported(p, report(FIVE, group(0, 1, 2, 3), frames=int(p < 3)))
    assert not ending.complete()
    ending.frame(1, UnstableFrame(NOW, 1, 0, 1, ()), b"a")
    ending.frame(2, UnstableFrame(NOW, 1, 0, 2, ()), b"b")
    found = next_of(ending)
    assert found.union == {(1, 0, 1): Kept(0, 1, (), b"a"), (1, 0, 2): Kept(0, 2, (), b"b")}
    assert found.takers[1] == (1, 2, 3)


def test_a_node_that_sends_more_frames_than_it_announced_is_blamed() -> None:
    ending = begin(1)
    ending.reported(1, report(FIVE, frames=0))
    with pytest.raises(PeerError, match="more unstable frames"):
        ending.frame(1, UnstableFrame(NOW, 1, 0, 1, ()), b"a")
