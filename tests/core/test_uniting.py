"""Several survivors report the same frame: what becomes of it does not depend on who came first."""

from __future__ import annotations

from itertools import permutations

import pytest

from ordercast.core.changing import Ending, FrameId, FramesEnd, FramesHeld
from ordercast.core.ids import ProcessId
from ordercast.core.protocol import OrderingProtocol
from ordercast.core.uniting import unite
from ordercast.protocols.agreed import DECIDED, DELIVERED, UNDECIDED, AgreedOrder
from ordercast.protocols.block_total import BlockTotal
from ordercast.protocols.fast_p import FastP
from ordercast.protocols.slow import Slow

Stamp = tuple[int, ...]

DEAD, ALSO_DEAD = 8, 9  # the origin is dead, and not alone: no leader can vouch for its frames
WORSE_TO_BETTER: list[tuple[type[OrderingProtocol], list[Stamp]]] = [
    (AgreedOrder, [(7, 3, UNDECIDED), (4, 2, DECIDED), (4, 2, DELIVERED)]),
    (AgreedOrder, [(4, 2, UNDECIDED), (5, 1, UNDECIDED), (7, 3, UNDECIDED)]),
    (FastP, [(3, 0, 2), (3, 0, 2), (3, 1, 2)]),
    (Slow, [(3, 0), (3, 1), (3, 1)]),
    (BlockTotal, [(3, 0), (3, 0), (3, 1)]),
]


def united(page: type[OrderingProtocol], reports: dict[ProcessId, list[Stamp]]) -> FramesEnd:
    """Of one group, whose frame 1 of `DEAD` is reported with these stamps."""
    held = {
        p: FramesHeld(1, tuple(FrameId(DEAD, 1, stamp) for stamp in stamps), True)
        for p, stamps in reports.items()
    }
    living = frozenset(reports)
    [(_, end)] = unite(page, {1: Ending(1, held, frozenset({DEAD, ALSO_DEAD}), living)})
    return end


@pytest.mark.parametrize(("page", "stamps"), WORSE_TO_BETTER)
def test_of_several_reports_of_a_frame_the_best_counts_whoever_made_it(
    page: type[OrderingProtocol], stamps: list[Stamp]
) -> None:
    best = stamps[-1]
    for order in permutations(stamps):
        [frame] = united(page, {p: [stamp] for p, stamp in enumerate(order, 1)}).frames
        assert frame.stamp == best
        assert order[frame.holder - 1] == best  # who supplies the body has said so


@pytest.mark.parametrize(("page", "stamps"), WORSE_TO_BETTER)
def test_who_reports_a_frame_more_than_once_has_said_the_best_of_it(
    page: type[OrderingProtocol], stamps: list[Stamp]
) -> None:
    for order in permutations(stamps):
        [frame] = united(page, {1: list(order)}).frames
        assert (frame.stamp, frame.holder) == (stamps[-1], 1)
