"""Schedules by which somebody tried to break the sequencing service, on whole clusters.

Group H is numbered by 5, group G elsewhere. 2 is in both: it must not have X, which was said in G,
without what X comes after.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from machines import Bench, Packet
from ordercast.core.events import Multicast
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import Options
from ordercast.machinery.numbering import ViewEntry
from ordercast.machinery.sequencer_headers import Delivered
from ordercast.membership.cluster_headers import Part
from ordercast.membership.placing_headers import Inherit, Inherited, InheritEntry
from ordercast.membership.standing import Ask, Broken, GoAway, Migrate, Quit
from ordercast.protocols.sequencing.headers import AskHeld
from ordercast.protocols.sequencing.orders import SequencingHybrid
from ordercast.protocols.sequencing.part import GroupPart
from ordercast.protocols.sequencing.service import SequencingService
from placings import scene
from placings.scene import Group, Scene
from sequencers import S, Served, T

H, G = 1, 2
NODES = (1, 2, 3, 4, 5, 6)
MORE_NODES = (*NODES, 7)
Which = Callable[[Packet], bool]


def nothing(packet: Packet) -> bool:
    return False


class Attack(Bench):
    """A cluster whose packets can be held up, or lost."""

    def __init__(
        self,
        groups: dict[GroupId, Group],
        daemons: tuple[ProcessId, ...],
        nodes: tuple[ProcessId, ...] = NODES,
    ) -> None:
        self.stacks = scene.first_stacks(
            Scene(SequencingHybrid, nodes, groups, (), daemons=daemons)
        )
        super().__init__(dict(self.stacks))

    def part(self, p: ProcessId) -> GroupPart:
        service = self.stacks[p].protocols[H]
        assert isinstance(service, SequencingService)
        return service.parts[H]

    def run_without(self, held_up: Which = nothing) -> list[Packet]:
        """Until nothing is under way; the packets that are held up."""
        found: list[Packet] = []
        while True:
            for packet in [p for p in self.flight if held_up(p)]:
                self.flight.remove(packet)
                found.append(packet)
            if not self.flight:
                return found
            self.arrive(self.flight[0])

    def say_to(self, p: ProcessId, g: GroupId, text: str, held_up: Which = nothing) -> None:
        self.step(p, Multicast(g, text.encode()))
        self.run_without(held_up)

    def join(self, p: ProcessId, held_up: Which = nothing, part: Part = "member") -> None:
        entry = scene.entry_of(H, SequencingHybrid)
        self.stacks[p].open_group(entry)
        self.step(p, Ask(entry, part))  # type: ignore[arg-type]
        self.run_without(held_up)

    def leave(self, p: ProcessId, held_up: Which = nothing) -> list[Packet]:
        self.step(p, Quit(H))  # type: ignore[arg-type]
        return self.run_without(held_up)

    def migrate(self, to: ProcessId, held_up: Which = nothing) -> list[Packet]:
        self.step(1, Migrate(H, to))  # type: ignore[arg-type]
        return self.run_without(held_up)

    def end(self, dead: ProcessId) -> None:
        """This one crashes, and the others go on."""
        self.crash(dead)
        self.step(1, Broken(dead))  # type: ignore[arg-type]
        self.carry()
        self.wait(8)

    def wait(self, rounds: int = 20) -> None:
        for _ in range(rounds):
            self.go_on(rounds=1)


def to_2(packet: Packet) -> bool:
    """Nothing of H comes to 2."""
    return packet.dst == 2 and packet.receive.group == H


def is_book(packet: Packet) -> bool:
    return isinstance(packet.header, Inherit | InheritEntry)


def plain(*, guests: tuple[ProcessId, ...] = ()) -> Attack:
    return Attack({H: Group((2,), 5, guests=guests), G: Group((2, 3, 4), 6)}, (5, 6))


def spoken_of() -> Attack:
    """2 said M in H, and 3, which has it, X in G. 2 does not have M itself."""
    b = Attack({H: Group((2, 3), 5), G: Group((2, 3, 4), 4)}, (4, 5, 6, 7), MORE_NODES)
    b.say_to(2, H, "M", to_2)
    b.say_to(3, G, "X", to_2)
    return b


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
    entry_of = scene.entry_of
    with_k = lambda g, protocol: msgspec.structs.replace(entry_of(g, protocol), durability=1)  # noqa: E731
    monkeypatch.setattr(scene, "entry_of", with_k)
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


# -- nobody waits for ever ------------------------------------------------------------------------


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
    b = Attack({H: Group((2, 3), 5), G: Group((2, 4), 6)}, (5, 6))
    late = b.leave(3, lambda p: p.src == 3 and isinstance(p.header, Delivered))
    books = b.migrate(6, is_book)
    b.flight += late
    b.run_without(is_book)
    b.step(3, GoAway())  # type: ignore[arg-type]
    b.run_without(is_book)
    b.crash(3)
    b.flight += books
    b.carry()
    b.say_to(2, H, "a")
    b.wait()
    book = b.part(6).book
    assert book is not None and book.stable == book.N and not book.leaving


def test_the_wish_of_one_that_has_gone_is_not_carried_out() -> None:
    b = Attack({H: Group((6,), 5), G: Group((2, 4, 6), 4)}, (4, 5, 6))
    books = b.migrate(6, is_book)
    b.join(3, is_book)
    b.step(3, GoAway())  # type: ignore[arg-type]
    b.run_without(is_book)
    b.crash(3)
    b.flight += books
    b.carry()
    b.say_to(6, H, "a")
    b.say_to(6, G, "X")
    b.wait()
    assert b.texts(4) == ["X"]
    assert b.part(6).latest_view(H).members == (6,)
