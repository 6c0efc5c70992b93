"""Everything of one process as one pure machine.

    Multicast, Timer, Consumed  ─────────────►  the ordering protocol of the group
    Receive  ──►  link (only where the network is weaker than needed)  ──►  the ordering protocol
    deliveries of a group with a resilience  ──►  Gate, until enough members hold them

Views are given by the driver. A protocol whose order spans groups is one machine for all of them.
All parts write into one `Output`, so nothing is copied from layer to layer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Self, TypeVar

import msgspec

from ordercast.core.declaration import STRENGTH, Network
from ordercast.core.durability import Durability
from ordercast.core.events import Cut, Event, Kept, Receive, Timer, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.output import Output
from ordercast.core.protocol import DeliveryLevel, Options, OrderingProtocol
from ordercast.core.state import PlainState, copy_plain
from ordercast.core.whereabouts import Whereabouts
from ordercast.errors import PeerError
from ordercast.reliability.gate import ASK, GATE_HEADERS, Gate
from ordercast.reliability.link import LINK_GROUP, Link, LinkAck, Linked
from ordercast.stack.gated import Gated

P = TypeVar("P", bound=PlainState)

SHARED = frozenset(("protocols", "straight", "domains", "gates"))  # by groups
MAX_REPEATS = 20  # to a process that is in no view any more, as its last view is


class Stack(Gated):
    """Reliability + ordering of one process."""

    def __init__(
        self,
        me: ProcessId,
        *,
        network: Network = "N2",
        options: Options | None = None,
        out: Output | None = None,
    ) -> None:
        """`out` may be shared by the stacks of one driver, which handles each step's at once."""
        self.me = me
        self.network = network  # what carries the packets
        self.options = options or Options()
        self.protocols: dict[GroupId, OrderingProtocol] = {}
        self.straight: dict[GroupId, OrderingProtocol] = {}  # those that packets reach as they are
        self.domains: dict[str, OrderingProtocol] = {}  # machines of several groups, by protocol
        self.linked: set[GroupId] = set()  # groups that need links on this network
        self.links: dict[ProcessId, Link] = {}
        self.has_links = False  # some group needs, or has needed, links
        self.left_in: dict[GroupId, tuple[int, int]] = {}  # closed: (era, start) of its last view
        self.running: set[str] = set()  # timers of the links
        self.whereabouts: Mapping[ProcessId, Whereabouts] = {}  # of the nodes that say it
        self.gates: dict[GroupId, Gate] = {}  # of machines with a group that has a resilience
        self.out = Output() if out is None else out

    def open(
        self,
        g: GroupId,
        protocol: type[OrderingProtocol],
        leader: ProcessId | None = None,
        durability: Durability = None,
        delivery_level: DeliveryLevel | None = None,
    ) -> None:
        """Take part in group g, as a member or as its leader. Its first view comes as an event.

        A joiner takes its first view from `leader` alone, or from anybody if that is not known.
        Every member must give the same `durability` and `delivery_level`; None: those of the
        options.
        """
        assert g not in self.protocols and g != LINK_GROUP, f"group {g} is open, or reserved"
        machine = self._machine(protocol, delivery_level)
        machine.left_in[g] = self.left_in.get(g, (0, 0))
        machine.believe(g, leader)
        self.protocols[g] = machine
        declared = protocol.declaration
        self.open_gate(g, machine, self.options.durability if durability is None else durability)
        if STRENGTH[declared.network] > STRENGTH[self.network]:
            self.linked.add(g)
        elif self._links_some(machine):
            self.has_links = True
        elif g not in self.gates:
            self.straight[g] = machine
        self.has_links |= bool(self.linked)

    def _machine(
        self, protocol: type[OrderingProtocol], level: DeliveryLevel | None
    ) -> OrderingProtocol:
        """A machine of scope group serves one group; one of scope domain all that are open."""
        name = protocol.declaration.name
        machine = self.domains.get(name)
        if machine is None:
            options = self.options
            if level is not None:
                options = msgspec.structs.replace(options, delivery_level=level)
            machine = protocol(self.me, options)
            machine.out = self.out
            machine.locate(self.whereabouts)
            if protocol.declaration.scope == "domain":
                self.domains[name] = machine
        return machine

    def locate(self, whereabouts: Mapping[ProcessId, Whereabouts]) -> None:
        """Where the nodes are, as far as they say it: their groups may have subgroups."""
        self.whereabouts = whereabouts
        for protocol in self.protocols.values():
            protocol.locate(whereabouts)

    def close(self, g: GroupId) -> None:
        """Forget group g but for its last view. Packets that still come for it are dropped."""
        self.close_gate(g)
        protocol = self.protocols.pop(g, None)
        if protocol is None:
            return
        void = protocol.left_in.pop(g, (0, 0))  # also before a stay that never began
        if g in protocol.views:
            void = max(void, protocol.stay_ended(g))
        if void > (0, 0):
            self.left_in[g] = max(self.left_in.get(g, (0, 0)), void)
        self.straight.pop(g, None)
        self.linked.discard(g)
        if protocol in self.protocols.values():
            protocol.forget_group(g)
        else:
            self.domains.pop(protocol.declaration.name, None)

    def unstable(self, g: GroupId) -> tuple[Kept, ...]:
        """Every frame of g held here that some member may lack."""
        return self.protocols[g].unstable(g)

    def report_mark(self, g: GroupId) -> int:
        """What this process would report of its numbers at the end of an era of g."""
        return self.protocols[g].report_mark(g)

    def view(self, g: GroupId) -> View | None:
        """The view of g in force here, also at a leader that is no member."""
        protocol = self.protocols.get(g)
        return None if protocol is None else protocol.views.get(g)

    def gone_for_good(self, p: ProcessId) -> None:
        """p is in no view any more, and its id will never be used again: forget what it left."""
        self.links.pop(p, None)
        for protocol in self.protocols.values():  # a machine of several groups is told more often
            protocol.gone_for_good(p)

    # -- the one door -----------------------------------------------------------------------------

    def step(self, events: Iterable[Event]) -> Output:
        """Take a batch of events; return what must be done, valid until the next step."""
        out = self.out
        out.clear()
        for event in events:
            if type(event) is not Receive:
                self._handle(event)
            elif (protocol := self.straight.get(event.group)) is not None:
                protocol.receive(event)
            else:
                self._receive(event)
        self._conclude(out)
        return out

    def _conclude(self, out: Output) -> None:
        """All events of a step were taken."""
        if self.gates:
            self.pass_gates(out)
        if self.has_links:
            self._put_on_links(out)

    def salvage(self) -> Output:
        """After an event that raised: the effects of those before it, and of its own part.

        The machines have taken these steps. A driver that does not carry them out would have a
        machine that believes what never happened.
        """
        self._conclude(self.out)
        return self.out

    def _handle(self, event: Event) -> None:
        g = event.views[0].group if isinstance(event, Cut) else event.group
        if g == LINK_GROUP:
            assert isinstance(event, Timer)
            self._on_link_timer(event.name)
            return
        protocol = self.protocols.get(g)
        if protocol is None:  # closed a moment ago
            return
        if isinstance(event, Timer) and event.name == ASK:
            self.gates[g].on_timer(self.out)
        else:
            protocol.handle(event)

    def _receive(self, packet: Receive) -> None:
        header = type(packet.header)
        if header is Linked or header is LinkAck:
            self._receive_linked(packet)
            return
        protocol = self.protocols.get(packet.group)
        if protocol is None:
            return
        if header in GATE_HEADERS:
            self.receive_word(protocol, packet)
        else:
            protocol.receive(packet)

    # -- links ------------------------------------------------------------------------------------

    def _link(self, p: ProcessId) -> Link:
        link = self.links.get(p)
        if link is None:
            link = self.links[p] = Link(self.options.ack_every, self.options.max_held)
            self.has_links = True
        return link

    def _receive_linked(self, packet: Receive) -> None:
        link = self._link(packet.src)
        try:
            if isinstance(packet.header, LinkAck):
                link.told(packet.header)
                return
            for inner in link.receive(packet):
                self._receive(inner)
        except PeerError as fault:
            self.out.faults.append((packet.src, str(fault)))

    def _put_on_links(self, out: Output) -> None:
        """Wrap what leaves for a linked group, and acknowledge what came without an answer."""
        plain, out.transmits = out.transmits, []
        for to, g, era, header, payload in plain:
            if not self._needs_link(g, header):
                out.transmits.append((to, g, era, header, payload))
                continue
            for p in to:
                out.transmits.append(((p,), *self._link(p).wrap(g, era, header, payload)))
        for p, link in self.links.items():
            if link.must_acknowledge():
                out.transmits.append(((p,), LINK_GROUP, 0, link.acknowledge(), b""))
            elif link.owed:
                self._start_link_timer("ack", self.options.ack_delay_ms)
            if link.unacked and not self._rests(p, link):
                self._start_link_timer("retransmit", self.options.retry_ms)

    def _needs_link(self, g: GroupId, header: msgspec.Struct) -> bool:
        if type(header) is Linked:  # on its link already
            return False
        if g in self.linked:
            return True
        protocol = self.protocols.get(g)
        if protocol is None or type(header) not in protocol.linked_headers:
            return False
        return self._links_some(protocol)

    def _links_some(self, machine: OrderingProtocol) -> bool:
        """Are there words of this machine that may not be lost, on a network that loses?"""
        return bool(machine.linked_headers) and STRENGTH[self.network] < STRENGTH["N1"]

    def _start_link_timer(self, name: str, delay_ms: int) -> None:
        if name not in self.running:
            self.running.add(name)
            self.out.timers.append((LINK_GROUP, name, delay_ms))

    def _on_link_timer(self, name: str) -> None:
        self.running.discard(name)
        for p, link in self.links.items():
            if name == "ack":
                if link.owed:
                    self.out.transmits.append(((p,), LINK_GROUP, 0, link.acknowledge(), b""))
            elif not self._rests(p, link):
                for packet in link.stalled(self.options.fetch_batch):
                    self.out.transmits.append(((p,), *packet))
                    self.out.notes.append(("retransmit", packet[0], self.me, 0, f"to {p}"))

    def _rests(self, p: ProcessId, link: Link) -> bool:
        # One in no view any more does not answer. It may be gone, so nothing is repeated until it
        # is heard of or sent to again. It may come back, so its numbers and packets are kept: on
        # a new link our packet 1 would be a repeat to it. `gone_for_good` ends the link.
        return link.repeats >= MAX_REPEATS and not self._has_peer(p)

    def _has_peer(self, p: ProcessId) -> bool:
        return any(p in self._peers(g) for g in self.protocols)

    def _peers(self, g: GroupId) -> Iterable[ProcessId]:
        view = self.view(g)
        return view.peers if view is not None and self.me in view.peers else ()

    # -- plain state ------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """All but the effects of the last step."""
        return {name: value for name, value in self.__dict__.items() if name != "out"}

    def copy(self) -> Self:
        """An independent twin with no effects pending."""
        twin = object.__new__(type(self))
        own = {name: value for name, value in self.state().items() if name not in SHARED}
        twin.__dict__.update((name, copy_plain(value)) for name, value in own.items())
        twin.out = Output()
        # What several groups share is shared in the twin, too.
        machines = _copied(self.protocols.values())
        gates = _copied(self.gates.values())
        twin.gates = {g: gates[id(old)] for g, old in self.gates.items()}
        twin.protocols = {g: machines[id(old)] for g, old in self.protocols.items()}
        twin.straight = {g: twin.protocols[g] for g in self.straight}
        twin.domains = {name: machines[id(old)] for name, old in self.domains.items()}
        for protocol in twin.protocols.values():
            protocol.out = twin.out
        return twin


def _copied(parts: Iterable[P]) -> dict[int, P]:
    """A copy of each, under the id of the original."""
    return {key: part.copy() for key, part in {id(part): part for part in parts}.items()}
