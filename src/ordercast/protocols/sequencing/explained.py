"""Why frames wait, in words that people understand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.waiting import NOBODY, Awaited, Holdings, Waiting, WaitingFrame, first_named
from ordercast.protocols.sequencing.seat import Entry, Marker, Seat, Stay

if TYPE_CHECKING:
    from ordercast.protocols.sequencing.headers import Asked
    from ordercast.protocols.sequencing.outbox import Own
    from ordercast.protocols.sequencing.service import SequencingService


def waiting_frames(service: SequencingService) -> Iterator[WaitingFrame]:
    """Every frame that is not delivered, or not numbered."""
    for own in _requested(service):
        yield own.group, service.me, own.n, own.payload
    for p, requests in service.sequencer.waiting.items():
        for g, _, asked, m in requests:
            yield g, p, asked.n, m
    for g, seat in service.member.seats.items():
        for entry in _undelivered(seat):
            yield g, entry.origin, entry.n, entry.payload


def _requested(service: SequencingService) -> Iterator[Own]:
    """Own frames that have left, and whose numbers have not come."""
    for own in service.sender.outbox.own.values():
        if own.request is not None and service.views[own.group].leader != service.me:
            seat = service.member.seats.get(own.group)
            if seat is None or not seat.has_number(service.me, own.n):
                yield own


def _undelivered(seat: Seat) -> Iterator[Entry]:
    for item in seat.queue:
        if not isinstance(item, Marker):
            yield item
    yield from seat.ahead.values()
    yield from seat.bodyless.values()


def held_back(service: SequencingService) -> Iterator[Waiting]:
    """The same, with what each waits for."""
    for own in _requested(service):
        leader = service.views[own.group].leader
        awaits = (Awaited("order", own.group, leader, own.n),)
        yield Waiting(own.group, service.me, own.n, awaits, own.payload)
    for p, requests in service.sequencer.waiting.items():
        for g, era, asked, m in requests:
            yield Waiting(g, p, asked.n, tuple(_before(service, p, (g, era, asked, m))), m)
    for g, seat in service.member.seats.items():
        view = service.views.get(g)
        leader = NOBODY if view is None else view.leader
        gap = seat.missing()
        first: tuple[Awaited, ...] = ()
        for item in seat.queue:
            if isinstance(item, Marker):
                continue
            if not first:
                first = tuple(_awaited(service, g, seat, item))
                first = first or (Awaited("copies", g, NOBODY, 1),)
            yield Waiting(g, item.origin, item.n, first, item.payload)
        for entry in (*seat.ahead.values(), *seat.bodyless.values()):
            missing = first if gap is None else (Awaited("number", g, leader, gap[0]),)
            yield Waiting(g, entry.origin, entry.n, missing, entry.payload)


def _before(service: SequencingService, p: ProcessId, request: Asked) -> Iterator[Awaited]:
    """What a request waits for at its sequencer."""
    g, era, asked, _ = request
    view, book = service.views.get(g), service.sequencer.books.get(g)
    if view is None or book is None or era > view.era:
        yield Awaited("view", g, NOBODY, 1 if view is None else view.number + 1)
        return
    last = max(book.last.get(p, 0), asked.first - 1)
    if asked.n > last + 1:
        yield Awaited("frame", g, p, last + 1)
    for h, n in asked.after:
        other = service.sequencer.books.get(h)
        if other is None or other.last.get(p, 0) < n:
            yield Awaited("frame", h, p, n)


def _awaited(service: SequencingService, g: GroupId, seat: Seat, entry: Entry) -> Iterator[Awaited]:
    for h, era, N in entry.context:
        other = service.member.seats.get(h)
        if other is not None and h != g and other.at < (era, N):
            if other.stay is Stay.JOINING:
                yield Awaited("view", h, NOBODY, 1)
            else:
                yield Awaited("number", h, service.views[h].leader, N)
    if entry.era == seat.era and seat.commit < entry.N:
        yield Awaited("copies", g, NOBODY, 1)


def held_up(service: SequencingService) -> Iterator[Waiting]:
    """Own frames that may not leave: others are under way to another sequencer."""
    outbox = service.sender.outbox
    awaits = first_named(
        Awaited("order", h, service.views[h].leader, n) for h, n in outbox.under_way.items()
    )
    for own in map(outbox.own.__getitem__, outbox.unsent):
        yield Waiting(own.group, service.me, own.n, awaits, own.payload)


def holdings(service: SequencingService, g: GroupId) -> Holdings:
    """How many frames of g are here, and for what reason."""
    seat, book = service.member.seats.get(g), service.sequencer.books.get(g)
    held = 0 if seat is None else sum(1 for _ in _undelivered(seat))
    kept = 0 if seat is None else max(0, len(seat.kept) - held)
    return Holdings(held, kept, 0 if book is None else len(book.frames))
