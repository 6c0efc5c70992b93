"""A machine under observation: what comes in, what it remarks, what it holds back and why.

    receive   a packet, with its header bytes; with its messages where the machine delivered them
              or holds them now
    hold      a frame begins to wait, waits for something else, or waits no longer
    drop, retransmit, nack, null, ...   as the machine remarked

A driver that records at protocol level steps its machine through a `Watch`. It asks the machine
after every step what it holds, which takes time for every frame that waits: it is made for looking
into things, not for speed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

import msgspec

from ordercast.core.events import Cut, Event, Flush, Multicast, Receive, Timer, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.output import Note, Output
from ordercast.core.waiting import Awaited, Waiting, WaitingFrame
from ordercast.trace.holds import (
    UNKNOWN,
    FrameId,
    HoldNote,
    MessageRun,
    Names,
    WaitsFor,
    encode_note,
    in_words,
    joined,
    message_id,
    named,
)

MOST_KNOWN = 16_384  # frames of a group whose messages are remembered, for later remarks on them

Key = tuple[GroupId, ProcessId, int | bytes]


class Observed(msgspec.Struct, frozen=True):
    """One record of a trace: messages first..first+count-1 of `sender`, or none in particular."""

    kind: str
    group: str
    sender: str
    first: int
    count: int
    note: str
    overhead: int = 0  # header bytes, of a packet


class Machine(Protocol):
    """A stack, as it is watched."""

    def step(self, events: Iterable[Event]) -> Output: ...
    def held_back(self) -> list[Waiting]: ...
    def view(self, g: GroupId) -> View | None: ...


class Watch:
    """Steps a machine, and records what there is to see."""

    def __init__(
        self,
        machine: Machine,
        names: Names,
        record: Callable[[Observed], None],
        overhead: Callable[[Receive], int] = lambda _: 0,
    ) -> None:
        self.machine = machine
        self.names = names
        self.record = record
        self.overhead = overhead  # header bytes of a packet that came; asked once; 0: not known
        self.held: dict[Key, Waiting] = {}  # after the last step
        self.known: dict[GroupId, dict[tuple[ProcessId, int], MessageRun]] = {}
        self.eras: dict[GroupId, int] = {}  # to which the numbers in `known` belong

    def step(self, events: Iterable[Event]) -> Output:
        """One step of the machine. What it shows is recorded before its effects are."""
        events = tuple(events)
        out = self.machine.step(events)
        held = by_key(self.machine.held_back())
        self._learn(out, held.values())
        senders = _senders(out, held.values())
        for event in events:
            if isinstance(event, Receive):
                self._received(event, senders.get(id(event.payload)))
        for note in out.notes:
            self._remarked(note)
        causes = (self._cause(event, senders) for event in events)
        self._held(held, out, " and ".join(causes))
        return out

    # -- which messages a frame has ---------------------------------------------------------------

    def _learn(self, out: Output, held: Iterable[Waiting]) -> None:
        frames = {(w.group, w.sender, w.n): w.payload for w in held if w.n and w.payload}
        for delivery in out.deliveries:
            if not isinstance(delivery, View):
                g, sender, n, _, payload = delivery
                frames[g, sender, n] = payload
        groups = sorted({g for g, _, _ in frames})
        going_on = {g for g in groups if self._is_of_the_same_era(g)}
        for (g, sender, n), payload in frames.items():
            if g in going_on:
                known = self.known.setdefault(g, {})
                known[sender, n] = self.names.messages(payload)
                if len(known) > MOST_KNOWN:
                    del known[next(iter(known))]

    def _lookup(self, frame: FrameId) -> MessageRun:
        g, sender, n = frame
        return self.known.get(g, {}).get((sender, n), UNKNOWN)

    def _is_of_the_same_era(self, g: GroupId) -> bool:
        # Frames are counted anew in each era. In the step that begins one, both counts occur.
        view = self.machine.view(g)
        era = 0 if view is None else view.era
        if self.eras.get(g) == era:
            return True
        self.eras[g] = era
        self.known.pop(g, None)
        return False

    # -- rows -------------------------------------------------------------------------------------

    def _received(self, packet: Receive, sender: ProcessId | None) -> None:
        first, count = UNKNOWN
        if sender is not None:
            first, count = self.names.messages(packet.payload)
        named_sender = self.names.process(packet.src if sender is None else sender)
        group = self.names.group(packet.group)
        note, overhead = self._packet(packet), self.overhead(packet)
        self.record(Observed("receive", group, named_sender, first, count, note, overhead))

    def _remarked(self, note: Note) -> None:
        kind, g, sender, n, remark = note
        first, count = UNKNOWN if kind == "null" else self._lookup((g, sender, n))
        frame = f"{'block' if kind == 'null' else 'frame'} {n}" if n else ""
        text = ": ".join(part for part in (frame, remark) if part)
        process, group = self.names.process(sender), self.names.group(g)
        self.record(Observed(kind, group, process, first, count, text))

    def _held(self, held: dict[Key, Waiting], out: Output, by: str) -> None:
        before, self.held = self.held, held
        delivered = _Delivered(out, self.names)
        bodies = {(w.group, w.sender, w.n): key for key, w in held.items() if w.n}
        begun = dict(held)
        for key, old in before.items():
            if key not in held and not old.payload:  # its body may have come
                key = bodies.get((old.group, old.sender, old.n), key)
            now = begun.pop(key, None)
            if now is None or now.awaits != old.awaits:
                self._changed(old, now, delivered, by)
        for waiting in begun.values():
            self._row(waiting, HoldNote(waiting.n, self._awaits(waiting), by=by))

    def _changed(self, old: Waiting, now: Waiting | None, delivered: _Delivered, by: str) -> None:
        awaits = () if now is None else now.awaits
        gone = tuple(delivered.named(a) for a in old.awaits if a not in awaits)
        if now is not None:
            self._row(now, HoldNote(now.n, self._awaits(now), gone, by))
        else:
            old = delivered.with_body(old)
            self._row(old, HoldNote(old.n, (), gone, by, delivered=delivered.has(old)))

    def _awaits(self, waiting: Waiting) -> tuple[WaitsFor, ...]:
        return tuple(named(a, self.names, self._lookup) for a in waiting.awaits)

    def _row(self, waiting: Waiting, note: HoldNote) -> None:
        first, count = self.names.messages(waiting.payload) if waiting.payload else UNKNOWN
        sender, group = self.names.process(waiting.sender), self.names.group(waiting.group)
        note = msgspec.structs.replace(note, text=_words(note))
        self.record(Observed("hold", group, sender, first, count, encode_note(note)))

    def _packet(self, packet: Receive) -> str:
        header = getattr(packet.header, "header", packet.header)  # what a link carries
        return f"{type(header).__name__} from {self.names.process(packet.src)}"

    def _cause(self, event: Event, senders: dict[int, ProcessId]) -> str:
        if isinstance(event, Receive):
            sender = senders.get(id(event.payload))
            if sender is None:
                return self._packet(event)
            first, count = self.names.messages(event.payload)
            group = self.names.group(event.group)
            message = message_id(self.names.process(sender), group, first)
            return f"{self._packet(event)} with {in_words(message, count)}"
        if isinstance(event, Timer):
            return f"timer {event.name}"
        if isinstance(event, Multicast):
            return "a multicast from here"
        return "a view change" if isinstance(event, View | Flush | Cut) else type(event).__name__


class _Delivered:
    """What one step delivered: by frame, by the sequencer's number, by payload."""

    def __init__(self, out: Output, names: Names) -> None:
        self.names = names
        self.frames: dict[FrameId, bytes] = {}
        self.numbers: dict[tuple[GroupId, int], FrameId] = {}
        self.payloads: set[tuple[GroupId, ProcessId, bytes]] = set()
        for delivery in out.deliveries:
            if not isinstance(delivery, View):
                g, sender, n, seq, payload = delivery
                self.frames[g, sender, n] = payload
                self.numbers[g, seq] = (g, sender, n)
                self.payloads.add((g, sender, payload))

    def with_body(self, waiting: Waiting) -> Waiting:
        """The same with the body that came just now, if one did."""
        frame = (waiting.group, waiting.sender, waiting.n)
        if waiting.payload or frame not in self.frames:
            return waiting
        return msgspec.structs.replace(waiting, payload=self.frames[frame])

    def has(self, waiting: Waiting) -> bool:
        """Is it among them?"""
        return (waiting.group, waiting.sender, waiting.payload) in self.payloads

    def named(self, awaited: Awaited) -> WaitsFor:
        """With the messages that came in its place, if some were delivered."""
        thing = named(awaited, self.names, self._messages)
        frame = self.numbers.get((awaited.group, awaited.number))
        if awaited.what != "number" or frame is None:
            return thing
        first, count = self._messages(frame)
        message = message_id(self.names.process(frame[1]), thing.group, first)
        return msgspec.structs.replace(thing, message=message, count=count)

    def _messages(self, frame: FrameId) -> MessageRun:
        return self.names.messages(self.frames[frame]) if frame in self.frames else UNKNOWN


def by_key(held: Iterable[Waiting]) -> dict[Key, Waiting]:
    """Each frame once. Numbers of frames restart in each era; what a payload says does not."""
    found: dict[Key, Waiting] = {}
    for waiting in held:
        key = (waiting.group, waiting.sender, waiting.payload or waiting.n)
        if waiting.n or key not in found:  # a copy that nobody has looked at tells less
            found[key] = waiting
    return found


def keys_of(frames: Iterable[WaitingFrame]) -> Iterator[Key]:
    """As in `by_key`, where nobody asks what they wait for."""
    return ((g, sender, payload or n) for g, sender, n, payload in frames)


def _senders(out: Output, held: Iterable[Waiting]) -> dict[int, ProcessId]:
    """By the identity of the payload: a packet does not say whose frame it brings."""
    senders = {id(waiting.payload): waiting.sender for waiting in held if waiting.payload}
    for delivery in out.deliveries:
        if not isinstance(delivery, View):
            senders[id(delivery[4])] = delivery[1]
    return senders


def _words(note: HoldNote) -> str:
    ended = f"{note.by} ended its wait for {joined(note.gone)}" if note.gone else ""
    if note.awaits:
        return "; ".join(filter(None, (f"waits for {joined(note.awaits)}", ended)))
    if note.delivered:
        return f"{ended or note.by}: delivered"
    return f"{ended or note.by}: not held back any more, and not delivered"
