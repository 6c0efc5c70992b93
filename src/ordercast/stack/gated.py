"""Where deliveries of a stack wait until enough members hold them: the gates of its machines."""

from __future__ import annotations

from collections.abc import Iterable

from ordercast.core.durability import Durability
from ordercast.core.events import Receive, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.output import Delivery, Output
from ordercast.core.protocol import Options, OrderingProtocol
from ordercast.core.waiting import NOBODY
from ordercast.errors import PeerError
from ordercast.reliability.gate import Gate
from ordercast.reliability.holders import Holders
from ordercast.stack.explained import Explained


class Gated(Explained):
    """The part of a stack between its machines and the application."""

    options: Options
    out: Output

    def open_gate(self, g: GroupId, machine: OrderingProtocol, durability: Durability) -> None:
        """A group was opened. A machine has a gate if one of its groups needs it."""
        if durability is not None:
            machine.count_holders(g, durability)
        groups = [h for h, served in self.protocols.items() if served is machine]
        gate = next((self.gates[h] for h in groups if h in self.gates), None)
        if gate is None and not durability:
            return
        spans_groups = machine.declaration.scope == "domain"
        gate = gate or Gate(self.me, self.options, tells_guests=spans_groups)
        for h in groups:  # one queue for all of them; those opened before it have no resilience
            if h not in self.gates:
                holders = Holders(self.me, durability if h == g else None, self.options.max_held)
                if h in machine.views:
                    holders.begin(machine.views[h])
                gate.open(h, holders)
                self.gates[h] = gate

    def close_gate(self, g: GroupId) -> None:
        """A group was closed."""
        if g in self.gates:
            self.gates.pop(g).close(g)

    def receive_word(self, protocol: OrderingProtocol, packet: Receive) -> None:
        """Of a gate elsewhere: what its process holds, or a question."""
        g, p = packet.group, packet.src
        gate = self.gates.get(g)
        if gate is None:
            self.out.faults.append((p, f"it counts the holders of group {g}, which has no gate"))
            return
        try:
            gate.receive(self.out, packet)
        except PeerError as fault:
            self.out.faults.append((p, str(fault)))
            return
        self._tell_holders(g, protocol, (p,))

    def pass_gates(self, out: Output) -> None:
        """Of what the protocols delivered, only what enough members hold is handed over."""
        at_once: list[Delivery | View] = []
        while out.deliveries or out.eras:
            made, out.deliveries = out.deliveries, []
            eras, out.eras = out.eras, []
            self._queue(made, eras, at_once)
            for _, view in eras:  # a word may have come before its era; what waits for it may go
                self._tell_holders(view.group, self.protocols[view.group], view.members)
        out.deliveries = at_once
        for gate in self._gates():
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
                if view.group in self.gates:
                    self.gates[view.group].begin(view)
                begun += 1
            if count < len(made):
                item = made[count]
                gate = self.gates.get(item.group if isinstance(item, View) else item[0])
                if gate is None:
                    at_once.append(item)
                else:
                    gate.take(item)

    def _tell_holders(
        self, g: GroupId, protocol: OrderingProtocol, members: Iterable[ProcessId]
    ) -> None:
        """The send rule of a machine of several groups: who holds what it has sent."""
        gate = self.gates.get(g)
        if gate is None:
            return
        view, holders = protocol.views.get(g), gate.groups[g]
        whose = NOBODY if protocol.declaration.sequenced else self.me
        if view is not None and view.era == holders.era:
            for p in members:
                if p in protocol.others[g]:
                    protocol.held_at(g, p, holders.mark_of(p, whose))
