"""What must always hold of a group with a sequencer: each rule has a state that breaks it alone."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import pytest

from machines import Bench, G
from ordercast.core.events import View
from ordercast.core.protocol import Options
from ordercast.machinery.numbering import Numbered, Numbering
from ordercast.machinery.sequencer import Sequencer
from ordercast.protocols.sequencer_bb import Order, SequencerBB

SEQUENCER, MEMBER, OTHER, GUEST = 1, 2, 3, 9
FRAME = Numbered(1, 9, b"m")

Spoil = Callable[[SequencerBB], object]


def in_the_middle() -> Bench:
    """1 numbers, 2 and 3 are members, 9 is a guest: frames wait everywhere, for all reasons."""
    options = Options(max_held=16)
    b = Bench({p: SequencerBB(p, options) for p in (1, 2, 3, 9)})
    for p in b.machines:
        b.step(p, View(G, 1, (1, 2, 3), 1, guests=(9,)))
    b.say(1, "a", "b", "c", "d")
    b.say(9, "of a guest", "another")
    b.bring(9, 1, text="another")  # overtook
    b.bring(1, 2, text="a")
    b.bring(1, 2, header=Order(1, 1, 1, 0))
    b.bring(1, 2, text="c")
    b.bring(1, 2, header=Order(3, 1, 3, 0))
    b.bring(1, 2, header=Order(4, 1, 4, 0))
    b.say(2, "m")
    b.bring(2, 3, text="m")
    return b


def machine(b: Bench, p: int) -> SequencerBB:
    found = b.machines[p]
    assert isinstance(found, SequencerBB)
    return found


def sequencer(m: SequencerBB) -> Sequencer:
    assert m.sequencer is not None
    return m.sequencer


def book(m: SequencerBB) -> Numbering:
    return sequencer(m).book


def as_a_guest(m: SequencerBB) -> None:
    """Member 2."""
    guests = sequencer(m).guests
    guests.stable[MEMBER], guests.pending[MEMBER] = 0, deque()


def test_a_state_that_machines_reach_breaks_none() -> None:
    b = in_the_middle()
    for p in b.machines:
        machine(b, p).invariants()
    b.settle()
    for p in b.machines:
        machine(b, p).invariants()


SPOILT: list[tuple[int, str, Spoil]] = [
    (MEMBER, "stable is what was taken", lambda m: setattr(m.queue, "stable", 2)),
    (MEMBER, "only what was taken", lambda m: setattr(m.queue, "acked", 2)),
    (MEMBER, "what is in turn is delivered", lambda m: m.queue.arrived.update({2: FRAME})),
    (MEMBER, "what is delivered waits no more", lambda m: m.queue.arrived.update({1: FRAME})),
    (MEMBER, "what may be unstable is kept", lambda m: m.queue.kept.clear()),
    (SEQUENCER, "what is stable waits no more", lambda m: m.queue.own.appendleft((0, 0))),
    (MEMBER, "counts go on", lambda m: setattr(m.sent, "S_first", 2)),
    (MEMBER, "only what was sent is pending", lambda m: m.sent.pending.update({2: b"m"})),
    (GUEST, "only what was sent has a number", lambda m: setattr(m.sent, "numbered", 3)),
    (SEQUENCER, "every guest has both", lambda m: sequencer(m).guests.pending.clear()),
    (
        SEQUENCER,
        "what is stable is settled",
        lambda m: sequencer(m).guests.pending.update({9: deque([(1, 0)])}),
    ),
    (SEQUENCER, "what is stable has a number", lambda m: setattr(book(m), "told", 1)),
    (SEQUENCER, "nobody has more", lambda m: book(m).acks.marks.update({2: 5})),
    (SEQUENCER, "no number lacks", lambda m: book(m).history.pop(1)),
    (SEQUENCER, "a frame has one number", lambda m: book(m).number_of.update({(9, 9): 1})),
    (SEQUENCER, "what is in turn is numbered", lambda m: book(m).ahead.update({9: {1: b"m"}})),
    (SEQUENCER, "a guest is no member", as_a_guest),
    (OTHER, "room for so many", lambda m: setattr(m.apart, "limit", 0)),
    (MEMBER, "are put together", lambda m: m.apart.bodies.update({(1, 4): b"d"})),
    (MEMBER, "the leader of the view numbers", lambda m: setattr(m, "leader", 3)),
    (SEQUENCER, "and nobody else", lambda m: setattr(m, "sequencer", None)),
    (MEMBER, "members deliver", lambda m: setattr(m, "delivers", False)),
    (GUEST, "and nobody else", lambda m: setattr(m.queue, "top", 1)),
    (MEMBER, "what came back is not pending", lambda m: m.done.update({2: 1})),
]


@pytest.mark.parametrize(("p", "says", "spoil"), SPOILT, ids=[f"{p}: {s}" for p, s, _ in SPOILT])
def test_a_rule_notices_the_state_that_breaks_it(p: int, says: str, spoil: Spoil) -> None:
    spoilt = machine(in_the_middle(), p)
    spoil(spoilt)
    with pytest.raises(AssertionError, match=says):
        spoilt.invariants()
