"""The gate: nothing is handed over before enough members hold it."""

from __future__ import annotations

import pytest

from machines import Bench, G, change, stacks
from ordercast.core.durability import MAJORITY, holders_needed
from ordercast.core.events import Consumed, Cut, Flush, Multicast, Receive, View
from ordercast.core.protocol import Options, OrderingProtocol
from ordercast.core.waiting import NOBODY, Awaited
from ordercast.machinery.domain import AskHeld
from ordercast.process.given import GivenGroups
from ordercast.protocols.basic import Basic
from ordercast.protocols.cbcast import Cbcast
from ordercast.protocols.fifo import Fifo, FifoData
from ordercast.protocols.registry import PROTOCOLS
from ordercast.protocols.sequencer_pb import SequencerPB
from ordercast.reliability.gate import ASK, GATE_HEADERS
from ordercast.reliability.holders import AskHolding, Holding
from ordercast.wire.codec import ChannelCodec

X, Y = 1, 2

# The sequencing service counts the holders of its frames itself: it has no gate.
GATED = {name: page for name, page in PROTOCOLS.items() if page.together is None}

every_protocol = pytest.mark.parametrize("protocol", GATED.values(), ids=GATED)


def gated(
    protocol: type[OrderingProtocol], *members: int, resilience: int | None = 1, **options: int
) -> Bench:
    b = stacks(protocol, *members, options=Options(resilience=resilience, **options))
    b.view(*members)
    return b


def stack(b: Bench, p: int) -> GivenGroups:
    found = b.machines[p]
    assert isinstance(found, GivenGroups)
    return found


def overlapping(*, resilience: int | None, k_of_y: int | None = None) -> Bench:
    """Two groups of Cbcast: 1, 2, 3 in X; 1, 2, 4 in Y."""
    b = Bench({p: GivenGroups(p, options=Options(resilience=resilience)) for p in (1, 2, 3, 4)})
    groups = {X: (1, 2, 3), Y: (1, 2, 4)}
    for g, members in groups.items():
        for p in members:
            stack(b, p).open(g, Cbcast, durability=k_of_y if g == Y else None)
    for p in b.machines:
        b.step(p, *(View(g, 1, members, 1) for g, members in groups.items() if p in members))
    return b


# -- how many ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("durability", "members", "needed"),
    [
        (0, 3, 1), (1, 3, 2), (2, 3, 3), (2, 2, 2), (5, 1, 1), (None, 3, 1),
        (MAJORITY, 1, 1), (MAJORITY, 2, 2), (MAJORITY, 3, 2), (MAJORITY, 4, 3), (MAJORITY, 5, 3),
    ],
)  # fmt: skip
def test_more_than_k_members_of_a_view_or_all_must_hold_a_frame(
    durability: int | None, members: int, needed: int
) -> None:
    assert holders_needed(durability, members) == needed


# -- waiting for holders --------------------------------------------------------------------------


def test_a_frame_is_handed_over_when_more_than_k_members_hold_it() -> None:
    b = gated(Fifo, 1, 2, 3, 4, resilience=2)
    b.say(1, "m")
    assert b.texts(1) == []
    b.bring(1, 2, header=FifoData)
    b.bring(2, 1, header=Holding)
    assert b.texts(1) == []  # 1 and 2 hold it
    b.bring(1, 3, header=FifoData)
    b.bring(3, 1, header=Holding)
    assert b.texts(1) == ["m"]


def test_a_process_that_received_a_frame_holds_it_only_when_it_has_delivered_it() -> None:
    b = gated(Fifo, 1, 2)
    b.say(1, "a", "b")
    b.arrive(b.find(1, 2, text="b")[0])  # it waits for a: at a flush it might be dropped
    assert not b.find(2, 1, header=Holding)
    b.bring(1, 2, text="a")
    b.bring(2, 1, header=Holding)
    assert b.texts(1) == ["a", "b"]


@every_protocol
def test_a_group_without_a_resilience_pays_nothing(protocol: type[OrderingProtocol]) -> None:
    for resilience in (None, 0):
        b = gated(protocol, 1, 2, 3, resilience=resilience)
        b.say(2, "m")
        while b.flight:
            assert not isinstance(b.flight[0].header, GATE_HEADERS)
            b.arrive(b.flight[0])
        assert not any(name == ASK for timers in b.timers.values() for _, name in timers)


@every_protocol
def test_with_a_resilience_all_get_all_and_nothing_is_said_afterwards(
    protocol: type[OrderingProtocol],
) -> None:
    b = gated(protocol, 1, 2, 3, resilience=2)
    for i in range(20):
        b.say(1 + i % 3, str(i))
    b.settle()
    for p in (1, 2, 3):
        assert sorted(b.texts(p), key=int) == [str(i) for i in range(20)]
    assert not b.faults


def test_one_word_tells_of_all_that_came_together() -> None:
    b = gated(Fifo, 1, 2)
    b.say(1, *"abc")
    a, *rest = [packet.receive for packet in b.find(1, 2, header=FifoData)]
    b.step(2, a)
    b.step(2, *rest)
    words = [packet.header for packet in b.find(2, 1, header=Holding)]
    assert words == [Holding((1, 1)), Holding((1, 3))]


def test_words_that_overtake_each_other_do_not_take_back_what_was_said() -> None:
    b = gated(Fifo, 1, 2)
    b.say(1, "a", "b")
    b.step(1, Receive(2, G, 1, Holding((1, 2))), Receive(2, G, 1, Holding((1, 1))))
    assert b.texts(1) == ["a", "b"]


def test_a_lost_word_is_asked_for() -> None:
    b = gated(Fifo, 1, 2)
    b.say(1, "m")
    b.bring(1, 2, header=FifoData)
    b.lose(2, 1, header=Holding)
    b.ring(1, ASK)
    b.bring(1, 2, header=AskHolding)
    b.bring(2, 1, header=Holding)
    assert b.texts(1) == ["m"]
    b.ring(1, ASK)
    assert (G, ASK) not in b.timers[1]


def test_what_comes_after_a_long_wait_is_asked_for_as_soon_as_ever() -> None:
    b = gated(Fifo, 1, 2)
    b.say(1, "m")
    b.bring(1, 2, header=FifoData)
    b.lose(2, 1, header=Holding)
    for _ in range(4):
        b.ring(1, ASK)
        b.lose(1, 2, header=AskHolding)
    assert b.timers[1][G, ASK] > 4 * Options().retry_ms
    b.say(1, "n")
    b.ring(1, ASK)
    b.bring(1, 2, header=AskHolding)
    b.bring(2, 1, header=Holding)
    assert b.texts(1) == ["m"]
    assert b.timers[1][G, ASK] == Options().retry_ms


def test_only_members_hold_a_frame_for_the_group() -> None:
    b = stacks(Fifo, 1, 2, 3, options=Options(resilience=1))
    for p in (1, 2, 3):
        b.step(p, View(G, 1, (1, 2), 1, guests=(3,)))
    b.say(1, "m")
    b.step(1, Receive(3, G, 1, Holding((1, 1))))
    assert b.texts(1) == []


def test_what_was_handed_over_is_what_the_application_gets_to_consume() -> None:
    b = gated(SequencerPB, 1, 2, driver_consumes=True)
    b.say(1, "a", "b")
    b.arrive(*b.find(1, 2, text="a"))
    b.bring(2, 1, header=Holding)
    assert b.texts(1) == ["a"]
    b.step(1, Consumed(G, 1))
    protocol = stack(b, 1).groups.machines[G]
    assert protocol.queue.taken == 1  # type: ignore[attr-defined]


# -- views ----------------------------------------------------------------------------------------


@every_protocol
def test_a_flush_hands_over_what_waited_before_the_next_view(
    protocol: type[OrderingProtocol],
) -> None:
    b = gated(protocol, 1, 2, 3, resilience=2)
    b.crash(3)
    b.say(1, "m")
    b.go_on(rounds=3)
    assert b.story(1) == b.story(2) == ["123"]
    union = {(k.origin, k.n): k for p in (1, 2) for k in stack(b, p).unstable(G)}
    for p in (1, 2):
        b.step(p, Cut((Flush(G, tuple(union.values())),), (View(G, 2, (1, 2), 1, 2),)))
        assert b.story(p) == ["123", "m", "12"]


def test_a_frame_of_the_new_era_waits_though_it_came_with_the_cut() -> None:
    b = gated(Fifo, 1, 2, 3)
    b.step(1, Receive(2, G, 2, FifoData(1, 0), b"early"))
    b.step(1, Cut((Flush(G, ()),), (View(G, 2, (1, 2), 1, 2),)))
    assert b.story(1) == ["123", "12"]
    b.step(1, Receive(2, G, 2, Holding((2, 1))))
    assert b.story(1) == ["123", "12", "early"]


def test_a_word_of_an_era_that_has_not_begun_here_counts_when_it_begins() -> None:
    b = gated(Fifo, 1, 2)
    b.step(1, Receive(2, G, 2, Holding((1, 1))))
    b.step(1, Multicast(G, b"old"))
    assert b.texts(1) == []
    b.step(1, Cut((Flush(G, ()),), (View(G, 1, (1, 2), 1, 2),)))  # the same view, a new era
    assert b.texts(1) == ["old"]
    b.step(1, Multicast(G, b"new"))
    assert b.texts(1) == ["old", "new"]


def test_one_that_is_gone_is_not_waited_for() -> None:
    b = gated(SequencerPB, 1, 2, 3, resilience=2)
    b.say(1, "m")
    b.crash(3)
    b.go_on(rounds=5)
    assert b.story(1) == b.story(2) == ["123"]
    change(b, SequencerPB, dead=(3,))
    assert b.story(1) == b.story(2) == ["123", "m", "12"]


def test_one_that_leaves_waits_for_nobody_after_its_last_view() -> None:
    b = gated(SequencerPB, 1, 2, 3, resilience=2)
    b.say(1, "m")
    b.bring(1, 3, text="m")
    assert b.story(3) == ["123"]
    change(b, SequencerPB, left=(3,))
    assert b.story(3) == ["123", "m", "12"]
    b.settle()
    assert b.story(1) == b.story(2) == ["123", "m", "12"]


def test_closing_a_group_forgets_what_waits() -> None:
    b = gated(Fifo, 1, 2)
    b.say(1, "m")
    stack(b, 1).close(G)
    b.step(1, Receive(2, G, 1, Holding((1, 1))))
    assert b.texts(1) == [] and stack(b, 1).held_back() == []


# -- several groups -------------------------------------------------------------------------------


def test_the_order_across_groups_is_kept_by_what_waits() -> None:
    b = overlapping(resilience=None, k_of_y=1)
    b.step(4, Multicast(Y, b"a"))  # in Y one more must hold a frame
    b.bring(4, 1, text="a")
    b.step(1, Multicast(X, b"b"))  # in X nobody
    assert b.texts(1) == []
    assert stack(b, 1).held_back()[1].awaits == (Awaited("frame", Y, 4, 1),)
    b.bring(4, 2, text="a")
    b.bring(2, 1, header=Holding)
    assert b.texts(1) == ["a", "b"]


def test_the_send_rule_waits_for_k_holders_and_asks_nobody() -> None:
    b = overlapping(resilience=2)
    b.step(1, Multicast(X, b"a"))
    b.step(1, Multicast(Y, b"b"))
    assert not b.find(header=AskHeld)
    b.bring(1, 2, text="a")
    b.bring(2, 1, header=Holding)
    assert not b.find(text="b")
    waiting = [waiting for waiting in stack(b, 1).held_back() if waiting.payload == b"b"]
    assert waiting[0].awaits == (Awaited("copies", X, NOBODY, 1),)
    b.bring(1, 3, text="a")
    b.bring(3, 1, header=Holding)
    assert b.find(1, 4, text="b")


def test_the_send_rule_counts_a_word_that_came_before_its_era() -> None:
    b = overlapping(resilience=1)
    b.step(1, Receive(2, X, 2, Holding((1, 1))))
    b.step(1, Cut((), tuple(View(g, 1, (1, 2), 1, 2) for g in (X, Y))))
    b.step(1, Multicast(X, b"a"))
    b.step(1, Multicast(Y, b"b"))
    assert b.find(text="b")


def test_the_rule_is_the_same_after_a_leader_has_left_and_come_back() -> None:
    b = Bench({p: GivenGroups(p, options=Options(resilience=2)) for p in (1, 2, 3)})
    for g in (X, Y):
        for p in (1, 2, 3):
            stack(b, p).open(g, Cbcast)
            b.step(p, View(g, 1, (1, 2, 3), 1))
    ends = {2: (Flush(X, ()), Flush(Y, ())), 3: (Flush(Y, ()),)}  # of 1, by era
    for era, members in ((2, (2, 3)), (3, (1, 2, 3))):
        views = (View(X, era, members, 1, era), View(Y, 1, (1, 2, 3), 1, era))
        for p in (1, 2, 3):
            b.step(p, Cut(ends[era] if p == 1 else ends[2], views))
        b.settle()
    b.step(1, Multicast(X, b"a"))
    b.step(1, Multicast(Y, b"b"))
    b.bring(1, 2, text="a")
    b.bring(2, 1)
    assert not b.find(text="b") and not b.find(header=AskHeld)
    b.settle()
    assert b.texts(1) == b.texts(2) == ["a", "b"]


# -- what is said of it ---------------------------------------------------------------------------


def test_a_frame_that_waits_says_how_many_copies_it_lacks() -> None:
    b = gated(Basic, 1, 2, 3, resilience=2)
    b.say(1, "m")
    [waiting] = stack(b, 1).held_back()
    assert (waiting.group, waiting.sender, waiting.n, waiting.payload) == (G, 1, 1, b"m")
    assert waiting.awaits == (Awaited("copies", G, NOBODY, 2),)
    assert list(stack(b, 1).waiting_frames()) == [waiting.frame]


def test_a_twin_of_a_stack_goes_its_own_way() -> None:
    b = overlapping(resilience=1)
    b.step(1, Multicast(X, b"m"))
    one = stack(b, 1)
    twin = one.copy()
    assert twin.fingerprint() == one.fingerprint()
    assert twin.groups.gates.of[X] is twin.groups.gates.of[Y] is not one.groups.gates.of[X]
    assert twin.step([Receive(2, X, 1, Holding((1, 1)))]).deliveries
    assert len(one.held_back()) == 1


# -- peers that do wrong --------------------------------------------------------------------------


@pytest.mark.parametrize("marks", [(1,), (1, -1), (-2, 1), (1, 2**60)])
def test_a_word_that_cannot_be_is_a_fault(marks: tuple[int, ...]) -> None:
    b = gated(Fifo, 1, 2)
    b.say(1, "m")
    b.step(1, Receive(2, G, 1, Holding(marks)))
    assert [(who, peer) for who, peer, _ in b.faults] == [(1, 2)]
    assert b.texts(1) == []


def test_a_word_in_a_group_without_a_resilience_is_a_fault() -> None:
    b = gated(Fifo, 1, 2, resilience=None)
    b.step(1, Receive(2, G, 1, Holding((1, 1))))
    assert b.faults == [(1, 2, "Holding is no header of this protocol")]


def test_words_have_these_bytes() -> None:
    codec = ChannelCodec(GATE_HEADERS)
    assert codec.encode(7, 3, Holding((2, 5)), b"")[-4:].hex() == "91920205"
    assert codec.encode(7, 3, AskHolding(), b"")[-1:].hex() == "90"
