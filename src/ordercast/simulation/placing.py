"""What scripts of a cluster do to its sequencers."""

from __future__ import annotations

from typing import Any

import msgspec

from ordercast.core.ids import GroupId
from ordercast.process.commands import Migrate
from ordercast.simulation.clustered import ClusterSimulation, Host


class MoveGroup(msgspec.Struct, frozen=True):
    """Somebody wants the node of that host to number a group."""

    group: GroupId
    host: Host
    at_ms: float

    def apply(self, simulation: ClusterSimulation) -> None:
        """Tell any node."""
        to = simulation.current.get(self.host)
        asked = next((p for p in simulation.current.values() if p is not None), None)
        if to is None or asked is None:
            return
        machine: Any = simulation.machines[asked]
        if machine.node_view is not None:
            simulation.tell(asked, Migrate(self.group, to))
