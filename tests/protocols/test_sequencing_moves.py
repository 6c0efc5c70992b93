"""The sequencing service: a group is handed over from one sequencer to another."""

from __future__ import annotations

import pytest

from machines import Packet
from ordercast.core.events import Change
from ordercast.core.protocol import Options
from ordercast.machinery.numbering import ViewEntry
from ordercast.machinery.sequencer_headers import Fetch
from ordercast.protocols.sequencing.headers import (
    AcceptIn,
    AskHeld,
    DoMulticast,
    Forwarded,
    Moved,
)
from ordercast.protocols.sequencing.orders import (
    Sequencing,
    SequencingCausal,
    SequencingGlobal,
    SequencingHybrid,
)
from ordercast.protocols.sequencing.service import SequencingService
from sequencers import S, Served, T

ORDERS = [Sequencing, SequencingHybrid, SequencingCausal, SequencingGlobal]
every = pytest.mark.parametrize("protocol", ORDERS)
causal = pytest.mark.parametrize("protocol", [SequencingHybrid, SequencingCausal])
MEMBERS = (1, 2, 3)
PLACES = {"daemons": (S, T), "to a member": (S, 2), "from a member": (1, T), "members": (1, 2)}
places = pytest.mark.parametrize(("source", "to"), PLACES.values(), ids=PLACES)


def one_group(protocol: type[SequencingService], source: int = S, to: int = T) -> Served:
    return Served(protocol, {1: (MEMBERS, source)}, others=(to,))


def finished(b: Served, *expected: str) -> None:
    """All is delivered by all, once, in one order, and nobody was blamed."""
    b.settle()
    orders = [b.texts(p) for p in MEMBERS if p not in b.crashed]
    assert sorted(orders[0]) == sorted(expected)
    assert all(order == orders[0] for order in orders)
    assert b.faults == []


@places
@every
def test_messages_before_during_and_after_a_move_are_delivered_once_in_one_order(
    protocol: type[SequencingService], source: int, to: int
) -> None:
    b = one_group(protocol, source, to)
    for p in MEMBERS:
        b.tell(p, 1, f"before {p}")
    b.carry()
    for p in MEMBERS:
        b.tell(p, 1, f"under way {p}")
    book = b.freeze(1, source, to)
    for p in MEMBERS:
        b.tell(p, 1, f"frozen {p}")
    b.succeed(1, to, book)
    for p in MEMBERS:
        b.tell(p, 1, f"taken over {p}")
    b.tell_moved(1, source)
    for p in MEMBERS:
        b.tell(p, 1, f"after {p}")
    times = ("before", "under way", "frozen", "taken over", "after")
    finished(b, *(f"{time} {p}" for time in times for p in MEMBERS))


@places
def test_a_move_while_everything_is_stuck_in_the_network(source: int, to: int) -> None:
    """Nothing arrives but the hand-over itself; then everything, the last packet first."""
    b = one_group(Sequencing, source, to)
    for p in MEMBERS:
        b.tell(p, 1, f"a{p}", f"b{p}")
    b.move(1, source, to)
    for p in MEMBERS:
        b.tell(p, 1, f"c{p}")
    while b.flight:
        b.arrive(b.flight[-1])
    finished(b, *(f"{text}{p}" for text in "abc" for p in MEMBERS))


@places
def test_what_is_lost_in_a_move_is_repeated(source: int, to: int) -> None:
    b = one_group(Sequencing, source, to)
    b.tell(2, 1, "a")
    b.tell(3, 1, "b")
    b.flight.clear()
    b.move(1, source, to)
    moved = b.find(header=Moved)  # goes on a link
    b.flight = list(moved)
    finished(b, "a", "b")


def test_a_request_to_the_former_sequencer_is_forwarded_once() -> None:
    b = one_group(Sequencing)
    b.tell(1, 1, "a")
    b.move(1, S, T)
    b.bring(1, S)
    assert [packet.header for packet in b.find(S, T)] == [Forwarded(1, 1, (), ())]
    b.bring(S, T)
    assert len(b.find(T, header=AcceptIn)) == len(MEMBERS)
    b.bring(S)
    b.tell(1, 1, "b")
    assert [packet.dst for packet in b.find(1, header=DoMulticast)] == [T]
    finished(b, "a", "b")


def test_a_former_sequencer_that_is_asked_after_two_moves_forwards_all_the_same() -> None:
    b = one_group(Sequencing)
    b.tell(1, 1, "a")
    b.move(1, S, T)
    b.arrive(*b.find(S, 2), *b.find(S, 3))
    b.move(1, T, 2)
    b.bring(1, S)
    b.bring(S, T)
    b.bring(T, 2, Forwarded)
    assert len(b.find(2, header=AcceptIn)) == 2
    finished(b, "a")


def test_a_repeat_of_what_was_numbered_before_the_move_gets_no_second_number() -> None:
    b = one_group(Sequencing)
    b.tell(1, 1, "a")
    (request,) = b.find(1, S)
    b.bring(1, S)
    b.lose(S, 1)
    b.move(1, S, T)
    b.arrive(*b.find(header=Moved))
    b.step(T, request.receive)
    b.step(S, request.receive)
    assert b.find(T, 1, AcceptIn)
    finished(b, "a")


def test_the_senders_are_told_and_follow() -> None:
    b = Served(Sequencing, {1: (MEMBERS, S)}, guests={1: (5,)}, others=(T,))
    b.move(1, S, T)
    assert sorted(packet.dst for packet in b.find(S, header=Moved(T, 1))) == [1, 2, 3, 5]
    b.carry()
    for p in (1, 5):
        b.tell(p, 1, f"from {p}")
        assert b.find(p, T, DoMulticast)
    finished(b, "from 1", "from 5")
    assert b.stable[5] == 1


def test_a_guests_frames_survive_a_move_and_become_stable() -> None:
    b = Served(Sequencing, {1: (MEMBERS, S)}, guests={1: (5,)}, others=(T,))
    b.tell(5, 1, "a", "b")
    b.bring(5, S, text="a")
    b.lose(S)
    book = b.freeze(1, S, T)
    b.tell(5, 1, "c")
    b.bring(5, S)
    b.succeed(1, T, book)
    b.tell_moved(1, S)
    finished(b, "a", "b", "c")
    assert b.stable[5] == 3
    assert b.texts(1) == ["a", "b", "c"]


def test_numbers_of_the_next_sequencer_wait_until_a_member_knows_it() -> None:
    b = one_group(Sequencing)
    b.move(1, S, T)
    b.arrive(*b.find(S, 1))
    b.tell(1, 1, "a")
    b.bring(1, T)
    b.bring(T, 2, AcceptIn)
    assert b.texts(2) == []
    assert [waiting.payload for waiting in b.services[2].held_back()] == [b"a"]
    b.bring(S, 2, Moved)
    assert b.texts(2) == ["a"]
    finished(b, "a")


def test_the_former_sequencer_delivers_what_the_next_one_numbered_before_it_said_so() -> None:
    """Without waiting for a timer: it need not be told again."""
    b = one_group(Sequencing, 1, 2)
    book = b.freeze(1, 1, 2)
    b.succeed(1, 2, book)
    b.tell(2, 1, "a")
    b.bring(2, 1)
    assert b.texts(1) == []
    b.tell_moved(1, 1)
    assert b.texts(1) == ["a"]
    finished(b, "a")


def test_a_member_fetches_from_the_next_sequencer_what_the_former_one_numbered() -> None:
    b = one_group(Sequencing)
    b.tell(1, 1, "a", "b")
    b.bring(1, S)
    b.lose(S, 2, text="a")
    b.carry()
    b.move(1, S, T)
    b.carry()
    b.ring(2, "gap", 1)
    assert b.find(2, T, Fetch(1, 1))
    finished(b, "a", "b")


def test_late_words_to_the_former_sequencer_are_no_fault() -> None:
    b = one_group(Sequencing)
    b.tell(1, 1, "a", "b")
    b.bring(1, S)
    b.lose(S, 2, text="a")
    b.bring(S)
    b.ring(2, "gap", 1)
    b.ring(3, "ack", 1)
    b.move(1, S, T)
    b.bring(2, S, Fetch)
    b.bring(3, S)
    finished(b, "a", "b")


def test_a_group_that_comes_back_goes_on() -> None:
    b = one_group(Sequencing)
    said = []
    for turn, (source, to) in enumerate([(S, T), (T, S), (S, 2), (2, S), (S, T)]):
        for p in MEMBERS:
            said.append(f"{turn} {p}")
            b.tell(p, 1, said[-1])
        if turn % 2:
            b.carry()
        b.move(1, source, to)
    finished(b, *said)


def test_moved_that_overtakes_a_later_one_is_not_believed() -> None:
    b = one_group(Sequencing, S, T)
    b.move(1, S, T)
    late = b.find(S, 1, Moved)
    b.arrive(*b.find(S, 2), *b.find(S, 3))
    b.move(1, T, 2)
    b.arrive(*b.find(T, 1, Moved))
    b.arrive(*late)
    b.tell(1, 1, "a")
    assert [packet.dst for packet in b.find(1, header=DoMulticast)] == [2]
    finished(b, "a")


def test_who_joins_during_a_move_begins_with_its_view() -> None:
    b = Served(Sequencing, {1: (MEMBERS, S)}, others=(4, T))
    b.tell(1, 1, "a")
    b.carry()
    b.change(S, Change(1, joined=(4,)))
    b.lose(S, 4)
    b.move(1, S, T)
    b.tell(1, 1, "b")
    finished(b, "a", "b")
    assert b.texts(4) == ["b"]


def test_who_left_and_numbered_the_group_is_let_in_by_a_sequencer_it_does_not_know() -> None:
    b = one_group(Sequencing, 3, T)
    b.move(1, 3, T)
    b.carry()
    b.change(T, Change(1, left=(3,)))
    b.settle()
    b.move(1, T, 2)
    b.carry()
    b.change(2, Change(1, joined=(3,)))
    b.tell(1, 1, "a")
    finished(b, "a")


def test_word_of_an_older_hand_over_is_not_believed_by_who_came_in_after_it() -> None:
    """4 is let in by S; its view is lost, and comes again from T, before S tells of T."""
    b = Served(Sequencing, {1: (MEMBERS, S)}, others=(4, T))
    b.change(S, Change(1, joined=(4,)))
    b.lose(S, 4, ViewEntry)
    b.move(1, S, T)
    b.move(1, T, 2)
    b.ring(2, "status", 1)
    b.bring(2, 4, ViewEntry)
    b.bring(S, 4, Moved)
    b.tell(4, 1, "a")
    assert [packet.dst for packet in b.find(4, header=DoMulticast)] == [2]
    finished(b, "a")


def test_a_former_sequencer_that_knows_the_next_one_by_its_view_tells_the_others_nevertheless() -> (
    None
):
    """S joins the group that T numbers now; that view reaches it before it may tell of T."""
    b = one_group(Sequencing)
    book = b.freeze(1, S, T)
    b.succeed(1, T, book)
    b.change(T, Change(1, joined=(S,)))
    b.bring(T, S, ViewEntry)
    b.lose(T)
    b.tell_moved(1, S)
    assert [packet.dst for packet in b.find(S, header=Moved)] == list(MEMBERS)


def test_a_member_that_was_told_nothing_believes_a_view_of_the_next_sequencer() -> None:
    b = Served(Sequencing, {1: (MEMBERS, S)}, others=(4, T))
    b.move(1, S, T)
    b.lose(S)
    b.change(T, Change(1, joined=(4,)))
    b.bring(T, 1, ViewEntry)
    b.tell(1, 1, "a")
    assert [packet.dst for packet in b.find(1, header=DoMulticast)] == [T]
    b.bring(T)
    finished(b, "a")


def test_a_guest_that_is_let_in_may_be_the_next_sequencer() -> None:
    b = Served(Sequencing, {1: (MEMBERS, S)}, guests={1: (5,)})
    b.change(S, Change(1, joined=(5,)))
    b.tell(1, 1, "a")
    b.bring(1, S)
    b.lose(S, 5)
    b.move(1, S, 5)
    finished(b, "a")
    assert b.texts(5) == ["a"]


def test_one_that_was_asked_whether_it_has_a_number_may_be_the_next_sequencer() -> None:
    groups = {1: ((1, 2), 1), 2: ((1, 3), 1)}
    b = Served(SequencingHybrid, groups, options=Options())
    b.tell(1, 1, "a")
    b.tell(1, 2, "b")
    b.bring(1, 2, AskHeld)
    b.lose(1, 2, AcceptIn)
    b.move(1, 1, 2)
    b.settle()
    assert (b.texts(1), b.texts(2), b.texts(3)) == (["a", "b"], ["a"], ["b"])
    assert b.faults == []


def test_who_leaves_during_a_move_hears_of_it() -> None:
    b = Served(Sequencing, {1: ((1, 2, 3, 4), S)}, others=(T,))
    b.tell(1, 1, "a")
    b.bring(1, S)
    b.change(S, Change(1, left=(4,)))
    b.lose(S, 4)
    b.move(1, S, T)
    finished(b, "a")
    assert b.story(4)[-2:] == ["a", "123"]


@pytest.mark.parametrize("first", ["deferred", "before it"])
@causal
def test_deferred_requests_go_along(protocol: type[SequencingService], first: str) -> None:
    """1 said a to group 1 and b to group 2. b waits at the sequencer for a when either group is
    handed over."""
    b = Served(protocol, {1: (MEMBERS, S), 2: (MEMBERS, S)}, others=(T,))
    b.tell(1, 1, "a")
    b.tell(1, 2, "b")
    b.bring(1, S, text="b")
    groups = (2, 1) if first == "deferred" else (1, 2)
    b.move(groups[0], S, T)
    b.tell(1, 2, "c")
    finished_after_second = b.find(1, S, text="a")
    assert finished_after_second
    b.carry()
    b.move(groups[1], S, T)
    finished(b, "a", "b", "c")
    assert b.texts(2) == ["a", "b", "c"]


@causal
def test_a_repeat_names_the_numbers_that_a_request_had_waited_for(
    protocol: type[SequencingService],
) -> None:
    """b names the frame before it, which another numbers from now on: its sender says which number
    that one got."""
    b = Served(protocol, {1: (MEMBERS, S), 2: (MEMBERS, S)}, others=(T,))
    b.tell(1, 1, "a")
    b.tell(1, 2, "b")
    b.bring(1, S, text="b")
    b.move(1, S, T)
    b.bring(header=Moved)
    b.carry()
    assert not b.texts(2) or b.texts(2)[0] == "a"
    finished(b, "a", "b")


@causal
def test_a_repeat_that_comes_after_nothing_any_more_is_numbered(
    protocol: type[SequencingService],
) -> None:
    """All have delivered what the request had waited for, and its number was forgotten."""
    b = Served(protocol, {1: (MEMBERS, S), 2: (MEMBERS, S), 3: (MEMBERS, S)}, others=(T,))
    b.tell(1, 1, "a")
    b.tell(1, 2, "b")
    b.bring(1, S, text="b")
    b.move(1, S, T)
    for _ in range(4):
        while packets := b.of_group(1):
            b.arrive(packets[0])
        for p in (*MEMBERS, T):
            for g, name in list(b.timers[p]):
                if g == 1:
                    b.ring(p, name, g)
    assert b.part(1, 1).settled == 1
    b.flight.clear()
    b.tell(1, 3, "c")
    finished(b, "a", "b", "c")


@every
def test_two_groups_that_move_together_keep_one_order(
    protocol: type[SequencingService],
) -> None:
    """Both stand still, then both go on."""
    b = Served(protocol, {1: (MEMBERS, S), 2: (MEMBERS, S)}, others=(T,))
    for p in MEMBERS:
        b.tell(p, 1, f"one {p}")
        b.tell(p, 2, f"two {p}")
    b.bring(1, S)
    books = b.freeze_all((1, 2), S, T)
    b.tell(2, 1, "between")
    b.succeed_all(T, books)
    for g in books:
        b.tell_moved(g, S)
    b.tell(3, 2, "after")
    flight: list[Packet] = b.flight[::-1]
    b.flight = flight
    b.settle()
    said = {f"{n} {p}" for n in ("one", "two") for p in MEMBERS} | {"between", "after"}
    for p in MEMBERS:
        assert set(b.texts(p)) == said
        assert len(b.texts(p)) == len(said)
    if protocol.exact:
        assert b.texts(1) == b.texts(2) == b.texts(3)
    assert b.faults == []


def test_the_former_sequencer_speaks_on_while_the_book_travels() -> None:
    b = Served(SequencingHybrid, {1: (MEMBERS, 1), 2: (MEMBERS, 1)}, options=Options())
    b.tell(1, 1, "a")
    book = b.freeze(1, 1, 2)
    b.tell(1, 1, "b")
    assert not b.find(1, 1)
    b.succeed(1, 2, book)
    b.tell_moved(1, 1)
    finished(b, "a", "b")


def test_the_former_sequencer_speaks_of_its_numbers_when_the_next_one_has_them() -> None:
    """Until then nobody else may have them, and the book may be lost with this process."""
    b = Served(SequencingHybrid, {1: (MEMBERS, 1), 2: (MEMBERS, 1)}, options=Options())
    b.tell(1, 1, "a")
    book = b.freeze(1, 1, 3)
    b.tell(1, 2, "b")
    assert not b.find(text="b")
    assert [waiting.payload for waiting in b.services[1].held_up()] == [b"b"]
    b.succeed(1, 3, book)
    b.tell_moved(1, 1)
    assert b.context("b") == {1: 1}
    finished(b, "a", "b")
