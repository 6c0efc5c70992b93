"""Exact protocols hold nothing back without need; the others say that they do.

At every step of simulated runs, each frame that is held must miss something it depends on. That is
found from what the applications did (`bench.waiting`), not from what any header says.
"""

from __future__ import annotations

import pytest

from bench.waiting import Waits, waits
from ordercast.core.ids import GroupId
from ordercast.protocols.cbcast import Cbcast
from ordercast.protocols.registry import PROTOCOLS

SEEDS = range(60)
ORDERED = {
    name: protocol.declaration
    for name, protocol in PROTOCOLS.items()
    if protocol.declaration.order in ("fifo", "causal")
}
EXACT = [name for name, declared in ORDERED.items() if declared.exact]
INEXACT = [name for name, declared in ORDERED.items() if not declared.exact]


def test_the_protocols_that_must_be_exact_say_so() -> None:
    assert {"vector", "cbcast", "fast"} <= set(EXACT)


@pytest.mark.parametrize("protocol", EXACT)
def test_an_exact_protocol_never_holds_a_frame_that_misses_nothing(protocol: str) -> None:
    seen = waits(protocol, SEEDS)
    assert seen.held > 1000
    assert seen.needless == 0, seen.witness
    print(f"{protocol}: 0 of {seen.held} needless")


@pytest.mark.parametrize("protocol", EXACT)
def test_a_frame_that_came_is_delivered_or_named_as_held(protocol: str) -> None:
    assert waits(protocol, SEEDS[:20]).hidden == 0


@pytest.mark.parametrize("protocol", INEXACT)
def test_a_protocol_that_is_not_exact_waits_needlessly_at_times(protocol: str) -> None:
    seen = waits(protocol, SEEDS)
    assert 0 < seen.needless < seen.held
    print(f"{protocol}: {100 * seen.share:.0f} % of {seen.held} needless")


class CountsReceived(Cbcast):
    """The slide's word: what was received counts, held back or not (E-C5)."""

    def changed_since_last(self, g: GroupId) -> tuple[int, ...]:
        told = super().changed_since_last(g)
        came = (
            (h, k, numbers.mark)
            for h in sorted(self.member_of)
            for k, numbers in self.received[h].items()
            if numbers.mark > self.VV[h][k]
        )
        return (*told, *(x for entry in came for x in entry))


class Hides(Cbcast):
    """Does not say what it holds."""

    def held_back(self) -> list[object]:  # type: ignore[override]
        return []


def test_needless_waiting_is_found() -> None:
    seen: Waits = waits(CountsReceived, SEEDS)
    assert seen.needless > 0
    assert seen.witness.startswith("seed ")


def test_frames_that_are_held_in_secret_are_found() -> None:
    assert waits(Hides, SEEDS[:5]).hidden > 0
