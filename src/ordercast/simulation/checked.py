"""A machine of a run, whose invariants are looked at after every step."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from ordercast.core.output import Output


class Steps(Protocol):
    """A machine that is alive: bare, or watched at every step."""

    def step(self, events: Iterable[Any]) -> Output: ...


class HasInvariants(Protocol):
    """A machine that says what must always hold of it."""

    def invariants(self) -> None: ...


class Checked:
    """Steps a machine, and looks whether what must always hold still does."""

    def __init__(self, machine: HasInvariants, steps: Steps) -> None:
        self.machine = machine
        self.steps = steps  # the machine itself, or what records its steps

    def step(self, events: Iterable[Any]) -> Output:
        """One step."""
        out = self.steps.step(events)
        self.machine.invariants()
        return out
