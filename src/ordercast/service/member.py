"""A member as a process: it joins groups, hands on what they deliver, and sends them lines."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable

from ordercast.errors import OrdercastError
from ordercast.runtime.group import Group
from ordercast.runtime.node import Node
from ordercast.runtime.stream_events import Event
from ordercast.service.daemon import Daemon
from ordercast.service.logs import with_fields
from ordercast.service.settings import NodeSettings

log = logging.getLogger("ordercast.service")


class MemberDaemon(Daemon):
    """One run of a member. When its input ends, it still receives."""

    def __init__(
        self,
        settings: NodeSettings,
        key: str | None,
        *,
        tell: Callable[[Event], None],
        lines: Callable[[], AsyncIterator[bytes]],
    ) -> None:
        """`tell` gets messages and views; each of `lines` is sent to the first group."""
        super().__init__(settings, key)
        self._groups = settings.group
        self._how = settings.join_arguments()
        self._tell = tell
        self._lines = lines
        self._speaking: asyncio.Task[None] | None = None

    async def begin(self, node: Node) -> None:
        joined = [await node.join(name, **self._how) for name in self._groups]
        self._speaking = asyncio.ensure_future(self._speak(joined[0]))

    def take(self, event: Event) -> None:
        self._tell(event)

    async def before_the_end(self, node: Node) -> None:
        if self._speaking is not None:
            self._speaking.cancel()

    async def _speak(self, group: Group) -> None:
        async for line in self._lines():
            if text := line.rstrip(b"\r\n"):
                try:
                    receipt = await group.multicast(text)
                    await receipt.ordered()
                except OrdercastError as reason:  # out of the cluster, or the line is too long
                    log.warning("not sent", extra=with_fields(reason=str(reason)))
