"""What waits in a process, and why. It looks, and changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from ordercast.core.events import Multicast, Receive, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import OrderingProtocol
from ordercast.core.waiting import NOBODY, Awaited, Waiting, WaitingFrame, first_missing
from ordercast.process.groups import OpenGroups
from ordercast.process.links import Links


class Explained(Protocol):
    """A process, as far as something may wait in it."""

    me: ProcessId
    groups: OpenGroups
    links: Links
    early: list[Receive]  # came before the change that opens their group here
    said: list[Multicast]  # by the application, and not said yet

    def view(self, g: GroupId) -> View | None: ...


def held_back(process: Explained, g: GroupId | None = None) -> list[Waiting]:
    """Every frame that waits here, and what for; of one group, or of all."""
    held: list[Waiting] = []
    for machine in _with_views(process):
        held += machine.held_back()
        held += machine.held_up()
    for gate in process.groups.gates.all():
        held += gate.waiting()
    known = {(waiting.group, waiting.sender, waiting.payload) for waiting in held}
    for waiting in (*_held_for_a_view(process), *_held_by_links(process)):
        frame = (waiting.group, waiting.sender, waiting.payload)
        if frame not in known:  # of several copies one will do
            known.add(frame)
            held.append(waiting)
    return [waiting for waiting in held if g is None or waiting.group == g]


def waiting_frames(process: Explained) -> Iterator[WaitingFrame]:
    """The frames of `held_back` without the reasons; one that is here twice may come twice."""
    for machine in _with_views(process):
        yield from machine.waiting_frames()
        yield from (waiting.frame for waiting in machine.held_up())
    for gate in process.groups.gates.all():
        yield from gate.frames()
    yield from (waiting.frame for waiting in _held_for_a_view(process))
    yield from (waiting.frame for waiting in _held_by_links(process))


def _with_views(process: Explained) -> Iterator[OrderingProtocol]:
    return (machine for machine in process.groups.every() if machine.views)


def _held_for_a_view(process: Explained) -> Iterator[Waiting]:
    """Packets that overtook a view, and what is said here while one changes."""
    packets = [*process.early]
    said: list[Multicast] = [*process.said]
    for machine in process.groups.every():
        packets += machine.early
    for flush in {id(f): f for f in process.groups.flushes.values()}.values():
        said += flush.queued
    for packet in packets:
        if packet.payload:
            following = _following_view(process, packet.group)
            yield Waiting(packet.group, _origin(packet), 0, following, packet.payload)
    for multicast in said:
        following = _following_view(process, multicast.group)
        yield Waiting(multicast.group, process.me, 0, following, multicast.payload)


def _following_view(process: Explained, g: GroupId) -> tuple[Awaited, ...]:
    view = process.view(g)
    return (Awaited("view", g, NOBODY, 1 if view is None else view.number + 1),)


def _held_by_links(process: Explained) -> Iterator[Waiting]:
    """Packets behind a gap."""
    for p, link, s, packet in process.links.held():
        if packet.payload and not _is_void(process, packet):
            missing = first_missing(link.r, link.ahead)
            awaits = tuple(Awaited("packet", packet.group, p, k) for k in missing if k < s)
            yield Waiting(packet.group, _origin(packet), 0, awaits, packet.payload)


def _is_void(process: Explained, packet: Receive) -> bool:
    """Of a former era, or a copy of a frame that a relay brought before."""
    machine = process.groups.machines.get(packet.group)
    view = process.view(packet.group)
    if machine is None or view is None:
        return machine is None
    n = getattr(packet.header, "n", None)
    if n is not None and machine.has_delivered(packet.group, _origin(packet), n):
        return True
    return packet.era < view.era


def _origin(packet: Receive) -> ProcessId:
    """Whose frame a packet brings: a relay, or a sequencer, says it in the header."""
    origin: ProcessId = getattr(packet.header, "origin", packet.src)
    return origin
