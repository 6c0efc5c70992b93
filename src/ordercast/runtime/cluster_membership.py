"""The state of this node in its cluster: joining, in, cut off, out, leaving.

All nodes run the same code. What only the coordinator does is in `ordercast.runtime.coordination`
and `ordercast.runtime.group_names`. Which nodes live and which are in the cluster is decided by the
machine (`ordercast.membership.cluster`): this module tells it what happens to connections, and
tells the rest of the node, and its application, what the machine decides.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from ordercast.core.ids import GroupId, ProcessId
from ordercast.errors import Excluded, NotPrimary, PeerError
from ordercast.membership.news import (
    Blocked,
    Dissolved,
    Installed,
    Mistaken,
    News,
    Out,
    Resumed,
    Split,
)
from ordercast.membership.node_view import NodeEntry, NodeView
from ordercast.process.commands import Broken, Connected, Depart, Found, Join, Leave, Met, Seek
from ordercast.runtime.control import Admitted, Apply, Control, Goodbye, Lost, NodeDown, NodeUp
from ordercast.runtime.control_table import Speaker
from ordercast.runtime.group_requests import GroupRequests
from ordercast.runtime.join_timeouts import (
    all_nodes_gone,
    members_unreachable,
    not_in_node_view,
)
from ordercast.runtime.lost_majority import way_out
from ordercast.runtime.lost_node_search import LostNodeSearch
from ordercast.runtime.plausible import check_entry
from ordercast.runtime.reasons import why_unreachable
from ordercast.runtime.sending import Sending
from ordercast.transport.tcp import Connection
from ordercast.views.groups import GroupEntry
from ordercast.views.headers import Part

if TYPE_CHECKING:
    from ordercast.runtime.presence import Presence

log = logging.getLogger("ordercast.runtime.cluster_membership")

MAX_UNTIMELY = 256  # messages kept of nodes that do not coordinate yet, as far as is known
GRACE_S = 0.5  # after a good-bye the view without that node should have come


class ClusterMembership:
    """The state of one incarnation in its cluster, from its admission to its end."""

    def __init__(self, presence: Presence, admitted_by: NodeEntry) -> None:
        self._presence = presence
        self._admitted_by = admitted_by
        self.requests = GroupRequests(presence)
        self.search = LostNodeSearch(presence)
        loop = asyncio.get_running_loop()
        self._is_in: asyncio.Future[None] = loop.create_future()
        self._is_away: asyncio.Future[None] = loop.create_future()
        self.succession: asyncio.Future[None] = loop.create_future()  # the next one
        self._contacts: tuple[ProcessId, ...] = ()  # while this node asks to be let in
        self._going = False
        self._before: tuple[ProcessId, ...] = ()  # nodes of the view before this one
        self._untimely: list[tuple[ProcessId, NodeUp | NodeDown]] = []  # not of the coordinator
        self._leavers: set[ProcessId] = set()  # have left, and may not know it yet
        self._led_by: ProcessId | None = None  # its coordinator

    # -- who coordinates --------------------------------------------------------------------------

    @property
    def coordinates(self) -> bool:
        """Does this node lead its view?"""
        stack = self._presence.engine.stack
        return stack.coordinator == stack.me

    @property
    def coordinator(self) -> NodeEntry:
        """The leader of the view; while there is none, the one that let this node in."""
        view = self._presence.engine.stack.node_view
        if view is None:
            return self._admitted_by
        return next(node for node in view.nodes if node.pid == view.coordinator)

    # -- the way in -------------------------------------------------------------------------------

    def found(self) -> None:
        """Begin a cluster of this node alone."""
        self._presence.engine.step([Found()])

    async def get_in(self, answer: Admitted, deadline: float) -> None:
        """Connect to all, then join the node view; `JoinTimeout` says what did not happen."""
        loop = asyncio.get_running_loop()
        timeout = max(0.5, deadline - loop.time())
        reasons = await self._connect_to(answer.nodes, timeout)
        if self._presence.error is not None:
            return
        if reasons:
            limit = self._presence.options.join_timeout
            raise members_unreachable(self._presence, reasons, limit)
        first = answer.leader
        live = self._presence.directory.live
        others = [node.pid for node in answer.nodes if node.pid != first and node.pid in live]
        self._contacts = (first, *others) if first in live else tuple(others)
        self._ask_contacts()
        try:
            async with asyncio.timeout_at(loop.time() + timeout):
                await asyncio.shield(self._is_in)
        except TimeoutError:
            limit = self._presence.options.join_timeout
            raise not_in_node_view(self._presence, limit) from None

    def _ask_contacts(self) -> None:
        if self._contacts:
            self._presence.engine.step([Seek(self._contacts)])
        elif not self._is_in.done():
            address, limit = self._admitted_by.address, self._presence.options.join_timeout
            self._is_in.set_exception(all_nodes_gone(self._presence, address, limit))

    async def _connect_to(self, nodes: tuple[NodeEntry, ...], timeout: float) -> dict[str, str]:
        """A connection to each of these; the reasons where there is none in time."""
        reasons: dict[str, str] = {}
        others = [node for node in nodes if node.pid != self._admitted_by.pid]
        await asyncio.gather(*(self._connect(node, timeout, reasons) for node in others))
        return reasons

    async def _connect(self, node: NodeEntry, timeout: float, reasons: dict[str, str]) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        presence = self._presence
        while (
            node.pid in presence.directory.live and presence.error is None
        ):  # until it is said to be gone
            left = deadline - loop.time()
            try:
                await presence.peers.dial_node(node, max(left, 0.01))
            except (OSError, PeerError) as reason:
                if left <= 0:
                    reasons[node.address] = f"{node.identity}: {why_unreachable(reason)}"
                    return
                await asyncio.sleep(min(0.05, left))
            else:
                return

    def addresses(self) -> list[str]:
        """Addresses where a later incarnation may find the cluster; the best ones first."""
        presence = self._presence
        lost = presence.engine.stack.lost
        into = -1 if presence.over_to is None else presence.over_to.into
        nodes = [*lost.values(), *presence.directory.live.values()]
        nodes.sort(key=lambda node: (node.pid != into, into >= 0 and node.pid not in lost))
        return [node.address for node in nodes]

    # -- groups -----------------------------------------------------------------------------------

    def ask(
        self, entry: GroupEntry, part: Part, former: tuple[str, ...] = (), memory: int = 0
    ) -> None:
        """Ask to be let into this group, which is open here. `memory` is the last view of it that
        the program has seen, if it was in it before."""
        self._presence.engine.step([Join(entry, part, former, memory)])

    def quit(self, gid: GroupId) -> None:
        """Ask to be out of this group."""
        self._presence.engine.step([Leave(gid)])

    async def leave(self, sending: Sending) -> None:
        """Let what was sent be ordered, then be out; returns when this node is.

        One that was not let in yet says so at once, and so stops waiting to found an empty group.
        It has no view to wait for, unless one is on its way.
        """
        is_in = sending.installed.done()
        if is_in:
            await sending.installed
            await sending.progress.ordered.wait_for(sending.frames_sent)
        self.quit(sending.group.gid)
        if not is_in:
            self._presence.engine.leave(sending.group.gid)
        await asyncio.shield(sending.gone)

    # -- the way out ------------------------------------------------------------------------------

    async def go_away(self) -> None:
        """Leave the cluster in order; returns when the others have a view without this node."""
        self._going = True
        self._presence.engine.step([Depart()])
        await asyncio.shield(self._is_away)

    def stop(self, reason: BaseException) -> None:
        """This incarnation is over."""
        self.search.stop()
        self.requests.stop(reason)
        for future in (self._is_in, self._is_away):
            if not future.done():
                future.set_exception(reason)
                future.exception()  # nobody need be waiting

    # -- what others say --------------------------------------------------------------------------

    def speaker(self, pid: ProcessId) -> Speaker:
        """The part of a connected node in the cluster, as this node sees it."""
        presence = self._presence
        stack = presence.engine.stack
        if pid not in presence.directory.live:
            return Speaker.GONE
        if pid == self.coordinator.pid:
            return Speaker.COORDINATOR
        if stack.node_view is None:
            is_new = presence.coordination.is_expected(pid)
        else:
            is_new = pid not in stack.pids
        return Speaker.NEWCOMER if is_new else Speaker.NODE

    def consider(self, conn: Connection, message: Control) -> None:
        """A message of a node that was not let in."""
        if isinstance(message, Apply):
            assert conn.hello is not None
            self._presence.coordination.consider(conn, conn.hello, message)
        else:
            assert isinstance(message, Goodbye), "the table lets nothing else through"

    def keep(self, pid: ProcessId, message: Control) -> None:
        """Its sender may coordinate from now on, and be ahead of this node."""
        assert isinstance(message, NodeUp | NodeDown), "the table keeps nothing else"
        self._untimely.append((pid, message))
        if len(self._untimely) > MAX_UNTIMELY:  # the node that sent most gives way
            [(most, _)] = Counter(p for p, _ in self._untimely).most_common(1)
            self._untimely.remove(next(word for word in self._untimely if word[0] == most))

    def handle(self, pid: ProcessId, message: Control) -> None:
        """A control message that concerns nodes or groups."""
        presence = self._presence
        if isinstance(message, Goodbye) and pid not in presence.engine.stack.pids:
            presence.coordination.give_up(pid)
        elif isinstance(message, Goodbye):
            presence.later("Goodbye", partial(self._gone_in_order, pid), GRACE_S)
        elif isinstance(message, NodeUp | NodeDown):
            self._told_by_coordinator(message)
        elif isinstance(message, Lost):
            self._note_lost(pid, message)
        else:
            self.requests.handle(pid, message)

    def _told_by_coordinator(self, message: NodeUp | NodeDown) -> None:
        """The coordinator lets a node in, or says that one is gone."""
        if isinstance(message, NodeUp):
            check_entry(message.node)
            if message.node.pid == self._presence.me.pid:
                raise PeerError("it lets another node in under the number of this one")
            self._presence.coordination.expect(message.node)
        else:
            self._lost_contact(message.pid)

    def _gone_in_order(self, pid: ProcessId) -> None:
        """It said good-bye a while ago. If the view still has it, treat it as lost."""
        presence = self._presence
        if presence.error is None and pid not in presence.peers.bound:
            self.lost(pid)

    def lost(self, pid: ProcessId) -> None:
        """The connection to a node broke."""
        stack = self._presence.engine.stack
        self._presence.engine.step([Broken(pid)], pid)
        if stack.node_view is None:
            self._lost_contact(pid)
        elif pid not in stack.pids:
            self._presence.coordination.give_up(pid)

    def bound(self, pid: ProcessId) -> None:
        """There is a connection to a node, and both sides know whose it is."""
        name = self._presence.directory.names.get(pid)
        if name is not None:
            self._presence.engine.step([Connected(pid, name)], pid)

    def meet(self, nodes: tuple[NodeEntry, ...]) -> None:
        """There is another side of this cluster, with these nodes."""
        for node in nodes:
            self._presence.directory.hear_of(node)
        self._presence.engine.step([Met(nodes)])
        self.search.wake()

    def accuse(self, pid: ProcessId, reason: str) -> None:
        """A node broke the protocol: tell the coordinator why this node closed the connection."""
        stack = self._presence.engine.stack
        if pid in stack.pids and stack.coordinator is not None and not self.coordinates:
            self._presence.peers.tell(stack.coordinator, Lost(pid, reason))

    def _note_lost(self, pid: ProcessId, lost: Lost) -> None:
        """Log it. Which nodes are excluded is decided by the machine, from what all nodes hear."""
        names = self._presence.directory.identities
        if self.coordinates and lost.pid in names:
            log.warning(
                "%s closed its connection to %s: %s", names[pid], names[lost.pid], lost.reason
            )

    def _lost_contact(self, pid: ProcessId) -> None:
        """On the way in: one node less to ask."""
        if self._presence.engine.stack.node_view is None:
            self._presence.directory.remove(pid)
            self._presence.peers.part(pid, "it is gone")
            if pid in self._contacts:
                self._contacts = tuple(p for p in self._contacts if p != pid)
                self._ask_contacts()

    # -- news of the machine ----------------------------------------------------------------------

    def take(self, news: News) -> None:
        """Act on a decision of the machine about this node."""
        presence = self._presence
        rejoins = presence.options.rejoin
        if isinstance(news, Installed):
            self._installed(news)
        elif isinstance(news, Blocked):
            missing = presence.directory.names_of(news.missing)
            hope = way_out(presence)
            presence.block(NotPrimary(news.view, missing, rejoins=rejoins, way_out=hope))
            self.search.wake()
        elif isinstance(news, Resumed):
            presence.resume()
        elif isinstance(news, Out) and self._going:
            if not self._is_away.done():
                self._is_away.set_result(None)
        elif isinstance(news, Out):
            by = presence.directory.names.get(news.by, "another node")
            reason = f"{by} and the others have gone on without it"
            if news.fenced:
                reason = f"the cluster was recovered without it, by {by} and others"
            presence.fail(Excluded("the cluster", news.view, reason, rejoins=rejoins))
        elif isinstance(news, Mistaken):
            presence.groups.mistaken(news.group)
        elif isinstance(news, Split):
            self._tell_of_split(news)
        else:
            assert isinstance(news, Dissolved)
            presence.dissolve(news)

    def _tell_of_split(self, split: Split) -> None:
        log.error(
            "%s is in a cluster of its own under this name, at node view %s, and this node is in "
            "another: only one of the two should go on. Stop the nodes of one of them, and start "
            "them again: they will join the other.",
            split.name, split.view,
        )  # fmt: skip

    def _installed(self, news: Installed) -> None:
        presence, view = self._presence, news.view
        presence.administration.recovery.note(view)
        before, self._before = self._before, view.pids
        for pid in view.pids:
            presence.coordination.is_in(pid)
        for pid in before:
            if pid not in view.pids:
                self._part(pid, excluded=pid in news.excluded)
        self._drop_estranged(view)
        if not self._is_in.done():
            self._is_in.set_result(None)
        self.search.wake()
        led_by, self._led_by = self._led_by, view.coordinator
        presence.later("a node view", partial(self._settle, led_by != view.coordinator))

    def _part(self, pid: ProcessId, *, excluded: bool) -> None:
        presence = self._presence
        presence.directory.remove(pid)
        identity = presence.directory.identities[pid]
        if excluded:
            level = logging.WARNING if self.coordinates else logging.INFO
            log.log(level, "%s is excluded: the others go on without it", identity)
            if presence.recorder is not None:
                presence.recorder.crash_of(identity)
                presence.wake()  # to the disk, even if nothing else is recorded here
        presence.coordination.tell_expected(pid, "excluded" if excluded else "it left")
        if not excluded:  # else it may live, and will be told on this connection
            self._leavers.add(pid)
            presence.later("a node view", partial(self._part_from_leaver, pid), GRACE_S)

    def _part_from_leaver(self, pid: ProcessId) -> None:
        """Close the connection, if the leaver has not closed it itself meanwhile."""
        presence = self._presence
        self._leavers.discard(pid)
        if presence.error is None and pid not in presence.engine.stack.pids:
            presence.peers.part(pid, "it left", Goodbye())

    def _drop_estranged(self, view: NodeView) -> None:
        """Connections to nodes that were looked for, and came back as others."""
        presence = self._presence
        expected = {*presence.directory.live, *presence.engine.stack.lost, *self._leavers}
        for pid in tuple(presence.peers.bound):
            if pid not in expected:
                presence.peers.part(pid, "it is back under another number", Goodbye())

    def _settle(self, succession: bool) -> None:
        """A node view is in force, and its step is over."""
        if self._presence.error is not None:
            return
        self.requests.put_again()
        untimely, self._untimely = self._untimely, []
        for pid, message in untimely:
            if pid == self.coordinator.pid:
                told = partial(self._told_by_coordinator, message)
                self._presence.charged(pid, type(message).__name__, told)
        if succession and not self.succession.done():
            done, self.succession = self.succession, asyncio.get_running_loop().create_future()
            done.set_result(None)
        if succession and self.coordinates:
            self._presence.coordination.take_over()

    # -- for the status ---------------------------------------------------------------------------

    def facts(self) -> dict[str, object]:
        """The node view, and who is silent."""
        presence, stack = self._presence, self._presence.engine.stack
        names, view = presence.directory.identities_of, stack.node_view
        number, pids = (0, ()) if view is None else (view.number, view.pids)
        generation = 0 if view is None else view.id.generation
        return {
            "coordinator": self.coordinator.identity,
            "node_view": {
                "number": number,
                "generation": generation,
                "members": list(names(pids)),
                "voters": list(names(() if view is None else view.voters)),
                "electorate": list(() if view is None else view.electorate),
            },
            "recoveries": [
                msgspec.to_builtins(row) for row in presence.administration.recovery.rows
            ],
            "heartbeats_sent": presence.engine.heartbeats,
            "suspicions": list(names(sorted(stack.agreement.detector.suspected))),
            "blocked": list(self.missing_names()),
            "silent_ms": self.silent_ms(),
            "lost": [node.identity for node in stack.lost.values()],
        }

    def silent_ms(self) -> dict[str, int]:
        """For how long nothing has come from each other node."""
        identities = self._presence.directory.identities
        heartbeat_ms = self._presence.options.heartbeat_ms
        silence = self._presence.engine.stack.agreement.detector.silence
        return {identities[p]: ticks * heartbeat_ms for p, ticks in silence.items()}

    def missing_names(self) -> tuple[str, ...]:
        """Nodes that are missing for a majority; empty if there is one."""
        blocked = self._presence.engine.stack.blocked
        return () if blocked is None else self._presence.directory.names_of(blocked.missing)
