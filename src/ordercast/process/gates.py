"""Where deliveries of a process wait until enough members hold them: the gates of its machines."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ordercast.core.durability import Durability
from ordercast.core.events import Receive, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.output import Delivery, Output
from ordercast.core.protocol import Options, OrderingProtocol
from ordercast.core.state import PlainState
from ordercast.core.waiting import NOBODY
from ordercast.errors import PeerError
from ordercast.reliability.gate import Gate
from ordercast.reliability.holders import Holders

Machines = dict[GroupId, OrderingProtocol]


class Gates(PlainState):
    """One gate for each machine that has a group with a resilience."""

    def __init__(self, me: ProcessId, options: Options) -> None:
        self.me = me
        self.options = options
        self.of: dict[GroupId, Gate] = {}

    def __bool__(self) -> bool:
        return bool(self.of)

    def open(self, g: GroupId, served: Machines, durability: Durability) -> None:
        """A group was opened. A machine has a gate if one of its groups needs it."""
        machine = served[g]
        if durability is not None:
            machine.count_holders(g, durability)
        groups = [h for h, other in served.items() if other is machine]
        gate = next((self.of[h] for h in groups if h in self.of), None)
        if gate is None and not durability:
            return
        spans_groups = machine.declaration.scope == "domain"
        gate = gate or Gate(self.me, self.options, tells_guests=spans_groups)
        for h in groups:  # one queue for all of them; those opened before it have no resilience
            if h not in self.of:
                holders = Holders(self.me, durability if h == g else None, self.options.max_held)
                if h in machine.views:
                    holders.begin(machine.views[h])
                gate.open(h, holders)
                self.of[h] = gate

    def close(self, g: GroupId) -> None:
        """A group was closed."""
        if g in self.of:
            self.of.pop(g).close(g)

    def awaits(self, g: GroupId) -> bool:
        """Is there anything of this group that was not handed over?"""
        gate = self.of.get(g)
        return gate is not None and gate.awaits(g)

    def receive(self, out: Output, machine: OrderingProtocol, packet: Receive) -> None:
        """Of a gate elsewhere: what its process holds, or a question."""
        g, p = packet.group, packet.src
        gate = self.of.get(g)
        if gate is None:
            raise PeerError(f"it counts the holders of group {g}, which has no resilience")
        gate.receive(out, packet)
        self._tell_holders(g, machine, (p,))

    def on_timer(self, out: Output, g: GroupId) -> None:
        """It is time to ask who holds what."""
        if g in self.of:
            self.of[g].on_timer(out)

    def pass_on(self, out: Output, served: Machines, is_stopped: Callable[[GroupId], bool]) -> None:
        """Of what the protocols delivered, only what enough members hold is handed over."""
        at_once: list[Delivery | View] = []
        while out.deliveries or out.eras:
            made, out.deliveries = out.deliveries, []
            eras, out.eras = out.eras, []
            self._queue(made, eras, at_once)
            for _, view in eras:  # a word may have come before its era; what waits for it may go
                if view.group in served and not is_stopped(view.group):
                    self._tell_holders(view.group, served[view.group], view.members)
        out.deliveries = at_once
        for gate in self.all():
            gate.release(out)

    def _queue(
        self,
        made: list[Delivery | View],
        eras: list[tuple[int, View]],
        at_once: list[Delivery | View],
    ) -> None:
        begun = 0
        for count in range(len(made) + 1):
            while begun < len(eras) and eras[begun][0] <= count:
                view = eras[begun][1]
                if view.group in self.of:
                    self.of[view.group].begin(view)
                begun += 1
            if count < len(made):
                item = made[count]
                gate = self.of.get(item.group if isinstance(item, View) else item[0])
                if gate is None:
                    at_once.append(item)
                else:
                    gate.take(item)

    def _tell_holders(
        self, g: GroupId, machine: OrderingProtocol, members: Iterable[ProcessId]
    ) -> None:
        """The send rule of a machine of several groups: who holds what it has sent."""
        gate = self.of.get(g)
        if gate is None:
            return
        view, holders = machine.views.get(g), gate.groups[g]
        whose = NOBODY if machine.declaration.sequenced else self.me
        if view is not None and view.era == holders.era:
            for p in members:
                if p in machine.others[g]:
                    machine.held_at(g, p, holders.mark_of(p, whose))

    def invariants(self) -> None:
        """What must always hold, checked by simulators and explorers after every step."""
        for gate in self.all():
            gate.invariants()

    def all(self) -> Iterable[Gate]:
        """Each once: one that serves several groups is listed under each of them."""
        return {id(gate): gate for gate in self.of.values()}.values()
