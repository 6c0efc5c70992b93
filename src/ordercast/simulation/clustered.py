"""Runs of a whole cluster: nodes find out by themselves who lives, and who coordinates.

Here a *host* is what may crash, be cut off and come back. Each start of a node on a host is a
process of its own with a number of its own, as a live node gets a new incarnation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from random import Random
from typing import Any, Literal, Protocol, cast

import msgspec

from ordercast.core.declaration import Declaration
from ordercast.core.events import View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.output import Delivery, Output
from ordercast.core.protocol import Options, OrderingProtocol
from ordercast.core.whereabouts import NOWHERE, Whereabouts
from ordercast.membership.agreement_headers import AGREEMENT_HEADERS
from ordercast.membership.news import Dissolved, Installed, Out
from ordercast.membership.node_view import NodeEntry
from ordercast.membership.options import ClusterOptions
from ordercast.process import commands
from ordercast.process.process import Process
from ordercast.protocols.registry import choose
from ordercast.simulation.agenda import TICKS_PER_MS, Agenda, Arrival
from ordercast.simulation.checked import Checked
from ordercast.simulation.config import GroupConfig
from ordercast.simulation.costs import CostModel
from ordercast.simulation.engine import EndReason, Limits, Simulation
from ordercast.simulation.log import NAMES, Declared, Ended, Left, Row
from ordercast.simulation.network import Medium, NetworkModel
from ordercast.simulation.outcome import Outcome
from ordercast.simulation.run import consuming, consumption, no_collection, statistics_of
from ordercast.simulation.seats import Roster
from ordercast.simulation.timed import TimedSimulation
from ordercast.simulation.workload import Workload
from ordercast.trace.watch import Watch
from ordercast.views.groups import GroupEntry
from ordercast.views.target import REMEMBERING

Host = int

MAX_STARTS = 12  # of nodes on one host in one run
REBOOT_MS = 30  # from the word that a node is out until its next incarnation asks to be let in
LOOK_MS = 50  # so often it is looked whether the run is over
CLOSE_MS = 5  # so often it is looked whether others still need what a node has of a group it left
SEEK_MS = 100  # so often a newcomer looks again for whom it can ask


class ClusterFault(Protocol):
    """Something that happens to the cluster from outside; any `Fault` is one."""

    @property
    def at_ms(self) -> float:
        """When, in simulated time."""
        ...

    def apply(self, simulation: ClusterSimulation) -> None:
        """Do it."""
        ...


class ClusterConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A run of a cluster. All that it depends on stands here."""

    protocol: type[OrderingProtocol]  # of groups that name no other
    hosts: int = 5
    groups: tuple[GroupConfig, ...] = ()  # members and guests are hosts; none: one group of all
    sites: tuple[Whereabouts, ...] = ()  # where each host is, for protocols with subgroups
    sequencers: tuple[Host, ...] = ()  # hosts that number messages of groups they are not in
    late: tuple[Host, ...] = ()  # hosts that are started by a fault, or never
    messages: int = 60
    workload: Workload = Workload()
    network: NetworkModel = NetworkModel()
    faults: tuple[ClusterFault, ...] = ()
    seed: int = 0
    options: Options = Options()
    consume_ms: float | None = None  # applications take what is delivered after this; None: at once
    cluster: ClusterOptions = ClusterOptions(heartbeat_ms=20, suspect_ms=100)
    costs: CostModel | None = None  # what work costs each node; None: it takes no time
    process: type[Process] = Process  # another one, to see what a fault in it does
    voters: tuple[Host, ...] = ()  # hosts that vote; none: all may
    trace: Literal["application", "protocol"] = "application"
    checks: bool = True  # invariants are looked at after every step
    until_ms: float = 3000.0  # the run ends then ...
    rest_ms: float = 500.0  # ... and nothing may have been said or delivered for so long

    def group_list(self) -> list[tuple[GroupId, GroupConfig]]:
        """The groups with their numbers."""
        groups = self.groups or (GroupConfig(members=tuple(range(self.hosts))),)
        return list(enumerate(groups, start=1))

    def protocol_of(self, group: GroupConfig) -> type[OrderingProtocol]:
        """The one that orders its messages."""
        if group.protocol is None:
            return self.protocol
        return choose(None, group.protocol) if isinstance(group.protocol, str) else group.protocol


class Boot(msgspec.Struct, frozen=True):
    """A node is started on a host: for the first time, or after a crash."""

    host: Host
    at_ms: float

    def apply(self, simulation: ClusterSimulation) -> None:
        """Start it."""
        if simulation.current.get(self.host) is None:
            simulation.boot(self.host)


class Depart(msgspec.Struct, frozen=True):
    """The node of a host leaves all groups and the cluster, in order."""

    host: Host
    at_ms: float

    def apply(self, simulation: ClusterSimulation) -> None:
        """Tell it."""
        simulation.depart(self.host)


class ClusterSimulation(Simulation):
    """Machines of nodes that come, go, and come back."""

    def __init__(self, config: ClusterConfig, agenda: Agenda, medium: Medium) -> None:
        self.config = config
        slots = config.hosts * MAX_STARTS
        groups = config.group_list()
        sizes = {g: len(group.members) for g, group in groups}
        protocols = {g: config.protocol_of(group) for g, group in groups}
        rosters = {g: Roster(protocols[g], (), 0) for g, _ in groups}
        machines: list[Any] = [None] * slots
        applications = [
            config.workload.application(sizes, Random(f"{config.seed} application {p}"))
            for p in range(slots)
        ]
        consume_ticks = consumption(config.consume_ms, slots)
        super().__init__(
            machines, applications, rosters, agenda, medium, size=config.workload.size,
            consume_ticks=consume_ticks,
        )  # fmt: skip
        self.pages = {page.declaration.name: page for page in protocols.values()}
        self.entries = {g: _entry(g, group, protocols[g].declaration) for g, group in groups}
        self.wishes: dict[Host, set[GroupId]] = {h: set() for h in range(config.hosts)}
        self.visits: dict[Host, set[GroupId]] = {h: set() for h in range(config.hosts)}
        for g, group in groups:
            for host in group.members:
                self.wishes[host].add(g)
            for host in group.guests:
                self.visits[host].add(g)
        self.starts = dict.fromkeys(range(config.hosts), 0)
        self.current: dict[Host, ProcessId | None] = {}
        self.going: set[Host] = set()  # whose node is to leave
        self.departing: set[ProcessId] = set()  # processes that were told to, ever
        self.in_view: set[ProcessId] = set()  # processes that have been let in
        self.former: dict[Host, dict[GroupId, tuple[str, ...]]] = {}
        self.node_views: list[tuple[ProcessId, int, tuple[ProcessId, ...]]] = []
        self.story: list[tuple[float, ProcessId, msgspec.Struct]] = []  # all news, with the time
        self.disturbances: list[float] = []  # when faults struck, in ms
        self.own: dict[tuple[ProcessId, GroupId], int] = {}  # own messages delivered
        self.memories: dict[tuple[Host, GroupId], int] = {}  # the last view a program has seen
        self.awaited_ms = (
            0.0  # so much longer the run was, for groups that wait for a former member
        )
        self.shared_out = Output()

    def host_of(self, p: ProcessId) -> Host:
        """Where process p runs, or ran."""
        return p % self.config.hosts

    # -- nodes ------------------------------------------------------------------------------------

    def start(self) -> None:
        for host in range(self.config.hosts):
            if host not in self.config.late:
                self.boot(host)

    def boot(self, host: Host, former: tuple[str, ...] = (), *, remembers: bool = False) -> None:
        """Start the next node of a host."""
        if self.current.get(host) is not None or self.starts[host] >= MAX_STARTS:
            return
        pid = host + self.starts[host] * self.config.hosts
        self.starts[host] += 1
        self.going.discard(host)
        where = self.config.sites[host] if self.config.sites else NOWHERE
        node = NodeEntry(
            pid,
            f"p{host}",
            self.starts[host],
            former=former,
            site=where.site,
            gateway=where.gateway,
            sequencer=host in self.config.sequencers,
            voter=not self.config.voters or host in self.config.voters,
            remembers=remembers,
        )
        machine = self.config.process(
            node,
            self.pages,
            cluster_options=self.config.cluster,
            network=self.config.network.network_class(partitions=True),
            cluster_network=self.config.network.cluster_class(),
            options=consuming(self.config.options, self.config.consume_ms),
            out=self.shared_out,
        )
        self.machines[pid] = machine  # type: ignore[index]
        steps: Any = machine
        if self.config.trace == "protocol":
            steps = Watch(steps, NAMES, partial(self._observe, pid))
        self.alive[pid] = Checked(machine, steps) if self.config.checks else steps
        self.current[host] = pid
        self._connect(host)
        if pid == 0:
            self.tell(pid, commands.Found())
        else:
            self._seek(pid)

    def _connect(self, host: Host) -> None:
        """Nodes that can reach each other have a connection."""
        p = self.current.get(host)
        for other, q in self.current.items():
            if p is None or q is None or q == p or (p, q) in self.medium.broken:
                continue
            if self.medium.reaches(p, q):
                self._later(0.5, partial(self._connected, p, q, f"p{other}"))
                self._later(0.5, partial(self._connected, q, p, f"p{host}"))

    def reset(self, p: ProcessId, q: ProcessId) -> None:
        """The connection between two nodes breaks, and both live: each is told that it did. As live
        nodes do, who misses the other looks for it."""
        self.medium.reset(p, q)
        self._later(1 + p % 3, partial(self._broke, p, q))
        self._later(1 + q % 3, partial(self._broke, q, p))
        self._later(SEEK_MS, partial(self._look_for, p, q))

    def _look_for(self, p: ProcessId, q: ProcessId) -> None:
        if self.alive[p] is None or self.alive[q] is None:
            return
        if self.medium.reaches(p, q) and (self._misses(p, q) or self._misses(q, p)):
            self.medium.connect_again(p, q)
            self._connected(p, q, f"p{self.host_of(q)}")
            self._connected(q, p, f"p{self.host_of(p)}")
        else:
            self._later(SEEK_MS, partial(self._look_for, p, q))

    def _misses(self, p: ProcessId, q: ProcessId) -> bool:
        machine: Any = self.machines[p]
        if machine.node_view is None:  # whoever may let it in
            return True
        if self.config.cluster.partition == "merge":
            return q not in machine.in_view
        return q in machine.lost or (machine.blocked is not None and q in machine.blocked.missing)

    def _connected(self, p: ProcessId, q: ProcessId, name: str) -> None:
        if self.alive[p] is not None and self.alive[q] is not None:
            self.tell(p, commands.Connected(q, name))

    def connect_all(self) -> None:
        """The network is whole again, or parted in another way."""
        self.medium.go_on(self.now)
        for host in self.current:
            self._connect(host)

    def tell(self, p: ProcessId, command: commands.Command) -> None:
        """Hand a command to the machine at p."""
        self.hand(p, (command,))  # type: ignore[arg-type]  # a stack of a cluster takes them, too

    def _seek(self, pid: ProcessId) -> None:
        machine: Any = self.machines[pid]
        if self.alive[pid] is None or machine.node_view is not None:
            return
        contacts = tuple(q for q in self.current.values() if q is not None and q != pid)
        if not machine.agreement.ticks and not machine.agreement.entrance.contacts:
            self.tell(pid, commands.Seek(contacts))
        else:
            machine.agreement.entrance.contacts = contacts
        self._later(SEEK_MS, partial(self._seek, pid))

    def _later(self, ms: float, act: Any) -> None:
        self.agenda.acts[self.now + round(ms * TICKS_PER_MS)].append(act)

    def take_news(self, p: ProcessId, news: msgspec.Struct) -> None:
        self.story.append((self.now / TICKS_PER_MS, p, news))
        if isinstance(news, Installed):
            self.node_views.append((p, news.view.number, news.view.pids))
            if p not in self.in_view and p in news.view.pids:
                self.in_view.add(p)
                self._later(0.001, partial(self._ask_for_groups, p))
        elif isinstance(news, Out):
            self._later(0.001, partial(self._retire, p))
        elif isinstance(news, Dissolved):
            self._later(0.001, partial(self._go_over, p, news))

    def _ask_for_groups(self, p: ProcessId) -> None:
        host = self.host_of(p)
        former = self.former.pop(host, {})
        for g in sorted(self.wishes[host]):
            self._ask(p, g, former.get(g, ()))
        for g in sorted(self.visits[host]):
            self._ask_for_visit(p, g)

    def _ask(self, p: ProcessId, g: GroupId, former: tuple[str, ...] = ()) -> None:
        if self.alive[p] is None:
            return
        self._seat(p, g).opened = True
        self.tell(p, commands.Join(self.entries[g], "member", former, self._memory(p, g)))

    def _ask_for_visit(self, p: ProcessId, g: GroupId) -> None:
        """A group is visited when it is there: a guest finds it by its name."""
        if self.alive[p] is None or g not in self.visits[self.host_of(p)]:
            return
        machine: Any = self.machines[p]
        if g not in machine.rows:
            self._later(SEEK_MS, partial(self._ask_for_visit, p, g))
            return
        self._seat(p, g).opened = True
        self.tell(p, commands.Join(self.entries[g], "guest"))

    def _memory(self, p: ProcessId, g: GroupId) -> int:
        """The last view of the group that the program on this host has seen."""
        return self.memories.get((self.host_of(p), g), 0)

    def _retire(self, p: ProcessId) -> None:
        """The others went on without p; or p has left in order."""
        if self.alive[p] is None:
            return
        host = self.host_of(p)
        in_groups = any(seat.in_view for seat in self.seats[p].values())
        gone = host in self.going
        others: list[Any] = [self.machines[q] for q in self.current.values() if q is not None]
        excluded = any(p in machine.lost for machine in others)  # before it said good-bye
        self._stop(p, "end" if gone and not in_groups and not excluded else "crash")
        if not gone:
            self._later(REBOOT_MS, partial(self.boot, host, remembers=True))

    def _go_over(self, p: ProcessId, news: Dissolved) -> None:
        host = self.host_of(p)
        machine = self.machines[p]
        for g, seat in self.seats[p].items():
            view = machine.view(g)
            if seat.in_view and view is not None:
                names = tuple(f"p{self.host_of(q)}" for q in view.members)
                self.former.setdefault(host, {})[g] = names
                self.record((p, self.now, Left(g)))
        self._stop(p, "end")
        self._later(REBOOT_MS, partial(self.boot, host, news.former, remembers=True))

    def _stop(self, p: ProcessId, kind: str) -> None:
        self.alive[p] = None
        self.timers.stop(p)
        self.record((p, self.now, Ended(kind)))
        self.current[self.host_of(p)] = None

    def _arrive(self, arrivals: list[Arrival]) -> None:
        """Who seeks a lost node speaks to its address, and so to whoever runs there now."""
        found: list[Arrival] = []
        for p, batch in arrivals:
            if self.alive[p] is None and type(batch[0].header) in AGREEMENT_HEADERS:
                here = self.current.get(self.host_of(p))
                found.append((p if here is None else here, batch))
            else:
                found.append((p, batch))
        super()._arrive(found)

    def rows_of(self, p: ProcessId, deliveries: list[Delivery | View]) -> list[Row]:
        """A view without p is its leave, as a live node records it."""
        rows: list[Row] = []
        for item in deliveries:
            if isinstance(item, View):
                if p in item.members:
                    rows.append(item)
                    self.memories[self.host_of(p), item.group] = item.number
                else:
                    rows.append(Left(item.group))
                    self._later(0.001, partial(self._close_left, p, item.group))
            else:
                rows.append(item)
                if item[1] == p:
                    self.own[p, item[0]] = self.own.get((p, item[0]), 0) + 1
        return rows

    def _close_left(self, p: ProcessId, g: GroupId) -> None:
        """A live node forgets a group when it has had its last view and nobody needs it."""
        machine: Any = self.machines[p]
        if self.alive[p] is None or machine.over or machine.is_in(g) or g in machine.changes.wants:
            return
        if machine.may_close(g):
            machine.close(g)
        else:
            self._later(CLOSE_MS, partial(self._close_left, p, g))

    def _note_groups(self, p: ProcessId) -> None:
        super()._note_groups(p)
        groups = self.groups_of(self.host_of(p))
        self.groups_in[p] = tuple(g for g in self.groups_in[p] if g in groups)

    def groups_of(self, host: Host) -> set[GroupId]:
        """Those that its programs send to, as members or as guests."""
        return self.wishes[host] | self.visits[host]

    # -- what scripts do --------------------------------------------------------------------------

    def suffer(self, fault: ClusterFault) -> None:
        """A fault strikes now."""
        self.disturbances.append(self.now / TICKS_PER_MS)
        fault.apply(self)
        self.connect_all()

    def say(self, host: Host, groups: Iterable[GroupId]) -> None:
        p = self.current.get(host)
        if p is not None:
            super().say(p, [g for g in groups if g in self.groups_of(host)])

    def crash(self, host: Host, lose: float = 0.0) -> None:
        p = self.current.get(host)
        if p is None:
            return
        self._stop(p, "crash")
        if lose:
            self.medium.forget_sender(p, lose)
        if self.config.network.fifo:  # connections: they break
            for q in self.current.values():
                if q is not None:
                    self._later(1 + q % 3, partial(self._broke, q, p))

    def _broke(self, q: ProcessId, p: ProcessId) -> None:
        self.tell(q, commands.Broken(p))

    def visit(self, host: Host, g: GroupId) -> None:
        """A program asks its node to let it send to a group: when it has left it as a member."""
        p = self.current.get(host)
        if g in self.groups_of(host) or host in self.going:
            return
        if p is not None and self._is_leaving(p, g):
            self._later(5, partial(self.visit, host, g))
            return
        self.visits[host].add(g)
        if p is not None and p in self.in_view:
            self._ask_for_visit(p, g)

    def leave(self, host: Host, g: GroupId) -> None:
        """A program is through with a group, as a member or as a guest."""
        self.wishes[host].discard(g)
        self.visits[host].discard(g)
        p = self.current.get(host)
        if p is not None:
            self._note_groups(p)
            self._quit_when_drained(p, g)

    def join(self, host: Host, g: GroupId) -> None:
        """A program asks its node to join a group: again only when it was left."""
        p = self.current.get(host)
        if g in self.groups_of(host) or host in self.going:
            return
        if p is not None and self._is_leaving(p, g):
            self._later(5, partial(self.join, host, g))
            return
        self.wishes[host].add(g)
        if p is not None and p in self.in_view:
            self._ask(p, g)

    def _is_leaving(self, p: ProcessId, g: GroupId) -> bool:
        """Is p still in a group that it is not to be in any more?"""
        machine: Any = self.machines[p]
        return self._seat(p, g).may_send or g in machine.changes.unmet

    def _quit_when_drained(self, p: ProcessId, g: GroupId) -> None:
        """A node leaves a group when all that it sent has its place."""
        if self.alive[p] is None or g in self.groups_of(self.host_of(p)):
            return
        seat = self._seat(p, g)
        placed = max(self.own.get((p, g), 0) if seat.in_view else 0, seat.stable)
        if seat.may_send and (seat.waiting or seat.sent > placed):
            self._later(3, partial(self._quit_when_drained, p, g))
        else:
            seat.waiting.clear()
            self.tell(p, commands.Leave(g))

    def depart(self, host: Host) -> None:
        """Leave all groups, then the cluster."""
        p = self.current.get(host)
        if p is None:
            return
        self.going.add(host)
        self.departing.add(p)
        left = self.groups_of(host)
        self.wishes[host], self.visits[host] = set(), set()
        self._note_groups(p)
        for g in sorted(left):
            self._quit_when_drained(p, g)
        self._go_when_out(p)

    def _go_when_out(self, p: ProcessId) -> None:
        machine = self.alive[p]
        if machine is None:
            return
        if any(seat.may_send for seat in self.seats[p].values()):
            self._later(5, partial(self._go_when_out, p))
        else:
            self.tell(p, commands.Depart())

    def partition_hosts(self, sides: tuple[tuple[Host, ...], ...]) -> None:
        """Cut the network between hosts, whichever nodes run there."""
        starts = range(MAX_STARTS)
        expanded = tuple(
            tuple(h + k * self.config.hosts for h in side for k in starts) for side in sides
        )
        self.medium.partition(expanded, len(self.machines))

    def look(self) -> None:
        """Heartbeats never end. When all is in place, and quiet for a while, the run is over."""
        if self.at_rest():
            self.agenda.clear()
        else:
            self._later(LOOK_MS, self.look)

    def at_rest(self) -> bool:
        """All nodes are in one view and in the groups they want, and nobody says anything. What
        still waits somewhere may wait for a timer that is slower than that."""
        if self.now - self.news <= self.config.rest_ms * TICKS_PER_MS:
            return False
        here = {p for p in self.current.values() if p is not None}
        if here & self.departing or set(self.standing().values()) - {"in", "down"}:
            return False
        machines: list[Any] = [self.machines[p] for p in here]
        if any(machine.in_view != here for machine in machines):
            return False
        if any(True for machine in machines for _ in machine.waiting_frames()):
            return False
        return not any(True for p in here for _ in self.lacking(p))

    def lacking(self, p: ProcessId) -> Iterator[GroupId]:
        """Groups that p is to be in, or to visit, and does not yet."""
        host, machine = self.host_of(p), self.machines[p]
        for g in sorted(self.wishes[host]):
            view = machine.view(g)
            if view is None or p not in view.members or not self._seat(p, g).in_view:
                yield g
        yield from (g for g in sorted(self.visits[host]) if not self._seat(p, g).guest)

    def awaits_former_members(self) -> bool:
        """Does a group without members wait for one that may have a newer state than who asks?"""
        leading = (m for m in map(self._current_machine, self.current) if m and m.coordinates)
        return any(machine.awaited(g) for machine in leading for g in machine.rows)

    def _current_machine(self, host: Host) -> Process | None:
        p = self.current.get(host)
        return None if p is None else cast(Process, self.machines[p])

    # -- the end ----------------------------------------------------------------------------------

    def standing(self) -> dict[Host, str]:
        """How each host's node stands: in, blocked, out."""
        found: dict[Host, str] = {}
        for host, p in self.current.items():
            machine: Any = None if p is None else self.machines[p]
            if machine is None:
                found[host] = "down"
            elif machine.node_view is None:
                found[host] = "outside"
            elif machine.blocked is not None:
                found[host] = "blocked"
            else:
                found[host] = "in"
        return found

    def finish(self) -> None:
        for host, standing in self.standing().items():
            p = self.current[host]
            if standing == "in" and p is not None:
                self.record((p, self.now, Ended("end")))


class TimedCluster(ClusterSimulation, TimedSimulation):
    """Nodes whose work takes time. All starts of a host have a processor of their own."""


class ClusterOutcome(Outcome):
    """A run that is over, and how its nodes stood then."""

    standing: dict[Host, str]
    node_views: list[tuple[ProcessId, int, tuple[ProcessId, ...]]]  # (who, number, nodes), in order
    simulation: ClusterSimulation


class PartitionHosts(msgspec.Struct, frozen=True):
    """Packets pass only between hosts of one side."""

    sides: tuple[tuple[Host, ...], ...]
    at_ms: float

    def apply(self, simulation: ClusterSimulation) -> None:
        """Cut the network."""
        simulation.partition_hosts(self.sides)


class Calm(msgspec.Struct, frozen=True):
    """From now on the network loses nothing."""

    at_ms: float

    def apply(self, simulation: ClusterSimulation) -> None:
        """Mend it."""
        simulation.medium.heal()
        simulation.medium.calm()


def _entry(g: GroupId, group: GroupConfig, declared: Declaration) -> GroupEntry:
    return GroupEntry(
        g, f"g{g}", declared.order, declared.name, 0, group.durability, group.delivery_level
    )


def simulate_cluster(config: ClusterConfig) -> ClusterOutcome:
    """Run it. The same config gives the same outcome in every interpreter."""
    agenda = Agenda()
    slots = config.hosts * MAX_STARTS
    network = Random(f"ordercast {config.seed} network")
    medium = Medium(config.network, slots, agenda.packets, network)
    if config.costs is None:
        simulation = ClusterSimulation(config, agenda, medium)
    else:
        simulation = TimedCluster(config, agenda, medium)
        simulation.give_processors(config.costs)
    groups_of = {h: tuple(sorted(simulation.groups_of(h))) for h in range(config.hosts)}
    for planned in config.workload.plan(
        config.messages, groups_of, Random(f"ordercast {config.seed} workload")
    ):
        act = partial(simulation.say, planned.process, planned.groups)
        agenda.acts[planned.tick].append(act)
    for fault in config.faults:
        tick = max(1, round(fault.at_ms * TICKS_PER_MS))
        agenda.acts[tick].append(partial(simulation.suffer, fault))
    last = max((fault.at_ms for fault in config.faults), default=0.0)
    agenda.acts[round((last + config.rest_ms) * TICKS_PER_MS)].append(simulation.look)
    end = round(config.until_ms * TICKS_PER_MS)
    try:
        with no_collection():
            simulation.start()
            simulation.run(Limits(ticks=end, events=5_000_000, quiet=end))
            if simulation.awaits_former_members():
                simulation.awaited_ms = REMEMBERING * config.cluster.refound_ms
                end += round(simulation.awaited_ms * TICKS_PER_MS)
                simulation.run(Limits(ticks=end, events=5_000_000, quiet=end))
    except Exception as error:
        error.add_note(f"in a simulated cluster with seed={config.seed}, tick {simulation.now}")
        raise
    ended: EndReason = "time limit"
    if simulation.now - simulation.news > config.rest_ms * TICKS_PER_MS:
        ended = "quiescent"
        simulation.finish()
    outcome = ClusterOutcome(
        f"seed-{config.seed}",
        ended,
        statistics_of(simulation),
        tuple(Declared(g, (), config.protocol_of(c).declaration) for g, c in config.group_list()),
        simulation.log,
        tuple(simulation.first_faults),
        simulation.processors if isinstance(simulation, TimedSimulation) else None,
    )
    outcome.standing = simulation.standing()
    outcome.node_views = simulation.node_views
    outcome.simulation = simulation
    return outcome
