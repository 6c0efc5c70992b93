"""The end of a node: drained if possible, bounded in time always."""

from __future__ import annotations

import asyncio
import logging

from ordercast.errors import GroupClosed, OrdercastError
from ordercast.runtime.joining import Joining
from ordercast.runtime.presence import Presence
from ordercast.runtime.sealing import close_log, record_end

log = logging.getLogger("ordercast.runtime.closing")

PARTING = 1.0  # seconds that a node waits for others to whom it has no connection
PATIENCE = 0.02  # seconds between two looks at whether the application still reads
LOOKS = 5  # so many without progress: it does not
FAREWELL = 0.1  # seconds that the last words get even if all other time is used up


async def close_presence(presence: Presence, joining: Joining, *, in_order: bool) -> None:
    """Leave the groups, say good-bye, close everything. `in_order=False`: the start failed.

    All of `close_timeout` may go into leaving and into the application's last reads; after it comes
    only the farewell. The log is sealed in the time that is left: what is not sealed is told.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + presence.options.close_timeout
    drained = in_order and _is_in(presence) and await _leave_all(presence, joining, deadline)
    if drained:
        await _go_away(presence, deadline)
        await _let_consumer_finish(presence, deadline)
    presence.stop(GroupClosed("the node was closed"))
    presence.lifetime.end()
    await _shut(presence, deadline, drained=drained)


async def drop_presence(presence: Presence, reason: str) -> None:
    """Close, at once, one that never got so far as to put anything into the node's streams."""
    presence.stop(GroupClosed(reason))
    await _shut(presence, asyncio.get_running_loop().time(), drained=False)


async def _shut(presence: Presence, deadline: float, *, drained: bool) -> None:
    """Say good-bye, seal the log, close the connections."""
    loop = asyncio.get_running_loop()
    presence.peers.close("the node was closed", goodbye=presence.error is None)
    try:
        await _close_recorder(presence, drained, deadline - loop.time())
    finally:
        await presence.peers.closed(max(FAREWELL, deadline - loop.time()))


def _is_in(presence: Presence) -> bool:
    return presence.in_cluster and presence.error is None and presence.blocked is None


async def _go_away(presence: Presence, deadline: float) -> None:
    """Out of the cluster in order, also if a program there blocks its loop for a while: what goes
    without a word counts as lost, and the others may have no majority then."""
    loop = asyncio.get_running_loop()
    going = asyncio.ensure_future(presence.cluster_membership.go_away())
    heard_at = loop.time()
    while not going.done() and loop.time() < min(deadline, heard_at + PARTING):
        await asyncio.wait((going,), timeout=PATIENCE)
        if _is_connected(presence):
            heard_at = loop.time()
    if going.cancel():
        log.info("%s did not leave the cluster in order: no time is left", presence.me.identity)
    elif (reason := going.exception()) is not None:
        log.info("%s did not leave the cluster in order: %r", presence.me.identity, reason)


def _is_connected(presence: Presence) -> bool:
    """Can any node that goes on say that this one may go?"""
    me, peers = presence.me.pid, presence.peers
    return any(pid in peers.bound for pid in presence.engine.stack.pids if pid != me)


async def _leave_all(presence: Presence, joining: Joining, deadline: float) -> bool:
    """True if this node left every group in time."""
    try:
        async with asyncio.timeout_at(deadline):
            await joining.leave_all()
    except (TimeoutError, OrdercastError) as reason:
        log.warning("%s did not leave its groups in order: %r", presence.me.identity, reason)
        return False
    return True


async def _let_consumer_finish(presence: Presence, deadline: float) -> None:
    """If a task still reads the stream, give it the rest before the end is recorded."""
    loop = asyncio.get_running_loop()
    without_progress, before = 0, -1
    while without_progress < LOOKS and loop.time() < deadline:
        left = sum(member.pending_frames for member in presence.groups.unread_memberships)
        if not left:
            return
        without_progress = 0 if left != before else without_progress + 1
        before = left
        await asyncio.sleep(PATIENCE)


async def _close_recorder(presence: Presence, drained: bool, seconds: float) -> None:
    try:
        if drained:
            record_end(presence)
    finally:
        await close_log(presence, seconds)
