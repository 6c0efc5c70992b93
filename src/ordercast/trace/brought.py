"""Header bytes of deliveries: which packet brought the message, and how much of it was no body.

A delivery does not say which packet it came in; it has the very payload of that packet. So what is
under way at a process is remembered by payload, from the arrival to the delivery.
"""

from __future__ import annotations

from collections import OrderedDict

from ordercast.core.ids import ProcessId
from ordercast.core.output import Delivery

MOST_REMEMBERED = 16 * 1024 * 1024  # bytes of payloads; beyond that the oldest are forgotten


class Brought:
    """The packets that came to one process and were not delivered there, as far as remembered."""

    def __init__(self, me: ProcessId, limit: int = MOST_REMEMBERED) -> None:
        self.me = me
        self.limit = limit
        # By identity of the payload, oldest first; a dict would be slow in finding its first.
        self._packets: OrderedDict[int, tuple[bytes, int]] = OrderedDict()
        self._bytes = 0  # of all these payloads

    def came(self, payload: bytes, overhead: int) -> None:
        """A packet with this payload has `overhead` bytes beside it. The first copy counts."""
        if not payload or id(payload) in self._packets:
            return
        self._packets[id(payload)] = (payload, overhead)  # it is kept: else its id could come again
        self._bytes += len(payload)
        while self._bytes > self.limit:
            self._forget(next(iter(self._packets)))

    def overhead(self, delivery: Delivery) -> int:
        """Header bytes of the packet that brought it; asked once. 0: no packet did, or forgotten.

        A process's own message counts as brought by none, also where it comes back with a number.
        """
        payload = id(delivery[4])
        overhead = self._forget(payload) if payload in self._packets else 0
        return 0 if delivery[1] == self.me else overhead

    def _forget(self, key: int) -> int:
        payload, overhead = self._packets.pop(key)
        self._bytes -= len(payload)
        return overhead
