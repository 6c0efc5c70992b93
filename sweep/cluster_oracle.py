"""The judge of a run of a cluster, apart from its trace: slow and obvious.

It knows nothing of ballots, attempts or flushes. It looks at the views that nodes installed and
that coordinators asked them to prepare, at who lives in the end, and at when faults struck.

    one view per number       whoever installs a node view of one number installs the same list
    numbers rise              at every process, of node views and of the views of each group
    one primary side          an installed view holds more than half of the one before, or half
                              and its first node; who left in order does not count
    nobody is driven out      of a network that loses nothing and was never cut, nobody who lives
    nothing is blocked        all that live are in one node view, and in the groups they want, and
                              came there within UNBLOCKED_MS of the last fault

Nothing may be blocked unless too few live. Enough live if they hold more than half (or half, and
the first node) of the last view that was settled, and of every later one that anybody installed or
was asked to prepare. A view is settled when all its nodes had it and nothing happened for a while.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import msgspec

from ordercast.core.events import Receive, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.membership.cluster_headers import (
    Attempt,
    EndView,
    InstallView,
    NodesAck,
    PrepareView,
)
from ordercast.membership.standing import Installed, Out
from ordercast.simulation.agenda import TICKS_PER_MS
from ordercast.simulation.clustered import (
    MAX_STARTS,
    ClusterConfig,
    ClusterOutcome,
    ClusterSimulation,
    PartitionHosts,
    simulate_cluster,
)
from ordercast.simulation.log import Ended
from sweep.ambush import inner

UNBLOCKED_MS = 2000.0  # from the last fault until everything is in place again, at most
SETTLED_MS = 150.0  # so long nothing happened: by then all know that all have the view

Nodes = tuple[ProcessId, ...]
Complaint = tuple[str, str]  # (guarantee, sentence)


class ClusterRun(msgspec.Struct):
    """A run that is over, with all that its judge needs."""

    outcome: ClusterOutcome
    prepared: set[tuple[int, Nodes]]  # node views that somebody was asked to prepare
    begun: set[Attempt]  # attempts to end a view ...
    finished: set[Attempt]  # ... and those that came to an INSTALL
    voters: dict[tuple[int, Nodes], Nodes]  # who was to vote for a view, by number and nodes
    acknowledged: set[tuple[int, ProcessId]]  # numbers of node views, and who said it has them

    @property
    def simulation(self) -> ClusterSimulation:
        """The machines, as they stood in the end."""
        return self.outcome.simulation

    @property
    def installed(self) -> list[tuple[float, ProcessId, int, Nodes]]:
        """(when, who, number, nodes) of all node views, in the order of time."""
        return [
            (ms, p, news.view.number, news.view.pids)
            for ms, p, news in self.simulation.story
            if isinstance(news, Installed)
        ]

    @property
    def living(self) -> set[ProcessId]:
        """Processes that run when it is over."""
        return {p for p in self.simulation.current.values() if p is not None}

    @property
    def last_fault_ms(self) -> float:
        """When the last fault struck."""
        return max(self.simulation.disturbances, default=0.0)

    @property
    def merging(self) -> bool:
        """May every side go on?"""
        return self.simulation.config.cluster.partition == "merge"


def run(config: ClusterConfig) -> ClusterRun:
    """Run it, and note what coordinators ask nodes to prepare."""
    prepared: set[tuple[int, Nodes]] = set()
    begun: set[Attempt] = set()
    asked: dict[Attempt, Nodes] = {}
    voters: dict[tuple[int, Nodes], Nodes] = {}
    finished: set[Attempt] = set()
    acknowledged: set[tuple[int, ProcessId]] = set()
    transform = config.network.transform

    def note(packet: Receive) -> Receive:
        header = inner(packet.header)
        if isinstance(header, PrepareView):
            view = (header.view.number, header.view.pids)
            prepared.add(view)
            voters[view] = asked[header.attempt]
        elif isinstance(header, EndView):
            begun.add(header.attempt)
            asked[header.attempt] = header.nodes
        elif isinstance(header, InstallView):
            finished.add(header.attempt)
        elif isinstance(header, NodesAck):
            acknowledged.add((header.number, packet.src))
        return packet if transform is None else transform(packet)

    network = msgspec.structs.replace(config.network, transform=note)
    outcome = simulate_cluster(msgspec.structs.replace(config, network=network))
    return ClusterRun(outcome, prepared, begun, finished, voters, acknowledged)


def cluster_complaints(done: ClusterRun) -> list[Complaint]:
    """All that is wrong with the views of this run, and with where it ended."""
    found = [("numbers rise", sentence) for sentence in numbers_that_fall(done)]
    if not done.merging:
        found += [("one view per number", sentence) for sentence in two_of_a_number(done)]
        found += [("one primary side", sentence) for sentence in two_sides(done)]
    found += [("nobody is driven out", sentence) for sentence in driven_out(done)]
    found += [("nothing is blocked", sentence) for sentence in blocked(done)]
    return found


# -- numbers --------------------------------------------------------------------------------------


def numbers_that_fall(done: ClusterRun) -> Iterator[str]:
    """View ids never go backwards at any process."""
    highest: dict[tuple[ProcessId, GroupId | None], int] = {}
    for p, group, number in _views_in_order(done):
        before = highest.get((p, group), 0)
        if number <= before:
            where = "the cluster" if group is None else f"group {group}"
            yield f"process {p} has view {before} of {where}, and then view {number}"
        highest[p, group] = max(number, before)


def _views_in_order(done: ClusterRun) -> Iterator[tuple[ProcessId, GroupId | None, int]]:
    for _, p, number, _ in done.installed:
        yield p, None, number
    for p, _, *rows in done.outcome.log.records:
        for row in rows:
            if isinstance(row, View):
                yield p, row.group, row.number


def two_of_a_number(done: ClusterRun) -> Iterator[str]:
    """Views of one number are one view."""
    lists: dict[int, Nodes] = {}
    for _, p, number, nodes in done.installed:
        if lists.setdefault(number, nodes) != nodes:
            yield f"view {number} is {nodes} at {p}, and {lists[number]} elsewhere"


def two_sides(done: ClusterRun) -> Iterator[str]:
    """Each view that excludes anybody was made by a majority of the one before.

    A view that only lets nodes in or go is in force when a majority of the one before has said that
    it has it. Until then the other side of a partition may go on without it, and its coordinator
    will find out.
    """
    before: Nodes = ()
    for number, nodes in sorted({(number, nodes) for _, _, number, nodes in done.installed}):
        left = done.simulation.departing - set(nodes)
        staying = tuple(p for p in before if p not in left)
        excludes = not set(staying) <= set(nodes)
        # One that delivered what the others cannot get votes, and is not in the view it voted for.
        voted = done.voters.get((number, nodes), nodes)
        if staying and excludes and not enough({*nodes, *voted}, staying):
            yield f"view {number}, {nodes}, is no majority of the one before, {before}"
        have_it = {nodes[0], *(p for n, p in done.acknowledged if n == number)}
        if not staying or excludes or enough(have_it, staying):
            before = nodes


def enough(side: Collection[ProcessId], view: Nodes) -> bool:
    """More than half of the view, or half with its first node."""
    there = [p for p in view if p in side]
    if 2 * len(there) == len(view):
        return not view or view[0] in there
    return 2 * len(there) > len(view)


def driven_out(done: ClusterRun) -> Iterator[str]:
    """Nobody who lives, and could always be heard, is excluded."""
    config = done.simulation.config
    cut = any(isinstance(fault, PartitionHosts) for fault in config.faults)
    if cut or config.network.loss or done.merging:
        return
    for ms, p, news in done.simulation.story:
        left = p in done.simulation.departing
        if isinstance(news, Out) and not left and _was_let_in(done, p):
            yield f"process {p} was excluded at {ms:.0f} ms, though all could hear it"


def _was_let_in(done: ClusterRun, p: ProcessId) -> bool:
    """Did anybody hear of it but a coordinator that has died since?"""
    return any(
        p in nodes and q != p and (q != nodes[0] or q in done.living)
        for _, q, _, nodes in done.installed
    )


# -- nothing is blocked for ever ------------------------------------------------------------------


def blocked(done: ClusterRun) -> Iterator[str]:
    """Everything is in place, in time; or too few live."""
    out_of_place = list(misplaced(done))
    if not out_of_place:
        took = done_ms(done) - done.last_fault_ms
        if took > UNBLOCKED_MS:
            yield f"it took {took:.0f} ms until everything was in place again"
    elif enough_live(done):
        yield f"enough nodes live, but {out_of_place[0]}"
    else:
        yield from wrongly_blocked(done)


def misplaced(done: ClusterRun) -> Iterator[str]:
    """Hosts that are not where they want to be."""
    simulation = done.simulation
    views = set()
    for host, standing in simulation.standing().items():
        p = simulation.current[host]
        if standing == "in" and p is not None:
            machine: Any = simulation.machines[p]
            views.add((machine.node_view.number, machine.pids))
            lacking = [g for g in simulation.wishes[host] if not _is_member(machine, g, p)]
            if lacking:
                yield f"host {host} is not in its group {lacking[0]}"
            if host in simulation.going:
                yield f"host {host} does not get away"
        elif standing != "down":
            yield f"host {host} is {standing}"
        elif simulation.starts[host] == MAX_STARTS:
            yield f"host {host} was started {MAX_STARTS} times, and is out again"
    if len(views) > 1:
        yield f"there are {len(views)} node views: {sorted(views)}"


def _is_member(machine: Any, g: GroupId, p: ProcessId) -> bool:
    view = machine.view(g)
    return view is not None and p in view.members


def done_ms(done: ClusterRun) -> float:
    """When the last view was installed, of the cluster or of a group."""
    last = max((ms for ms, *_ in done.installed), default=0.0)
    for _, tick, *rows in done.outcome.log.records:
        if any(isinstance(row, View) for row in rows):
            last = max(last, tick / TICKS_PER_MS)
    return last


def enough_live(done: ClusterRun) -> bool:
    """Must those who live go on?"""
    if done.merging:
        return any(p in done.living for _, p, _, _ in done.installed)
    base, nodes = settled_view(done)
    views = {(number, pids) for _, _, number, pids in done.installed} | done.prepared
    later = [pids for number, pids in views if number > base]
    return all(surely_enough(done, view) for view in (nodes, *later))


def surely_enough(done: ClusterRun, view: Nodes) -> bool:
    """Enough of it live, whether or not those who were told to depart still count."""
    staying = tuple(p for p in view if p not in done.simulation.departing)
    return enough(done.living, view) and enough(done.living, staying)


def settled_view(done: ClusterRun) -> tuple[int, Nodes]:
    """The last view that all its nodes had for a while in which nothing happened; or the first."""
    have: dict[int, set[ProcessId]] = {}
    _, _, first, founder = done.installed[0]
    found = (first, founder)
    times = [ms for ms, *_ in done.installed] + done.simulation.disturbances
    ends = _ends(done)
    for ms, p, number, nodes in done.installed:
        have.setdefault(number, set()).add(p)
        quiet = not any(ms < other <= ms + SETTLED_MS for other in times)
        all_have_it = have[number].issuperset(nodes)
        all_live = all(ends.get(q, ms + 2 * SETTLED_MS) > ms + SETTLED_MS for q in nodes)
        if quiet and all_have_it and all_live and number > found[0]:
            found = (number, nodes)
    return found


def _ends(done: ClusterRun) -> dict[ProcessId, float]:
    """When each process stopped, in ms."""
    return {
        p: tick / TICKS_PER_MS
        for p, tick, *rows in done.outcome.log.records
        if any(isinstance(row, Ended) for row in rows)
    }


def wrongly_blocked(done: ClusterRun) -> Iterator[str]:
    """Too few live; but then all of them must know, and wait."""
    simulation = done.simulation
    standing = {
        h: how
        for h, how in simulation.standing().items()
        if how != "down" and simulation.current[h] not in simulation.departing
    }  # one that departs votes no more, and waits for the others
    if "in" in standing.values():
        yield f"some go on, and not all others are with them: {standing}"
    elif "stopped" in standing.values():
        yield f"some are neither in nor blocked: {standing}"
    elif "blocked" in standing.values() and could_go_on(done):
        yield f"all are blocked, though by their own count they could go on: {standing}"


def could_go_on(done: ClusterRun) -> bool:
    """Would a vote of those who live succeed, as they themselves would count it?"""
    machines: list[Any] = [done.simulation.machines[p] for p in done.living]
    ballots = [m.ballots for m in machines if m.ballots]
    in_force = max(known[0].number for known in ballots)
    judged_by = [b for known in ballots for b in known if b.number >= in_force]
    return all(surely_enough(done, ballot.nodes) for ballot in judged_by)
