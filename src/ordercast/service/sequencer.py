"""The sequencer as a process: a node that joins no group and numbers the messages of others."""

from __future__ import annotations

import logging

from ordercast.errors import OrdercastError
from ordercast.runtime.node import Node
from ordercast.service.administrator import Administrator
from ordercast.service.daemon import Daemon
from ordercast.service.logs import with_fields
from ordercast.service.settings import SequencerSettings
from ordercast.transport.security import Security

log = logging.getLogger("ordercast.service")


class SequencerDaemon(Daemon):
    """One run of a sequencer. Its stream tells of outages only."""

    def __init__(self, settings: SequencerSettings, key: str | None) -> None:
        super().__init__(settings, key)
        self._drain_timeout = settings.drain_timeout

    async def before_the_end(self, node: Node) -> None:
        """Give the groups to others. Where that cannot be, they take over when it is gone."""
        asked = Administrator(
            [node.address], cluster=self.settings.cluster, timeout=self._drain_timeout,
            security=Security.given(**self.security),
        )  # fmt: skip
        try:
            await asked.drain(node.name)
        except (OrdercastError, OSError) as reason:
            groups = node.stats()["sequencing"]["groups"]
            fields = with_fields(groups=groups, reason=str(reason))
            log.log(logging.WARNING if groups else logging.INFO, "not drained", extra=fields)
        else:
            log.info("drained")
