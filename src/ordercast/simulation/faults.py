"""What goes wrong, and who comes and goes: a script of faults.

A fault is anything with `at_ms` and `apply(simulation)`; these are the usual ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

import msgspec

from ordercast.core.ids import GroupId, ProcessId

if TYPE_CHECKING:
    from ordercast.simulation.clustered import ClusterSimulation
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
    """A process stops for good.

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
    """In a cluster: the program on a host joins a group."""

    process: ProcessId
    group: GroupId
    at_ms: float

    def apply(self, simulation: ClusterSimulation) -> None:
        """Tell its node."""
        simulation.join(self.process, self.group)


class Visit(msgspec.Struct, frozen=True):
    """In a cluster: the program on a host becomes a guest of a group: to send, not to receive."""

    process: ProcessId
    group: GroupId
    at_ms: float

    def apply(self, simulation: ClusterSimulation) -> None:
        """Tell its node."""
        simulation.visit(self.process, self.group)


class Leave(msgspec.Struct, frozen=True):
    """In a cluster: the program on a host leaves a group."""

    process: ProcessId
    group: GroupId
    at_ms: float

    def apply(self, simulation: ClusterSimulation) -> None:
        """Tell its node."""
        simulation.leave(self.process, self.group)


class FlushTo(msgspec.Struct, frozen=True):
    """A whole view change in one instant, by nobody's packets: what a protocol makes of it, without
    the changes of a cluster.

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


def hanging_together(
    changed: Iterable[GroupId], processes: Mapping[GroupId, Iterable[ProcessId]]
) -> list[GroupId]:
    """The groups connected to these by shared processes, in ascending order."""
    found = set(changed)
    reached: set[ProcessId] = set()
    grew = True
    while grew:
        reached.update(*(processes[g] for g in found))
        more = {g for g, who in processes.items() if g not in found and not reached.isdisjoint(who)}
        found |= more
        grew = bool(more)
    return sorted(found)
