"""Views of groups that hang together: one leader, one cut, and what a peer cannot do to it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pytest

from machines import Bench
from ordercast.core.events import Change, Multicast, Receive, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.numbers import MAX_COUNT
from ordercast.core.protocol import OrderingProtocol
from ordercast.membership.headers import Install, NextView, Propose, Report, Unstable
from ordercast.protocols.block_total import BlockTotal
from ordercast.protocols.cbcast import Cbcast
from ordercast.protocols.fast import Fast
from ordercast.protocols.fast_p import FastP
from ordercast.protocols.slow import Slow
from ordercast.stack.stack import Stack

X, Y, Z = 1, 2, 3
LEADER = 0


def stack(bench: Bench, p: ProcessId) -> Stack:
    found = bench.machines[p]
    assert isinstance(found, Stack)
    return found


def led_groups(
    protocol: type[OrderingProtocol], groups: Mapping[GroupId, tuple[ProcessId, ...]]
) -> Bench:
    """Stacks with all groups open, the members of each in its first view."""
    everybody = dict.fromkeys((LEADER, *(p for members in groups.values() for p in members)))
    bench = Bench({p: Stack(p) for p in everybody})
    for g, members in groups.items():
        for p in dict.fromkeys((LEADER, *members)):
            stack(bench, p).open(g, protocol)
        bench.step(LEADER, View(g, 0, (), LEADER))
    for g, members in groups.items():
        bench.step(LEADER, Change(g, joined=members))
        bench.carry()
    return bench


def die_while_another_leaves(bench: Bench, *, dead: ProcessId, leaves: ProcessId) -> None:
    """The leader alone gets what the dead has said, once in each group; then one cut."""
    for src, dst in ((dead, LEADER), (LEADER, dead), (dead, LEADER)):
        bench.bring(src=src, dst=dst)
    bench.lose(src=dead)
    bench.crash(dead)
    bench.step(LEADER, Change(X, left=(leaves,)))
    bench.step(LEADER, Change(X, dead=(dead,)))
    bench.settle()


@pytest.mark.parametrize("protocol", [Slow, BlockTotal])
def test_the_last_words_of_one_that_dies_are_not_lost_because_another_leaves(
    protocol: type[OrderingProtocol],
) -> None:
    # 3 says m2 in X, then m3 in Y, and dies. 0 holds both and has delivered neither; 4 leaves X in
    # the same cut. It has sent nothing that m2 could depend on: its report says so.
    bench = led_groups(protocol, {X: (0, 1, 3, 4), Y: (0, 1, 3)})
    bench.step(4, Multicast(X, b"m1"))
    bench.settle()
    bench.step(3, Multicast(X, b"m2"), Multicast(X, b"m2 again"), Multicast(Y, b"m3"))
    die_while_another_leaves(bench, dead=3, leaves=4)
    assert bench.texts(0) == bench.texts(1) == ["m1", "m2", "m2 again", "m3"]
    assert bench.story(4)[-3:] == ["m2", "m2 again", "01"]


def test_nor_where_they_depend_on_a_number_that_it_used_in_another_group() -> None:
    # 4 said m1 in Z, and is silent in X: 0 waits for its word there before it delivers m2.
    bench = led_groups(FastP, {X: (0, 1, 3, 4), Y: (0, 1, 3), Z: (3, 4)})
    bench.step(4, Multicast(Z, b"m1"))
    bench.bring(src=4, dst=3)
    bench.step(3, Multicast(X, b"m2"), Multicast(Y, b"m3"))
    die_while_another_leaves(bench, dead=3, leaves=4)
    assert bench.texts(0) == bench.texts(1) == ["m2", "m3"]
    assert bench.texts(4) == ["m1", "m2"]


# -- what a peer cannot do ------------------------------------------------------------------------


def test_an_install_without_a_view_is_a_fault_whoever_sends_it() -> None:
    bench = led_groups(Cbcast, {X: (0, 1, 2)})
    before = stack(bench, 1).fingerprint()
    bench.step(1, Receive(2, X, 1, Install(99, 0, 0, ())))
    assert bench.faults == [(1, 2, "an INSTALL without a view")]
    assert stack(bench, 1).fingerprint() == before


def test_one_that_has_a_leader_believes_nobody_else_about_a_group_that_it_joins() -> None:
    bench = led_groups(Cbcast, {X: (0, 1, 2), Y: (0, 2)})
    stack(bench, 1).open(Y, Cbcast)
    before = stack(bench, 1).fingerprint()
    bench.step(1, Receive(2, Y, 9, Install(99, 0, 0, (NextView(Y, 9, (1, 2), (), 9),))))
    assert bench.faults == [(1, 2, "process 2 speaks as the leader, which is 0")]
    assert stack(bench, 1).fingerprint() == before


X_NEXT, Y_NEXT = NextView(X, 2, (0, 1), (), 9), NextView(Y, 2, (0, 1), (), 9)
WRONG = {
    "not all that change together": Install(9, 0, 0, (X_NEXT,)),
    "one of them twice": Install(9, 0, 0, (X_NEXT, Y_NEXT, X_NEXT)),
    "one that is not open": Install(9, 0, 0, (X_NEXT, Y_NEXT, NextView(7, 1, (0, 1), (), 2))),
    "one that is open, without me": Install(9, 0, 0, (X_NEXT, Y_NEXT, NextView(Z, 1, (0,), (), 2))),
    "with subgroups of others": Install(
        9, 0, 0, (X_NEXT, NextView(Y, 2, (0, 1), (), 9, ((0,), (2,))))
    ),
    "with guests": Install(9, 0, 0, (X_NEXT, NextView(Y, 2, (0, 1), (2,), 9))),
    "numbers that cannot be": Install(9, 0, MAX_COUNT + 1, (X_NEXT, Y_NEXT)),
}


@pytest.mark.parametrize("install", WRONG.values(), ids=WRONG)
def test_an_install_that_cannot_be_is_a_fault_of_the_leader(install: Install) -> None:
    bench = led_groups(BlockTotal, {X: (0, 1, 2), Y: (0, 1)})
    stack(bench, 1).open(Z, BlockTotal)
    membership = stack(bench, 1).memberships[X]
    views = tuple(
        msgspec.structs.replace(v, era=membership.views[v.group].era + 1)
        if v.group in membership.views
        else v
        for v in install.views
    )
    forged = Install(membership.attempt, install.frames, install.start, views)
    before = stack(bench, 1).fingerprint()
    bench.step(1, Receive(LEADER, X, 1, forged))
    assert [(p, by) for p, by, _ in bench.faults] == [(1, LEADER)]
    assert stack(bench, 1).fingerprint() == before


def test_a_proposal_for_a_group_that_was_left_is_a_fault() -> None:
    bench = led_groups(Cbcast, {X: (0, 1, 2), Y: (0, 1)})
    bench.step(LEADER, Change(X, left=(1,)))
    bench.carry()
    era = stack(bench, 1).memberships[X].views[X].era
    bench.step(1, Receive(LEADER, X, era, Propose(99, ((X, era + 1),))))
    assert bench.faults == [(1, LEADER, "a proposal for a group in which this process is not")]


@pytest.mark.parametrize("group", [Y, Z])
def test_a_report_of_a_frame_in_a_group_of_others_is_a_fault_and_the_flush_goes_on(
    group: GroupId,
) -> None:
    # Y changes together with X, Z does not; 2 is in neither Y nor Z.
    bench = led_groups(Cbcast, {X: (0, 1, 2), Y: (0, 1), Z: (3, 4)})
    bench.step(LEADER, Change(X, left=(1,)))
    attempt = stack(bench, LEADER).memberships[X].attempt
    origin = 1 if group == Y else 3
    bench.step(LEADER, Receive(2, group, 1, Unstable(attempt, origin, 1, ()), b"made up"))
    assert [(p, by) for p, by, _ in bench.faults] == [(LEADER, 2)]
    bench.carry()
    assert bench.story(0)[-1] == bench.story(1)[-1] == bench.story(2)[-1] == "02"
    assert bench.texts(0) == bench.texts(1) == []


def test_a_mark_that_no_counter_can_reach_is_the_fault_of_its_reporter() -> None:
    bench = led_groups(Fast, {X: (0, 1, 2)})
    bench.step(LEADER, Change(X, left=(1,)))
    attempt = stack(bench, LEADER).memberships[X].attempt
    bench.step(LEADER, Receive(2, X, 1, Report(attempt, 0, 2**64 - 1)))
    assert [(p, by) for p, by, _ in bench.faults] == [(LEADER, 2)]
    bench.carry()
    view = stack(bench, 0).view(X)
    assert view is not None
    assert (view.members, view.start) == ((0, 2), 0)
