"""A change at the machine of a protocol whose frames are not known by number.

The pages of such protocols know three things of a change: what they hold (`unstable`), what to
deliver before the next views (`on_flush`, `settle`), and the views themselves (`on_view`). This
stands between a page and the change.

    STOP at p      from now on nothing is sent or delivered in the groups of this machine;
                   what the application says waits
    REPORT         the ids of all frames that are held, no bodies
    PLAN at p      FETCH the bodies that lack, from who has them, a piece at a time. Who has them
                   sends the first of a piece, up to so many bytes; p counts them, too, and asks
                   for the rest in the next piece
    INSTALL at p   one Cut: the unions are delivered in the order of the protocol, the views begin;
                   then what the application said

A packet of an era that was reported is void: what it brings is in the report of a survivor, or
nobody may deliver it any more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import msgspec

from ordercast.core.changing import End, FrameAt, FrameId, FramesEnd, FramesHeld, Held, NextEra
from ordercast.core.events import Cut, Flush, Kept, Multicast, Receive, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import OrderingProtocol
from ordercast.core.state import PlainState
from ordercast.core.uniting import FrameKey
from ordercast.errors import PeerError
from ordercast.views.states import FLUSHES, Flushing, follows

PIECE = 16  # bodies that are asked for at a time, from each holder
PIECE_BYTES = 1024 * 1024  # a piece ends with the body that brings it to this

Wanted = tuple[GroupId, FrameKey]
Stamp = tuple[int, ...]


class FetchFrames(msgspec.Struct, frozen=True, array_like=True):
    """To one that holds them: send me the bodies of these frames."""

    frames: tuple[FrameKey, ...]


class FrameBody(msgspec.Struct, frozen=True, array_like=True):
    """The body of this frame follows."""

    origin: ProcessId
    n: int


FLUSH_HEADERS: tuple[type[msgspec.Struct], ...] = (FetchFrames, FrameBody)


class FrameFlush(PlainState):
    """One machine of page protocols, as changes see it."""

    def __init__(self, protocol: OrderingProtocol) -> None:
        self.protocol = protocol
        self.flushing = Flushing.RUNNING
        self.part: set[GroupId] = set()  # groups in whose view this process has a part
        self.held: dict[GroupId, dict[FrameKey, Kept]] = {}  # of stopped groups: what is here
        self.queued: list[Multicast] = []  # said while the groups are stopped
        self.lacking: dict[ProcessId, dict[Wanted, Stamp]] = {}  # by who holds it
        self.asked: set[Wanted] = set()  # those that are on their way
        self.came: dict[tuple[ProcessId, GroupId], int] = {}  # bytes of the piece, by holder

    @property
    def is_stopped(self) -> bool:
        """Is a change of its groups under way?"""
        return self.flushing is not Flushing.RUNNING

    def _look(self) -> None:
        """The state follows from what is held and lacking."""
        after = self._state_now()
        assert follows(FLUSHES, self.flushing, after), f"{self.flushing.name} to {after.name}"
        self.flushing = after

    def _state_now(self) -> Flushing:
        if not self.held:
            return Flushing.RUNNING
        return Flushing.FETCHING if self.lacking else Flushing.STOPPED

    # -- changes ----------------------------------------------------------------------------------

    def stop(self, groups: Iterable[GroupId]) -> None:
        for g in groups:
            if g in self.part and g not in self.held:
                self.protocol.pause()
                frames = self._frames(self.protocol.views[g])
                stamped = map(self.protocol.stamped, frames)
                self.held[g] = {(kept.origin, kept.n): kept for kept in stamped}
        self._look()

    def _frames(self, view: View) -> tuple[Kept, ...]:
        """What this process has of a group. One that only leads it has something if it numbers."""
        takes_part = self.protocol.me in view.senders
        if takes_part or self.protocol.declaration.sequenced:
            return self.protocol.unstable(view.group)
        return ()

    def stopped(self) -> Iterable[GroupId]:
        return self.held

    def report(self, g: GroupId) -> Held | None:
        protocol, view = self.protocol, self.protocol.views.get(g)
        if view is None or g not in self.held:
            return None
        takes_part = protocol.me in view.senders
        return FramesHeld(
            view.era,
            tuple(FrameId(kept.origin, kept.n, kept.stamp) for kept in self.held[g].values()),
            g in protocol.member_of,
            protocol.report_mark(g) if takes_part else 0,
            protocol.numbers_delivered(g),
            protocol.frames_delivered(g),
        )

    def check_ends(self, nexts: Sequence[NextEra]) -> None:
        for next_era in nexts:
            g, end = next_era.view.group, next_era.end
            if not isinstance(end, FramesEnd):
                raise PeerError("an era ends with a number, where frames have none")
            if g in self.protocol.member_of and end.frames and g not in self.held:
                raise PeerError(f"an era of group {g} ends, which was not stopped here")

    def prepare(self, nexts: Sequence[NextEra]) -> None:
        self.lacking, self.asked, self.came = {}, set(), {}
        for next_era in nexts:
            g, end = next_era.view.group, next_era.end
            assert isinstance(end, FramesEnd)
            if g not in self.protocol.member_of:
                continue
            here = self.held.get(g, {})
            for frame in end.frames:
                key = (frame.origin, frame.n)
                if key not in here or self.protocol.gives_way(g, here[key], frame):
                    self.lacking.setdefault(frame.holder, {})[g, key] = frame.stamp
        for holder in tuple(self.lacking):
            self._fetch(holder)
        self._look()

    def _fetch(self, holder: ProcessId) -> None:
        """The next piece."""
        piece: dict[GroupId, list[FrameKey]] = {}
        for g, key in list(self.lacking[holder])[:PIECE]:
            self.asked.add((g, key))
            piece.setdefault(g, []).append(key)
        for g, keys in piece.items():
            self.came[holder, g] = 0
            self.protocol.send(holder, g, FetchFrames(tuple(keys)))

    def unprepare(self, begun: Collection[GroupId] = ()) -> None:
        self.lacking, self.asked, self.came = {}, set(), {}
        self._look()

    def is_ready(self, g: GroupId, end: End) -> bool:
        return not any(h == g for lacking in self.lacking.values() for h, _ in lacking)

    def change(self, number: int, nexts: Sequence[NextEra]) -> None:
        flushes = [
            Flush(e.view.group, self._union(e.view.group, e.end))
            for e in nexts
            if e.view.group in self.protocol.member_of
        ]
        for next_era in nexts:
            self.held.pop(next_era.view.group, None)
            self._note_part(next_era.view)
        self.lacking, self.asked, self.came = {}, set(), {}
        self._look()
        self.protocol.handle(Cut(tuple(flushes), tuple(e.view for e in nexts)))
        if not self.is_stopped:
            self.protocol.resume()
            queued, self.queued = self.queued, []
            for multicast in queued:
                self.protocol.handle(multicast)

    def _note_part(self, view: View) -> None:
        if self.protocol.me in view.peers:
            self.part.add(view.group)
        else:
            self.part.discard(view.group)

    def _union(self, g: GroupId, end: End) -> tuple[Kept, ...]:
        assert isinstance(end, FramesEnd)
        here = self.held.get(g, {})
        keys = ((frame, (frame.origin, frame.n)) for frame in end.frames)
        return tuple(
            Kept(frame.origin, frame.n, frame.stamp, here[key].payload)
            for frame, key in keys
            if key in here
        )

    def forget(self, g: GroupId) -> None:
        """The group was closed here."""
        self.part.discard(g)
        self.held.pop(g, None)
        self.queued = [multicast for multicast in self.queued if multicast.group != g]
        for lacking in self.lacking.values():
            for wanted in [wanted for wanted in lacking if wanted[0] == g]:
                del lacking[wanted]
        self.lacking = {p: lacking for p, lacking in self.lacking.items() if lacking}
        self._look()

    # -- packets ----------------------------------------------------------------------------------

    def receive(self, packet: Receive) -> None:
        """A body is asked for, or one came."""
        view = self.protocol.views.get(packet.group)
        if view is None or packet.era != view.era:
            return  # of an era that is over
        if packet.src not in view.peers:
            raise PeerError(f"{type(packet.header).__name__} comes from those in the group only")
        if packet.group not in self.held:
            return  # of an attempt that is over
        if isinstance(packet.header, FetchFrames):
            self._serve(packet.src, packet.group, packet.header)
        else:
            assert isinstance(packet.header, FrameBody)
            self._take(packet.src, packet.group, packet.header, packet.payload)

    def _serve(self, p: ProcessId, g: GroupId, fetch: FetchFrames) -> None:
        here = self.held[g]
        if len(fetch.frames) > PIECE:
            raise PeerError(f"{len(fetch.frames)} frames of group {g} are asked for at a time")
        sent = 0
        for key in fetch.frames:
            if key not in here:
                raise PeerError(f"frame {key[1]} of process {key[0]} was never reported here")
            if sent >= PIECE_BYTES:
                return  # p has counted them, too, and asks for the rest
            self.protocol.send(p, g, FrameBody(*key), here[key].payload)
            sent += len(here[key].payload)

    def _take(self, p: ProcessId, g: GroupId, body: FrameBody, payload: bytes) -> None:
        key = (body.origin, body.n)
        lacking = self.lacking.get(p, {})
        if (g, key) not in self.asked or (g, key) not in lacking:
            return  # of an attempt that is over
        stamp = lacking[g, key]
        kept = Kept(body.origin, body.n, stamp, payload)
        if self.protocol.gives_way(g, self.protocol.stamped(kept), FrameAt(*key, stamp, p)):
            raise PeerError(f"another body than was reported as frame {key[1]} of process {key[0]}")
        self.asked.discard((g, key))
        del lacking[g, key]
        self.held[g][key] = kept
        self.came[p, g] += len(payload)
        if self.came[p, g] >= PIECE_BYTES:  # it sends no more of this piece
            self.asked.difference_update([wanted for wanted in lacking if wanted[0] == g])
        if not lacking:
            del self.lacking[p]
            self._look()
        elif self.asked.isdisjoint(lacking):
            self._fetch(p)

    # -- plain state ------------------------------------------------------------------------------

    def invariants(self) -> None:
        """Checked by simulators and explorers after every step."""
        assert self.flushing is self._state_now(), "the state follows from what is held and lacking"
        assert self.part.issuperset(self.held), "only groups that this process has a part in stop"
        assert not self.lacking or self.held, "only stopped groups lack frames"
        assert not self.queued or self.held, "only what is said while groups are stopped waits"
        self.protocol.invariants()
