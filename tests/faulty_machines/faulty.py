"""A faulty machine on a stage, beside the right one."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import msgspec

from faulty_machines.stages import EVERYBODY, Fields
from ordercast.core.protocol import OrderingProtocol
from ordercast.process.given import GivenGroups
from ordercast.simulation import Outcome, SimulationConfig, Workload
from ordercast.simulation.engine import Limits
from ordercast.simulation.run import build, outcome, processes

Protocol = type[OrderingProtocol]

QUIET_TICKS = 10_000_000  # ten simulated seconds; a blocked machine talks on for ever
MOST_EVENTS = 10_000  # a hundred times what a right machine needs


class Faulty(msgspec.Struct, frozen=True, kw_only=True):
    """One fault, beside the machine without it."""

    name: str
    source: str  # an erratum, or the rule that is left out
    breaks: str  # the property that must be found violated
    wrong: Protocol
    right: Protocol
    stage: Callable[[Random], Fields]  # where it shows
    process: type[GivenGroups] = GivenGroups  # of the wrong machine
    right_stage: Callable[[Random], Fields] | None = None  # the same, as the right one needs it
    right_ends: str = "quiescent"  # or "quiet": it goes on asking the dead

    def run(self, seed: int) -> Outcome:
        """The faulty machine under this seed."""
        return play(self._config(self.wrong, self.stage, seed), self.process)

    def run_right(self, seed: int) -> Outcome:
        """The right machine under the same seed."""
        return play(self._config(self.right, self.right_stage or self.stage, seed), GivenGroups)

    def _config(
        self, protocol: Protocol, stage: Callable[[Random], Fields], seed: int
    ) -> SimulationConfig:
        plain: Fields = {
            "protocol": protocol,
            "members": len(EVERYBODY),
            "messages": 8,
            "workload": Workload(reply=0.8, depth=4),
            "seed": seed,
            "checks": False,  # the trace alone must show the fault
        }
        return SimulationConfig(**{**plain, **stage(Random(f"{self.name} {seed}"))})


def play(config: SimulationConfig, process: type[GivenGroups]) -> Outcome:
    """A run over processes of this kind, stopped when nothing happens to anybody any more."""
    machines = [process(s.me, network=s.network, options=s.options) for s in processes(config)]
    simulation = build(config, machines)
    simulation.start()
    limits = Limits(ticks=10**9, events=MOST_EVENTS, quiet=QUIET_TICKS)
    ended = simulation.run(limits)
    if ended == "quiescent":
        simulation.finish()
    return outcome(config, simulation, ended)
