"""`fast`, sentence by sentence (004, 5.1 and 5.4), and its departures."""

from __future__ import annotations

from itertools import permutations

import pytest

from domains import AT_ONCE, Overlap
from machines import Bench
from ordercast.core.events import Kept, Multicast, Receive, View
from ordercast.core.waiting import Awaited
from ordercast.protocols.fast import Fast, FastData

W, X, Y, Z = 1, 2, 3, 4


def entries(bench: Overlap[Fast], text: str) -> list[tuple[int, ...]]:
    """What the frame with this text says of L."""
    L: tuple[int, ...] = bench.find(text=text)[0].header.L  # type: ignore[attr-defined]
    return [L[at : at + 3] for at in range(0, len(L), 3)]


def test_fast_delivers_in_figure_1_the_cause_first() -> None:
    bench = Overlap(Fast, {X: (1, 2, 3)})
    bench.tell(1, X, "m1")
    bench.bring(dst=2)
    bench.tell(2, X, "m2")
    bench.bring(src=2, dst=3)
    assert bench.texts(3) == []
    bench.bring(src=1, dst=3)
    assert bench.texts(3) == ["m1", "m2"]


def test_fast_delivers_a_cause_of_another_group_first() -> None:
    bench = Overlap(Fast, {X: (1, 2), Y: (1, 2)})
    bench.tell(1, X, "cause")
    bench.tell(1, Y, "effect")
    bench.bring(text="effect")
    assert bench.held(2)[0].awaits == (Awaited("frame", X, 1, 1),)
    bench.bring(text="cause")
    assert bench.texts(2) == ["cause", "effect"]


def test_fast_never_waits_for_a_concurrent_message_nor_for_a_silent_member() -> None:
    bench = Overlap(Fast, {X: (1, 2, 3), Y: (2, 3)})
    bench.tell(1, X, "a", "b", "c")
    bench.bring(dst=2)
    assert bench.texts(2) == ["a", "b", "c"]
    assert not any((X, "silence") in timers for timers in bench.timers.values())


def test_fast_passes_on_a_dependency_round_the_ring_of_figure_3() -> None:
    groups = {W: (1, 2, 3, 4), X: (3, 4, 5, 6), Y: (5, 6, 7, 8), Z: (1, 2, 7, 8)}
    bench = Overlap(Fast, groups)
    bench.tell(1, W, "m1")
    bench.bring(dst=3)
    bench.tell(3, X, "m2")
    bench.bring(dst=6)
    bench.tell(6, Y, "m3")
    bench.bring(dst=7)
    bench.tell(7, Z, "m4")
    bench.bring(dst=2, text="m4")
    assert bench.texts(2) == []
    bench.bring(dst=2, text="m1")
    assert bench.texts(2) == ["m1", "m4"]


@pytest.mark.parametrize("order", [*permutations(("a", "b", "c", "d"))])
def test_fast_keeps_the_order_of_one_sender_however_frames_overtake(order: tuple[str, ...]) -> None:
    bench = Overlap(Fast, {X: (1, 2), Y: (1, 2)})
    for g, text in zip((X, Y, Y, X), "abcd", strict=True):
        bench.tell(1, g, text)
    for text in order:
        bench.bring(text=text)
    assert bench.texts(2) == ["a", "b", "c", "d"]


def test_fast_delivers_own_messages_at_once() -> None:
    bench = Overlap(Fast, {X: (1, 2)})
    bench.tell(1, X, "a", "b")
    assert bench.texts(1) == ["a", "b"]


def test_fast_D1_a_number_of_a_group_of_others_holds_nothing_back() -> None:
    # Keyed by process alone, "b" would wait at 3 for number 1 of process 1, which went to X.
    bench = Overlap(Fast, {X: (1, 2), Y: (1, 2, 3)})
    bench.tell(1, X, "a")
    bench.tell(1, Y, "b")
    bench.bring(dst=3)
    assert bench.texts(3) == ["b"]
    bench.bring(dst=2, text="b")
    assert bench.held_texts(2) == ["b"]


def test_fast_D1_nor_does_that_of_a_third_process() -> None:
    bench = Overlap(Fast, {X: (1, 2), Y: (1, 2, 3)})
    bench.tell(1, X, "a")
    bench.carry()
    bench.tell(2, Y, "b")
    bench.bring(dst=3)
    assert bench.texts(3) == ["b"]


def test_fast_D2_a_frame_tells_what_changed_since_the_one_before_in_its_group() -> None:
    bench = Overlap(Fast, {X: (1, 2), Y: (1, 2)})
    bench.tell(2, X, "a")
    bench.carry()
    bench.tell(1, X, "b")
    assert entries(bench, "b") == [(X, 2, 1)]
    bench.tell(1, X, "c")
    assert entries(bench, "c") == [(X, 1, 2)]  # its own entry: "b" comes first
    bench.tell(1, Y, "d")
    assert entries(bench, "d") == [(X, 2, 1), (X, 1, 3)]
    bench.tell(1, Y, "e")
    assert entries(bench, "e") == [(Y, 1, 4)]


def test_fast_D2_what_a_delivered_frame_told_is_no_news_in_its_group_but_in_others() -> None:
    bench = Overlap(Fast, {X: (1, 2, 3), Y: (3, 4)})
    bench.tell(1, X, "a")
    bench.bring(dst=2)
    bench.tell(2, X, "b")  # tells of "a"
    bench.bring(dst=3)
    bench.tell(3, Y, "d")
    assert entries(bench, "d") == [(X, 1, 1), (X, 2, 2)]
    bench.tell(3, X, "c")
    assert entries(bench, "c") == [(X, 2, 2), (Y, 3, 3)]  # who waits for "b" waits for "a"
    bench.carry()
    bench.tell(1, X, "e")
    assert entries(bench, "e") == [(X, 3, 4)]


def test_fast_D2_older_entries_count_though_a_later_frame_does_not_repeat_them() -> None:
    bench = Overlap(Fast, {X: (1, 2, 3)})
    bench.tell(1, X, "cause")
    bench.bring(dst=2)
    bench.tell(2, X, "b", "c")
    bench.bring(src=2, dst=3, text="c")
    bench.bring(src=2, dst=3, text="b")
    assert bench.texts(3) == []
    bench.bring(dst=3)
    assert bench.texts(3) == ["cause", "b", "c"]


def test_fast_D3_a_repeat_is_dropped_whether_delivered_or_held_back() -> None:
    bench = Overlap(Fast, {X: (1, 2)})
    bench.tell(1, X, "a", "b")
    bench.repeat(*bench.find(text="b"), *bench.find(text="b"))
    assert bench.held_texts(2) == ["b"]
    bench.repeat(*bench.find(text="a"))
    bench.carry()
    assert bench.texts(2) == ["a", "b"]
    assert not bench.faults


def test_fast_D4_after_a_cut_nothing_of_the_old_era_is_named() -> None:
    bench = Overlap(Fast, {X: (1, 2), Y: (1, 2)})
    bench.tell(1, X, "a")
    bench.tell(2, Y, "b")
    bench.cut({X: (1, 2, 3), Y: (1, 2)})
    assert sorted(bench.texts(1)) == sorted(bench.texts(2)) == ["a", "b"]
    bench.tell(1, X, "c")
    assert entries(bench, "c") == []
    bench.bring(text="c")
    assert bench.texts(3) == ["c"]


def test_fast_D4_a_cut_delivers_what_is_held_by_number() -> None:
    bench = Overlap(Fast, {X: (1, 2, 3), Y: (1, 3)})
    bench.tell(1, X, "cause")
    bench.bring(dst=2, text="cause")
    bench.tell(2, X, "effect")
    bench.bring(src=2, dst=3)
    assert bench.held_texts(3) == ["effect"]
    bench.crash(1)
    bench.cut({X: (2, 3), Y: (3,)})
    assert bench.texts(3) == ["cause", "effect"]


def test_fast_D4_what_depends_on_a_message_of_the_group_that_nobody_has_is_lost() -> None:
    bench = Overlap(Fast, {X: (1, 2, 3, 4)})
    bench.tell(1, X, "cause")
    bench.bring(dst=2)
    bench.tell(2, X, "effect", "more")
    bench.bring(src=2, dst=3)
    bench.crash(1, 2)
    bench.cut({X: (3, 4)})
    assert bench.texts(3) == bench.texts(4) == []
    bench.tell(3, X, "next")
    bench.carry()
    assert bench.texts(4) == ["next"]


def test_fast_lets_a_guest_send_and_delivers_in_causal_order() -> None:
    bench = Bench({p: Fast(p, AT_ONCE) for p in (1, 2, 3)})
    for p in (1, 2, 3):
        bench.step(p, View(X, 1, (1, 2), 1, guests=(3,)))
    bench.step(3, Multicast(X, b"a"), Multicast(X, b"b"))
    bench.bring(dst=1)
    assert bench.texts(1) == ["a", "b"]
    bench.step(1, Multicast(X, b"c"))
    assert not bench.find(dst=3, header=FastData)
    bench.bring(src=1, dst=2, text="c")
    assert bench.texts(2) == []
    bench.carry()
    assert bench.texts(2) == ["a", "b", "c"]
    assert bench.texts(3) == []


@pytest.mark.parametrize("L", [(X,), (X, 1), (X, 1, 1, X)])
def test_fast_takes_entries_that_are_no_entries_for_a_fault(L: tuple[int, ...]) -> None:
    bench = Overlap(Fast, {X: (1, 2)})
    bench.step(2, Receive(1, X, 1, FastData(1, 1, 0, L), b"?"))
    assert "no entries" in bench.faults[0][2]
    bench.tell(1, X, "a")
    bench.carry()
    assert bench.texts(2) == ["a"]


def test_fast_looks_at_the_form_of_a_reported_stamp() -> None:
    machine = Overlap(Fast, {X: (1, 2)}).protocols[1]
    assert machine.plausible(X, (1, 2), Kept(2, 1, (1, X, 2, 1), b""))
    for stamp in ((), (0,), (1, X), (1, X, 2, -1)):
        assert not machine.plausible(X, (1, 2), Kept(2, 1, stamp, b"")), stamp
