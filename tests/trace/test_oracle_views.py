"""views, vsync, sending_view: one small trace per sentence."""

from __future__ import annotations

import pytest

from notation import trace
from ordercast.trace.oracle import judge
from ordercast.trace.schema import Judgement


def look(name: str, text: str) -> Judgement:
    return judge(trace(text))[name]


def says(name: str, text: str) -> str:
    return look(name, text).verdict


# views.


def test_one_view_has_one_list() -> None:
    assert says("views", "p: view 1 g p,q\nq: view 1 g p,q") == "ok"
    (violation,) = look("views", "p: view 1 g p,q\nq: view 1 g q").violations
    assert violation.witness["first"] == ["p", "q"]
    assert violation.witness["second"] == ["q"]


def test_the_order_of_a_view_list_matters() -> None:
    assert says("views", "p: view 1 g p,q\nq: view 1 g q,p") == "violated"


def test_views_of_different_groups_are_different_views() -> None:
    assert says("views", "p: view 1 g p,q; view 1 h p\nq: view 1 g p,q") == "ok"


def test_a_crashed_process_must_have_the_same_list_too() -> None:
    assert says("views", "p: view 1 g p,q; crash\nq: view 1 g q,p") == "violated"


@pytest.mark.parametrize(("second", "expected"), [(3, "ok"), (2, "violated"), (1, "violated")])
def test_the_numbers_of_views_strictly_increase_in_a_log(second: int, expected: str) -> None:
    assert says("views", f"p: view 2 g p; view {second} g p") == expected


def test_numbers_increase_also_across_a_leave() -> None:
    assert says("views", "p: view 2 g p; leave g; view 1 g p") == "violated"


def test_who_installs_a_view_is_in_it() -> None:
    assert says("views", "p: view 1 g q") == "violated"


def test_a_process_may_read_of_its_own_exclusion_once() -> None:
    assert says("views", "p: view 1 g p,q; view 2 g q") == "ok"
    assert says("views", "p: view 1 g p,q; view 2 g q; view 3 g q") == "violated"
    assert says("views", "p: view 1 g p,q; leave g; view 2 g q") == "ok"


def test_the_previous_view_is_one_of_the_same_group() -> None:
    assert says("views", "p: view 1 g p; view 1 h q") == "violated"


def test_a_name_only_in_view_lists_is_allowed() -> None:
    assert says("views", "p: view 1 g p,ghost; view 2 g p") == "ok"


@pytest.mark.parametrize("log", ["view 2 g p; lost; view 1 g p", "lost; view 1 g q"])
def test_lost_records_excuse_no_violation_of_views(log: str) -> None:
    assert says("views", f"p: {log}") == "violated"


# vsync.


def test_between_two_common_views_the_same_messages_are_delivered() -> None:
    text = """
        p: view 1 g p,q; send a g; deliver a g; view 2 g p,q
        q: view 1 g p,q; view 2 g p,q; deliver a g
    """
    (violation,) = look("vsync", text).violations
    assert violation.witness == {
        "processes": ["p", "q"],
        "group": "g",
        "view": 1,
        "next_view": 2,
        "first": ["a"],
        "second": [],
    }
    assert says(
        "vsync", text.replace("view 2 g p,q; deliver a g", "deliver a g; view 2 g p,q")
    ) == ("ok")


def test_the_order_between_two_views_is_free() -> None:
    text = """
        p: view 1 g p,q; deliver a g; deliver b g; view 2 g p,q
        q: view 1 g p,q; deliver b g; deliver a g; view 2 g p,q
    """
    assert says("vsync", text) == "ok"


def test_the_last_view_is_not_compared() -> None:
    assert says("vsync", "p: view 1 g p,q; deliver a g; end\nq: view 1 g p,q; end") == "ok"


def test_who_goes_on_to_another_view_is_not_compared() -> None:
    text = "p: view 1 g p,q; deliver a g; view 2 g p\nq: view 1 g p,q; view 3 g q"
    assert says("vsync", text) == "ok"


def test_who_skips_a_view_is_compared_with_nobody_who_did_not() -> None:
    text = "p: view 1 g p,q; deliver a g; view 2 g p,q; view 3 g p,q\nq: view 1 g p,q; view 3 g p,q"
    assert says("vsync", text) == "ok"


def test_a_notice_of_exclusion_counts_as_installed() -> None:
    text = "p: view 1 g p,q; deliver a g; view 2 g p\nq: view 1 g p,q; view 2 g p"
    assert says("vsync", text) == "violated"


def test_an_excluded_process_that_returns_in_the_next_view_missed_what_lay_between() -> None:
    text = """
        p: view 1 g p,q; view 2 g p; deliver a g; view 3 g p,q
        q: view 1 g p,q; view 2 g p; view 3 g p,q
    """
    assert says("vsync", text) == "violated"


def test_views_are_neighbours_whatever_lies_between() -> None:
    text = """
        p: view 1 g p,q; deliver a g; view 2 g p,q
        q: view 1 g p,q; leave g; join g; view 1 h q; deliver x h; {}view 2 g p,q
    """
    assert says("vsync", text.format("deliver a g; ")) == "ok"
    assert says("vsync", text.format("")) == "violated"


def test_a_crashed_process_is_compared_too() -> None:
    text = "p: view 1 g p,q; deliver a g; view 2 g p,q\nq: view 1 g p,q; view 2 g p,q; crash"
    assert says("vsync", text) == "violated"


@pytest.mark.parametrize(
    "place", ["lost; view 1 g p,q; view 2 g p,q", "view 1 g p,q; view 2 g p,q; lost"]
)
def test_a_difference_that_involves_lost_records_is_inconclusive(place: str) -> None:
    text = f"p: view 1 g p,q; deliver a g; view 2 g p,q\nq: {place}"
    assert says("vsync", text) == "inconclusive"
    assert says("vsync", text.replace("p:", "z:")) == "inconclusive"
    third = "\nr: view 1 g p,q; deliver a g; deliver b g; view 2 g p,q"
    assert says("vsync", text + third) == "violated"


def test_only_the_groups_own_messages_and_first_deliveries_are_compared() -> None:
    text = """
        p: send a g; send b h; view 1 g p,q; deliver a g; deliver b g; view 2 g p,q
        q: view 1 g p,q; deliver a h; view 2 g p,q
    """
    assert says("vsync", text) == "ok"
    repeated = """
        p: view 1 g p,q; deliver a g; view 2 g p,q; deliver a g; view 3 g p,q
        q: view 1 g p,q; deliver a g; view 2 g p,q; view 3 g p,q
    """
    assert says("vsync", repeated) == "ok"


def test_a_log_that_installs_two_views_twice_is_not_compared_with_itself() -> None:
    twice = "p: view 1 g p; deliver a g; view 2 g p; view 1 g p; view 2 g p"
    assert says("views", twice) == "violated"
    assert says("vsync", twice) == "ok"
    assert says("vsync", twice + "\nq: view 1 g p; deliver a g; view 2 g p") == "violated"


# sending_view.


def test_a_message_is_delivered_in_the_view_it_was_sent_in() -> None:
    text = "p: view 1 g p,q; send a g; deliver a g\nq: view 1 g p,q; deliver a g"
    assert says("sending_view", text) == "ok"
    later = text.replace("q: view 1 g p,q;", "q: view 1 g p,q; view 2 g p,q;")
    (violation,) = look("sending_view", later).violations
    assert violation.witness == {"process": "q", "message": "a", "view": 1, "delivered_in": 2}


def test_a_delivery_in_no_view_is_not_in_the_senders() -> None:
    head = "p: view 1 g p,q; send a g\n"
    assert says("sending_view", head + "q: deliver a g") == "violated"
    assert says("sending_view", head + "q: view 1 g p,q; leave g; deliver a g") == "violated"


def test_the_sender_itself_must_deliver_in_that_view_too() -> None:
    assert says("sending_view", "p: view 1 g p; send a g; view 2 g p; deliver a g") == "violated"


def test_a_message_from_outside_may_be_delivered_in_any_view() -> None:
    tail = "\nq: view 2 g p,q; deliver a g\nr: view 3 g r; deliver a g"
    assert says("sending_view", "p: send a g" + tail) == "ok"
    assert says("sending_view", "p: view 1 g p; leave g; send a g" + tail) == "ok"
    assert says("sending_view", "p: view 1 g p; view 2 g q; send a g" + tail) == "ok"
    assert says("sending_view", "p: view 1 h p; send a g" + tail) == "ok"


def test_a_message_without_send_record_has_no_sending_view() -> None:
    assert says("sending_view", "p: view 1 g p; deliver a g\nq: view 2 g q; deliver a g") == "ok"


def test_sending_view_binds_crashed_processes_and_those_with_lost_records() -> None:
    head = "p: view 1 g p,q; send a g\n"
    assert says("sending_view", head + "q: view 2 g p,q; deliver a g; crash") == "violated"
    assert says("sending_view", head + "q: lost; view 2 g p,q; deliver a g") == "violated"


def test_only_the_first_delivery_need_be_in_the_sending_view() -> None:
    text = "p: view 1 g p; send a g; deliver a g; view 2 g p; deliver a g"
    assert says("sending_view", text) == "ok"


def test_sending_view_goes_by_the_group_of_the_send() -> None:
    text = "p: view 1 g p,q; send a g\nq: view 1 g p,q; view 2 h q; deliver a h"
    assert says("sending_view", text) == "ok"
