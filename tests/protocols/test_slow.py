"""`slow`, sentence by sentence (004, 5.3), and its departures."""

from __future__ import annotations

from domains import Overlap
from ordercast.core.waiting import Awaited
from ordercast.machinery.block_order import BlockData
from ordercast.machinery.silence import Null
from ordercast.protocols.slow import Slow

X, Y = 1, 2


def test_slow_delivers_a_message_once_the_block_before_its_own_is_complete() -> None:
    bench = Overlap(Slow, {X: (1, 2, 3)})
    bench.tell(1, X, "a", "b")
    bench.bring(dst=2)
    assert bench.texts(2) == ["a"]  # number 1: nothing can come before it
    bench.tell(3, X, "c")
    bench.bring(src=3, dst=2)
    assert bench.texts(2) == ["a", "c", "b"]


def test_slow_delivers_a_cause_of_another_group_first() -> None:
    bench = Overlap(Slow, {X: (1, 2), Y: (1, 2)})
    bench.tell(1, X, "cause")
    bench.tell(1, Y, "effect")
    bench.bring(dst=2, text="effect")
    assert bench.texts(2) == []
    bench.bring(dst=2, text="cause")
    assert bench.texts(2) == ["cause", "effect"]


def test_slow_lets_a_message_wait_for_one_that_it_does_not_depend_on() -> None:
    # The price of one integer: "b" depends on "a" only, and waits for a word of 3.
    bench = Overlap(Slow, {X: (1, 2, 3)})
    bench.tell(1, X, "a", "b")
    bench.bring(dst=2)
    assert bench.held_texts(2) == ["b"]


def test_slow_names_the_silent_member_and_the_block() -> None:
    bench = Overlap(Slow, {X: (1, 2, 3), Y: (2, 4)})
    bench.tell(1, X, "a", "b")
    bench.bring(dst=2)
    (waiting,) = bench.held(2)
    assert (waiting.group, waiting.sender, waiting.n) == (X, 1, 2)
    assert waiting.awaits == (Awaited("block", X, 3, 1), Awaited("block", Y, 4, 1))


def test_slow_headers_carry_three_integers() -> None:
    bench = Overlap(Slow, {X: (1, 2), Y: (1, 2)})
    bench.tell(1, X, "a")
    bench.tell(1, Y, "b")
    assert [p.header for p in bench.flight] == [BlockData(1, 1, 0), BlockData(1, 2, 0)]


def test_slow_D1_one_that_has_nothing_to_say_says_so_and_holds_nobody_up() -> None:
    bench = Overlap(Slow, {X: (1, 2, 3)})
    bench.tell(1, X, "a", "b")
    bench.carry()
    assert bench.texts(2) == ["a"]
    bench.ring(3, "silence", X)
    bench.bring(src=3, dst=2, header=Null)
    assert bench.texts(2) == ["a", "b"]


def test_slow_D2_a_process_does_not_wait_for_its_own_word() -> None:
    bench = Overlap(Slow, {X: (1, 2)})
    bench.tell(1, X, "a", "b", "c")
    bench.bring(dst=2)
    assert bench.texts(2) == ["a", "b", "c"]


def test_slow_D3_own_messages_wait_like_all_others() -> None:
    bench = Overlap(Slow, {X: (1, 2)})
    bench.tell(1, X, "a", "b")
    assert bench.texts(1) == ["a"]
    bench.settle()
    assert bench.texts(1) == ["a", "b"]


def test_slow_D3_a_group_that_never_heard_of_a_number_does_not_hold_it_back_for_ever() -> None:
    # 1 is alone in X. Its "b" waits for 3 in Y, and 3 can learn of that number from 1 only.
    bench = Overlap(Slow, {X: (1,), Y: (1, 3)})
    bench.tell(1, X, "a", "b")
    assert bench.texts(1) == ["a"]
    bench.settle()
    assert bench.texts(1) == ["a", "b"]


def test_slow_D4_a_cut_delivers_what_waited_for_the_dead() -> None:
    bench = Overlap(Slow, {X: (1, 2, 3)})
    bench.tell(1, X, "a", "b")
    bench.bring(dst=2)
    bench.crash(3)
    bench.cut({X: (1, 2)})
    assert bench.texts(1) == bench.texts(2) == ["a", "b"]
    bench.tell(2, X, "c")
    bench.settle()
    assert bench.texts(1) == bench.texts(2) == ["a", "b", "c"]


def test_slow_D4_a_joiner_counts_on_from_the_highest_number_known() -> None:
    bench = Overlap(Slow, {X: (1, 2)})
    bench.tell(1, X, "a", "b", "c")
    bench.carry()
    bench.cut({X: (1, 2, 3)})
    assert bench.numbers(3) == 3
    bench.tell(3, X, "d")
    bench.settle()
    assert bench.texts(3) == ["d"]
    assert bench.texts(1) == ["a", "b", "c", "d"]
    assert not bench.faults


def two_die(bench: Overlap[Slow]) -> None:
    """2 delivered "cause" of 1, which nobody else got, and its "effect" reached 3 alone."""
    bench.tell(1, X, "cause")
    bench.bring(dst=2)
    bench.tell(2, X, "effect")
    bench.bring(src=2, dst=3, text="effect")
    assert bench.held_texts(3) == ["effect"]
    bench.lose(src=1)


def test_slow_D5_if_two_die_at_once_what_may_depend_on_a_lost_message_is_lost_too() -> None:
    bench = Overlap(Slow, {X: (1, 2, 3, 4)})
    two_die(bench)
    bench.crash(1, 2)
    bench.cut({X: (3, 4)})
    assert bench.texts(3) == bench.texts(4) == []


def test_slow_D5_if_one_dies_everything_that_a_survivor_holds_is_delivered() -> None:
    bench = Overlap(Slow, {X: (1, 2, 3, 4)})
    two_die(bench)
    bench.crash(2)
    bench.cut({X: (1, 3, 4)})
    assert bench.texts(3) == bench.texts(4) == ["cause", "effect"]


def test_slow_D5_a_frame_that_one_survivor_delivered_is_delivered_by_all() -> None:
    bench = Overlap(Slow, {X: (1, 2, 3, 4)})
    bench.tell(2, X, "a", "b")
    bench.carry()
    for p in (1, 4):
        bench.ring(p, "silence", X)
        bench.bring(src=p, dst=3, header=Null)
    assert (bench.texts(3), bench.texts(4)) == (["a", "b"], ["a"])
    bench.crash(1, 2)
    bench.cut({X: (3, 4)})
    assert bench.texts(4) == ["a", "b"]
