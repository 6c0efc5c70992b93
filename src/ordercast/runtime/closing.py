"""The end of a node: drained if possible, bounded in time always."""

from __future__ import annotations

import asyncio
import logging

from ordercast.errors import GroupClosed, OrdercastError
from ordercast.runtime.membership import Membership
from ordercast.runtime.site import Site
from ordercast.runtime.stay import Stays

log = logging.getLogger("ordercast.runtime.closing")

PATIENCE = 0.02  # seconds between two looks at whether the application still reads
LOOKS = 5  # so many without progress: it does not


async def close_site(site: Site, stays: Stays, *, in_order: bool) -> None:
    """Leave the groups, say good-bye, close everything. `in_order=False`: the start failed."""
    members = list(site.memberships.values())
    drained = in_order and site.error is None and await _leave_all(site, stays, members)
    if drained:
        await _let_consumer_finish(site)
    site.stop(GroupClosed("the node was closed"), raises=False)
    if drained and not any(member.pending_frames for member in site.stays_begun):
        site.record_end()
    recorder = site.give_up_recorder()
    if recorder is not None:
        await asyncio.to_thread(recorder.close)
    site.peers.close("the node was closed", goodbye=site.error is None)
    await site.peers.closed(site.options.close_timeout)


async def _leave_all(site: Site, stays: Stays, members: list[Membership]) -> bool:
    """True if this node left every group in time."""
    leaving = [stays.leave(member) for member in members if member.closed is None]
    try:
        async with asyncio.timeout(site.options.close_timeout):
            await asyncio.gather(*leaving)
    except (TimeoutError, OrdercastError) as reason:
        log.warning("%s did not leave its groups in order: %r", site.me.identity, reason)
        return False
    return True


async def _let_consumer_finish(site: Site) -> None:
    """If a task still reads the stream, give it the rest before the end is recorded."""
    without_progress, before = 0, -1
    while without_progress < LOOKS:
        left = sum(member.pending_frames for member in site.stays_begun)
        if not left:
            return
        without_progress = 0 if left != before else without_progress + 1
        before = left
        await asyncio.sleep(PATIENCE)
