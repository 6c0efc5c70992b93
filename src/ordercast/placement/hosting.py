"""Which groups there are, who is in them, where each is sequenced, and what that costs.

Source      000 (Kindberg), section 4.2.

    LEAVE(G, p)  p counts until all have delivered its leave; a join before that cancels it

Departures from the source
  D2  The source splits when a member leaves. Messages numbered before that may still be under way,
      so a leaver counts until the caller says that everybody delivered the leave. (test_D2_...)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import Together
from ordercast.core.state import PlainState
from ordercast.placement.components import NEVER, STRONG, WEAK, Components
from ordercast.placement.load import Load, Requests

SHARE: Final[dict[Together, int]] = {"strong": STRONG, "weak": WEAK, "none": NEVER}


class Hosting(PlainState):
    """What the coordinator knows of the groups of one domain."""

    def __init__(self, *, together: Together) -> None:
        self.components = Components(SHARE[together])  # its members include leavers that count
        self.leaving: dict[GroupId, set[ProcessId]] = {}  # those that left and still count
        self.host: dict[GroupId, ProcessId] = {}  # the sequencer of each group
        self.loads = Load()
        self.requests = Requests()

    @property
    def members(self) -> dict[GroupId, set[ProcessId]]:
        """Who counts as a member of each group: members, and leavers that are not settled."""
        return self.components.members

    def know(self, g: GroupId, members: Iterable[ProcessId], host: ProcessId) -> None:
        """The group stands like this, as reported. What was measured stays."""
        members = set(members)
        if g not in self.host:
            self.components.add(g)
            self.host[g] = host
        for p in self.members[g] - members:
            self.components.leave(g, p)
        for p in members:
            self.components.enter(g, p)
        self.leaving.pop(g, None)
        self.moved(g, host)

    def forget(self, g: GroupId) -> None:
        """The group exists no more."""
        if g in self.host:
            self.components.remove(g)
            self.leaving.pop(g, None)
            self.loads.forget(g, self.host.pop(g))
            self.requests.forget(g)

    def joined(self, g: GroupId, p: ProcessId) -> None:
        """p is a member. If its former leave was not settled, that leave counts no more."""
        self._stays(g, p)
        self.components.enter(g, p)
        self._weigh(g)

    def left(self, g: GroupId, p: ProcessId) -> None:
        """p left. It counts until `settled`: its group may not be placed apart before."""
        if p in self.members[g]:
            self.leaving.setdefault(g, set()).add(p)
            self._weigh(g)

    def settled(self, g: GroupId, p: ProcessId) -> None:
        """All that were in g with p, p too, delivered its last leave, or are excluded."""
        if p in self.leaving.get(g, ()):
            self._stays(g, p)
            self.components.leave(g, p)

    def moved(self, g: GroupId, to: ProcessId) -> None:
        """The group is sequenced at `to` from now on. Its majority sender is judged afresh."""
        if self.host[g] != to:
            self.loads.lift(g, self.host[g])
            self.requests.forget(g)
            self.host[g] = to
        self._weigh(g)

    def measured(self, g: GroupId, rate: float, by_sender: Mapping[ProcessId, int]) -> None:
        """A window ended: requests per second, and requests of each sender.

        Called for every group in every window, also for idle ones.
        """
        if g in self.host:
            self.loads.measured(g, rate)
            self.requests.measured(g, by_sender)
            self._weigh(g)

    def load(self, host: ProcessId) -> float:
        """The sum of the weights of the groups sequenced there."""
        return self.loads.loads.get(host, 0.0)

    def weight(self, g: GroupId) -> float:
        """What the group costs its sequencer, in packets per second."""
        return self.loads.weights[g]

    def component(self, g: GroupId, joining: Iterable[ProcessId] = ()) -> frozenset[GroupId]:
        """The groups that must be together with g once these have joined it."""
        return self.components.component(g, joining)

    def spread(self, part: Iterable[GroupId]) -> dict[ProcessId, float]:
        """How much of the weight of these groups is at each host."""
        spread: dict[ProcessId, float] = {}
        for g in part:
            spread[self.host[g]] = spread.get(self.host[g], 0.0) + self.weight(g)
        return spread

    def _stays(self, g: GroupId, p: ProcessId) -> None:
        if p in self.leaving.get(g, ()):
            self.leaving[g].remove(p)
            if not self.leaving[g]:
                del self.leaving[g]

    def _weigh(self, g: GroupId) -> None:
        size = len(self.members[g]) - len(self.leaving.get(g, ()))
        self.loads.weigh(g, size, self.host[g])
