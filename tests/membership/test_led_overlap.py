"""Views of groups that hang together: one leader, one cut, and what a peer cannot do to it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from machines import Bench
from ordercast.core.events import Change, Multicast, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import OrderingProtocol
from ordercast.protocols.block_total import BlockTotal
from ordercast.protocols.fast_p import FastP
from ordercast.protocols.slow import Slow
from ordercast.stack.stack import Stack

X, Y, Z = 1, 2, 3
LEADER = 0


def led_groups(
    protocol: type[OrderingProtocol], groups: Mapping[GroupId, tuple[ProcessId, ...]]
) -> Bench:
    """Stacks with all groups open, the members of each in its first view."""
    everybody = dict.fromkeys((LEADER, *(p for members in groups.values() for p in members)))
    bench = Bench({p: Stack(p) for p in everybody})
    for g, members in groups.items():
        for p in dict.fromkeys((LEADER, *members)):
            machine = bench.machines[p]
            assert isinstance(machine, Stack)
            machine.open(g, protocol)
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
