"""fifo, causal, total and the hybrids: one small trace per sentence."""

from __future__ import annotations

import pytest

from notation import trace
from ordercast.trace.oracle import judge, verdicts
from ordercast.trace.schema import ORDER_PROPERTIES, Judgement


def look(name: str, text: str, *, quiescent: bool = False) -> Judgement:
    return judge(trace(text), quiescent=quiescent)[name]


def says(name: str, text: str, *, quiescent: bool = False) -> str:
    return look(name, text, quiescent=quiescent).verdict


# fifo.


def test_fifo_is_broken_by_an_inversion() -> None:
    text = "p: send a g; send b g\nq: deliver b g; deliver a g"
    (violation,) = look("fifo.group", text).violations
    assert violation.sentence == "q delivered b before a."
    assert violation.witness == {"process": "q", "first": "a", "second": "b", "what": "inversion"}
    assert says("fifo.group", "p: send a g; send b g\nq: deliver a g; deliver b g") == "ok"


def test_fifo_is_broken_by_a_gap_even_in_a_cut_log() -> None:
    text = "group g: p,q\np: send a g; send b g\nq: deliver b g"
    (violation,) = look("fifo.group", text).violations
    assert violation.witness == {"process": "q", "missing": "a", "second": "b", "what": "gap"}


def test_a_message_that_is_not_owed_leaves_no_gap() -> None:
    assert says("fifo.group", "p: send a g; send b g\nq: join g; deliver b g") == "ok"
    left = "group g: p,q\np: send a g; send b h\nq: leave g; deliver b h"
    assert says("fifo.global", left) == "ok"
    assert says("fifo.global", left.replace("leave g; deliver b h", "deliver b h; leave g")) == (
        "violated"
    )


def test_an_inversion_needs_no_membership() -> None:
    text = "group g: p\np: send a g; send b g\nq: deliver b g; deliver a g"
    assert says("fifo.group", text) == "violated"


def test_the_tail_may_be_missing() -> None:
    text = "group g: p,q\np: send a g; send b g\nq: deliver a g; end"
    assert says("fifo.group", text) == says("causal.global", text) == "ok"


def test_fifo_of_different_senders_is_free() -> None:
    text = "p: send a g\nr: send b g\nq: deliver b g; deliver a g\ns: deliver a g; deliver b g"
    assert says("fifo.global", text) == "ok"


def test_fifo_group_looks_at_one_group_and_fifo_global_at_all() -> None:
    text = "p: send a g; send b h\nq: deliver b h; deliver a g"
    assert says("fifo.group", text) == "ok"
    assert says("fifo.global", text) == "violated"


def test_lost_records_make_a_gap_inconclusive_but_not_an_inversion() -> None:
    head = "group g: p,q\np: send a g; send b g\n"
    for name in ("fifo.group", "fifo.global", "causal.group", "causal.global"):
        assert says(name, head + "q: deliver b g; lost") == "inconclusive"
        assert says(name, head + "q: deliver b g; deliver a g; lost") == "violated"


def test_lost_records_of_the_sender_do_not_matter() -> None:
    assert says("fifo.group", "group g: p,q\np: send a g; lost; send b g\nq: deliver b g") == (
        "violated"
    )


def test_quiescence_changes_no_order_property() -> None:
    text = "group g: p,q\np: send a g; send b g\nq: deliver b g"
    before, after = verdicts(trace(text)), verdicts(trace(text), quiescent=True)
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"validity", "agreement", "agreement.uniform"}


def test_messages_without_send_record_have_no_place_in_fifo_and_causal_order() -> None:
    text = "p: send c g\nq: deliver b g from r; deliver a g from r\ns: deliver a g; deliver b g"
    assert says("fifo.global", text) == says("causal.global", text) == "ok"


def test_the_first_delivery_counts() -> None:
    text = "p: send a g; send b g\nq: deliver a g; deliver b g; deliver a g"
    assert says("fifo.group", text) == "ok"
    text = "p: send a g; send b g\nq: deliver b g; deliver a g; deliver b g"
    assert says("fifo.group", text) == "violated"


def test_the_group_of_a_message_is_that_of_its_send() -> None:
    text = "p: send a g; send b g\nq: deliver b h; deliver a i"
    assert says("fifo.group", text) == "violated"
    opposite = text + "\nr: deliver a g; deliver b g"
    assert says("total.group", opposite) == "violated"


# Plain and uniform.

INVERTED_AND_CRASHED = """
    p: send a g; send b g; deliver a g; deliver b g; end
    q: deliver b g; deliver a g; crash
"""


@pytest.mark.parametrize("name", ORDER_PROPERTIES)
def test_a_crashed_observer_is_excused_in_the_plain_form_only(name: str) -> None:
    assert says(name, INVERTED_AND_CRASHED) == "ok"
    assert says(name + ".uniform", INVERTED_AND_CRASHED) == "violated"


@pytest.mark.parametrize("name", ORDER_PROPERTIES)
def test_a_cut_observer_is_bound_in_both_forms(name: str) -> None:
    text = INVERTED_AND_CRASHED.replace("; crash", "")
    assert says(name, text) == says(name + ".uniform", text) == "violated"


def test_a_gap_of_a_crashed_observer_breaks_the_uniform_form() -> None:
    text = "group g: p,q\np: send a g; send b g; deliver a g; deliver b g\nq: deliver b g; crash"
    for name in ("fifo.group", "causal.group", "total.gapless"):
        assert says(name, text) == "ok"
        assert says(name + ".uniform", text) == "violated"


def test_the_messages_of_a_crashed_sender_keep_their_order() -> None:
    text = "p: send a g; send b g; crash\nq: deliver b g; deliver a g"
    assert says("fifo.group", text) == "violated"


# causal.

REPLY = """
    p: send a g; deliver a g
    q: deliver a g; send b g; deliver b g
"""


def test_a_reply_comes_after_what_it_replies_to() -> None:
    assert says("causal.group", REPLY + "r: deliver a g; deliver b g") == "ok"
    assert says("causal.group", REPLY + "r: deliver b g; deliver a g") == "violated"
    assert says("fifo.global", REPLY + "r: deliver b g; deliver a g") == "ok"


def test_a_reply_without_what_it_replies_to_is_a_gap() -> None:
    text = "group g: p,q,r\n" + REPLY + "r: deliver b g"
    assert says("causal.group", text) == says("causal.global", text) == "violated"


def test_causal_order_includes_that_of_one_sender() -> None:
    text = "p: send a g; send b g\nq: deliver b g; deliver a g"
    assert says("causal.group", text) == says("causal.global", text) == "violated"


def test_causal_order_is_transitive() -> None:
    text = REPLY + "s: deliver b g; send c g\nr: deliver c g; deliver a g"
    assert says("causal.group", text) == "violated"


def test_a_message_sent_before_the_delivery_is_no_reply() -> None:
    text = "p: send a g\nq: send b g; deliver a g\nr: deliver b g; deliver a g"
    assert says("causal.global", text) == "ok"


@pytest.mark.parametrize("kind", ["receive", "forward", "hold", "ack"])
def test_a_message_received_but_not_delivered_has_caused_nothing(kind: str) -> None:
    text = f"p: send a g\nq: {kind} a g; send b g\nr: deliver b g; deliver a g"
    assert says("causal.global", text) == "ok"


def test_causality_within_a_group_goes_through_its_own_messages_only() -> None:
    text = """
        p: send a g; send x h
        q: deliver x h; send b g
        r: deliver b g; deliver a g
    """
    assert says("causal.group", text) == "ok"
    assert says("causal.global", text) == "violated"
    assert says("causal.group", text.replace(" h", " g")) == "violated"


def test_causal_group_relates_messages_of_one_group_only() -> None:
    text = "p: send a g; deliver a g\nq: deliver a g; send b h\nr: deliver b h; deliver a g"
    assert says("causal.group", text) == "ok"
    assert says("causal.global", text) == "violated"


def test_what_a_crashed_process_delivered_still_causes() -> None:
    text = "p: send a g\nq: deliver a g; send b g; crash\nr: deliver b g; deliver a g"
    assert says("causal.global", text) == "violated"


def test_a_delivery_in_another_group_still_leads_from_log_to_log() -> None:
    text = "p: send a g\nq: deliver a h; send b g\nr: deliver b g; deliver a g"
    assert says("causal.group", text) == "violated"


def test_in_a_circle_of_causes_no_order_of_delivery_is_right() -> None:
    text = "p: deliver b g; send a g\nq: deliver a g; send b g\nr: deliver a g; deliver b g"
    assert says("causal.group", text) == "violated"


# total.

RING = """
    p: send a g; send b h; send c i
    q: deliver a g; deliver b h
    r: deliver b h; deliver c i
    s: deliver c i; deliver a g
"""


def test_opposite_orders_of_two_messages_of_a_group_break_every_total_order() -> None:
    text = "p: deliver a g; deliver b g\nq: deliver b g; deliver a g"
    for name in ("total.group", "total.global", "total.pairwise", "total.gapless"):
        assert says(name, text) == "violated"


def test_opposite_orders_across_groups_break_global_and_pairwise_only() -> None:
    text = "p: deliver a g; deliver b h\nq: deliver b h; deliver a g"
    assert says("total.global", text) == says("total.pairwise", text) == "violated"
    assert says("total.group", text) == says("total.gapless", text) == "ok"


def test_a_ring_of_three_breaks_global_and_no_pair() -> None:
    (violation,) = look("total.global", RING).violations
    assert violation.witness == {"cycle": ["a", "b", "c"], "processes": ["q", "r", "s"]}
    assert says("total.pairwise", RING) == says("total.group", RING) == "ok"


def test_a_ring_of_three_in_one_group_breaks_total_group() -> None:
    text = RING.replace(" h", " g").replace(" i", " g")
    assert says("total.group", text) == "violated"
    assert says("total.pairwise", text) == "ok"


def test_a_ring_through_a_crashed_observer_breaks_the_uniform_form() -> None:
    text = RING.replace("deliver c i; deliver a g", "deliver c i; deliver a g; crash")
    assert says("total.global", text) == "ok"
    assert says("total.global.uniform", text) == "violated"


def test_messages_without_send_record_count_in_total_order() -> None:
    assert says("total.group", "p: deliver a g; deliver b g\nq: deliver b g; deliver a g") == (
        "violated"
    )


def test_lost_records_excuse_no_inversion_in_total_order() -> None:
    text = "p: deliver a g; deliver b g; lost\nq: deliver b g; deliver a g; lost"
    for name in ("total.group", "total.global", "total.pairwise", "total.gapless"):
        assert says(name, text) == "violated"


def test_a_gap_breaks_gapless_order_only() -> None:
    text = "group g: p,q\np: deliver a g; deliver b g\nq: deliver b g"
    (violation,) = look("total.gapless", text).violations
    assert violation.witness == {"process": "q", "missing": "a", "second": "b", "what": "gap"}
    assert says("total.group", text) == says("total.global", text) == "ok"
    assert says("total.pairwise", text) == "ok"


def test_a_gap_in_a_log_with_lost_records_is_inconclusive() -> None:
    text = "group g: p,q\np: deliver a g; deliver b g\nq: lost; deliver b g"
    assert says("total.gapless", text) == "inconclusive"


def test_a_missing_tail_is_no_gap() -> None:
    text = "group g: p,q\np: deliver a g; deliver b g\nq: deliver a g; end"
    assert says("total.gapless", text) == "ok"


def test_a_late_joiner_leaves_no_gap_in_gapless_order() -> None:
    text = "p: join g; send a g; send b g; deliver a g; deliver b g\nq: join g; deliver b g"
    assert says("total.gapless", text) == "ok"


def test_gapless_order_relates_messages_of_one_group_only() -> None:
    text = "group g: p,q\ngroup h: p,q\np: deliver a g; deliver b h\nq: deliver b h"
    assert says("total.gapless", text) == "ok"


def test_gapless_order_goes_by_the_group_of_the_send() -> None:
    text = """
        group g: p,q
        group h: p,q
        p: send a g; send b g; deliver a h; deliver b g
        q: deliver b g
    """
    assert says("total.gapless", text) == "violated"


def test_gapless_with_views_asks_who_is_in_the_view_of_the_message() -> None:
    text = """
        p: view 1 g p; send a g; deliver a g; view 2 g p,q; send b g; deliver b g
        q: view 2 g p,q; deliver b g
    """
    assert says("total.gapless", text) == says("fifo.group", text) == "ok"
    both_in_2 = text.replace("view 2 g p,q; send b g", "send b g").replace(
        "view 1 g p;", "view 2 g p,q;"
    )
    assert says("total.gapless", both_in_2) == says("fifo.group", both_in_2) == "violated"


# Hybrids.


def test_a_hybrid_is_both_of_its_parts() -> None:
    causal_only = "p: deliver a g; deliver b g\nq: deliver b g; deliver a g\nr: send c g"
    found = verdicts(trace(causal_only))
    assert found["fifo.group"] == found["causal.global"] == "ok"
    assert found["hybrid.total_fifo"] == found["hybrid.kindberg"] == "violated"
    assert found["hybrid.total_causal"] == "violated"
    total_only = "p: send a g; send b g; deliver b g; deliver a g"
    found = verdicts(trace(total_only))
    assert found["total.group"] == found["total.global"] == "ok"
    assert found["hybrid.total_fifo"] == found["hybrid.kindberg"] == "violated"
    assert found["hybrid.total_causal"] == "violated"


def test_total_causal_needs_total_order_over_all_groups_and_kindberg_within_each() -> None:
    text = "r: send a g\ns: send b h\np: deliver a g; deliver b h\nq: deliver b h; deliver a g"
    found = verdicts(trace(text))
    assert found["hybrid.total_causal"] == "violated"
    assert found["hybrid.kindberg"] == found["hybrid.total_fifo"] == "ok"


def test_kindberg_needs_causal_order_across_groups_and_total_fifo_only_fifo_within_each() -> None:
    text = "p: send a g; send b h\nq: deliver b h; deliver a g"
    found = verdicts(trace(text))
    assert found["hybrid.kindberg"] == found["hybrid.total_causal"] == "violated"
    assert found["hybrid.total_fifo"] == "ok"


def test_a_hybrid_is_inconclusive_when_one_part_is_and_none_is_violated() -> None:
    text = "group g: p,q\np: send a g; send b g; deliver a g; deliver b g\nq: lost; deliver b g"
    found = judge(trace(text))["hybrid.total_fifo"]
    assert found.verdict == "inconclusive"
    assert found.doubts == ("q delivered b without a, which comes before it.",)


def test_the_violations_of_a_hybrid_bear_its_own_name() -> None:
    text = "p: send a g; send b g; deliver b g; deliver a g"
    (violation,) = look("hybrid.total_fifo", text).violations
    assert violation.property == "hybrid.total_fifo"


def test_a_violation_outweighs_a_doubt() -> None:
    text = """
        group g: p,q,r
        p: send a g; send b g
        q: lost; deliver b g
        r: deliver b g; deliver a g
    """
    found = look("fifo.group", text)
    assert found.verdict == "violated"
    assert found.doubts
