"""The errata of TOTAL of JavaGroups (003), each under the smallest schedule that shows it.

Every test plays its schedule twice: the faulty machine must end as the erratum says, judged by the
oracle too, and the right machine must not.
"""

from __future__ import annotations

from faulty_machines.catalogue import DIRECTED


def test_E_J1_a_lost_request_loses_the_message_and_nobody_notices() -> None:
    wrong, right = DIRECTED["E-J1"].played()
    assert (wrong.texts(1), wrong.texts(2)) == ([], [])
    assert right.texts(1) == right.texts(2) == ["a"]


def test_E_J2_a_request_repeated_without_an_id_is_broadcast_twice() -> None:
    wrong, right = DIRECTED["E-J2"].played()
    assert wrong.texts(1)[:2] == ["a", "a"]
    assert right.texts(1) == right.texts(2) == ["a"]


def test_E_J3_requests_that_overtake_each_other_turn_two_messages_round() -> None:
    wrong, right = DIRECTED["E-J3"].played()
    assert wrong.texts(1) == wrong.texts(2) == ["b", "a"]
    assert right.texts(1) == right.texts(2) == ["a", "b"]


def test_E_J4_nobody_asks_for_a_lost_suffix() -> None:
    wrong, right = DIRECTED["E-J4"].played()
    assert wrong.texts(2) == ["a"]
    assert right.texts(2) == ["a", "b"]


def test_E_J5_a_lost_NEW_VIEW_blocks_the_view() -> None:
    wrong, right = DIRECTED["E-J5 lost NEW_VIEW"].played()
    assert wrong.texts(2) == []
    assert right.texts(2) == ["a"]


def test_E_J5_a_broadcast_before_NEW_VIEW_must_not_be_judged_by_the_old_number() -> None:
    wrong, right = DIRECTED["E-J5 BCAST before NEW_VIEW"].played()
    assert wrong.texts(3) == ["k", "l", "m", "d", "a", "b", "c", "d"]
    assert right.texts(3) == ["k", "l", "m", "a", "b", "c", "d"]


def test_E_J6_without_a_view_id_a_request_of_an_old_view_is_broadcast_again() -> None:
    wrong, right = DIRECTED["E-J6"].played()
    assert wrong.texts(1) == ["a", "a"]
    assert right.texts(1) == right.texts(2) == ["a"]


def test_E_J7_survivors_that_clear_their_queues_differ_in_the_suffix() -> None:
    wrong, right = DIRECTED["E-J7"].played()
    assert (wrong.texts(2), wrong.texts(3)) == (["a"], [])
    assert right.texts(2) == right.texts(3) == ["a"]
