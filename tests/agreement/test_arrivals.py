"""Nodes that come together come in together, and nobody waits for a heartbeat without need."""

from __future__ import annotations

from ordercast.membership.agreement_headers import Reached, ViewAccepted
from tests.agreement.scripted_cluster import ScriptedCluster

LONG = 60  # ticks: whatever is to come has come


def reached_late(cluster, name):
    """Nobody says yet that it reaches this node, in any of its lives."""

    def only(src, dst, header):
        return not (isinstance(header, Reached) and cluster.nodes[header.pid].name == name)

    return only


def test_an_applicant_that_missed_a_view_is_in_the_next_one_without_a_tick():
    """A view with d is proposed when e asks. What the voters said of e ends with that view."""
    cluster = ScriptedCluster("abcde", first="abc")
    ticks = cluster.m("a").ticks
    for name in "de":
        cluster.boot(name)
        cluster.hand_over(lambda src, dst, header: not isinstance(header, ViewAccepted))
    cluster.hand_over()
    assert cluster.named(cluster.view("a")) == "abcde"
    assert cluster.m("a").ticks == ticks and not cluster.bad


def test_a_side_that_comes_back_waits_until_all_of_it_are_reached():
    """d and e have both asked, and d is reached: a view with d alone would be one view more."""
    cluster = ScriptedCluster("abcde", partition="merge")
    cluster.cut("abc", "de")
    cluster.until_suspected()
    assert cluster.named(cluster.view("a")) == "abc" and cluster.named(cluster.view("d")) == "de"
    before = cluster.view("a").number
    cluster.cut("abcde")
    all_but_e = reached_late(cluster, "e")
    while len(cluster.m("a").entrance.applicants.of) < 2:
        cluster.go_on(1, all_but_e)
    cluster.hand_over(all_but_e)
    assert cluster.named(cluster.view("a")) == "abc"
    cluster.hand_over()
    assert cluster.named(cluster.view("a")) == "abcde"
    assert cluster.view("a").number == before + 1 and not cluster.bad


def test_sides_meet_when_they_are_connected_and_not_when_they_next_look():
    """With a turn to wait for, and a majority of the side to wait for, it took a second."""
    cluster = ScriptedCluster("abcdefg", partition="merge")
    cluster.cut("abcd", "efg")
    cluster.until_suspected()
    ticks = cluster.m("a").ticks
    cluster.cut("abcdefg")
    cluster.hand_over()
    assert cluster.view("e").into == cluster.pid("a") and cluster.m("a").ticks == ticks
    cluster.go_on(LONG)
    assert {cluster.named(cluster.view(name)) for name in "abcdefg"} == {"abcdefg"}
    assert not cluster.bad


def test_a_newcomer_whose_connection_broke_is_suspected_as_soon_as_its_view_begins():
    """The connection between a and d breaks after d was proposed. What a sends when the view with d
    begins would be lost, and nobody would send it again: d goes, and comes in by another view."""
    cluster = ScriptedCluster("abcd", first="abc")
    before = cluster.view("a").number
    cluster.boot("d")
    cluster.hand_over(
        lambda src, dst, header: not (isinstance(header, ViewAccepted) and src in "bc")
    )
    cluster.disconnect(cluster.pid("a"), cluster.pid("d"))
    cluster.hand_over()
    assert cluster.named(cluster.view("a")) == "abc" and cluster.view("a").number == before + 2
    cluster.connect(cluster.pid("a"), cluster.pid("d"))
    cluster.go_on(LONG)
    assert {cluster.named(cluster.view(name)) for name in "abcd"} == {"abcd"} and not cluster.bad
