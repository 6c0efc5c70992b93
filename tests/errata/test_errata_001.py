"""The errata of the slides (001), each under the smallest schedule that shows it.

Every test plays its schedule twice: the faulty machine must end as the erratum says, judged by the
oracle too, and the right machine must not.
"""

from __future__ import annotations

from random import Random

import msgspec
import pytest

from faulty_machines.catalogue import DIRECTED, FAULTY
from ordercast.trace.oracle import verdicts


def test_E_C1_who_delivers_before_its_packets_have_left_may_be_the_only_one() -> None:
    wrong, right = DIRECTED["E-C1"].played()
    assert (wrong.texts(1), wrong.texts(2)) == (["a"], [])
    assert (right.texts(1), right.texts(2)) == (["a"], ["a"])


def test_E_C1_where_a_crash_loses_packets_only_a_majority_makes_a_delivery_uniform() -> None:
    wrong, right = DIRECTED["E-C1 where a crash loses packets"].played()
    assert (wrong.texts(1), wrong.texts(2), wrong.texts(3)) == (["a"], ["b"], ["b"])
    assert (right.texts(1), right.texts(2), right.texts(3)) == ([], ["b"], ["b"])


def test_E_C2_who_takes_S_above_R_for_a_loss_holds_back_the_next_message_and_asks_for_it() -> None:
    wrong, right = DIRECTED["E-C2"].played()
    assert wrong.texts(2) == []
    assert (1, "gap 1") in wrong.timers[2]  # it will ask again
    assert right.texts(2) == ["a"]


def test_E_C3_without_STATUS_nobody_notices_that_the_last_message_was_lost() -> None:
    wrong, right = DIRECTED["E-C3"].played()
    assert wrong.texts(2) == []
    assert right.texts(2) == ["a"]


def test_E_C4_a_dead_sender_does_not_answer_but_another_holder_does() -> None:
    wrong, right = DIRECTED["E-C4"].played()
    assert (wrong.texts(2), wrong.texts(3)) == (["a"], [])
    assert (right.texts(2), right.texts(3)) == (["a"], ["a"])


def test_E_C5_a_held_message_that_counts_as_received_lets_an_effect_pass_its_cause() -> None:
    wrong, right = DIRECTED["E-C5"].played()
    assert wrong.texts(3) == ["c", "a", "b"]  # c answers a
    assert right.texts(3) == ["a", "b", "c"]


def test_E_C6_the_own_copy_never_passes_the_test() -> None:
    wrong, right = DIRECTED["E-C6"].played()
    assert (wrong.texts(1), wrong.texts(2)) == ([], ["a"])
    assert (right.texts(1), right.texts(2)) == (["a"], ["a"])


def test_E_C7_a_sequencer_that_numbers_on_arrival_turns_two_messages_of_one_sender_round() -> None:
    for name in ("E-C7 PB", "E-C7 BB"):
        wrong, right = DIRECTED[name].played()
        assert wrong.texts(1) == wrong.texts(2) == ["b", "a"]
        assert right.texts(1) == right.texts(2) == ["a", "b"]


def test_E_C8_two_messages_with_the_same_agreed_number_are_delivered_in_two_orders() -> None:
    wrong, right = DIRECTED["E-C8"].played()
    assert (wrong.texts(1), wrong.texts(2)) == (["a", "b"], ["b", "a"])
    assert right.texts(1) == right.texts(2) == ["b", "a"]


# -- tempting readings -----------------------------------------------------------------------------


def test_1_3_a_majority_of_the_first_view_is_none_of_the_view_in_force() -> None:
    wrong, right = DIRECTED["1.3 majority of the wrong view"].played()
    assert (wrong.texts(1), wrong.texts(2)) == (["a"], ["b"])
    assert (right.texts(1), right.texts(2)) == ([], ["b"])


def test_2_numbers_of_one_group_do_not_order_two_groups() -> None:
    wrong, right = DIRECTED["2 FIFO in each group"].played()
    assert wrong.texts(2) == ["b", "a"]
    assert right.texts(2) == ["a", "b"]


def test_3_2_a_clock_per_group_does_not_order_two_groups() -> None:
    wrong, right = DIRECTED["3.2 a clock per group"].played()
    assert wrong.texts(2) == ["b", "a"]
    assert right.texts(2) == ["a", "b"]


def test_3_2_on_a_ring_of_groups_a_message_must_tell_of_groups_that_its_sender_is_not_in() -> None:
    wrong, right = DIRECTED["3.2 the sender's own groups only"].played()
    assert wrong.texts(2) == ["m4", "m1"]
    assert right.texts(2) == ["m1", "m4"]


@pytest.mark.parametrize("seed", range(10))
def test_3_2_on_a_chain_of_groups_a_message_need_tell_of_its_senders_groups_only(seed: int) -> None:
    row = FAULTY["the sender's own groups only"]
    ring = row.stage(Random(seed))
    chain = msgspec.structs.replace(row, stage=lambda _: {**ring, "groups": ring["groups"][:-1]})
    assert verdicts(chain.run(seed).events())["causal.global"] == "ok"


def test_3_2_who_takes_the_maximum_for_its_own_groups_claims_what_it_has_not_delivered() -> None:
    wrong, right = DIRECTED["3.2 maximum for own groups"].played()
    assert wrong.texts(3) == ["b"]
    assert right.texts(3) == ["a", "b"]


def test_4_4_the_highest_proposal_there_is_puts_a_message_before_one_that_was_delivered() -> None:
    wrong, right = DIRECTED["4.4 maximum over the proposals there are"].played()
    assert (wrong.texts(2), wrong.texts(3)) == (["a", "b"], ["b", "a"])
    assert right.texts(2) == right.texts(3) == ["b", "a"]


def test_11_2_who_waits_for_the_lost_is_blocked_and_others_are_not() -> None:
    wrong, right = DIRECTED["11.2 contiguous prefix alone"].played()
    assert (wrong.texts(3), wrong.texts(4)) == ([], ["b"])
    assert right.texts(3) == right.texts(4) == ["b"]


def test_11_2_what_depends_on_the_lost_is_lost_with_it() -> None:
    wrong, right = DIRECTED["11.2 what depends on the lost is delivered"].played()
    assert wrong.texts(3) == ["b"]  # it answers a, which 3 will never get
    assert right.texts(3) == []


def test_11_3_without_the_send_rule_a_crash_leaves_a_causal_gap_across_groups() -> None:
    wrong, right = DIRECTED["11.3 without the send rule"].played()
    assert wrong.texts(2) == wrong.texts(3) == ["b"]  # a, of the same sender, is lost
    assert right.texts(2) == right.texts(3) == []
