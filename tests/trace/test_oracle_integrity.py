"""wellformed, no_duplication, no_creation, validity, agreement: one small trace per sentence."""

from __future__ import annotations

import random

import pytest

from notation import trace
from ordercast.trace.oracle import judge, judge_runs, unspecified, verdicts
from ordercast.trace.schema import PROPERTIES, Event, Judgement


def look(name: str, text: str, *, quiescent: bool = False) -> Judgement:
    return judge(trace(text), quiescent=quiescent)[name]


def says(name: str, text: str, *, quiescent: bool = False) -> str:
    return look(name, text, quiescent=quiescent).verdict


GOOD = """
    group g: p,q
    p: send a g; deliver a g; end
    q: deliver a g from p; end
"""


# The judge itself.


def test_all_32_names_are_reported_in_their_order_even_for_nothing() -> None:
    assert tuple(judge([])) == PROPERTIES
    assert len(verdicts([])) == 32


def test_a_good_run_is_ok_in_everything_but_views_which_do_not_occur() -> None:
    bad = {k: v for k, v in verdicts(trace(GOOD)).items() if v != "ok"}
    assert bad == {"views": "n/a", "vsync": "n/a", "sending_view": "n/a"}


def test_the_order_of_rows_means_nothing() -> None:
    events = trace("p: send a g; send b g; end\nq: deliver b g; deliver a g; end")
    expected = verdicts(events)
    for seed in range(5):
        random.Random(seed).shuffle(events)
        assert verdicts(events) == expected


def test_holes_in_indexes_mean_nothing() -> None:
    events = [Event("p", 10, "send", "a", "g"), Event("p", 70, "deliver", "a", "g")]
    assert verdicts(events) == verdicts(trace("p: send a g; deliver a g"))


def test_events_of_several_runs_are_refused() -> None:
    with pytest.raises(ValueError, match="several runs"):
        judge(trace(GOOD, run="one") + trace(GOOD, run="two"))


def test_runs_are_judged_apart() -> None:
    twice = trace(GOOD, run="one") + trace(GOOD, run="two")
    assert {run: found["wellformed"].verdict for run, found in judge_runs(twice).items()} == {
        "one": "ok",
        "two": "ok",
    }


def test_every_violation_has_a_sentence_and_a_witness() -> None:
    found = look("no_duplication", "p: send a g; deliver a g; deliver a g; deliver b g")
    (violation,) = found.violations
    assert violation.property == "no_duplication"
    assert violation.sentence == "p delivered a 2 times."
    assert violation.witness == {"process": "p", "message": "a", "indexes": [2, 3]}


# n/a depends only on which kinds occur.


@pytest.mark.parametrize("name", [n for n in PROPERTIES if n != "wellformed"])
def test_nothing_but_wellformed_applies_to_a_run_of_statistics(name: str) -> None:
    assert says(name, "p: receive a g; end") == "n/a"


def test_wellformed_always_applies() -> None:
    assert verdicts([])["wellformed"] == "ok"


def test_without_a_deliver_only_validity_is_judged() -> None:
    found = verdicts(trace("p: send a g; crash"))
    assert {name for name, verdict in found.items() if verdict != "n/a"} == {
        "wellformed",
        "validity",
    }


def test_without_a_send_fifo_causal_and_validity_do_not_apply_but_total_and_hybrids_do() -> None:
    found = verdicts(trace("p: deliver a g"))
    assert found["validity"] == found["fifo.group"] == found["causal.global.uniform"] == "n/a"
    assert found["total.group"] == found["agreement"] == found["hybrid.total_fifo"] == "ok"


def test_a_property_with_nothing_to_check_is_ok() -> None:
    found = verdicts(trace("p: view 1 g p; send a g; deliver a g; crash"))
    assert set(found.values()) == {"ok"}


# wellformed.


def test_two_events_with_one_index_are_not_wellformed() -> None:
    events = [Event("p", 1, "send", "a", "g"), Event("p", 1, "deliver", "a", "g")]
    (violation,) = judge(events)["wellformed"].violations
    assert violation.witness == {"process": "p", "index": 1}


def test_equal_indexes_in_two_logs_are_wellformed() -> None:
    assert says("wellformed", GOOD) == "ok"


@pytest.mark.parametrize("last", ["crash", "end"])
@pytest.mark.parametrize("after", ["deliver b g", "receive b g", "crash", "end", "lost"])
def test_nothing_comes_after_crash_or_end(last: str, after: str) -> None:
    assert says("wellformed", f"p: send b g; {last}; {after}") == "violated"


def test_one_message_sent_twice_is_not_wellformed() -> None:
    assert says("wellformed", "p: send a g; send a g") == "violated"
    assert says("wellformed", "p: send a g\nq: send a g") == "violated"


def test_a_message_delivered_before_its_own_send_is_a_cycle() -> None:
    (violation,) = look("wellformed", "p: deliver a g; send a g").violations
    assert violation.witness == {"cycle": [["p", 1], ["p", 2]]}


def test_happened_before_may_run_in_a_circle_through_two_logs() -> None:
    text = "p: deliver b g; send a g\nq: deliver a g; send b g"
    assert says("wellformed", text) == "violated"
    assert (
        says("wellformed", text.replace("deliver b g; send a g", "send a g; deliver b g")) == "ok"
    )


def test_a_receive_before_the_send_adds_nothing_to_happened_before() -> None:
    assert says("wellformed", "p: receive a g; send a g; deliver a g") == "ok"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("p: send a g\nq: send a g; send b g", True),
        ("p: send a g; crash; end\nq: end", True),
        ("p: send a g; crash\nq: send b g; end", False),
        ("p: send a g; send a g", False),
        ("p: end; send a g", False),
        ("p: deliver a g; send a g", False),
    ],
)
def test_only_some_illformed_runs_leave_the_other_verdicts_unspecified(
    text: str, expected: bool
) -> None:
    assert unspecified(trace(text)) is expected


def test_equal_indexes_leave_the_other_verdicts_unspecified() -> None:
    equal = [Event("p", 1, "send", "a", "g"), Event("p", 1, "deliver", "a", "g")]
    assert unspecified([*equal, Event("q", 1, "end")])


def test_of_two_sends_by_one_process_the_first_counts() -> None:
    text = "group g: p\ngroup h: p\np: send a g; send b g; send a h; deliver a g; deliver b g; end"
    found = verdicts(trace(text))
    assert found["wellformed"] == "violated"
    assert found["no_creation"] == found["fifo.global"] == found["validity"] == "ok"


def test_a_log_with_rows_after_its_end_still_has_end() -> None:
    assert says("validity", "group g: p\np: end; send a g") == "violated"


# no_duplication.


def test_a_second_delivery_is_a_duplicate_in_whatever_group() -> None:
    assert says("no_duplication", "p: send a g; deliver a g; deliver a h") == "violated"


def test_a_crashed_process_may_not_deliver_twice_either() -> None:
    assert says("no_duplication", "p: send a g; deliver a g; deliver a g; crash") == "violated"


def test_two_processes_delivering_one_message_is_no_duplicate() -> None:
    assert says("no_duplication", GOOD) == "ok"


def test_repeats_break_only_no_duplication() -> None:
    text = """
        group g: p,q
        group h: p
        p: send a g; send b g; deliver a g; deliver b g; deliver a h; end
        q: deliver a g; deliver b g; deliver a g; end
    """
    broken = {name for name, verdict in verdicts(trace(text)).items() if verdict == "violated"}
    assert broken == {"no_duplication"}


# no_creation.


def test_a_delivery_without_send_is_a_creation_if_the_named_senders_log_is_complete() -> None:
    assert says("no_creation", "p: end\nq: deliver a g from p") == "violated"


@pytest.mark.parametrize("sender", ["", "p: crash", "p: receive a g", "p: lost; end"])
def test_it_is_inconclusive_if_the_named_senders_log_is_incomplete_or_absent(sender: str) -> None:
    assert says("no_creation", f"{sender}\nq: deliver a g from p; end") == "inconclusive"


def test_a_declared_sender_without_rows_has_a_cut_log() -> None:
    text = "group g: p,q\nq: deliver a g from p; end"
    assert says("no_creation", text) == "inconclusive"
    assert says("no_creation", text, quiescent=True) == "violated"


def test_a_sender_named_only_in_views_has_no_log_at_all() -> None:
    text = "q: view 1 g p,q; deliver a g from p; end"
    assert says("no_creation", text, quiescent=True) == "inconclusive"


def test_where_no_sender_is_named_every_log_must_be_complete() -> None:
    assert says("no_creation", "p: end\nq: deliver a g; end") == "violated"
    assert says("no_creation", "p: crash\nq: deliver a g; end") == "inconclusive"
    assert says("no_creation", "p: end\nq: deliver a g") == "inconclusive"
    assert says("no_creation", "p: end\nq: deliver a g", quiescent=True) == "violated"
    assert says("no_creation", "p: lost\nq: deliver a g", quiescent=True) == "inconclusive"


def test_a_delivery_in_another_group_than_its_send_breaks_only_no_creation() -> None:
    text = """
        group g: p,q
        group h: p
        p: send a g; send b g; deliver a g; deliver b g; end
        q: deliver a h; deliver b g; end
    """
    broken = {name for name, verdict in verdicts(trace(text)).items() if verdict == "violated"}
    assert broken == {"no_creation"}


def test_a_delivery_may_not_happen_before_its_send() -> None:
    assert says("no_creation", "p: deliver a g; send a g") == "violated"
    text = "p: deliver b g; send a g\nq: deliver a g; send b g"
    assert says("no_creation", text) == "violated"


def test_a_delivery_concurrent_with_nothing_but_after_its_send_is_fine() -> None:
    assert says("no_creation", GOOD) == "ok"


def test_a_named_sender_means_nothing_where_there_is_a_send_record() -> None:
    text = "group g: p,q\np: send a g; deliver a g; end\nq: deliver a g from r; end\nr: end"
    assert says("no_creation", text) == "ok"


# validity.


def test_a_member_that_stays_delivers_what_it_sent() -> None:
    text = "group g: p\np: send a g; end"
    assert look("validity", text).violations[0].witness == {"process": "p", "missing": "a"}
    assert says("validity", "group g: p\np: send a g; deliver a g; end") == "ok"


def test_a_cut_sender_may_still_deliver() -> None:
    text = "group g: p\np: send a g"
    assert says("validity", text) == "inconclusive"
    assert says("validity", text, quiescent=True) == "violated"


def test_a_crashed_sender_owes_nothing() -> None:
    assert says("validity", "group g: p\np: send a g; crash") == "ok"


def test_a_sender_with_lost_records_may_have_delivered() -> None:
    assert says("validity", "group g: p\np: send a g; lost; end") == "inconclusive"
    assert says("validity", "group g: p\np: send a g; lost", quiescent=True) == "inconclusive"


def test_a_sender_that_left_later_owes_nothing() -> None:
    assert says("validity", "group g: p\np: send a g; leave g; end") == "ok"


def test_a_sender_that_left_and_joined_again_owes_nothing() -> None:
    assert says("validity", "group g: p\np: send a g; leave g; join g; end") == "ok"


def test_of_an_outside_sender_some_member_delivers() -> None:
    members = "group g: q,r\np: send a g; end\n"
    assert says("validity", members + "q: deliver a g; end\nr: end") == "ok"
    assert says("validity", members + "q: end\nr: end") == "violated"
    assert says("validity", members + "q: end\nr: crash") == "violated"
    assert says("validity", members + "q: crash\nr: crash") == "ok"
    assert says("validity", members + "q: end\nr: receive a g") == "inconclusive"
    assert says("validity", members + "q: end\nr: lost; end") == "inconclusive"


def test_a_crashed_or_late_deliverer_does_not_serve_an_outside_sender() -> None:
    members = "group g: q,r\np: send a g; end\n"
    assert says("validity", members + "q: deliver a g; crash\nr: end") == "violated"
    text = "group g: q\np: send a g; end\nq: end\nr: join g; deliver a g; end"
    assert says("validity", text) == "violated"


def test_an_outside_sender_that_is_cut_leaves_it_open_and_one_that_crashed_asks_nothing() -> None:
    assert says("validity", "group g: q\np: send a g\nq: end") == "inconclusive"
    assert says("validity", "group g: q\np: send a g; crash\nq: end") == "ok"


def test_lost_records_of_an_outside_sender_do_not_matter() -> None:
    assert says("validity", "group g: q\np: send a g; lost; end\nq: end") == "violated"


def test_nobody_need_deliver_to_a_group_that_nobody_is_in() -> None:
    assert says("validity", "p: send a g; end\nq: end") == "ok"


# agreement.


def test_what_one_delivered_all_members_deliver() -> None:
    text = "group g: p,q\np: send a g; deliver a g; end\nq: end"
    (violation,) = look("agreement", text).violations
    assert violation.witness == {"process": "q", "missing": "a", "delivered_by": "p"}
    assert says("agreement.uniform", text) == "violated"


def test_a_message_that_nobody_delivered_is_owed_to_nobody() -> None:
    text = "group g: p,q\np: send a g; send b g; deliver b g; end\nq: deliver b g; end"
    assert says("agreement.uniform", text) == "ok"


def test_a_crashed_process_owes_nothing() -> None:
    text = "group g: p,q\np: send a g; deliver a g; end\nq: crash"
    assert says("agreement", text) == says("agreement.uniform", text) == "ok"


def test_a_crashed_deliverer_binds_the_others_in_the_uniform_form_only() -> None:
    text = "group g: p,q\np: send a g; deliver a g; crash\nq: end"
    assert says("agreement", text) == "ok"
    assert says("agreement.uniform", text) == "violated"


def test_a_cut_log_may_still_deliver() -> None:
    text = "group g: p,q\np: send a g; deliver a g; end\nq: receive a g"
    assert says("agreement", text) == says("agreement.uniform", text) == "inconclusive"
    assert says("agreement", text, quiescent=True) == "violated"


def test_a_declared_member_without_rows_may_still_deliver() -> None:
    text = "group g: p,q\np: send a g; deliver a g; end"
    assert says("agreement", text) == "inconclusive"
    assert says("agreement", text, quiescent=True) == "violated"


def test_a_deliverer_with_a_cut_log_might_crash_so_only_the_uniform_form_is_violated() -> None:
    text = "group g: p,q\np: send a g; deliver a g\nq: end"
    assert says("agreement", text) == "inconclusive"
    assert says("agreement.uniform", text) == "violated"


def test_one_deliverer_with_end_suffices() -> None:
    text = "group g: p,q,r\np: send a g; deliver a g\nq: end\nr: deliver a g; end"
    (violation,) = look("agreement", text).violations
    assert violation.witness["delivered_by"] == "r"


def test_lost_records_make_a_missing_delivery_inconclusive() -> None:
    text = "group g: p,q\np: send a g; deliver a g; end\nq: lost; end"
    assert says("agreement", text) == says("agreement.uniform", text) == "inconclusive"


def test_lost_records_of_the_deliverer_do_not_matter() -> None:
    text = "group g: p,q\np: send a g; deliver a g; lost; end\nq: end"
    assert says("agreement", text) == "violated"


def test_a_message_without_send_record_counts_in_agreement() -> None:
    assert says("agreement", "group g: p,q\np: deliver a g; end\nq: end") == "violated"


def test_the_delivery_of_a_process_outside_the_group_binds_the_members() -> None:
    text = "group g: q\np: send a g; end\nq: end\nr: deliver a g; end"
    assert says("agreement", text) == "violated"


def test_one_who_left_owes_nothing_and_one_who_left_and_returned_owes_what_came_after() -> None:
    head = "group g: p,q\np: send a g; deliver a g; end\n"
    assert says("agreement", head + "q: leave g; end") == "ok"
    assert says("agreement", head + "q: leave g; join g; end") == "ok"
    after = "group g: p,q\np: deliver b g; send a g; deliver a g; end\n"
    assert says("agreement", after + "q: leave g; join g; send b g; deliver b g; end") == "violated"
