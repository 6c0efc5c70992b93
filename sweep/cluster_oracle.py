"""The judge of a run of a cluster, apart from its trace: slow and obvious.

It knows nothing of how a coordinator leads. It looks at the node views that were installed, at
those that were proposed and accepted, at who lives in the end, and at when faults struck.

    one view per id           whoever installs a node view of one id installs the same list
    numbers rise              at every process, ids of node views and numbers of group views
    one primary side          no view has two successors; each was accepted, in one ballot, by more
                              than half of the voters of the one before, or half and the first
    nobody is driven out      of a network that loses nothing and was never cut, nobody who lives
    nothing is blocked        all that live are in one node view, and in the groups they want, and
                              came there within UNBLOCKED_MS of the last fault

Nothing may be blocked unless too few live. Enough live if they hold more than half of the voters
(or half, and the first) of the last view that was settled, and of every later one that anybody
installed or proposed. A view is settled when all its nodes had it and nothing happened for a while.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import msgspec

from ordercast.core.events import Receive, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.membership.agreement_headers import Ballot, EndView, ProposeView, ViewAccepted
from ordercast.membership.news import Installed, Out
from ordercast.membership.node_view import NodeView, ViewId
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
from sweep.ambush import CutBefore, CutOfWhoSays, inner

UNBLOCKED_MS = 2000.0  # from the last fault until everything is in place again, at most
SETTLED_MS = 150.0  # so long nothing happened: by then all know that all have the view

Attempt = tuple[ViewId, Ballot]  # to decide what comes after that view
Complaint = tuple[str, str]  # (guarantee, sentence)


class ClusterRun(msgspec.Struct):
    """A run that is over, with all that its judge needs."""

    outcome: ClusterOutcome
    begun: set[Attempt]
    proposed: dict[Attempt, NodeView]
    accepted: dict[Attempt, set[ProcessId]]  # who has said that it accepts what was proposed

    @property
    def simulation(self) -> ClusterSimulation:
        """The machines, as they stood in the end."""
        return self.outcome.simulation

    @property
    def installed(self) -> list[tuple[float, ProcessId, NodeView]]:
        """(when, who, view) of all node views, in the order of time."""
        return [
            (ms, p, news.view)
            for ms, p, news in self.simulation.story
            if isinstance(news, Installed)
        ]

    @property
    def decided(self) -> set[Attempt]:
        """Attempts whose proposal somebody installed."""
        views = {view.id: view for _, _, view in self.installed}
        return {attempt for attempt, view in self.proposed.items() if views.get(view.id) == view}

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
    """Run it, and note what is proposed and who accepts it."""
    begun: set[Attempt] = set()
    proposed: dict[Attempt, NodeView] = {}
    accepted: dict[Attempt, set[ProcessId]] = {}
    transform = config.network.transform

    def note(packet: Receive) -> Receive:
        header = inner(packet.header)
        if isinstance(header, EndView):
            begun.add((header.view, header.ballot))
        elif isinstance(header, ProposeView):
            attempt = (header.view, header.ballot)
            begun.add(attempt)
            proposed[attempt] = header.next
            accepted.setdefault(attempt, set()).add(packet.src)  # it does so itself
        elif isinstance(header, ViewAccepted):
            accepted.setdefault((header.view, header.ballot), set()).add(packet.src)
        return packet if transform is None else transform(packet)

    network = msgspec.structs.replace(config.network, transform=note)
    outcome = simulate_cluster(msgspec.structs.replace(config, network=network))
    return ClusterRun(outcome, begun, proposed, accepted)


def cluster_complaints(done: ClusterRun) -> list[Complaint]:
    """All that is wrong with the views of this run, and with where it ended."""
    found = [("numbers rise", sentence) for sentence in numbers_that_fall(done)]
    found += [("one view per id", sentence) for sentence in two_of_an_id(done)]
    if not done.merging:
        found += [("one primary side", sentence) for sentence in two_sides(done)]
    found += [("nobody is driven out", sentence) for sentence in driven_out(done)]
    found += [("nothing is blocked", sentence) for sentence in blocked(done)]
    return found


# -- numbers --------------------------------------------------------------------------------------


def numbers_that_fall(done: ClusterRun) -> Iterator[str]:
    """View ids never go backwards at any process."""
    highest: dict[tuple[ProcessId, GroupId | None], ViewId] = {}
    for p, group, number in _views_in_order(done):
        before = highest.get((p, group), ViewId())
        if number <= before:
            where = "the cluster" if group is None else f"group {group}"
            yield f"process {p} has view {before} of {where}, and then view {number}"
        highest[p, group] = max(number, before)


def _views_in_order(done: ClusterRun) -> Iterator[tuple[ProcessId, GroupId | None, ViewId]]:
    for _, p, view in done.installed:
        yield p, None, view.id
    for p, _, *rows in done.outcome.log.records:
        for row in rows:
            if isinstance(row, View):
                yield p, row.group, ViewId(number=row.number)


def two_of_an_id(done: ClusterRun) -> Iterator[str]:
    """Views of one id are one view."""
    views: dict[ViewId, NodeView] = {}
    for _, p, view in done.installed:
        other = views.setdefault(view.id, view)
        if other != view:
            yield f"view {view.id} is {view.pids} at {p}, and {other.pids} elsewhere"


# -- one primary side -----------------------------------------------------------------------------


def two_sides(done: ClusterRun) -> Iterator[str]:
    """Each view has one successor, which more than half of its voters have accepted."""
    views = {view.id: view for _, _, view in done.installed}
    after: dict[ViewId, ViewId] = {}
    for id_, view in sorted(views.items()):
        before = views.get(view.parent)
        if before is None:
            if view.parent != ViewId():
                yield f"view {id_}, {view.pids}, comes after {view.parent}, which nobody had"
            continue
        if after.setdefault(before.id, id_) != id_:
            yield f"views {after[before.id]} and {id_} both come after {before.id}"
        if not was_decided(done, before, view):
            voters = before.voters
            yield f"view {id_}, {view.pids}, is not decided by the voters before, {voters}"


def was_decided(done: ClusterRun, before: NodeView, view: NodeView) -> bool:
    """Has a majority of those who voted accepted it in one ballot?"""
    sides = [
        side
        for attempt, side in done.accepted.items()
        if attempt[0] == before.id and done.proposed.get(attempt) == view
    ]
    alone = {before.coordinator}  # one that wins alone need not say anything to anybody
    return any(enough(side, before.voters) for side in (alone, *sides))


def enough(side: Collection[ProcessId], voters: tuple[ProcessId, ...]) -> bool:
    """More than half of the voters, or half with the first of them."""
    there = [p for p in voters if p in side]
    if 2 * len(there) == len(voters):
        return not voters or voters[0] in there
    return 2 * len(there) > len(voters)


def driven_out(done: ClusterRun) -> Iterator[str]:
    """Nobody who lives, and could always be heard, is excluded."""
    config = done.simulation.config
    cut = (PartitionHosts, CutOfWhoSays, CutBefore)
    was_cut = any(isinstance(fault, cut) for fault in config.faults)
    if was_cut or config.network.loss or done.merging:
        return
    for ms, p, news in done.simulation.story:
        left = p in done.simulation.departing
        if isinstance(news, Out) and not left and _was_let_in(done, p):
            yield f"process {p} was excluded at {ms:.0f} ms, though all could hear it"


def _was_let_in(done: ClusterRun, p: ProcessId) -> bool:
    """Did anybody hear of it but a coordinator that has died since?"""
    return any(
        p in view.pids and q != p and (q != view.coordinator or q in done.living)
        for _, q, view in done.installed
    )


# -- nothing is blocked for ever ------------------------------------------------------------------


def blocked(done: ClusterRun) -> Iterator[str]:
    """Everything is in place, in time; or too few live."""
    out_of_place = list(misplaced(done))
    if not out_of_place:
        took = done_ms(done) - done.last_fault_ms
        if took > UNBLOCKED_MS + done.simulation.awaited_ms:
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
            views.add((machine.node_view.id, machine.pids))
            for g in simulation.lacking(p):
                part = "in" if g in simulation.wishes[host] else "a guest of"
                yield f"host {host} is not {part} its group {g}"
            if host in simulation.going and not is_last_voter(machine.node_view, p):
                yield f"host {host} does not get away"
        elif standing != "down":
            yield f"host {host} is {standing}"
        elif simulation.starts[host] == MAX_STARTS:
            yield f"host {host} was started {MAX_STARTS} times, and is out again"
    if len(views) > 1:
        yield f"there are {len(views)} node views: {sorted(views)}"


def is_last_voter(view: NodeView, p: ProcessId) -> bool:
    """Others are there, and none of them votes: they would be cut off for ever without it."""
    others = [node for node in view.nodes if node.pid != p]
    return bool(others) and not any(node.voter for node in others)


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
        return any(p in done.living for _, p, _ in done.installed)
    base = settled_view(done)
    views = {view.id: view for _, _, view in done.installed}
    views.update((view.id, view) for view in done.proposed.values())
    later = [view for view in views.values() if view.id > base.id]
    return all(enough(done.living, view.voters) for view in (base, *later))


def settled_view(done: ClusterRun) -> NodeView:
    """The last view that all its nodes had for a while in which nothing happened; or the first."""
    have: dict[ViewId, set[ProcessId]] = {}
    _, _, found = done.installed[0]
    times = [ms for ms, *_ in done.installed] + done.simulation.disturbances
    ends = _ends(done)
    for ms, p, view in done.installed:
        have.setdefault(view.id, set()).add(p)
        quiet = not any(ms < other <= ms + SETTLED_MS for other in times)
        all_have_it = have[view.id].issuperset(view.pids)
        all_live = all(ends.get(q, ms + 2 * SETTLED_MS) > ms + SETTLED_MS for q in view.pids)
        if quiet and all_have_it and all_live and view.id > found.id:
            found = view
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
    """Would a vote succeed among those who live and have the last view that any of them has?"""
    machines: list[Any] = [done.simulation.machines[p] for p in done.living]
    views = {machine.me: machine.node_view for machine in machines if machine.node_view is not None}
    last = max((view.id for view in views.values()), default=None)
    here = {p: view for p, view in views.items() if view.id == last}
    return any(enough(here.keys(), view.voters) for view in here.values())
