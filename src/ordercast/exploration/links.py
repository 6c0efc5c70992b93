"""The link alone, as a machine that can be explored: does it make N2 of N0?

Two processes, one link. What the application of one says goes over the link to the other; the
timers are those that a process's stack runs for its links. There is no ordering protocol above,
so whatever the link hands up is delivered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import msgspec

from ordercast.core.declaration import Declaration
from ordercast.core.events import Kept, Receive, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import Options, OrderingProtocol, on
from ordercast.core.waiting import Awaited, Waiting
from ordercast.reliability.link import Link, LinkAck, Linked


class Frame(msgspec.Struct, frozen=True, array_like=True):
    """What the link carries: the n-th of its sender."""

    n: int


class LinkAlone(OrderingProtocol):
    """One end of a link, for each other member of the group."""

    declaration = Declaration(
        name="link",
        order="fifo",
        scope="group",
        network="N0",
        header="2",
        packets="n-1",
        control="n-1",
        exact=True,
        silence="acknowledgements",
        source="reliability/link.py",
        promises=(
            "no_duplication", "no_creation", "membership", "validity", "agreement", "fifo.group",
        ),
        crash="nothing more comes from it",
    )  # fmt: skip
    kind: ClassVar[type[Link]] = Link  # the tests put faulty ones here

    def __init__(self, me: ProcessId, options: Options | None = None) -> None:
        super().__init__(me, options)
        self.links: dict[ProcessId, Link] = {}
        self.sent = 0  # frames of this process
        self.running: set[str] = set()  # timers

    def on_view(self, view: View) -> None:
        every, window = self.options.ack_every, self.options.max_held
        self.links = {p: self.kind(every, window) for p in self.others[view.group]}

    def on_multicast(self, g: GroupId, m: bytes) -> None:
        self.sent += 1
        for p, link in self.links.items():
            self.out.transmits.append(((p,), *link.wrap(g, self.views[g].era, Frame(self.sent), m)))
            self._start_timer(g, "retransmit", self.options.retry_ms)
        self.out.deliveries.append((g, self.me, self.sent, 0, m))

    @on(Linked)
    def on_linked(self, p: ProcessId, g: GroupId, linked: Linked, m: bytes) -> None:
        """Whatever may be handed up now is delivered."""
        link = self.links[p]
        for ready in link.receive(Receive(p, g, self.views[g].era, linked, m)):
            assert isinstance(ready.header, Frame)
            self.out.deliveries.append((g, p, ready.header.n, 0, ready.payload))
        if link.must_acknowledge():
            self.send(p, g, link.acknowledge())
        elif link.owed:
            self._start_timer(g, "ack", self.options.ack_delay_ms)

    @on(LinkAck)
    def on_link_ack(self, p: ProcessId, g: GroupId, ack: LinkAck, m: bytes) -> None:
        """What the peer has need not be repeated."""
        self.links[p].told(ack)

    def on_timer(self, g: GroupId, name: str) -> None:
        self.running.discard(name)
        for p, link in self.links.items():
            if name == "ack" and link.owed:
                self.send(p, g, link.acknowledge())
            elif name == "retransmit":
                for packet in link.stalled(self.options.fetch_batch):
                    self.out.transmits.append(((p,), *packet))
                if link.unacked:
                    self._start_timer(g, "retransmit", self.options.retry_ms)

    def held_back(self) -> list[Waiting]:
        """Packets ahead of one that is missing."""
        return [
            Waiting(
                packet.group, p, s, (Awaited("frame", packet.group, p, link.r + 1),), packet.payload
            )
            for p, link in self.links.items()
            for s, packet in sorted(link.ahead.items())
        ]

    def on_consumed(self, g: GroupId, frames: int) -> None:
        """A link does not wait for applications."""

    def unstable(self, g: GroupId) -> tuple[Kept, ...]:
        return ()  # the view never changes here

    def on_flush(self, g: GroupId, union: Sequence[Kept]) -> None:
        """The view never changes here."""

    def _start_timer(self, g: GroupId, name: str, delay_ms: int) -> None:
        if name not in self.running:
            self.running.add(name)
            self.set_timer(g, name, delay_ms)
