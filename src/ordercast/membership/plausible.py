"""What a peer says about node views, measured by the view in force.

A view that no honest node would propose is its sender's fault (`PeerError`). Numbers from outside
are bounded, because one word must not use up all numbers that there are.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from ordercast.core.ids import ProcessId
from ordercast.core.numbers import MAX_GENERATION
from ordercast.errors import PeerError
from ordercast.membership.node_view import NodeView, ViewId

MAX_BALLOTS = 1 << 20  # a ballot is promised if it is at most so far above the one before
MAX_VIEWS = 1 << 32  # a view is believed if its number is at most so far above that in force
MAX_RECOVERIES = 1 << 10  # ... and if the cluster was recovered at most so often since
MAX_NUMBER = 1 << 62  # of anything in a first view


def check_view(view: NodeView, votes: bool) -> None:
    """What no honest node proposes."""
    pids, id = view.pids, view.id
    if not pids or len(set(pids)) != len(pids):
        raise PeerError("a view without a node, or with one twice")
    if not view.voters or view.voters != tuple(p for p in pids if p in view.voters):
        raise PeerError("a view without voters, or with some that are not in it")
    if len({node.name for node in view.nodes}) != len(pids):
        raise PeerError("a view with two lives of one node")
    if min(*pids, *msgspec.structs.astuple(id)) < 0 or not 0 < view.term <= id.number:
        raise PeerError("a view with a number that is too low, or a term that has not begun")
    if not view.parent < id or set(view.left).intersection(pids):
        raise PeerError("a view that comes before its parent, or names those who left")
    if votes and (id.side, id.attempt, view.into) != (0, 0, -1):
        raise PeerError("a side of a partition, where only one may go on")
    if id.generation > MAX_GENERATION:
        raise PeerError(f"generation {id.generation}: a cluster has {MAX_GENERATION} at most")
    if not id.generation and id.fork:
        raise PeerError("a fork without a recovery")


def check_succession(before: NodeView, view: NodeView, votes: bool) -> None:
    """Who proposes it may be wrong about who is here; not about the rest."""
    if view.parent != before.id or view.number != before.number + 1:
        raise PeerError(f"view {view.id} does not come after {before.id}")
    if view.electorate != before.electorate or view.term not in (before.term, view.number):
        raise PeerError(f"view {view.id} has another electorate, or a term of its own")
    _check_next_id(before.id, before.pids, view, votes)
    old = {node.pid: node for node in before.nodes}
    stay = [node for node in view.nodes if node.pid in old]
    if stay != [n for n in before.nodes if n.pid in view.pids] or view.nodes[: len(stay)] != (
        tuple(stay)
    ):
        raise PeerError("those who stay come first, as they were")
    if not set(view.left) <= old.keys() - set(view.pids):
        raise PeerError("it says that somebody left who did not")
    if votes:
        _check_voters(before, view, old)


def _check_next_id(
    before: ViewId, pids: Collection[ProcessId], view: NodeView, votes: bool
) -> None:
    id = view.id
    if id.generation == before.generation:
        if id.fork != before.fork:
            raise PeerError(f"fork {id.fork} of the same generation")
    elif not votes or id.generation != before.generation + 1 or id.fork not in pids:
        raise PeerError(f"generation {id.generation} does not come after {before.generation}")


def _check_voters(before: NodeView, view: NodeView, old: Collection[ProcessId]) -> None:
    voters = [node for node in view.nodes if node.pid in view.voters]
    if not voters or not all(node.voter for node in voters):
        raise PeerError("a view whose voters do not vote")
    if before.electorate and not {node.name for node in voters} <= set(before.electorate):
        raise PeerError("a view with a voter that is not in the electorate")
    is_recovered = view.id.generation > before.id.generation
    if not is_recovered and not view.won_by([p for p in view.voters if p in old]):
        raise PeerError("a view in which newcomers have the majority")
