"""Who is removed when nodes do not hear each other: never one at the word of another alone."""

from __future__ import annotations

import pytest

from ordercast.membership.agreement import Agreement
from ordercast.membership.agreement_headers import EndView, Suspect, ViewAccepted
from ordercast.membership.agreement_table import Standing
from tests.agreement import faulty_agreements as faulty
from tests.agreement.scripted_cluster import ScriptedCluster
from tests.agreement.simulated_cluster import TIMEOUT_TICKS


def accuse(cluster, accuser, accused):
    header = Suspect(cluster.view(accuser).id, cluster.pid(accused))
    for name in cluster.names:
        if name != accuser and cluster.standing(name) is Standing.IN:
            cluster.say(accuser, name, header)


def without(cluster, name):
    """Is this node, as it was at first, out of the view of the others?"""
    return cluster.names.index(name) not in cluster.view("a").pids


@pytest.mark.parametrize("accused", ["a", "c", "d"])
def test_one_accuser_removes_itself_in_the_end_and_nobody_else(accused):
    def schedule(machine):
        cluster = ScriptedCluster("abcd", machine=machine)
        for _ in range(2 * TIMEOUT_TICKS):
            if cluster.standing("b") is Standing.IN and not without(cluster, "b"):
                accuse(cluster, "b", accused)
            cluster.go_on(1)
        return cluster

    cluster = schedule(Agreement)
    assert without(cluster, "b") and not without(cluster, accused)
    if accused != "a":
        assert without(schedule(faulty.OneAccuserIsEnough), accused)


def test_an_accusation_that_is_not_repeated_removes_nobody():
    cluster = ScriptedCluster("abcd")
    before = cluster.view("a")
    accuse(cluster, "b", "c")
    cluster.go_on(2 * TIMEOUT_TICKS)
    assert cluster.view("a") == before and not cluster.m("a").suspicions.disputes.words


def test_of_two_that_never_hear_each_other_the_younger_goes_and_the_rest_goes_on():
    def schedule(machine):
        cluster = ScriptedCluster("abcd", machine=machine)
        cluster.disconnect(cluster.pid("b"), cluster.pid("c"))
        cluster.go_on(TIMEOUT_TICKS - 1)
        assert cluster.named(cluster.view("a")) == "abcd"  # not at once
        cluster.go_on(2 * TIMEOUT_TICKS)
        return cluster

    cluster = schedule(Agreement)
    assert without(cluster, "c") and not without(cluster, "b") and not without(cluster, "d")
    assert not without(schedule(faulty.NobodyIsRemovedForDisputes), "c")


def test_a_link_that_breaks_and_comes_back_removes_nobody_and_the_view_begins_anew():
    def schedule(machine):
        cluster = ScriptedCluster("abcd", machine=machine)
        b, c = cluster.pid("b"), cluster.pid("c")
        cluster.disconnect(b, c)
        cluster.connect(b, c)
        cluster.go_on(3 * TIMEOUT_TICKS)
        return cluster

    cluster = schedule(Agreement)
    assert cluster.named(cluster.view("a")) == "abcd" and cluster.view("a").anew
    assert without(schedule(faulty.SuspectsForEver), "c")


def test_who_no_longer_hears_the_coordinator_goes_if_the_others_hear_it():
    cluster = ScriptedCluster("abcd")
    cluster.held.add((0, 1))  # packets of a to b
    cluster.go_on(4 * TIMEOUT_TICKS)
    assert not without(cluster, "a") and without(cluster, "b")


def test_a_coordinator_that_most_do_not_hear_is_given_up_by_the_one_that_hears_it():
    def schedule(machine):
        cluster = ScriptedCluster("abcd", machine=machine)
        cluster.held.update({(0, 2), (0, 3)})  # of a to c and d; b hears it
        cluster.go_on(5 * TIMEOUT_TICKS)
        return cluster

    cluster = schedule(Agreement)
    assert cluster.names.index("a") not in cluster.view("b").pids
    assert cluster.view("b").id == cluster.view("c").id == cluster.view("d").id
    stuck = schedule(faulty.NobodyIsRemovedForDisputes)
    assert stuck.named(stuck.view("b")) == "abcd"


def test_nobody_follows_a_node_that_leads_while_the_coordinator_is_heard():
    def schedule(machine):
        cluster = ScriptedCluster("abcd", machine=machine)
        cluster.m("b").detector.told(cluster.pid("a"))
        cluster.m("b").suspicions.judged[cluster.pid("a")] = cluster.m("b").ticks
        cluster.step(cluster.pid("b"), lambda m, n: m.act(n))
        cluster.hand_over(lambda src, dst, header: "a" not in (src, dst))
        return cluster

    cluster = schedule(Agreement)
    assert isinstance(cluster.m("c").acceptor.pending[cluster.pid("b")], EndView)
    assert cluster.named(cluster.view("c")) == "abcd"
    assert schedule(faulty.FollowsAnybody).named(cluster.view("c")) == "abcd"
    assert schedule(faulty.FollowsAnybody).m("c").view.pids != cluster.view("c").pids


def test_of_two_that_accuse_each_other_the_younger_goes_also_if_it_began_later():
    """Silence is counted in ticks, and those of two nodes do not fall together."""
    cluster = ScriptedCluster("abcd")
    for tick in range(3 * TIMEOUT_TICKS):
        for accuser, accused, since in (("b", "c", 0), ("c", "b", 2)):
            if tick >= since and not without(cluster, "b") and not without(cluster, "c"):
                accuse(cluster, accuser, accused)
        cluster.go_on(1)
    assert without(cluster, "c") and not without(cluster, "b")


def test_who_lost_its_link_to_the_coordinator_knows_soon_that_it_is_out():
    cluster = ScriptedCluster("abc")
    process = cluster.pid("c")
    cluster.disconnect(cluster.pid("a"), process)
    cluster.go_on(3)  # far from its patience: whoever it can reach has the view
    assert process not in cluster.view("a").pids
    assert cluster.current.get(cluster.names.index("c")) != process


def test_who_accepted_the_view_that_is_without_it_stays_until_enough_have_it():
    cluster = ScriptedCluster("abc")
    process = cluster.pid("c")
    cluster.step(process, lambda m, n: m.leave(n))
    cluster.hand_over(lambda src, dst, header: not isinstance(header, ViewAccepted))
    assert cluster.m("c").acceptor.has_accepted and process in cluster.view("a").pids
    cluster.disconnect(cluster.pid("a"), process)  # it can hand it on to b alone
    cluster.hand_over(lambda src, dst, header: "c" not in (src, dst))
    assert process not in cluster.view("b").pids
    cluster.go_on(2)
    assert cluster.standing("c") is Standing.LEAVING
