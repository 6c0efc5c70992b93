"""FIFO order across groups (001, slides "FIFO Ordering (2)" and "Overlapping Groups")."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from domains import AT_ONCE, Groups, Overlap
from ordercast.core.events import Cut, Flush, Kept, Multicast, Receive, View
from ordercast.core.protocol import Options
from ordercast.core.waiting import Awaited, Waiting
from ordercast.protocols.global_fifo import GlobalFifo, GlobalFifoData

TWO: Groups = {1: (1, 2, 3), 2: (2, 3, 4)}


def test_every_process_in_both_groups_that_delivers_m_prime_delivers_m_before() -> None:
    o = Overlap(GlobalFifo, TWO)
    o.tell(2, 1, "m")
    o.tell(2, 2, "m'")
    o.bring(2, 3, text="m'")
    assert o.texts(3) == []
    o.bring(2, 4)
    assert o.texts(4) == ["m'"]  # it is not in group 1: nothing to wait for
    o.bring(2, 3)
    assert o.texts(3) == ["m", "m'"]


def test_wait_until_the_frame_is_the_next_of_its_sender_in_the_group() -> None:
    o = Overlap(GlobalFifo, TWO)
    o.tell(1, 1, "a", "b")
    o.bring(1, 2, text="b")
    assert o.texts(2) == []
    o.bring(1, 2)
    assert o.texts(2) == ["a", "b"]


def test_a_frame_that_waits_in_two_groups_waits_for_both() -> None:
    o = Overlap(GlobalFifo, {1: (1, 2), 2: (1, 2), 3: (1, 2)})
    o.tell(1, 1, "a")
    o.tell(1, 2, "b")
    o.tell(1, 3, "c")
    o.bring(text="c")
    o.bring(text="a")
    assert o.texts(2) == ["a"]
    o.bring(text="b")
    assert o.texts(2) == ["a", "b", "c"]


def test_a_message_does_not_wait_for_what_its_sender_delivered() -> None:
    o = Overlap(GlobalFifo, TWO)
    o.tell(1, 1, "a")
    o.bring(1, 2)
    o.tell(2, 2, "b")
    o.bring(2, 3)
    assert o.texts(3) == ["b"]  # FIFO is not causal


def test_global_fifo_D1_a_repeat_is_dropped_delivered_or_held_back() -> None:
    o = Overlap(GlobalFifo, TWO)
    o.tell(1, 1, "a", "b")
    o.repeat(*o.find(1, 2, text="b"), *o.find(1, 2, text="b"))
    o.repeat(*o.find(1, 2, text="a"))
    o.bring(1, 2)
    assert o.texts(2) == ["a", "b"]
    assert o.protocols[2].held_back() == []
    assert not o.faults


def test_global_fifo_D2_the_table_carries_what_changed_since_the_frame_before() -> None:
    o = Overlap(GlobalFifo, TWO)
    o.tell(2, 1, "a", "b")
    o.tell(2, 2, "c", "d")
    o.tell(2, 1, "e")
    assert o.header(GlobalFifoData, "b", 2) == GlobalFifoData(2, 0, ())
    assert o.header(GlobalFifoData, "c", 2) == GlobalFifoData(1, 0, (1, 2))
    assert o.header(GlobalFifoData, "d", 2) == GlobalFifoData(2, 0, ())
    assert o.header(GlobalFifoData, "e", 2) == GlobalFifoData(3, 0, (2, 2))


def test_global_fifo_D2_a_number_told_once_holds_for_all_later_frames() -> None:
    o = Overlap(GlobalFifo, TWO)
    o.tell(2, 1, "a")
    o.tell(2, 2, "b", "c")  # b tells of a, c does not
    o.bring(2, 3, text="c")
    o.bring(2, 3, text="b")
    assert o.texts(3) == []
    o.bring(2, 3)
    assert o.texts(3) == ["a", "b", "c"]


def test_global_fifo_D3_a_sender_delivers_its_own_message_at_once_and_gets_no_copy() -> None:
    o = Overlap(GlobalFifo, TWO)
    o.tell(2, 1, "m")
    assert o.texts(2) == ["m"]
    assert not o.find(dst=2)


def test_global_fifo_D4_all_numbers_restart_together() -> None:
    o = Overlap(GlobalFifo, TWO)
    o.tell(2, 1, "a")
    o.tell(2, 2, "b")
    o.cut({1: (1, 2, 3, 4), 2: (2, 3, 4)})
    o.tell(2, 2, "c")
    assert o.header(GlobalFifoData, "c", 2) == GlobalFifoData(1, 0, ())
    o.tell(2, 1, "d")
    o.bring(2, 4, text="d")
    assert o.texts(4) == ["b"]  # 4 joined group 1 and waits for c
    o.bring(2, 4, text="c")
    assert o.texts(4) == ["b", "c", "d"]


def test_global_fifo_D5_what_follows_a_lost_message_in_the_same_group_is_dropped() -> None:
    o = Overlap(GlobalFifo, {1: (1, 2, 3)})
    o.tell(1, 1, "a", "b")
    o.lose(text="a")
    o.bring(1, 2)
    o.crash(1)
    o.cut({1: (2, 3)})
    assert o.texts(2) == o.texts(3) == []


def test_global_fifo_D5_what_follows_a_lost_message_in_another_group_is_delivered() -> None:
    o = Overlap(GlobalFifo, {1: (1, 2, 3), 2: (1, 2, 3)})
    o.tell(1, 1, "a")
    o.tell(1, 2, "b", "c")
    o.lose(text="a")
    o.bring(1, 2)
    assert o.texts(2) == []
    o.crash(1)
    o.cut({1: (2, 3), 2: (2, 3)})
    assert o.texts(2) == o.texts(3) == ["b", "c"]


def test_global_fifo_D5_what_is_dropped_in_one_group_is_lost_for_the_others() -> None:
    o = Overlap(GlobalFifo, {1: (1, 2, 3), 2: (1, 2, 3)})
    o.tell(1, 1, "a", "b")
    o.tell(1, 2, "c")
    o.lose(text="a")
    o.bring(1, 2)
    o.crash(1)
    o.cut({1: (2, 3), 2: (2, 3)})
    assert o.texts(2) == o.texts(3) == ["c"]


def test_a_group_that_begins_later_is_told_what_went_before() -> None:
    one = GlobalFifo(2, AT_ONCE)
    one.step([View(1, 1, (1, 2), 1), Multicast(1, b"a"), View(2, 1, (1, 2), 1)])
    (sent,) = one.step([Multicast(2, b"b")]).transmits
    assert sent[3] == GlobalFifoData(1, 0, (1, 1))


def test_a_cut_delivers_in_the_order_of_sending_whatever_the_groups() -> None:
    o = Overlap(GlobalFifo, {1: (1, 2), 2: (1, 2)})
    o.tell(1, 2, "a")
    o.tell(1, 1, "b")
    o.tell(1, 2, "c")
    o.cut({1: (1, 2), 2: (1, 2)})
    assert o.texts(2) == ["a", "b", "c"]


def test_a_held_frame_names_all_it_waits_for() -> None:
    o = Overlap(GlobalFifo, TWO)
    o.tell(2, 1, "a")
    o.tell(2, 2, "b", "c")
    o.tell(2, 1, "d")
    o.bring(2, 3, text="d")
    assert o.protocols[3].held_back() == [
        Waiting(1, 2, 2, (Awaited("frame", 1, 2, 1), Awaited("frame", 2, 2, 2)), b"d")
    ]


LIES: dict[str, tuple[GlobalFifoData, str]] = {
    "half a pair": (GlobalFifoData(1, 0, (2,)), "1 integers are no table of numbers"),
    "not there": (GlobalFifoData(1, 0, (2, 1)), "process 1 does not send in group 2"),
    "far ahead": (GlobalFifoData(1, 0, (1, 100)), "frame 100 of 1 is named, far above 0"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_header_that_cannot_be_is_a_fault_and_harms_nothing(lie: str) -> None:
    o = Overlap(GlobalFifo, TWO, options=Options(max_held=50))
    before = o.protocols[2].fingerprint()
    told, reason = LIES[lie]
    o.step(2, Receive(1, 1, 1, told, b"m"))
    assert o.faults == [(2, 1, reason)]
    assert o.protocols[2].fingerprint() == before
    assert o.texts(2) == []


def test_a_cut_discards_frames_with_stamps_that_cannot_be() -> None:
    o = Overlap(GlobalFifo, TWO)
    union = (
        Kept(1, 1, (2,), b"half a pair"),
        Kept(1, 1, (2, 1), b"not there"),
        Kept(1, 1, (7, 5), b"good"),
    )
    views = (replace(o.protocols[2].views[g], number=2, era=2) for g in (1, 2))
    o.step(2, Cut((Flush(1, union), Flush(2, ())), tuple(views)))
    assert o.texts(2) == ["good"]
