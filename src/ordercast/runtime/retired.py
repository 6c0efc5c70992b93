"""Presences that are out while the application still takes what they delivered.

A message counts as delivered when the application takes it, so the log of an incarnation stays
open until the application has come to its end.
"""

from __future__ import annotations

import asyncio
import logging

from ordercast.runtime.presence import Presence
from ordercast.runtime.sealing import close_log

log = logging.getLogger("ordercast.runtime.retired")


class Retired:
    """The Presences of earlier incarnations whose logs are open."""

    def __init__(self) -> None:
        self._presences: list[Presence] = []
        self._closing: set[asyncio.Task[None]] = set()

    def add(self, presence: Presence) -> None:
        """This incarnation is out."""
        if presence.recorder is not None:
            self._presences.append(presence)
            self.sweep()

    def sweep(self) -> None:
        """Close the logs of those of which everything was taken."""
        done = [
            p
            for p in self._presences
            if not any(member.unconsumed for member in p.groups.unread_memberships)
        ]
        self._presences = [presence for presence in self._presences if presence not in done]
        for presence in done:
            task = asyncio.ensure_future(close_log(presence))
            self._closing.add(task)
            task.add_done_callback(self._closed)

    def _closed(self, task: asyncio.Task[None]) -> None:
        self._closing.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("the log of an earlier incarnation was not closed", exc_info=task.exception())

    async def close(self, seconds: float) -> None:
        """Close all logs as they are: whatever is taken from now on is not recorded."""
        presences, self._presences = self._presences, []
        logs = [close_log(presence, seconds) for presence in presences]
        await asyncio.gather(*self._closing, *logs, return_exceptions=True)
