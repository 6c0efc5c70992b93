"""A member that relays what was never sent: nobody takes its word for the word of a living origin.

In these tests 1 is the origin, 2 and 3 are honest, and 4 lies.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import ordercast.machinery.unconfirmed as unconfirmed
from machines import Bench, G, bench, change, stacks
from ordercast.core.changing import Ending, FrameAt, FrameId, FramesEnd, FramesHeld, NextEra
from ordercast.core.events import Crashed, Kept, Multicast, Receive, Timer, View
from ordercast.core.protocol import Options, OrderingProtocol
from ordercast.core.uniting import unite
from ordercast.core.waiting import Awaited, Waiting
from ordercast.errors import PeerError
from ordercast.process.given import GivenGroups
from ordercast.protocols.reliable import Reliable, ReliableData
from ordercast.protocols.uniform import Uniform, UniformData
from ordercast.views.flush import FrameBody, FrameFlush

DATA: dict[type[OrderingProtocol], Any] = {Reliable: ReliableData, Uniform: UniformData}

each = pytest.mark.parametrize("protocol", DATA)
Page = type[OrderingProtocol]


def relay(protocol: Page, text: str, *, n: int = 1, liar: int = 4) -> Receive:
    """The liar says that frame n of 1 has this text."""
    return Receive(liar, G, 1, DATA[protocol](1, n, 0), text.encode())


def group(protocol: Page) -> Bench:
    """The four, each with its process around the machine."""
    b = stacks(protocol, 1, 2, 3, 4, network="N1")
    b.view(1, 2, 3, 4, leader=2)
    return b


def page(b: Bench, p: int) -> Any:
    machine = b.machines[p]
    return machine.groups.machines[G] if isinstance(machine, GivenGroups) else machine


def texts(b: Bench, *processes: int) -> list[list[str]]:
    return [b.texts(p) for p in processes]


# -- the origin lives ----------------------------------------------------------------------------


@each
def test_what_a_living_origin_never_sent_is_not_delivered(protocol: Page) -> None:
    b = group(protocol)
    for p in (2, 3):
        b.step(p, relay(protocol, "forged"), relay(protocol, "forged", n=2))
        assert page(b, p).held_back()[0] == Waiting(
            G, 1, 1, (Awaited("origin", G, 1, 1),), b"forged"
        )
    b.settle()
    assert texts(b, 1, 2, 3) == [[], [], []]
    assert not b.find(text="forged"), "a forgery is not passed on"


@each
def test_the_origin_alone_says_what_it_sent_and_a_forgery_is_noted_with_both_names(
    protocol: Page,
) -> None:
    b = group(protocol)
    b.step(2, relay(protocol, "forged"))
    b.say(1, "m")
    out = b.step(2, b.find(1, 2, text="m")[0].receive)
    assert out.notes == [("conflict", G, 1, 1, "process 4 relays another body")]
    assert out.conflicts == [(G, 1, 1, 4)]
    b.settle()
    assert texts(b, 1, 2, 3) == [["m"]] * 3
    assert (page(b, 2).held_back(), b.faults) == ([], [])


@each
def test_a_forgery_after_the_frame_is_noted_too(protocol: Page) -> None:
    b = group(protocol)
    b.say(1, "m")
    b.bring(1, 2)
    out = b.step(2, relay(protocol, "forged"))
    assert out.notes == [("conflict", G, 1, 1, "process 4 relays another body")]
    b.settle()
    assert texts(b, 1, 2, 3) == [["m"]] * 3


@each
def test_whoever_relays_two_bodies_of_one_frame_has_lied_for_certain(protocol: Page) -> None:
    b = group(protocol)
    b.step(2, relay(protocol, "forged"), relay(protocol, "forged"), relay(protocol, "again"))
    assert b.faults == [(2, 4, "two different bodies are relayed as frame 1 of process 1")]


@each
def test_the_origin_knows_who_changed_its_frame(protocol: Page) -> None:
    b = group(protocol)
    b.say(1, "m")
    b.step(1, relay(protocol, "forged"))
    assert b.faults == [(1, 4, "another body is said to be frame 1 of process 1")]


@each
def test_an_origin_that_sends_two_bodies_of_one_frame_is_at_fault(protocol: Page) -> None:
    b = group(protocol)
    b.step(2, relay(protocol, "m", liar=1), relay(protocol, "other", liar=1))
    assert b.faults == [(2, 1, "another body is said to be frame 1 of process 1")]


@each
def test_an_origin_that_tells_each_its_own_makes_nobody_blame_an_honest_relay(
    protocol: Page,
) -> None:
    b = group(protocol)
    b.step(2, relay(protocol, "one", liar=1))
    b.step(3, relay(protocol, "other", liar=1))
    b.bring(2, 3, text="one")
    b.bring(3, 2, text="other")
    assert b.faults == []


def test_who_relays_another_body_does_not_count_among_the_holders() -> None:
    b = group(Uniform)
    b.say(1, "m")
    b.step(2, relay(Uniform, "forged"), relay(Uniform, "forged", liar=3))
    b.bring(1, 2)
    assert b.texts(2) == []  # 1 and 2 hold it, of four
    b.step(2, relay(Uniform, "forged"))
    assert b.texts(2) == []
    b.step(2, relay(Uniform, "m", liar=3))
    assert b.texts(2) == ["m"]


def test_who_relayed_before_the_origin_came_is_a_holder() -> None:
    b = group(Uniform)
    b.say(1, "m")
    b.step(2, relay(Uniform, "m"))
    b.bring(1, 2, text="m")
    assert b.texts(2) == ["m"]


# -- junk is bounded -----------------------------------------------------------------------------


@each
@pytest.mark.parametrize(
    ("limit", "value", "size", "left"), [("MAX_APART", 3, 1, 3), ("MAX_APART_BYTES", 40, 10, 4)]
)
def test_a_relay_can_make_others_keep_so_much_and_no_more(
    protocol: Page,
    limit: str,
    value: int,
    size: int,
    left: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(unconfirmed, limit, value)
    b = group(protocol)
    for n in range(1, 20):
        b.step(2, relay(protocol, "x" * size, n=n))
    assert len(page(b, 2).unstable(G)) == left
    b.step(2, relay(protocol, "y", n=20, liar=3))  # the limit is one for each relay
    assert len(page(b, 2).unstable(G)) == left + 1
    assert b.faults == [], "an origin that keeps its frames from one would have others blamed"
    for n in range(1, 21):
        b.step(2, relay(protocol, str(n), n=n, liar=1))
    assert (page(b, 2).relayed[G].copies, b.faults) == ({}, [])
    b.step(2, relay(protocol, "x" * size, n=21))
    assert list(page(b, 2).relayed[G].copies[1]) == [21], "what was confirmed makes room"


@each
def test_a_number_far_ahead_is_not_kept(protocol: Page) -> None:
    b = bench(protocol, 1, 2, 3, 4, options=Options(max_held=5))
    before = page(b, 2).fingerprint()
    b.step(2, relay(protocol, "forged", n=6))
    assert page(b, 2).fingerprint() == before


# -- the origin has crashed ----------------------------------------------------------------------


@each
def test_when_the_driver_says_that_the_origin_has_crashed_a_relay_is_believed(
    protocol: Page,
) -> None:
    b = bench(protocol, 1, 2, 3, 4)
    b.say(1, "m")
    b.bring(1, 2)
    b.lose(src=1)
    b.bring(2, 3, text="m")
    assert b.texts(3) == []
    b.crash(1)  # 3 has a relay here, 4 has one under way
    b.carry()
    assert texts(b, 2, 3, 4) == [["m"]] * 3


@each
def test_survivors_deliver_the_same_of_what_was_relayed_of_a_dead_origin(protocol: Page) -> None:
    for one, other in (("this", "that"), ("that", "this")):
        b = group(protocol)
        b.step(2, relay(protocol, one))
        b.step(3, relay(protocol, other))
        b.crash(1)
        change(b, protocol, dead=(1,))
        assert b.texts(2) == b.texts(3)
        assert len(b.texts(2)) == 1


@each
def test_what_a_survivor_had_from_the_dead_origin_goes_before_what_was_relayed(
    protocol: Page,
) -> None:
    for forged in ("a", "b", "c"):  # whatever its digest is
        b = group(protocol)
        b.say(1, "m")
        b.bring(1, 2)
        b.step(3, relay(protocol, forged))
        b.lose(src=2)
        b.crash(1)
        change(b, protocol, dead=(1,))
        assert texts(b, 2, 3) == [["m"], ["m"]]


# -- a view changes, and the origin goes on ------------------------------------------------------


@each
def test_a_view_change_does_not_deliver_what_was_relayed_of_one_that_goes_on(
    protocol: Page,
) -> None:
    b = group(protocol)
    b.say(1, "m")
    b.bring(1, 4)
    for p in (2, 3):
        b.step(p, relay(protocol, "forged"), relay(protocol, "forged", n=2))
    change(b, protocol, left=(4,))
    assert texts(b, 1, 2, 3) == [["m"]] * 3


@each
def test_a_report_cannot_invent_a_frame_of_one_that_reports_too(protocol: Page) -> None:
    def held(*frames: FrameId) -> FramesHeld:
        return FramesHeld(1, frames, True)

    sent, forged = FrameId(1, 1), FrameId(1, 2)
    honest = {1: held(sent), 2: held(sent), 3: held()}
    ending = Ending(1, {**honest, 4: held(sent, forged)}, frozenset())
    [(_, end)] = unite(protocol, {G: ending})
    assert [(f.origin, f.n, f.holder) for f in end.frames] == [(1, 1, 1)], "its body is told by 1"
    without = {p: report for p, report in ending.held.items() if p != 1}
    [(_, end)] = unite(protocol, {G: msgspec.structs.replace(ending, held=without)})
    assert [f.n for f in end.frames] == [1, 2], "a dead origin cannot deny anything"


@each
def test_a_stamp_that_no_honest_report_has_does_not_come_first(protocol: Page) -> None:
    for false in ((), (-1,), (0,), (-1, 0), (2, 0), (0, 0, 0)):
        reports = {2: (0, 7), 4: false}
        held = {p: FramesHeld(1, (FrameId(1, 1, stamp),), True) for p, stamp in reports.items()}
        for ordered in (held, dict(reversed(held.items()))):
            [(_, end)] = unite(protocol, {G: Ending(1, ordered, frozenset({1}))})
            assert end.frames == (FrameAt(1, 1, (0, 7), 2),)


def stopped(protocol: Page) -> tuple[FrameFlush, Any]:
    """2, while a view changes because 1 has crashed; and the stamp of what 1 said as "m"."""
    machine = protocol(2)
    flush = FrameFlush(machine)
    view = View(G, 1, (1, 2, 3, 4), 2)
    flush.change(1, (NextEra(view, FramesEnd()),))
    machine.step([relay(protocol, "forged"), relay(protocol, "m", n=2, liar=1)])
    flush.stop((G,))
    return flush, unconfirmed.stamped(Kept(1, 1, (), b"m")).stamp


def ended(*frames: FrameAt) -> tuple[NextEra, ...]:
    return (NextEra(View(G, 2, (2, 3, 4), 2, era=2), FramesEnd(frames)),)


@each
def test_the_body_that_the_end_of_an_era_names_is_fetched_and_no_other_is_taken(
    protocol: Page,
) -> None:
    flush, stamp = stopped(protocol)
    flush.prepare(ended(FrameAt(1, 1, stamp, 3)))
    with pytest.raises(PeerError, match="another body than was reported as frame 1 of process 1"):
        flush.receive(Receive(3, G, 1, FrameBody(1, 1), b"other"))
    assert not flush.is_ready(G, FramesEnd())
    flush.receive(Receive(3, G, 1, FrameBody(1, 1), b"m"))
    assert flush.is_ready(G, FramesEnd())
    out = flush.protocol.out
    out.clear()
    flush.change(2, ended(FrameAt(1, 1, stamp, 3)))
    assert [d[4] for d in out.deliveries if isinstance(d, tuple)] == [b"m"]
    assert out.conflicts == [(G, 1, 1, 4)]


@each
def test_a_report_of_another_body_than_the_origin_sent_here_is_a_conflict(protocol: Page) -> None:
    flush, stamp = stopped(protocol)
    flush.prepare(ended(FrameAt(1, 2, stamp, 3)))
    assert (flush.protocol.out.conflicts, flush.is_ready(G, FramesEnd())) == ([], True)
    flush.prepare(ended(FrameAt(1, 2, (0, 1), 4)))
    assert flush.protocol.out.conflicts == [(G, 1, 2, 4)]


@each
def test_a_crash_of_another_makes_no_relay_believed(protocol: Page) -> None:
    b = bench(protocol, 1, 2, 3, 4)
    b.step(2, relay(protocol, "forged"), Crashed(G, 3))
    assert b.texts(2) == []


@each
def test_a_timer_or_a_word_of_its_own_confirms_nothing(protocol: Page) -> None:
    b = bench(protocol, 1, 2, 3, 4)
    b.step(2, relay(protocol, "forged"), Multicast(G, b"own"), Timer(G, "ack"))
    assert "forged" not in b.texts(2)
