"""A few nodes, a group of all or some, on a network that carries packets when it is asked to."""

from __future__ import annotations

from ordercast.core.events import Multicast, Receive, Timer
from ordercast.membership.node_view import NodeEntry
from ordercast.membership.options import ClusterOptions
from ordercast.process.commands import Broken, Connected, Found, Join, Seek
from ordercast.process.process import CLUSTER_GROUP, Process
from ordercast.protocols.registry import PROTOCOLS
from ordercast.views.groups import GroupEntry

OPTIONS = ClusterOptions(heartbeat_ms=20, suspect_ms=100)
GROUP = GroupEntry(1, "g", "causal", "cbcast", 0)


class FewNodes:
    """0 coordinates."""

    kind = Process

    def __init__(self, count, group=GROUP, members=None):
        self.faults, self.flight = [], []  # (at, by, why); (to, packet)
        self.notes = []  # (at, kind, group, sender, n, remark)
        self.delivered = {p: [] for p in range(count)}
        self.nodes = {
            p: self.kind(NodeEntry(p, f"n{p}", 1), PROTOCOLS, cluster_options=OPTIONS)
            for p in range(count)
        }
        self.step(0, Found())
        for p in self.nodes:
            for q in self.nodes:
                if q != p:
                    self.step(p, Connected(q, f"n{q}"))
        for p in range(1, count):
            self.step(p, Seek((0,)))
            self.carry()
        for p in self.nodes if members is None else members:
            self.step(p, Join(group, "member"))
            if members is not None:
                self.carry()
        self.carry()

    def step(self, p, event):
        """One event, and what it brings about."""
        out = self.nodes[p].step([event])
        self.faults += [(p, *fault) for fault in out.faults]
        self.notes += [(p, *note) for note in out.notes]
        self.delivered[p] += [item[4] for item in out.deliveries if isinstance(item, tuple)]
        for to, group, era, header, payload in out.transmits:
            packet = Receive(p, group, era, header, payload)
            self.flight += [(q, packet) for q in to]
        self.nodes[p].invariants()

    def hear(self, p, src, header, group=CLUSTER_GROUP, era=0, payload=b""):
        """A packet that its sender may have made up."""
        self.step(p, Receive(src, group, era, header, payload))

    def carry(self):
        """Until nothing is under way."""
        while self.flight:
            p, packet = self.flight.pop(0)
            if p in self.nodes:
                self.step(p, packet)

    def kill(self, dead):
        """The others notice at once."""
        del self.nodes[dead]
        for p in self.nodes:
            self.step(p, Broken(dead))
        for _ in range(3):
            self.carry()
            for p in self.nodes:
                self.step(p, Timer(CLUSTER_GROUP, "tick"))
        self.carry()

    def say(self, p, body):
        """A multicast to the group."""
        self.step(p, Multicast(1, body))
