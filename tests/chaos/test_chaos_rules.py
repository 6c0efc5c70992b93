"""Findings that are explained: a rule holds exactly where its circumstances do."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from chaos.judge import Finding
from chaos.known import explanation
from chaos.logs import Log
from chaos.recovery import (
    LOST_IN_A_CHANGE,
    MAJORITY_LOST,
    lost_in_a_change,
    majority_is_lost,
    newest_node_view,
)
from chaos_logs import MadeUp


def node_views(run: MadeUp, *views: tuple[str, int, str]) -> list[Log]:
    """Each: process, number of the node view, names of its members."""
    for process, number, names in views:
        members = [f"{name}#1" for name in names]
        run.note(process, "node", number, members, members[0], 0, 1)
    return list(run.logs.values())


def is_lost(run: MadeUp, *killed: str, departed: Sequence[str] = ()) -> bool:
    run.outcome.killed = [f"{name}.1" for name in killed]
    run.outcome.departed = list(departed)
    return majority_is_lost(run.plan, list(run.logs.values()), run.outcome)


@pytest.mark.parametrize(
    ("view", "killed", "lost"),
    [
        ("abc", "", False),
        ("abc", "c", False),
        ("abc", "bc", True),
        ("abc", "ab", True),
        ("abcd", "cd", False),  # half, with the first
        ("abcd", "ab", True),
        ("ab", "b", False),
        ("ab", "a", True),
    ],
)
def test_a_majority_is_lost_where_the_rest_is_neither_more_than_half_nor_half_with_the_first(
    view: str, killed: str, lost: bool
) -> None:
    run = MadeUp(order="total")
    node_views(run, *((name, 1, view) for name in view))
    assert is_lost(run, *killed) is lost


def test_the_newest_view_counts() -> None:
    run = MadeUp(order="total")
    logs = node_views(run, ("a", 1, "abc"), ("b", 1, "abc"), ("c", 1, "abc"), ("a", 2, "ab"))
    assert newest_node_view(logs) == [4.0, "node", 2, ["a#1", "b#1"], "a#1", 0, 1]
    assert not is_lost(run, "b", "c")


def test_whoever_left_in_order_does_not_count() -> None:
    run = MadeUp(order="total")
    node_views(run, *((name, 1, "abc") for name in "abc"))
    assert is_lost(run, "b", "c")
    assert not is_lost(run, "b", departed=["c.1"])


def test_a_new_life_does_not_count_for_the_old_one() -> None:
    run = MadeUp(order="total")
    node_views(run, *((name, 1, "abc") for name in "abc"))
    run.note("b.2", "start", "b", 2)
    assert is_lost(run, "b", "c")


def test_where_every_side_goes_on_no_majority_is_needed() -> None:
    run = MadeUp(order="total", merges=True)
    node_views(run, *((name, 1, "abc") for name in "abc"))
    assert not is_lost(run, "b", "c")


@pytest.mark.parametrize(
    ("number", "missing", "killed", "lost"),
    [
        (256, ["b", "c"], "bc", True),  # a was out of the view that b, c and d were making
        (4, ["b", "c"], "bc", False),  # a view that was seen: the other rule judges it
        (256, ["b", "c"], "b", False),  # c lives: it can be waited for
        (256, ["a", "b"], "bc", False),
    ],
)
def test_whoever_waits_for_the_dead_of_a_view_that_nobody_saw_begin_waits_for_ever(
    number: int, missing: list[str], killed: str, lost: bool
) -> None:
    run = MadeUp(order="total")
    logs = node_views(run, *((name, 4, "abdc") for name in "abcd"))
    for name in "ad":
        run.note(name, "out", "NotPrimary", "", number, missing)
    run.outcome.killed = [f"{name}.1" for name in killed]
    assert lost_in_a_change(run.plan, logs, run.outcome) is lost
    run.view("d", 9, ("a", "d"))  # it went on
    run.view("a", 9, ("a", "d"))
    assert not lost_in_a_change(run.plan, logs, run.outcome)


@pytest.mark.parametrize("rule", [MAJORITY_LOST, LOST_IN_A_CHANGE])
def test_a_lost_majority_explains_that_nothing_recovers_and_nothing_else(rule: str) -> None:
    run = MadeUp(order="total")
    run.outcome.given_up = rule
    explained = explanation(run.plan, run.outcome, [], Finding("recovery", ""))
    assert explained == rule
    assert explanation(run.plan, run.outcome, [], Finding("agreement", "")) == ""
    run.outcome.given_up = ""
    assert explanation(run.plan, run.outcome, [], Finding("recovery", "")) == ""


def test_sides_that_merged_explain_total_orders_that_differ_for_spark_and_nothing_else() -> None:
    run = MadeUp(order="total", merges=True)
    total = Finding("spark total.group", "")
    run.note("a", "up", 1)
    assert explanation(run.plan, run.outcome, list(run.logs.values()), total) == ""
    run.note("a", "merge", "g0", [["a"], ["b"]], ["a"])
    logs = list(run.logs.values())
    assert explanation(run.plan, run.outcome, logs, total) == "sides of a merge"
    assert explanation(run.plan, run.outcome, logs, Finding("spark fifo.group", "")) == ""
    assert explanation(run.plan, run.outcome, logs, Finding("agreement", "")) == ""
    alone = MadeUp(order="total")
    assert explanation(alone.plan, alone.outcome, logs, total) == ""


def test_nobody_is_left_where_all_who_were_in_the_cluster_are_gone() -> None:
    run = MadeUp(order="total")
    for name in "abc":
        run.note(name, "up", 1)
    finding = Finding("recovery", "it did not come up again")
    run.outcome.killed = ["a.1", "b.1"]
    assert explanation(run.plan, run.outcome, list(run.logs.values()), finding) == ""
    run.outcome.departed = ["c.1"]
    logs = list(run.logs.values())
    assert explanation(run.plan, run.outcome, logs, finding) == "nobody is left"
    other = Finding("agreement", "a and b differ")
    assert explanation(run.plan, run.outcome, logs, other) == ""
