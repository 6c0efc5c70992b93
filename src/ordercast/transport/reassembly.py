"""Pieces of large packets of one peer, put together again within bounds of memory and time.

    a piece comes           keep it; if it was the last one missing, hand the packet over
    no piece for a while    ask for what is missing, a few pieces at a time
    none for a long time    forget the packet; whoever needs it will have it sent again
    no room                 forget the packet that waited longest

Nothing is set aside for pieces that have not come, whatever their count is said to be.
"""

from __future__ import annotations

from collections import OrderedDict

from ordercast.errors import FrameError

PIECE_COST = 96  # bytes that a piece costs beside its content
REMEMBERED = 1024  # packets put together lately: a piece of one of them is a repeat


class Incomplete:
    """One packet that misses pieces."""

    __slots__ = ("asked", "asks", "cost", "count", "pieces", "since", "size")

    def __init__(self, count: int, now: float) -> None:
        self.count = count
        self.pieces: dict[int, bytes] = {}
        self.size = 0  # bytes that have come
        self.cost = 0  # the same with what each piece costs
        self.since = now  # the last piece came
        self.asked = now  # pieces were asked for, or came
        self.asks = 0  # times that pieces were asked for, and none came


class Reassembly:
    """The incomplete packets of one peer."""

    def __init__(self, max_packet: int, max_bytes: int) -> None:
        self.max_packet = max_packet
        self.max_bytes = max_bytes
        self.used = 0  # bytes kept, with their cost
        self.expired = 0  # packets forgotten, for time or for room
        self.incomplete: OrderedDict[int, Incomplete] = OrderedDict()  # by id, oldest first
        self._complete: OrderedDict[int, None] = OrderedDict()

    @property
    def pending(self) -> int:
        """Pieces that wait for others."""
        return sum(len(packet.pieces) for packet in self.incomplete.values())

    def add(self, packet_id: int, place: int, count: int, piece: bytes, now: float) -> bytes | None:
        """Take a piece; the packet if that completes it. `FrameError` if it fits no packet."""
        if packet_id in self._complete:
            return None
        packet = self.incomplete.get(packet_id)
        if packet is not None and packet.count != count:
            raise FrameError(f"a packet of {packet.count} pieces, now of {count}")
        if packet is not None and place in packet.pieces:
            return None  # a repeat adds nothing to its size
        self._check_size(packet, place, count, piece)
        if packet is None:
            packet = self.incomplete[packet_id] = Incomplete(count, now)
        packet.since = packet.asked = now
        packet.asks = 0
        self._keep(packet, place, piece)
        if len(packet.pieces) < count:
            self._make_room()
            return None
        self._forget(packet_id)
        self._complete[packet_id] = None
        if len(self._complete) > REMEMBERED:
            self._complete.popitem(last=False)
        return b"".join(packet.pieces[place] for place in range(count))

    def missing(self, now: float, patience: float, most: int) -> list[tuple[int, list[int]]]:
        """What to ask for: packets of which no piece came for so long, and places they miss.

        The patience doubles each time: an answer may stand in a long queue.
        """
        wanted = []
        for packet_id, packet in self.incomplete.items():
            if now - packet.asked >= patience * 2**packet.asks:
                packet.asked = now
                packet.asks += 1
                places = (p for p in range(packet.count) if p not in packet.pieces)
                wanted.append((packet_id, [p for p, _ in zip(places, range(most), strict=False)]))
        return wanted

    def expire(self, now: float, patience: float) -> None:
        """Forget packets of which nothing came for so long."""
        for packet_id, packet in list(self.incomplete.items()):
            if now - packet.since >= patience:
                self._forget(packet_id)
                self.expired += 1

    def _check_size(self, packet: Incomplete | None, place: int, count: int, piece: bytes) -> None:
        size = len(piece) + (0 if packet is None else packet.size)
        # All pieces but the last are equally long, and no piece is empty.
        whole = count if place == count - 1 else (count - 1) * len(piece) + 1
        if max(size, whole) > self.max_packet:
            raise FrameError(f"a packet of {max(size, whole)} bytes or more in {count} pieces")

    def _keep(self, packet: Incomplete, place: int, piece: bytes) -> None:
        cost = len(piece) + PIECE_COST
        packet.pieces[place] = piece
        packet.size += len(piece)
        packet.cost += cost
        self.used += cost

    def _make_room(self) -> None:
        while self.used > self.max_bytes:
            self._forget(next(iter(self.incomplete)))
            self.expired += 1

    def _forget(self, packet_id: int) -> None:
        self.used -= self.incomplete.pop(packet_id).cost
