"""The agreement on node views under random faults, in all modes; and faulty machines, which the
judge of these runs must catch."""

from __future__ import annotations

import inspect
import re

import pytest

from ordercast.membership.agreement_headers import Ballot, JoinView
from ordercast.membership.agreement_part import Part
from ordercast.membership.agreement_table import Phase, Standing
from ordercast.membership.applicants import MAX_APPLICANTS
from ordercast.membership.attempt import Attempt
from ordercast.membership.claims import MAX_CLAIMS
from ordercast.membership.node_view import NodeEntry
from tests.agreement import faulty_agreements as faulty
from tests.agreement.campaign import one
from tests.agreement.scripted_cluster import ScriptedCluster

MODES = (
    (),
    ("workers",),
    ("operator",),
    ("electorate",),
    ("electorate", "workers"),
    ("electorate", "workers", "operator"),
    ("merge",),
    ("merge", "workers"),
)
FIXED = range(8)
FRESH = [738_004_211 + i for i in range(4)]  # `campaign` runs as many as one likes


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: " ".join(mode) or "plain")
def test_every_view_has_one_successor_and_all_come_in_at_last(mode):
    for seed in (*FIXED, *FRESH):
        _, bad = one(seed, *mode)
        assert not bad, f"python -m tests.agreement.campaign 1 {seed} {' '.join(mode)}: {bad}"


CAUGHT = (
    (faulty.AnySideRecovers, ("electorate",)),
    (faulty.RestartedCounts, ()),
    (faulty.NeverRecovers, ("electorate", "workers")),
    (faulty.HalfDecides, ()),
    (faulty.NewMajorityOnly, ()),
    (faulty.BallotUsedTwice, ("merge",)),
    (faulty.PhantomsComeIn, ()),
    (faulty.EverybodyVotesAtOnce, ("electorate",)),
    (faulty.SidesHaveOneId, ("merge",)),
)


@pytest.mark.parametrize(("machine", "mode"), CAUGHT, ids=lambda x: getattr(x, "__name__", ""))
def test_a_machine_that_breaks_a_rule_is_caught(machine, mode):
    assert any(one(seed, *mode, machine=machine)[1] for seed in range(60))


# -- every invariant can fail ---------------------------------------------------------------------


def has_no_view(m):
    m.view = None


def leads_from_outside(m):
    m.standing, m.proposer.attempt = Standing.LEAVING, Attempt(Ballot(1, m.me), Phase.ENDING)


def keeps_every_applicant(m):
    for pid in range(MAX_APPLICANTS + 1):
        m.entrance.applicants.of[pid + 100] = None


def keeps_every_request(m):
    m.entrance.owed = dict.fromkeys(range(MAX_APPLICANTS + 1))


def keeps_all_that_were_lost(m):
    m.sides.lost = dict.fromkeys(range(MAX_APPLICANTS))


def keeps_every_claim(m):
    m.claims.of = dict.fromkeys(range(MAX_CLAIMS + 1))


def is_not_in_its_view(m):
    m.me = 77


def has_strange_voters(m):
    m.view = m.view.__class__(m.view.id, m.view.nodes, (77,), 1)


def suspects_itself(m):
    m.detector.suspected.add(m.me)


def goes_on_alone(m):
    m.detector.suspected.update(p for p in m.pids if p != m.me)


def follows_strangers(m):
    m.acceptor.pending[77] = None


def accepted_without_a_promise(m):
    m.acceptor.accepted = (Ballot(9, 0), m.view)


def accepted_for_another_view(m):
    m.acceptor.accepted = (Ballot(0, 0), m.view)


def leads_in_the_name_of_another(m):
    m.proposer.attempt = Attempt(Ballot(0, 77), Phase.ENDING)


def leads_without_its_own_promise(m):
    m.proposer.attempt = Attempt(Ballot(9, m.me), Phase.ENDING)


def proposes_without_reports(m):
    m.acceptor.promised = Ballot(1, m.me)
    m.proposer.attempt = Attempt(Ballot(1, m.me), Phase.PROPOSING)
    m.proposer.attempt.proposal = m.view


BROKEN = (
    (has_no_view, "who is in has a view"),
    (leads_from_outside, "who is not in leads nobody"),
    (keeps_every_applicant, "applicants are bounded"),
    (keeps_every_request, "connections that were asked for are bounded"),
    (keeps_all_that_were_lost, "those who were lost are bounded"),
    (keeps_every_claim, "claims are bounded"),
    (is_not_in_its_view, "the view names this node"),
    (has_strange_voters, "voters are nodes"),
    (suspects_itself, "suspected are others of the view"),
    (goes_on_alone, "who has no majority is cut off"),
    (follows_strangers, "only nodes of the view lead"),
    (accepted_without_a_promise, "accepted is promised"),
    (accepted_for_another_view, "of this view"),
    (leads_in_the_name_of_another, "an attempt is one's own"),
    (leads_without_its_own_promise, "who leads has promised that to itself"),
    (proposes_without_reports, "a proposal follows from the reports of a majority"),
)


@pytest.mark.parametrize(("spoil", "invariant"), BROKEN, ids=lambda x: getattr(x, "__name__", ""))
def test_every_invariant_fails_when_it_is_broken(spoil, invariant):
    machine = ScriptedCluster("abc").m("b").copy()
    machine.invariants()
    spoil(machine)
    with pytest.raises(AssertionError, match=invariant):
        machine.invariants()


def test_every_invariant_is_broken_once():
    machine = ScriptedCluster("abc").m("b")
    parts = [part for part in vars(machine).values() if isinstance(part, Part)]
    source = inspect.getsource(machine._standing_invariants)
    source += "".join(inspect.getsource(p.invariants) for p in parts if hasattr(p, "invariants"))
    named = re.findall(r'"([a-z][a-z\' ]+)"', source)
    assert sorted(named) == sorted(invariant for _, invariant in BROKEN)


def test_an_applicant_that_asks_no_more_is_forgotten():
    cluster = ScriptedCluster("abc")
    entry = NodeEntry(99, "x", 1)
    for name in "abc":
        cluster.step(cluster.pid(name), lambda m, n: m.receive(n, 99, JoinView(entry)))
    cluster.hand_over()
    entrances = [cluster.m(n).entrance for n in "abc"]
    assert 99 in entrances[0].applicants and any(entrance.owed for entrance in entrances)
    cluster.go_on(20)
    assert not any(entrance.applicants.of or entrance.owed for entrance in entrances)
