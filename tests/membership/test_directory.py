"""The directory of the coordinator: who sequences what, and what comes before a join."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import pytest

from ordercast.core.protocol import Together
from ordercast.membership.directory import Directory, Order, Wish, eligible, hosts_after
from ordercast.membership.nodes import GroupEntry, NodeEntry
from ordercast.membership.placing_headers import Alter, HandOver, Host

S1, S2, S3 = 11, 12, 13
ABLE = (S1, S2, S3)


def entry(gid: int) -> GroupEntry:
    return GroupEntry(gid, f"g{gid}", "total", "sequencing", 4)


def directory(
    *groups: tuple[int, tuple[int, ...], int], together: Together = "strong"
) -> Directory:
    """With these (group, members, sequencer)."""
    made = Directory(together, since=7)
    for gid, members, host in groups:
        made.know(entry(gid), members, (), host, number=len(members))
    return made


def test_a_new_group_goes_to_the_least_loaded_and_its_founder_is_let_in() -> None:
    made = directory((1, (0, 1), S1))
    assert made.found(entry(2), (5,), ABLE, number=9) == [(S2, Host(7, entry(2), 9))]
    assert made.wish(Wish(2, joined=(5,)), ABLE) == [(S2, Alter(7, 2, joined=(5,)))]


def test_who_asks_again_is_let_in_once() -> None:
    made = directory((1, (0,), S1))
    assert made.wish(Wish(1, joined=(5,)), ABLE)
    assert made.wish(Wish(1, joined=(5,)), ABLE) == []
    assert made.wish(Wish(1, left=(5,)), ABLE) == [(S1, Alter(7, 1, left=(5,)))]
    assert made.wish(Wish(1, left=(5,)), ABLE) == []


def test_who_changes_its_mind_is_told_so_only_if_nothing_lets_it_in() -> None:
    made = directory((1, (0, 1), S1))
    assert made.never_let_in(1, 5)
    made.wish(Wish(1, joined=(5,)), ABLE)
    assert not made.never_let_in(1, 5)
    made.wish(Wish(1, left=(5,)), ABLE)
    assert not made.never_let_in(1, 5)  # both are under way
    made.migrate(1, S2)
    made.wish(Wish(1, guests=(6,)), ABLE)
    assert not made.never_let_in(1, 6)  # it waits for the hand-over
    assert made.never_let_in(1, 7)


def test_groups_that_come_to_share_two_members_are_put_together_before_the_second_comes_in() -> (
    None
):
    made = directory((1, (0, 1), S1), (2, (0, 2), S2))
    ((host, order),) = made.wish(Wish(2, joined=(1,)), ABLE)
    assert isinstance(order, HandOver) and {host, order.to} == {S1, S2}
    assert made.wish(Wish(1, joined=(9,)), ABLE) == []  # one at a time
    orders = made.moved(order.gids, order.to, ABLE)
    assert orders == [
        (order.to, Alter(7, 2, joined=(1,))),
        (order.to, Alter(7, 1, joined=(9,))),
    ]


def test_all_groups_of_one_sequencer_that_must_go_are_handed_over_at_once() -> None:
    made = directory((1, (0, 1, 2), S1), (2, (0, 1), S1), (3, (1, 2), S1), (4, (5, 6), S2))
    ((host, order),) = made.migrate(2, S3)
    assert (host, order) == (S1, HandOver(7, (1, 2, 3), S3))


def test_where_any_sequencer_will_do_a_group_moves_alone() -> None:
    made = directory((1, (0, 1), S1), (2, (0, 1), S1), together="none")
    assert made.migrate(2, S3) == [(S1, HandOver(7, (2,), S3))]
    assert made.wish(Wish(1, joined=(9,)), ABLE) == []  # it waits for the hand-over


def test_a_drained_sequencer_gives_everything_away() -> None:
    made = directory((1, (0, 1), S1), (2, (2, 3), S1), (3, (4, 5), S2))
    orders = made.drain(S1, ABLE)
    assert {(host, order.to == S1) for host, order in orders} == {(S1, False)}
    assert {g for _, order in orders for g in order.gids} == {1, 2}


def test_dedicated_sequencers_are_preferred_to_all_others() -> None:
    nodes = [NodeEntry(1, "a", 1), NodeEntry(2, "b", 1, sequencer=True), NodeEntry(3, "c", 1)]
    assert eligible(nodes) == [2]
    assert eligible(nodes, draining=[2]) == [1, 3]


def test_after_a_crash_groups_that_must_be_together_are_and_the_others_stay() -> None:
    groups = {1: ((0, 1), None), 2: ((0, 1), S2), 3: ((5, 6), S3)}
    hosts = hosts_after("strong", groups, (S2, S3))
    assert hosts == {1: S2, 2: S2, 3: S3}


# -- the race of two joins: every interleaving ----------------------------------------------------


class Race:
    """p in B wants into A, q in A wants into B; sequencers answer in any order."""

    def __init__(self, wishes: tuple[Wish, ...]) -> None:
        self.made = directory((1, (0, 1), S1), (2, (0, 2), S2), (3, (1, 2), S3))
        self.wishes = wishes
        self.asked = 0
        self.under_way: list[HandOver] = []
        self.admitted: list[Alter] = []

    def choices(self) -> Iterator[int | None]:
        """What may happen next: another wish (None), or the end of one of the hand-overs."""
        if self.asked < len(self.wishes):
            yield None
        yield from range(len(self.under_way))

    def go(self, choice: int | None) -> None:
        if choice is None:
            wish = self.wishes[self.asked]
            self.asked += 1
            self._take(self.made.wish(wish, ABLE))
        else:
            done = self.under_way.pop(choice)
            self._take(self.made.moved(done.gids, done.to, ABLE))

    def _take(self, orders: list[Order]) -> None:
        for host, order in orders:
            if isinstance(order, HandOver):
                self.under_way.append(order)
            else:
                assert isinstance(order, Alter) and host == self.made.records[order.gid].host
                self.admitted.append(order)
                self._check()

    def _check(self) -> None:
        """S2, by the members as they are now: no two that share two members are apart."""
        records = self.made.records
        for one, other in combinations(records.values(), 2):
            if len(one.members & other.members) >= 2:
                assert one.host == other.host


@pytest.mark.parametrize(
    "wishes",
    [
        (Wish(1, joined=(2,)), Wish(2, joined=(1,))),
        (Wish(2, joined=(1,)), Wish(1, joined=(2,))),
        (Wish(3, joined=(0,)), Wish(1, joined=(2,)), Wish(2, joined=(1,))),
    ],
)
def test_whoever_is_first_no_groups_that_share_two_members_are_ever_apart(
    wishes: tuple[Wish, ...],
) -> None:
    paths: list[tuple[int | None, ...]] = [()]
    seen = 0
    while paths:
        path = paths.pop()
        race = Race(wishes)
        for choice in path:
            race.go(choice)
        further = list(race.choices())
        paths += [(*path, choice) for choice in further]
        if not further:
            seen += 1
            assert sorted(a.joined for a in race.admitted) == sorted(w.joined for w in wishes)
    assert seen >= 2


def test_a_leaver_counts_until_all_have_delivered_the_view_without_it() -> None:
    made = directory((1, (0, 1), S1), (2, (0, 1), S1))
    made.wish(Wish(2, left=(1,)), ABLE)
    assert made.placement.component(1) == {1, 2}
    made.settled(2, (1,), changes=0)  # of a time before
    assert made.placement.component(1) == {1, 2}
    made.settled(2, (1,), changes=1)
    assert made.placement.component(1) == {1}


def test_what_a_copy_decides_leaves_the_original_alone() -> None:
    made = directory((1, (0, 1), S1), (2, (0, 2), S2))
    before = made.fingerprint()
    twin = made.copy()
    twin.migrate(1, S3)
    twin.moved((1,), S3, ABLE)
    twin.wish(Wish(2, joined=(3,)), ABLE)
    assert (twin.records[1].host, twin.records[2].members) == (S3, {0, 2, 3})
    assert made.fingerprint() == before
