"""The machinery of Causal Blocks: counter, matrix, NULLs, and the cut (004, sections 3 and 4)."""

from __future__ import annotations

import pytest

from domains import Overlap
from machines import Bench, Packet
from ordercast.core.events import Cut, Flush, Kept, Receive, View
from ordercast.core.protocol import Options
from ordercast.errors import PeerError
from ordercast.machinery.block_order import BlockData
from ordercast.machinery.blocks import MAX_BLOCK, BlockMatrix
from ordercast.machinery.changes import MAX_ENTRIES, ChangingVector
from ordercast.machinery.silence import Null
from ordercast.protocols.fast import Fast, FastData
from ordercast.protocols.slow import Slow

X, Y = 1, 2


def numbers_sent(bench: Bench) -> list[int]:
    return [packet.header.b for packet in bench.find(header=FastData)]  # type: ignore[attr-defined]


def nulls(bench: Bench) -> list[tuple[int, int, int]]:
    """(sender, group, number) of the NULLs under way, one for each multicast."""
    found = [(p.src, p.receive.group, p.header.b) for p in bench.find(header=Null)]  # type: ignore[attr-defined]
    return list(dict.fromkeys(found))


# -- the block counter ----------------------------------------------------------------------------


def test_CA1_one_counter_numbers_what_a_process_sends_in_all_its_groups() -> None:
    bench = Overlap(Fast, {X: (1, 2), Y: (1, 3)})
    bench.tell(1, X, "a")
    bench.tell(1, Y, "b")
    bench.tell(1, X, "c")
    assert numbers_sent(bench) == [1, 2, 3]


def test_CA2_a_delivery_raises_the_counter_so_that_an_answer_has_a_higher_number() -> None:
    bench = Overlap(Fast, {X: (1, 2)})
    bench.tell(1, X, "a", "b", "c")
    bench.carry()
    bench.tell(2, X, "answer")
    assert numbers_sent(bench) == [4]


def test_a_message_that_was_received_but_not_delivered_does_not_raise_the_counter() -> None:
    bench = Overlap(Fast, {X: (1, 2)})
    bench.tell(1, X, "a", "b")
    bench.bring(text="b")
    assert bench.held_texts(2) == ["b"]
    assert bench.numbers(2) == 0


def test_a_smaller_number_need_not_be_a_cause() -> None:
    # E-M1: the paper prints it the other way round.
    bench = Overlap(Fast, {X: (1, 2, 3)})
    bench.tell(1, X, "a")  # number 1
    bench.tell(2, X, "b", "c")  # numbers 1 and 2, nothing of process 1 delivered
    bench.bring(src=2, dst=3)
    assert bench.texts(3) == ["b", "c"]


# -- the block matrix -----------------------------------------------------------------------------


def figure_2(owner: int | None = None) -> BlockMatrix:
    rows = {1: (1, 4), 2: (2, 5, 6), 3: (1, 3, 4), 4: (1, 5), 5: (2,)}
    matrix = BlockMatrix(p for p in range(1, 7) if p != owner)
    for block, processes in rows.items():
        for j in processes:
            matrix.hear(j, block)
    return matrix


def test_in_figure_2_block_2_is_complete_and_block_3_waits_for_process_6() -> None:
    matrix = figure_2()
    assert matrix.CBV == 2
    assert matrix.silent(3) == [6]


def test_in_figure_2_block_3_is_complete_if_process_6_owns_the_matrix() -> None:
    # E-M2: a process does not wait for itself.
    assert figure_2(owner=6).CBV == 3


def test_a_lower_number_that_comes_late_changes_nothing() -> None:
    matrix = figure_2(owner=6)
    matrix.hear(3, 1)
    assert matrix.CBV == 3


def test_without_others_every_block_is_complete() -> None:
    assert BlockMatrix(()).CBV == MAX_BLOCK


# -- NULLs ----------------------------------------------------------------------------------------


def test_who_heard_a_higher_number_and_stays_silent_promises_it_once() -> None:
    bench = Overlap(Slow, {X: (1, 2, 3)})
    bench.tell(1, X, "a")
    bench.carry()
    bench.ring(2, "silence", X)
    assert nulls(bench) == [(2, X, 1)]
    bench.settle()
    assert not any((X, "silence") in timers for timers in bench.timers.values())
    assert [bench.blocks(p).spoke[X] for p in (1, 2, 3)] == [1, 1, 1]


def test_who_spoke_with_that_number_or_a_higher_one_sends_no_null() -> None:
    bench = Overlap(Slow, {X: (1, 2)})
    bench.tell(1, X, "a")
    bench.carry()
    bench.tell(2, X, "b")
    bench.lose(text="b")
    bench.ring(2, "silence", X)
    assert not nulls(bench)


def test_a_word_below_what_is_known_is_not_enough() -> None:
    # Process 2 holds number 3 back, so its own counter stands lower when it speaks.
    bench = Overlap(Slow, {X: (1, 2, 3)})
    bench.tell(1, X, "a", "b", "c")
    bench.bring(dst=2)
    bench.tell(2, X, "d")
    assert [packet.header.b for packet in bench.find(text="d")] == [2, 2]  # type: ignore[attr-defined]
    bench.ring(2, "silence", X)  # for number 1, the first it heard: it has spoken since
    bench.ring(2, "silence", X)
    assert nulls(bench) == [(2, X, 3)]


def test_a_number_that_came_after_the_last_word_gets_a_delay_of_its_own() -> None:
    bench = Overlap(Slow, {X: (1, 2)})
    bench.tell(1, X, "a")
    bench.carry()  # the timer of 2 starts, for number 1
    bench.tell(2, X, "b")
    bench.carry()
    bench.tell(1, X, "c")
    bench.carry()  # number 3 is known now, and 2 spoke with number 2
    bench.ring(2, "silence", X)
    assert not nulls(bench)
    bench.ring(2, "silence", X)
    assert nulls(bench) == [(2, X, 3)]


def test_a_number_of_one_group_is_promised_in_the_other_groups_too() -> None:
    bench = Overlap(Slow, {X: (1, 2), Y: (2, 3)})
    bench.tell(1, X, "a")
    bench.carry()
    bench.ring(2, "silence", Y)
    assert nulls(bench) == [(2, Y, 1)]
    bench.bring(header=Null)
    bench.ring(3, "silence", Y)
    assert nulls(bench) == [(3, Y, 1)]


def test_a_null_is_neither_delivered_nor_acknowledged_and_is_noted() -> None:
    bench = Overlap(Slow, {X: (1, 2)})
    bench.tell(1, X, "a")
    bench.carry()
    bench.settle()
    out = bench.step(1, Receive(2, X, 1, Null(9)))
    assert not out.transmits
    assert bench.texts(1) == ["a"]
    assert list(bench.timers[1]) == [(X, "silence")]
    bench.ring(1, "silence", X)
    assert bench.protocols[1].out.notes == [("null", X, 1, 9, "")]


def test_after_a_null_the_next_message_has_a_higher_number() -> None:
    bench = Overlap(Slow, {X: (1, 2, 3)})
    bench.tell(1, X, "a", "b", "c")
    bench.bring(dst=2)
    bench.ring(2, "silence", X)
    bench.tell(2, X, "d")
    assert {packet.header.b for packet in bench.find(text="d")} == {4}  # type: ignore[attr-defined]


def test_alone_in_a_group_nobody_speaks_to_himself() -> None:
    bench = Overlap(Slow, {X: (1,), Y: (1, 2)})
    bench.tell(1, Y, "a")
    assert bench.timers[1] == {}
    bench.tell(1, X, "b")
    bench.settle()
    assert bench.texts(1) == ["a", "b"]


# -- a peer's mistakes ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "says"),
    [
        (BlockData(3, 3, 0), "frame 3 came after 1"),
        (BlockData(2, 1, 0), "block number 1 where one above 1"),
        (BlockData(2, MAX_BLOCK + 1, 0), "block number"),
        (Null(MAX_BLOCK + 1), "block number"),
        (Null(0), "block number 0"),
    ],
)
def test_what_no_honest_peer_sends_is_a_fault_of_its_sender(header: object, says: str) -> None:
    bench = Overlap(Slow, {X: (1, 2, 3)})
    bench.tell(1, X, "a")
    bench.bring(dst=2)
    bench.step(2, Receive(1, X, 1, header, b"?"))  # type: ignore[arg-type]
    (fault,) = bench.faults
    assert fault[:2] == (2, 1)
    assert says in fault[2]
    bench.tell(1, X, "b")
    bench.carry()
    bench.settle()
    assert bench.texts(2) == ["a", "b"]  # everybody else, and the sender too, goes on


def test_a_repeat_is_dropped() -> None:
    bench = Overlap(Slow, {X: (1, 2)})
    bench.tell(1, X, "a")
    bench.repeat(*bench.find(text="a"))
    bench.settle()
    assert bench.texts(2) == ["a"]
    assert not bench.faults


def test_more_held_messages_than_the_limit_are_a_fault() -> None:
    bench = Overlap(Slow, {X: (1, 2, 3)}, Options(max_held=2, resilience=0))
    bench.tell(1, X, "a", "b", "c", "d")
    bench.bring(dst=2)
    assert bench.texts(2) == ["a"]
    assert bench.held_texts(2) == ["b", "c"]
    assert "max_held" in bench.faults[0][2]


# -- the cut --------------------------------------------------------------------------------------


def test_at_a_cut_everything_is_delivered_by_number_in_all_groups_together() -> None:
    bench = Overlap(Slow, {X: (1, 2, 4), Y: (1, 2, 3)})
    bench.tell(1, X, "a")
    bench.tell(1, Y, "b")
    bench.tell(1, X, "c")
    bench.cut({X: (1, 2, 4), Y: (1, 2, 3)})
    assert bench.texts(2) == ["a", "b", "c"]
    assert bench.texts(4) == ["a", "c"]
    assert bench.texts(3) == ["b"]


def test_after_a_cut_all_count_on_from_the_highest_number_that_was_known() -> None:
    bench = Overlap(Slow, {X: (1, 2, 3)})
    bench.tell(1, X, "a", "b", "c")
    bench.bring(dst=2)
    bench.cut({X: (1, 2, 3)})
    assert [bench.numbers(p) for p in (1, 2, 3)] == [3, 3, 3]
    assert [bench.blocks(p).BM[X].CBV for p in (1, 2, 3)] == [3, 3, 3]
    bench.tell(3, X, "d")
    bench.bring(text="d")
    assert bench.texts(2)[-1] == "d"  # nobody needs to speak first


def test_a_number_that_was_only_promised_counts_as_known() -> None:
    bench = Overlap(Slow, {X: (1, 2, 3)})
    bench.step(2, Receive(3, X, 1, Null(9)))
    bench.crash(3)
    bench.cut({X: (1, 2)})
    assert [bench.numbers(p) for p in (1, 2)] == [9, 9]


def test_of_a_union_with_a_gap_nothing_behind_the_gap_is_delivered() -> None:
    machine = Overlap(Slow, {X: (1, 2)}).protocols[2]
    union = (Kept(1, 1, (1, 1), b"a"), Kept(1, 3, (3, 1), b"c"))
    out = machine.step([Cut((Flush(X, union),), (View(X, 1, (1, 2), 1, era=2),))])
    assert [d[4] for d in out.deliveries if not isinstance(d, View)] == [b"a"]


def test_a_frame_behind_one_that_nobody_alive_has_is_lost_with_it() -> None:
    bench = Overlap(Fast, {X: (1, 2, 3)})
    bench.tell(1, X, "a", "b", "c")
    bench.bring(dst=2, text="c")
    bench.bring(dst=3, text="a")
    bench.crash(1)
    bench.cut({X: (2, 3)})
    assert bench.texts(2) == bench.texts(3) == ["a"]
    assert bench.held(2) == []
    bench.tell(2, X, "d")
    bench.carry()
    assert bench.texts(3) == ["a", "d"]


def test_a_nonsensical_stamp_in_a_report_is_noticed() -> None:
    machine = Overlap(Slow, {X: (1, 2)}).protocols[1]
    for stamp in ((), (0, 0), (1,), (MAX_BLOCK + 1, 0), (1, 2), (1, -1)):
        assert not machine.plausible(X, (1, 2), Kept(2, 1, stamp, b"")), stamp
    assert machine.plausible(X, (1, 2), Kept(2, 1, (1, 0), b""))


# -- what changed since the last frame ------------------------------------------------------------


def test_a_vector_tells_each_group_what_changed_since_it_was_asked_before() -> None:
    vector: ChangingVector[str] = ChangingVector()
    vector.begin(X)
    vector.begin(Y)
    vector.raise_to("a", 1)
    assert vector.tell(X) == {"a": 1}
    vector.raise_to("b", 2)
    vector.raise_to("b", 1)  # never falls
    assert vector.tell(X) == {"b": 2}
    assert vector.tell(X) == {}
    assert vector.tell(Y) == {"a": 1, "b": 2}


def test_what_others_told_is_no_news_unless_it_rose_since() -> None:
    vector: ChangingVector[str] = ChangingVector()
    vector.begin(X)
    vector.raise_to("a", 1)
    vector.raise_to("b", 2)
    vector.was_told(X, "a", 1)
    vector.was_told(X, "b", 1)
    vector.was_told(X, "c", 1)
    assert vector.tell(X) == {"b": 2}


def test_a_group_that_begins_later_is_told_everything() -> None:
    vector: ChangingVector[str] = ChangingVector()
    vector.raise_to("a", 1)
    vector.begin(X)
    assert vector.tell(X) == {"a": 1}


def test_a_peer_cannot_make_a_vector_grow_without_end() -> None:
    vector: ChangingVector[int] = ChangingVector()
    vector.check_room(MAX_ENTRIES)
    with pytest.raises(PeerError, match="entries"):
        vector.check_room(MAX_ENTRIES + 1)


def test_the_state_of_a_machine_is_plain_data() -> None:
    bench = Overlap(Slow, {X: (1, 2, 3)})
    bench.tell(1, X, "a", "b")
    bench.bring(dst=2)
    twin = bench.protocols[2].copy()
    assert twin.fingerprint() == bench.protocols[2].fingerprint()
    packet: Packet = bench.find(dst=3, text="a")[0]
    twin.step([Receive(3, X, 1, Null(1))])
    assert twin.fingerprint() != bench.protocols[2].fingerprint()
    assert packet.dst == 3
