"""What waits to be sent: for one peer, or for an audience of several."""

from __future__ import annotations

from collections import OrderedDict, deque

from ordercast.core.ids import ProcessId
from ordercast.transport.datagram import (
    FRAGMENT,
    HEADER,
    Body,
    count_pieces,
    pack_audience,
    pack_bodies,
    pack_piece,
)

To = tuple[ProcessId, ...]


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

    def pieces(self, asker: ProcessId, packet_id: int, places: list[int]) -> list[Body]:
        """Those of the pieces that are still here and were meant for this process."""
        to, packet, room = self._packets.get(packet_id, ((), b"", HEADER.size))
        if asker not in to:
            return []
        count = count_pieces(packet, room)
        found = [p for p in dict.fromkeys(places) if p < count]
        self.resent += len(found)
        return [(FRAGMENT, pack_piece(packet, packet_id, place, room)) for place in found]


class Queue:
    """Bodies on their way to one peer, or to one audience."""

    __slots__ = ("audience", "bodies", "size", "to")

    def __init__(self, to: To) -> None:
        self.to = to
        audience = pack_audience(to) if len(to) > 1 else b""
        assert audience is not None, "ids too far apart: the sender splits such an audience"
        self.audience = audience
        self.bodies: deque[Body] = deque()
        self.size = 0

    def put(self, packets: list[bytes], max_datagram: int, repairs: Repairs) -> None:
        """Pack the packets of one turn."""
        room = max_datagram - HEADER.size - len(self.audience)
        for body, large in pack_bodies(packets, room):
            if large is None:
                self.append(body)
                continue
            packet_id = repairs.keep(self.to, large, room)
            for place in range(count_pieces(large, room)):
                self.append((FRAGMENT, pack_piece(large, packet_id, place, room)))

    def append(self, body: Body) -> None:
        """One more body."""
        self.bodies.append(body)
        self.size += len(body[1])

    def sent(self) -> None:
        """The first one has left."""
        self.size -= len(self.bodies.popleft()[1])
