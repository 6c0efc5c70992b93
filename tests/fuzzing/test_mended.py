"""Lies that a fuzz found, each by its smallest schedule."""

from __future__ import annotations

import msgspec

from ordercast.core.changing import FrameAt, FramesEnd
from ordercast.core.events import Timer
from ordercast.membership.agreement_headers import Ballot, EndView, ProposeView
from ordercast.membership.node_view import NodeView, ViewId
from ordercast.process.commands import Broken
from ordercast.process.process import CLUSTER_GROUP
from ordercast.views.groups import GroupEntry
from ordercast.views.headers import Change, Next, Plan, Rows, Stop, WantIn
from tests.fuzzing.few_nodes import FewNodes


def test_rows_of_no_change_that_name_one_are_a_fault():
    cluster = FewNodes(3)
    changes = cluster.nodes[1].changes
    rows = tuple(changes.directory.rows.values())
    cluster.hear(1, 0, Rows(changes.term, 0, changes.newest, rows))
    assert [fault[:2] for fault in cluster.faults] == [(1, 0)]


def test_a_plan_for_a_group_that_was_not_stopped_is_a_fault():
    cluster = FewNodes(3)
    changes = cluster.nodes[1].changes
    row = changes.directory.rows[1]
    end = FramesEnd((FrameAt(0, 9, (9, 0, 0), 0),))
    coming = Next(msgspec.structs.replace(row, era=row.era + 1), end)
    change = Change(changes.done + 1, (changes.term, 9), (coming,), (0, 1, 2))
    cluster.hear(1, 0, Plan(changes.term, 9, change))
    assert [fault[:2] for fault in cluster.faults] == [(1, 0)]
    assert changes.prepared is None


def test_a_lie_that_waits_for_its_term_is_the_fault_of_the_liar_and_the_term_begins():
    """3 says what only a coordinator says, of a term to come; then 0 dies, and 1 coordinates."""
    cluster = FewNodes(4)
    node = cluster.nodes[2]
    cluster.hear(2, 3, Stop(node.node_view.number + 1, 1, (1,)))
    cluster.kill(0)
    assert [fault[:2] for fault in cluster.faults] == [(2, 3)]
    assert node.changes.term == node.node_view.term and node.pids == (1, 2, 3)
    cluster.say(1, b"m")
    cluster.carry()
    assert cluster.delivered[2] == [b"m"]


def test_a_proposal_that_was_put_off_and_contradicts_another_ends_no_node():
    """0 dies. 1 lets 2 accept a view, then proposes to recover under the same ballot: 2 hears a
    majority, and puts that off. When 1 is silent, too, 2 looks at it again, at its own tick."""
    cluster = FewNodes(3)
    node = cluster.nodes[2]
    view = node.node_view
    cluster.step(2, Broken(0))
    cluster.hear(2, 1, EndView(view.id, Ballot(1, 1)))
    nodes = view.nodes[1:]
    id = ViewId(number=view.number + 1)
    without = NodeView(id, nodes, (1, 2), view.number + 1, parent=view.id)
    recovered = msgspec.structs.replace(without, id=ViewId(1, 1, id.number))
    cluster.hear(2, 1, ProposeView(view.id, Ballot(1, 1), without))
    cluster.hear(2, 1, ProposeView(view.id, Ballot(1, 1), recovered))
    assert node.agreement.acceptor.pending and not cluster.faults
    cluster.step(2, Broken(1))
    for _ in range(8):
        cluster.step(2, Timer(CLUSTER_GROUP, "tick"))
    assert [fault[:2] for fault in cluster.faults] == [(2, 1)]
    assert not node.agreement.acceptor.pending and not node.over


def test_nobody_becomes_a_guest_of_a_group_that_only_members_may_send_to():
    """Every member would fail when the next view begins."""
    group = GroupEntry(1, "g", "causal", "slow", 0)
    cluster = FewNodes(3, group)
    other = GroupEntry(2, "h", "causal", "slow", 0)
    cluster.hear(0, 2, WantIn(other, "guest"))
    cluster.carry()
    assert [fault[:2] for fault in cluster.faults] == [(0, 2)]
    assert 2 not in cluster.nodes[0].rows
