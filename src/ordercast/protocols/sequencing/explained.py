"""The sequencing service: what waits at a process besides numbered entries, and why. It only looks.

at a sequencer    frames whose sender has frames before them in other groups, without a number
                  frames that came before the book did
at a member       numbers of one that may be the next sequencer
at a sender       frames that may not leave before those in other groups are settled
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ordercast.core.ids import GroupId
from ordercast.core.waiting import NOBODY, Awaited, Waiting, first_named
from ordercast.protocols.sequencing.headers import AcceptIn

if TYPE_CHECKING:
    from ordercast.protocols.sequencing.part import GroupPart
    from ordercast.protocols.sequencing.service import SequencingService


def kept_by_part(part: GroupPart, g: GroupId) -> Iterator[Waiting]:
    """What one group's part keeps beside its book and the numbered entries."""
    yield from _deferred(part, g)
    for p, request, m in part.unready:
        yield Waiting(g, p, request.n, (Awaited("order", g, part.leader, request.n),), m)
    yield from _unnamed(part, g)


def _deferred(part: GroupPart, g: GroupId) -> Iterator[Waiting]:
    for p, queue in part.deferred.items():
        before: dict[Awaited, None] = {}  # each also waits for those in front of it
        for frame in queue:
            for h, n in part.unnumbered_before(frame):
                before[Awaited("frame", h, p, n)] = None
            yield Waiting(g, p, frame.n, first_named(before), frame.payload)


def _unnamed(part: GroupPart, g: GroupId) -> Iterator[Waiting]:
    known = {N for N in part.arrived if N > part.R}
    for packet in part.unnamed:
        accept = packet.header
        if isinstance(accept, AcceptIn) and accept.N > part.R and accept.N not in known:
            known.add(accept.N)
            awaited = Awaited("number", g, part.leader, accept.N)
            yield Waiting(g, accept.origin, accept.n, (awaited,), packet.payload)


def kept_by_sender(service: SequencingService) -> Iterator[Waiting]:
    """Own frames that were not asked for yet. Each also waits for all before it."""
    awaits: dict[Awaited, None] = {}
    for g, n in service.unsent:
        awaits.update(dict.fromkeys(_held_for(service, g)))
        m = service.parts[g].requests.get(n)
        if m is not None:  # else the group was left
            yield Waiting(g, service.me, n, first_named(awaits), m)


def _held_for(service: SequencingService, g: GroupId) -> Iterable[Awaited]:
    if service.paused:
        yield Awaited("view", g, NOBODY, service.views[g].number + 1)
    for h in service.unsettled_before(g):
        part = service.parts[h]
        if service.is_unnumbered(h):
            yield Awaited("order", h, part.leader, part.released)
        else:
            yield Awaited("copies", h, NOBODY, service.copies_missing(h))
    for h in service.exposed_before(g):
        yield Awaited("copies", h, NOBODY, 1)
