"""`relative`, sentence by sentence (004, 5.1 and 5.5), and its departures."""

from __future__ import annotations

import pytest

from domains import Overlap
from ordercast.core.events import Kept, Receive
from ordercast.core.waiting import Awaited
from ordercast.machinery.silence import Null
from ordercast.protocols.relative import Relative, RelativeData

W, X, Y, Z = 1, 2, 3, 4


def tells(bench: Overlap[Relative], text: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """LDV and group numbers in the header of a message under way."""
    header = bench.header(RelativeData, text)
    return header.ldv, header.gbn


def test_relative_delivers_in_figure_1_the_cause_first() -> None:
    bench = Overlap(Relative, {X: (1, 2, 3)})
    bench.tell(1, X, "m1")
    bench.bring(dst=2)
    bench.tell(2, X, "m2")
    bench.bring(src=2, dst=3)
    assert bench.held(3)[0].awaits == (Awaited("frame", X, 1, 1),)
    bench.bring(src=1, dst=3)
    assert bench.texts(3) == ["m1", "m2"]


def test_relative_waits_for_nothing_else_where_a_process_is_in_one_group() -> None:
    bench = Overlap(Relative, {X: (1, 2, 3), Y: (1, 3)})
    bench.tell(1, Y, "a")
    bench.tell(1, X, "b", "c")
    bench.bring(dst=2)
    assert bench.texts(2) == ["b", "c"]


def test_relative_delivers_a_cause_of_another_group_first() -> None:
    bench = Overlap(Relative, {X: (1, 2), Y: (1, 2)})
    bench.tell(1, Y, "cause")
    bench.tell(1, X, "effect")
    bench.bring(text="effect")
    assert bench.held(2)[0].awaits == (Awaited("block", Y, 1, 1),)
    bench.bring(text="cause")
    assert bench.texts(2) == ["cause", "effect"]


def test_relative_waits_across_groups_until_the_block_is_complete() -> None:
    # "effect" depends on "cause" only, but a number does not say of whom: 3 must speak in Y, too.
    bench = Overlap(Relative, {X: (1, 2), Y: (1, 2, 3)})
    bench.tell(1, Y, "cause")
    bench.tell(1, X, "effect")
    bench.bring(dst=2)
    assert bench.texts(2) == ["cause"]
    assert bench.held(2)[0].awaits == (Awaited("block", Y, 3, 1),)
    bench.settle()
    assert bench.texts(2) == ["cause", "effect"]


def test_relative_passes_on_a_dependency_round_the_ring_of_figure_3() -> None:
    groups = {W: (1, 2, 3, 4), X: (3, 4, 5, 6), Y: (5, 6, 7, 8), Z: (1, 2, 7, 8)}
    bench = Overlap(Relative, groups)
    bench.tell(1, W, "m1")
    bench.bring(dst=3)
    bench.tell(3, X, "m2")
    bench.bring(dst=6)
    bench.tell(6, Y, "m3")
    bench.bring(dst=7)
    bench.tell(7, Z, "m4")
    bench.bring(dst=2, text="m4")
    for p in (3, 4):
        bench.step(2, Receive(p, W, 1, Null(1)))
    assert bench.texts(2) == []
    bench.bring(dst=2, text="m1")
    assert bench.texts(2) == ["m1", "m4"]


def test_relative_delivers_own_messages_at_once() -> None:
    bench = Overlap(Relative, {X: (1, 2)})
    bench.tell(1, X, "a", "b")
    assert bench.texts(1) == ["a", "b"]


def test_relative_D1_a_message_of_one_who_has_heard_less_is_delivered() -> None:
    # As printed (m.ldv >= LDV) "b" is blocked: 3 has delivered "a", and 2 had not.
    bench = Overlap(Relative, {X: (1, 2, 3)})
    bench.tell(1, X, "a")
    bench.tell(2, X, "b")
    bench.bring(src=1, dst=3)
    bench.bring(src=2, dst=3)
    assert bench.texts(3) == ["a", "b"]


def test_relative_D2_two_messages_of_two_groups_never_wait_for_each_other() -> None:
    # With a counter per group m and n both have number 1 in their groups, and name number 2 of the
    # other group: at 3 m waits for all of Y up to 2, so for n, and n for m.
    bench = Overlap(Relative, {X: (1, 2, 3), Y: (1, 2, 3)})
    bench.tell(1, Y, "y1", "y2")
    bench.tell(1, X, "m")
    bench.tell(2, X, "x1", "x2")
    bench.tell(2, Y, "n")
    assert (bench.header(RelativeData, "m").b, bench.header(RelativeData, "n").b) == (3, 3)
    bench.settle()
    for p in (1, 2, 3):
        assert sorted(bench.texts(p)) == ["m", "n", "x1", "x2", "y1", "y2"]


def test_relative_D3_a_later_delivery_with_a_smaller_number_hides_nothing() -> None:
    bench = Overlap(Relative, {X: (1, 2, 3, 4), Y: (3, 4)})
    bench.tell(1, X, "a1", "a2", "a3")
    bench.tell(2, X, "b")  # number 1
    bench.bring(src=1, dst=3)
    bench.bring(src=2, dst=3)
    bench.tell(3, Y, "c")
    assert bench.header(RelativeData, "c").gbn == (X, 3)
    bench.ring(3, "silence", X)
    bench.bring(src=3, dst=4)
    bench.bring(src=2, dst=4)
    bench.bring(src=1, dst=4, text="a1")
    assert bench.held_texts(4) == ["c"]  # block 1 of X is complete here, but "c" depends on "a3"


def test_relative_D4_all_messages_up_to_the_block_are_delivered_before() -> None:
    # m2 (in X) depends on m0 and m1 (both in Y, numbers 2 and 3). At 9 m0 waits for Z, while block
    # 3 of Y is complete and m1, the only message in it, is delivered.
    bench = Overlap(Relative, {X: (5, 9), Y: (1, 2, 5, 9), Z: (1, 9)})
    bench.tell(1, Z, "z")
    bench.tell(1, Y, "m0")
    bench.tell(2, Y, "u", "v", "m1")
    bench.bring(dst=5)
    bench.tell(5, X, "m2")
    assert (bench.header(RelativeData, "m0").b, bench.header(RelativeData, "m1").b) == (2, 3)
    assert bench.header(RelativeData, "m2").gbn == (Z, 1, Y, 3)
    bench.bring(src=2, dst=9)
    bench.bring(src=1, dst=9, text="m0")
    bench.bring(src=5, dst=9)
    for p in (1, 5):
        bench.step(9, Receive(p, Y, 1, Null(3)))
    assert bench.texts(9) == ["u", "v", "m1"]
    bench.bring(src=1, dst=9, text="z")
    assert bench.texts(9) == ["u", "v", "m1", "z", "m0", "m2"]


def test_relative_D4_says_which_frames_of_the_other_group_it_waits_for() -> None:
    bench = Overlap(Relative, {X: (5, 9), Y: (1, 5, 9), Z: (1, 9)})
    bench.tell(1, Z, "z")
    bench.tell(1, Y, "m0")
    bench.bring(dst=5)
    bench.tell(5, X, "m2")
    bench.bring(src=1, dst=9, text="m0")
    bench.bring(src=5, dst=9)
    (m2, m0) = bench.held(9)
    assert m0.awaits == (Awaited("block", Z, 1, 1),)
    assert Awaited("frame", Y, 1, 1) in m2.awaits
    assert Awaited("block", Y, 5, 2) in m2.awaits


def test_relative_D5_a_frame_carries_the_numbers_of_groups_and_a_delivery_takes_them_over() -> None:
    bench = Overlap(Relative, {X: (1, 2), Y: (2, 3), Z: (3, 4)})
    bench.tell(1, X, "a")
    bench.bring(dst=2)
    bench.tell(2, Y, "b")
    assert bench.header(RelativeData, "b").gbn == (X, 1)
    bench.bring(dst=3)
    bench.tell(3, Z, "c")
    assert bench.header(RelativeData, "c").gbn == (X, 1, Y, 2)
    assert bench.numbers(3) == 3


def test_relative_D6_neither_its_own_silence_nor_that_of_others_holds_a_message_up() -> None:
    bench = Overlap(Relative, {X: (1, 2), Y: (1, 2, 3)})
    bench.tell(1, Y, "cause")
    bench.tell(1, X, "effect")
    bench.carry()
    assert bench.texts(2) == ["cause"]
    bench.ring(3, "silence", Y)
    bench.bring(src=3, dst=2)
    assert bench.texts(2) == ["cause", "effect"]  # and 2 has said nothing in Y


def test_relative_D7_a_frame_tells_what_changed_since_the_one_before_in_its_group() -> None:
    bench = Overlap(Relative, {X: (1, 2), Y: (1, 2)})
    bench.tell(2, X, "a")
    bench.carry()
    bench.tell(1, X, "b", "c")
    assert bench.header(RelativeData, "b").ldv == (2, 1)
    assert bench.header(RelativeData, "c").ldv == (1, 2)
    bench.tell(1, Y, "d", "e")
    assert tells(bench, "d") == ((), (X, 3))
    assert tells(bench, "e") == ((1, 4), ())


def test_relative_D7_a_group_number_that_another_told_is_told_again() -> None:
    bench = Overlap(Relative, {X: (1, 2, 3), Y: (3, 4), Z: (1, 2, 5)})
    bench.tell(1, Z, "z")
    bench.tell(1, X, "a")
    bench.bring(dst=2)
    bench.step(2, Receive(5, Z, 1, Null(1)))
    bench.bring(dst=3)
    bench.tell(2, X, "b")  # tells of "a" and of Z
    assert tells(bench, "b") == ((1, 2), (Z, 1))
    bench.bring(dst=3)
    bench.tell(3, Y, "c")
    assert bench.header(RelativeData, "c").gbn == (Z, 1, X, 3)
    bench.tell(3, X, "d")
    assert tells(bench, "d") == ((2, 3), (Z, 1, Y, 4))


def test_relative_D8_a_cut_delivers_what_waited_for_the_dead_and_begins_again() -> None:
    bench = Overlap(Relative, {X: (1, 2), Y: (1, 2, 3)})
    bench.tell(1, Y, "cause")
    bench.tell(1, X, "effect")
    bench.bring(dst=2)
    bench.crash(3)
    bench.cut({X: (1, 2), Y: (1, 2)})
    assert bench.texts(2) == ["cause", "effect"]
    bench.tell(1, X, "c")
    assert tells(bench, "c") == ((), ())
    bench.bring(text="c")
    assert bench.texts(2) == ["cause", "effect", "c"]


def test_relative_D8_what_depends_on_a_message_of_the_group_that_nobody_has_is_lost() -> None:
    bench = Overlap(Relative, {X: (1, 2, 3, 4)})
    bench.tell(1, X, "cause")
    bench.bring(dst=2)
    bench.tell(2, X, "effect", "more")
    bench.bring(src=2, dst=3)
    bench.crash(1, 2)
    bench.cut({X: (3, 4)})
    assert bench.texts(3) == bench.texts(4) == []


@pytest.mark.parametrize(("ldv", "gbn"), [((1,), ()), ((), (Y,))])
def test_relative_takes_entries_that_are_no_entries_for_a_fault(
    ldv: tuple[int, ...], gbn: tuple[int, ...]
) -> None:
    bench = Overlap(Relative, {X: (1, 2)})
    bench.step(2, Receive(1, X, 1, RelativeData(1, 1, 0, ldv, gbn), b"?"))
    assert "in twos" in bench.faults[0][2]


def test_relative_looks_at_the_form_of_a_reported_stamp() -> None:
    machine = Overlap(Relative, {X: (1, 2)}).protocols[1]
    assert machine.plausible(X, (1, 2), Kept(2, 1, (1, 4, 1, 1, Y, 1), b""))
    for stamp in ((), (1,), (1, 3, 1, 1), (1, 6, 1, 1), (1, 0), (0, 2)):
        assert not machine.plausible(X, (1, 2), Kept(2, 1, stamp, b"")), stamp
