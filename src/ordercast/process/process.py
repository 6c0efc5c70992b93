"""Everything of one node as one pure machine.

    agreement     who is in the cluster, agreed                       (membership.agreement)
    changes       how groups change; the directory of all groups      (views.changes)
    groups        the groups that are open here, and their machines   (process.groups)
    links         where the network needs them                        (process.links)

    packets of the cluster, ticks, commands  ──►  agreement, changes
    everything else                          ──►  the machine of the group

While this side of the cluster has no majority nothing is sent or delivered: packets of groups are
void, what the application says waits. The view that follows begins all groups anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any, Self

import msgspec

from ordercast.core.changing import Changing, End, FramesEnd, NextEra, NumbersEnd
from ordercast.core.declaration import STRENGTH, Network
from ordercast.core.events import Event, Multicast, Receive, Timer, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.output import Output
from ordercast.core.protocol import Options, OrderingProtocol
from ordercast.core.state import PlainState
from ordercast.core.waiting import Waiting, WaitingFrame
from ordercast.errors import PeerError
from ordercast.membership.agreement import Agreement
from ordercast.membership.agreement_headers import AGREEMENT_HEADERS, Heartbeat, JoinView
from ordercast.membership.agreement_table import Standing
from ordercast.membership.news import Blocked, Dissolved, Installed, Mistaken, News, Out, Resumed
from ordercast.membership.node_view import NodeEntry, NodeView
from ordercast.membership.options import ClusterOptions
from ordercast.process import explained, standing
from ordercast.process.commands import (
    COMMANDS,
    Broken,
    Command,
    Connected,
    Depart,
    Drain,
    Forget,
    Found,
    Heard,
    Join,
    Leave,
    Met,
    Migrate,
    Refound,
    Seek,
)
from ordercast.process.groups import OpenGroups, Pages
from ordercast.process.links import Links
from ordercast.reliability.gate import ASK, GATE_HEADERS
from ordercast.reliability.link import LINK_GROUP, LinkAck, Linked
from ordercast.views.changes import Changes
from ordercast.views.flush import FLUSH_HEADERS
from ordercast.views.groups import GroupEntry
from ordercast.views.headers import (
    CHANGE_HEADERS,
    Absent,
    Load,
    Row,
    WantDrained,
    WantIn,
    WantMoved,
    WantRefounded,
)
from ordercast.views.plausible import MAX_GROUP

CLUSTER_GROUP: GroupId = -1  # packets of the cluster belong to no group
LOAD_TICKS = 4  # between two words of a sequencer on what it numbers
MAX_AHEAD = 1024  # packets of nodes that are not in the view yet
MAX_COUNTS = 4096  # of groups and senders in one such word
VIEW_STRIDE = 1 << 20  # between numbers of views, where every side of a partition goes on

AGREEMENT = frozenset(AGREEMENT_HEADERS)
CHANGES = frozenset(CHANGE_HEADERS)
UNLINKED = (Heartbeat, JoinView)  # may be lost: they are said again and again


class Process(PlainState):
    """One node."""

    def __init__(
        self,
        node: NodeEntry,
        pages: Pages,
        *,
        cluster_options: ClusterOptions,
        network: Network = "N2",
        cluster_network: Network | None = None,
        options: Options | None = None,
        out: Output | None = None,
    ) -> None:
        """Packets of the cluster may travel on a better network than those of groups. `out` may be
        shared by the processes of one driver, which handles each step's at once."""
        self.me = node.pid
        self.out = Output() if out is None else out
        stride = 1 if cluster_options.partition == "primary" else VIEW_STRIDE
        is_lossy = STRENGTH[network] < STRENGTH["N1"]
        self.options = msgspec.structs.replace(options or Options(), lossy=is_lossy)
        self.cluster_options = cluster_options
        self.agreement = Agreement(node, cluster_options)
        refound_ticks = cluster_options.refound_ms // cluster_options.heartbeat_ms
        self.changes = Changes(
            node.pid,
            stride,
            refound_ticks,
            cluster_options.timeout_ticks,
            cluster_options.max_groups,
        )
        self.groups = OpenGroups(node.pid, pages, network, self.options, self.out)
        self.links = Links(node.pid, self.options)
        carried_by = network if cluster_network is None else cluster_network
        self.links_cluster = STRENGTH[carried_by] < STRENGTH["N2"]
        self.links_flush = is_lossy
        self.blocked: Blocked | None = None  # there is no majority
        self.listens: frozenset[ProcessId] = frozenset()  # nodes whose packets of groups count now
        self.ahead: list[Receive] = []  # of nodes that are about to come into the view
        self.over = False  # this incarnation has ended
        self.said: list[Multicast] = []  # by the application, while there is no majority
        self.early: list[Receive] = []  # came before the change that opens their group here
        self.visits: set[GroupId] = set()  # groups with several sequencers that are visited
        self.top_group: GroupId = 0  # no group that is known here has a higher number

    # -- the one door -----------------------------------------------------------------------------

    def step(self, events: Iterable[Event | Command]) -> Output:
        """Take a batch of events; return what must be done, valid until the next step."""
        out, straight = self.out, self.groups.straight
        out.clear()
        for event in events:
            if type(event) is not Receive:
                self._handle(event)
            elif (machine := straight.get(event.group)) is not None and event.src in self.listens:
                machine.receive(event)
            else:
                self._receive(event)
        self._conclude(out)
        return out

    def salvage(self) -> Output:
        """After an event that raised: the effects of those before it, and of its own part.

        The machines have taken these steps. A driver that does not carry them out would have a
        machine that believes what never happened.
        """
        self._conclude(self.out)
        return self.out

    def _conclude(self, out: Output) -> None:
        """All events of a step were taken."""
        if self.changes.prepared is not None:
            self.changes.look_whether_ready(self)
        if self.groups.gates:
            self.groups.gates.pass_on(out, self.groups.machines, self.groups.is_stopped)
        if self.links_cluster or self.links_flush or self.groups.linked:
            self.links.wrap(out, self._needs_link, self._is_peer)

    def _needs_link(self, p: ProcessId, g: GroupId, header: msgspec.Struct) -> bool:
        if g == CLUSTER_GROUP:
            may_be_lost = type(header) in UNLINKED or p not in self.agreement.pids
            return self.links_cluster and not may_be_lost
        if self.links_flush and type(header) in FLUSH_HEADERS:
            return True
        return self.groups.needs_link(g, type(header))

    def _is_peer(self, p: ProcessId) -> bool:
        return p in self.agreement.pids

    # -- events -----------------------------------------------------------------------------------

    def _handle(self, event: Event | Command) -> None:
        if isinstance(event, COMMANDS):
            self._command(event)
        elif isinstance(event, Timer) and event.group == CLUSTER_GROUP:
            self._tick()
        elif isinstance(event, Timer) and event.group == LINK_GROUP:
            self.links.on_timer(self.out, event.name, self._is_peer)
        elif isinstance(event, Timer) and event.name == ASK:
            self.groups.gates.on_timer(self.out, event.group)
        elif isinstance(event, Multicast):
            self._multicast(event)
        else:
            machine = self.groups.machines.get(event.group)  # type: ignore[union-attr]
            if machine is not None:  # else it was closed a moment ago
                machine.handle(event)

    def _multicast(self, multicast: Multicast) -> None:
        g = multicast.group
        machine = self.groups.machines.get(g)
        if machine is None:
            return
        if self.blocked is not None:
            self.said.append(multicast)
        elif self.groups.is_stopped(g):
            self.groups.flushes[g].queued.append(multicast)
        else:
            machine.handle(multicast)

    def _command(self, command: Command) -> None:
        agreement, changes = self.agreement, self.changes
        if isinstance(command, Found):
            agreement.found(self)
            self._start_ticking()
        elif isinstance(command, Seek):
            agreement.seek(self, command.contacts)
            self._start_ticking()
        elif isinstance(command, Connected):
            agreement.connect(self, command.pid, command.name)
        elif isinstance(command, Broken):
            agreement.broken(self, command.pid)
        elif isinstance(command, Met):
            agreement.sides.meet(command.nodes)
        elif isinstance(command, Heard):
            agreement.detector.heard(command.pid)
        elif isinstance(command, Join):
            self._join(command)
        elif isinstance(command, Leave):
            self._end_visit(command.gid)
            changes.want_out(self, command.gid)
        elif isinstance(command, Depart):
            agreement.leave(self)
        elif isinstance(command, Migrate):
            changes.ask_coordinator(self, WantMoved(command.gid, command.to))
        elif isinstance(command, Drain):
            changes.ask_coordinator(self, WantDrained(command.pid, command.drained))
        elif isinstance(command, Refound):
            changes.ask_coordinator(self, WantRefounded(command.gid))
        else:
            assert isinstance(command, Forget)
            agreement.forget(self, command.pids)

    def _start_ticking(self) -> None:
        self.out.timers.append((CLUSTER_GROUP, "tick", self.cluster_options.heartbeat_ms))

    def _tick(self) -> None:
        if not self.over:
            self._start_ticking()
            self.agreement.tick(self)
        if not self.over:
            self._tell_who_is_missing()
            self.changes.tick(self)
            self.agreement.suspicions.give_up(self, self.changes.holds_up())
            if self.agreement.ticks % LOAD_TICKS == 0:
                self._tell_load()

    def _tell_who_is_missing(self) -> None:
        """There is no majority, and more are missing than were told."""
        view = self.agreement.view
        if self.blocked is not None and view is not None:
            missing = view.missing(self.agreement.here())
            if set(missing) > set(self.blocked.missing):
                self.tell(Blocked(view.number, missing))

    def _tell_load(self) -> None:
        """What was numbered here since the last word; and the coordinator weighs it all."""
        counts = [count for machine in self.groups.every() for count in machine.take_load()]
        if counts and self.agreement.view is not None:
            self.changes.ask_coordinator(self, Load(tuple(counts[:MAX_COUNTS])))
        if self.cluster_options.balance:
            seconds = LOAD_TICKS * self.cluster_options.heartbeat_ms / 1000
            self.changes.balance(self, seconds)

    # -- packets ----------------------------------------------------------------------------------

    def _receive(self, packet: Receive) -> None:
        try:
            if type(packet.header) in (Linked, LinkAck):
                for inner in self.links.receive(packet):
                    self._receive(inner)
            elif packet.group == CLUSTER_GROUP:
                self._receive_cluster(packet.src, packet.header)
            elif packet.src in self.listens:
                self._receive_for_group(packet)
            elif packet.src not in self.agreement.pids:
                self._keep_if_ahead(packet)
        except PeerError as fault:
            self.out.faults.append((packet.src, str(fault)))

    def _receive_cluster(self, src: ProcessId, header: msgspec.Struct) -> None:
        if self.over:
            return
        if type(header) in AGREEMENT:
            self.agreement.receive(self, src, header)
        elif type(header) not in CHANGES:
            raise PeerError(f"{type(header).__name__} is no packet of the cluster")
        elif src in self.agreement.pids:
            self.agreement.detector.heard(src)
            self.changes.receive(self, src, header)

    def _receive_for_group(self, packet: Receive) -> None:
        g, groups = packet.group, self.groups
        machine = groups.machines.get(g)
        if machine is None:
            self._keep_if_early(packet)
        elif type(packet.header) in FLUSH_HEADERS:
            if g not in groups.flushes:
                raise PeerError(f"group {g} does not fetch frames that way")
            groups.flushes[g].receive(packet)
        elif groups.is_stopped(g) and self._is_of_an_ending_era(machine, packet):
            # p dies; q reports what it has; a last packet of p comes to q alone. Delivered now,
            # nobody else would ever get it. What the living sent is in their reports.
            machine.note("drop", g, packet.src, 0, "after the report")
        elif type(packet.header) in GATE_HEADERS:
            groups.gates.receive(self.out, machine, packet)
        else:
            machine.receive(packet)

    def _keep_if_ahead(self, packet: Receive) -> None:
        """Its sender may have the view already that lets it in; here that view is on its way."""
        known = packet.src in self.agreement.connected and packet.src not in self.lost
        if known and len(self.ahead) < MAX_AHEAD:
            self.ahead.append(packet)

    @staticmethod
    def _is_of_an_ending_era(machine: OrderingProtocol, packet: Receive) -> bool:
        view = machine.views.get(packet.group)
        return view is not None and packet.era <= view.era

    def _keep_if_early(self, packet: Receive) -> None:
        """This process may be about to number the group: the change that says so is on its way."""
        row = self.changes.directory.rows.get(packet.group)
        if row is not None and packet.era <= row.era:
            return
        if len(self.early) >= self.options.max_held:
            raise PeerError(f"more than {self.options.max_held} packets of groups not begun here")
        self.early.append(packet)

    # -- what changes ask for: see `views.changes.Groups` -----------------------------------------

    def page(self, protocol: str) -> type[OrderingProtocol]:
        return self.groups.page(protocol)

    def machine(self, g: GroupId, entry: GroupEntry | None) -> Changing | None:
        if entry is not None and self.groups.entries.get(g, entry) != entry:
            return None
        return self.groups.changing(g)

    def mistaken(self, entry: GroupEntry) -> None:
        g = entry.gid
        self.groups.asked_for.discard(g)
        self.visits.discard(g)
        if self.groups.entries.get(g) == entry:
            self.close(g)
        self.out.news.append(Mistaken(g))

    def machines(self) -> Iterable[Changing]:
        return self.groups.all_changing()

    def view_of(self, row: Row, end: End | None = None) -> View:
        """A row as its machine sees it, after an era that ended so."""
        mark, last = (end.mark, end.last) if isinstance(end, FramesEnd) else (0, ())
        if isinstance(end, NumbersEnd):
            mark = end.end
        return View(
            row.entry.gid, row.number, row.members, row.leader, row.era, mark, row.guests, last,
            subgroups=row.subgroups,
        )  # fmt: skip

    def send(self, to: tuple[ProcessId, ...], header: msgspec.Struct) -> None:
        self.out.transmits.append((to, CLUSTER_GROUP, 0, header, b""))

    def blame(self, p: ProcessId, why: str) -> None:
        """Also for the agreement."""
        self.out.faults.append((p, why))

    def begin(self, number: int, nexts: Sequence[NextEra]) -> None:
        """Eras end, and the next ones begin, at all machines concerned."""
        groups, rows = self.groups, self.changes.directory.rows
        found: dict[int, tuple[Changing, list[NextEra]]] = {}
        for next_era in nexts:
            view, g = next_era.view, next_era.view.group
            self.top_group = max(self.top_group, g)
            has_part = self.me in view.peers or groups.takes_part(g)
            if has_part:
                groups.open(rows[g].entry)
            machine = self.machine(g, rows[g].entry)
            if machine is not None and (has_part or groups.machines[g].together is not None):
                found.setdefault(id(machine), (machine, []))[1].append(next_era)
        for machine, ends in found.values():
            machine.change(number, ends)
        for next_era in nexts:
            g = next_era.view.group
            if g in groups.machines:
                self._close_if_idle(g)
            self._begin_visit(g)
        early, self.early = self.early, []
        for packet in early:
            self._receive(packet)

    def _close_if_idle(self, g: GroupId) -> None:
        """A group that is open only because it was numbered here, or is left."""
        known = self.groups.view(g) is not None
        if known and g not in self.groups.asked_for and not self.groups.takes_part(g):
            self.groups.close(g)

    def forget(self, forgotten: Iterable[GroupId]) -> None:
        """Nobody was in these groups: who numbered one of them does so no more."""
        for g in forgotten:
            if g not in self.groups.asked_for:
                self.groups.close(g)

    def dissolved(self) -> None:
        """All groups of this side have ended."""
        self.agreement.sides.dissolved(self)

    # -- what the agreement asks for: see `membership.agreement_part.Cluster` ---------------------

    def tell(self, news: News) -> None:
        if isinstance(news, Resumed):
            return  # it is so when the next view is in force
        if isinstance(news, Blocked):
            self.blocked, self.listens = news, frozenset()
        elif isinstance(news, Out | Dissolved):
            self.over, self.listens = True, frozenset()
        elif isinstance(news, Installed) and self.blocked is not None:
            self._look_whether_resumed(news.view)
        self.out.news.append(news)

    def _look_whether_resumed(self, view: NodeView) -> None:
        """Packets were dropped while there was no majority: only a view that begins all groups anew
        ends that."""
        if view.anew:
            self.blocked = None
            self.out.news.append(Resumed())
        else:
            self.agreement.reconfiguration.renew()

    def begin_view(self, view: NodeView, excluded: Iterable[NodeEntry]) -> None:
        self.groups.locate({node.pid: node.whereabouts for node in view.nodes if node.site})
        gone = [node for node in self.changes.nodes.values() if node.pid not in view.pids]
        for node in gone:
            self.links.part_from(node.pid, node.name)
        for node in view.nodes:
            self.links.meet(node.pid, node.name)
        for p in view.left:
            self.links.end(p)
        if self.blocked is None:
            self.listens = frozenset(view.pids)
        self._drop_early({node.pid for node in gone})
        self.changes.begin_view(self, view, excluded)
        for node in gone:
            for machine in self.groups.every():
                machine.gone_for_good(node.pid)
        said, self.said = self.said, []
        for multicast in said:
            self._multicast(multicast)
        ahead, self.ahead = self.ahead, []
        for packet in ahead:
            self._receive(packet)

    def _drop_early(self, gone: set[ProcessId]) -> None:
        self.early = [packet for packet in self.early if packet.src not in gone]
        for machine in self.groups.every():
            machine.drop_early(gone)

    def may_leave(self, p: ProcessId) -> bool:
        """At the coordinator: is p in no group, and does it number nothing?"""
        return self.changes.unburden(self, p)

    # -- groups, as the driver asks for them ------------------------------------------------------

    def open_group(self, entry: GroupEntry) -> None:
        """The driver will ask for this group."""
        g, row = entry.gid, self.changes.directory.rows.get(entry.gid)
        self.top_group = max(self.top_group, g)
        self.groups.open(entry)
        self.groups.asked_for.add(g)
        machine = self.groups.machines[g]
        if row is None or row.entry != entry:
            return
        if machine.together is not None and g not in machine.views:
            nothing = machine.nothing_held()
            machine.change(self.changes.done, (NextEra(self.view_of(row), nothing),))

    def offer(self, entry: GroupEntry) -> None:
        """At the coordinator: whoever asked for a group of that name is told this number."""
        self.top_group = max(self.top_group, entry.gid)
        self.changes.target.offer(entry)

    def free_number(self) -> GroupId:
        """At the coordinator: one that no group has, or had of late. A member that asks for the
        highest number that there is must not use up all below it."""
        target, directory = self.changes.target, self.changes.directory
        highest = max(self.top_group, target.highest(directory))
        if highest < MAX_GROUP:
            return highest + 1
        return next(g for g in range(1, MAX_GROUP) if target.of_number(directory, g) is None)

    def known_groups(self) -> int:
        """At the coordinator: how many groups there are, or will be."""
        return self.changes.target.count(self.changes.directory)

    def of_name(self, name: str) -> GroupEntry | None:
        """At the coordinator: the group of that name, also one that nobody is in yet."""
        return self.changes.target.of_name(self.changes.directory, name)

    def _join(self, join: Join) -> None:
        """A member that is to be a guest instead must leave first: its own driver takes it for a
        member until then."""
        if join.part == "guest" and self.changes.wants_to_be_member(join.group.gid):
            return
        self.open_group(join.group)
        want = WantIn(join.group, join.part, join.former, join.memory)
        if join.part == "guest" and self.page(join.group.protocol).together is not None:
            self.visits.add(join.group.gid)
        self.changes.want_in(self, want)
        self._begin_visit(join.group.gid)

    def _begin_visit(self, g: GroupId) -> None:
        """Where there are several sequencers, a guest is in no view: it may send when the group is
        known here."""
        machine = self.groups.machines.get(g)
        if g in self.visits and machine is not None and g in machine.views:
            self.visits.discard(g)
            machine.begin_visit(g)
            self.out.guest.append((g, True))

    def _end_visit(self, g: GroupId) -> None:
        self.visits.discard(g)
        machine = self.groups.machines.get(g)
        if machine is not None and machine.together is not None:
            view = machine.views.get(g)
            if view is not None and self.me not in view.members:
                self.out.guest.append((g, False))

    def close(self, g: GroupId) -> None:
        """The driver has had its last view of the group, or gives it up."""
        self.groups.asked_for.discard(g)
        self.visits.discard(g)
        if not self.groups.takes_part(g):
            self.groups.close(g)
        self.said = [multicast for multicast in self.said if multicast.group != g]

    # -- facts ------------------------------------------------------------------------------------

    @property
    def node_view(self) -> NodeView | None:
        """The node view in force."""
        return self.agreement.view

    @property
    def pids(self) -> tuple[ProcessId, ...]:
        """The nodes of the view, the oldest first."""
        return self.agreement.pids

    @property
    def in_view(self) -> set[ProcessId]:
        """The same, as a set."""
        return set(self.agreement.pids)

    @property
    def coordinator(self) -> ProcessId | None:
        """The node that leads changes, and that names groups."""
        view = self.agreement.view
        return None if view is None else view.coordinator

    @property
    def coordinates(self) -> bool:
        """Is it this node, and does it have a majority?"""
        return self.coordinator == self.me and self.blocked is None and not self.over

    @property
    def lost(self) -> Mapping[ProcessId, NodeEntry]:
        """Nodes that were excluded, and may live."""
        return self.agreement.sides.lost

    @property
    def rows(self) -> Mapping[GroupId, Row]:
        """All groups of the cluster."""
        return self.changes.directory.rows

    def entry_of(self, g: GroupId) -> GroupEntry | None:
        """Of a group that is open here, is known, or is about to begin."""
        entry = self.groups.entries.get(g)
        if entry is None and g in self.rows:
            entry = self.rows[g].entry
        if entry is None and self.changes.prepared is not None:
            coming = self.changes.prepared.groups
            entry = next((c.row.entry for c in coming if c.row.entry.gid == g), None)
        return entry

    def waits_for(self) -> tuple[ProcessId, ...]:
        """At the coordinator: whose word a change that is under way lacks."""
        return self.changes.waits_for()

    def load_of(self, pid: ProcessId) -> float:
        """At the coordinator: what that sequencer carries, as groups are weighed to place them."""
        return sum(p.load(pid) for p in self.changes.target.placements.values())

    def is_drained(self, pid: ProcessId) -> bool:
        """At the coordinator: is that node to number nothing?"""
        return pid in self.changes.target.draining

    def awaited(self, g: GroupId) -> list[Absent]:
        """At the coordinator: who may have newer state of an empty group than all who ask for it,
        and is waited for."""
        row = self.rows.get(g)
        if row is None or row.members:
            return []
        return self.changes.target.awaited(self.changes.directory, g)

    def absent_since(self, g: GroupId, view: int) -> list[Absent]:
        """Who went without a word, was in a later view of the group than this one, and may come
        back with what it remembers of it."""
        row, nodes = self.rows.get(g), () if self.node_view is None else self.node_view.nodes
        forgotten = {(n.name, n.incarnation) for n in nodes if not n.remembers}
        return [
            a
            for a in (() if row is None else row.absent)
            if a.view > view
            and not any(name == a.name and life > a.incarnation for name, life in forgotten)
        ]

    def may_recover_with(self, name: str) -> bool:
        """There is no majority. Would the cluster go on if all who vote came back, that one among
        them, and is it this node's task to let them in?"""
        return self.agreement.leads and self.awaits_voter(name)

    def awaits_voter(self, name: str) -> bool:
        """There is no majority. Is this a name of the list of voters, and does nobody of that name
        answer?"""
        view, agreement = self.agreement.view, self.agreement
        if self.blocked is None or view is None:
            return False
        silent = {node.name for node in view.nodes if node.pid in agreement.suspected}
        return name in view.electorate and name in silent

    @property
    def is_changing(self) -> bool:
        """Is a group stopped here, since it changes; or does anything stand still until others
        answer in a change that this node leads?"""
        stopped = any(True for machine in self.machines() for _ in machine.stopped())
        return stopped or self.changes.is_pressing()

    @property
    def standing(self) -> Standing:
        """How this node stands in its cluster."""
        return self.agreement.standing

    def view(self, g: GroupId) -> View | None:
        """The view of g in force here."""
        return self.groups.view(g)

    def is_in(self, g: GroupId) -> bool:
        """Does the directory say that this node is in the group?"""
        return not self.changes.is_out(g)

    def numbers(self, g: GroupId) -> bool:
        """Does this node number the group?"""
        machine = self.groups.machines.get(g)
        return machine is not None and machine.numbers(g)

    def may_close(self, g: GroupId) -> bool:
        """Is nothing of the group left that the driver has not seen, and nobody waits for us?"""
        if not self.changes.is_out_for_good(g):
            return False
        machine = self.groups.machines.get(g)
        return machine is None or (g not in machine.member_of and not self.groups.gates.awaits(g))

    def held_back(self, g: GroupId | None = None) -> list[Waiting]:
        """Every frame that waits here, and what for; of one group, or of all."""
        return explained.held_back(self, g)

    def waiting_frames(self) -> Iterator[WaitingFrame]:
        """The frames of `held_back` without the reasons; one that is here twice may come twice."""
        return explained.waiting_frames(self)

    def invariants(self) -> None:
        """What must always hold, checked by simulators and explorers after every step."""
        self.agreement.invariants()
        self.groups.gates.invariants()
        self.links.invariants()
        if self.over or self.agreement.view is None:
            return
        self.changes.invariants()
        standing.check(self)
        for machine in self.groups.all_changing():
            machine.invariants()  # type: ignore[attr-defined]

    # -- plain state ------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """All but the effects of the last step."""
        return {name: value for name, value in self.__dict__.items() if name != "out"}

    def copy(self) -> Self:
        """An independent twin with no effects pending. What its parts share, they share there."""
        twin = deepcopy(self)
        twin.out.clear()
        return twin
