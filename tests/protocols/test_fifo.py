"""FIFO order, sentence by sentence (001, slides "FIFO Ordering (1)" and "(2)")."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from machines import G, bench
from ordercast.core.events import Flush, Receive, View
from ordercast.core.protocol import Options
from ordercast.protocols.fifo import Fifo, FifoData


def test_every_process_that_delivers_m2_delivers_m1_before_m2() -> None:
    b = bench(Fifo, 1, 2)
    b.say(1, "m1", "m2")
    b.bring(text="m2")
    assert b.texts(2) == []
    b.bring(text="m1")
    assert b.texts(2) == ["m1", "m2"]


@given(st.permutations(range(8)))
def test_whatever_the_order_of_arrival_each_senders_messages_come_in_order(
    order: list[int],
) -> None:
    b = bench(Fifo, 1, 2, 3)
    b.say(1, *"abcd")
    b.say(2, *"wxyz")
    packets = b.find(dst=3, header=FifoData)
    for i in order:
        b.arrive(packets[i])
    assert [t for t in b.texts(3) if t in "abcd"] == list("abcd")
    assert [t for t in b.texts(3) if t in "wxyz"] == list("wxyz")


def test_messages_of_different_senders_do_not_wait_for_each_other() -> None:
    b = bench(Fifo, 1, 2, 3)
    b.say(1, "a1", "a2")
    b.say(2, "b1")
    b.bring(dst=3, text="a2")
    b.bring(dst=3, text="b1")
    assert b.texts(3) == ["b1"]


def test_S_is_the_number_of_messages_sent_by_p() -> None:
    b = bench(Fifo, 1, 2)
    b.say(1, "a", "b")
    assert [packet.header.n for packet in b.find(1, 2)] == [1, 2]  # type: ignore[attr-defined]
    assert b.machines[1].stability[G].S == 2  # type: ignore[attr-defined]


def test_R_is_the_number_of_the_latest_message_delivered_not_received() -> None:
    b = bench(Fifo, 1, 2)
    b.say(1, "a", "b", "c")
    b.bring(text="c")
    assert b.machines[2].R[1] == 0  # type: ignore[attr-defined]
    b.bring(text="a")
    assert b.machines[2].R[1] == 1  # type: ignore[attr-defined]
    b.bring(text="b")
    assert b.machines[2].R[1] == 3  # type: ignore[attr-defined]


def test_fifo_D1_a_repeat_is_dropped_delivered_or_held_back() -> None:
    b = bench(Fifo, 1, 2)
    b.say(1, "a", "b")
    b.repeat(*b.find(text="b"), *b.find(text="b"))
    b.bring(text="a")
    b.bring(text="b")
    assert b.texts(2) == ["a", "b"]
    assert len(b.machines[2].held) == 0  # type: ignore[attr-defined]


def test_fifo_D2_the_protocol_says_that_its_order_is_of_one_group() -> None:
    assert Fifo.declaration.scope == "group"
    assert "fifo.group" in Fifo.declaration.promises
    assert "fifo.global" not in Fifo.declaration.promises


def test_a_held_back_frame_is_not_acknowledged() -> None:
    b = bench(Fifo, 1, 2, options=Options(ack_every=1))
    b.say(1, "a", "b")
    b.bring(text="b")
    assert not b.find(2, 1)
    b.bring(text="a")
    assert b.find(2, 1)


def test_a_flush_delivers_the_contiguous_part_of_the_union_everywhere_and_discards_the_rest() -> (
    None
):
    b = bench(Fifo, 1, 2, 3)
    b.say(1, "a", "b", "c", "d")
    b.bring(dst=2, text="a")
    b.bring(dst=2, text="d")  # held back at 2
    b.bring(dst=3, text="b")  # held back at 3; nobody alive has c
    union = (*b.machines[3].unstable(G), *b.machines[2].unstable(G))  # type: ignore[attr-defined]
    assert len(union) == 3
    for p in (2, 3):
        b.step(p, Flush(G, union), View(G, 2, (2, 3), 2, era=2))
    assert b.story(2) == b.story(3) == ["123", "a", "b", "23"]
    b.say(2, "e")
    b.bring(2, 3, text="e")
    assert b.texts(3) == ["a", "b", "e"]  # nothing is left of the old view


def test_too_many_frames_held_back_are_the_senders_fault() -> None:
    b = bench(Fifo, 1, 2, options=Options(max_held=3))
    for n in (2, 3, 4):
        b.step(2, Receive(1, G, 1, FifoData(n, 0), b"m"))
    assert [fault[:2] for fault in b.faults] == [(2, 1)]
    b.step(2, Receive(1, G, 1, FifoData(1, 0), b"first"))
    assert b.texts(2) == ["first", "m", "m"]


def test_a_guest_takes_no_frame_of_another() -> None:
    """A member that means ill sends one to it, having called it stable."""
    b = bench(Fifo, 1, 2, 9)
    for p in (1, 2, 9):
        b.step(p, View(G, 2, (1, 2), 1, guests=(9,)))
    guest = b.machines[9]
    faults = guest.step([Receive(1, G, 1, FifoData(1, 0), b"m")]).faults
    assert faults == [(1, "frame 1 of process 1 came to a node that is no member")]
    assert guest.stability[G].unstable() == []  # type: ignore[attr-defined]
