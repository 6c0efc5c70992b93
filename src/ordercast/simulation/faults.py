"""What goes wrong, and who comes and goes: a script of faults.

A fault is anything with `at_ms` and `apply(simulation)`; these are the usual ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

from ordercast.core.events import Change
from ordercast.core.ids import GroupId, ProcessId
from ordercast.membership.plan import hanging_together

if TYPE_CHECKING:
    from ordercast.simulation.engine import Simulation


class Fault(Protocol):
    """Something that happens to the run from outside, at a set time."""

    @property
    def at_ms(self) -> float:
        """When, in simulated time."""
        ...

    def apply(self, simulation: Simulation) -> None:
        """Do it."""
        ...


class Crash(msgspec.Struct, frozen=True):
    """A process stops for good; leaders of its led groups are told after the detection delay.

    With `lose` each of its packets under way is lost with that probability: what it multicast
    last reaches only some.
    """

    process: ProcessId
    at_ms: float
    lose: float = 0.0

    def apply(self, simulation: Simulation) -> None:
        """Stop it."""
        simulation.crash(self.process, self.lose)


class Partition(msgspec.Struct, frozen=True):
    """Packets pass only inside a side; who is in no side is in one more, with the other such.

    It takes the place of an earlier partition. Packets already under way arrive.
    """

    sides: tuple[tuple[ProcessId, ...], ...]
    at_ms: float

    def apply(self, simulation: Simulation) -> None:
        """Cut the network."""
        simulation.medium.partition(self.sides, len(simulation.machines))


class Heal(msgspec.Struct, frozen=True):
    """The partition ends. What was sent across it stays lost."""

    at_ms: float

    def apply(self, simulation: Simulation) -> None:
        """Mend the network."""
        simulation.medium.heal()


class Join(msgspec.Struct, frozen=True):
    """A process asks the leader of a led group to let it in."""

    process: ProcessId
    group: GroupId
    at_ms: float

    def apply(self, simulation: Simulation) -> None:
        """Open the group there and tell the leader."""
        simulation.open(self.process, self.group)
        simulation.tell_leader(Change(self.group, joined=(self.process,)))


class Visit(msgspec.Struct, frozen=True):
    """A process asks the leader of a led group to be let in as a guest: to send, not to receive."""

    process: ProcessId
    group: GroupId
    at_ms: float

    def apply(self, simulation: Simulation) -> None:
        """Open the group there and tell the leader."""
        simulation.open(self.process, self.group)
        simulation.tell_leader(Change(self.group, guests=(self.process,)))


class Leave(msgspec.Struct, frozen=True):
    """A process asks the leader of a led group to let it go."""

    process: ProcessId
    group: GroupId
    at_ms: float

    def apply(self, simulation: Simulation) -> None:
        """Tell the leader."""
        simulation.tell_leader(Change(self.group, left=(self.process,)))


class FlushTo(msgspec.Struct, frozen=True):
    """A whole view change in one instant, by nobody's packets: for a group whose leader is dead.

    All survivors get everything unstable that any of them holds, then the next view. Groups of a
    protocol whose order spans groups change with it, without their dead, if they hang together.
    """

    group: GroupId
    members: tuple[ProcessId, ...]
    at_ms: float
    leader: ProcessId | None = None  # None: the first of the members

    def apply(self, simulation: Simulation) -> None:
        """Change the view."""
        leader = self.members[0] if self.leader is None else self.leader
        views = {g: self._members_of(simulation, g) for g in self._together(simulation)}
        simulation.flush({self.group: self.members, **views}, leader)

    def _together(self, simulation: Simulation) -> list[GroupId]:
        rosters, protocol = simulation.rosters, simulation.rosters[self.group].protocol
        if protocol.declaration.scope == "group":
            return []
        processes = {
            g: (*roster.view.senders, *(self.members if g == self.group else ()))
            for g, roster in rosters.items()
            if roster.protocol is protocol and roster.view is not None
        }
        return [g for g in hanging_together((self.group,), processes) if g != self.group]

    def _members_of(self, simulation: Simulation, g: GroupId) -> tuple[ProcessId, ...]:
        view = simulation.rosters[g].view
        assert view is not None
        return tuple(p for p in view.members if simulation.alive[p] is not None)
