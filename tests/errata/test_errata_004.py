"""The errata of Causal Blocks (004), each under the smallest schedule that shows it.

Every test plays its schedule twice: the faulty machine must end as the erratum says, judged by the
oracle too, and the right machine must not. Two errata are about sentences; their tests state what
is true.
"""

from __future__ import annotations

from domains import Overlap
from faulty_machines.blocks import FastAsPrinted
from faulty_machines.catalogue import DIRECTED
from ordercast.machinery.block_order import BlockData
from ordercast.protocols.fast import Fast, FastData
from ordercast.protocols.slow import Slow

X, Y, Z = 1, 2, 3


def number(o: Overlap, text: str) -> int:
    """The block number of a message under way."""
    header = o.find(text=text)[0].header
    assert isinstance(header, BlockData | FastData)
    return header.b


def test_E_M1_a_cause_has_the_smaller_number_and_a_smaller_number_need_not_be_a_cause() -> None:
    o = Overlap(Slow, {X: (1, 2, 3)})
    o.tell(1, X, "a")
    o.bring(1, 2, text="a")
    o.tell(2, X, "b")
    assert number(o, "a") < number(o, "b")  # m -> m' implies m.b < m'.b, ...
    o.tell(3, X, "c")
    assert number(o, "c") < number(o, "b")  # ... and not the other way round: 3 heard nothing,
    assert o.texts(2) == ["a"]  # and 2 nothing of 3
    assert number(o, "a") == number(o, "c")  # equal numbers are concurrent


def test_E_M2_who_counts_its_own_column_is_blocked_by_its_own_silence() -> None:
    wrong, right = DIRECTED["E-M2"].played()
    assert wrong.texts(2) == ["a"]
    assert right.texts(2) == ["a", "b"]


def test_E_M3_a_number_per_process_waits_for_a_message_of_a_group_that_is_not_ours() -> None:
    wrong, right = DIRECTED["E-M3"].played()
    assert wrong.texts(3) == []
    assert right.texts(3) == ["b"]


def entries(protocol: type[Fast]) -> int:
    """How many entries 1 sends in Z after everybody spoke in X and in Y, and all was heard."""
    o = Overlap(protocol, {X: (1, 2, 3), Y: (1, 2, 3), Z: (1, 2, 3)})
    for p in (1, 2, 3):
        o.tell(p, X, f"x{p}")
        o.tell(p, Y, f"y{p}")
    o.settle()
    o.tell(1, Z, "z")
    header = o.find(1, 2, text="z")[0].header
    assert isinstance(header, FastData)
    return len(header.L) // 3


def test_E_M4_a_header_that_never_blocks_has_an_entry_per_member_of_each_group() -> None:
    assert entries(FastAsPrinted) == 3  # one per process, as the paper claims: see E-M3
    assert entries(Fast) == 6  # one per member of X and of Y, as in CBCAST


def test_E_M5_m_ldv_above_LDV_blocks_a_message_of_one_who_has_heard_less() -> None:
    wrong, right = DIRECTED["E-M5 blocks"].played()
    assert wrong.texts(3) == ["a"]
    assert right.texts(3) == ["a", "b"]


def test_E_M5_m_ldv_above_LDV_delivers_an_answer_before_what_it_answers() -> None:
    wrong, right = DIRECTED["E-M5 is unsafe"].played()
    assert wrong.texts(3) == ["b"]
    assert right.texts(3) == ["a", "b"]


def test_E_M6_a_counter_per_group_makes_two_messages_wait_for_each_other() -> None:
    wrong, right = DIRECTED["E-M6"].played()
    assert wrong.texts(3) == ["y", "x"]  # m and n both have number 1, and name number 1
    assert right.texts(3) == ["y", "x", "n", "m"]


def test_E_M7_a_group_number_that_is_assigned_falls_and_hides_a_cause() -> None:
    wrong, right = DIRECTED["E-M7"].played()
    assert wrong.texts(4) == ["a1", "b", "c", "a2"]  # 3 delivered a2 before it said c
    assert right.texts(4) == ["a1", "b", "a2", "c"]


def test_E_M8_the_messages_of_the_named_block_alone_are_not_enough() -> None:
    wrong, right = DIRECTED["E-M8"].played()
    assert wrong.texts(4) == ["u", "v", "m1", "z", "m2", "m0"]  # 3 delivered m0 before it said m2
    assert right.texts(4) == ["u", "v", "m1", "z", "m0", "m2"]


def test_E_M9_without_gbn_on_the_message_groups_are_not_ordered() -> None:
    wrong, right = DIRECTED["E-M9 no gbn"].played()
    assert wrong.texts(2) == ["b", "a"]
    assert right.texts(2) == ["a", "b"]


def test_E_M9_without_updates_on_delivery_the_second_message_of_a_sender_is_blocked() -> None:
    wrong, right = DIRECTED["E-M9 no updates"].played()
    assert wrong.texts(2) == ["a"]
    assert right.texts(2) == ["a", "b"]


# -- what the protocols need, and tempting readings ------------------------------------------------


def test_6_without_NULLs_slow_waits_for_one_who_has_nothing_to_say() -> None:
    wrong, right = DIRECTED["6 slow without NULLs"].played()
    assert [wrong.texts(p) for p in (1, 2, 3)] == [["a"]] * 3
    assert [right.texts(p) for p in (1, 2, 3)] == [["a", "b"]] * 3


def test_6_without_NULLs_relative_waits_for_one_who_is_silent_in_another_group() -> None:
    wrong, right = DIRECTED["6 relative without NULLs"].played()
    assert wrong.texts(2) == ["a"]
    assert right.texts(2) == ["a", "b"]


def test_6_where_messages_overtake_each_other_a_number_does_not_complete_a_block() -> None:
    for name in ("6 slow on a reordering network", "6 fast_p on a reordering network"):
        wrong, right = DIRECTED[name].played()
        assert wrong.texts(2) == ["b", "a"]
        assert right.texts(2) == ["a", "b"]
    wrong, right = DIRECTED["6 relative on a reordering network"].played()
    assert wrong.texts(2) == ["b", "a", "c"]
    assert right.texts(2) == ["a", "b", "c"]


def test_7_5_a_group_number_is_news_to_one_who_told_it_and_had_not_waited_for_the_block() -> None:
    wrong, right = DIRECTED["7.5 a group number that another told"].played()
    assert wrong.texts(1) == ["y", "f", "g", "m"]  # 2 delivered m before it said g
    assert right.texts(1) == ["y", "f", "m", "g"]


def test_7_5b_what_a_joiner_that_counts_from_0_says_is_refused() -> None:
    wrong, right = DIRECTED["7.5b a joiner at 0"].played()
    assert (wrong.texts(1), wrong.texts(2)) == (["a"], ["b"])
    assert (right.texts(1), right.texts(2)) == (["a", "b"], ["b"])


def test_7_5b_two_joiners_that_count_from_0_break_the_order_where_nobody_looks() -> None:
    wrong, right = DIRECTED["7.5b two joiners at 0"].played()
    assert (wrong.texts(2), wrong.texts(3)) == (["b", "c"], ["c", "b"])
    assert right.texts(2) == right.texts(3) == ["b", "c"]


def test_7_6_a_total_order_needs_the_block_of_the_message_itself() -> None:
    wrong, right = DIRECTED["7.6 block b - 1 for a total order"].played()
    assert (wrong.texts(1), wrong.texts(2)) == (["a", "b"], ["b", "a"])
    assert right.texts(1) == right.texts(2) == ["a", "b"]
