"""Pruning leaves out steps, never an outcome."""

from __future__ import annotations

from typing import Any

import pytest

from explored import scenario
from faulty_machines import sequenced, unsequenced
from faulty_machines.unchecked import unchecked
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import OrderingProtocol, on
from ordercast.exploration import explore
from ordercast.protocols.basic import Basic, BasicData
from ordercast.protocols.registry import PROTOCOLS

LIMIT = 60_000  # states

RIGHT: list[tuple[str, str, int, dict[str, Any]]] = [
    ("basic", "free", 3, {"duplicates": 1}),
    ("fifo", "free", 3, {"rounds_after": 4}),
    ("fifo", "burst", 3, {"duplicates": 2}),
    ("fifo", "free", 3, {"crash": True}),
    ("vector", "free", 3, {"duplicates": 1}),
    ("vector", "burst", 3, {"crash": True, "overlap": True}),
    ("reliable", "replies", 2, {"crash": True, "rounds_after": 1}),
    ("global_fifo", "burst", 3, {"overlap": True}),
    ("cbcast", "free", 3, {"overlap": True}),
    ("sequencer_pb", "burst", 1, {"losses": 1, "duplicates": 1}),
    ("sequencer_pb", "free", 2, {"crash": True}),
    ("sequencer_bb", "burst", 3, {}),
    ("nak", "burst", 1, {"losses": 1, "duplicates": 1}),
    ("nak", "free", 2, {"crash": True}),
]


class TellsOfRepeats(Basic):
    """Whoever gets a frame twice sends it to all once more, under another number."""

    @on(BasicData)
    def on_DATA(self, q: ProcessId, g: GroupId, data: BasicData, m: bytes) -> None:
        if data.n in self.received[q]:
            self.b_multicast(g, BasicData(data.n + 1, 0), m)
        super().on_DATA(q, g, data, m)


WRONG: list[tuple[type[OrderingProtocol], str, int, dict[str, Any]]] = [
    (unsequenced.AcceptsAnyLaterNumber, "burst", 3, {"duplicates": 1}),
    (unsequenced.CountsReceived, "burst", 3, {"duplicates": 1}),
    (TellsOfRepeats, "free", 2, {"duplicates": 1}),
    (unsequenced.TestsItsOwnCopy, "free", 2, {}),
    (
        unsequenced.BasicCalledReliable,
        "free",
        2,
        {"crash": True, "expect": ("agreement",)},
    ),
    (sequenced.NumbersOnArrivalPB, "burst", 2, {}),
    (sequenced.WithoutStatus, "free", 1, {"losses": 1, "rounds": 2}),
]


@pytest.mark.parametrize(("name", "script", "messages", "more"), RIGHT)
def test_the_same_outcomes_are_reached(
    name: str, script: str, messages: int, more: dict[str, Any]
) -> None:
    small = scenario(PROTOCOLS[name], script, messages, **more)
    pruned, full = explore(small, limit=LIMIT), explore(small, limit=LIMIT, prune=False)
    assert pruned.complete and full.complete
    assert pruned.outcomes == full.outcomes
    assert pruned.states <= full.states


@pytest.mark.parametrize(("protocol", "script", "messages", "more"), WRONG)
def test_the_same_promises_are_found_broken(
    protocol: type[OrderingProtocol], script: str, messages: int, more: dict[str, Any]
) -> None:
    # A wrong machine may deliver again after all have everything, so whole runs are compared.
    small = scenario(unchecked(protocol), script, messages, **more)
    whole: dict[str, Any] = {"limit": LIMIT, "stop_at_first": False, "close_logs": False}
    pruned, full = explore(small, **whole), explore(small, **whole, prune=False)
    assert pruned.complete and full.complete
    assert pruned.violated
    assert set(pruned.violated) == set(full.violated)
    assert pruned.outcomes == full.outcomes
    closed = explore(small, limit=LIMIT, stop_at_first=False)
    assert closed.complete
    assert set(closed.violated) == set(pruned.violated)


def test_where_nobody_answers_processes_are_explored_one_after_the_other() -> None:
    small = scenario(PROTOCOLS["fifo"], "free", 4)
    pruned, full = explore(small), explore(small, prune=False)
    assert pruned.outcomes == full.outcomes
    assert 2 * pruned.states < full.states


@pytest.mark.parametrize("name", ["fifo", "vector", "sequencer_pb", "agreed"])
def test_judging_at_the_last_delivery_is_judging_whole_runs(name: str) -> None:
    small = scenario(PROTOCOLS[name], "burst", 2, rounds_after=2)
    closed, whole = explore(small, limit=LIMIT), explore(small, limit=LIMIT, close_logs=False)
    assert closed.complete and whole.complete
    assert closed.outcomes == whole.outcomes
    assert closed.states <= whole.states
