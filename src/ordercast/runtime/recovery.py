"""Carries out an operator's declaration that nodes are gone, at any node that has a node view.

A side without a majority stands still, since the others may have gone on. Only people can know that
they have not. Their declaration is checked here, then given to the machine (`Agreement.forget`),
which goes on in the next generation of the cluster. Nothing here needs a majority.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from ordercast.core.ids import ProcessId
from ordercast.errors import UsageError
from ordercast.membership.node_view import NodeView, won
from ordercast.process.commands import Forget

if TYPE_CHECKING:
    from ordercast.runtime.presence import Presence

log = logging.getLogger("ordercast.runtime.recovery")

LOOK_SECONDS = 0.05  # between two looks at whether it is done
MAX_RECOVERIES = 64  # that a node remembers, for its status


class RecoveryRow(msgspec.Struct, frozen=True):
    """The cluster went on without a majority."""

    at: str  # UTC, when this node heard of it
    view: str  # the node view that it went on with: number/generation
    forgotten: tuple[str, ...]  # whom an operator declared to be gone; none: all voters were here
    members: tuple[str, ...]


class Recovery:
    """Checks an operator's word, does what it says, and remembers what was done."""

    def __init__(self, presence: Presence) -> None:
        self._presence = presence
        self.rows: deque[RecoveryRow] = deque(maxlen=MAX_RECOVERIES)
        self._lineage: tuple[int, ProcessId] | None = None  # of the view in force

    async def forget(self, names: tuple[str, ...], number: int) -> bool:
        """Go on without these nodes; none named: without all that are not here. `number` is that of
        the node view that the operator has seen."""
        while self._presence.error is None:
            view = self._view()
            if self._is_done(view, names, number):
                return True
            gone = self._checked(view, names, number)
            self._presence.engine.step([Forget(gone)])
            await asyncio.sleep(LOOK_SECONDS)
        raise UsageError(f"this node is out of its cluster: {self._presence.error}")

    def _view(self) -> NodeView:
        view = self._presence.engine.stack.node_view
        if view is None:
            raise UsageError("this node has no node view yet; ask another one")
        return view

    def _is_done(self, view: NodeView, names: tuple[str, ...], number: int) -> bool:
        """A later view is in force, without them."""
        is_later = view.number > number and self._presence.engine.stack.blocked is None
        return is_later and not any(_is_named(view, pid, names) for pid in self._missing(view))

    def _missing(self, view: NodeView) -> tuple[ProcessId, ...]:
        here = self._presence.engine.stack.agreement.here()
        return tuple(pid for pid in view.pids if pid not in here)

    def _checked(
        self, view: NodeView, names: tuple[str, ...], number: int
    ) -> tuple[ProcessId, ...]:
        """The numbers of these nodes. What an operator did not mean is refused in words."""
        if view.number != number:
            raise UsageError(
                f"the node view is {view.number}, not {number}: look again which nodes are missing"
            )
        missing = self._missing(view)
        known = [node.identity for node in view.nodes if node.pid in missing]
        if not missing:
            raise UsageError(f"no node of node view {number} is missing")
        for name in names:
            found = [pid for pid in view.pids if _is_named(view, pid, (name,))]
            if not found:
                raise UsageError(f"no node {name!r} is missing; missing: {', '.join(known)}")
            if found[0] not in missing:
                raise UsageError(f"{name!r} is here; stop it first. Missing: {', '.join(known)}")
        gone = tuple(pid for pid in missing if _is_named(view, pid, names))
        self._check_that_the_rest_wins(view, gone)
        return gone

    def _check_that_the_rest_wins(self, view: NodeView, gone: tuple[ProcessId, ...]) -> None:
        here = self._presence.engine.stack.agreement.here()
        if not won(here, [pid for pid in view.voters if pid not in gone]):
            rest = [pid for pid in view.voters if pid not in gone and pid not in here]
            if not any(pid in here for pid in view.voters):
                raise UsageError(
                    "no node that votes is here, and one that was started again has forgotten its "
                    "vote: resume one that still runs, or stop these nodes and start a new cluster"
                )
            waits = ", ".join(self._presence.directory.identities_of(rest))
            raise UsageError(f"the rest would still be no majority: it waits for {waits}, too")

    # -- what was done ----------------------------------------------------------------------------

    def note(self, view: NodeView) -> None:
        """A node view is in force: say loudly if it began without a majority."""
        before, self._lineage = self._lineage, view.id.lineage
        if before is None or before == self._lineage:
            return
        members = tuple(node.identity for node in view.nodes)
        at = datetime.now(UTC).isoformat(timespec="seconds")
        self.rows.append(RecoveryRow(at, str(view.id), view.forgotten, members))
        if view.forgotten:
            log.warning(
                "the cluster was recovered by an operator: node view %s goes on with %s; declared "
                "to be gone: %s. What only these had is lost; if they live, they are out.",
                view.id, ", ".join(members), ", ".join(view.forgotten),
            )  # fmt: skip
        else:
            log.warning(
                "the cluster was recovered: all that vote are here again, some without their "
                "memory; node view %s goes on with %s",
                view.id, ", ".join(members),
            )  # fmt: skip


def _is_named(view: NodeView, pid: ProcessId, names: tuple[str, ...]) -> bool:
    """By its name, or as NAME#INCARNATION; no name: everybody is meant."""
    node = next(node for node in view.nodes if node.pid == pid)
    return not names or node.name in names or node.identity in names
