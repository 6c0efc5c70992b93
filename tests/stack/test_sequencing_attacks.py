"""Schedules by which somebody tried to break the sequencing service, on whole clusters: what is
lost with a crash, and who waits for ever."""

from __future__ import annotations

import pytest

from attack import Attack, G, H, is_book, plain, spoken_of, to_2, with_resilience
from ordercast.core.protocol import Options
from ordercast.machinery.numbering import ViewEntry
from ordercast.machinery.sequencer_headers import Delivered
from ordercast.membership.placing_headers import Inherited
from ordercast.membership.standing import Broken, GoAway
from ordercast.protocols.sequencing.headers import AskHeld
from ordercast.protocols.sequencing.orders import SequencingHybrid
from placings.scene import Group
from sequencers import S, Served, T

# -- no gap in a causal order ---------------------------------------------------------------------


def test_sequencing_D8_a_newcomer_does_not_speak_of_what_is_lost_with_what_was_before_it() -> None:
    b = plain()
    b.say_to(2, H, "A", to_2)
    b.join(3, to_2)
    b.say_to(3, H, "M", to_2)
    b.say_to(3, G, "X", to_2)
    assert b.texts(3) == ["M"] and not b.texts(4)
    b.end(5)
    assert "X" not in b.texts(2)


def test_with_a_resilience_newcomers_do_not_vouch_for_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with_resilience(monkeypatch, 1)
    b = plain()
    b.say_to(2, H, "A", to_2)
    b.join(3, to_2)
    b.join(4, to_2)
    b.say_to(2, H, "B", to_2)
    assert not b.texts(3) and not b.texts(4)  # A is with 5 alone, and B is lost with it
    b.end(5)
    assert b.texts(2) == ["A", "B"]


def test_a_guest_that_becomes_a_member_waits_for_what_it_said_before() -> None:
    b = plain(guests=(3,))
    b.say_to(3, H, "M", to_2)
    b.join(3, to_2)
    b.say_to(3, G, "X", to_2)
    assert not b.texts(4)


def test_a_guest_does_not_rely_on_a_sequencer_that_is_alone_in_the_group() -> None:
    b = Attack({H: Group((5,), 5, guests=(3,)), G: Group((2, 3, 4), 6)}, (5, 6))
    b.say_to(3, H, "M")
    b.say_to(3, G, "X")
    assert b.texts(5) == ["M"] and not b.texts(4)
    b.end(5)
    b.join(2)
    b.wait()
    assert b.texts(4) == ["X"]
    assert b.texts(2) in (["X"], ["M", "X"])


def test_copies_are_kept_of_what_one_delivered_that_has_left_since() -> None:
    b = Attack({H: Group((2, 3), 5), G: Group((2, 3, 4), 6)}, (5, 6))
    b.say_to(3, H, "M", to_2)
    b.say_to(3, G, "X", to_2)
    b.leave(3, to_2)
    b.migrate(3, to_2)
    assert b.stacks[5].leads(H)  # it has copies
    b.end(3)
    assert b.texts(2) == ["M", "X"]


def test_late_word_of_another_hand_over_is_void() -> None:
    """5 handed H over to 6, and hands it over to 3 now."""
    b = spoken_of()
    late = b.migrate(6, lambda p: to_2(p) or (p.src == 6 and isinstance(p.header, Inherited)))
    late = [packet for packet in late if not to_2(packet)]
    copies = [packet for packet in late if packet.dst == 5]
    b.flight += [packet for packet in late if packet.dst != 5]
    b.run_without(to_2)
    b.migrate(7, to_2)
    b.migrate(5, to_2)
    b.migrate(3, lambda p: to_2(p) or (p.dst == 3 and is_book(p)))
    b.flight += copies
    b.run_without(to_2)
    assert b.part(5).legacy
    b.end(3)
    assert b.texts(2) == ["M", "X"]


def test_a_guest_that_missed_a_view_does_not_count_who_came_in_with_it() -> None:
    b = plain(guests=(3,))
    b.say_to(3, H, "M", to_2)
    lost = lambda p: to_2(p) or (p.dst == 3 and isinstance(p.header, ViewEntry))  # noqa: E731
    b.join(4, lost)
    b.join(6, to_2)
    assert b.part(3).came_in.keys() == {4, 6}


# -- who leaves takes nothing along ---------------------------------------------------------------


def test_sequencing_D10_who_left_and_asks_to_be_in_again_still_has_what_it_had() -> None:
    b = spoken_of()
    b.leave(3, to_2)
    b.join(3, to_2)
    b.end(5)
    assert b.texts(2) == ["M", "X"]
    b.wait()
    b.say_to(2, H, "N")
    assert b.texts(3)[-1] == "N"  # it is in


def test_who_left_is_needed_until_another_has_what_it_had() -> None:
    b = spoken_of()
    late = [packet for packet in b.leave(3, to_2) if packet.receive.group == H]
    assert b.stacks[3].leads(H) and not b.stacks[3].owes_nothing()
    b.flight += late
    b.wait()
    assert b.texts(2) == ["M", "X"]
    assert not b.stacks[3].leads(H) and b.stacks[3].owes_nothing()


def test_one_who_leaves_does_not_count_for_another_who_leaves() -> None:
    """3 and 4 have M, and go one after the other; 2 has nothing of it."""
    b = Attack({H: Group((2, 3, 4), 5), G: Group((2, 3), 6)}, (5, 6))
    b.say_to(2, H, "M", to_2)
    b.say_to(3, G, "X", to_2)
    for p in (3, 4):
        b.leave(p, to_2)
    assert b.stacks[3].leads(H) or b.stacks[4].leads(H)
    b.end(5)
    assert b.texts(2) == ["M", "X"]


def test_who_left_finds_the_one_that_numbers_now() -> None:
    b = Attack({H: Group((2, 3), 5), G: Group((2, 4), 6)}, (5, 6))
    b.leave(3, lambda p: p.src == 3 and isinstance(p.header, Delivered))
    b.migrate(6, lambda p: p.src == 3 and isinstance(p.header, Delivered))
    b.wait()
    book = b.part(6).book
    assert book is not None and not book.leaving
    assert not b.stacks[3].leads(H)


def test_who_leaves_while_it_numbers_keeps_what_it_had_for_the_next_sequencer() -> None:
    b = spoken_of()
    b.migrate(3, to_2)
    b.leave(3, to_2)
    b.migrate(6, to_2)
    assert not b.close_if_left(3)
    b.end(6)
    assert b.texts(2) == ["M", "X"]


def test_copies_are_kept_of_what_one_had_whose_last_view_comes_with_the_book() -> None:
    b = spoken_of()
    b.leave(3, lambda p: to_2(p) or (p.dst == 3 and isinstance(p.header, ViewEntry)))
    b.migrate(3, to_2)
    b.end(3)
    assert b.texts(2) == ["M", "X"]


def test_with_a_resilience_one_that_left_has_what_its_driver_has_not_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """M is with 2 and 3, and 3 has left; 4 must have it before 3 hands it over."""
    with_resilience(monkeypatch, 2)
    b = Attack({H: Group((2, 3, 4), 5), G: Group((1, 6), 6)}, (5, 6))
    to_4 = lambda p: p.dst == 4 and p.receive.group == H  # noqa: E731
    b.say_to(2, H, "M", to_4)
    b.leave(3, to_4)
    for name in ("ack", "repeat"):
        for p in (2, 3):
            if (H, name) in b.timers[p]:
                b.ring(p, name, H)
        b.run_without(to_4)
    assert b.texts(3) == []
    b.crash(5, 2)
    for dead in (5, 2):
        b.command(1, Broken(dead))
    b.carry()
    b.wait(12)
    assert b.texts(3) == b.texts(4) == ["M"]


def test_a_guest_that_left_does_not_speak_of_what_only_the_sequencer_has() -> None:
    b = plain(guests=(3,))
    b.say_to(3, H, "M", to_2)
    b.leave(3, to_2)
    b.say_to(3, G, "X", to_2)
    assert not b.texts(4)


# -- nobody waits for ever ------------------------------------------------------------------------


def test_the_last_word_of_one_who_left_may_be_lost() -> None:
    b = Attack({H: Group((2, 3), 5), G: Group((2, 4), 6)}, (5, 6))
    b.leave(3, lambda p: p.src == 3 and isinstance(p.header, Delivered))
    if not b.stacks[3].leads(H):  # as a node does
        b.stacks[3].close(H)
    b.say_to(2, H, "a")
    b.wait()
    book = b.part(5).book
    assert book is not None and book.stable == book.N


def test_the_copies_go_when_the_last_other_member_leaves() -> None:
    b = spoken_of()
    b.migrate(3, to_2)
    assert not b.stacks[5].owes_nothing()
    b.leave(2, to_2)
    b.wait()
    assert b.stacks[5].owes_nothing()


def test_the_copies_go_when_the_group_has_come_back_by_another_way() -> None:
    b = spoken_of()
    b.migrate(3, to_2)
    b.migrate(6, lambda p: to_2(p) or (p.dst == 3 and isinstance(p.header, Inherited)))
    b.migrate(7, to_2)
    b.migrate(3, to_2)
    b.wait()
    assert b.part(5).copies == {}


ALONE = Options(driver_consumes=True)  # and nobody does: no acknowledgement comes by itself


def test_a_question_that_was_lost_is_asked_again() -> None:
    b = Served(SequencingHybrid, {1: ((1, 2), 1), 2: ((1, 2), T)}, options=ALONE)
    b.tell(1, 1, "a")
    b.carry()
    b.tell(1, 2, "b")
    b.lose(header=AskHeld)
    b.go_on(rounds=20)
    assert b.texts(2) == ["a", "b"]


def test_a_sequencer_asks_anew_when_the_group_has_come_back() -> None:
    b = Served(SequencingHybrid, {1: ((1, 2), 1), 2: ((1, 2), T)}, options=ALONE)
    for text, group in (("a", 1), ("b", 2)):
        b.tell(1, group, text)
        b.carry()
    b.move(1, 1, T)
    b.carry()
    b.move(1, T, 1)
    b.carry()
    b.tell(1, 2, "c")
    b.go_on(rounds=20)
    assert b.texts(2) == ["a", "b", "c"]


def test_a_sequencer_that_is_no_member_asks_for_what_it_numbered() -> None:
    groups = {1: ((1, 2), T), 2: ((1, T), S), 3: ((2, T), S)}
    b = Served(SequencingHybrid, groups, options=ALONE)
    b.tell(1, 1, "a")
    b.carry()
    b.tell(1, 2, "x")
    b.carry()
    b.tell(T, 3, "y")
    b.go_on(rounds=20)
    assert b.texts(2) == ["a", "y"]


def test_one_that_goes_away_while_the_book_travels_is_not_waited_for() -> None:
    """It was let in, and never heard of it."""
    b = Attack({H: Group((2,), 5), G: Group((2, 4), 6)}, (5, 6))
    b.join(3, lambda p: p.dst == 3 and isinstance(p.header, ViewEntry))
    books = b.migrate(6, is_book)
    b.command(3, GoAway())
    b.run_without(is_book)
    assert 3 not in b.stacks[1].pids
    b.crash(3)
    b.flight += books
    b.carry()
    b.say_to(2, H, "a")
    b.wait()
    book = b.part(6).book
    assert book is not None and book.stable == book.N and not book.joining


def test_the_wish_of_one_that_has_gone_is_not_carried_out() -> None:
    b = Attack({H: Group((6,), 5), G: Group((2, 4, 6), 4)}, (4, 5, 6))
    books = b.migrate(6, is_book)
    b.join(3, is_book)
    b.command(3, GoAway())
    b.run_without(is_book)
    b.crash(3)
    b.flight += books
    b.carry()
    b.say_to(6, H, "a")
    b.say_to(6, G, "X")
    b.wait()
    assert b.texts(4) == ["X"]
    assert b.part(6).latest_view(H).members == (6,)
