"""What a packet of the cluster must look like, whoever sent it.

The wire checks types; here is what no honest node says: an empty view, a node twice, a number that
nobody can have come to. Whoever says so is at fault, and nothing was done yet.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

import msgspec

from ordercast.core.ids import ProcessId
from ordercast.core.numbers import MAX_COUNT
from ordercast.errors import PeerError
from ordercast.membership.cluster_headers import (
    Attempt,
    Depart,
    EndView,
    GroupReport,
    Join,
    NextGroupView,
    NodeReport,
    Nodes,
    Overruled,
    PrepareView,
    Want,
)
from ordercast.membership.nodes import Ballot, GroupEntry, NodeEntry, NodeView
from ordercast.membership.placing_headers import (
    Alter,
    Host,
    Inherit,
    Inherited,
    InheritEntry,
    InheritLeft,
    Load,
)

MAX_VIEW = 1 << 21  # eras are multiples of the numbers of node views, and have 32 bits on the wire


def vet(header: msgspec.Struct) -> None:
    """A `PeerError` if this cannot be."""
    check = CHECKS.get(type(header))
    if check is not None:
        check(header)


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise PeerError(what)


def _numbered(number: int) -> None:
    _require(0 <= number <= MAX_VIEW, f"{number} is no number of a node view")


def _counted(*numbers: int) -> None:
    for number in numbers:
        _require(0 <= number <= MAX_COUNT, f"nobody can have counted to {number}")


def _distinct(what: str, items: Collection[object]) -> None:
    _require(len(set(items)) == len(items), f"{what} is named twice: {items}")


def _pids(what: str, pids: tuple[ProcessId, ...]) -> None:
    _distinct(what, pids)
    _require(all(p >= 0 for p in pids), f"{what} has a negative number: {pids}")


def _node(node: NodeEntry) -> None:
    _pids("a node", (node.pid,))


def _view(view: NodeView) -> None:
    _numbered(view.number)
    _require(bool(view.nodes), "a view without a node")
    _pids("a node of a view", view.pids)


def _attempt(attempt: Attempt | None) -> None:
    if attempt is not None:
        _numbered(attempt.number)


def _ballots(ballots: Iterable[Ballot]) -> None:
    for ballot in ballots:
        _numbered(ballot.number)
        _require(bool(ballot.nodes), "a vote without a node")
        _pids("a node of a vote", ballot.nodes)


def _group(entry: GroupEntry) -> None:
    _require(0 < entry.gid <= MAX_COUNT, f"{entry.gid} is no number of a group")


def _groups(groups: tuple[GroupReport | NextGroupView, ...]) -> None:
    _distinct("a group", [group.entry.gid for group in groups])
    for group in groups:
        _group(group.entry)
        _pids("a member of a group", (*group.members, *group.guests))
        _counted(group.number, group.era, *(n for _, n in group.last))


def _nodes(header: Nodes) -> None:
    _view(header.view)
    _ballots(header.ballots)
    counts = any(ballot.number == header.view.number for ballot in header.ballots)
    _require(counts, "a view that does not count in votes")
    _attempt(header.installed)
    _pids("a node that is lost", tuple(node.pid for node in header.lost))


def _end(header: EndView) -> None:
    _attempt(header.attempt)
    _pids("a node of the next view", header.nodes)


def _report(header: NodeReport) -> None:
    _view(header.view)
    _ballots(header.ballots)
    _attempt(header.installed)
    _groups(header.groups)
    _counted(header.frames, header.top_group)
    for group in header.groups:
        _counted(group.mark, group.progress, group.ready)


def _prepare(header: PrepareView) -> None:
    _view(header.view)
    _require(header.view.number == header.attempt.number, "a view with the number of another")
    _groups(header.groups)
    _counted(header.frames, *(group.start for group in header.groups))


def _alter(header: Alter) -> None:
    _pids("one that comes or goes", (*header.joined, *header.guests, *header.left))


def _inherit(header: Inherit) -> None:
    state = header.state
    _group(header.group)
    _pids("a member of a group", (*state.members, *state.guests))
    tables = (state.last, state.acks, state.joining, state.leaving, state.gone, state.behind)
    for table in (*tables, state.guests_stable, state.began, state.departing):
        _distinct("an entry of a book", [key for key, _ in table])
        _counted(*(n for _, n in table))
    _counted(state.era, state.view, state.N, state.move, state.changes, state.entries)
    _require(state.entries <= state.N, "a book with more entries than numbers")
    _require({p for p, _ in state.acks} >= set(state.members), "a member without a mark")


def _inherited(header: Inherited) -> None:
    _require(len(header.gids) == len(header.moves), "a group without the number of its hand-over")
    _counted(*header.moves)


def _inherit_entry(header: InheritEntry) -> None:
    _counted(header.entry.N, header.entry.n, *(n for _, n in header.entry.context))


def _inherit_left(header: InheritLeft) -> None:
    for entry in header.entries:
        _counted(entry.N, entry.n, *(n for _, n in entry.context))
        _pids("who has a body", (entry.holder,))


CHECKS: dict[type, Callable[[Any], None]] = {
    Join: lambda header: _node(header.node),
    Depart: lambda header: _ballots(header.ballots),
    Nodes: _nodes,
    Want: lambda header: _group(header.group),
    EndView: _end,
    NodeReport: _report,
    PrepareView: _prepare,
    Overruled: lambda header: _attempt(header.followed),
    Host: lambda header: _group(header.group),
    Alter: _alter,
    Inherited: _inherited,
    Inherit: _inherit,
    InheritEntry: _inherit_entry,
    InheritLeft: _inherit_left,
    Load: lambda header: _counted(*(n for _, n in header.by_sender)),
}
