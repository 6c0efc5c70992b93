"""Waits for the first view of a group, also if another node becomes the coordinator."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from ordercast.views.groups import GroupEntry

if TYPE_CHECKING:
    from ordercast.runtime.presence import Presence
    from ordercast.runtime.sending import Sending

Find = Callable[[], Awaitable[GroupEntry]]
"""Asks the coordinator for a group."""


async def first_view_came(presence: Presence, sending: Sending, find: Find) -> bool:
    """True when the first view has come; False if the group has another number by now.

    The coordinator that gave the number may be gone before anybody was in the group. Then the next
    one is asked; and a row of the directory may show that the number is another group's.
    """
    while not sending.installed.done():
        succession = presence.cluster_membership.succession
        await asyncio.wait(
            (sending.installed, sending.mistaken, succession), return_when=asyncio.FIRST_COMPLETED
        )
        if sending.installed.done():
            break
        if sending.mistaken.done() or (await find()).gid != sending.group.gid:
            return False
    await sending.installed
    return True
