"""One state on its way: in pieces, a few of them under way, beside the ordered traffic.

The pieces travel on the connection of the two nodes, which packets of groups share. A piece leaves
only when little is buffered there, so packets never stand behind more than a few pieces.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from hashlib import blake2b
from typing import TYPE_CHECKING

from ordercast.core.ids import ProcessId
from ordercast.errors import PeerError
from ordercast.runtime.control import StateBegin, StateChunk, StateEnd, encode

if TYPE_CHECKING:
    from ordercast.runtime.peers import Peers
    from ordercast.transport.tcp import Connection

KiB = 1024

CHUNK = 256 * KiB  # bytes of one piece
CHUNKS_UNDER_WAY = 8  # pieces that the other side has not acknowledged
MAX_BEHIND = 256 * KiB  # with more buffered on the connection, no piece is added
PAUSE_S = 0.001  # then look again after this

DIGEST_BYTES = 16

AT_ONCE = 8 * 1024 * KiB  # a larger state is put together beside the event loop


class Outgoing:
    """A state that is being given to one node."""

    def __init__(
        self, peers: Peers, pid: ProcessId, begin: StateBegin, state: bytes,
        ended: Callable[[], None],
    ) -> None:  # fmt: skip
        """`ended` is called once, when all is sent, or the other node is gone."""
        self.pid = pid
        self.transfer = begin.transfer
        self.size = len(state)
        self._state = memoryview(state)
        self._peers = peers
        self._ended = ended
        self._digest = blake2b(digest_size=DIGEST_BYTES)
        self._sent = 0
        self._acknowledged = 0
        peers.tell(pid, begin)
        loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = loop.call_later(0, self._go_on)

    def acknowledge(self, received: int) -> None:
        """The other side has so many bytes."""
        if not self._acknowledged <= received <= self._sent:
            raise PeerError(f"it acknowledges {received} bytes of a state; {self._sent} were sent")
        self._acknowledged = received
        if self._timer is None:
            self._go_on()

    def stop(self) -> None:
        """Send no more of it."""
        self._cancel_timer()
        self._state.release()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    @property
    def is_complete(self) -> bool:
        """Has all of it left?"""
        return self._sent == self.size

    def _go_on(self) -> None:
        """One piece, or a look later: everything else of the event loop comes between."""
        self._timer = None
        connection = self._peers.bound.get(self.pid)
        if connection is None:
            self._ended()
        elif self.is_complete:
            self._peers.tell(self.pid, StateEnd(self.transfer, self._digest.digest()))
            self._ended()
        elif self._sent - self._acknowledged < CHUNKS_UNDER_WAY * CHUNK:
            is_free = connection.buffered <= MAX_BEHIND
            if is_free:
                self._send_piece(connection)
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(0 if is_free else PAUSE_S, self._go_on)

    def _send_piece(self, connection: Connection) -> None:
        piece = bytes(self._state[self._sent : self._sent + CHUNK])
        self._digest.update(piece)
        connection.send(encode(StateChunk(self.transfer, self._sent), piece))
        self._sent += len(piece)


class Incoming:
    """A state that is being got. Nothing is reserved for what has not come."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.received = 0
        self._pieces: list[bytes] = []
        self._digest = blake2b(digest_size=DIGEST_BYTES)

    def take(self, offset: int, piece: bytes) -> None:
        """The next piece."""
        if offset != self.received or not piece or offset + len(piece) > self.size:
            raise PeerError(
                f"{len(piece)} bytes at {offset} of a state; "
                f"{self.received} of {self.size} are here"
            )
        self._digest.update(piece)
        self._pieces.append(piece)
        self.received += len(piece)

    def finish(self, digest: bytes) -> None:
        """That was all. Is it what was sent?"""
        if self.received != self.size:
            raise PeerError(f"a state ends after {self.received} of {self.size} bytes")
        if digest != self._digest.digest():
            raise PeerError(f"the checksum of a state of {self.size} bytes is wrong")

    async def whole(self) -> bytes:
        """All of it, in one piece."""
        pieces, self._pieces = self._pieces, []
        if self.size <= AT_ONCE:
            return b"".join(pieces)
        return await asyncio.to_thread(b"".join, pieces)
