"""What a wrong word does: nothing that lasts. Who may say what, numbers from outside, and a fuzz.

A longer fuzz: python -m tests.agreement.fuzzed_cluster RUNS [first seed] [mode]
"""

from __future__ import annotations

import inspect
import random
from operator import attrgetter

import msgspec
import pytest

from fuzz.mutate import Seen, drawn, mutated
from ordercast.errors import PeerError
from ordercast.membership.agreement import Agreement
from ordercast.membership.agreement_headers import (
    AGREEMENT_HEADERS,
    Ballot,
    EndView,
    Forget,
    Heartbeat,
    InstallView,
    JoinView,
    LeaveView,
    Overruled,
    ProposeView,
    Renew,
    Suspect,
)
from ordercast.membership.agreement_table import RULES, TABLE, TRANSITIONS, Standing
from ordercast.membership.node_view import NodeEntry, ViewId
from ordercast.membership.plausible import MAX_RECOVERIES
from tests.agreement import faulty_agreements as faulty
from tests.agreement.fuzzed_cluster import STRANGER, lying_run, probe_run
from tests.agreement.scripted_cluster import ScriptedCluster
from tests.agreement.simulated_cluster import TIMEOUT_TICKS

HUGE = 1 << 62
MODES = {
    "plain": {},
    "electorate": {"electorate": True},
    "workers": {"workers": True},
    "merge": {"partition": "merge"},
}
FRESH = 738_004_211  # another one; `campaign` runs as many as one likes


# -- the table ------------------------------------------------------------------------------------


def test_every_packet_has_its_place_in_the_table_and_every_place_a_handler():
    assert set(TABLE) == set(AGREEMENT_HEADERS) and len(RULES) == len(TABLE)
    machine = ScriptedCluster("a").m("a")
    for rule in RULES:
        assert inspect.ismethod(attrgetter(rule.handler)(machine))
        assert rule.outside is None or inspect.ismethod(attrgetter(rule.outside)(machine))
        assert rule.names_view == ("view" in rule.header.__struct_fields__)


def test_nobody_changes_its_standing_otherwise_than_the_table_says():
    machine = ScriptedCluster("abc").m("a").copy()
    for before in Standing:
        for after in Standing:
            machine.standing = before
            if (before, after) in TRANSITIONS:
                machine._become(after)
            else:
                with pytest.raises(AssertionError):
                    machine._become(after)


def outsider_says(cluster):
    view, a = cluster.view("a"), cluster.pid("a")
    return (
        Heartbeat(view.id),
        Suspect(view.id, a),
        Renew(view.id),
        LeaveView(view.id),
        Forget(view.id, ()),
        EndView(view.id, Ballot(1, STRANGER)),
        ProposeView(view.id, Ballot(1, STRANGER), view),
        Overruled(view.id, Ballot(5, a)),
        JoinView(NodeEntry(a, "a", 9)),
    )


@pytest.mark.parametrize("applies", [False, True])
def test_who_only_applies_may_join_and_nothing_else(applies):
    cluster = ScriptedCluster("abc")
    if applies:
        cluster.step(0, lambda m, n: m.receive(n, STRANGER, JoinView(NodeEntry(STRANGER, "x", 1))))
        assert STRANGER in cluster.m("a").entrance.applicants
    for header in outsider_says(cluster):
        for name in "abc":
            machine, node = cluster.m(name), cluster.nodes[cluster.pid(name)]
            before = machine.copy()
            with pytest.raises(PeerError):
                machine.receive(node, STRANGER, header)
            assert machine.fingerprint() == before.fingerprint()


def test_a_worker_does_not_lead():
    cluster = ScriptedCluster("abw", workers="w")
    view, w = cluster.view("a"), cluster.pid("w")
    for header in (
        EndView(view.id, Ballot(1, w)),
        ProposeView(view.id, Ballot(1, w), view),
    ):
        with pytest.raises(PeerError, match="MEMBER may not say"):
            cluster.m("b").receive(cluster.nodes[cluster.pid("b")], w, header)


# -- numbers from outside -------------------------------------------------------------------------


def kills_the_coordinator(cluster):
    cluster.kill("a")
    cluster.go_on(3 * TIMEOUT_TICKS)
    return [cluster.standing(name) for name in "bcd"]


@pytest.mark.parametrize("liar", ["a", "b", "d"])
def test_a_ballot_that_is_far_too_high_stops_nobody(liar):
    cluster = ScriptedCluster("abcd")
    view = cluster.view("a")
    for name in "abcd".replace(liar, ""):
        cluster.say(liar, name, EndView(view.id, Ballot(HUGE - 1, cluster.pid(liar))))
        cluster.say(liar, name, Overruled(view.id, Ballot(HUGE - 1, cluster.pid(liar))))
    assert max(cluster.m(n).acceptor.promised.n for n in "abcd") < HUGE // 2
    assert kills_the_coordinator(cluster) == [Standing.IN] * 3


def test_ballots_that_were_driven_up_at_one_node_are_made_up_for_at_the_others():
    """a drives b up, step by step, and dies; b must lead, and the others are far below it."""
    cluster = ScriptedCluster("abcd")
    view, a = cluster.view("a"), cluster.pid("a")
    for step in range(1, 6):
        cluster.say("a", "b", EndView(view.id, Ballot(step << 20, a)))
    assert cluster.m("b").acceptor.promised.n == 5 << 20
    assert kills_the_coordinator(cluster) == [Standing.IN] * 3 and not cluster.bad


def test_one_node_alone_does_not_end_an_attempt():
    """d says that it has promised more: a and b are enough without it."""

    def schedule(machine):
        cluster = ScriptedCluster("abcd", machine=machine)
        cluster.kill("c")
        attempt = cluster.m("a").proposer.attempt
        high = Ballot(attempt.ballot.n + 5, cluster.pid("d"))
        cluster.say("d", "a", Overruled(cluster.view("a").id, high))
        return cluster, attempt

    cluster, attempt = schedule(Agreement)
    assert cluster.m("a").proposer.attempt is attempt and cluster.m("a").proposer.overruled == 0
    cluster.go_on(1)
    assert cluster.named(cluster.view("d")) == "abd"
    cluster, _ = schedule(faulty.OneOverrules)
    assert cluster.m("a").proposer.attempt is None


def forged(cluster, **changes):
    view = cluster.view("b")
    id = ViewId(view.id.generation, view.id.fork, view.number + 1)
    return msgspec.structs.replace(
        view, **{"id": id, "parent": view.id, "term": view.number + 1, **changes}
    )


@pytest.mark.parametrize("repeats", [1, 3])
def test_that_a_view_was_decided_is_not_believed_against_the_word_of_a_majority(repeats):
    """b says that c is out; a, c and d have accepted nothing."""

    def schedule(machine):
        cluster = ScriptedCluster("abcd", machine=machine)
        view = cluster.view("b")
        rest = tuple(n for n in view.nodes if n.name != "c")
        lie = forged(cluster, nodes=rest, voters=tuple(n.pid for n in rest))
        for _ in range(repeats):
            if cluster.standing("c") is Standing.IN:
                cluster.say("b", "c", InstallView(lie))
            cluster.go_on(1)
        cluster.go_on(TIMEOUT_TICKS)
        return cluster

    cluster = schedule(Agreement)
    assert cluster.standing("c") is Standing.IN and cluster.pid("c") in cluster.view("a").pids
    fooled = schedule(faulty.BelievesAtOnce)  # it went out, and may be back as the next incarnation
    assert fooled.standing("c") is not Standing.IN or fooled.pid("c") != cluster.pid("c")


@pytest.mark.parametrize(
    "changes",
    [
        {"id": ViewId(0, 0, HUGE)},
        {"id": ViewId(HUGE, 1, 5)},
        {"id": ViewId(MAX_RECOVERIES + 1, 1, 9), "parent": ViewId(1, 1, 8)},
        {"id": ViewId(0, 7, 5)},
        {"term": HUGE},
        {"voters": ()},
        {"voters": (77,)},
        {"into": 3},
        {"electorate": ("x",)},
    ],
    ids=str,
)
def test_a_view_that_no_honest_node_proposes_is_its_senders_fault(changes):
    cluster = ScriptedCluster("abcd")
    lie = forged(cluster, **changes)
    for header in (
        InstallView(lie),
        ProposeView(cluster.view("a").id, Ballot(0, cluster.pid("a")), lie),
    ):
        with pytest.raises(PeerError):
            cluster.m("c").receive(cluster.nodes[cluster.pid("c")], cluster.pid("a"), header)
        assert cluster.m("c").acceptor.accepted is None and not cluster.m("c").claims.of


# -- at random ------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_wrong_packets_raise_nothing_but_peer_errors_and_invariants_hold(mode):
    for seed in (0, 1, FRESH):
        run = probe_run(seed, probes=3, **MODES[mode])
        assert sum(run.probed.values()) > 100 and run.raised


@pytest.mark.parametrize("mode", MODES)
def test_when_one_bad_sender_stops_the_cluster_is_whole_again(mode):
    for seed in (0, 1, 2, FRESH):
        run = lying_run(seed, **MODES[mode])
        assert run is None or not run.bad, (
            f"python -m tests.agreement.fuzzed_cluster 1 {seed} {mode}: {run.bad}, liar {run.liar}"
        )


def test_a_machine_that_trusts_its_peers_is_caught_by_the_fuzz():
    class Trusting(Agreement):
        def check_next(self, view):
            pass

    def is_caught(seed):
        try:
            run = lying_run(seed, machine=Trusting)
            return run is not None and run.bad
        except AssertionError:
            return True

    assert any(is_caught(seed) for seed in range(200))


# -- the mutator ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", AGREEMENT_HEADERS, ids=lambda kind: kind.__name__)
def test_what_is_mutated_or_drawn_keeps_its_type_and_can_be_sent(kind):
    seen, rng = Seen(), random.Random(kind.__name__)
    found = set()
    header = drawn(kind, seen, rng)
    for _ in range(200):
        header = mutated(header, seen, rng) if rng.random() < 0.7 else drawn(kind, seen, rng)
        seen.note(header)
        assert msgspec.msgpack.decode(msgspec.msgpack.encode(header), type=kind) == header
        found.add(header)
    assert len(found) > 50 or not kind.__struct_fields__
