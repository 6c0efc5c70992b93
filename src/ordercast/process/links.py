"""The links of a process: from a network that loses or reorders to reliable channels.

Which packets travel on a link, the process says; here they are wrapped, unwrapped, acknowledged and
repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from ordercast.core.events import Receive
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.output import Output
from ordercast.core.protocol import Options
from ordercast.core.state import PlainState
from ordercast.reliability.link import LINK_GROUP, Link, LinkAck, Linked

MAX_REPEATS = 20  # to a process that is not in the cluster, as its last view is
MAX_RESTING = 256  # links to processes that are out, and may come back
MAX_ENDED = 4096  # processes that are remembered to be gone

Needs = Callable[[ProcessId, GroupId, msgspec.Struct], bool]
"""Must this packet to that process travel on a link?"""


class Links(PlainState):
    """One link for each process that this one speaks to, where the network needs it."""

    def __init__(self, me: ProcessId, options: Options) -> None:
        self.me = me
        self.options = options
        self.links: dict[ProcessId, Link] = {}
        self.resting: dict[ProcessId, str] = {}  # out of the cluster, and may come back: names
        self.ended: dict[ProcessId, None] = {}  # their links are gone for good; the last of them
        self.running: set[str] = set()  # timers

    def _link(self, p: ProcessId) -> Link:
        link = self.links.get(p)
        if link is None:
            link = self.links[p] = Link(self.options.ack_every, self.options.max_held)
        return link

    def part_from(self, p: ProcessId, name: str) -> None:
        """p is not in the cluster any more. One that never learned that it was in may come back
        under its number: on a new link our first packet would be a repeat to it."""
        self.resting[p] = name
        if len(self.resting) > MAX_RESTING:
            self.end(next(iter(self.resting)))

    def meet(self, p: ProcessId, name: str) -> None:
        """p is in the cluster: former lives of that node are over."""
        self.resting.pop(p, None)
        for former in [q for q, known in self.resting.items() if known == name]:
            self.end(former)

    def end(self, p: ProcessId) -> None:
        """p is out of the cluster for good."""
        self.resting.pop(p, None)
        self.links.pop(p, None)
        self.ended[p] = None
        if len(self.ended) > MAX_ENDED:
            del self.ended[next(iter(self.ended))]

    def receive(self, packet: Receive) -> list[Receive]:
        """A packet of a link came: what may be handed up now, in order."""
        if packet.src in self.ended:
            return []
        link = self._link(packet.src)
        if isinstance(packet.header, LinkAck):
            link.told(packet.header)
            return []
        return link.receive(packet)

    def wrap(self, out: Output, needs: Needs, is_peer: Callable[[ProcessId], bool]) -> None:
        """At the end of a step: put on links what must be, and acknowledge what came."""
        plain, out.transmits = out.transmits, []
        for to, g, era, header, payload in plain:
            if type(header) is Linked:  # on its link already
                out.transmits.append((to, g, era, header, payload))
                continue
            linked = tuple(p for p in to if needs(p, g, header))
            bare = to if not linked else tuple(p for p in to if p not in linked)
            if bare:
                out.transmits.append((bare, g, era, header, payload))
            for p in linked:
                out.transmits.append(((p,), *self._link(p).wrap(g, era, header, payload)))
        for p, link in self.links.items():
            if link.must_acknowledge():
                out.transmits.append(((p,), LINK_GROUP, 0, link.acknowledge(), b""))
            elif link.owed:
                self._start_timer(out, "ack", self.options.ack_delay_ms)
            if link.unacked and not self._rests(link, is_peer=is_peer(p)):
                self._start_timer(out, "retransmit", self.options.retry_ms)

    def _start_timer(self, out: Output, name: str, delay_ms: int) -> None:
        if name not in self.running:
            self.running.add(name)
            out.timers.append((LINK_GROUP, name, delay_ms))

    def on_timer(self, out: Output, name: str, is_peer: Callable[[ProcessId], bool]) -> None:
        """Acknowledge, or repeat what has no answer."""
        self.running.discard(name)
        for p, link in self.links.items():
            if name == "ack":
                if link.owed:
                    out.transmits.append(((p,), LINK_GROUP, 0, link.acknowledge(), b""))
            elif not self._rests(link, is_peer=is_peer(p)):
                for packet in link.stalled(self.options.fetch_batch):
                    out.transmits.append(((p,), *packet))
                    out.notes.append(("retransmit", packet[0], self.me, 0, f"to {p}"))

    @staticmethod
    def _rests(link: Link, *, is_peer: bool) -> bool:
        # One that is not in the cluster may be gone: nothing is repeated until it is heard of.
        return link.repeats >= MAX_REPEATS and not is_peer

    def invariants(self) -> None:
        """What must always hold, checked by simulators and explorers after every step."""
        for link in self.links.values():
            link.invariants()

    def held(self) -> Iterator[tuple[ProcessId, Link, int, Receive]]:
        """Packets behind a gap: (from whom, its link, their places, themselves)."""
        for p, link in self.links.items():
            for s, packet in sorted(link.ahead.items()):
                yield p, link, s, packet
