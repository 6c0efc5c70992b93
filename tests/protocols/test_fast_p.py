"""`fast_p`, sentence by sentence (004, 5.4, its small vector), and its departures."""

from __future__ import annotations

import pytest

from domains import AT_ONCE, Overlap
from ordercast.core.events import Cut, Kept, Receive, View
from ordercast.core.waiting import Awaited
from ordercast.machinery.silence import Null
from ordercast.protocols.fast_p import FastP, FastPData

W, X, Y, Z = 1, 2, 3, 4


def gldv(bench: Overlap[FastP], text: str) -> tuple[int, ...]:
    return bench.find(text=text)[0].header.gldv  # type: ignore[attr-defined, no-any-return]


def test_fast_p_delivers_in_figure_1_the_cause_first() -> None:
    bench = Overlap(FastP, {X: (1, 2, 3)})
    bench.tell(1, X, "m1")
    bench.bring(dst=2)
    bench.tell(2, X, "m2")
    bench.bring(src=2, dst=3)
    assert bench.held(3)[0].awaits == (Awaited("block", X, 1, 1),)
    bench.bring(src=1, dst=3)
    assert bench.texts(3) == ["m1", "m2"]


def test_fast_p_waits_for_a_message_that_is_here_and_waits_itself() -> None:
    bench = Overlap(FastP, {X: (1, 2, 3, 4)})
    bench.tell(1, X, "m1")
    bench.bring(dst=2)
    bench.tell(2, X, "m2")
    bench.bring(dst=4)
    bench.tell(4, X, "m3")
    bench.bring(src=2, dst=3, text="m2")
    bench.bring(src=4, dst=3, text="m3")
    assert bench.held_texts(3) == ["m2", "m3"]
    assert Awaited("frame", X, 2, 1) in bench.held(3)[1].awaits
    bench.bring(src=1, dst=3)
    assert bench.texts(3) == ["m1", "m2", "m3"]


def test_fast_p_names_a_group_that_it_has_not_left() -> None:
    bench = Overlap(FastP, {X: (1, 2, 3), Y: (1, 2, 3)})
    bench.cut({X: (1, 2), Y: (1, 2, 3)})  # 3 leaves X
    bench.tell(1, Y, "m1")
    bench.bring(dst=2)
    bench.tell(2, Y, "m2")
    bench.bring(src=2, dst=3)
    assert bench.held(3)[0].awaits == (Awaited("block", Y, 1, 1),)


def test_fast_p_keeps_a_later_message_of_a_sender_behind_an_earlier_one_that_waits() -> None:
    bench = Overlap(FastP, {X: (1, 2, 3), Y: (2, 3)})
    bench.tell(1, X, "m1")
    bench.bring(dst=2)
    bench.tell(2, X, "m2")
    bench.tell(2, Y, "m3")
    bench.bring(src=2, dst=3)
    assert bench.held_texts(3) == ["m2", "m3"]
    assert bench.held(3)[1].awaits == (Awaited("frame", X, 2, 1),)
    assert bench.protocols[3].waiters == {1: [(1, (2, 2))], 2: []}
    bench.bring(src=1, dst=3)
    assert bench.texts(3) == ["m1", "m2", "m3"]


def test_fast_p_delivers_own_messages_at_once() -> None:
    bench = Overlap(FastP, {X: (1, 2)})
    bench.tell(1, X, "a", "b")
    assert bench.texts(1) == ["a", "b"]


def test_fast_p_D1_it_is_enough_that_the_other_has_spoken_up_to_the_number() -> None:
    # 1 sent its number 1 to X. It never comes to 3, which shares Y with 1.
    bench = Overlap(FastP, {X: (1, 2), Y: (1, 2, 3)})
    bench.tell(1, X, "a")
    bench.bring(dst=2)
    bench.tell(2, Y, "b")
    bench.bring(dst=3)
    assert bench.held_texts(3) == ["b"]
    bench.tell(1, Y, "c")  # number 2
    bench.bring(src=1, dst=3)
    assert sorted(bench.texts(3)) == ["b", "c"]  # concurrent


def test_fast_p_D2_one_that_has_nothing_to_say_says_so() -> None:
    bench = Overlap(FastP, {X: (1, 2), Y: (1, 2, 3)})
    bench.tell(1, X, "a")
    bench.bring(dst=2)
    bench.tell(2, Y, "b")
    bench.carry()
    assert bench.texts(3) == []
    bench.ring(1, "silence", Y)
    bench.bring(dst=3, header=Null)
    assert bench.texts(3) == ["b"]


def test_fast_p_does_not_ask_those_who_share_no_group() -> None:
    bench = Overlap(FastP, {X: (1, 2), Y: (2, 3)})
    bench.tell(1, X, "a")
    bench.bring(dst=2)
    bench.tell(2, Y, "b")
    bench.bring(dst=3)
    assert bench.texts(3) == ["b"]


def test_fast_p_D3_a_frame_tells_what_changed_and_never_its_senders_own_entry() -> None:
    bench = Overlap(FastP, {X: (1, 2), Y: (1, 2)})
    bench.tell(2, X, "a")
    bench.carry()
    bench.tell(1, X, "b", "c")
    assert gldv(bench, "b") == (2, 1)
    assert gldv(bench, "c") == ()
    bench.tell(1, Y, "d")
    assert gldv(bench, "d") == (2, 1)


def test_fast_p_D3_what_a_delivered_frame_told_is_no_news_in_its_group_but_in_others() -> None:
    bench = Overlap(FastP, {X: (1, 2, 3), Y: (3, 4)})
    bench.tell(1, X, "a")
    bench.bring(dst=2)
    bench.bring(dst=3, text="a")
    bench.tell(2, X, "b")  # tells of "a"
    bench.bring(dst=3)
    bench.tell(3, Y, "c")
    assert gldv(bench, "c") == (1, 1, 2, 2)
    bench.tell(3, X, "d")
    assert gldv(bench, "d") == (2, 2)


def test_fast_p_D4_a_frame_behind_a_lost_one_is_lost_though_it_does_not_name_the_cause() -> None:
    # "cause" is told by "b" alone; "c" names "b". All three senders die, and nobody has "cause".
    bench = Overlap(FastP, {X: (1, 2, 3, 4, 5)})
    bench.tell(1, X, "cause")
    bench.bring(dst=2)
    bench.bring(dst=3)
    bench.tell(2, X, "b")
    bench.bring(src=2, dst=3)
    bench.bring(src=2, dst=4)
    bench.tell(3, X, "c")
    assert gldv(bench, "c") == (2, 2)
    bench.bring(src=3, dst=4)
    bench.crash(1, 2, 3)
    bench.cut({X: (4, 5)})
    assert bench.texts(4) == bench.texts(5) == []


def test_fast_p_D3_passes_on_a_dependency_round_the_ring_of_figure_3() -> None:
    groups = {W: (1, 2, 3, 4), X: (3, 4, 5, 6), Y: (5, 6, 7, 8), Z: (1, 2, 7, 8)}
    bench = Overlap(FastP, groups)
    bench.tell(1, W, "m1")
    bench.bring(dst=3)
    bench.tell(3, X, "m2")
    bench.bring(dst=6)
    bench.tell(6, Y, "m3")
    bench.bring(dst=7)
    bench.step(7, Receive(1, Z, 1, Null(1)))  # 7 shares Z with 1, and waits for a word of it
    bench.tell(7, Z, "m4")
    bench.bring(dst=2, text="m4")
    assert bench.texts(2) == []
    bench.bring(dst=2, text="m1")
    bench.settle()
    assert bench.texts(2) == ["m1", "m4"]


def test_fast_p_D4_after_a_cut_nobody_waits_for_the_dead() -> None:
    bench = Overlap(FastP, {X: (1, 2), Y: (1, 2, 3)})
    bench.tell(1, X, "a")
    bench.bring(dst=2)
    bench.tell(2, Y, "b")
    bench.bring(dst=3)
    bench.crash(1)
    bench.cut({X: (2,), Y: (2, 3)})
    assert bench.texts(3) == ["b"]
    assert bench.protocols[3].rp == {2: 2}
    assert bench.protocols[3].waiters == {2: []}
    bench.tell(2, Y, "c")
    bench.bring(text="c")
    assert bench.texts(3) == ["b", "c"]


@pytest.mark.parametrize(("first", "second"), [(1, 2), (2, 1), (3, 4), (4, 3)])
def test_fast_p_D4_what_may_depend_on_a_lost_message_of_another_dead_member_is_lost(
    first: int, second: int
) -> None:
    """Whichever of the dead has the lower number."""
    survivors = tuple(sorted({1, 2, 3, 4} - {first, second}))
    bench = Overlap(FastP, {X: (1, 2, 3, 4)})
    bench.tell(first, X, "cause")
    bench.bring(dst=second)
    bench.tell(second, X, "effect")
    bench.bring(src=second, dst=survivors[0])
    bench.crash(first, second)
    bench.cut({X: survivors})
    assert [bench.texts(p) for p in survivors] == [[], []]


def test_what_overtook_the_views_of_several_groups_is_taken_in_the_order_of_the_link() -> None:
    machine = FastP(2, AT_ONCE)
    views = tuple(View(g, 1, (1, 2), 1) for g in (X, Y))
    machine.step([*views])
    machine.step([Receive(1, Y, 2, FastPData(1, 1, 0, ()), b"a")])
    machine.step([Receive(1, X, 2, FastPData(1, 2, 0, ()), b"b")])
    machine.step([Receive(1, Y, 2, FastPData(2, 3, 0, ()), b"c")])
    out = machine.step([Cut((), tuple(View(g, 1, (1, 2), 1, era=2) for g in (X, Y)))])
    assert [d[4] for d in out.deliveries if not isinstance(d, View)] == [b"a", b"b", b"c"]


def test_fast_p_takes_entries_that_are_no_entries_for_a_fault() -> None:
    bench = Overlap(FastP, {X: (1, 2)})
    bench.step(2, Receive(1, X, 1, FastPData(1, 1, 0, (1,)), b"?"))
    assert "no entries" in bench.faults[0][2]


def test_fast_p_looks_at_the_form_of_a_reported_stamp() -> None:
    machine = Overlap(FastP, {X: (1, 2)}).protocols[1]
    assert machine.plausible(X, (1, 2), Kept(2, 1, (1, 0, 1, 1), b""))
    for stamp in ((), (1,), (1, 0, 1), (1, 5), (0, 0)):
        assert not machine.plausible(X, (1, 2), Kept(2, 1, stamp, b"")), stamp
