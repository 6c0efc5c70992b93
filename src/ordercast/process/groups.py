"""The groups that are open at one process, and the machines that serve them.

A group is open here if the driver asked for it, or if this process has a part in it: as a member, a
guest, or the one who numbers it. A machine of scope *group* serves one of them, one of scope
*domain* all that share its protocol.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from ordercast.core.changing import Changing
from ordercast.core.declaration import STRENGTH, Network
from ordercast.core.events import View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.output import Output
from ordercast.core.protocol import Options, OrderingProtocol
from ordercast.core.state import PlainState
from ordercast.core.whereabouts import Whereabouts
from ordercast.errors import PeerError
from ordercast.process.gates import Gates
from ordercast.views.flush import FrameFlush
from ordercast.views.groups import GroupEntry

Pages = Mapping[str, type[OrderingProtocol]]


class OpenGroups(PlainState):
    """Machines by group."""

    def __init__(
        self, me: ProcessId, pages: Pages, network: Network, options: Options, out: Output
    ) -> None:
        self.me = me
        self.pages = pages
        self.network = network  # what carries the packets
        self.is_lossy = STRENGTH[network] < STRENGTH["N1"]
        self.options = options
        self.out = out
        self.entries: dict[GroupId, GroupEntry] = {}  # of the groups that are open
        self.asked_for: set[GroupId] = set()  # ... by the driver
        self.machines: dict[GroupId, OrderingProtocol] = {}
        self.domains: dict[str, OrderingProtocol] = {}  # machines of several groups, by protocol
        self.flushes: dict[GroupId, FrameFlush] = {}  # of groups whose frames have no numbers
        self.gates = Gates(me, options)
        self.straight: dict[GroupId, OrderingProtocol] = {}  # those that packets reach as they are
        self.linked: set[GroupId] = set()  # groups that need links on this network
        self.whereabouts: Mapping[ProcessId, Whereabouts] = {}  # of the nodes that say it

    def page(self, protocol: str) -> type[OrderingProtocol]:
        """The protocol of that name."""
        if protocol not in self.pages:
            raise PeerError(f"a group speaks {protocol!r}, which is not built in here")
        return self.pages[protocol]

    def open(self, entry: GroupEntry) -> None:
        """A machine serves this group from now on, if none does."""
        g = entry.gid
        if self.entries.get(g, entry) != entry:  # it had the number before this one
            self.close(g)
        if g in self.machines:
            return
        page = self.page(entry.protocol)
        machine = self._machine(page, entry)
        self.entries[g] = entry
        self.machines[g] = machine
        durability = self.options.durability if entry.durability is None else entry.durability
        if page.together is None:
            self.flushes[g] = self._flush(machine)
            self.gates.open(g, self.machines, durability)
        elif durability is not None:
            machine.count_holders(g, durability)
        if STRENGTH[page.declaration.network] > STRENGTH[self.network]:
            self.linked.add(g)
        self.let_pass(g)

    def _machine(self, page: type[OrderingProtocol], entry: GroupEntry) -> OrderingProtocol:
        name = page.declaration.name
        machine = self.domains.get(name)
        if machine is None:
            options = self.options
            if entry.delivery_level is not None:
                options = msgspec.structs.replace(options, delivery_level=entry.delivery_level)
            machine = page(self.me, options)
            machine.out = self.out
            machine.locate(self.whereabouts)
            if page.declaration.scope == "domain":
                self.domains[name] = machine
        return machine

    def _flush(self, machine: OrderingProtocol) -> FrameFlush:
        shared = (f for f in self.flushes.values() if f.protocol is machine)
        return next(shared, None) or FrameFlush(machine)

    def close(self, g: GroupId) -> None:
        """Forget the group. Packets that still come for it are dropped."""
        machine = self.machines.pop(g, None)
        if machine is None:
            return
        self.gates.close(g)
        self.straight.pop(g, None)
        if g in self.flushes:
            self.flushes.pop(g).forget(g)
        self.linked.discard(g)
        self.asked_for.discard(g)
        del self.entries[g]
        if machine.together is not None or machine in self.machines.values():
            machine.forget_group(g)
        else:
            self.domains.pop(machine.declaration.name, None)

    # -- facts ------------------------------------------------------------------------------------

    def changing(self, g: GroupId) -> Changing | None:
        """The machine of this group, as a change sees it."""
        return self.flushes.get(g) or self.machines.get(g)

    def all_changing(self) -> Iterable[Changing]:
        """Each once."""
        every = {id(m): m for m in map(self.changing, self.machines) if m is not None}
        return every.values()

    def every(self) -> Iterable[OrderingProtocol]:
        """All machines, each once."""
        made = (*self.machines.values(), *self.domains.values())
        return {id(machine): machine for machine in made}.values()

    def view(self, g: GroupId) -> View | None:
        """The view of g in force here."""
        machine = self.machines.get(g)
        return None if machine is None else machine.views.get(g)

    def takes_part(self, g: GroupId) -> bool:
        """Is this process in the view of g, or does it lead it?"""
        flush, view = self.flushes.get(g), self.view(g)
        if flush is not None:
            return g in flush.part
        return view is not None and self.me in view.peers

    def is_stopped(self, g: GroupId) -> bool:
        """Does a change of g stop what is said and delivered in it?"""
        flush = self.flushes.get(g)
        return flush is not None and flush.is_stopped

    def let_pass(self, g: GroupId) -> None:
        """Packets of g may reach its machine as they are, if nothing stands in between: no link, no
        gate, and no flush, which voids what comes after the report."""
        machine = self.machines[g]
        if machine.together is not None and not self.uses_links(g):
            self.straight[g] = machine

    def uses_links(self, g: GroupId) -> bool:
        """Do packets of g travel on links, or some of them?"""
        return g in self.linked or (self.is_lossy and bool(self.machines[g].linked_headers))

    def needs_link(self, g: GroupId, header: type[msgspec.Struct]) -> bool:
        """Must such a packet of g travel on a link?"""
        if g in self.linked:
            return True
        machine = self.machines.get(g)
        return self.is_lossy and machine is not None and header in machine.linked_headers

    def locate(self, whereabouts: Mapping[ProcessId, Whereabouts]) -> None:
        """Where the nodes are, as far as they say it."""
        self.whereabouts = whereabouts
        for machine in self.every():
            machine.locate(whereabouts)
