"""The errata of the two-layered group (002), each under the smallest schedule that shows it.

Every test of a behaviour plays its schedule twice: the faulty machine must end as the erratum says,
judged by the oracle too, and the right machine must not.
"""

from __future__ import annotations

from faulty_machines.catalogue import DIRECTED
from faulty_machines.two_layers import below
from machines import Bench, bench
from ordercast.protocols.two_layered.group import TwoLayered
from ordercast.protocols.two_layered.headers import Global, Local


def sent(b: Bench, src: int, text: str, kind: type) -> Local | Global:
    """The one header of this kind with which a process sends a message."""
    (header,) = {packet.header for packet in b.find(src, text=text, header=kind)}
    assert isinstance(header, Local | Global)
    return header


def figure_3() -> Bench:
    """p_11 says a. p_21 says b before a_2 comes to it, and p_20 forwards b after A."""
    b = bench(TwoLayered, 10, 11, 12, 20, 21, 22)
    b.say(11, "a")
    b.say(21, "b")
    return b


def test_E_T1_rsq_has_an_entry_for_the_gateway_beside_those_of_the_local_processes() -> None:
    b = bench(TwoLayered, 10, 11, 12, 20, 21, 22)
    machine = b.machines[11]
    assert isinstance(machine, TwoLayered)
    assert len(machine.local.rsq) == 3 and len(machine.RSQ) == 2
    assert all(len(row) == 3 for row in machine.local.ack) and len(machine.local.ack) == 3


def test_E_T2_who_accepts_by_sender_alone_forwards_an_answer_before_its_question() -> None:
    wrong, right = DIRECTED["E-T2"].played()
    assert wrong.texts(1) == wrong.texts(4) == wrong.texts(5) == ["b", "a"]
    assert right.texts(1) == right.texts(4) == right.texts(5) == ["a", "b"]


def test_E_T3_to_be_pre_acknowledged_does_not_help_against_two_numberings() -> None:
    wrong, right = DIRECTED["E-T3"].played()
    assert wrong.texts(2) == ["reply", "a", "b"]
    assert right.texts(2) == ["a", "b", "reply"]


def test_E_T4_an_entry_taken_before_the_increment_lets_an_answer_overtake() -> None:
    wrong, right = DIRECTED["E-T4"].played()
    assert wrong.texts(7) == ["b", "a"]
    assert right.texts(7) == ["a", "b"]


def test_E_T5_the_vectors_of_the_example() -> None:
    b = figure_3()
    assert sent(b, 11, "a", Local) == Local(1, 11, 1, (1, 2, 1), (2, 1))
    assert sent(b, 21, "b", Local) == Local(1, 21, 1, (1, 2, 1), (1, 2))
    b.bring(11, text="a")
    assert sent(b, 10, "a", Global) == Global(1, 11, 1, (2, 1))
    b.bring(10, 20, text="a")
    assert sent(b, 20, "a", Local).rsq == (2, 1, 1)  # a_2
    b.bring(21, 20, text="b")
    b.bring(20, 10, text="b")
    assert sent(b, 10, "b", Local) == Local(1, 21, 1, (2, 2, 1), (1, 2))  # b_1, not b
    b.bring(20, 21, text="a")
    b.bring(20, 22, text="a")
    at_21, at_22 = (b.machines[p] for p in (21, 22))
    assert isinstance(at_21, TwoLayered) and isinstance(at_22, TwoLayered)
    assert (at_21.RSQ, at_22.RSQ) == ([2, 2], [2, 1])  # it had sent b; it has not got b


def test_E_T6_a_vector_precedes_only_another_one() -> None:
    b = figure_3()
    a, other = sent(b, 11, "a", Local), sent(b, 21, "b", Local)
    assert not below(a.RSQ, a.RSQ)
    assert not below(a.RSQ, other.RSQ) and not below(other.RSQ, a.RSQ)


def test_8_4_nobody_asks_for_a_lost_last_message_unless_confirmations_come_alone() -> None:
    wrong, right = DIRECTED["8.4 the last message"].played()
    assert wrong.texts(3) == []
    assert right.texts(3) == right.texts(6) == ["a"]


def test_8_4b_what_only_waits_has_lost_its_question() -> None:
    wrong, right = DIRECTED["8.4b what waits"].played()
    assert wrong.texts(4) == ["b"]
    assert right.texts(4) == []


def test_8_4b_the_numbers_of_a_dead_gateway_turn_question_and_answer_round() -> None:
    wrong, right = DIRECTED["8.4b numbers of the gateway"].played()
    assert wrong.texts(5).index("b") < wrong.texts(5).index("a")
    assert right.texts(5).index("a") < right.texts(5).index("b")


def test_8_4b_a_subgroup_that_settles_its_own_messages_misses_what_was_passed_on() -> None:
    wrong, right = DIRECTED["8.4b subgroups alone"].played()
    assert (wrong.texts(5), wrong.texts(6)) == (["a"], [])
    assert right.texts(5) == right.texts(6) == ["a"]
