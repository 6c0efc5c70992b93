"""Nodes ask to be in a group, quit, and ask again, at the wrong moments: all get what they want."""

from __future__ import annotations

import pytest

from attack import MORE_NODES, Attack, G, H, is_book, plain, spoken_of, to_2, with_resilience
from machines import Packet
from ordercast.core.events import Multicast
from ordercast.core.protocol import Options
from ordercast.machinery.numbering import ViewEntry
from ordercast.machinery.sequencer_headers import Delivered
from ordercast.membership.cluster_headers import CLUSTER_GROUP, Unwant
from ordercast.membership.placing_headers import Inherited
from ordercast.membership.standing import Ask, GoAway, Quit
from ordercast.protocols.sequencing.headers import DoMulticast
from ordercast.protocols.sequencing.orders import (
    Sequencing,
    SequencingCausal,
    SequencingHybrid,
)
from ordercast.protocols.sequencing.service import SequencingService
from placings import scene
from placings.scene import Group
from restless import Restless

SEEDS = range(40)


def left_word(packet: Packet) -> bool:
    return packet.src == 3 and isinstance(packet.header, Delivered)


def view_to_3(packet: Packet) -> bool:
    return packet.dst == 3 and isinstance(packet.header, ViewEntry)


def two_groups(*, guests: tuple[int, ...] = ()) -> Attack:
    return Attack({H: Group((2, 3), 5, guests=guests), G: Group((2, 4), 6)}, (5, 6))


def is_settled(b: Attack, sequencer: int) -> bool:
    book = b.part(sequencer).book
    assert book is not None
    return book.stable == book.N and not book.joining and not book.leaving


def test_who_asks_to_be_in_while_it_leaves_comes_in_again() -> None:
    """And its last view is lost."""
    b = two_groups()
    b.command(3, Quit(H), Ask(b.entry, "member"))
    assert b.run_without(view_to_3)
    b.wait()
    b.say_to(2, H, "a")
    assert b.texts(3) == ["a"] and not b.faults
    b.wait()
    assert is_settled(b, 5)


def test_who_has_closed_the_group_comes_in_again() -> None:
    b = two_groups()
    b.leave(3)
    b.wait(3)
    assert b.close_if_left(3)
    b.join(3)
    b.say_to(2, H, "a")
    assert b.texts(3) == ["a"]


def test_who_asks_before_it_is_dismissed_comes_in_afterwards() -> None:
    b = spoken_of()
    late = b.leave(3, to_2)
    b.join(3, to_2)
    assert b.stacks[3].delayed == {H}
    b.flight += late
    b.carry()
    b.wait()
    assert not b.stacks[3].delayed
    b.say_to(2, H, "a")
    assert b.texts(3)[-1] == "a"


def test_who_was_never_let_in_and_asks_again_comes_in() -> None:
    """It gave up while its first wish waited for a hand-over."""
    b = Attack({H: Group((6,), 5), G: Group((2, 4, 6), 4)}, (4, 5, 6))
    books = b.migrate(6, is_book)
    b.stacks[3].open_group(b.entry)
    b.command(3, Ask(b.entry, "member"), Quit(H), Ask(b.entry, "member"))
    b.run_without(is_book)
    b.flight += books
    b.wait()
    b.say_to(6, H, "a")
    assert b.texts(3) == ["a"] and not b.faults


def test_so_does_one_whose_wishes_were_told_to_a_coordinator_that_died() -> None:
    b = plain()
    entry = scene.entry_of(9, SequencingHybrid)
    b.stacks[3].open_group(entry)
    b.command(3, Ask(entry, "member"), Quit(9), Ask(entry, "member"))
    b.end(1)
    b.wait(40)
    view = b.stacks[3].view(9)
    assert view is not None and view.members == (3,)


def test_so_does_one_that_was_alone_in_a_group_that_has_ended() -> None:
    """Its last view is slow, and a crash ends the group; it founds the group anew."""
    b = Attack({H: Group((3,), 5), G: Group((2, 3, 4), 6)}, (5, 6))
    b.command(3, Quit(H), Ask(b.entry, "member"))
    b.run_without(view_to_3)
    b.end(4)
    b.wait(40)
    view = b.stacks[3].view(H)
    assert view is not None and view.members == (3,)
    b.say_to(3, H, "a")
    assert b.texts(3) == ["a"]


def test_a_late_answer_is_to_another_wish() -> None:
    """3 was told twice that it is outside. The second time it is about to be let in."""
    b = Attack({H: Group((6,), 5), G: Group((2, 4, 6), 4)}, (4, 5, 6))
    books = b.migrate(6, is_book)
    answer = lambda p: is_book(p) or (p.dst == 3 and isinstance(p.header, Unwant))  # noqa: E731
    b.stacks[3].open_group(b.entry)
    first = b.leave(3, answer)
    b.ring(3, "tick", CLUSTER_GROUP)
    second = b.run_without(answer)
    assert first and second
    b.flight += first
    b.run_without(is_book)
    b.stacks[3].open_group(b.entry)
    b.command(3, Ask(b.entry, "member"), Quit(H))
    b.run_without(answer)
    b.flight += second
    b.run_without(is_book)
    b.flight += books
    b.carry()
    b.say_to(6, H, "a")
    b.wait(40)
    assert is_settled(b, 6) and b.part(6).latest_view(H).members == (6,)


def test_a_guest_that_quits_and_asks_again_has_one_stay_after_the_other() -> None:
    """5 handed H over, and has not heard that it is there; it asks to be a guest."""
    b = Attack({H: Group((2,), 5), G: Group((2, 3, 4), 6)}, (5, 6))
    told = lambda p: p.dst == 5 and isinstance(p.header, Inherited)  # noqa: E731
    views = lambda p: p.dst == 5 and isinstance(p.header, ViewEntry)  # noqa: E731
    late = b.migrate(6, told)
    b.stacks[5].open_group(b.entry)
    b.command(5, Ask(b.entry, "guest"), Quit(H), Ask(b.entry, "guest"))
    b.flight += late
    first, *_ = b.run_without(views)
    b.flight.append(first)
    b.run_without(views)
    b.wait()
    view = b.stacks[5].view(H)
    assert not b.faults and view is not None and view.guests == (5,)


# -- nobody waits for ever ------------------------------------------------------------------------


def test_who_left_finds_the_third_one_that_numbers_though_the_second_has_gone() -> None:
    b = spoken_of()
    b.leave(3, to_2)
    word = lambda p: to_2(p) or left_word(p)  # noqa: E731
    b.migrate(6, word)
    b.migrate(7, word)
    b.command(6, GoAway())
    b.run_without(word)
    b.crash(6)
    b.wait()
    assert not b.part(3).undismissed and b.stacks[3].owes_nothing()


def test_a_guest_that_left_and_numbers_the_group_dismisses_itself() -> None:
    b = plain(guests=(3,))
    b.leave(3, left_word)
    b.migrate(3)
    b.wait()
    b.join(3)
    b.say_to(2, H, "a")
    assert b.texts(3) == ["a"]


def test_what_was_said_to_a_group_and_had_not_left_goes_with_the_group() -> None:
    """3 numbers H. B waits for the number of A; 3 leaves H before it has one."""
    b = Attack({H: Group((2, 3), 3), G: Group((2, 3, 4), 6)}, ())
    late = lambda p: p.dst == 6 and isinstance(p.header, DoMulticast)  # noqa: E731
    b.step(3, Multicast(G, b"A"))
    held = b.run_without(late)
    b.say_to(3, H, "B", late)
    b.leave(3, late)
    b.flight += held
    b.say_to(3, G, "C")
    b.wait()
    assert b.texts(4) == ["A", "C"]


def test_what_waits_for_a_message_of_a_guest_goes_when_the_guest_goes() -> None:
    b = plain(guests=(3,))
    lost = lambda p: p.receive.group == H and isinstance(p.header, DoMulticast)  # noqa: E731
    b.say_to(3, H, "M", lost)
    b.say_to(3, G, "X", lost)
    b.leave(3, lost)
    b.wait()
    assert b.texts(4) == ["X"]


@pytest.mark.parametrize("stay", [False, True])
def test_what_nobody_is_left_to_deliver_is_stable(stay: bool) -> None:
    groups = {H: Group((3,), 5, guests=(4,)), G: Group((2, 4, 3), 6)}
    b = Attack(groups, (5, 6, 7), MORE_NODES, options=Options(bodies_stay=stay))
    word = b.leave(3, left_word)
    b.say_to(4, H, "M", left_word)
    if stay:
        b.migrate(7, left_word)
    b.flight += word
    b.wait()
    assert is_settled(b, 7 if stay else 5)
    b.say_to(4, G, "X")
    assert b.texts(2) == ["X"]
    b.command(5, GoAway())
    b.wait()
    assert 5 not in b.stacks[1].pids


# -- whatever is wished for, by chance ------------------------------------------------------------


@pytest.mark.parametrize("crash", [False, True])
@pytest.mark.parametrize(
    ("protocol", "options"),
    [
        (SequencingHybrid, Options()),
        (SequencingHybrid, Options(bodies_stay=True)),
        (Sequencing, Options()),
        (SequencingCausal, Options()),
    ],
    ids=["hybrid", "bodies_stay", "total", "causal_total"],
)
def test_all_get_what_they_wish_for(
    protocol: type[SequencingService], options: Options, crash: bool
) -> None:
    for seed in SEEDS:
        check(Restless(seed, protocol, options, crash=crash), seed)


@pytest.mark.parametrize("crash", [False, True])
def test_also_with_a_resilience(monkeypatch: pytest.MonkeyPatch, crash: bool) -> None:
    with_resilience(monkeypatch, 1)
    for seed in SEEDS:
        check(Restless(seed, SequencingHybrid, Options(), crash=crash), seed)


def check(run: Restless, seed: int) -> None:
    run.run()
    assert run.complaints() == [], f"seed {seed}"
