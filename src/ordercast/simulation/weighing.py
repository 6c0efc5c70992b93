"""How many bytes the packets of a run would have: the simulator moves objects, not bytes.

A header is encoded as a live node encodes it. That takes time, so it is done only where a trace at
protocol level is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from ordercast.core.events import Receive, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.output import Delivery
from ordercast.core.protocol import OrderingProtocol
from ordercast.process.headers import headers_of
from ordercast.reliability.link import LINK_GROUP, LinkAck, Linked
from ordercast.simulation.log import Weighed
from ordercast.simulation.seats import Roster
from ordercast.trace.brought import Brought
from ordercast.wire.codec import ChannelCodec

LINKS = ChannelCodec((LinkAck,))


@lru_cache(maxsize=64)
def codec_of(protocol: type[OrderingProtocol]) -> ChannelCodec:
    """For the channel of a group, as a live node has it."""
    return ChannelCodec((*headers_of(protocol), Linked))


class Scale:
    """Weighs what arrives at one process."""

    def __init__(self, me: ProcessId, rosters: Mapping[GroupId, Roster]) -> None:
        self._codecs = {g: codec_of(roster.protocol) for g, roster in rosters.items()}
        self._codecs[LINK_GROUP] = LINKS
        self._brought = Brought(me)

    def arrived(self, packet: Receive) -> int:
        """Its bytes beside the payload. They are remembered until the payload is delivered."""
        overhead = self._codecs[packet.group].overhead(packet.header)
        self._brought.came(packet.payload, overhead)
        return overhead

    def weighed(self, deliveries: Iterable[Delivery | View]) -> Iterable[Delivery | View | Weighed]:
        """The same, with the header bytes of those that a packet brought."""
        for delivery in deliveries:
            if not isinstance(delivery, View) and (overhead := self._brought.overhead(delivery)):
                yield Weighed(delivery, overhead)
            else:
                yield delivery
