"""Spans, views and debts on runs small enough to check by eye."""

from __future__ import annotations

import numpy as np
import pytest

from ordercast.judge.kernels.membership import OPEN, Span, joiners
from ordercast.judge.kernels.recorded import NO_VIEW
from ordercast.judge.kernels.run import Run
from runs import members_of, missing_of, names, run_of, use_kernels


@pytest.fixture(params=["plain", "compiled"])
def _form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    use_kernels(request.param, monkeypatch)


def number(run: Run, *ids: str) -> np.ndarray:
    known = {run.name(m): m for m in range(run.message_count)}
    return np.array([known[one] for one in ids], np.int32)


def spans(text: str, process: int = 0) -> list[Span]:
    return members_of(run_of(text)).spans(process, 0)


def test_a_declared_member_is_one_from_its_first_row_on() -> None:
    run = run_of("group g: p,q\np: send a g; end\nq: deliver a g; end")
    assert members_of(run).spans(1, 0) == [Span(2, OPEN)]


def test_where_a_group_is_declared_nobody_else_is_a_member() -> None:
    assert spans("group g: q\np: send a g; deliver a g; end") == []


def test_where_nothing_is_declared_those_who_deliver_are_members() -> None:
    run = run_of("p: send a g; end\nq: deliver a g; end")
    assert [members_of(run).joined(p) for p in (0, 1)] == [[], [0]]


def test_a_join_opens_a_span_and_a_leave_closes_it() -> None:
    assert spans("p: join g; send a g; leave g; join g; end") == [Span(1, 2, 0), Span(4, OPEN, 3)]


def test_who_leaves_without_having_joined_was_a_member_from_the_start() -> None:
    assert spans("p: send a g; leave g; end") == [Span(0, 1)]


def test_a_view_without_the_process_closes_its_span_and_its_joins_mean_nothing() -> None:
    text = "p: join g; view 1 g p,q; join g; view 2 g q; view 3 g p; join g; end"
    assert spans(text) == [Span(2, 3, 1), Span(5, OPEN, 4)]


@pytest.mark.usefixtures("_form")
def test_rows_are_inside_between_the_opener_and_the_end_of_a_span() -> None:
    run = run_of(
        "group h: p\np: deliver a g; join g; deliver b g; deliver c h; leave g; deliver d g; end"
    )
    rows = run.delivered_row
    inside = members_of(run).inside(0, rows, run.group_of[run.delivered])
    assert inside.tolist() == [False, True, True, False]


@pytest.mark.usefixtures("_form")
def test_the_current_view_is_the_last_one_before_a_row_and_none_after_a_leave() -> None:
    run = run_of("p: deliver a g; view 4 g p; deliver b g; view 5 g q; deliver c g; leave g; "
                 "deliver d g; end")  # fmt: skip
    members = members_of(run)
    views = members.view_at(0, run.delivered_row, run.group_of[run.delivered])
    assert views.tolist() == [NO_VIEW, 4, 5, NO_VIEW]


@pytest.mark.usefixtures("_form")
def test_a_message_belongs_to_the_view_of_its_sender_if_the_sender_is_in_it() -> None:
    run = run_of("p: view 1 g p; send a g; view 2 g q; send b g; end")
    assert members_of(run).sent_in[number(run, "a", "b")].tolist() == [1, NO_VIEW]


def test_a_message_from_outside_belongs_to_the_lowest_view_in_which_it_is_delivered() -> None:
    run = run_of(
        "o: send a g; end\np: view 1 g p,q,r; view 2 g p,q,r; deliver a g; end\n"
        "q: view 1 g p,q,r; deliver a g; view 2 g p,q,r; end\n"
        "r: view 1 g p,q,r; view 2 g p,q,r; deliver a g; end"
    )
    assert members_of(run).view_of[number(run, "a")].tolist() == [1]


def test_only_who_joins_a_group_without_views_needs_its_component_of_the_clock() -> None:
    run = run_of("p: join g; end\nq: join h; view 1 h q; end\nr: leave g; end")
    assert joiners(run) == [0]


HEARD = (
    "p: deliver early h; send a g; deliver hello h; send b g; deliver a g; deliver b g; end\n"
    "q: send early h; join g; send hello h; deliver c g; end\nr: send c g; deliver c g; end"
)


def test_a_joiner_owes_what_was_sent_after_its_join_was_heard_of() -> None:
    run = run_of(HEARD)
    members, messages = members_of(run), number(run, "a", "b", "c")
    group = run.groups.index("g")
    assert members.owed_live(1, group, messages).tolist() == [False, True, False]
    [(span, owed)] = members.owed(1, group, messages)
    assert names(run, owed) == ["b"]
    assert span.last == OPEN


def test_with_views_a_message_is_owed_from_its_view_until_one_without_the_process() -> None:
    run = run_of(
        "p: view 1 g p,q; view 2 g p,q; send a g; view 3 g p; end\n"
        "q: view 1 g p,q; deliver b g; view 2 g p,q; deliver c g; view 3 g p; end"
    )
    start = int(run.start[1])
    [(span, owed)] = members_of(run).owed(1, 0, number(run, "a"))
    assert (span.first - start, span.last - start) == (3, 4)
    assert names(run, owed) == ["a"]


def test_a_view_that_is_installed_twice_counts_from_the_first_time() -> None:
    run = run_of("p: view 1 g p; deliver b g; view 1 g p; end\no: view 1 g p,o; send a g; end")
    [(span, _)] = members_of(run).owed(run.processes.index("p"), 0, number(run, "a"))
    assert span.first == int(run.start[run.processes.index("p")]) + 1


def test_a_view_with_and_without_the_process_ends_its_debts_and_not_its_membership() -> None:
    run = run_of(
        "p: view 1 g p,q; send a g; view 2 g p; end\nq: view 1 g p,q; deliver b g; "
        "view 2 g p,q; end"
    )
    members, start = members_of(run), int(run.start[1])
    assert members.spans(1, 0) == [Span(start + 1, OPEN, start)]
    [(span, _)] = members.owed(1, 0, number(run, "a"))
    assert span == Span(start + 1, start + 2, start)


def test_who_is_left_out_of_a_later_view_owes_nothing_in_the_end() -> None:
    text = "p: view 1 g p,q; send a g; deliver a g; {}; end\nq: view 1 g p,q; end"
    run = run_of(text.format("view 2 g p,q"))
    assert members_of(run).owed_live(1, 0, number(run, "a")).tolist() == [True]
    run = run_of(text.format("view 2 g p"))
    assert members_of(run).owed_live(1, 0, number(run, "a")).tolist() == [False]


def test_a_log_without_end_is_taken_to_have_installed_the_view() -> None:
    text = "p: view 1 g p,q; view 2 g p,q; send a g; end\nq: view 1 g p,q{}"
    ended, cut = run_of(text.format("; end")), run_of(text.format(""))
    assert members_of(ended).owed_live(1, 0, number(ended, "a")).tolist() == [False]
    assert members_of(cut).owed_live(1, 0, number(cut, "a")).tolist() == [True]


def test_missing_is_what_others_of_the_group_have_and_the_process_never_delivers() -> None:
    run = run_of(
        "group g: p,q\ngroup h: p\n"
        "p: send a g; send b g; send c h; deliver a g; deliver b g; deliver c h; end\n"
        "q: deliver b g; end"
    )
    mine, other = missing_of(run).missing
    assert mine == []
    [missing] = other
    assert (run.groups[missing.group], names(run, missing.messages)) == ("g", ["a"])


def test_an_absence_matters_for_order_only_where_something_is_delivered() -> None:
    text = "group g: p,q\np: send a g; send b g; deliver a g; deliver b g; end\nq: {}"
    nothing, one = run_of(text.format("end")), run_of(text.format("deliver b g; end"))
    assert missing_of(nothing).owed[1] == []
    assert len(missing_of(nothing).missing[1][0].messages) == 2
    [absent] = missing_of(one).owed[1]
    assert names(one, absent.messages) == ["a"]


def test_a_message_that_is_only_mentioned_is_missing_nowhere() -> None:
    run = run_of("group g: p\np: receive x g; end")
    assert missing_of(run).missing == [[]]
