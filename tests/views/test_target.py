"""What the coordinator aims at: who numbers what, and what a wish moves."""

from __future__ import annotations

from itertools import combinations, permutations

import pytest

from ordercast.membership.node_view import NodeEntry
from ordercast.protocols.registry import PROTOCOLS
from ordercast.views.directory import Directory
from ordercast.views.groups import GroupEntry
from ordercast.views.headers import Row, WantIn
from ordercast.views.target import Target

A, B, C, S1, S2, S3 = 0, 1, 2, 11, 12, 13
pages = PROTOCOLS.__getitem__


def entry(g, protocol):
    return GroupEntry(g, f"g{g}", "total", protocol, 7)


class Aiming:
    """A target over these groups: {group: (members, sequencer)}."""

    def __init__(self, groups, protocol="sequencing", nodes=(A, B, C, S1, S2, S3)):
        self.protocol, self.directory = protocol, Directory()
        for g, (members, leader) in groups.items():
            self.directory.put(Row(entry(g, protocol), 1, 1, members, (), leader))
        self.target = Target(A, 1, 1 << 30)
        entries = [NodeEntry(p, f"n{p}", 1, sequencer=p in (S1, S2, S3)) for p in nodes]
        self.target.begin(self.directory, entries, {}, pages)

    def join(self, p, g):
        want = WantIn(entry(g, self.protocol), "member")
        self.target.want_in(self.directory, p, want, pages)
        self.target.invariants(self.directory)

    def aims(self):
        """How the groups shall stand."""
        groups = {*self.directory.rows, *self.target.aims}
        return {g: self.target.aim_of(self.directory, g) for g in sorted(groups)}

    def leaders(self):
        return {g: aim.leader for g, aim in self.aims().items()}

    def assert_together(self, share):
        for one, other in combinations(self.aims().values(), 2):
            if len(set(one.members).intersection(other.members)) >= share:
                assert one.leader == other.leader, f"{one} and {other}"


def test_a_new_group_goes_to_the_least_loaded_sequencer():
    aiming = Aiming({1: ((A, B), S1), 2: ((A, B), S1)}, nodes=(A, B, C, S1, S2))
    aiming.join(C, 3)
    assert aiming.aims()[3].members == (C,)
    assert aiming.leaders()[3] == S2


def test_who_asks_again_is_let_in_once():
    aiming = Aiming({1: ((A,), S1)})
    for _ in range(3):
        aiming.join(B, 1)
    assert aiming.aims()[1].members == (A, B)


RACES = [((B, 1), (C, 2)), ((A, 3), (C, 1), (B, 2)), ((C, 1), (B, 2), (A, 3), (S3, 1), (S3, 2))]


@pytest.mark.parametrize("protocol", ["sequencing", "sequencing_global"])
@pytest.mark.parametrize("race", RACES)
def test_whoever_asks_first_no_groups_that_must_be_together_are_ever_apart(protocol, race):
    share = {"strong": 2, "weak": 1}[PROTOCOLS[protocol].together]
    for order in permutations(race):
        groups = {1: ((A, B), S1), 2: ((A, C), S2), 3: ((B, C), S3)}
        if share == 1:  # they share members already
            groups = {g: (members, S1) for g, (members, _) in groups.items()}
        aiming = Aiming(groups, protocol)
        for p, g in order:
            aiming.join(p, g)
            aiming.assert_together(share)
        assert all(p in aiming.aims()[g].members for p, g in race)


def test_all_groups_of_a_sequencer_that_must_be_together_move_at_once():
    groups = {1: ((A, B, C), S1), 2: ((A, B), S1), 3: ((B, C), S1), 4: ((A, S3), S2)}
    aiming = Aiming(groups)
    assert aiming.target.migrate(aiming.directory, 2, S3)
    assert aiming.leaders() == {1: S3, 2: S3, 3: S3, 4: S2}


def test_where_any_sequencer_will_do_a_group_moves_alone():
    aiming = Aiming({1: ((A, B), S1), 2: ((A, B), S1)}, "sequencing_hybrid")
    assert aiming.target.migrate(aiming.directory, 2, S3)
    assert aiming.leaders() == {1: S1, 2: S3}


def test_a_drained_sequencer_gives_everything_away():
    aiming = Aiming({1: ((A, B), S1), 2: ((B, C), S1), 3: ((A, C), S2)})
    aiming.target.drain(aiming.directory, S1, drained=True)
    assert S1 not in aiming.leaders().values()
    assert aiming.leaders()[3] == S2
    aiming.target.invariants(aiming.directory)


def test_dedicated_sequencers_are_preferred_to_all_others_unless_all_are_drained():
    aiming = Aiming({}, nodes=(A, B, S1))
    assert aiming.target.eligible() == [S1]
    aiming.target.drain(aiming.directory, S1, drained=True)
    assert aiming.target.eligible() == [A, B]


def test_after_a_crash_groups_that_must_be_together_are_and_the_others_stay():
    groups = {1: ((A, B), S1), 2: ((A, B), S1), 3: ((C, S3), S2)}
    aiming = Aiming(groups, nodes=(A, B, C, S2, S3))
    leaders = aiming.leaders()
    assert leaders[1] == leaders[2] in (S2, S3)
    assert leaders[3] == S2


def test_what_a_copy_aims_at_leaves_the_original_alone():
    aiming = Aiming({1: ((A, B), S1), 2: ((A, C), S2)})
    before = aiming.target.fingerprint()
    twin = aiming.target.copy()
    assert twin.migrate(aiming.directory, 1, S3)
    twin.want_in(aiming.directory, B, WantIn(entry(2, "sequencing"), "member"), pages)
    assert twin.fingerprint() != before == aiming.target.fingerprint()


def test_a_number_that_was_offered_is_of_that_group_alone():
    aiming = Aiming({1: ((A, B), S1)})
    aiming.target.offer(entry(2, "sequencing"))
    assert aiming.target.of_number(aiming.directory, 2) == entry(2, "sequencing")
    assert aiming.target.of_name(aiming.directory, "g2") == entry(2, "sequencing")
    assert aiming.target.highest(aiming.directory) == aiming.target.count(aiming.directory) == 2
    aiming.join(C, 2)
    assert aiming.target.count(aiming.directory) == 2


@pytest.mark.parametrize(("g", "name"), [(2, "another"), (3, "g2")])
def test_an_offer_is_withdrawn_when_a_change_gives_the_number_or_the_name_to_another(g, name):
    """The change was planned by a coordinator that is gone, and is finished by this one."""
    aiming = Aiming({1: ((A, B), S1)})
    aiming.target.offer(entry(2, "sequencing"))
    other = GroupEntry(g, name, "total", "sequencing", 7)
    aiming.directory.put(Row(other, 1, 1, (C,), (), S1))
    aiming.target.begin(aiming.directory, tuple(aiming.target.nodes.values()), {}, pages)
    aiming.target.invariants(aiming.directory)
    assert not aiming.target.offered
    assert aiming.target.of_name(aiming.directory, name) == other


def test_offers_are_bounded_and_the_oldest_go_first(monkeypatch):
    monkeypatch.setattr("ordercast.views.target.MAX_OFFERED", 3)
    aiming = Aiming({})
    for g in range(1, 8):
        aiming.target.offer(entry(g, "sequencing"))
    assert sorted(aiming.target.offered) == [5, 6, 7]
