"""The two-layered group (002). Processes 1, 2, 3 are one subgroup, 4, 5, 6 the other.

1 and 4 are the gateways. The errata have schedules of their own (`tests/errata`).
"""

from __future__ import annotations

import msgspec
import pytest

from faulty_machines.schedules_002 import PREACK, answer_outlives_its_question, confirm, flush
from machines import Bench, G, bench
from ordercast.core.events import Consumed, Receive, Timer, View
from ordercast.core.protocol import Options
from ordercast.core.waiting import Awaited, Holdings, Waiting
from ordercast.core.whereabouts import Whereabouts
from ordercast.protocols.two_layered.group import TwoLayered
from ordercast.protocols.two_layered.headers import (
    Announcement,
    Confirmation,
    Found,
    Global,
    GlobalConfirmation,
    GlobalFound,
    GlobalLost,
    GlobalStatus,
    Local,
    Lost,
)
from ordercast.simulation import Heal, Partition, SimulationConfig, Uniform, Workload, simulate
from ordercast.trace.oracle import judge

SIX = (1, 2, 3, 4, 5, 6)


def six(options: Options | None = None) -> Bench:
    return bench(TwoLayered, *SIX, options=options)


def machine(b: Bench, p: int) -> TwoLayered:
    found = b.machines[p]
    assert isinstance(found, TwoLayered)
    return found


def everywhere(b: Bench) -> list[list[str]]:
    return [b.texts(p) for p in b.machines]


# -- the rules ------------------------------------------------------------------------------------


def test_a_message_takes_three_hops_and_comes_to_each_once() -> None:
    b = six()
    b.say(2, "a")
    assert {(p.dst, type(p.header)) for p in b.find(text="a")} == {(1, Local), (3, Local)}
    b.bring(2, text="a")
    assert [(p.dst, p.header) for p in b.find(text="a")] == [(4, Global(1, 2, 1, (2, 1)))]
    b.bring(1, 4, text="a")
    assert {(p.dst, p.header) for p in b.find(text="a")} == {
        (q, Local(1, 2, 1, (2, 1, 1), (2, 1))) for q in (5, 6)
    }
    b.settle()
    assert everywhere(b) == [["a"]] * 6
    assert b.stable[2] == 1 and not b.faults


def test_two_layered_D1_a_gateway_forwards_nothing_before_what_it_comes_after() -> None:
    b = six()
    b.say(2, "a")
    b.bring(2, 3, text="a")
    b.say(3, "b")
    b.bring(3, 1, text="b")
    assert not b.find(1, 4)
    missing = (Awaited("frame", G, 2, 1),)
    assert machine(b, 1).held_back() == [Waiting(G, 3, 1, missing, b"b")]
    b.bring(2, 1, text="a")
    assert [p.receive.payload for p in b.find(1, 4)] == [b"a", b"b"]


def test_two_layered_D2_the_own_entry_of_a_global_message_is_above_its_number() -> None:
    b = six()
    b.say(2, "a", "b")
    b.bring(2, 1)
    assert [p.header for p in b.find(1, 4)] == [
        Global(1, 2, 1, (2, 1)),
        Global(2, 2, 2, (3, 1)),
    ]


def test_two_layered_D3_what_a_gateway_says_is_a_local_and_a_global_message_at_once() -> None:
    b = six()
    b.say(1, "a")
    assert {(p.dst, p.header) for p in b.find(text="a")} == {
        (2, Local(1, 1, 1, (2, 1, 1), (2, 1))),
        (3, Local(1, 1, 1, (2, 1, 1), (2, 1))),
        (4, Global(1, 1, 1, (2, 1))),
    }
    b.settle()
    assert everywhere(b) == [["a"]] * 6 and b.stable[1] == 1


def test_two_layered_D4_confirmations_go_to_the_gateway_which_tells_its_subgroup() -> None:
    b = six()
    b.say(1, "a")
    b.bring(1, 2, text="a")
    b.bring(1, 3, text="a")
    b.ring(2, "ack")
    assert [(p.dst, p.header) for p in b.find(2)] == [(1, Confirmation((2, 1, 1), ((),)))]
    b.settle()
    assert machine(b, 2).reached == [(2, 1, 1)]


def test_after_a_few_messages_a_confirmation_does_not_wait() -> None:
    b = six(Options(ack_every=3))
    b.say(1, "a", "b", "c")
    b.bring(1, 2)
    assert [p.header for p in b.find(2, 1)] == [Confirmation((4, 1, 1), ((),))]


def test_two_layered_D5_a_confirmation_is_repeated_until_all_have_all() -> None:
    b = six()
    b.say(2, "a")
    b.lose(text="a")
    b.ring(2, "status")
    assert [p.header for p in b.find(2, 1)] == [Confirmation((1, 2, 1), ((),))]
    b.bring(2, 1)
    b.ring(1, "gap")
    assert [(p.dst, p.header) for p in b.find(1, header=Lost)] == [(2, Lost(1, (1,)))]
    b.settle()
    assert everywhere(b) == [["a"]] * 6
    assert not any(machine(b, p).running for p in SIX)


def test_words_slow_down_while_nothing_moves() -> None:
    b = six()
    b.say(2, "a")
    b.crash(1)
    delays = []
    for _ in range(7):
        delays.append(b.timers[2][G, "status"])
        b.ring(2, "status")
        b.flight.clear()
    assert delays == [50, 100, 200, 400, 800, 1600, 1600]


def test_two_layered_D6_a_gateway_confirms_what_it_has_not_what_a_source_knew() -> None:
    b = six()
    b.say(2, "a")
    b.bring(2, 1, text="a")
    b.bring(1, 4, text="a")
    b.say(5, "b")
    b.bring(5, 4, text="b")
    assert [p.header for p in b.find(4, 1)] == [Global(1, 5, 1, (1, 2))]  # 5 knew nothing of a
    b.bring(4, 1, text="b")
    b.bring(4, 5, text="a")
    b.bring(4, 6, text="a")
    b.ring(5, "ack")
    b.ring(6, "ack")
    b.bring(dst=4, header=Confirmation)
    b.ring(4, "ack")
    assert [p.header for p in b.find(4, 1)] == [GlobalConfirmation((2, 2), ((2, 1),))]


def test_two_layered_D7_what_some_application_has_not_taken_is_kept() -> None:
    b = six(Options(driver_consumes=True))
    b.say(2, "a")
    b.carry()
    for p in SIX[:-1]:
        b.step(p, Consumed(G, 1))
    b.go_on(rounds=4)
    assert machine(b, 3).holdings(G) == Holdings(0, 1) and b.stable[2] == 0
    b.step(6, Consumed(G, 1))
    b.settle()
    assert [machine(b, p).holdings(G) for p in SIX] == [Holdings(0, 0)] * 6
    assert [machine(b, p).main.store for p in (1, 4)] == [[{}, {}]] * 2
    assert b.stable[2] == 1


# -- losses ---------------------------------------------------------------------------------------


def test_a_gap_is_asked_for_after_a_while_and_filled_with_a_copy() -> None:
    b = six()
    b.say(2, "a", "b")
    b.lose(2, 3, text="a")
    b.bring(2, 3, text="b")
    b.ring(3, "gap")
    b.bring(3, 2, Lost)
    assert [p.header for p in b.find(2, 3)] == [Found(1, Local(1, 2, 1, (1, 2, 1), (2, 1)))]
    b.bring(2, 3)
    assert b.texts(3) == ["a", "b"]


def test_what_others_confirm_shows_a_loss_and_one_who_has_it_is_asked() -> None:
    b = six()
    b.say(2, "a")
    b.lose(2, 3, text="a")
    b.bring(2, 1, text="a")
    b.crash(2)
    b.say(1, "b")
    b.bring(1, 3, text="b")
    assert machine(b, 3).held_back()[0].awaits == (Awaited("frame", G, 2, 1),)
    b.ring(3, "gap")
    assert [(p.dst, p.header) for p in b.find(3, header=Lost)] == [(1, Lost(1, (1,)))]
    b.bring(3, 1, Lost)
    b.bring(1, 3)
    assert b.texts(3) == ["a", "b"]


def test_a_global_message_that_was_lost_is_asked_for_at_a_gateway_that_has_it() -> None:
    b = bench(TwoLayered, *range(1, 10))
    b.say(1, "a")
    b.lose(1, 7, text="a")
    b.bring(1, 4, text="a")
    b.say(4, "b")
    b.bring(4, 7, text="b")
    b.crash(1)
    assert machine(b, 7).held_back()[0].awaits == (Awaited("relay", G, 1, 1),)
    b.ring(7, "global gap")
    assert [(p.dst, p.header) for p in b.find(7, header=GlobalLost)] == [(4, GlobalLost(0, (1,)))]
    b.bring(7, 4, GlobalLost)
    assert [p.header for p in b.find(4, 7, GlobalFound)] == [
        GlobalFound(0, Global(1, 1, 1, (2, 1, 1)))
    ]
    b.bring(4, 7, GlobalFound)
    assert b.texts(7) == ["a", "b"]


def test_who_asks_in_vain_asks_the_next_one_and_less_often() -> None:
    b = bench(TwoLayered, *SIX, options=Options(gap_ms=100))
    b.say(2, "a", "b")
    b.lose(2, 3, text="a")
    b.bring(2, 1)
    b.say(1, "c")
    b.bring(1, 3, text="c")
    asked, delays = [], []
    for _ in range(4):
        delays.append(b.timers[3][G, "gap"])
        b.ring(3, "gap")
        (request,) = b.find(3, header=Lost)
        asked.append(request.dst)
        b.lose(3, header=Lost)
    assert asked == [1, 2, 1, 2]
    assert delays == [133, 133, 233, 433]


def test_copies_have_a_limit_in_a_while() -> None:
    b = six()
    b.say(2, *(str(i) for i in range(1500)))
    b.flight.clear()
    for first in range(1, 1500, 256):
        b.step(2, Receive(3, G, 1, Lost(1, tuple(range(first, first + 256)))))
    assert len(b.find(2, 3, Found)) == 1024
    b.ring(2, "copies")
    b.step(2, Receive(3, G, 1, Lost(1, (1500,))))
    assert len(b.find(2, 3, Found)) == 1025


# -- levels ---------------------------------------------------------------------------------------


def test_a_pre_acknowledged_message_is_delivered_once_all_have_accepted_it() -> None:
    b = six(PREACK)
    b.say(2, "a")
    b.bring(2, text="a")
    b.bring(1, 4, text="a")
    b.bring(4, 5, text="a")
    (late,) = b.find(4, 6, text="a")
    b.flight.remove(late)
    confirm(b)
    assert everywhere(b) == [[]] * 6
    assert machine(b, 2).held_back()[0].awaits == (Awaited("confirmation", G, 2, 1),)
    b.flight.append(late)
    confirm(b)
    assert everywhere(b) == [["a"]] * 6 and b.stable[2] == 1


def test_two_layered_D10_delivered_once_all_know_that_all_have_it() -> None:
    b = six(Options(delivery_level="ack"))
    b.say(2, "a")
    while b.flight or any((G, "ack") in timers for timers in b.timers.values()):
        confirm_without(b, Announcement, dst=3)
    assert [machine(b, p).reached[0] for p in (2, 3, 5)] == [(1, 2, 1), (1, 1, 1), (2, 1, 1)]
    assert everywhere(b) == [[]] * 6  # 3 does not know it yet, so nobody delivers
    b.settle()
    assert everywhere(b) == [["a"]] * 6


def confirm_without(b: Bench, header: type, dst: int) -> None:
    """One round of packets and words; of this kind none comes to this process."""
    if b.find(dst=dst, header=header):
        b.lose(dst=dst, header=header)
    for packet in list(b.flight):
        b.arrive(packet)
    for p, timers in b.timers.items():
        if (G, "ack") in timers:
            b.ring(p, "ack")


@pytest.mark.parametrize("level", ["preack", "ack"])
def test_at_a_view_change_the_level_is_reached_by_all_who_go_on(level: str) -> None:
    b = six(Options(delivery_level=level))
    b.say(2, "a")
    b.bring(2, text="a")
    b.flight.clear()
    b.crash(1)
    flush(b, 2, 3, 4, 5, 6)
    assert everywhere(b) == [["a"]] * 5


# -- views ----------------------------------------------------------------------------------------


def test_two_layered_D8_the_next_view_names_the_next_gateway_and_counts_anew() -> None:
    b = six()
    b.say(2, "a")
    b.bring(2, 1, text="a")
    b.bring(1, 4, text="a")
    b.crash(1)
    b.flight.clear()
    flush(b, 2, 3, 4, 5, 6)
    assert everywhere(b) == [["a"]] * 5
    assert [machine(b, p).layout.gateways for p in (2, 6)] == [(2, 4), (2, 4)]
    assert b.stable[2] == 1
    b.say(3, "b")
    b.bring(3, 2, text="b")
    assert [p.header for p in b.find(2, 4)] == [Global(1, 3, 1, (2, 1))]
    b.settle()
    assert everywhere(b) == [["a", "b"]] * 5 and b.stable[3] == 1


def test_two_layered_D9_what_waits_is_not_handed_round() -> None:
    b = answer_outlives_its_question(TwoLayered)
    assert everywhere(b) == [[]] * 4
    b = six()
    b.say(2, "a", "b")
    b.bring(2, 1, text="b")
    assert machine(b, 1).unstable(G) == ()
    assert [kept.n for kept in machine(b, 2).unstable(G)] == [1, 2]


def test_a_gateway_that_offers_itself_is_taken_before_the_first_of_the_view() -> None:
    b = Bench({p: TwoLayered(p) for p in (1, 2, 3)})
    for p in (1, 2, 3):
        machine(b, p).locate({1: Whereabouts("x"), 2: Whereabouts("x", gateway=True)})
    b.view(1, 2, 3)
    assert machine(b, 3).layout.subgroups == ((2, 1), (3,))
    b.say(1, "a")
    b.settle()
    assert everywhere(b) == [["a"]] * 3


def test_one_that_left_is_silent_and_one_that_was_told_late_minds_nothing() -> None:
    b = six()
    b.say(2, "a")
    b.step(6, View(G, 2, SIX[:-1], 1, 2))
    b.step(6, Timer(G, "ack"), Timer(G, "status"), Timer(G, "gap"))
    assert not b.find(6)
    assert machine(b, 6).held_back() == []


def test_a_subgroup_that_is_cut_off_goes_on_alone_and_gets_the_rest_afterwards() -> None:
    cut = (Partition(((0, 1, 2),), at_ms=2), Heal(at_ms=400))
    for seed in range(3):
        config = SimulationConfig(
            protocol=TwoLayered,
            members=6,
            messages=10,
            delay=Uniform(500, 3000),
            workload=Workload(reply=0.8, depth=3),
            faults=cut,
            sites=("tokyo",) * 3 + ("lisbon",) * 3,
            seed=seed,
        )
        outcome = simulate(config)
        assert outcome.quiescent
        found = judge(outcome.events(), only=("causal.group", "agreement"))
        assert {one.verdict for one in found.values()} == {"ok"}, f"seed {seed}"


@pytest.mark.parametrize("level", ["causal", "preack", "ack"])
@pytest.mark.parametrize("consume_ms", [None, 3.0])
def test_every_level_keeps_the_order_and_comes_to_rest(level: str, consume_ms: float) -> None:
    for seed in range(2):
        config = SimulationConfig(
            protocol=TwoLayered,
            members=9,
            messages=6,
            loss=0.15,
            duplicate=0.1,
            delay=Uniform(500, 5000),
            workload=Workload(reply=0.8, depth=4),
            options=Options(delivery_level=level),
            consume_ms=consume_ms,
            seed=seed,
        )
        outcome = simulate(config)
        assert (outcome.ended, outcome.first_faults) == ("quiescent", ()), f"seed {seed}"
        wanted = (*TwoLayered.declaration.promises, "agreement")
        kept = {name: one.verdict for name, one in judge(outcome.events(), only=wanted).items()}
        assert {kept[name] for name in wanted} == {"ok"}, f"seed {seed}: {kept}"


# -- what no honest process does ------------------------------------------------------------------

A = Local(1, 2, 1, (1, 2, 1), (2, 1))  # of 2, right
M = Global(1, 5, 1, (1, 2))  # of gateway 4, right


def changed(message: msgspec.Struct, **fields: object) -> msgspec.Struct:
    return msgspec.structs.replace(message, **fields)


LIES = {
    "from another subgroup": (5, A),
    "in the name of another": (2, changed(A, sp=3)),
    "of nobody": (1, changed(A, sp=77, rsq=(2, 1, 1))),
    "a frame with another number": (2, changed(A, n=2)),
    "a short vector": (2, changed(A, rsq=(1, 2))),
    "a long RSQ": (2, changed(A, RSQ=(2, 1, 1))),
    "its own entry too low": (2, changed(A, rsq=(1, 1, 1))),
    "a number far away": (2, changed(A, seq=99_999, n=99_999, rsq=(1, 100_000, 1))),
    "our own message that was never sent": (2, changed(A, rsq=(1, 2, 9))),
    "global to a local process": (4, M),
    "a confirmation to a local process": (2, Confirmation((1, 1, 1), ((),))),
    "an announcement of a local process": (2, Announcement((1, 1, 1), ((1, 1, 1),))),
    "too many stages": (1, Announcement((1, 1, 1), ((1, 1, 1), (1, 1, 1)))),
    "all have what is not here": (1, Announcement((1, 1, 1), ((1, 2, 1),))),
    "a copy of no column": (1, Found(9, A)),
    "a request for no column": (1, Lost(-1, (1,))),
    "a frame out of turn": (1, Local(1, 5, 2, (2, 1, 1), (1, 2))),
}
LIES_TO_A_GATEWAY = {
    "global of a local process": (5, M),
    "global of a process elsewhere": (4, changed(M, SP=2)),
    "taken but not accepted": (2, Confirmation((1, 1, 1), ((1, 2, 1),))),
    "too few stages": (2, Confirmation((1, 1, 1), ())),
    "a subgroup ahead of its gateway": (4, GlobalStatus((1, 1), ((2, 1),))),
    "a copy of our own": (4, GlobalFound(0, Global(1, 2, 1, (2, 1)))),
    "a request for no subgroup": (4, GlobalLost(2, (1,))),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_local_process_blames_a_peer_for(lie: str) -> None:
    src, header = LIES[lie]
    b = six()
    b.step(3, Receive(src, G, 1, header, b"m"))
    assert [(who, of) for who, of, _ in b.faults] == [(3, src)]
    assert b.texts(3) == []


@pytest.mark.parametrize("lie", LIES_TO_A_GATEWAY)
def test_a_gateway_blames_a_peer_for(lie: str) -> None:
    src, header = LIES_TO_A_GATEWAY[lie]
    b = six()
    b.step(1, Receive(src, G, 1, header, b"m"))
    assert [(who, of) for who, of, _ in b.faults] == [(1, src)]
    assert b.texts(1) == []


def test_a_gateway_does_not_pass_on_what_another_sends_out_of_turn_and_blames_that_one() -> None:
    b = six()
    b.step(1, Receive(4, G, 1, Global(1, 5, 2, (1, 2)), b"the second frame of 5"))
    assert [(who, of) for who, of, _ in b.faults] == [(1, 4)]
    assert not b.find(1, text="the second frame of 5")
