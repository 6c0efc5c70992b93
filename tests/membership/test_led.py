"""Views led by one process: PROPOSE, REPORT, INSTALL, on a network that reorders and repeats."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from machines import Bench, G, led, stacks
from ordercast.core.events import Change, Consumed, Receive, View
from ordercast.core.protocol import Options, OrderingProtocol
from ordercast.membership.headers import Go, Install, NextView, Propose, Ready, Report, Unstable
from ordercast.membership.led import LedMembership
from ordercast.protocols.basic import Basic
from ordercast.protocols.fifo import Fifo, FifoData
from ordercast.protocols.reliable import Reliable
from ordercast.protocols.vector import CausalVector
from ordercast.stack.stack import Stack


def stack(b: Bench, p: int) -> Stack:
    found = b.machines[p]
    assert isinstance(found, Stack)
    return found


def membership(b: Bench, p: int) -> LedMembership:
    return stack(b, p).memberships[G]


# -- the pseudo-code ------------------------------------------------------------------------------


def test_the_first_members_come_in_by_a_real_change() -> None:
    b = led(Fifo, 1, 2, 3, leader=1)
    assert [b.story(p) for p in (1, 2, 3)] == [["123"]] * 3


def test_the_members_change_propose_goes_to_the_members_alive() -> None:
    b = led(Fifo, 1, 2, 3, leader=1, others=(4,))
    b.step(1, Change(G, joined=(4,), dead=(3,)))
    assert [p.dst for p in b.find(header=Propose)] == [2]


def test_propose_at_p_stop_sending_and_report_every_unstable_frame() -> None:
    b = led(Fifo, 1, 2, leader=1, others=(3,))
    b.say(2, "m")
    b.step(1, Change(G, joined=(3,)))
    b.bring(1, 2, Propose)
    assert membership(b, 2).blocked
    assert [(p.header, p.receive.payload) for p in b.find(2, 1, Unstable)] == [
        (Unstable(2, 2, 1, ()), b"m")
    ]
    assert b.find(2, 1, Report(2, 1, 0))


def test_no_install_before_all_have_reported_and_all_their_frames_are_here() -> None:
    b = led(Fifo, 1, 2, 3, leader=1)
    b.say(2, "m")
    b.crash(3)
    b.step(1, Change(G, dead=(3,)))
    b.bring(1, 2, Propose)
    b.bring(2, 1, Report)  # overtakes the frame it counts
    assert not b.find(header=Install)
    b.bring(2, 1, Unstable)
    assert b.find(1, 2, Install)


def test_install_waits_for_the_union() -> None:
    b = led(Fifo, 1, 2, 3, leader=1)
    b.say(3, "m")
    b.bring(3, 1)
    b.lose(3, 2)
    b.crash(3)
    b.step(1, Change(G, dead=(3,)))
    b.bring(1, 2, Propose)
    b.bring(2, 1, Report)
    b.bring(1, 2, Install)  # overtakes the union
    assert b.story(2) == ["123"]
    assert not b.find(2, 1, Ready)
    b.bring(1, 2, Unstable)
    assert b.story(2) == ["123"]  # another may lack it still
    b.bring(2, 1, Ready)
    b.bring(1, 2, Go)
    assert b.story(2) == b.story(1) == ["123", "m", "12"]


def test_after_install_everybody_sends_again() -> None:
    b = led(Fifo, 1, 2, 3, leader=1)
    b.crash(3)
    b.step(1, Change(G, dead=(3,)))
    b.carry()
    assert not membership(b, 1).blocked
    assert not membership(b, 2).blocked
    b.say(2, "m")
    b.carry()
    assert b.texts(1) == ["m"]


# -- interleavings --------------------------------------------------------------------------------


def test_a_last_packet_of_the_dead_that_comes_after_the_report_is_not_delivered() -> None:
    b = led(Fifo, 1, 2, 3, leader=1)
    b.say(3, "m")
    b.lose(3, 1)
    b.crash(3)
    b.step(1, Change(G, dead=(3,)))
    b.bring(1, 2, Propose)
    b.bring(3, 2, FifoData)  # nobody else will ever get it
    b.carry()
    assert b.story(1) == b.story(2) == ["123", "12"]


def test_what_a_live_member_sent_before_it_stopped_is_in_the_union() -> None:
    b = led(Fifo, 1, 2, 3, 4, leader=1)
    b.say(3, "m")
    b.crash(4)
    b.step(1, Change(G, dead=(4,)))
    b.bring(header=Propose)
    b.bring(3, 2, FifoData)  # after 2 has reported
    b.carry()
    assert [b.story(p) for p in (1, 2, 3)] == [["1234", "m", "123"]] * 3


def test_a_propose_that_overtakes_the_install_before_it_waits() -> None:
    b = led(Fifo, 1, 2, leader=1, others=(3, 4))
    b.step(1, Change(G, joined=(3,)), Change(G, joined=(4,)))
    b.bring(1, 2, Propose)
    b.bring(2, 1, Report)
    b.arrive(*b.find(1, 2, Propose), *b.find(1, 3, Propose))
    assert (b.story(2), b.story(3)) == (["12"], [])
    b.carry()
    assert b.story(2) == ["12", "123", "1234"]
    assert b.story(3) == ["123", "1234"]
    assert b.story(4) == ["1234"]


def test_of_two_proposals_that_overtook_the_install_the_later_attempt_counts() -> None:
    b = led(Fifo, 1, 2, leader=1, others=(3, 4))
    b.step(1, Change(G, joined=(3,)), Change(G, joined=(4,)))
    b.bring(1, 2, Propose)
    b.bring(2, 1, Report)
    for p in (2, 3):
        b.bring(1, p, Install)
        b.bring(p, 1, Ready)
    first = b.find(1, 3, Propose)
    b.crash(2)
    b.step(1, Change(G, dead=(2,)))  # the attempt for view 3 starts again without 2
    second = [p for p in b.find(1, 3, Propose) if p not in first]
    b.arrive(*second, *first)
    b.carry()
    assert b.story(1) == ["12", "123", "134"]
    assert b.story(3) == ["123", "134"]


def test_repeated_packets_change_nothing() -> None:
    b = led(Fifo, 1, 2, 3, leader=1)
    b.say(2, "m")
    b.crash(3)
    b.step(1, Change(G, dead=(3,)))
    seen = []
    while b.flight:
        packet = b.flight[0]
        b.repeat(packet)
        b.arrive(packet)
        seen.append(packet)
    b.repeat(*seen)
    b.carry()
    assert b.story(1) == b.story(2) == ["123", "m", "12"]
    assert not b.faults


def test_a_death_during_the_flush_starts_a_new_attempt_and_old_reports_are_ignored() -> None:
    b = led(Fifo, 1, 2, 3, 4, leader=1)
    b.crash(4)
    b.step(1, Change(G, dead=(4,)))
    b.bring(1, 2, Propose)
    old = b.find(2, 1, Report)
    b.crash(3)
    b.step(1, Change(G, dead=(3,)))
    b.arrive(*old)
    assert not b.find(header=Install)
    b.carry()
    assert b.story(1) == b.story(2) == ["1234", "12"]


def test_changes_that_come_during_a_flush_run_one_after_the_other() -> None:
    b = led(Fifo, 1, 2, leader=1, others=(3, 4))
    b.step(1, Change(G, joined=(3,)), Change(G, joined=(4,)), Change(G, left=(2,)))
    b.carry()
    assert b.story(1) == ["12", "123", "1234", "134"]
    assert b.story(2) == ["12", "123", "1234", "134"]
    assert b.story(3) == ["123", "1234", "134"]
    assert b.story(4) == ["1234", "134"]


def test_one_that_dies_before_its_turn_to_join_is_not_taken_in() -> None:
    b = led(Fifo, 1, 2, leader=1, others=(3, 4))
    b.step(1, Change(G, joined=(3,)), Change(G, joined=(4,)))
    b.crash(4)
    b.step(1, Change(G, dead=(4,)))
    b.carry()
    assert not membership(b, 1).plans
    assert b.story(1)[-1] == b.story(3)[-1] == "123"


def test_a_joiner_that_dies_during_its_own_join_is_left_out() -> None:
    b = led(Fifo, 1, 2, leader=1, others=(3,))
    b.step(1, Change(G, joined=(3,)))
    b.crash(3)
    b.step(1, Change(G, dead=(3,)))
    b.carry()
    assert b.story(1) == b.story(2) == ["12"]  # a new era, and nothing to tell


def test_a_joiner_hears_nothing_of_the_view_before_its_first() -> None:
    b = led(CausalVector, 1, 2, leader=1, others=(3,))
    b.say(1, "old")
    b.step(1, Change(G, joined=(3,)))
    b.carry()
    b.say(2, "new")
    b.carry()
    assert b.story(3) == ["123", "new"]
    assert b.story(1) == b.story(2) == ["12", "old", "123", "new"]


def test_a_frame_of_the_new_view_that_overtakes_the_install_of_a_joiner_waits() -> None:
    b = led(Fifo, 1, 2, leader=1, others=(3,))
    b.step(1, Change(G, joined=(3,)))
    b.bring(1, 2)
    b.bring(2, 1)
    for p in (2, 3):
        b.bring(1, p, Install)
        b.bring(p, 1, Ready)
    b.say(1, "new")
    b.bring(1, 3, FifoData)
    assert b.story(3) == []
    b.carry()
    assert b.story(3) == ["123", "new"]


def test_a_leaver_delivers_the_union_then_gets_its_last_view_and_nothing_after() -> None:
    b = led(Fifo, 1, 2, 3, leader=1)
    b.say(1, "m")
    b.step(1, Change(G, left=(3,)))
    b.carry()
    b.say(1, "after")
    b.carry()
    assert b.story(3) == ["123", "m", "12"]
    assert b.story(2) == ["123", "m", "12", "after"]


def test_the_leader_need_not_be_a_member() -> None:
    b = led(Fifo, 2, 3, leader=1, others=(4,))
    b.say(2, "m")
    b.step(1, Change(G, joined=(4,)))
    b.carry()
    assert b.log[1] == []
    assert b.story(2) == b.story(3) == ["23", "m", "234"]
    assert b.story(4) == ["234"]


def test_the_leader_may_leave_and_join_again_and_leads_all_the_time() -> None:
    b = led(Fifo, 1, 2, leader=1, others=(3,))
    b.step(1, Change(G, left=(1,)))
    b.carry()
    b.step(1, Change(G, joined=(3,)))
    b.carry()
    b.say(2, "without 1")
    b.step(1, Change(G, joined=(1,)))
    b.carry()
    b.say(1, "back")
    b.carry()
    assert b.story(1) == ["12", "2", "231", "back"]
    assert b.story(2) == ["12", "2", "23", "without 1", "231", "back"]


def test_what_a_former_stay_left_untaken_holds_up_no_acknowledgement_of_the_next() -> None:
    b = led(Fifo, 1, 2, leader=1, options=Options(ack_every=1, driver_consumes=True))
    b.say(2, "a", "b")
    b.carry()
    b.step(1, Change(G, left=(1,)))
    b.carry()
    b.step(1, Change(G, joined=(1,)))
    b.carry()
    b.say(2, "c")
    b.carry()
    b.step(1, Consumed(G, 1))  # "c": of "a" and "b" nothing is ever reported
    b.step(2, Consumed(G, 3))
    b.settle()
    assert b.stable[2] == 3


def test_what_was_delivered_in_the_view_before_may_be_taken_in_the_next() -> None:
    b = led(Fifo, 1, 2, 3, leader=1, options=Options(ack_every=1, driver_consumes=True))
    b.say(2, "a", "b")
    b.carry()
    b.step(1, Change(G, left=(3,)))
    b.carry()
    b.say(2, "c")
    b.carry()
    b.step(2, Consumed(G, 3))
    b.step(1, Consumed(G, 2))
    b.settle()
    assert b.stable[2] == 2
    b.step(1, Consumed(G, 1))
    b.settle()
    assert b.stable[2] == 3


def test_a_group_may_become_empty_and_be_joined_again() -> None:
    b = led(Fifo, 2, leader=1, others=(3,))
    b.step(1, Change(G, left=(2,)))
    b.carry()
    b.step(1, Change(G, joined=(3,)))
    b.carry()
    assert b.story(2) == ["2", ""]
    assert b.story(3) == ["3"]


def test_a_rejoiner_does_not_take_the_install_of_its_former_stay() -> None:
    b = led(Fifo, 1, 2, leader=1, others=(3,))
    b.step(1, Change(G, joined=(3,)))
    b.bring(1, 2)
    b.bring(2, 1)
    old = b.find(1, 3, Install)
    b.carry()
    b.step(1, Change(G, left=(3,)))
    b.carry()
    stack(b, 3).close(G)
    stack(b, 3).open(G, Fifo)
    b.repeat(*old)
    assert b.story(3) == ["123", "12"]
    b.step(1, Change(G, joined=(3,)))
    b.carry()
    assert b.story(3) == ["123", "12", "123"]


@pytest.mark.parametrize(
    "header", [Propose(9, ((G, 3),)), Install(1, 0, 0, (NextView(G, 2, (2,), (), 3),))]
)
def test_only_the_leader_may_speak_as_the_leader(header: Propose | Install) -> None:
    b = led(Fifo, 1, 2, 3, leader=1)
    before = stack(b, 2).fingerprint()
    b.step(2, Receive(3, G, 2, header))
    assert b.faults == [(2, 3, "process 3 speaks as the leader, which is 1")]
    assert stack(b, 2).fingerprint() == before


def test_only_the_leader_may_send_the_union() -> None:
    b = led(Fifo, 1, 2, 3, leader=1)
    b.step(1, Change(G, left=(3,)))
    b.bring(1, 2)
    b.step(2, Receive(3, G, 2, Unstable(2, 1, 1, ()), b"m"))
    assert b.faults == [(2, 3, "process 3 speaks as the leader, which is 1")]
    b.carry()
    assert b.story(2) == ["123", "12"]


def test_an_unstable_frame_of_a_stranger_is_a_fault_and_is_not_taken_up() -> None:
    b = led(Fifo, 1, 2, 3, leader=1)
    b.step(1, Change(G, left=(3,)))
    before = stack(b, 1).fingerprint()
    b.step(1, Receive(2, G, 2, Unstable(2, 99, 1, ()), b"m"))
    assert b.faults == [(1, 2, "a frame of process 99, which is not in the view")]
    assert stack(b, 1).fingerprint() == before
    b.carry()
    assert b.story(1) == b.story(2) == b.story(3) == ["123", "12"]


PAGES = (Basic, Reliable, Fifo, CausalVector)


def forged(protocol: type[OrderingProtocol], origin: int, n: int) -> Unstable:
    """As member 2 of 1, 2, 3 might make it up in the second attempt."""
    V = tuple(n if p == origin else 0 for p in (1, 2, 3))
    return Unstable(2, origin, n, V if protocol is CausalVector else ())


@pytest.mark.parametrize("protocol", PAGES)
@pytest.mark.parametrize(("origin", "n"), [(2, 10**9), (2, 0), (2, -1), (1, 1)])
def test_a_frame_that_cannot_be_is_the_fault_of_the_member_that_reports_it(
    protocol: type[OrderingProtocol], origin: int, n: int
) -> None:
    b = led(protocol, 1, 2, 3, leader=1)
    b.step(1, Change(G, left=(3,)))
    before = stack(b, 1).fingerprint()
    b.step(1, Receive(2, G, 2, forged(protocol, origin, n), b"m"))
    assert b.faults == [(1, 2, f"frame {n} of process {origin} cannot be one of this view")]
    assert stack(b, 1).fingerprint() == before
    b.carry()
    assert b.story(1) == b.story(2) == b.story(3) == ["123", "12"]


@pytest.mark.parametrize(
    ("protocol", "stamp"),
    [(Fifo, (0, 1, 0)), (CausalVector, ()), (CausalVector, (0, 2, 0)), (CausalVector, (0, 1))],
)
@pytest.mark.parametrize("leader", [0, 1])
def test_a_frame_with_a_stamp_of_the_wrong_form_is_the_fault_of_its_reporter(
    protocol: type[OrderingProtocol], stamp: tuple[int, ...], leader: int
) -> None:
    b = led(protocol, 1, 2, 3, leader=leader)
    b.step(leader, Change(G, left=(3,)))
    b.step(leader, Receive(2, G, 2, Unstable(2, 2, 1, stamp), b"m"))
    assert b.faults == [(leader, 2, "frame 1 of process 2 cannot be one of this view")]
    b.carry()
    assert b.story(1) == b.story(2) == b.story(3) == ["123", "12"]


@pytest.mark.parametrize("protocol", PAGES)
def test_survivors_skip_what_a_leader_without_marks_could_not_judge(
    protocol: type[OrderingProtocol],
) -> None:
    b = led(protocol, 1, 2, 3, leader=0)
    b.step(0, Change(G, left=(3,)))
    b.bring(0, 2, Propose)
    b.lose(2, 0, Report)
    b.step(0, Receive(2, G, 2, forged(protocol, 2, 10**9), b"m"), Receive(2, G, 2, Report(2, 1, 0)))
    b.carry()
    assert b.story(1) == b.story(2) == b.story(3) == ["123", "12"]
    assert [membership(b, p).blocked for p in (1, 2)] == [False, False]
    assert not b.faults
    b.say(1, "after")
    b.carry()
    assert b.texts(2) == ["after"]


@pytest.mark.parametrize("late", [False, True])
def test_more_unstable_frames_than_announced_are_the_fault_of_their_reporter(late: bool) -> None:
    b = led(Fifo, 1, 2, 3, leader=1)
    b.step(1, Change(G, left=(3,)))
    frames = [Receive(2, G, 2, forged(Fifo, 2, n), b"m") for n in (1, 2)]
    report = Receive(2, G, 2, Report(2, 1, 0))
    b.step(1, *([*frames, report] if late else [report, *frames]))
    assert [fault[:2] for fault in b.faults] == [(1, 2)]


@pytest.mark.parametrize("frames", [-1, 3])
def test_a_report_that_contradicts_the_one_before_is_a_fault(frames: int) -> None:
    b = led(Fifo, 1, 2, 3, leader=1)
    b.step(1, Change(G, left=(3,)))
    b.bring(1, 2, Propose)
    b.bring(2, 1, Report)
    b.step(1, Receive(2, G, 2, Report(2, frames, 0)))
    assert b.faults == [(1, 2, f"a report counts {frames} unstable frames; before, 0")]
    b.carry()
    assert b.story(1) == ["123", "12"]


def test_one_who_sends_fewer_frames_than_announced_is_seen_and_can_be_excluded() -> None:
    b = led(Fifo, 1, 2, 3, leader=1)
    assert stack(b, 1).waits_for(G) == ()
    b.step(1, Change(G, left=(3,)))
    assert stack(b, 1).waits_for(G) == (2, 3)
    b.bring(header=Propose)
    b.lose(2, 1, Report)
    b.step(1, Receive(2, G, 2, Report(2, 7, 0)))
    b.carry()
    assert stack(b, 1).waits_for(G) == (2,)
    assert stack(b, 2).waits_for(G) == stack(b, 2).waits_for(9) == ()
    b.crash(2)
    b.step(1, Change(G, dead=(2,)))
    b.carry()
    assert stack(b, 1).waits_for(G) == ()
    assert b.story(1) == ["123", "1"]


def test_a_change_that_changes_nothing_makes_no_view() -> None:
    b = led(Fifo, 1, 2, leader=1, others=(3,))
    b.step(1, Change(G), Change(G, joined=(2,)), Change(G, left=(9,)), Change(G, dead=(9,)))
    assert not b.flight
    b.step(1, Change(G, left=(2,), joined=(2,)))  # it left, and is back
    b.step(1, Change(G, joined=(1,)), Change(G, dead=(9,)), Change(G, joined=(3,)))
    b.carry()
    assert b.story(1) == ["12", "123"]


@pytest.mark.parametrize(
    "header", [Propose(1, ((G, 1),)), Install(1, 0, 0, (NextView(G, 1, (3,), (), 2),))]
)
def test_a_joiner_that_knows_the_leader_believes_nobody_else(header: Propose | Install) -> None:
    b = led(Fifo, 1, 2, leader=1, others=(3,))
    stack(b, 3).close(G)
    stack(b, 3).open(G, Fifo, leader=1)
    before = stack(b, 3).fingerprint()
    b.step(3, Receive(2, G, 2, header))
    assert b.faults == [(3, 2, "process 2 speaks as the leader, which is 1")]
    assert stack(b, 3).fingerprint() == before
    b.step(1, Change(G, joined=(3,)))
    b.carry()
    assert b.story(3) == ["123"]


@given(st.integers(0, 2**32))
def test_survivors_deliver_the_same_in_each_view_whatever_the_order_of_packets(seed: int) -> None:
    """Joins, leaves and deaths while everybody talks; any packet may be the next to arrive."""
    rng = random.Random(seed)
    b = led(rng.choice([Fifo, CausalVector]), 1, 2, 3, leader=rng.choice([0, 1]), others=(4, 5))
    leader = 0 if 0 in b.machines else 1
    changes = [Change(G, joined=(4,)), Change(G, left=(2,)), Change(G, dead=(3,)),
               Change(G, joined=(5,))]  # fmt: skip
    rng.shuffle(changes)
    for i in range(80):
        if rng.random() < 0.25:
            b.say(rng.choice([p for p in b.machines if p]), str(i))
        if changes and rng.random() < 0.1:
            change = changes.pop()
            if change.dead:
                b.flight = [p for p in b.flight if p.src != 3 or rng.random() < 0.5]
                b.crash(3)
            b.step(leader, change)
        if b.flight:
            packet = rng.choice(b.flight)
            if rng.random() < 0.1:
                b.repeat(packet)
            b.arrive(packet)
    while b.flight:
        b.arrive(rng.choice(b.flight))
    assert not b.faults
    assert not any(membership(b, p).blocked for p in b.machines)
    stays: dict[tuple[View, View], set[frozenset[object]]] = {}
    for p in b.machines:
        view, between = None, []
        for entry in b.log[p]:
            if not isinstance(entry, View):
                between.append(entry)
                continue
            if view is not None and p in view.members:
                stays.setdefault((view, entry), set()).add(frozenset(between))
            view, between = entry, []
    assert all(len(sets) == 1 for sets in stays.values())
    last = {p: [e for e in b.log[p] if isinstance(e, View)][-1:] for p in b.machines}
    newest = max((views[0] for views in last.values() if views), key=lambda view: view.number)
    assert all(last[p] == [newest] for p in newest.members)


def test_packets_for_a_group_that_is_not_open_are_ignored() -> None:
    b = stacks(Fifo, 1)
    b.step(1, Receive(2, 9, 1, Propose(1, ((9, 1),))), Receive(2, 9, 1, FifoData(1, 0)))
    assert (b.flight, b.faults) == ([], [])
