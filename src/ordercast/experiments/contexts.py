"""What sequencers say of other groups: how long the contexts are that they send."""

from __future__ import annotations

from ordercast.core.events import Receive
from ordercast.protocols.sequencing.headers import Accept, Number


class Contexts:
    """Looks at every packet as it is sent, and lets it pass."""

    def __init__(self) -> None:
        self.seen = 0
        self.entries = 0

    def __call__(self, packet: Receive) -> Receive:
        """A number with its context: one for all members."""
        header = packet.header
        if isinstance(header, Accept | Number):
            self.seen += 1
            self.entries += len(header.context)
        return packet

    def mean(self) -> float | None:
        """Other groups that a context names."""
        return self.entries / self.seen if self.seen else None
