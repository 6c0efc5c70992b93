"""Lies that a fuzz found, each by its smallest schedule."""

from __future__ import annotations

import msgspec

from ordercast.core.changing import FrameAt, FramesEnd
from ordercast.views.headers import Change, Next, Plan, Rows, Stop
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
