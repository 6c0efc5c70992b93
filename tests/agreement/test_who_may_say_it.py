"""Every packet about node views, from everybody who may not say it, to a node in every standing in
which it counts: it is a fault of whoever sends it, and nothing changes.

And the other way round: every rule is loosened once, and then one of these cases fails.
"""

from __future__ import annotations

from functools import cache

import msgspec
import pytest

from ordercast.errors import PeerError
from ordercast.membership import agreement_headers as headers
from ordercast.membership.agreement_headers import AGREEMENT_HEADERS, Ballot
from ordercast.membership.agreement_table import ANYBODY, INVOLVED, TABLE, Phase, Role, Standing
from ordercast.membership.node_view import NodeEntry
from tests.agreement.fuzzed_cluster import Nowhere
from tests.agreement.scripted_cluster import ScriptedCluster

TRUE = dict(TABLE)
"""as the table is; some tests change it"""

STRANGER, APPLICANT = 8_888, 7_777
EVE = NodeEntry(APPLICANT, "eve", 1)
HERE = Role.VOTER | Role.MEMBER | Role.FORMER | Role.APPLICANT | Role.STRANGER
"""what a sender may be to a node that has a view"""


def never(kind):
    return lambda src, dst, header: not isinstance(header, kind)


def full(**settings):
    """a, b and c vote, w does not; e was excluded; eve has asked to be let in."""
    cluster = ScriptedCluster("abcew", workers="w", **settings)
    cluster.cut("abcw", "e")
    cluster.go_on(12)
    assert cluster.named(cluster.view("b")) == "abcw"
    apply_to(cluster, "a")
    return cluster


def apply_to(cluster, leader):
    """Only who leads keeps who asks."""
    cluster.step(cluster.pid(leader), lambda m, n: m.receive(n, APPLICANT, headers.JoinView(EVE)))


def leading(phase, withheld):
    """a is dead, and b tries to lead; the answers of the others are on their way."""
    cluster = full()
    cluster.kill("a")
    cluster.hand_over(never(withheld))
    attempt = cluster.m("b").proposer.attempt
    assert attempt is not None and attempt.phase is phase
    apply_to(cluster, "b")
    return cluster, "b"


def cut_off():
    """b hears nobody that votes, and w."""
    cluster = full()
    cluster.cut("ac", "bwe")
    cluster.until_suspected(never(headers.InstallView))
    return cluster, "b"


def on_its_way_out():
    """The next view is without b, and nobody has confirmed that."""
    cluster = full()
    cluster.step(cluster.pid("b"), lambda m, n: m.leave(n))

    def until_it_knows(src, dst, header):
        return dst != "b" or cluster.standing("b") is not Standing.LEAVING

    cluster.go_on(2, until_it_knows)
    return cluster, "b"


SCENES = {
    "in": lambda: (full(), "b"),
    "coordinates": lambda: (full(), "a"),
    "in, merge": lambda: (full(partition="merge"), "b"),
    "leads, ENDING": lambda: leading(Phase.ENDING, headers.ViewReport),
    "leads, PROPOSING": lambda: leading(Phase.PROPOSING, headers.ViewAccepted),
    "cut off": cut_off,
    "leaving": on_its_way_out,
}
STANDING = {"cut off": Standing.CUT_OFF, "leaving": Standing.LEAVING}


@cache
def scene(name):
    cluster, receiver = SCENES[name]()
    machine = cluster.m(receiver)
    assert machine.standing is STANDING.get(name, Standing.IN)
    return cluster, machine


def speakers(cluster, machine):
    """One sender of every role that there is."""
    named = [cluster.pid(name) for name in "ceaw" if cluster.current.get("abcew".index(name))]
    found = {}
    for p in (*named, APPLICANT, STRANGER):
        if p != machine.me:
            found.setdefault(machine.role_of(p), p)
    return found


def packet(kind, machine, src):
    """One that counts there, if its sender may say it."""
    view, attempt = machine.view, machine.proposer.attempt
    fields = {
        "view": view.id,
        "ballot": Ballot(1, src) if attempt is None else attempt.ballot,
        "promised": Ballot(1, src),
        "pid": next(p for p in view.pids if p != machine.me),
        "pids": (),
        "node": NodeEntry(src, "eve", 1),
        "next": view,
        "coordinator": src,
        "size": 1,
    }
    known = kind.__struct_fields__
    return kind(**{name: value for name, value in fields.items() if name in known})


def fits(rule, name, machine):
    """Does a packet of this kind count in this scene?"""
    attempt = machine.proposer.attempt
    if rule.policy not in (None, machine.options.partition):
        return False
    if rule.phase is not None and (attempt is None or attempt.phase is not rule.phase):
        return False
    return machine.standing in rule.at


def refused(rule):
    """Who may not say it."""
    return HERE & ~rule.may_say


def failures(kind):
    """What is wrong with the answers to all that may not be said; and how many cases there are."""
    rule, found, cases = TRUE[kind], [], set()
    for name in SCENES:
        cluster, standing_machine = scene(name)
        if not fits(rule, name, standing_machine):
            continue
        for role, src in speakers(cluster, standing_machine).items():
            if not role & refused(rule):
                continue
            machine, before = standing_machine.copy(), standing_machine.fingerprint()
            said = packet(kind, machine, src)
            cases.add((role, machine.standing))
            case = f"{said} of a {role.name} to one that is {name}"
            try:
                machine.receive(Nowhere(), src, said)
                found.append(f"{case} is no fault")
            except PeerError as fault:
                if f"a {role.name} may not say {kind.__name__}" not in str(fault):
                    found.append(f"{case} is another fault: {fault}")
            except Exception as error:  # of a rule that was loosened
                found.append(f"{case} raises {error!r}")
            if machine.fingerprint() != before:
                found.append(f"{case} changes something")
    return found, cases


def may_be_loosened(kind):
    return bool(refused(TRUE[kind]))


@pytest.mark.parametrize("kind", AGREEMENT_HEADERS, ids=lambda kind: kind.__name__)
def test_what_somebody_may_not_say_is_its_fault_and_changes_nothing(kind):
    found, cases = failures(kind)
    assert found == []
    rule = TRUE[kind]
    assert {role for role, _ in cases} == {role for role in Role if role & refused(rule)}
    if may_be_loosened(kind):
        scenes = {Standing.IN} if rule.phase is not None else {*rule.at}
        assert {standing for _, standing in cases} == scenes


@pytest.mark.parametrize(
    "kind", [*filter(may_be_loosened, AGREEMENT_HEADERS)], ids=lambda kind: kind.__name__
)
def test_a_rule_that_is_loosened_is_noticed(monkeypatch, kind):
    loose = msgspec.structs.replace(TRUE[kind], may_say=ANYBODY)
    monkeypatch.setitem(TABLE, kind, loose)
    assert failures(kind)[0], f"nothing tests who may say {kind.__name__}"


def test_what_everybody_who_has_a_connection_may_say_is_known():
    """They are judged by what they say: see `claims`, `entrance` and `sides`."""
    free = {kind for kind in AGREEMENT_HEADERS if not may_be_loosened(kind)}
    assert free == {
        headers.InstallView, headers.JoinView, headers.Sighted, headers.Offer, headers.Welcome,
    }  # fmt: skip


@pytest.mark.parametrize("name", ["in", "cut off"])
@pytest.mark.parametrize("kind", [k for k, rule in TRUE.items() if rule.policy is not None])
def test_what_belongs_to_another_policy_is_a_fault_of_everybody(name, kind):
    cluster, machine = scene(name)
    assert machine.options.partition != TRUE[kind].policy
    for src in speakers(cluster, machine).values():
        twin = machine.copy()
        with pytest.raises(PeerError, match="partitions are treated otherwise"):
            twin.receive(Nowhere(), src, packet(kind, machine, src))
        assert twin.fingerprint() == machine.fingerprint()


@pytest.mark.parametrize(
    "kind", [kind for kind, rule in TRUE.items() if Standing.OUTSIDE not in rule.at]
)
def test_a_node_that_is_outside_changes_by_no_word_but_a_view(kind):
    """It answers a proposal that names it, whoever makes it: it knows no voters."""
    _, inside = scene("in")
    outside = ScriptedCluster("abx", first="ab")
    outside.boot("x")
    machine = outside.m("x")
    assert machine.standing is Standing.OUTSIDE
    for src in (outside.pid("a"), STRANGER):
        twin = machine.copy()
        twin.receive(Nowhere(), src, packet(kind, inside, src))
        assert twin.fingerprint() == machine.fingerprint()


def test_every_standing_in_which_packets_count_has_a_scene():
    assert {s for rule in TRUE.values() for s in rule.at} - {Standing.OUTSIDE} <= {
        scene(name)[1].standing for name in SCENES
    }
    assert set(INVOLVED) < {scene(name)[1].standing for name in SCENES}
