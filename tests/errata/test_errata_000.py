"""The errata of the sequencing service (000), each under the smallest schedule that shows it.

Every test plays its schedule twice: the faulty machine must end as the erratum says, judged by the
oracle too, and the right machine must not.
"""

from __future__ import annotations

from faulty_machines.catalogue import DIRECTED
from faulty_machines.sequencing import NamesAllGroupsOfTheSequencer
from ordercast.protocols.sequencing.orders import SequencingHybrid
from ordercast.protocols.sequencing.service import SequencingService
from sequencers import S, Served


def test_E_K1_requests_that_overtake_each_other_are_numbered_as_they_come() -> None:
    wrong, right = DIRECTED["E-K1"].played()
    assert wrong.texts(1) == wrong.texts(2) == ["b", "a"]
    assert right.texts(1) == right.texts(2) == ["a", "b"]


def test_E_K2_what_is_not_stored_cannot_be_fetched() -> None:
    wrong, right = DIRECTED["E-K2"].played()
    assert (wrong.texts(2), right.texts(2)) == ([], ["a"])


def test_E_K3_one_sequencer_and_the_context_is_not_what_was_delivered() -> None:
    wrong, right = DIRECTED["E-K3"].played()
    assert (wrong.texts(1), right.texts(1)) == (["a"], ["a", "b"])


def test_E_K4_contexts_of_several_sequencers_lack_groups() -> None:
    wrong, right = DIRECTED["E-K4"].played()
    assert (wrong.texts(1), right.texts(1)) == (["a"], ["a", "b"])


def test_E_K5_who_is_further_than_a_sender_was_waits_for_ever() -> None:
    wrong, right = DIRECTED["E-K5"].played()
    assert (wrong.texts(1), right.texts(1)) == (["a", "b"], ["a", "b", "c"])


def test_E_K6_other_groups_of_the_sequencer_are_waited_for_without_need() -> None:
    def after_b_alone(protocol: type[SequencingService]) -> list[str]:
        b = Served(protocol, {1: ((1, 2), S), 2: ((1, 3), S)})
        b.tell(2, 1, "a")
        b.bring(2, S)
        b.tell(3, 2, "b")
        b.bring(3, S)
        b.bring(S, 1, text="b")
        return b.texts(1)

    assert after_b_alone(NamesAllGroupsOfTheSequencer) == []
    assert after_b_alone(SequencingHybrid) == ["b"]


def test_E_K7_three_sequencers_that_share_one_member_each_make_a_cycle() -> None:
    wrong, right = DIRECTED["E-K7"].played()
    assert [wrong.texts(p) for p in (1, 2, 3)] == [["m1", "m3"], ["m2", "m1"], ["m3", "m2"]]
    assert right.texts(3) == ["m2", "m3"]


def test_E_K8_a_late_ACCEPT_makes_a_sender_forget_what_it_saw() -> None:
    wrong, right = DIRECTED["E-K8"].played()
    assert (wrong.texts(1), right.texts(1)) == (["a", "d", "b"], ["a", "b", "d"])


def test_E_K9_the_number_of_a_foreign_id_is_never_known() -> None:
    wrong, right = DIRECTED["E-K9"].played()
    assert (wrong.texts(3), right.texts(3)) == ([], ["b"])


def test_E_K11_four_messages_wait_for_each_other() -> None:
    wrong, right = DIRECTED["E-K11"].played()
    assert wrong.texts(1) == wrong.texts(2) == []
    assert len(right.texts(1)) == len(right.texts(2)) == 4


def test_E_K15_a_joiner_delivers_what_comes_after_messages_it_will_get() -> None:
    wrong, right = DIRECTED["E-K15"].played()
    assert (wrong.texts(3), right.texts(3)) == (["b", "a"], ["a", "b"])


def test_a_number_that_a_context_named_is_not_delivered_for_that() -> None:
    wrong, right = DIRECTED["5.4 foreign groups in D"].played()
    assert (wrong.texts(3), right.texts(3)) == (["b"], ["a", "b"])


def test_what_all_received_is_still_named() -> None:
    wrong, right = DIRECTED["5.6 received"].played()
    assert (wrong.texts(2), right.texts(2)) == (["a", "d", "c"], ["a", "c", "d"])


def test_leavers_count_until_all_have_delivered_the_view_without_them() -> None:
    wrong, right = DIRECTED["5.8 split at once"].played()
    assert (wrong.texts(2), right.texts(2)) == (["x", "b", "a"], ["x", "a", "b"])


def test_what_detects_repeats_is_handed_over() -> None:
    wrong, right = DIRECTED["5.9 no requests"].played()
    assert (wrong.texts(1), right.texts(1)) == (["a", "a"], ["a"])


def test_bodies_are_handed_over() -> None:
    wrong, right = DIRECTED["5.9 no bodies"].played()
    assert (wrong.texts(1), right.texts(1)) == ([], ["a"])
