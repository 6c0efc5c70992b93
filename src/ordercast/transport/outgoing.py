"""What waits to be sent: for one peer, or for an audience of several.

Packets are packed when they may leave, not before: the longer the queue, the fuller the
datagrams. What waits here already can be told (`waiting`), and is not queued again: otherwise a
queue that is slower than the patience of a protocol would fill with repeats of its own content.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Hashable

from ordercast.core.ids import ProcessId
from ordercast.transport.datagram import (
    FRAGMENT,
    FRAMES,
    HEADER,
    Body,
    count_pieces,
    pack_audience,
    pack_piece,
)

To = tuple[ProcessId, ...]

Place = tuple[int, int]
"""(packet id, place of the piece)"""


class Repairs:
    """Large packets sent lately, of which pieces may be asked for again."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.used = 0
        self.resent = 0  # pieces
        self._next_id = 0
        self._packets: OrderedDict[int, tuple[To, bytes, int]] = OrderedDict()  # id -> (.., room)

    def keep(self, to: To, packet: bytes, room: int) -> int:
        """A packet that is about to be cut for datagrams with so much room; its id."""
        self._next_id = (self._next_id + 1) % 2**32
        self._packets[self._next_id] = (to, packet, room)
        self.used += len(packet)
        while self.used > self.max_bytes:
            _, (_, oldest, _) = self._packets.popitem(last=False)
            self.used -= len(oldest)
        return self._next_id

    def find(self, asker: ProcessId, packet_id: int, places: list[int]) -> list[Place]:
        """Those of the pieces that are still here and were meant for this process."""
        if packet_id not in self._packets:
            return []
        to, packet, room = self._packets[packet_id]
        if asker not in to:
            return []
        count = count_pieces(packet, room)
        return [(packet_id, place) for place in places if place < count]

    def piece(self, where: Place) -> Body | None:
        """To be sent again; None if it is here no longer."""
        packet_id, place = where
        if packet_id not in self._packets:
            return None
        _, packet, room = self._packets[packet_id]
        self.resent += 1
        return FRAGMENT, pack_piece(packet, packet_id, place, room)


class Queue:
    """Packets on their way to one peer, or to one audience."""

    def __init__(self, to: To, max_datagram: int, repairs: Repairs) -> None:
        audience = pack_audience(to) if len(to) > 1 else b""
        assert audience is not None, "ids too far apart: the sender splits such an audience"
        self.to = to
        self.audience = audience
        self.size = 0  # bytes of the packets that wait
        self.cutting = 0  # id of the packet whose pieces are leaving
        self._room = max_datagram - HEADER.size - len(audience)
        self._repairs = repairs
        self._packets: deque[tuple[bytes, Hashable]] = deque()  # with what tells a repeat
        self.waiting: set[Hashable] = set()  # what tells a repeat, of those
        self._pieces: deque[Body] = deque()  # of the packet that is being cut
        self._again: dict[Place, None] = {}  # pieces that were asked for: they leave first
        self._next: Body | None = None  # packed, and not sent yet

    def put(self, packet: bytes, content: Hashable) -> None:
        """One more packet; `content` tells a repeat, None: there will be none."""
        if content is not None:
            self.waiting.add(content)
        self._packets.append((packet, content))
        self.size += len(packet)

    def put_again(self, pieces: list[Place]) -> None:
        """Pieces that the receiver misses."""
        self._again.update(dict.fromkeys(pieces))

    def head(self) -> Body | None:
        """The next body to send; it stays the next one until `sent`."""
        if self._next is None:
            self._next = self._pack()
        return self._next

    def sent(self) -> None:
        """The body at the head has left."""
        self._next = None

    def _pack(self) -> Body | None:
        while self._again:
            where = next(iter(self._again))
            del self._again[where]
            piece = self._repairs.piece(where)
            if piece is not None:
                return piece
        if not self._pieces:
            self.cutting = 0
            together = self._together()
            if together:
                return FRAMES, b"".join(together)
            if self._packets:
                self._cut(self._take())
        return self._pieces.popleft() if self._pieces else None

    def _together(self) -> list[bytes]:
        """As many packets as share a datagram; none if the next one is larger than that."""
        packets = []
        left = self._room
        while self._packets and len(self._packets[0][0]) <= left:
            packets.append(self._take())
            left -= len(packets[-1])
        return packets

    def _take(self) -> bytes:
        packet, content = self._packets.popleft()
        self.waiting.discard(content)
        self.size -= len(packet)
        return packet

    def _cut(self, packet: bytes) -> None:
        self.cutting = packet_id = self._repairs.keep(self.to, packet, self._room)
        for place in range(count_pieces(packet, self._room)):
            self._pieces.append((FRAGMENT, pack_piece(packet, packet_id, place, self._room)))
