"""The member: the groups that one process is in.

    ACCEPT, NUMBER   hold it until all numbers before it are here
    MARKS            what may be delivered, and what all have consumed
    ACK              to the sequencer: what is held here, and consumed
    FETCH            for numbers that are missing

What it knows of one group is a `Seat`. When frames are delivered is in `delivery`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from ordercast.core.changing import Place
from ordercast.core.events import Receive
from ordercast.core.ids import GroupId, ProcessId
from ordercast.protocols.sequencing.headers import Accept, Ack, Fetch, Marks, Number
from ordercast.protocols.sequencing.part import Environment, Part
from ordercast.protocols.sequencing.seat import END, Entry, Seat, Stay


class OwnSequencer(Protocol):
    """The sequencer at the same process, as a member sees it."""

    def acknowledged(self, p: ProcessId, g: GroupId, ack: Ack) -> None:
        """What member p holds, and has consumed."""


class OwnSender(Protocol):
    """The sender at the same process, as a member sees it."""

    def consumed(self, g: GroupId, n: int) -> None:
        """Own frames to g up to n were consumed by all."""


class OwnDelivery(Protocol):
    """The queues at the same process, as a member sees them."""

    def look_at(self, g: GroupId, seat: Seat) -> None:
        """Something of g may be delivered now that could not before."""

    def release(self, g: GroupId) -> None:
        """Nothing waits for g any more."""


class Member(Part):
    """The seats of one process."""

    lent = Part.lent | {"member_of", "sequencer", "sender", "delivery"}

    def __init__(self) -> None:
        self.seats: dict[GroupId, Seat] = {}

    def connect(
        self,
        env: Environment,
        member_of: set[GroupId],
        sequencer: OwnSequencer,
        sender: OwnSender,
        delivery: OwnDelivery,
    ) -> None:
        """Lend it what it does not own."""
        self.share(env)
        self.member_of = member_of  # groups whose messages are delivered here
        self.sequencer = sequencer
        self.sender = sender
        self.delivery = delivery

    # -- what the sequencer says ------------------------------------------------------------------

    # ACCEPT at p: hold it until all numbers before it are here;  ACK(held, done)
    def on_ACCEPT(self, p: ProcessId, packet: Receive) -> None:
        """A numbered frame, from the sequencer or from one that was asked for it."""
        accept: Accept = packet.header  # type: ignore[assignment]
        g = packet.group
        seat = self.seat_in(g)
        if seat is not None:
            entry = Entry(
                packet.era, accept.N, accept.origin, accept.n, accept.context, accept.needs,
                packet.payload,
            )  # fmt: skip
            self._hold(g, seat, entry)
            if p == self.views[g].leader:
                seat.learn(
                    max(accept.N, seat.known), max(accept.commit, seat.commit), accept.stable
                )
                self.stabilized(g, seat)
            self.delivery.look_at(g, seat)

    def on_NUMBER(self, p: ProcessId, packet: Receive) -> None:
        """The number of a frame whose body comes from its sender."""
        number: Number = packet.header  # type: ignore[assignment]
        seat = self.seat_in(packet.group)
        if seat is None:
            return
        seat.expect(number.N)
        g, id = packet.group, (number.origin, number.n)
        body = seat.take_body(id)
        entry = Entry(packet.era, number.N, *id, number.context, number.needs, body or b"")
        if body is not None or seat.got >= number.N:
            self._hold(g, seat, entry)
        else:
            if not seat.await_body(entry):
                self._note_turned_away(g, entry.origin, entry.n)
            seat.known = max(seat.known, number.N)
            self._await_missing(g, seat)
        seat.learn(max(number.N, seat.known), max(number.commit, seat.commit), number.stable)
        self.stabilized(g, seat)
        self.delivery.look_at(g, seat)

    def keep_body(self, g: GroupId, p: ProcessId, n: int, m: bytes) -> None:
        """The body of a frame came from its sender."""
        seat = self.seats.get(g)
        if seat is None or n <= seat.placed.get(p, 0):
            return
        entry = seat.take_bodyless((p, n))
        if entry is not None:
            full = Entry(entry.era, entry.N, p, n, entry.context, entry.needs, m)
            self._hold(g, seat, full)
            self.delivery.look_at(g, seat)
        else:
            before = seat.turned_away
            seat.await_number((p, n), m)
            if seat.turned_away > before:
                self._note_turned_away(g, p, n)

    def seat_in(self, g: GroupId) -> Seat | None:
        """The seat that a number of the era in force is for, if there is one."""
        seat = self.seats.get(g)
        return seat if seat is not None and seat.stay is Stay.IN else None

    def _hold(self, g: GroupId, seat: Seat, entry: Entry) -> None:
        if seat.bodies or seat.bodyless:
            seat.has_both(entry.origin, entry.n)
        before = seat.turned_away
        if seat.hold(entry):
            witness = self.resilience.is_witness(self.views[g], entry.origin)
            self.owe(g, seat, 1, at_once=witness)
        elif seat.turned_away > before:
            self._note_turned_away(g, entry.origin, entry.n)
            self._await_missing(g, seat)
        if seat.got < seat.known and self.options.lossy:
            self._await_missing(g, seat)

    def _note_turned_away(self, g: GroupId, p: ProcessId, n: int) -> None:
        """An honest sequencer may be far ahead of a gap: nobody is at fault."""
        self.note("drop", g, p, n, "too much waits for what is missing (max_held_bytes)")

    def on_MARKS(self, p: ProcessId, packet: Receive) -> None:
        """COMMIT or STATUS."""
        marks: Marks = packet.header  # type: ignore[assignment]
        seat = self.seat_in(packet.group)
        if seat is not None:
            g = packet.group
            known = (seat.known, seat.commit, seat.stable)
            seat.learn(marks.N, marks.commit, marks.stable)
            self.stabilized(g, seat)
            if self.options.lossy and seat.got < seat.known:
                self._await_missing(g, seat)
            elif self.options.lossy and known == (marks.N, marks.commit, marks.stable):
                self._report_again(g, seat)
            self.delivery.look_at(g, seat)

    def stabilized(self, g: GroupId, seat: Seat) -> None:
        """Own frames that all have consumed give the application room."""
        n = seat.own_stable()
        if n:
            self.sender.consumed(g, n)

    # -- beside the sequencer, or the sender, of the same process ---------------------------------

    def numbered_here(self, g: GroupId, entry: Entry, commit: int, stable: int) -> None:
        """A frame of a group that this process is in got its number."""
        seat = self.seats[g]
        seat.hold(entry)
        seat.learn(entry.N, commit, stable)
        self.delivery.look_at(g, seat)

    def marked_here(self, g: GroupId, N: int, commit: int, stable: int) -> None:
        """More may be delivered, or forgotten."""
        seat = self.seats[g]
        seat.learn(N, commit, stable)
        self.stabilized(g, seat)
        self.delivery.look_at(g, seat)

    def kept(self, g: GroupId) -> Mapping[int, Entry]:
        """Frames that others may lack, by number."""
        return self.seats[g].kept if g in self.seats else {}

    def has_passed(self, h: GroupId, place: Place) -> bool:
        """Have all members of h consumed what is at this place? One who has consumed anything of a
        later era has."""
        seat = self.seat_in(h)
        if seat is None or seat.stable <= seat.base:
            return False
        return place <= (seat.era, seat.stable)

    # -- what is missing here ---------------------------------------------------------------------

    def _await_missing(self, g: GroupId, seat: Seat) -> None:
        """What is known now, and still missing when the timer ends, is fetched."""
        if (g, "gap") not in self.timers.running:
            waits = self.timers.waits(g)
            waits.horizon = seat.known
            self.timers.start(g, "gap", waits.fetches.wait)

    def _fetch_late(self, g: GroupId, seat: Seat) -> None:
        missing = seat.missing()
        if missing is not None and missing[0] > self.timers.waits(g).horizon:
            self._await_missing(g, seat)  # it may be on its way
        else:
            self._fetch(g, seat)

    def fetch_to_end(self, g: GroupId, seat: Seat) -> None:
        """In a change: another is asked now, who has all of the era."""
        self.timers.waits(g).fetched = -1
        self._fetch(g, seat)

    # a number is missing at p: FETCH(first, last) to the sequencer; in a change, to who holds it
    def _fetch(self, g: GroupId, seat: Seat) -> None:
        """FETCH-MSGS for the first gap."""
        missing = seat.missing()
        if missing is None or seat.stay is not Stay.IN:
            return
        view = self.views[g]
        first, last = missing
        last = min(last, first + self.options.fetch_batch - 1)
        source = view.leader if seat.source is None else seat.source
        if source == self.me:
            return
        self.timers.waits(g).fetches_again(seat.got)
        self.note("nack", g, source, first, f"numbers {first} to {last}")
        self.out.transmits.append(((source,), g, view.era, Fetch(first, last), b""))
        self._await_missing(g, seat)

    # -- acknowledgements -------------------------------------------------------------------------

    def consumed(self, g: GroupId, frames: int) -> None:
        """The application took so many more deliveries."""
        seat = self.seats.get(g)
        if seat is not None and self.options.driver_consumes:
            seat.taken = min(seat.taken + frames, max(seat.at[1], seat.stable))
            self.owe(g, seat, frames)

    def owe(self, g: GroupId, seat: Seat, frames: int, *, at_once: bool = False) -> None:
        """So many numbers more are to be acknowledged, soon or at once."""
        seat.owed += frames
        if at_once or seat.owed >= self.options.ack_every:
            self._acknowledge(g, seat)
        else:
            self.timers.start(g, "ack", self.options.ack_delay_ms)

    def _acknowledge(self, g: GroupId, seat: Seat) -> None:
        if seat.stay is not Stay.IN:
            return
        seat.owed = 0
        done = min(self._done(seat), seat.got)
        if (seat.got, done) != seat.told:
            seat.told = (seat.got, done)
            self._report(g, seat)

    def _report(self, g: GroupId, seat: Seat) -> None:
        leader, ack = self.views[g].leader, Ack(*seat.told)
        if leader == self.me:
            self.sequencer.acknowledged(self.me, g, ack)
            return
        self.out.send_word(leader, g, seat.era, ack)
        if self.options.lossy:
            self._await_stability(g, seat)

    def _report_again(self, g: GroupId, seat: Seat) -> None:
        """The sequencer says nothing new: it lacks our report, unless that is under way. What we
        reported is stable only if it came: then we are silent, or the two would go on for ever."""
        stable_is_less = seat.stable < seat.told[1] or seat.told[1] == seat.base
        begun = seat.told[1] >= seat.base
        if (g, "repeat") not in self.timers.running and begun and stable_is_less:
            self._report(g, seat)

    def _await_stability(self, g: GroupId, seat: Seat) -> None:
        """If nothing new is heard after a while, the last report, or the answer, may be lost."""
        if (g, "repeat") not in self.timers.running:
            waits = self.timers.waits(g)
            waits.standing = (seat.era, seat.commit, seat.stable)
            self.timers.start(g, "repeat", waits.reports.wait)

    def _repeat_report(self, g: GroupId, seat: Seat) -> None:
        waits = self.timers.waits(g)
        if not seat.kept or seat.stay is not Stay.IN:
            waits.reports.answered()
        elif waits.is_report_lost((seat.era, seat.commit, seat.stable)):
            self._report(g, seat)
        else:
            self._await_stability(g, seat)

    def _done(self, seat: Seat) -> int:
        """The number up to which this member needs nothing any more."""
        if seat.at[0] != seat.era:
            return seat.base - 1  # it has not begun the era
        delivered = max(seat.at[1], seat.stable)
        if not self.options.driver_consumes:
            return delivered
        return min(max(seat.taken, seat.stable), delivered)

    def on_timer(self, g: GroupId, name: str) -> None:
        """A timer of a member rang."""
        seat = self.seats.get(g)
        if seat is None:
            return
        if name == "ack":
            self._acknowledge(g, seat)
        elif name == "repeat":
            self._repeat_report(g, seat)
        elif name == "gap":
            self._fetch_late(g, seat)

    # -- stays ------------------------------------------------------------------------------------

    def open_seat(self, g: GroupId, era: int) -> Seat:
        """A change lets this process in, with this era: it waits for all that comes before."""
        seat = self.seats[g] = Seat(
            Stay.JOINING, (era - 1, END), self.options.max_held, self.options.max_held_bytes
        )  # fmt: skip
        return seat

    def close_seat(self, g: GroupId) -> None:
        """It came to nothing. Frames that name an era of g need not wait for this seat."""
        del self.seats[g]
        self.delivery.release(g)

    def leave(self, g: GroupId) -> None:
        """The last view of a stay was delivered."""
        del self.seats[g]
        self.member_of.discard(g)

    def check(self) -> None:
        """What must always hold of a member."""
        for g, view in self.views.items():
            seat = self.seats.get(g)
            if seat is None:
                assert self.me not in view.members, "a member has a seat"
                continue
            seat.check()
            inside = seat.stay is Stay.IN
            assert not inside or seat.era == view.era, "a seat is of the era in force"
            assert inside == (self.me in view.members), "in iff the view says so"
        stays = {g for g, seat in self.seats.items() if seat.stay is Stay.IN}
        assert self.member_of >= stays, "a member"
