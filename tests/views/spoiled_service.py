"""The same for the rules of the sequencing service: what to put wrong in a node that has one."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from ordercast.process.process import Process
from ordercast.protocols.sequencing.book import Book
from ordercast.protocols.sequencing.seat import Entry, Marker, Seat, Stay
from ordercast.protocols.sequencing.service import SequencingService
from tests.views.moments import service_of
from tests.views.spoiling import HUGE, NOT_THERE, Spoil, put

# -- where to look ------------------------------------------------------------------------------


def service(node: Process) -> SequencingService:
    found = service_of(node)
    assert found is not None
    return found


def book(node: Process) -> Book:
    """Of a group with members that differ in what they have."""
    return max(service(node).sequencer.books.values(), key=lambda book: book.N - book.stable)


def seat(node: Process) -> Seat:
    """Of a member that waits for more, and keeps what others may lack."""
    seats = service(node).member.seats.values()
    inside = [seat for seat in seats if seat.stay is Stay.IN]
    return max(inside, key=lambda seat: len(seat.queue))


def joining(node: Process) -> Seat:
    seats = service(node).member.seats.values()
    return next(seat for seat in seats if seat.stay is Stay.JOINING)


def outbox(node: Process) -> Any:
    return service(node).sender.outbox


def _forgets_a_frame(node: Process) -> None:
    found = book(node)
    found.frames[HUGE] = replace(found.frames.pop(found.N), N=HUGE)


def _lists_members_otherwise(node: Process) -> None:
    book(node).members = book(node).members[::-1]


def _counts_another(node: Process) -> None:
    done = book(node).done
    _, count = done.popitem()
    done[NOT_THERE] = count


def _numbers_twice(node: Process) -> None:
    frames = book(node).frames
    N = book(node).N
    frames[N] = replace(frames[N], N=N - 1)


def _keeps_what_is_stable(node: Process) -> None:
    found = book(node)
    found.frames[found.stable] = replace(found.frames[found.N], N=found.stable)


BOOK: dict[str, tuple[str, Spoil]] = {
    "Book: a book is of the era in force": ("numbers", put(book, era=lambda era: era + 1)),
    "Book: a book has the members of the view": (
        "numbers", _lists_members_otherwise,
    ),
    "Book: stable <= committed <= numbered": ("numbers", put(book, commit=lambda N: N + 1)),
    "Book: numbers go on from the era before": ("numbers", put(book, base=lambda N: N + HUGE)),
    "Book: an unstable frame is kept": ("numbers", _forgets_a_frame),
    "Book: what is stable is forgotten": ("numbers", _keeps_what_is_stable),
    "Book: a number has one frame": ("numbers", _numbers_twice),
    "Book: what is safe was numbered": ("numbers", put(book, safe=lambda N: N + HUGE)),
    "Book: every member is counted": (
        "numbers", _counts_another,
    ),
    "Book: consumed <= held <= numbered": (
        "numbers", lambda node: book(node).held.update({book(node).others[0]: HUGE}),
    ),
    "Book: only what was numbered is due": (
        "numbers", lambda node: book(node).guests.append((1, book(node).members[0], HUGE)),
    ),
}  # fmt: skip


def _forgets_what_came(node: Process) -> None:
    found = seat(node)
    found.kept[HUGE] = replace(found.kept.pop(found.got), N=HUGE)


def _keeps_too_much(node: Process) -> None:
    found = seat(node)
    found.kept[found.stable] = replace(found.kept[found.got], N=found.stable)


def _takes_twice(node: Process) -> None:
    kept, N = seat(node).kept, seat(node).got
    kept[N] = replace(kept[N], N=N - 1)


def _comes_twice(node: Process) -> None:
    found = seat(node)
    found.ahead[found.got] = found.kept[found.got]
    found.ahead_bytes += found.kept[found.got].weight


def _queues_for_a_joiner(node: Process) -> None:
    joining(node).ahead[1] = Entry(1, 1, 0, 1, (), (), b"m")


def _swaps(node: Process) -> None:
    queue = seat(node).queue
    queue[0], queue[1] = queue[1], queue[0]


SEAT: dict[str, tuple[str, Spoil]] = {
    "Seat: a joiner has nothing to deliver": ("joins", _queues_for_a_joiner),
    "Seat: the queue rises from what was delivered": ("queues", _swaps),
    "Seat: delivered <= here <= known": ("queues", put(seat, known=0)),
    "Seat: what is stable is here": ("queues", put(seat, base=lambda N: N + HUGE)),
    "Seat: nothing is taken up after the report": ("queues", put(seat, ceiling=0)),
    "Seat: an unstable frame is kept": ("queues", _forgets_what_came),
    "Seat: what is stable is forgotten": ("queues", _keeps_too_much),
    "Seat: a number has one frame": ("queues", _takes_twice),
    "Seat: what is ahead is not here yet": ("queues", _comes_twice),
    "Seat: only what was delivered is consumed": ("queues", put(seat, taken=HUGE)),
    "Seat: what waits is weighed": ("queues", put(seat, ahead_bytes=lambda size: size + 1)),
    "Seat: bodies are weighed": ("queues", put(seat, bodies_bytes=lambda size: size + 1)),
}  # fmt: skip


def group_of(node: Process) -> int:
    """The group of `seat`."""
    found = seat(node)
    return next(g for g, other in service(node).member.seats.items() if other is found)


def _loses_its_seat(node: Process) -> None:
    service(node).member.seats.pop(group_of(node))
    service(node).delivery.markers = sum(
        isinstance(x, Marker) for s in service(node).member.seats.values() for x in s.queue
    )


def _out_in_one_place(node: Process) -> None:
    seat(node).stay = Stay.LEAVING


def _unlisted(node: Process) -> None:
    service(node).member_of.discard(group_of(node))


def _numbers_what_it_knows_not(node: Process) -> None:
    service(node).sequencer.books[NOT_THERE] = book(node)


def _loses_its_book(node: Process) -> None:
    books = service(node).sequencer.books
    del books[min(books)]


def _has_less_than_it_numbered(node: Process) -> None:
    found, books = service(node), service(node).sequencer.books
    own = next(s for g, s in found.member.seats.items() if g in books)
    own.got -= 1
    own.known = own.got
    last = own.kept.pop(own.got + 1)
    if own.queue and own.queue[-1] == last:
        own.queue.pop()


def _leaves_out_of_line(node: Process) -> None:
    outbox(node).unsent.rotate()


def _in_no_line(node: Process) -> None:
    found = outbox(node)
    g, n = found.unsent.pop()
    del found.own[g, n]


def _lines_fall(node: Process) -> None:
    found = outbox(node)
    next(iter(found.of_group.values())).rotate()


def _goes_on_to_nobody(node: Process) -> None:
    found = outbox(node)
    for table in (found.own, found.of_group, found.unsent, found.under_way):
        table.clear()


SERVICE: dict[str, tuple[str, Spoil]] = {
    "Delivery: all markers are counted": (
        "queues", put(lambda node: service(node).delivery, markers=lambda count: count + 1),
    ),
    "Member: a member has a seat": ("queues", _loses_its_seat),
    "Member: a seat is of the era in force": (
        "queues", put(seat, era=lambda era: era + 1),
    ),
    "Member: in iff the view says so": ("queues", _out_in_one_place),
    "Member: a member": ("queues", _unlisted),
    "Outbox: what has not left is in line, in order": ("sends", _leaves_out_of_line),
    "Outbox: every frame is in the line of its group": ("sends", _in_no_line),
    "Outbox: lines rise": ("sends", _lines_fall),
    "Outbox: the last frame under way is known": (
        "sends", lambda node: outbox(node).under_way.update({min(outbox(node).under_way): HUGE}),
    ),
    "Outbox: frames are under way to somebody": ("sends", _goes_on_to_nobody),
    "Sender: frames are under way to one sequencer": ("sends", put(outbox, target=NOT_THERE)),
    "Sequencer: only a known group is numbered": ("numbers", _numbers_what_it_knows_not),
    "Sequencer: a book iff it is the sequencer": ("numbers", _loses_its_book),
    "Sequencer: requests that wait are weighed": (
        "numbers", lambda node: service(node).sequencer.waiting_bytes.update({NOT_THERE: 1}),
    ),
    "SequencingService: who numbers a group and is in it has it all": (
        "numbers", _has_less_than_it_numbered,
    ),
    "SequencingService: every packet that came too early is counted": (
        "numbers", put(service, early_of=lambda count: count | {NOT_THERE: 1}),
    ),
    "SequencingService: ... and weighed": (
        "numbers", put(service, early_bytes=lambda size: size | {NOT_THERE: 1}),
    ),
}  # fmt: skip
