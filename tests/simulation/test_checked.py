"""What must always hold of a machine is looked at after every step of every run."""

from __future__ import annotations

from functools import partial

import pytest

from ordercast.core.events import Receive
from ordercast.core.ids import GroupId
from ordercast.protocols.fifo import Fifo
from ordercast.simulation import SimulationConfig, simulate
from ordercast.simulation.costs import CostModel
from sweep.arenas import ARENAS

KEPT = "every frame that came is counted"


class Miscounts(Fifo):
    """The count of frames that came is wrong for a moment, and is right again after the next."""

    came = 0
    counted = 0

    def receive(self, packet: Receive) -> None:
        super().receive(packet)
        self.came += bool(packet.payload)
        self.counted = 2 if self.came == 2 else 0

    def invariants(self) -> None:
        assert self.counted == 0, KEPT


class Forgetful(Miscounts):
    """The same at a multicast."""

    def receive(self, packet: Receive) -> None:
        Fifo.receive(self, packet)

    def on_multicast(self, g: GroupId, m: bytes) -> None:
        super().on_multicast(g, m)
        self.came += 1
        self.counted = self.came == 2


run = partial(SimulationConfig, members=3, messages=12, seed=1)


@pytest.mark.parametrize("machine", [Miscounts, Forgetful])
@pytest.mark.parametrize(
    "more",
    [{}, {"trace": "protocol"}, {"costs": CostModel()}, {"loss": 0.1}],
    ids=["plain", "watched", "timed", "over links"],
)
def test_a_run_stops_at_the_step_that_breaks_an_invariant(
    machine: type[Fifo], more: dict[str, object]
) -> None:
    with pytest.raises(AssertionError, match=KEPT) as caught:
        simulate(run(protocol=machine, **more))
    assert "seed=1, tick" in caught.value.__notes__[0]


def test_a_run_that_measures_need_not_look() -> None:
    assert simulate(run(protocol=Miscounts, checks=False)).quiescent


@pytest.mark.parametrize("arena", [name for name in ARENAS if ARENAS[name].serves(Fifo)])
def test_every_arena_of_given_groups_looks(arena: str) -> None:
    with pytest.raises(AssertionError, match=KEPT):
        for seed in range(5):
            simulate(ARENAS[arena].config(Miscounts, seed))
