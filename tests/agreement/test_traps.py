"""Traps of agreement on views, as schedules: each with the machine, and with one that falls in."""

from __future__ import annotations

import pytest

from ordercast.membership.agreement import Agreement
from ordercast.membership.agreement_headers import (
    Ballot,
    EndView,
    InstallView,
    ProposeView,
    ViewAccepted,
    ViewReport,
)
from ordercast.membership.agreement_table import Standing
from tests.agreement import faulty_agreements as faulty
from tests.agreement.scripted_cluster import ScriptedCluster

LONG = 40  # ticks


def never(*kinds):
    return lambda src, dst, header: not isinstance(header, kinds)


def all_are_in(cluster):
    if any(cluster.standing(name) is not Standing.IN for name in cluster.names):
        return False
    return len({cluster.view(name).id for name in cluster.names}) == 1


def test_a_restarted_voter_does_not_count_for_what_it_has_forgotten():
    """b, c go on without a; c restarts; a and c are two of three."""

    def schedule(machine):
        cluster = ScriptedCluster("abc", machine=machine)
        cluster.cut("a", "bc")
        cluster.go_on(3)
        assert cluster.named(cluster.view("b")) == "bc"
        cluster.kill("c")
        cluster.cut("ac", "b")
        cluster.boot("c")
        cluster.go_on(LONG)
        return cluster

    cluster = schedule(Agreement)
    assert cluster.standing("a") is Standing.CUT_OFF and not cluster.bad
    cluster.cut("abc")
    cluster.go_on(LONG)
    assert all_are_in(cluster) and not cluster.bad
    assert schedule(faulty.RestartedCounts).bad == {
        "recovered without all of an electorate, and no operator has spoken",
        "recovered without somebody who lives and has gone on",
    }


def test_that_all_of_a_view_are_accounted_for_is_not_enough_to_recover():
    """b, c let d in and go on without a; b, c restart; a never heard of d."""

    def schedule(machine):
        cluster = ScriptedCluster("abcd", first="abc", machine=machine)
        cluster.cut("a", "bcd")
        cluster.boot("d")
        cluster.go_on(10)
        assert cluster.named(cluster.view("d")) == "bcd"
        cluster.kill("b", "c")
        cluster.cut("abc", "d")
        cluster.boot("b", "c")
        cluster.go_on(LONG)
        return cluster

    cluster = schedule(Agreement)
    assert cluster.standing("a") is Standing.CUT_OFF and not cluster.bad
    assert "recovered without somebody who lives and has gone on" in (
        schedule(faulty.ViewAccounted).bad
    )


def test_nobody_promises_for_a_view_that_it_is_not_in():
    """b, c would promise to end view 5 while they are in view 4, and could finish neither."""

    def promised(machine):
        cluster = ScriptedCluster("abc", machine=machine)
        later = cluster.view("a").id.__class__(0, 0, cluster.view("a").number + 1)
        before = cluster.m("b").acceptor.promised
        cluster.say("a", "b", EndView(later, Ballot(1, cluster.pid("a"))))
        return cluster.m("b").acceptor.promised != before, cluster

    has, cluster = promised(Agreement)
    assert not has
    cluster.kill("a")
    cluster.go_on(3)
    assert cluster.named(cluster.view("b")) == "bc" == cluster.named(cluster.view("c"))
    assert promised(faulty.PromisesUnknownViews)[0]


@pytest.mark.parametrize("newcomers", ["de", "defg"])
def test_newcomers_that_die_together_do_not_take_the_majority_along(newcomers):
    def schedule(machine):
        cluster = ScriptedCluster("abc" + newcomers, first="abc", machine=machine)
        cluster.boot(*newcomers)
        cluster.go_on(2)
        cluster.kill(*newcomers)
        cluster.go_on(LONG)
        return cluster

    cluster = schedule(Agreement)
    assert cluster.standing("a") is Standing.IN and not cluster.bad
    assert cluster.named(cluster.view("a")) == cluster.named(cluster.view("b")) == "abc"
    if len(newcomers) > 3:
        assert schedule(faulty.EverybodyVotesAtOnce).standing("a") is Standing.CUT_OFF


def test_workers_that_die_together_do_not_take_the_majority_along():
    cluster = ScriptedCluster("abcwxyz", workers="wxyz")
    assert len(cluster.view("a").voters) == 3
    cluster.kill("w", "x", "y", "z", "c")
    cluster.go_on(3)
    assert cluster.standing("a") is Standing.IN and cluster.named(cluster.view("b")) == "ab"


def test_a_majority_that_was_killed_comes_back_where_there_is_an_electorate():
    def schedule(machine):
        cluster = ScriptedCluster("abc", electorate="abc", machine=machine)
        cluster.kill("b", "c")
        cluster.go_on(3)
        assert cluster.standing("a") is Standing.CUT_OFF
        cluster.boot("b", "c")
        cluster.go_on(LONG)
        return cluster

    cluster = schedule(Agreement)
    assert all_are_in(cluster) and not cluster.bad and cluster.view("a").id.generation == 1
    assert schedule(faulty.NeverRecovers).standing("a") is Standing.CUT_OFF


def test_a_node_without_a_vote_recovers_nothing():
    """w may have been excluded from later views, of which nobody knows any more."""

    def schedule(machine):
        cluster = ScriptedCluster("abw", electorate="ab", workers="w", machine=machine)
        cluster.kill("a", "b")
        cluster.go_on(3)
        cluster.boot("a", "b")
        cluster.go_on(LONG)
        return cluster

    cluster = schedule(Agreement)
    assert cluster.standing("w") is Standing.CUT_OFF and not cluster.bad
    assert "recovered by nobody who remembers" in schedule(faulty.NobodyRemembers).bad


def test_a_coordinator_that_dies_with_an_accepted_proposal_can_be_repaired_by_an_electorate():
    """a excludes b, c has accepted {a, c}, a dies: c is half of it, without the first."""

    def schedule(machine):
        cluster = ScriptedCluster("abc", electorate="abc", machine=machine)
        cluster.disconnect(cluster.pid("a"), cluster.pid("b"))
        cluster.hand_over(lambda src, dst, header: src == "a" and isinstance(header, ProposeView))
        assert cluster.m("c").acceptor.accepted is not None
        cluster.kill("a")
        cluster.go_on(LONG)
        assert cluster.standing("c") is Standing.CUT_OFF
        cluster.boot("a")
        cluster.go_on(LONG)
        return cluster

    cluster = schedule(Agreement)
    assert all_are_in(cluster) and not cluster.bad
    assert not all_are_in(schedule(faulty.NeverRecovers))


def test_what_may_have_been_decided_is_proposed_again():
    """a decides {a, c, d} without b, and only a knows; b leads next, with c and d."""

    def schedule(machine):
        cluster = ScriptedCluster("abcd", machine=machine)
        cluster.disconnect(cluster.pid("a"), cluster.pid("b"))
        cluster.hand_over(
            lambda src, dst, header: (
                isinstance(header, ProposeView | ViewAccepted) and "a" in (src, dst)
            )
        )
        assert cluster.named(cluster.view("a")) == "acd"
        cluster.cut("a", "bcd")
        cluster.until_suspected()
        return cluster

    cluster = schedule(Agreement)
    assert not cluster.bad and cluster.standing("c") is Standing.IN
    assert "acd" in {cluster.named(view) for view in cluster.views.values()}
    assert schedule(faulty.AcceptedIgnored).bad & {
        "two views of one id",
        "two successors of one view",
    }


def test_who_reported_and_is_lost_since_does_not_let_a_minority_recover():
    """Reports of b, c, d are a majority of abcd. When the last one comes, c is cut off: b and d are
    no majority, and nobody has declared that the others are gone."""

    def schedule(machine):
        cluster = ScriptedCluster("abcd", machine=machine)
        cluster.kill("a")
        cluster.go_on(1, lambda src, dst, header: (src, type(header)) != ("d", ViewReport))
        cluster.cut("bd", "c")
        cluster.go_on(LONG)
        return cluster

    cluster = schedule(Agreement)
    assert {cluster.standing(name) for name in "bcd"} == {Standing.CUT_OFF} and not cluster.bad
    cluster.cut("bcd")
    cluster.go_on(LONG)
    assert cluster.named(cluster.view("b")) == "bcd" and not cluster.bad
    assert schedule(faulty.RecoversWhenReportersAreLost).bad == {
        "recovered without all of an electorate, and no operator has spoken"
    }


def test_a_lower_ballot_than_the_promised_one_is_not_accepted():
    """c and d have promised b to follow no lower ballot; then a's proposal comes."""

    def schedule(machine):
        cluster = ScriptedCluster("abcd", machine=machine)
        a = cluster.pid("a")
        cluster.disconnect(a, cluster.pid("b"))
        proposals = {
            name: cluster.links[a, cluster.pid(name)].popleft() for name in "cd"
        }  # a's packets are slow
        for name in "cd":
            cluster.m(name).detector.told(a)
        cluster.m("b").tick(cluster.nodes[cluster.pid("b")])
        cluster.hand_over(lambda src, dst, header: isinstance(header, EndView))
        assert cluster.m("c").acceptor.promised.n == 1
        for name in "cd":
            cluster.say("a", name, proposals[name])
        return cluster

    cluster = schedule(Agreement)
    assert cluster.m("c").acceptor.accepted is None and cluster.m("d").acceptor.accepted is None
    assert schedule(faulty.PromiseBroken).m("c").acceptor.accepted is not None


def test_who_leaves_stays_until_others_have_the_view_without_it():
    """a is half of {a, b}, with the first: if it goes before b knows, b is alone for ever."""

    def schedule(machine):
        cluster = ScriptedCluster("ab", machine=machine)
        a = cluster.pid("a")
        cluster.step(a, lambda m, n: m.leave(n))
        cluster.go_on(3, never(InstallView))
        standing = cluster.nodes[a].machine.standing
        if (a, cluster.pid("b")) in cluster.links:
            cluster.links[a, cluster.pid("b")].clear()  # they are lost
        cluster.go_on(LONG)
        return cluster, standing

    cluster, standing = schedule(Agreement)
    assert standing is Standing.LEAVING
    assert cluster.named(cluster.view("b")) == "b" and cluster.standing("b") is Standing.IN
    cluster, standing = schedule(faulty.LeavesAtOnce)
    assert standing is Standing.OUT and cluster.standing("b") is Standing.CUT_OFF


def test_the_last_voter_does_not_leave_before_another_is_there():
    cluster = ScriptedCluster("awb", first="aw", workers="w")
    cluster.step(cluster.pid("a"), lambda m, n: m.leave(n))
    cluster.go_on(5)
    assert cluster.standing("a") is Standing.IN
    cluster.boot("b")
    cluster.go_on(15)
    assert cluster.standing("a") is Standing.OUT and cluster.named(cluster.view("w")) == "wb"


def test_an_operators_word_makes_a_minority_primary_and_fences_the_rest():
    cluster = ScriptedCluster("abc")
    cluster.kill("b", "c")
    cluster.go_on(3)
    assert cluster.standing("a") is Standing.CUT_OFF
    cluster.spoken = True
    cluster.step(cluster.pid("a"), lambda m, n: m.forget(n, ()))
    view = cluster.view("a")
    assert cluster.standing("a") is Standing.IN and view.id.generation == 1
    assert view.forgotten == ("b#1", "c#1")
    cluster.boot("b", "c")
    cluster.go_on(LONG)
    assert all_are_in(cluster) and not cluster.bad


def test_a_wrong_word_of_an_operator_ends_with_one_side():
    """a is declared primary while b, c go on. When they meet, the higher generation stays."""

    def schedule(machine):
        cluster = ScriptedCluster("abc", machine=machine)
        cluster.cut("a", "bc")
        cluster.go_on(3)
        cluster.spoken = True
        cluster.step(cluster.pid("a"), lambda m, n: m.forget(n, ()))
        cluster.cut("abc")
        cluster.go_on(LONG)
        return cluster

    cluster = schedule(Agreement)
    assert all_are_in(cluster) and not cluster.bad
    assert cluster.view("b").id.generation == 1
    assert not all_are_in(schedule(faulty.NoFence))


def test_an_operators_word_does_not_outlive_what_it_was_about():
    """b is forgotten while it is only slow; later the cluster has lost two others."""
    cluster = ScriptedCluster("abcde")
    cluster.m("a").detector.told(cluster.pid("b"))
    cluster.m("a").proposer.attempt = None
    cluster.m("a").reconfiguration.forgotten[cluster.pid("b")] = cluster.m("a").ticks
    cluster.m("a").detector.trust(cluster.pid("b"))
    cluster.go_on(1)
    assert not cluster.m("a").reconfiguration.forgotten
