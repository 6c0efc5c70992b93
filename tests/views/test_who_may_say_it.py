"""Every word of a change, from everybody who may not say it, to a node for which it counts: it is a
fault of whoever says it, and nothing changes.

And the other way round: every rule is loosened once, and then one of these cases fails. A rule that
cannot be loosened says that any node of the view may speak; who is in no view is not heard at all,
and that is no fault, since the view that lets it in may be on its way.
"""

from __future__ import annotations

from collections import deque
from functools import cache

import msgspec
import pytest

from ordercast.core.protocol import Options
from ordercast.errors import PeerError
from ordercast.membership.node_view import NodeEntry
from ordercast.views import headers
from ordercast.views.changes import Changes
from ordercast.views.groups import GroupEntry
from ordercast.views.headers import CHANGE_HEADERS, Row, WantOut
from ordercast.views.table import TABLE, Lead, Says
from tests.views.explorer import twin
from tests.views.oracle_cluster import ORDERS, OracleNode

TRUE = dict(TABLE)
"""as the table is; some tests change it"""

BOSS, MEMBER, SEQUENCER, OTHER, GIVER, STRANGER = 0, 1, 2, 3, 4, 9
GROUP = GroupEntry(1, "A", "total", "seq", 7)
START = {1: Row(GROUP, 1, 1, (MEMBER, SEQUENCER), (), SEQUENCER)}
EVERYBODY = tuple(NodeEntry(p, f"p{p}", 1) for p in (BOSS, MEMBER, SEQUENCER, OTHER, GIVER))


def until(lead):
    """The member wants out of its group, and the coordinator has come so far with that."""
    made = (ORDERS["total"], Changes, Options(lossy=False), None)
    nodes = {n.pid: OracleNode(n.pid, START, *made, EVERYBODY) for n in EVERYBODY}
    under_way = deque([(MEMBER, BOSS, WantOut(1))] if lead is not Lead.IDLE else ())
    while nodes[BOSS].changes.lead is not lead:
        src, dst, word = under_way.popleft()
        nodes[dst].changes.receive(nodes[dst], src, word)
        for p, node in nodes.items():
            node.changes.look_whether_ready(node)
            under_way.extend((p, to, said) for to, kind, said in node.sent if kind == "cluster")
            node.sent.clear()
    return nodes


def asks_for_rows():
    """The coordinator lacks changes, and has asked the one that has them."""
    nodes = until(Lead.ASKING)
    changes = nodes[BOSS].changes
    changes.now.reports = {p: word(headers.Report, changes) for p in changes.now.asked}
    changes.now.asked, changes.now.rows_from = set(), GIVER
    return nodes


SCENES = {
    "coordinates, idle": (BOSS, lambda: until(Lead.IDLE)),
    "coordinates, ASKING": (BOSS, lambda: until(Lead.ASKING)),
    "coordinates, PREPARING": (BOSS, lambda: until(Lead.PREPARING)),
    "coordinates, INSTALLING": (BOSS, lambda: until(Lead.INSTALLING)),
    "coordinates, and lacks rows": (BOSS, asks_for_rows),
    "does not coordinate": (MEMBER, lambda: until(Lead.IDLE)),
    "has prepared a change": (MEMBER, lambda: until(Lead.INSTALLING)),
}

MAY_SAY = {  # besides the receiver itself
    Says.NODE: {BOSS, MEMBER, SEQUENCER, OTHER, GIVER},
    Says.COORDINATOR: {BOSS},
    Says.ASKED: {MEMBER, SEQUENCER},
    Says.PLANNED: {MEMBER, SEQUENCER},
    Says.INSTALLING: {MEMBER, SEQUENCER},
    Says.ROWS: {BOSS},
}


@cache
def scene(name):
    receiver, made = SCENES[name]
    node = made()[receiver]
    node.sent.clear()
    return node


def may_say(says, name):
    allowed = MAY_SAY[says]
    return allowed | {GIVER} if says is Says.ROWS and "lacks rows" in name else allowed


def word(kind, changes):
    """One that counts there, if its sender may say it."""
    fields = {
        "term": changes.term,
        "attempt": changes.now.number,
        "number": changes.done,
        "done": changes.done,
        "change": changes.newest,
        "newest": changes.newest,
        "prepared": None,
        "scope": (1,),
        "stopped": (),
        "held": (),
        "rows": tuple(changes.directory.rows.values()),
        "group": GROUP,
        "part": "member",
        "gid": 1,
        "to": OTHER,
        "pid": OTHER,
        "counts": (),
    }
    known = kind.__struct_fields__
    return kind(**{name: value for name, value in fields.items() if name in known})


def fits(rule, changes):
    return not rule.states or (changes.leads and changes.lead in rule.states)


def footprint(node):
    return node.changes.fingerprint(), node.service.fingerprint(), repr(node.sent)


def failures(kind):
    """What is wrong with the answers to all that may not be said; and how many cases there are."""
    rule, found, cases = TRUE[kind], [], 0
    for name in SCENES:
        known = scene(name)
        if not fits(rule, known.changes):
            continue
        for entry in EVERYBODY:
            src = entry.pid
            if src in may_say(rule.says, name) | {known.me}:
                continue
            cases += 1
            node, said = twin(known), word(kind, known.changes)
            case = f"{said} of {src} to one that {name}"
            try:
                node.changes.receive(node, src, said)
                found.append(f"{case} is no fault")
            except PeerError as fault:
                if str(fault) != f"{kind.__name__} comes from {rule.says.value} only":
                    found.append(f"{case} is another fault: {fault}")
            except Exception as error:  # of a rule that was loosened
                found.append(f"{case} raises {error!r}")
            if footprint(node) != footprint(known):
                found.append(f"{case} changes something")
    return found, cases


@pytest.mark.parametrize("kind", CHANGE_HEADERS, ids=lambda kind: kind.__name__)
def test_what_somebody_may_not_say_is_its_fault_and_changes_nothing(kind):
    found, cases = failures(kind)
    assert found == []
    assert (cases == 0) == (TRUE[kind].says is Says.NODE)


@pytest.mark.parametrize(
    "kind",
    [kind for kind, rule in TRUE.items() if rule.says is not Says.NODE],
    ids=lambda kind: kind.__name__,
)
def test_a_rule_that_is_loosened_is_noticed(monkeypatch, kind):
    monkeypatch.setitem(TABLE, kind, msgspec.structs.replace(TRUE[kind], says=Says.NODE))
    assert failures(kind)[0], f"nothing tests who may say {kind.__name__}"


@pytest.mark.parametrize("kind", CHANGE_HEADERS, ids=lambda kind: kind.__name__)
def test_who_is_in_no_view_is_not_heard(kind):
    for name in SCENES:
        known = scene(name)
        node = twin(known)
        node.changes.receive(node, STRANGER, word(kind, known.changes))
        assert footprint(node) == footprint(known), name


@pytest.mark.parametrize("kind", CHANGE_HEADERS, ids=lambda kind: kind.__name__)
def test_what_is_said_by_whoever_may_is_no_fault_of_authority(kind):
    """Else a table that lets nobody speak would pass."""
    rule, heard = TRUE[kind], 0
    for name in SCENES:
        known = scene(name)
        for src in may_say(rule.says, name) - {known.me} if fits(rule, known.changes) else ():
            node = twin(known)
            heard += 1
            try:
                node.changes.receive(node, src, word(kind, known.changes))
            except PeerError as fault:
                assert "comes from" not in str(fault)
    assert heard


def test_every_kind_of_speaker_is_known_here():
    assert set(TRUE) == set(CHANGE_HEADERS) and set(MAY_SAY) == set(Says)
