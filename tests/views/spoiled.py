"""For each rule that `invariants()` of a node can report: a node, and what to put wrong in it, so
that this rule, and no other, is broken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from ordercast.core.events import Multicast, View
from ordercast.core.numbers import ViewNumbers
from ordercast.core.waiting import NOBODY
from ordercast.membership.agreement_headers import Ballot
from ordercast.membership.agreement_table import Standing
from ordercast.membership.applicants import MAX_APPLICANTS
from ordercast.membership.claims import MAX_CLAIMS
from ordercast.membership.node_view import ViewId
from ordercast.membership.sides import MAX_LOST
from ordercast.process.process import Process
from ordercast.views.changes import Changes
from ordercast.views.directory import Directory
from ordercast.views.flush import FrameFlush
from ordercast.views.headers import AskRows, Row
from ordercast.views.states import Flushing, Lead, Stage
from ordercast.views.target import Aim, Target
from tests.views.spoiled_service import BOOK, SEAT, SERVICE
from tests.views.spoiling import HUGE, NOT_THERE, Spoil, put


def many(count: int) -> dict[int, None]:
    """A table with one entry too many."""
    return dict.fromkeys(range(count + 1))


# -- where to look ------------------------------------------------------------------------------


def agreement(node: Process) -> Any:
    return node.agreement


def changes(node: Process) -> Changes:
    return node.changes


def directory(node: Process) -> Directory:
    return node.changes.directory


def target(node: Process) -> Target:
    return node.changes.target


def flush(node: Process) -> FrameFlush:
    return next(iter(node.groups.flushes.values()))


# -- node views ---------------------------------------------------------------------------------


def viewed(**fields: Any) -> Spoil:
    """The view of the node is another one."""

    def spoil(node: Process) -> None:
        view = node.agreement.view
        assert view is not None
        given = {name: f(node, view) if callable(f) else f for name, f in fields.items()}
        node.agreement.view = replace(view, **given)

    return spoil


def _without_this_node(node: Process, view: Any) -> Any:
    return tuple(one for one in view.nodes if one.pid != node.me)


def hears_nobody(node: Process) -> None:
    node.agreement.suspected.update(set(node.agreement.pids) - {node.me})


def _under_an_older_view(node: Process) -> None:
    acceptor, view = node.agreement.acceptor, node.agreement.in_force
    acceptor.accepted = (acceptor.promised, replace(view, parent=ViewId(7, 7, 7)))


def _above_the_promise(node: Process) -> None:
    acceptor, view = node.agreement.acceptor, node.agreement.in_force
    acceptor.accepted = (Ballot(acceptor.promised.n + 1, 0), replace(view, parent=view.id))


def attempt(node: Process) -> Any:
    return node.agreement.proposer.attempt


def _attempt_of_another(node: Process) -> None:
    found = attempt(node)
    found.ballot = Ballot(found.ballot.n, found.ballot.by - 1)


AGREEMENT: dict[str, tuple[str, Spoil]] = {
    "Agreement: who is in has a view": ("member", put(agreement, view=None)),
    "Agreement: who is not in leads nobody": (
        "tries", put(agreement, standing=Standing.LEAVING, view=lambda view: replace(
            view, nodes=view.nodes[:1], voters=view.voters[:1])),
    ),
    "Agreement: the view names this node": (
        "member", viewed(
            nodes=_without_this_node,
            voters=lambda node, view: tuple(p for p in view.voters if p != node.me),
        ),
    ),
    "Agreement: voters are nodes": (
        "member", viewed(voters=lambda _, view: (*view.voters[:-1], NOT_THERE)),
    ),
    "Agreement: suspected are others of the view": (
        "member", lambda node: node.agreement.suspected.add(NOT_THERE),
    ),
    "Agreement: who has no majority is cut off": ("member", hears_nobody),
    "Sides: those who were lost are bounded": (
        "member", put(lambda node: node.agreement.sides, lost=many(MAX_LOST)),
    ),
    "Claims: claims are bounded": (
        "member", put(lambda node: node.agreement.claims, of=many(MAX_CLAIMS)),
    ),
    "Entrance: applicants are bounded": (
        "member", put(lambda node: node.agreement.entrance.applicants, of=many(MAX_APPLICANTS)),
    ),
    "Entrance: connections that were asked for are bounded": (
        "member", put(lambda node: node.agreement.entrance, owed=many(MAX_APPLICANTS)),
    ),
    "Proposer: an attempt is one's own": ("tries", _attempt_of_another),
    "Proposer: who leads has promised that to itself": (
        "tries", put(lambda node: node.agreement.acceptor, promised=Ballot(0, -1), accepted=None),
    ),
    "Proposer: a proposal follows from the reports of a majority": (
        "tries", put(attempt, reports={}),
    ),
    "Acceptor: only nodes of the view lead": (
        "member", put(lambda node: node.agreement.acceptor, pending={NOT_THERE: None}),
    ),
    "Acceptor: accepted is promised": ("member", _above_the_promise),
    "Acceptor: of this view": ("member", _under_an_older_view),
}  # fmt: skip


# -- changes --------------------------------------------------------------------------------------


def attempt_of_change(node: Process) -> Any:
    return node.changes.now


def _leads_without_the_office(node: Process) -> None:
    node.changes.lead = Lead.INSTALLING
    node.changes.now.uninstalled = {node.me}


def _prepares_a_later_one(node: Process) -> None:
    found = node.changes
    assert found.newest is not None
    found.prepared = replace(found.newest, number=found.done + 2)
    found.stage = Stage.FETCHING


def _aims_two_eras_on(node: Process) -> None:
    goal = node.changes.now.goal
    g = min(goal)
    goal[g] = replace(goal[g], era=goal[g].era + 1)


def _takes_a_packet_twice(node: Process) -> None:
    ahead = node.changes.ahead
    ahead.keep(1, AskRows(HUGE))
    ahead.kept *= 2


def _takes_a_packet_uncounted(node: Process) -> None:
    ahead = node.changes.ahead
    ahead.keep(1, AskRows(HUGE))
    ahead.used[2] = ahead.used.pop(1)


CHANGES: dict[str, tuple[str, Spoil]] = {
    "Changes: only the coordinator leads": ("member", _leads_without_the_office),
    "Changes: only the next change is prepared": ("member", _prepares_a_later_one),
    "Changes: what is prepared was planned": ("member", put(changes, stage=Stage.READY)),
    "Changes: the newest change is the last one": (
        "member", put(changes, newest=lambda change: replace(change, number=change.number - 1)),
    ),
    "Changes: unmet is what is wanted, or has this node": (
        "member", lambda node: node.changes.unmet.add(NOT_THERE),
    ),
    "Changes: what is to be confirmed is said until it is": (
        "member", lambda node: node.changes.unconfirmed.update({NOT_THERE: 1}),
    ),
    "Changes: asks somebody": ("asks", put(attempt_of_change, asked=lambda _: set())),
    "Changes: asks somebody for rows, in a new term": (
        "asks", put(changes, lead=Lead.CATCHING_UP, anew=True),
    ),
    "Changes: what is stopped begins again": ("asks", put(changes, halted=lambda _: set())),
    "Changes: what is aimed at follows what stands": ("asks", _aims_two_eras_on),
    "Changes: planned next": (
        "prepares",
        put(attempt_of_change, planned=lambda change: replace(change, number=change.number + 1)),
    ),
    "Changes: waits for somebody who is there": (
        "prepares", put(attempt_of_change, unready=lambda _: {NOT_THERE}),
    ),
    "Changes: waits for somebody who is there (2)": (
        "installs", put(attempt_of_change, uninstalled=lambda _: set()),
    ),
    "Changes: nothing stays stopped": (
        "coordinator", put(changes, halted=lambda _: {1}),
    ),
    "Changes: views are numbered in this lineage": (
        "coordinator", put(target, numbers=lambda _: ViewNumbers.of(1, 0, 1)),
    ),
    "Changes: eras limit numbers of views": (
        "member", put(target, numbers=lambda _: ViewNumbers(-HUGE)),
    ),
    "Ahead: every packet is counted": ("member", _takes_a_packet_uncounted),
    "Ahead: and once": ("member", _takes_a_packet_twice),
}  # fmt: skip


# -- the directory, and what is aimed at ----------------------------------------------------------


def foreign(node: Process) -> Row:
    """A row in which this node has no part."""
    return next(row for row in directory(node).rows.values() if node.me not in row.concerned)


def row_with(**fields: Callable[[Any], Any]) -> Spoil:
    """A row of the directory is another one, and put there as every row is."""

    def spoil(node: Process) -> None:
        rows, row = directory(node), foreign(node)
        rows.put(replace(row, **{name: change(row) for name, change in fields.items()}))

    return spoil


def _listed_elsewhere(node: Process) -> None:
    rows, g = directory(node).rows, foreign(node).entry.gid
    rows[NOT_THERE] = rows.pop(g)
    for groups in directory(node).of.values():
        if g in groups:
            groups.remove(g)
            groups.add(NOT_THERE)


def aims(change: Callable[[Aim], Aim]) -> Spoil:
    """A group that no sequencer numbers is aimed at."""

    def spoil(node: Process) -> None:
        target = node.changes.target
        aim = target.aim_of(directory(node), 1)
        assert aim is not None
        target.aims[1] = change(aim)

    return spoil


def _placed_elsewhere(node: Process) -> None:
    target = node.changes.target
    placement = next(iter(target.placements.values()))
    aims(lambda aim: replace(aim, leader=_another(node, placement.host[1])))(node)


def _another(node: Process, p: int) -> int:
    return next(q for q in node.changes.target.nodes if q != p)


def _placed_nowhere(node: Process) -> None:
    placement = next(iter(node.changes.target.placements.values()))
    placement.host[NOT_THERE] = node.me


def _places_nothing(node: Process) -> None:
    next(iter(node.changes.target.placements.values())).host.popitem()


def _founds_what_stands(node: Process) -> None:
    node.changes.target.founders[1] = {}


def _offers(*named: tuple[int, str]) -> Spoil:
    def spoil(node: Process) -> None:
        entry = directory(node).rows[1].entry
        for g, name in named:
            node.changes.target.offer(replace(entry, gid=g, name=name))

    return spoil


TARGET: dict[str, tuple[str, Spoil]] = {
    "Directory: who is in which group is known both ways": (
        "member", lambda node: directory(node).of[node.me].discard(1),
    ),
    "Directory: groups that nobody is in are known": (
        "member", lambda node: directory(node).empty.add(1),
    ),
    "Directory: a row is listed under its group": ("member", _listed_elsewhere),
    "Directory: a name is of one group": (
        "member", lambda node: directory(node).named.popitem(),
    ),
    "Directory: numbers of views and eras rise from 0": ("member", row_with(number=lambda _: -1)),
    "Directory: nobody is in a group twice": (
        "member", row_with(members=lambda row: (*row.members, row.members[0])),
    ),
    "Directory: a member is no guest": ("member", row_with(guests=lambda row: row.members[:1])),
    "Target: only nodes that are there are aimed at": (
        "coordinator", aims(lambda aim: replace(aim, members=(*aim.members, NOT_THERE))),
    ),
    "Target: somebody who is there leads, unless there is no member": (
        "coordinator", aims(lambda aim: replace(aim, leader=NOBODY)),
    ),
    "Target: names of groups to come are known": (
        "coordinator", lambda node: node.changes.target.coming.update(new=NOT_THERE),
    ),
    "Target: ... each of one group": ("coordinator", _offers((98, "new"), (99, "new"))),
    "Target: no number is given twice": (
        "coordinator", lambda node: (_offers((1, "new"))(node), node.changes.target.coming.clear()),
    ),
    "Target: founders wait for an empty group": ("coordinator", _founds_what_stands),
    "Target: only groups that there are have a place": ("places", _placed_nowhere),
    "Target: a group is where it is placed": ("places", _placed_elsewhere),
    "Target: every group that is numbered has a place": ("places", _places_nothing),
    "FrameFlush: only groups that this process has a part in stop": (
        "stopped", lambda node: flush(node).held.update({NOT_THERE: {}}),
    ),
    "FrameFlush: the state follows from what is held and lacking": (
        "stopped", put(flush, flushing=Flushing.RUNNING),
    ),
    "FrameFlush: only stopped groups lack frames": (
        "member", put(flush, lacking={1: {(1, (1, 1)): ()}}),
    ),
    "FrameFlush: only what is said while groups are stopped waits": (
        "member", put(flush, queued=lambda _: [Multicast(1, b"m")]),
    ),
}  # fmt: skip


# -- open groups, and their rows ------------------------------------------------------------------


def views(node: Process) -> dict[int, View]:
    """Of the machine that serves group 1."""
    return node.groups.machines[1].views


def _not_told_of_the_view(node: Process) -> None:
    views(node)[1] = replace(views(node)[1], era=views(node)[1].era - 1)


def _told_of_other_members(node: Process) -> None:
    views(node)[1] = replace(views(node)[1], members=views(node)[1].members[::-1])


STANDING: dict[str, tuple[str, Spoil]] = {
    "standing: a node takes part where the row says so": (
        "member", lambda node: flush(node).part.discard(1),
    ),
    "standing: the view of an open group is known": ("member", lambda node: views(node).pop(1)),
    "standing: a view is of the era of the row": ("member", _not_told_of_the_view),
    "standing: a view is that of the row": ("member", _told_of_other_members),
}  # fmt: skip


SPOILED = {**AGREEMENT, **CHANGES, **TARGET, **STANDING, **BOOK, **SEAT, **SERVICE}
