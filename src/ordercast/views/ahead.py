"""Packets of a change whose term has not begun here: they wait for its node view.

An honest node says little ahead of a view that another has yet to hear of: the coordinator goes on
only when all have reported, and whoever has reported has that view. So one that fills its room here
has broken the protocol.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ordercast.core.ids import ProcessId
from ordercast.core.state import PlainState
from ordercast.errors import PeerError

MAX_AHEAD = 4096  # packets of one node
MAX_AHEAD_BYTES = 4 * 1024 * 1024  # ... and their bytes, as they travel


class Ahead(PlainState):
    """Of one node, in the order in which they came."""

    def __init__(self) -> None:
        self.kept: list[tuple[ProcessId, Any]] = []
        self.used: dict[ProcessId, tuple[int, int]] = {}  # packets and bytes, by who sent them

    def keep(self, src: ProcessId, header: msgspec.Struct) -> None:
        """What one node sends takes nobody else's room. A `PeerError` if it has no more."""
        packets, size = self.used.get(src, (0, 0))
        packets, size = packets + 1, size + len(msgspec.msgpack.encode(header))
        if packets > MAX_AHEAD:
            raise PeerError(f"more than {MAX_AHEAD} packets of a term that has not begun")
        if size > MAX_AHEAD_BYTES:
            raise PeerError(f"more than {MAX_AHEAD_BYTES} bytes of a term that has not begun")
        self.used[src] = (packets, size)
        self.kept.append((src, header))

    def take(self) -> list[tuple[ProcessId, Any]]:
        """All of them. Those of a later term come here again."""
        kept, self.kept, self.used = self.kept, [], {}
        return kept

    def invariants(self) -> None:
        """Checked by simulators and explorers after every step."""
        assert set(self.used) == {src for src, _ in self.kept}, "every packet is counted"
        assert sum(packets for packets, _ in self.used.values()) == len(self.kept), "and once"
