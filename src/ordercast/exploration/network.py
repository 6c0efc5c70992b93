"""Packets under way to one process, on a network of each class.

    N0, N1   a set in which a packet may occur twice: any of them may arrive next
    N2f      a queue for each sender and group: only the first of each may arrive
    N2       a queue for each sender

An inbox is a tuple of packet numbers, in an order that depends only on what can happen: sorted, or
by queues. So inboxes with the same future are equal.
"""

from __future__ import annotations

from collections.abc import Sequence

from ordercast.core.declaration import Network
from ordercast.core.ids import ProcessId
from ordercast.exploration.process import Packet, PacketNumber

Inbox = tuple[PacketNumber, ...]
Channel = tuple[ProcessId, int]  # (sender, group, or 0 where the sender's groups share a queue)


class Medium:
    """How packets of one network class may arrive."""

    def __init__(self, network: Network, packets: list[Packet]) -> None:
        self.network = network
        self.queues = network in ("N2f", "N2")
        self.packets = packets

    def add(self, inbox: Inbox, packet: PacketNumber) -> Inbox:
        """One more is under way."""
        if self.queues:
            return tuple(sorted((*inbox, packet), key=self.channel))  # stable: queues keep order
        return tuple(sorted((*inbox, packet)))

    def without(self, inbox: Inbox, packet: PacketNumber) -> Inbox:
        """It arrived, or was lost."""
        place = inbox.index(packet)
        return inbox[:place] + inbox[place + 1 :]

    def without_queue(self, inbox: Inbox, packet: PacketNumber) -> Inbox:
        """Lost, and in a queue all that is behind it."""
        if not self.queues:
            return self.without(inbox, packet)
        channel = self.channel(packet)
        return tuple(other for other in inbox if self.channel(other) != channel)

    def next(self, inbox: Inbox) -> Sequence[PacketNumber]:
        """Those that may arrive now, each once."""
        if not self.queues:
            return list(dict.fromkeys(inbox))
        firsts: dict[Channel, PacketNumber] = {}
        for packet in inbox:
            firsts.setdefault(self.channel(packet), packet)
        return list(firsts.values())

    def channel(self, packet: PacketNumber) -> Channel:
        """The queue it is in."""
        receive = self.packets[packet].receive
        return receive.src, receive.group if self.network == "N2f" else 0
