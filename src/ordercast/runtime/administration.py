"""What a node answers to the commands that administer the cluster.

Only the coordinator answers; any other node says where the coordinator is. That some nodes are gone
may be said to any node, also to one that is cut off. A command has proved that it has the key of
the cluster, where there is one, and could as well join it: there is no further right.

A request may take longer than a stranger may stay connected. It is answered with `UnderWay` after a
while, and the command sends it again: what is under way is not begun twice, and what is so already
is done at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

import msgspec

from ordercast.errors import OrdercastError, PeerError
from ordercast.runtime.control import (
    Control,
    Done,
    DrainRequest,
    ForgetRequest,
    MigrateRequest,
    NotDone,
    Redirect,
    RefoundRequest,
    TableReply,
    TableRequest,
    UnderWay,
    UndrainRequest,
    encode,
)
from ordercast.runtime.placement import TABLES, Placement
from ordercast.runtime.recovery import Recovery
from ordercast.transport.tcp import Connection

if TYPE_CHECKING:
    from ordercast.runtime.presence import Presence

log = logging.getLogger("ordercast.runtime.administration")

AdminRequest = MigrateRequest | DrainRequest | UndrainRequest | RefoundRequest | ForgetRequest
ADMINISTRATIVE = (
    TableRequest, MigrateRequest, DrainRequest, UndrainRequest, RefoundRequest, ForgetRequest,
)  # fmt: skip

REASONS = ("out", "busy", "wrong", "slow")
"""Not in the cluster; too much under way; cannot be; `MAX_SECONDS` were not enough."""

HOLD_SECONDS = 1.0  # an answer may take so long before it is `UnderWay`
MAX_SECONDS = 600.0  # for one wish
MAX_UNDER_WAY = 64  # different wishes at a time
PAGE_BYTES = 512 * 1024  # of rows in one reply


class Administration:
    """Answers tables and wishes."""

    def __init__(self, presence: Presence) -> None:
        self._presence = presence
        self.placement = Placement(presence)
        self.recovery = Recovery(presence)
        self._under_way: dict[AdminRequest, asyncio.Task[Control]] = {}
        self._replies: set[asyncio.Task[None]] = set()
        self.wishes = 0  # that were made here, without repetitions
        self.refused = 0  # because of MAX_UNDER_WAY

    def answer(self, conn: Connection, request: Control) -> None:
        """Answer, now or when it is done."""
        if isinstance(request, TableRequest) and request.table not in TABLES:
            raise PeerError(f"there is no table {request.table[:80]!r}")
        elsewhere = self._elsewhere(request)
        if elsewhere is not None:
            conn.send(encode(elsewhere))
        elif isinstance(request, TableRequest):
            self._answer_table(conn, request)
        else:
            assert isinstance(request, AdminRequest)
            self._answer_request(conn, request)

    def _elsewhere(self, request: Control) -> Control | None:
        """The answer of one that cannot know; None: this node answers itself."""
        presence = self._presence
        if not presence.in_cluster or presence.error is not None:
            return NotDone("out", "it is not in the cluster now; ask another node")
        if isinstance(request, ForgetRequest):
            return None
        if presence.blocked is not None:
            return NotDone("out", str(presence.blocked))
        if not presence.cluster_membership.coordinates:
            return Redirect(presence.cluster_membership.coordinator.address)
        return None

    # -- tables -----------------------------------------------------------------------------------

    def _answer_table(self, conn: Connection, request: TableRequest) -> None:
        rows = [row for row in self.placement.rows(request.table) if row.name > request.after]
        page: list[bytes] = []
        size = 0
        for row in rows:
            page.append(msgspec.json.encode(row))
            size += len(page[-1])
            if size > PAGE_BYTES:
                break
        payload = b"[" + b",".join(page) + b"]"
        conn.send(encode(TableReply(len(page) < len(rows)), payload))

    # -- requests ---------------------------------------------------------------------------------

    def _answer_request(self, conn: Connection, request: AdminRequest) -> None:
        if request not in self._under_way:
            if len(self._under_way) >= MAX_UNDER_WAY:
                self.refused += 1
                text = f"{MAX_UNDER_WAY} requests are under way; ask again when some are done"
                conn.send(encode(NotDone("busy", text)))
                return
            self._begin(request)
        reply = asyncio.ensure_future(self._reply(conn, self._under_way[request]))
        self._replies.add(reply)
        reply.add_done_callback(self._replies.discard)

    def _begin(self, request: AdminRequest) -> None:
        self.wishes += 1
        level = logging.WARNING if isinstance(request, ForgetRequest) else logging.INFO
        log.log(level, "asked for: %s", request)
        task = asyncio.ensure_future(_outcome(self._fulfil(request)))
        self._under_way[request] = task
        task.add_done_callback(lambda _: self._under_way.pop(request, None))

    def _fulfil(self, request: AdminRequest) -> Coroutine[Any, Any, bool]:
        if isinstance(request, MigrateRequest):
            return self.placement.migrate(request.group, request.to)
        if isinstance(request, DrainRequest):
            return self.placement.drain(request.node)
        if isinstance(request, UndrainRequest):
            return self.placement.undrain(request.node)
        if isinstance(request, RefoundRequest):
            return self.placement.refound(request.group)
        return self.recovery.forget(request.nodes, request.view)

    async def _reply(self, conn: Connection, task: asyncio.Task[Control]) -> None:
        done, _ = await asyncio.wait((task,), timeout=HOLD_SECONDS)
        conn.send(encode(task.result() if done else UnderWay()))

    def stop(self) -> None:
        """Answer nobody any more."""
        for task in (*self._under_way.values(), *self._replies):
            task.cancel()

    def stats(self) -> dict[str, int]:
        """Wishes, and the limit of those that are under way."""
        return {
            "wishes": self.wishes,
            "under_way": len(self._under_way),
            "max_under_way": MAX_UNDER_WAY,
            "refused": self.refused,
        }


async def _outcome(work: Coroutine[Any, Any, bool]) -> Control:
    try:
        async with asyncio.timeout(MAX_SECONDS):
            return Done() if await work else UnderWay()
    except TimeoutError:
        return NotDone("slow", f"it was not done within {MAX_SECONDS:g} s, and was given up")
    except (OrdercastError, ValueError) as reason:
        return NotDone("wrong", str(reason))
