"""The stack of a node in a cluster whose coordinator may die: all groups end and begin together.

    packets of the cluster, ticks, the driver's wishes  ──►  Cluster
    everything else                                     ──►  Stack, unless the node view is ending

While a node view ends nothing of the old eras is sent or delivered: what comes is in the reports of
those who live, and what the application says waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import msgspec

from ordercast.core.declaration import STRENGTH, Network
from ordercast.core.events import Change, Cut, Event, Flush, Multicast, Receive, Timer, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.numbers import MAX_COUNT
from ordercast.core.output import Output
from ordercast.core.protocol import Options, OrderingProtocol
from ordercast.errors import PeerError
from ordercast.membership.cluster import Cluster
from ordercast.membership.cluster_headers import (
    CLUSTER_GROUP,
    UNLINKED,
    GroupReport,
    NextGroupView,
    Want,
)
from ordercast.membership.directory import Directory
from ordercast.membership.ending import Frames
from ordercast.membership.headers import MEMBERSHIP_HEADERS
from ordercast.membership.led import LedMembership
from ordercast.membership.nodes import GroupEntry, NodeEntry, NodeView
from ordercast.membership.placing_headers import PLACING_HEADERS
from ordercast.membership.standing import COMMANDS, ClusterOptions, Command
from ordercast.reliability.link import LinkAck, Linked
from ordercast.stack.placed import ERAS_PER_VIEW, Heirloom, PlacedStack
from ordercast.stack.stack import Stack

ATTEMPTS_PER_VIEW = 1 << 20  # of one machine, to change its groups, under one node view


class ClusteredStack(PlacedStack):
    """Everything of one node."""

    def __init__(
        self,
        node: NodeEntry,
        pages: Mapping[str, type[OrderingProtocol]],
        *,
        cluster_options: ClusterOptions,
        network: Network = "N2",
        cluster_network: Network | None = None,
        options: Options | None = None,
        out: Output | None = None,
    ) -> None:
        """Packets of the cluster may travel on a better network than those of groups."""
        Cluster.__init__(self, node, cluster_options)
        strided = msgspec.structs.replace(options or Options(), view_stride=self.stride)
        Stack.__init__(self, node.pid, network=network, options=strided, out=out)
        self.pages = pages
        self.entries: dict[GroupId, GroupEntry] = {}  # of the groups that are open here
        self.fast: set[GroupId] = set()  # groups whose packets reach their machine as they are
        self.floors: dict[GroupId, int] = {}  # groups that were left, or deserted: their last view
        self.directories: dict[str, Directory] = {}
        self.inheriting: dict[GroupId, Heirloom] = {}
        self.parted: set[ProcessId] = set()
        self.draining: set[ProcessId] = set()
        self.ahead: list[tuple[ProcessId, msgspec.Struct, bytes]] = []
        self.delayed: set[GroupId] = set()
        self.traffic: dict[GroupId, dict[ProcessId, int]] = {}
        self.overtook: list[Receive] = []  # came before the node view under which they were sent
        self.said: list[Multicast] = []  # by the application, while the view ends
        carried_by = network if cluster_network is None else cluster_network
        self.links_cluster = STRENGTH[carried_by] < STRENGTH["N2"]
        self.has_links = self.has_links or self.links_cluster

    @property
    def effects(self) -> Output:
        return self.out

    # -- groups -----------------------------------------------------------------------------------

    def open_group(self, entry: GroupEntry) -> None:
        """Take part in a group, as a member, as a guest, or to lead it."""
        if entry.gid in self.protocols:
            view = self.view(entry.gid)
            needed = self.keeps_open(entry.gid)
            if view is None or self.me in view.peers or needed:
                return  # it is led here, or asked for already, or has what others need
            self._close_former_stay(entry.gid)
        self.entries[entry.gid] = entry
        coordinator = self.pids[0] if self.pids else None
        page = self.page(entry.protocol)
        leader = None if page.together else coordinator
        self.open(entry.gid, page, leader, entry.durability, entry.delivery_level)
        if entry.gid in self.memberships:
            led = self.memberships[entry.gid]
            led.attempt = max(led.attempt, self._attempts())
        if entry.gid in self.straight:
            self.fast.add(entry.gid)
            del self.straight[entry.gid]
        self.has_links = self.has_links or self.links_cluster

    def _close_former_stay(self, g: GroupId) -> None:
        """What the driver has not seen of it is still to come."""
        gate = self.gates.get(g)
        if gate is None or not gate.awaits(g):
            self.close(g)
            return
        del self.gates[g]
        self.close(g)
        self.gates[g] = gate

    def _attempts(self) -> int:
        """Changes of groups under this node view have higher numbers than any before."""
        return 0 if self.installed is None else self.installed.number * ATTEMPTS_PER_VIEW

    def close(self, g: GroupId) -> None:
        if self.is_out(g):
            self.unwants.pop(g, None)
        view = self.view(g)
        if view is not None:
            self.floors[g] = max(view.number, self.floors.get(g, 0))
        super().close(g)
        self.entries.pop(g, None)
        self.fast.discard(g)
        self.said = [multicast for multicast in self.said if multicast.group != g]

    def page(self, protocol: str) -> type[OrderingProtocol]:
        if protocol not in self.pages:
            raise PeerError(f"a group speaks {protocol!r}, which is not built in here")
        return self.pages[protocol]

    # -- the one door -----------------------------------------------------------------------------

    def _handle(self, event: Event | Command) -> None:
        if isinstance(event, COMMANDS):
            self.command(event)
        elif isinstance(event, Timer) and event.group == CLUSTER_GROUP:
            self.tick()
        elif self.stopped and isinstance(event, Multicast):
            self.said.append(event)
        else:
            super()._handle(event)

    def _receive(self, packet: Receive) -> None:
        if packet.src in self.gone and type(packet.header) not in UNLINKED:
            self.tell_out(packet.src)
            return
        if type(packet.header) in (Linked, LinkAck):
            super()._receive(packet)
        elif packet.group == CLUSTER_GROUP:
            try:
                if type(packet.header) in PLACING_HEADERS:
                    self.receive_placing(packet.src, packet.header, packet.payload)
                else:
                    self.receive_cluster(packet)
            except PeerError as fault:
                self.out.faults.append((packet.src, str(fault)))
        elif packet.src not in self.in_view or (self.stopped and self._is_of_the_past(packet)):
            return
        elif self.stopped and (
            type(packet.header) in MEMBERSHIP_HEADERS or packet.group not in self.protocols
        ):
            if len(self.overtook) < self.options.max_held:  # else it is asked for again
                self.overtook.append(packet)
        else:
            super()._receive(packet)
            if packet.group in self.fast and not self.stopped:
                self._let_pass(packet.group)

    def _let_pass(self, g: GroupId) -> None:
        """From now on packets of g reach its machine as they are: it has a view, whose era says
        which of them are void. Before, one that is dead could let this node in."""
        if self.view(g) is not None:
            self.straight[g] = self.protocols[g]

    def _is_of_the_past(self, packet: Receive) -> bool:
        """Is it of an era that ends? Where there is no view yet, who lets us in may be dead."""
        view = self.view(packet.group)
        if view is not None:
            return packet.era <= view.era
        return packet.group in self.protocols or packet.era != self._era_to_come(packet.group)

    def _era_to_come(self, g: GroupId) -> int | None:
        """Of a group that is ready to begin here."""
        groups = () if self.prepared is None else self.prepared.groups
        return next((new.era for new in groups if new.entry.gid == g), None)

    def entry_of(self, g: GroupId) -> GroupEntry | None:
        """Of a group that is open here, or will be when the next node view begins."""
        groups = () if self.prepared is None else self.prepared.groups
        to_come = (new.entry for new in groups if new.entry.gid == g)
        return self.entries.get(g) or next(to_come, None)

    # -- the end of a node view -------------------------------------------------------------------

    def stop_groups(self) -> None:
        self.straight = {}
        for protocol in self.protocols.values():
            protocol.pause()

    def finish_groups(self, eras: Sequence[tuple[GroupId, int]]) -> None:
        for membership in self._led():
            if not set(eras).isdisjoint(membership.readied()):
                membership.finish(self.out)

    def _led(self) -> list[LedMembership]:
        return list({id(m): m for m in self.memberships.values()}.values())

    def report_groups(self) -> tuple[tuple[GroupReport, ...], Frames]:
        ready = {g: era for membership in self._led() for g, era in membership.readied()}
        reports = []
        frames: Frames = {}
        for g, protocol in self.protocols.items():
            view = self.view(g)
            if view is None or not (self.me in view.peers or self._left_with_frames(g)):
                if g in ready:
                    nothing = GroupReport(self.entries[g], 0, 0, (), (), False, 0, 0, (), ready[g])
                    reports.append(nothing)
                continue
            takes_part = self.me in view.senders
            reports.append(
                GroupReport(
                    self.entries[g],
                    view.number,
                    view.era,
                    view.members,
                    view.guests,
                    g in protocol.member_of,
                    protocol.report_mark(g) if takes_part else 0,
                    protocol.numbers_delivered(g),
                    protocol.frames_delivered(g),
                    ready.get(g, 0),
                    protocol.numbers(g),
                )
            )
            if takes_part or protocol.declaration.sequenced:  # whoever numbers has it all
                frames.update(((g, k.origin, k.n), k) for k in protocol.unstable(g))
        for membership in self._led():
            frames.update(membership.readied_frames())
        return tuple(reports), frames

    def awaited_groups(self) -> tuple[GroupId, ...]:
        views = {g: self.view(g) for g in self.protocols}
        return tuple(
            g
            for g, view in views.items()
            if view is None or (self.me not in view.senders and self._part(g) is not None)
        )

    def _left_with_frames(self, g: GroupId) -> bool:
        """Where a group is left by a view among its numbers: does this node keep any of it?"""
        protocol = self.protocols[g]
        return protocol.declaration.sequenced and bool(protocol.unstable(g))

    def begin_groups(self, views: Sequence[NextGroupView], union: Frames) -> None:
        self.know_groups(views)
        self._close_deserted({new.entry.gid for new in views})
        self._close_handed_on(views)
        views = [new for new in views if new.entry.gid in self.protocols or new.leader == self.me]
        for new in views:
            if new.entry.gid not in self.protocols:
                self.open_group(new.entry)  # to lead it
        cuts: dict[int, tuple[OrderingProtocol, list[Flush], list[View]]] = {}
        for membership in self._led():
            membership.void(self._attempts())
        for new in views:
            g, leader = new.entry.gid, new.leader
            protocol, before = self.protocols[g], self.view(g)
            view = View(
                g, new.number, new.members, leader, new.era, new.start, new.guests, new.last
            )
            if before is None and self.me not in view.peers:  # it waits to be let in, from now on
                protocol.left_in[g] = (new.era - 1, MAX_COUNT)
                continue
            if g in self.memberships:
                if leader == self.me or self.me in view.senders or before is not None:
                    self.memberships[g].begin(view)
                took_part = before is not None and self.me in before.senders
                if not took_part and self.me not in view.senders:
                    continue  # it only leads
            _, flushes, begun = cuts.setdefault(id(protocol), (protocol, [], []))
            begun.append(view)
            if g in protocol.member_of:
                frames = tuple(kept for key, kept in union.items() if key[0] == g)
                flushes.append(Flush(g, frames))
        for protocol, flushes, begun in cuts.values():
            protocol.handle(Cut(tuple(flushes), tuple(begun)))
        for membership in self._led():
            self._release(membership)
        for g in self.fast:
            self._let_pass(g)
        for protocol in self.protocols.values():
            protocol.resume()
        said, self.said = self.said, []
        for multicast in said:
            self._handle(multicast)
        self.obey_what_was_ahead()
        overtook, self.overtook = self.overtook, []
        for packet in overtook:
            self._receive(packet)

    def _close_deserted(self, going_on: set[GroupId]) -> None:
        """Groups that were only led here, and of which nobody is left."""
        for g in [g for g in self.protocols if g not in going_on]:
            view = self.view(g)
            if view is not None and self.me not in view.senders:
                self._close_for_now(g)

    def _close_handed_on(self, views: Sequence[NextGroupView]) -> None:
        """Groups that were only numbered here, and are numbered elsewhere from now on."""
        for new in views:
            g, view = new.entry.gid, self.view(new.entry.gid)
            if self.page(new.entry.protocol).together is None or view is None:
                continue
            if self.me not in (*view.senders, *new.members, *new.guests, new.leader):
                self._close_for_now(g)

    def _close_for_now(self, g: GroupId) -> None:
        entry = self.entries[g]
        if g in self.gates:
            self.gates[g].end(g)
        self._close_former_stay(g)
        if g in self.wants:
            self.open_group(entry)

    def _put_in_force(self, view: NodeView) -> None:
        super()._put_in_force(view)
        self.locate({node.pid: node.whereabouts for node in view.nodes if node.site})
        for g, protocol in self.protocols.items():
            protocol.believe(g, None if protocol.together else view.coordinator)

    def owes_nothing(self) -> bool:
        if not super().owes_nothing():
            return False
        for g, protocol in self.protocols.items():
            view = self.view(g)
            leads = view is not None and view.leader == self.me and view.members
            if leads and protocol.declaration.sequenced and protocol.unstable(g):
                return False
        return True

    def release_node(self, pid: ProcessId) -> None:
        for g in tuple(self.protocols):
            view = self.view(g)
            if self.protocols[g].together is not None:
                continue  # who numbers it will see to it
            if view is not None and view.leader == self.me:
                self._handle(Change(g, dead=(pid,)))

    def forget_node(self, pid: ProcessId) -> None:
        self.gone.add(pid)
        self.gone_for_good(pid)

    # -- a group changes alone --------------------------------------------------------------------

    def change_group(
        self,
        want: Want | None,
        gid: GroupId,
        *,
        joined: tuple[ProcessId, ...] = (),
        guests: tuple[ProcessId, ...] = (),
        left: tuple[ProcessId, ...] = (),
    ) -> None:
        entry = self.entries.get(gid) if want is None else want.group
        placed = entry is not None and self.page(entry.protocol).together is not None
        if placed or self._directory_of(gid) is not None:
            self.place_change(want, gid, joined, guests, left)
            return
        if gid not in self.protocols:
            if want is None:
                return
            self.open_group(want.group)
        view = self.view(gid)
        if view is None:
            assert self.node_view is not None
            era = self.node_view.number * ERAS_PER_VIEW + 1
            view = View(gid, max(self.floors.get(gid, 0), self.first_number), (), self.me, era)
            self._handle(view)
        if gid in self.memberships:
            wish = Change(gid, joined=joined, guests=guests, left=left)
            self.memberships[gid].strike_opposites(wish)
        joined = tuple(p for p in joined if p not in view.members)
        guests = tuple(p for p in guests if p not in view.senders)
        left = tuple(p for p in left if p in view.senders)
        if joined or guests or left:
            self._handle(Change(gid, joined=joined, guests=guests, left=left))

    def give_up(self, gid: GroupId) -> None:
        if gid not in self.unwants or gid not in self.protocols:
            return
        if self.view(gid) is None:
            del self.unwants[gid]
            self._close_for_now(gid)
        elif self.waits_to_be_let_in(gid):
            del self.unwants[gid]
            self.wait_no_more(gid)

    def is_in(self, want: Want) -> bool:
        view = self.view(want.group.gid)
        if view is None:
            return False
        return self.me in (view.members if want.part == "member" else view.guests)

    def is_out(self, gid: GroupId) -> bool:
        view = self.view(gid)
        if gid not in self.protocols:
            return True
        outside = view is not None and self.me not in view.senders
        return outside and not self.waits_to_be_let_in(gid)

    # -- links ------------------------------------------------------------------------------------

    def _needs_link(self, g: GroupId, header: msgspec.Struct) -> bool:
        if g == CLUSTER_GROUP:
            return self.links_cluster and type(header) not in (Linked, *UNLINKED)
        return super()._needs_link(g, header)

    def _has_peer(self, p: ProcessId) -> bool:
        return p in self.in_view or super()._has_peer(p)

    # -- plain state ------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        return {name: value for name, value in super().state().items() if name != "pages"}

    def copy(self) -> Self:
        twin = super().copy()
        twin.pages = self.pages
        return twin

    def step(self, events: Iterable[Event | Command]) -> Output:
        return super().step(events)  # type: ignore[arg-type]  # `_handle` takes commands, too
