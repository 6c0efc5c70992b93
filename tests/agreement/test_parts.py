"""The parts of the agreement: what each owns, and what it is only lent."""

from __future__ import annotations

import pytest

from ordercast.core.ids import ProcessId
from ordercast.membership.agreement_headers import JoinView
from ordercast.membership.agreement_part import Part
from ordercast.membership.agreement_table import RULES
from ordercast.membership.node_view import NodeEntry
from ordercast.membership.options import ClusterOptions
from ordercast.process import commands
from ordercast.process.process import Process
from tests.agreement.fuzzed_cluster import Nowhere
from tests.agreement.scripted_cluster import ScriptedCluster


def parts(machine):
    return {name: part for name, part in vars(machine).items() if isinstance(part, Part)}


@pytest.fixture
def machine():
    """It leads an attempt, has lost somebody, and has an applicant."""
    cluster = ScriptedCluster("abcd")
    cluster.kill("d")
    cluster.go_on(10)
    cluster.kill("c")
    found = cluster.m("a")
    cluster.step(0, lambda m, n: m.receive(n, 99, JoinView(NodeEntry(99, "x", 1))))
    assert found.proposer.is_trying and found.sides.lost and found.entrance.applicants.of
    return found


def test_every_handler_is_a_method_of_the_agreement_or_of_a_part_that_there_is(machine):
    named = {rule.handler.partition(".")[0] for rule in RULES if "." in rule.handler}
    assert named <= parts(machine).keys()
    assert parts(machine).keys() - named == {"claims", "departure"}, "they hear of packets"


def test_what_a_part_is_lent_is_not_its_state(machine):
    for part in parts(machine).values():
        assert not part.lent & part.state().keys()
        assert part.lent <= vars(part).keys(), "it names only what it is lent"
        assert not any(isinstance(value, Part) for value in part.state().values())


def test_no_two_parts_own_the_same_table(machine):
    owners = {}
    for name, part in parts(machine).items():
        for value in part.state().values():
            if isinstance(value, dict | set):
                assert owners.setdefault(id(value), name) == name


def belong_together(machine):
    """Is whatever a part is lent the machine itself, or another part of it?"""
    own = [machine, *parts(machine).values()]
    return all(
        any(getattr(part, name) is one for one in own)
        for part in parts(machine).values()
        for name in part.lent
    )


def test_the_parts_of_a_copy_belong_to_the_copy(machine):
    twin = machine.copy()
    assert belong_together(machine) and belong_together(twin)
    assert twin.fingerprint() == machine.fingerprint()
    before = machine.fingerprint()
    twin.tick(Nowhere())
    twin.invariants()
    assert machine.fingerprint() == before != twin.fingerprint()


def test_so_do_those_of_a_copied_process():
    process = Process(NodeEntry(ProcessId(0), "a", 1), {}, cluster_options=ClusterOptions())
    process.step([commands.Found()])
    twin = process.copy()
    assert belong_together(twin.agreement) and twin.agreement is not process.agreement
    before = process.agreement.fingerprint()
    assert twin.agreement.fingerprint() == before
    twin.agreement.tick(twin)
    assert process.agreement.fingerprint() == before != twin.agreement.fingerprint()
