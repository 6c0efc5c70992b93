"""Looks for nodes that were lost: they may live on the other side of a partition that has ended.

While this node is cut off it looks for the other nodes of the last view; while it is in the
cluster, for those that were excluded. Of two nodes the newer one connects, here as everywhere. Only
packets of the cluster count on such a connection, until both nodes are in one view again.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ordercast.core.ids import ProcessId
from ordercast.errors import PeerError
from ordercast.membership.node_view import NodeEntry

if TYPE_CHECKING:
    from ordercast.runtime.presence import Presence

SEARCH_S = 1.0  # between two looks of the coordinator, and of a node that is cut off
SELDOM = 5  # all others look so many times less often: the coordinator may not know the lost one
REACH_S = 0.9  # that an address gets to answer: less than a round, so each round asks again


class LostNodeSearch:
    """Connects to the missing nodes, again and again until they are back."""

    def __init__(self, presence: Presence) -> None:
        self._presence = presence
        self._timer: asyncio.TimerHandle | None = None
        self._dials: dict[ProcessId, asyncio.Task[None]] = {}
        self._rounds = 0

    def wake(self) -> None:
        """A node may be missing from now on."""
        if self._timer is None and self._missing():
            self._timer = asyncio.get_running_loop().call_later(SEARCH_S / 4, self._look)

    def _look(self) -> None:
        self._timer = None
        missing = self._missing()
        if not missing or self._presence.error is not None:
            return
        stack = self._presence.engine.stack
        self._rounds += 1
        if stack.coordinates or stack.blocked is not None or self._rounds % SELDOM == 0:
            for node in missing:
                if node.pid < stack.me and node.pid not in self._dials and self._is_mute(node.pid):
                    dial = asyncio.ensure_future(self._dial(node))
                    self._dials[node.pid] = dial
        self._timer = asyncio.get_running_loop().call_later(SEARCH_S, self._look)

    def _missing(self) -> list[NodeEntry]:
        stack = self._presence.engine.stack
        if stack.node_view is None or stack.over:
            return []
        missing = list(stack.lost.values())
        if stack.blocked is not None:
            missing += [n for n in stack.node_view.nodes if n.pid in stack.blocked.missing]
        return missing

    def _is_mute(self, pid: ProcessId) -> bool:
        """Is there no connection, or one on which nothing comes?"""
        return pid not in self._presence.peers.bound or self._presence.may_replace(pid)

    async def _dial(self, node: NodeEntry) -> None:
        try:
            await self._presence.peers.dial_node(node, REACH_S)
        except (TimeoutError, PeerError):  # somebody is there, and does not know this node
            self._presence.rivals.suspect(node.address)
        except OSError:
            pass  # again, in a while
        finally:
            del self._dials[node.pid]

    def stop(self) -> None:
        """Stop looking."""
        if self._timer is not None:
            self._timer.cancel()
        for dial in self._dials.values():
            dial.cancel()
