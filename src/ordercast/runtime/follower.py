"""A node that follows: it asks the leader for everything and tells it who is out of reach."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from ordercast.core.durability import Durability
from ordercast.core.ids import GroupId, ProcessId
from ordercast.errors import (
    Excluded,
    JoinTimeout,
    NodeEnded,
    OrderMismatch,
    PeerError,
    SequencerLost,
    UsageError,
)
from ordercast.protocols.registry import PROTOCOLS
from ordercast.runtime.control import (
    Apply,
    Control,
    Enter,
    Entered,
    Evicted,
    Goodbye,
    GroupEntry,
    Leave,
    Left,
    Lost,
    NodeDown,
    NodeEntry,
    NodeUp,
    NotEntered,
    Prepared,
    PreparedToVisit,
    Recall,
    Redirect,
    Visit,
    encode,
)
from ordercast.runtime.leader import wanted
from ordercast.runtime.reasons import why_unreachable
from ordercast.transport.tcp import Connection

if TYPE_CHECKING:
    from ordercast.runtime.site import Site

log = logging.getLogger("ordercast.runtime.follower")

RECALL_TIMEOUT = 2.0  # seconds that the leader gets to say what became of us


class Follower:
    """The followers' part of the control messages."""

    def __init__(self, site: Site, leader: NodeEntry) -> None:
        self._site = site
        self.leader = leader
        self._requests: dict[int, asyncio.Future[GroupEntry]] = {}  # by their number
        self._wants: dict[int, tuple[str, str]] = {}  # (group, what was asked for)
        self._next_request = 0
        self._recalling: Connection | None = None  # where the leader may tell us why
        self._verdict: asyncio.Future[NodeEnded] = asyncio.get_running_loop().create_future()
        self._recall_task: asyncio.Task[None] | None = None

    # -- this node's own groups -------------------------------------------------------------------

    async def enter(
        self, name: str, order: str, protocol: str | None, durability: Durability = None
    ) -> GroupEntry:
        request = self._number_request()
        self._wants[request] = (name, wanted(order, protocol, durability))
        return await self._ask(request, name, Enter(request, name, order, protocol, durability))

    async def visit(self, name: str) -> GroupEntry:
        request = self._number_request()
        self._wants[request] = (name, "any order")
        return await self._ask(request, name, Visit(request, name))

    def _number_request(self) -> int:
        self._next_request += 1
        return self._next_request

    async def _ask(self, request: int, name: str, question: Control) -> GroupEntry:
        answer: asyncio.Future[GroupEntry] = asyncio.get_running_loop().create_future()
        self._requests[request] = answer
        self._site.peers.tell(self.leader.pid, question)
        timeout = self._site.options.join_timeout
        try:
            async with asyncio.timeout(timeout):
                return await answer
        except TimeoutError:
            reasons = {self.leader.address: f"no answer about group {name!r}"}
            raise JoinTimeout(reasons, timeout) from None
        finally:
            del self._requests[request], self._wants[request]

    def prepared(self, gid: GroupId) -> None:
        self._site.peers.tell(self.leader.pid, Prepared(gid))

    def prepared_to_visit(self, gid: GroupId) -> None:
        self._site.peers.tell(self.leader.pid, PreparedToVisit(gid))

    def leave(self, gid: GroupId) -> None:
        self._site.peers.tell(self.leader.pid, Leave(gid))

    def left(self, gid: GroupId) -> None:
        self._site.peers.tell(self.leader.pid, Left(gid))

    def stop(self, reason: BaseException) -> None:
        """No answer will come any more."""
        for answer in self._requests.values():
            if not answer.done():
                answer.set_exception(reason)
        if self._recall_task is not asyncio.current_task() and self._recall_task is not None:
            self._recall_task.cancel()

    async def stopped(self) -> None:
        """Wait until what `stop` cancelled is over."""
        if self._recall_task is not None:
            await asyncio.wait((self._recall_task,))

    # -- messages of others -----------------------------------------------------------------------

    def handle(self, conn: Connection, pid: ProcessId | None, message: Control) -> None:
        if isinstance(message, Evicted) and (pid == self.leader.pid or conn is self._recalling):
            group, rejoins = message.group or "the cluster", self._site.options.rejoin
            self._end(Excluded(group, message.view, message.reason, rejoins=rejoins))
        elif isinstance(message, Apply) and pid is None:
            conn.send(encode(Redirect(self.leader.address)))
        elif pid == self.leader.pid:
            self._handle_leader(message)
        elif not isinstance(message, Goodbye):
            raise PeerError(f"{type(message).__name__} from a node that does not lead")

    def _handle_leader(self, message: Control) -> None:
        site = self._site
        if isinstance(message, NodeUp):
            site.directory.add(message.node)
            site.peers.bind_waiting(message.node)
        elif isinstance(message, NodeDown):
            site.directory.remove(message.pid)
            site.engine.forget(message.pid)
            site.peers.part(message.pid, message.reason)
        elif isinstance(message, Entered):
            self._answer(message.request, message.group)
        elif isinstance(message, NotEntered):
            self._refuse(message)
        elif isinstance(message, Goodbye):
            self._end(SequencerLost(self.leader.identity, "it was closed"))
        else:
            raise PeerError(f"{type(message).__name__} is not for a follower")

    def _answer(self, request: int, group: GroupEntry) -> None:
        future = self._requests.get(request)
        if future is None or future.done():
            return
        known = PROTOCOLS.get(group.protocol)
        if known is not None and known.header_version == group.header_version:
            future.set_result(group)
            return
        here = "no such protocol" if known is None else f"version {known.header_version}"
        future.set_exception(
            UsageError(
                f"group {group.name!r} speaks {group.protocol!r}, headers version "
                f"{group.header_version}; this node has {here}: run the same release on all nodes"
            )
        )

    def _refuse(self, refusal: NotEntered) -> None:
        future = self._requests.get(refusal.request)
        if future is not None and not future.done():
            name, want = self._wants[refusal.request]
            mismatch = OrderMismatch(name, refusal.have, want)
            future.set_exception(UsageError(refusal.text) if refusal.text else mismatch)

    # -- the mesh ---------------------------------------------------------------------------------

    async def connect_to(self, nodes: tuple[NodeEntry, ...], timeout: float) -> dict[str, str]:
        """A connection to each of these; the reasons where there is none in time."""
        reasons: dict[str, str] = {}
        others = [node for node in nodes if node.pid != self.leader.pid]
        await asyncio.gather(*(self._connect_to(node, timeout, reasons) for node in others))
        return reasons

    async def _connect_to(self, node: NodeEntry, timeout: float, reasons: dict[str, str]) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        site = self._site
        while node.pid in site.directory.live and site.error is None:  # until it is said to be gone
            left = deadline - loop.time()
            try:
                await site.peers.dial_node(node, max(left, 0.01))
            except (OSError, PeerError) as reason:
                if left <= 0:
                    reasons[node.address] = f"{node.identity}: {why_unreachable(reason)}"
                    return
                await asyncio.sleep(min(0.05, left))
            else:
                return

    # -- trouble ----------------------------------------------------------------------------------

    def lost(self, pid: ProcessId, reason: str) -> None:
        if pid != self.leader.pid:
            if pid in self._site.directory.live:
                self._site.peers.tell(self.leader.pid, Lost(pid, reason))
        elif self._recall_task is None:
            self._recall_task = asyncio.ensure_future(self._recall(reason))

    def unbound_closed(self, conn: Connection, reason: str) -> None:
        if conn is self._recalling and not self._verdict.done():
            self._verdict.set_result(SequencerLost(self.leader.identity, reason))

    async def _recall(self, broke: str) -> None:
        """The connection to the leader broke. Is it gone, or did it give us up? Ask once."""
        site = self._site
        error: NodeEnded = SequencerLost(self.leader.identity, broke)
        try:
            conn = await site.peers.dial(self.leader.address, RECALL_TIMEOUT, as_stranger=True)
            self._recalling = conn
            conn.send(encode(Recall(site.me.pid, site.me.incarnation)))
            async with asyncio.timeout(RECALL_TIMEOUT):
                error = await self._verdict
        except (OSError, PeerError) as reason:
            error = SequencerLost(self.leader.identity, f"{broke}; {why_unreachable(reason)}")
        if isinstance(error, SequencerLost) and site.recorder is not None:
            site.recorder.crash_of(self.leader.identity)
        site.fail(error)

    def _end(self, error: NodeEnded) -> None:
        if self._recalling is not None:
            if not self._verdict.done():
                self._verdict.set_result(error)
        else:
            self._site.fail(error)

    def groups(self) -> list[dict[str, object]]:
        """For the status: the groups that this node is in."""
        return [
            {
                "name": member.group.name,
                "order": member.group.order,
                "protocol": member.group.protocol,
                "members": list(member.view.members) if member.view is not None else [],
            }
            for member in self._site.memberships.values()
        ]
