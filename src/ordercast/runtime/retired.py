"""Sites that are out while the application still takes what they delivered.

A message counts as delivered when the application takes it, so the log of an incarnation stays
open until the application has come to its end.
"""

from __future__ import annotations

import asyncio
import logging

from ordercast.runtime.closing import close_log
from ordercast.runtime.site import Site

log = logging.getLogger("ordercast.runtime.retired")


class Retired:
    """The Sites of earlier incarnations whose logs are open."""

    def __init__(self) -> None:
        self._sites: list[Site] = []
        self._closing: set[asyncio.Task[None]] = set()

    def add(self, site: Site) -> None:
        """This one is out."""
        if site.recorder is not None:
            self._sites.append(site)
            self.sweep()

    def sweep(self) -> None:
        """Close the logs of those of which everything was taken."""
        done = [s for s in self._sites if not any(stay.untaken for stay in s.stays_begun)]
        self._sites = [site for site in self._sites if site not in done]
        for site in done:
            task = asyncio.ensure_future(close_log(site))
            self._closing.add(task)
            task.add_done_callback(self._closed)

    def _closed(self, task: asyncio.Task[None]) -> None:
        self._closing.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("the log of an earlier incarnation was not closed", exc_info=task.exception())

    async def close(self) -> None:
        """Close all logs as they are: whatever is taken from now on is not recorded."""
        sites, self._sites = self._sites, []
        await asyncio.gather(*self._closing, *map(close_log, sites), return_exceptions=True)
