"""A node connects back to a node that asks for it, to show whether the way back is open.

A member must not become a scanner of ports. It dials nothing but the host that the question came
from, sends no byte there, makes one call at a time and few in a minute.
"""

from __future__ import annotations

import asyncio

from ordercast.errors import PeerError
from ordercast.runtime.control import Dialback, DialbackReply, encode
from ordercast.runtime.reasons import why_unreachable
from ordercast.transport.tcp import Connection, show_address

CALL_SECONDS = 2.0  # that one call may take
PAUSE_SECONDS = 0.5  # between the end of a call and the next

REACHED, FAILED, BUSY = "reached", "failed", "busy"


class ReturnCalls:
    """Answers `Dialback`."""

    def __init__(self) -> None:
        self._call: asyncio.Task[None] | None = None
        self._not_before = 0.0  # time of the loop
        self.made = 0
        self.put_off = 0

    def answer(self, conn: Connection, request: Dialback) -> None:
        """Call back, or say that another call is under way."""
        if not 0 < request.port < 65_536:
            raise PeerError(f"it wants to be called back at port {request.port}")
        loop = asyncio.get_running_loop()
        if self._call is not None or loop.time() < self._not_before:
            self.put_off += 1
            text = f"one call at a time, and {PAUSE_SECONDS:g} s between two"
            conn.send(encode(DialbackReply(BUSY, text)))
            return
        self.made += 1
        self._call = asyncio.ensure_future(self._dial(conn, request.port))

    async def _dial(self, conn: Connection, port: int) -> None:
        host = conn.peer[0]
        try:
            async with asyncio.timeout(CALL_SECONDS):
                _, writer = await asyncio.open_connection(host, port)
            writer.transport.abort()
            reply = DialbackReply(REACHED, show_address((host, port)))
        except OSError as reason:
            reply = DialbackReply(FAILED, why_unreachable(reason))
        finally:
            self._call = None
            self._not_before = asyncio.get_running_loop().time() + PAUSE_SECONDS
        conn.send(encode(reply))

    def stop(self) -> None:
        """Make no more calls."""
        if self._call is not None:
            self._call.cancel()

    def stats(self) -> dict[str, int]:
        """Calls made, and those that had to wait."""
        return {"made": self.made, "put_off": self.put_off}
