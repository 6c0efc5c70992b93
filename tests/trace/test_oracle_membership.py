"""Membership intervals, and who owes which message: one small trace per sentence."""

from __future__ import annotations

import msgspec
import pytest

from notation import trace
from ordercast.trace.oracle import judge
from ordercast.trace.oracle.logs import Run
from ordercast.trace.oracle.membership import (
    FROM_THE_START,
    Interval,
    intervals,
    owes,
    owes_live,
    view_of_message,
)
from ordercast.trace.schema import Event


def member(text: str, process: str = "p", group: str = "g") -> list[Interval]:
    return intervals(Run(trace(text)), process, group)


def says(name: str, text: str, *, quiescent: bool = False) -> str:
    return judge(trace(text), quiescent=quiescent)[name].verdict


ALWAYS = [Interval(FROM_THE_START, None)]


# Intervals. Positions count from 0.


def test_a_process_with_views_is_a_member_from_a_view_with_it_to_a_view_without_it() -> None:
    text = "p: send a g; view 1 g p,q; view 2 g p; send b g; view 3 g q; send c g"
    assert member(text) == [Interval(1, 4)]


def test_leave_ends_an_interval_of_views_and_a_later_view_begins_another() -> None:
    assert member("p: view 1 g p; leave g; view 4 g p") == [Interval(0, 1), Interval(2, None)]


def test_own_views_count_and_joins_and_declarations_do_not() -> None:
    assert member("group g: p\np: join g; send a g; view 1 g p") == [Interval(2, None)]
    assert member("group g: p\np: join g; view 1 g q") == []


def test_views_of_another_group_or_of_another_process_do_not_count() -> None:
    assert member("group g: p\np: view 1 h p\nq: view 1 g q") == ALWAYS


def test_joins_and_leaves_make_intervals_where_p_logged_no_view() -> None:
    assert member("p: join g; leave g; join g") == [Interval(0, 1), Interval(2, None)]


def test_a_join_of_a_member_and_a_leave_of_a_stranger_change_nothing() -> None:
    assert member("p: join g; join g; leave g; leave g") == [Interval(0, 2)]


def test_a_declared_process_that_joins_first_was_no_member_before() -> None:
    assert member("group g: p\np: send a g; join g") == [Interval(1, None)]


def test_a_process_whose_first_event_is_leave_was_a_member_from_the_start() -> None:
    from_start = [Interval(FROM_THE_START, 0)]
    assert member("group g: p\np: leave g") == from_start
    assert member("group g: q\np: leave g") == from_start
    assert member("p: leave g") == from_start


def test_a_declared_process_is_a_member_always_and_another_one_never() -> None:
    assert member("group g: p\np: end") == ALWAYS
    assert member("group g: q\np: deliver a g; end") == []


def test_several_declarations_of_a_group_are_united() -> None:
    assert member("group g: q\ngroup g: p\np: end") == ALWAYS


def test_where_nothing_is_declared_every_process_that_delivers_in_the_group_is_a_member() -> None:
    assert member("p: deliver a g") == ALWAYS
    assert member("group h: q\np: deliver a g") == ALWAYS
    assert member("p: send a g") == []


def test_an_empty_declaration_declares_nothing() -> None:
    assert member("group g:\np: deliver a g") == ALWAYS


def test_to_deliver_in_a_group_is_to_deliver_a_message_sent_to_it() -> None:
    text = "p: deliver a h\nq: send a g"
    assert member(text, group="g") == ALWAYS
    assert member(text, group="h") == []


def test_a_name_only_in_view_lists_is_not_a_process_of_the_run() -> None:
    assert list(Run(trace("group g: p,r\np: view 1 g p,q")).logs) == ["p", "r"]


def test_the_process_of_a_declaration_is_ignored() -> None:
    declaration = Event("boss", 1, "group", group="g", members=("p",))
    run = Run([declaration, *trace("p: deliver a g; end")])
    assert list(run.logs) == ["p"]


def test_rows_without_a_list_have_an_empty_one() -> None:
    nothing_declared = Event(None, None, "group", group="g", order="total")
    assert intervals(Run([nothing_declared, *trace("p: deliver a g")]), "p", "g") == ALWAYS
    without_list = [Event("p", 1, "view", group="g", view=1), Event("p", 2, "send", "a", "g")]
    run = Run([*without_list, *trace("q: view 1 g p,q; deliver a g")])
    assert intervals(run, "p", "g") == []
    assert view_of_message(run, "a") == 1
    assert not owes_live(run, "q", "a")
    assert judge(without_list)["views"].verdict == "violated"


# membership.


def test_a_delivery_outside_every_interval_breaks_membership() -> None:
    assert says("membership", "group g: q\nq: send a g\np: deliver a g") == "violated"
    assert says("membership", "q: send a g\np: deliver a g; join g") == "violated"
    assert says("membership", "q: send a g\np: join g; leave g; deliver a g") == "violated"
    assert says("membership", "q: send a g\np: join g; deliver a g; leave g") == "ok"
    assert says("membership", "p: view 1 g p; view 2 g q; deliver a g") == "violated"


def test_membership_binds_crashed_processes_and_those_with_lost_records() -> None:
    assert says("membership", "group g: q\np: deliver a g; crash") == "violated"
    assert says("membership", "group g: q\np: lost; deliver a g") == "violated"


def test_membership_is_judged_in_the_group_of_the_send() -> None:
    head = "group g: p\ngroup h: q\n"
    assert says("membership", head + "p: send a g; deliver a h") == "ok"
    assert says("membership", head + "q: send a h\np: deliver a g") == "violated"


def test_without_a_send_the_group_is_the_lowest_of_the_first_deliveries() -> None:
    text = "group g: p\ngroup h: p,q\np: deliver a g; deliver a f\nq: deliver a h"
    run = Run(trace(text))
    assert run.group_of("a") == "g"
    assert says("membership", text) == "violated"


# owes without views.


def test_a_member_from_the_start_owes_everything() -> None:
    text = "group g: p,q\np: send a g\nq: end"
    assert owes_live(Run(trace(text)), "q", "a")


def test_a_join_that_happened_before_the_send_owes_the_message() -> None:
    text = "group g: p\nq: join g; send hello h; end\np: deliver hello h; send a g"
    assert owes_live(Run(trace(text)), "q", "a")


def test_a_concurrent_join_owes_nothing() -> None:
    assert not owes_live(Run(trace("group g: p\nq: join g; end\np: send a g")), "q", "a")


def test_a_join_owes_its_own_later_sends_and_not_its_earlier_ones() -> None:
    run = Run(trace("q: send a g; join g; send b g"))
    assert not owes_live(run, "q", "a")
    assert owes_live(run, "q", "b")


def test_a_joined_process_owes_no_message_without_a_send_record() -> None:
    text = "q: join g; end\np: join g; deliver a g; end"
    assert not owes_live(Run(trace(text)), "q", "a")
    assert owes_live(Run(trace("group g: q\n" + text.replace("join g; end", "end"))), "q", "a")


def test_the_join_that_counts_is_the_one_of_the_interval() -> None:
    text = "q: join g; send b h; leave g; join g; end\np: deliver b h; send a g"
    assert not owes_live(Run(trace(text)), "q", "a")


def test_owes_asks_for_membership_at_the_position() -> None:
    run = Run(trace("group g: q\np: send a g\nq: receive a g; leave g; receive b g"))
    assert owes(run, "q", "a", 0)
    assert not owes(run, "q", "a", 2)
    assert not owes_live(run, "q", "a")


def test_causality_inside_owes_goes_through_all_groups_also_for_group_properties() -> None:
    text = """
        group g: p
        q: join g; send x h; deliver b g
        p: deliver x h; send a g; send b g
    """
    assert says("fifo.group", text) == says("causal.group", text) == "violated"
    assert says("fifo.group", text.replace("deliver x h; ", "")) == "ok"


# V(m).


def v(text: str) -> int | None:
    return view_of_message(Run(trace(text)), "a")


def test_v_of_m_is_the_senders_view_at_the_send() -> None:
    assert v("p: view 1 g p; view 2 g p; send a g; view 3 g p\nq: view 1 g q; deliver a g") == 2


def test_leaving_another_group_does_not_end_the_current_view() -> None:
    assert v("p: view 2 g p; leave h; send a g\nq: view 1 g q; deliver a g") == 2


def test_v_of_m_of_a_sender_that_is_not_in_its_view_is_the_lowest_at_a_delivery() -> None:
    tail = "\nq: view 5 g q; deliver a g\nr: view 4 g q; deliver a g; view 6 g q"
    assert v("p: view 1 g p; view 2 g q; send a g" + tail) == 4
    assert v("p: send a g" + tail) == 4
    assert v("p: view 1 g p; leave g; send a g" + tail) == 4
    assert v("p: view 1 h p; send a g" + tail) == 4


def test_v_of_m_without_a_send_record_is_the_lowest_at_a_delivery() -> None:
    assert v("q: view 5 g q; deliver a g") == 5


def test_only_first_deliveries_and_current_views_count_for_v_of_m() -> None:
    assert v("q: view 5 g q; deliver a g\nr: deliver a g; view 1 g r; deliver a g") == 5
    assert v("q: view 5 g q; deliver a g\nr: view 1 g r; leave g; deliver a g") == 5


def test_there_may_be_no_v_of_m() -> None:
    text = "group g: q\np: send a g\nq: deliver a g\nr: view 1 g r; end"
    assert v(text) is None
    assert not owes_live(Run(trace(text)), "q", "a")


def test_a_view_column_on_other_kinds_is_informative_only() -> None:
    events = trace("p: view 1 g p; send a g; deliver a g")
    marked = [events[0], *(msgspec.structs.replace(event, view=7) for event in events[1:])]
    assert view_of_message(Run(marked), "a") == 1
    assert judge(marked)["sending_view"].verdict == "ok"


# owes with views.


def test_with_views_q_owes_what_was_sent_in_a_view_it_installed() -> None:
    run = Run(trace("p: view 1 g p,q; send a g\nq: view 1 g p,q; receive a g; end"))
    assert owes(run, "q", "a", 1)
    assert owes_live(run, "q", "a")


def test_with_views_q_owes_nothing_before_it_installed_the_view() -> None:
    run = Run(trace("p: view 2 g p,q; send a g\nq: view 1 g q; receive x g; view 2 g p,q; end"))
    assert not owes(run, "q", "a", 1)
    assert owes(run, "q", "a", 3)


def test_with_views_q_owes_nothing_of_a_view_without_it() -> None:
    text = "p: view 1 g p; send a g; view 2 g p,q\nq: view 2 g p,q; receive a g; end"
    run = Run(trace(text))
    assert not owes(run, "q", "a", 1)
    assert not owes_live(run, "q", "a")


def test_a_process_with_end_that_never_installed_the_view_owes_nothing() -> None:
    head = "p: view 1 g p,q; view 2 g p,q; send a g\n"
    assert not owes_live(Run(trace(head + "q: view 1 g p,q; end")), "q", "a")


@pytest.mark.parametrize("log", ["view 1 g p,q", "view 1 g p,q; lost; end"])
def test_a_cut_or_lossy_process_is_taken_to_have_installed_the_view(log: str) -> None:
    run = Run(trace("p: view 1 g p,q; view 2 g p,q; send a g\nq: " + log))
    assert owes_live(run, "q", "a")
    assert not owes(run, "q", "a", 1)


def test_quiescence_says_that_the_view_was_never_installed() -> None:
    text = "p: view 1 g p,q; view 2 g p,q; send a g; deliver a g; end\nq: view 1 g p,q"
    assert says("agreement", text) == "inconclusive"
    assert says("agreement", text, quiescent=True) == "ok"


def test_a_declared_member_without_rows_is_taken_to_have_installed_the_view() -> None:
    text = "p: view 1 g p,q; send a g; deliver a g; end"
    assert says("agreement", "group g: p,q\n" + text) == "inconclusive"
    assert says("agreement", text) == "ok"


def test_a_view_without_q_in_between_ends_what_it_owes() -> None:
    text = """
        p: view 1 g p,q; send a g; view 2 g p; view 3 g p,q
        q: view 1 g p,q; view 3 g p,q; receive a g; end
    """
    run = Run(trace(text))
    assert not owes(run, "q", "a", 2)
    assert owes(run, "q", "a", 1)  # view 2 is above the highest that q had installed
    assert not owes_live(run, "q", "a")


def test_one_who_is_not_in_the_highest_view_owes_nothing_live() -> None:
    text = "p: view 1 g p,q; send a g; deliver a g; view 2 g p; end\nq: view 1 g p,q; end"
    assert not owes_live(Run(trace(text)), "q", "a")
    assert says("agreement", text) == "ok"


def test_where_a_view_has_several_lists_q_must_be_in_all() -> None:
    text = "p: view 1 g p,q; send a g\nq: view 1 g p,q; receive a g\nr: view 1 g p,r"
    run = Run(trace(text))
    assert not owes(run, "q", "a", 1)
    assert owes(run, "p", "a", 1)


def test_whether_a_process_is_in_its_own_view_is_read_in_its_own_row() -> None:
    text = "p: view 3 g p,q; send a g; deliver a g\nq: view 3 g q; view 4 g q; deliver a g"
    assert member(text) == [Interval(0, None)]
    assert v(text) == 3
    assert says("membership", text) == "ok"
    assert says("sending_view", text) == "violated"


def test_a_group_has_views_if_anybody_logged_one() -> None:
    text = "group g: p,q\np: send a g; deliver a g; end\nq: end\nr: view 1 g r; end"
    assert says("agreement", text) == "ok"
    assert says("agreement", text.replace("view 1 g r; ", "")) == "violated"


def test_a_message_of_an_outside_sender_is_owed_by_those_in_the_view_it_was_delivered_in() -> None:
    text = """
        o: send a g; end
        p: view 1 g p; view 2 g p,q; deliver a g; end
        q: view 2 g p,q; end
    """
    assert says("agreement", text) == "violated"
    earlier = text.replace("view 2 g p,q; deliver a g", "deliver a g; view 2 g p,q")
    assert says("agreement", earlier) == "ok"


def test_an_outside_sender_to_a_group_with_views_where_nobody_delivers_has_no_claim() -> None:
    assert says("validity", "o: send a g; end\np: view 1 g p; end") == "ok"


def test_a_sender_excluded_in_its_own_log_need_not_deliver() -> None:
    text = "p: view 1 g p,q; send a g; view 2 g q; end\nq: view 1 g p,q; view 2 g q; end"
    assert says("validity", text) == "ok"
    assert says("validity", text.replace(" view 2 g q;", "")) == "violated"
