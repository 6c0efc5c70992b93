"""Faults in the link that makes a reliable FIFO channel of a lossy network."""

from __future__ import annotations

from typing import Any, ClassVar

from ordercast.core.events import Receive
from ordercast.core.ids import ProcessId
from ordercast.process.given import GivenGroups
from ordercast.process.links import Links
from ordercast.reliability.link import Link, LinkAck, Linked, Packet


class NeverRepeats(Link):
    """What was sent once was sent."""

    def stalled(self, most: int) -> list[Packet]:
        return []


class HandsUpRepeats(Link):
    """A packet that comes again is handed up again."""

    def receive(self, packet: Receive) -> list[Receive]:
        linked = packet.header
        assert isinstance(linked, Linked)
        repeated = linked.s <= self.r
        ready = super().receive(packet)
        if repeated:
            era, payload = packet.era, packet.payload
            ready = [Receive(packet.src, packet.group, era, linked.header, payload)]
        return ready


class AcknowledgesAhead(Link):
    """Acknowledges the highest packet it has, whatever is missing before it."""

    def acknowledge(self) -> LinkAck:
        super().acknowledge()
        return LinkAck(max((self.r, *self.ahead)))


class FaultyLinks(Links):
    """Links of another kind."""

    kind: type[Link]

    def _link(self, p: ProcessId) -> Link:
        if p not in self.links:
            self.links[p] = self.kind(self.options.ack_every, self.options.max_held)
        return self.links[p]


class OnFaultyLinks(GivenGroups):
    """A process with links of another kind."""

    link: ClassVar[type[Link]]

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.links = FaultyLinks(self.me, self.options)
        self.links.kind = self.link


class GroupsThatNeverRepeats(OnFaultyLinks):
    """Over `NeverRepeats`."""

    link = NeverRepeats


class GroupsThatHandsUpRepeats(OnFaultyLinks):
    """Over `HandsUpRepeats`."""

    link = HandsUpRepeats


class GroupsThatAcknowledgesAhead(OnFaultyLinks):
    """Over `AcknowledgesAhead`."""

    link = AcknowledgesAhead
