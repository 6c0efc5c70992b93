"""The judge of changes, by made-up logs: each rule is broken once, and seen."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ordercast.views.groups import GroupEntry
from ordercast.views.headers import Row
from tests.views.judge import order_of_events


def view(g, era, *members):
    return ("view", g, era, members)


def left(g, era, *members):
    return ("left", g, era, members)


def send(p, g, n):
    return ("send", (p, g, n), g)


def got(p, g, n, era, N):
    return ("deliver", (p, g, n), g, (era, N))


def judged(*logs, order="hybrid", dead=(), eras=None, wished=True, groups=(1, 2), members=(0, 1)):
    """What the judge says of nodes with these logs."""
    entries = {g: GroupEntry(g, "AB"[g - 1], order, "seq", 7) for g in groups}
    rows = {
        g: Row(entry, 1, (eras or {}).get(g, 1), members, (), 0) for g, entry in entries.items()
    }
    changes = SimpleNamespace(directory=SimpleNamespace(rows=rows))
    nodes = {p: SimpleNamespace(log=log, changes=changes) for p, log in enumerate(logs)}
    start = {g: Row(row.entry, 1, 1, members, (), 0) for g, row in rows.items()}
    return order_of_events(
        SimpleNamespace(
            nodes=nodes, living=set(nodes) - set(dead), dead_at=dict.fromkeys(dead, 1), order=order,
            k=0, at_once=1, start=start, wished=wished,
        )
    )  # fmt: skip


BOTH = [view(1, 1, 0, 1), view(2, 1, 0, 1)]
M, X, Y = (0, 1, 1), (0, 1, 2), (0, 2, 1)


def test_two_members_that_deliver_the_same_keep_every_rule():
    sent = [*BOTH, send(*M), send(*Y), got(*M, 1, 1), got(*Y, 1, 1)]
    assert judged(sent, [*BOTH, got(*M, 1, 1), got(*Y, 1, 1)]) == set()


@pytest.mark.parametrize(
    ("broken", "sender", "other"),
    [
        ("duplication", [got(*M, 1, 1)], [got(*M, 1, 1), got(*M, 1, 2)]),
        ("creation", [got(*M, 1, 1)], [got(*M, 1, 1), got(1, 1, 9, 1, 2)]),
        ("membership", [got(*M, 1, 1)], [left(1, 2, 0), got(*M, 1, 1)]),
        ("membership", [got(*M, 1, 1)], [got(*M, 2, 1)]),
        ("agreement", [got(*M, 1, 1)], []),
        ("two eras", [got(*M, 1, 1)], [view(1, 2, 0, 1), got(*M, 2, 1)]),
        ("views", [view(1, 2, 0, 1), got(*M, 2, 1)], [view(1, 2, 1), got(*M, 2, 1)]),
        ("views", [got(*M, 1, 1)], [got(*M, 1, 1), view(1, 1, 0, 1)]),
        ("vsync", [got(*M, 1, 1), view(1, 2, 0, 1)], [view(1, 2, 0, 1)]),
    ],
)
def test_a_rule_of_one_group_is_broken_and_seen(broken, sender, other):
    sent = [*BOTH, send(*M), *sender]
    assert broken in judged(sent, [*BOTH, *other], eras={1: 2})


def test_a_frame_that_nobody_delivers_is_seen():
    assert "validity" in judged([*BOTH, send(*M)], [*BOTH])


def test_one_place_with_two_frames_is_seen():
    one = [*BOTH, send(*M), send(*X), got(*M, 1, 1), got(*X, 1, 2)]
    assert "one place, two frames" in judged(one, [*BOTH, got(*X, 1, 1), got(*M, 1, 2)])


def test_frames_of_one_sender_in_the_wrong_order_are_seen():
    one = [*BOTH, send(*M), send(*Y), got(*M, 1, 1), got(*Y, 1, 1)]
    assert "fifo" in judged(one, [*BOTH, got(*Y, 1, 1), got(*M, 1, 1)])
    assert "fifo" not in judged(one, [*BOTH, got(*Y, 1, 1), got(*M, 1, 1)], order="total")


def test_an_answer_before_its_question_is_seen():
    asks = [*BOTH, send(*M), got(*M, 1, 1), got(1, 2, 1, 1, 1)]
    answers = [*BOTH, got(*M, 1, 1), send(1, 2, 1), got(1, 2, 1, 1, 1)]
    late = [*BOTH, got(1, 2, 1, 1, 1), got(*M, 1, 1)]
    assert "causal" in judged(asks, answers, late, members=(0, 1, 2))
    gap = [*BOTH, got(1, 2, 1, 1, 1)]
    assert "causal gap" in judged(asks, answers, gap, members=(0, 1, 2))


def test_a_lost_cause_is_seen_and_one_of_a_group_without_members_is_not():
    one = [*BOTH, send(*M), send(*Y), got(*Y, 1, 1)]
    two = [*BOTH, got(*Y, 1, 1)]
    assert "lost cause" in judged(one, two, dead=(0,))
    assert "lost cause" not in judged(one, two, dead=(0,), eras={1: 2})


def test_two_groups_delivered_in_different_orders_are_seen():
    one = [*BOTH, send(*M), got(*M, 1, 1), got(1, 2, 1, 1, 1)]
    two = [*BOTH, send(1, 2, 1), got(1, 2, 1, 1, 1), got(*M, 1, 1)]
    assert "total.pairwise" in judged(one, two, order="total")
    assert "total.pairwise" not in judged(one, two)


def test_one_group_delivered_in_different_orders_is_seen():
    one = [*BOTH, send(*M), got(*M, 1, 1), got(1, 1, 1, 1, 2)]
    two = [*BOTH, send(1, 1, 1), got(1, 1, 1, 1, 1), got(*M, 1, 2)]
    assert "total.group" in judged(one, two)


def test_what_is_delivered_before_it_is_sent_is_seen():
    one = [*BOTH, got(1, 1, 1, 1, 1), send(*M), got(*M, 1, 2)]
    two = [*BOTH, got(*M, 1, 2), send(1, 1, 1), got(1, 1, 1, 1, 1)]
    assert "delivered before sent" in judged(one, two)


def test_a_group_that_a_crash_does_not_concern_is_not_disturbed():
    logs = [[*BOTH], [*BOTH], []]
    assert judged(*logs, dead=(2,), wished=False) == set()
    assert "disturbed" in judged(*logs, dead=(2,), wished=False, eras={2: 2})
