"""`block_total`, sentence by sentence (004, section 4 and footnote 7), and its departures."""

from __future__ import annotations

from itertools import permutations

import pytest

from domains import Overlap
from ordercast.core.events import Receive
from ordercast.core.waiting import Awaited
from ordercast.machinery.silence import Null
from ordercast.protocols.block_total import BlockTotal

X, Y, Z = 1, 2, 3


def test_block_total_orders_by_number_and_sender_whatever_comes_first() -> None:
    bench = Overlap(BlockTotal, {X: (1, 2, 3)})
    bench.tell(2, X, "b1")
    bench.tell(1, X, "a1", "a2")
    bench.tell(3, X, "c1")
    bench.settle()
    assert {tuple(bench.texts(p)) for p in (1, 2, 3)} == {("a1", "b1", "c1", "a2")}


@pytest.mark.parametrize("order", [*permutations((1, 2, 3))])
def test_block_total_allows_no_cycle_over_three_groups(order: tuple[int, ...]) -> None:
    # Each pair of processes shares one group: by pairs alone a < b, b < c, c < a would be possible.
    groups = {X: (1, 2), Y: (2, 3), Z: (3, 1)}
    bench = Overlap(BlockTotal, groups)
    for p in order:
        bench.tell(p, p, f"m{p}")  # process 1 to X, 2 to Y, 3 to Z
    for p in reversed(order):
        bench.bring(src=p)
    bench.settle()
    assert bench.texts(1) == ["m1", "m3"]
    assert bench.texts(2) == ["m1", "m2"]
    assert bench.texts(3) == ["m2", "m3"]


def test_block_total_delivers_a_cause_of_another_group_first() -> None:
    bench = Overlap(BlockTotal, {X: (1, 2), Y: (1, 2)})
    bench.tell(1, X, "cause")
    bench.tell(1, Y, "effect")
    bench.bring(dst=2, text="effect")
    assert bench.texts(2) == []
    bench.settle()
    assert bench.texts(2) == bench.texts(1) == ["cause", "effect"]


def test_block_total_names_the_silent_member_and_the_block() -> None:
    bench = Overlap(BlockTotal, {X: (1, 2, 3), Y: (2, 4)})
    bench.tell(1, X, "a")
    bench.bring(dst=2)
    (waiting,) = bench.held(2)
    assert waiting.awaits == (Awaited("block", X, 3, 1), Awaited("block", Y, 4, 1))


def test_block_total_D1_one_that_has_nothing_to_say_says_so() -> None:
    bench = Overlap(BlockTotal, {X: (1, 2, 3)})
    bench.tell(1, X, "a")
    bench.carry()
    assert [bench.texts(p) for p in (1, 2, 3)] == [[], [], []]
    bench.ring(3, "silence", X)
    bench.bring(src=3, dst=2, header=Null)
    assert bench.texts(2) == ["a"]


def test_block_total_D2_a_process_does_not_wait_for_its_own_word() -> None:
    bench = Overlap(BlockTotal, {X: (1, 2)})
    bench.tell(1, X, "a")
    bench.bring(dst=2)
    assert bench.texts(2) == ["a"]


def test_block_total_D3_one_with_the_same_number_may_be_under_way() -> None:
    bench = Overlap(BlockTotal, {X: (1, 2, 3)})
    bench.tell(1, X, "a")
    bench.tell(2, X, "b")
    bench.bring(src=2, dst=3)
    assert bench.texts(3) == []
    bench.bring(src=1, dst=3)
    assert bench.texts(3) == ["a", "b"]


def test_block_total_D4_own_messages_wait_for_a_smaller_key() -> None:
    bench = Overlap(BlockTotal, {X: (1, 2)})
    bench.tell(1, X, "a")
    bench.tell(2, X, "b")
    assert bench.texts(2) == []
    bench.bring(dst=2)
    assert bench.texts(2) == ["a", "b"]


def test_block_total_D4_a_group_that_never_heard_of_a_number_holds_nothing_back_for_ever() -> None:
    bench = Overlap(BlockTotal, {X: (1,), Y: (1, 3)})
    bench.tell(1, X, "a")
    assert bench.texts(1) == []
    bench.settle()
    assert bench.texts(1) == ["a"]


def test_block_total_D5_a_joiner_sends_above_all_that_was_delivered() -> None:
    bench = Overlap(BlockTotal, {X: (1, 2)})
    bench.tell(1, X, "a", "b", "c")
    bench.settle()
    bench.cut({X: (1, 2, 3)})
    bench.tell(3, X, "d")
    bench.tell(1, X, "e")
    bench.settle()
    assert bench.story(1) == bench.story(2) == ["12", "a", "b", "c", "123", "e", "d"]
    assert bench.story(3) == ["123", "e", "d"]


def test_block_total_D5_a_cut_delivers_what_is_left_by_key_and_then_the_view() -> None:
    bench = Overlap(BlockTotal, {X: (1, 2, 3)})
    bench.tell(2, X, "b1", "b2")
    bench.tell(1, X, "a1")
    bench.bring(src=2, dst=1)
    bench.crash(3)
    bench.cut({X: (1, 2)})
    assert bench.story(1) == bench.story(2) == ["123", "a1", "b1", "b2", "12"]


@pytest.mark.parametrize(("first", "second"), [(1, 2), (2, 1), (3, 4), (4, 3)])
def test_block_total_D6_what_may_depend_on_a_lost_message_of_another_dead_member_is_lost(
    first: int, second: int
) -> None:
    """Whichever of the dead has the lower number."""
    survivors = tuple(sorted({1, 2, 3, 4} - {first, second}))
    bench = Overlap(BlockTotal, {X: (1, 2, 3, 4)})
    bench.tell(first, X, "cause")
    bench.bring(dst=second)
    for p in survivors:  # they promised number 1, which they know of elsewhere
        bench.step(second, Receive(p, X, 1, Null(1)))
    assert bench.texts(second) == ["cause"]
    bench.tell(second, X, "effect")
    bench.bring(src=second, dst=survivors[0], text="effect")
    bench.crash(first, second)
    bench.cut({X: survivors})
    assert [bench.texts(p) for p in survivors] == [[], []]


def test_block_total_D6_nobody_can_have_sent_below_the_number_with_which_the_view_began() -> None:
    bench = Overlap(BlockTotal, {X: (1, 2, 3, 4)})
    bench.tell(1, X, "a")
    bench.settle()
    bench.cut({X: (1, 2, 3, 4)})
    bench.tell(2, X, "b")
    bench.bring(src=2, dst=3)
    bench.crash(1, 2)
    bench.cut({X: (3, 4)})
    assert bench.texts(3) == bench.texts(4) == ["a", "b"]
