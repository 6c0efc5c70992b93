"""Given groups at one process: links, gates and ordering, without a cluster.

    Multicast, Timer, Consumed, views  ─────────►  the machine of the group
    Receive  ──►  link (only where the network is weaker than needed)  ──►  the machine of the group
    deliveries of a group with a resilience  ──►  its gate, until enough members hold them

The driver opens the groups and gives their views. It is what simulations of single protocols run;
a live node is a `Process`, made of the same parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from typing import Any, Self

import msgspec

from ordercast.core.declaration import Network
from ordercast.core.durability import Durability
from ordercast.core.events import Cut, Event, Kept, Multicast, Receive, Timer, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.output import Output
from ordercast.core.protocol import DeliveryLevel, Options, OrderingProtocol
from ordercast.core.state import PlainState
from ordercast.core.waiting import Waiting, WaitingFrame
from ordercast.core.whereabouts import Whereabouts
from ordercast.errors import PeerError
from ordercast.process import explained
from ordercast.process.groups import OpenGroups
from ordercast.process.links import Links
from ordercast.reliability.gate import ASK, GATE_HEADERS
from ordercast.reliability.link import LINK_GROUP, LinkAck, Linked
from ordercast.views.groups import GroupEntry


class GivenGroups(PlainState):
    """One process in groups that its driver opens and gives views to."""

    def __init__(
        self,
        me: ProcessId,
        *,
        network: Network = "N2",
        options: Options | None = None,
        out: Output | None = None,
    ) -> None:
        """`out` may be shared by the processes of one driver, which handles each step's at once."""
        self.me = me
        self.network = network  # what carries the packets
        self.options = options or Options()
        self.out = Output() if out is None else out
        self.pages: dict[str, type[OrderingProtocol]] = {}  # of the groups that were opened
        self.groups = OpenGroups(me, self.pages, network, self.options, self.out)
        self.links = Links(me, self.options)
        self.has_links = False  # some group needs, or has needed, links
        self.early: list[Receive] = []  # none: only a cluster begins groups that are not open
        self.said: list[Multicast] = []  # none: a driver gives views in one instant

    def open(
        self,
        g: GroupId,
        protocol: type[OrderingProtocol],
        durability: Durability = None,
        delivery_level: DeliveryLevel | None = None,
    ) -> None:
        """Take part in group g. Its first view comes as an event.

        Every member must give the same `durability` and `delivery_level`; None: those of the
        options.
        """
        assert g not in self.groups.machines and g != LINK_GROUP, f"{g} is open, or reserved"
        declared = protocol.declaration
        self.pages[declared.name] = protocol
        self.groups.open(
            GroupEntry(g, f"g{g}", declared.order, declared.name, 0, durability, delivery_level)
        )
        if self.groups.uses_links(g):
            self.has_links = True
        elif g not in self.groups.gates.of:
            self.groups.straight[g] = self.groups.machines[g]

    def close(self, g: GroupId) -> None:
        """Forget group g. Packets that still come for it are dropped."""
        self.groups.close(g)

    def locate(self, whereabouts: Mapping[ProcessId, Whereabouts]) -> None:
        """Where the processes are, as far as they say it: their groups may have subgroups."""
        self.groups.locate(whereabouts)

    # -- the one door -----------------------------------------------------------------------------

    def step(self, events: Iterable[Event]) -> Output:
        """Take a batch of events; return what must be done, valid until the next step."""
        out, straight = self.out, self.groups.straight
        out.clear()
        for event in events:
            if type(event) is not Receive:
                self._handle(event)
            elif (machine := straight.get(event.group)) is not None:
                machine.receive(event)
            else:
                self._receive(event)
        if self.groups.gates:
            self.groups.gates.pass_on(out, self.groups.machines, self.groups.is_stopped)
        if self.has_links:
            self.links.wrap(out, self._needs_link, self._has_peer)
        return out

    def _handle(self, event: Event) -> None:
        g = event.views[0].group if isinstance(event, Cut) else event.group
        if g == LINK_GROUP:
            assert isinstance(event, Timer)
            self.links.on_timer(self.out, event.name, self._has_peer)
            return
        machine = self.groups.machines.get(g)
        if machine is None:  # closed a moment ago
            return
        if isinstance(event, Timer) and event.name == ASK:
            self.groups.gates.on_timer(self.out, g)
        else:
            machine.handle(event)

    def _receive(self, packet: Receive) -> None:
        header = type(packet.header)
        try:
            if header is Linked or header is LinkAck:
                self.has_links = True
                for inner in self.links.receive(packet):
                    self._receive(inner)
                return
            machine = self.groups.machines.get(packet.group)
            if machine is None:
                return
            if header in GATE_HEADERS:
                self.groups.gates.receive(self.out, machine, packet)
            else:
                machine.receive(packet)
        except PeerError as fault:
            self.out.faults.append((packet.src, str(fault)))

    # -- links ------------------------------------------------------------------------------------

    def _needs_link(self, p: ProcessId, g: GroupId, header: msgspec.Struct) -> bool:
        return self.groups.needs_link(g, type(header))

    def _has_peer(self, p: ProcessId) -> bool:
        views = (self.view(g) for g in self.groups.machines)
        return any(view is not None and {self.me, p} <= view.peers for view in views)

    def gone_for_good(self, p: ProcessId) -> None:
        """p is in no view any more, and its id will never be used again: forget what it left."""
        self.links.end(p)
        for machine in self.groups.every():
            machine.drop_early({p})
            machine.gone_for_good(p)

    # -- facts ------------------------------------------------------------------------------------

    def unstable(self, g: GroupId) -> tuple[Kept, ...]:
        """Every frame of g held here that some member may lack."""
        return self.groups.machines[g].unstable(g)

    def report_mark(self, g: GroupId) -> int:
        """What this process would report of its numbers at the end of an era of g."""
        return self.groups.machines[g].report_mark(g)

    def view(self, g: GroupId) -> View | None:
        """The view of g in force here."""
        return self.groups.view(g)

    def held_back(self, g: GroupId | None = None) -> list[Waiting]:
        """Every frame that waits here (of group g), and the first things it waits for."""
        return explained.held_back(self, g)

    def waiting_frames(self) -> Iterator[WaitingFrame]:
        """The frames of `held_back` without the reasons; one that is here twice may come twice."""
        return explained.waiting_frames(self)

    def invariants(self) -> None:
        """What must always hold, checked by simulators after every step."""
        for machine in self.groups.every():
            machine.invariants()
        self.groups.gates.invariants()
        self.links.invariants()

    # -- plain state ------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """What decides what this process does next."""
        return {
            "me": self.me,
            "machines": self.groups.machines,
            "gates": self.groups.gates.of,
            "linked": self.groups.linked,
            "links": self.links.links,
            "running": self.links.running,
        }

    def copy(self) -> Self:
        """An independent twin with no effects pending. What its parts share, they share there."""
        twin = deepcopy(self)
        twin.out.clear()
        return twin
