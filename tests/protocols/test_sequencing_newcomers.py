"""Who comes into a group late holds nothing from before, and nobody waits for it to."""

from __future__ import annotations

import msgspec
import pytest

from ordercast.core.events import Change
from ordercast.core.ids import ProcessId
from ordercast.core.protocol import Options
from ordercast.protocols.sequencing.headers import AskHeld
from ordercast.protocols.sequencing.orders import SequencingCausal, SequencingHybrid
from ordercast.protocols.sequencing.service import SequencingService
from sequencers import Served, T

causal = pytest.mark.parametrize("protocol", [SequencingHybrid, SequencingCausal])


def newcomer(protocol: type[SequencingService] = SequencingHybrid) -> Served:
    """1 numbers group 1, and said a, which nobody else has. Then 3 came in, and 2 does not know."""
    groups = {1: ((1, 2), 1), 2: ((1, 2), T)}
    b = Served(protocol, groups, others=(3,), options=Options())
    b.tell(1, 1, "a")
    b.lose(1, 2)
    b.change(1, Change(1, joined=(3,)))
    b.lose(1, 2)
    b.bring(1, 3)
    b.bring(3, 1)  # it says at once that it is in
    return b


def held(b: Served, p: ProcessId = 1) -> int:
    return b.part(p, 1).held_up_to


@causal
def test_sequencing_D8_the_word_of_a_newcomer_is_not_about_what_was_before_it(
    protocol: type[SequencingService],
) -> None:
    """If 1 died after b, 2 would have b without a: 3, which lives, has never had a."""
    b = newcomer(protocol)
    b.tell(1, 2, "b")
    assert not b.find(text="b")
    assert b.find(1, 2, AskHeld)  # and not 3
    b.settle()
    assert (b.texts(1), b.texts(2), b.texts(3)) == (["a", "b"], ["a", "b"], [])
    assert b.faults == []


def test_nor_does_it_count_where_several_must_hold_a_message() -> None:
    b = newcomer()
    service = b.services[1]
    service.count_holders(1, 1)
    b.tell(1, 2, "b")
    service.held_at(1, 3, 2)
    assert service.copies_missing(1) == 1
    service.held_at(1, 2, 1)
    assert service.copies_missing(1) == 0


def test_it_counts_once_another_has_what_was_before() -> None:
    b = newcomer()
    b.tell(1, 1, "c")
    b.part(1, 1)._is_held(1, 3, 3)  # 3 has c
    assert held(b) == 0
    b.part(1, 1)._is_held(1, 2, 2)  # 2 has a, and the view with 3
    assert held(b) == 3


def test_nobody_waits_for_what_only_those_who_are_gone_would_need() -> None:
    b = newcomer()
    b.tell(1, 2, "b")
    b.change(1, Change(1, dead=(2,)))
    b.bring(1, 3)
    b.bring(3, 1)  # it has the view without 2
    assert b.find(text="b")


def test_a_newcomer_that_leaves_does_not_count_as_one_who_was_always_there() -> None:
    b = newcomer()
    b.change(1, Change(1, left=(3,)))
    b.bring(1, 3)
    b.bring(3, 1)
    part = b.part(1, 1)
    assert part.book is not None and 3 not in part.book.acks.marks
    part._look_what_is_held(1)
    assert held(b) == 0


@pytest.mark.parametrize(("who", "far"), [(1, 2), (3, 0)])
def test_the_next_sequencer_knows_who_came_in_when(who: ProcessId, far: int) -> None:
    """2 numbers from now on, and one of the others says that it has 2 numbers."""
    b = newcomer()
    state, entries = b.freeze(1, 1, 2)
    assert state.began == ((3, 1),)
    acks = tuple((p, 2 * (p == who)) for p in (1, 2, 3))
    b.succeed(1, 2, (msgspec.structs.replace(state, acks=acks), entries))
    assert held(b, 2) == far
