"""What waits in a stack, and why. It looks, and changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ordercast.core.events import Receive
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import OrderingProtocol
from ordercast.core.state import PlainState
from ordercast.core.waiting import NOBODY, Awaited, Waiting, WaitingFrame, first_missing
from ordercast.reliability.gate import Gate
from ordercast.reliability.link import Link


class Explained(PlainState):
    """The part of a stack that answers why a frame is held back."""

    me: ProcessId
    protocols: dict[GroupId, OrderingProtocol]
    links: dict[ProcessId, Link]
    gates: dict[GroupId, Gate]

    def held_back(self, g: GroupId | None = None) -> list[Waiting]:
        """Every frame that waits here (of group g), and the first things it waits for."""
        held = [
            waiting
            for machine in self._machines()
            for waiting in (*machine.held_back(), *machine.held_up())
        ]
        held += (waiting for gate in self._gates() for waiting in gate.waiting())
        known = {(waiting.group, waiting.sender, waiting.payload) for waiting in held}
        for waiting in (*self._held_for_a_view(), *self._held_by_links()):
            frame = (waiting.group, waiting.sender, waiting.payload)
            if frame not in known:  # of several copies one will do
                known.add(frame)
                held.append(waiting)
        return [waiting for waiting in held if g is None or waiting.group == g]

    def waiting_frames(self) -> Iterator[WaitingFrame]:
        """The frames of `held_back` without the reasons; one that is here twice may come twice."""
        for machine in self._machines():
            yield from machine.waiting_frames()
            yield from (waiting.frame for waiting in machine.held_up())
        for gate in self._gates():
            yield from gate.frames()
        yield from (waiting.frame for waiting in self._held_for_a_view())
        for link in self.links.values():
            for packet in link.ahead.values():
                if packet.payload and not self._is_void(packet):
                    yield packet.group, _origin(packet), 0, packet.payload

    def _machines(self) -> Iterable[OrderingProtocol]:
        # A machine of several groups is listed under each of them.
        return {id(made): made for made in self.protocols.values() if made.views}.values()

    def _gates(self) -> Iterable[Gate]:
        # One that serves several groups is listed under each of them.
        return {id(gate): gate for gate in self.gates.values()}.values()

    def _held_for_a_view(self) -> Iterator[Waiting]:
        """Packets that overtook a view."""
        early: dict[GroupId, list[Receive]] = {}
        for machine in {id(made): made for made in self.protocols.values()}.values():
            for packet in machine.early:
                early.setdefault(packet.group, []).append(packet)
        for g, protocol in self.protocols.items():
            view = protocol.views.get(g)
            following = (Awaited("view", g, NOBODY, 1 if view is None else view.number + 1),)
            for packet in early.get(g, ()):
                if packet.payload:
                    yield Waiting(g, _origin(packet), 0, following, packet.payload)

    def _held_by_links(self) -> Iterator[Waiting]:
        """Packets behind a gap."""
        for p, link in self.links.items():
            missing = first_missing(link.r, link.ahead)
            for s, packet in sorted(link.ahead.items()):
                if packet.payload and not self._is_void(packet):
                    g = packet.group
                    awaits = tuple(Awaited("packet", g, p, k) for k in missing if k < s)
                    yield Waiting(g, _origin(packet), 0, awaits, packet.payload)

    def _is_void(self, packet: Receive) -> bool:
        """Of a former era, or a copy of a frame that a relay brought before."""
        protocol = self.protocols.get(packet.group)
        view = None if protocol is None else protocol.views.get(packet.group)
        if protocol is None or view is None:
            return protocol is None
        n = getattr(packet.header, "n", None)
        if n is not None and protocol.has_delivered(packet.group, _origin(packet), n):
            return True
        return packet.era < view.era


def _origin(packet: Receive) -> ProcessId:
    """Whose frame a packet brings: a relay, or a sequencer, says it in the header."""
    origin: ProcessId = getattr(packet.header, "origin", packet.src)
    return origin
