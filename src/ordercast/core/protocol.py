"""The base class of every ordering protocol, with the verbs of the pseudo-code.

A protocol is a pure machine: a batch of events in, effects out, no clock, no randomness, no I/O.
A protocol page writes handlers (`on_multicast`, one method per header marked `@on(Header)`,
`on_timer`) in terms of the verbs (`send`, `b_multicast`, `deliver`, `set_timer`), and says what a
view change needs (`on_view`, `unstable`, `on_flush`).

A protocol of scope "group" serves exactly one group; one of scope "domain" serves all groups of
a node that share its order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal, Self, TypeVar

import msgspec

from ordercast.core.changing import End, Ending, FrameAt, FramesEnd, Held, LastFrames, NextEra
from ordercast.core.declaration import Declaration
from ordercast.core.durability import Durability, as_durability
from ordercast.core.events import (
    Consumed,
    Crashed,
    Cut,
    Event,
    Flush,
    Kept,
    Multicast,
    Receive,
    Timer,
    View,
)
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.output import Output
from ordercast.core.state import PlainState
from ordercast.core.uniting import unite
from ordercast.core.waiting import Holdings, Waiting, WaitingFrame
from ordercast.core.whereabouts import Subgroups, Whereabouts
from ordercast.errors import PeerError

F = TypeVar("F", bound=Callable[..., None])

DeliveryLevel = Literal["causal", "preack", "ack"]
"""delivered in causal order; once all have accepted it; once all know that all have"""

Together = Literal["strong", "weak", "none"]  # groups that share two members; one; no matter


class Options(msgspec.Struct, frozen=True):
    """The limits and delays of a protocol. Every one is a named option of a node."""

    max_held: int = 65_536  # frames held back, or kept for a view not installed yet
    max_held_bytes: int = 256 * 1024 * 1024  # ... with what they name, where that can be much
    ack_every: int = 16  # acknowledge after so many frames ...
    ack_delay_ms: int = 5  # ... or so long after the first
    status_ms: int = 50  # an idle sender or sequencer repeats its marks after this
    retry_ms: int = 200  # a request without an answer is repeated after this
    gap_ms: int = 200  # a number that is missing here is asked for after this
    fetch_batch: int = 256  # numbers asked for in one FETCH
    resend_window: int = 32  # missing numbers that are asked for at a time, one by one
    lossy: bool = True  # the network may lose packets: what has no answer is sent again
    driver_consumes: bool = False  # credit follows `Consumed` events, not deliveries
    resilience: int | None = None  # crashes that a delivered message survives; None: not asked for
    uniform: bool = False  # as many crashes as leave more than half of its group
    silence_ms: int = 20  # a member that owes the others a word speaks after this
    hearsay: bool = True  # false, to compare: nothing heard of the groups of others is passed on
    bodies_apart: bool = False  # senders bring bodies to the members, sequencers only numbers
    delivery_level: DeliveryLevel = "causal"  # of two_layered; the same at all members

    def __post_init__(self) -> None:
        self.durability  # noqa: B018  a wrong resilience is refused now

    @property
    def durability(self) -> Durability:
        """Of groups for which nothing else was said."""
        return as_durability(self.resilience, uniform=self.uniform)


class Tally(msgspec.Struct, frozen=True):
    """What a sequencer has done."""

    numbered: int = 0  # frames
    taken_over: int = 0  # groups that another numbered before
    handed_on: int = 0  # groups that another numbers now


def on(header: type[msgspec.Struct]) -> Callable[[F], F]:
    """Mark a method as the handler of packets with this header."""

    def mark(method: F) -> F:
        method.handles = header  # type: ignore[attr-defined]
        return method

    return mark


class OrderingProtocol(PlainState, ABC):
    """One protocol at one process."""

    declaration: ClassVar[Declaration]
    headers: ClassVar[tuple[type[msgspec.Struct], ...]]  # all that may stand before its payloads
    handlers: ClassVar[dict[type, Callable[..., None]]]
    linked_headers: ClassVar[tuple[type[msgspec.Struct], ...]] = ()  # may not be lost
    together: ClassVar[Together | None] = None  # several sequencers; which groups must share one
    copies_frames: ClassVar[bool] = False  # a frame must be at two nodes before others name it
    hears_of_crashes: ClassVar[bool] = False  # it goes on by itself when a process has stopped
    origins_answer: ClassVar[bool] = False  # an origin keeps its frame until all have delivered it
    has_subgroups: ClassVar[bool] = False  # it matters where the members are
    wide_headers: ClassVar[tuple[type[msgspec.Struct], ...]] = ()  # to other sites, and may wait
    header_version: ClassVar[int] = 5  # raised when a header is added, removed or changed

    def __init_subclass__(cls) -> None:
        cls.handlers = dict(getattr(cls, "handlers", {}))
        for method in vars(cls).values():
            header = getattr(method, "handles", None)
            if header is not None:
                cls.handlers[header] = method
        cls.headers = tuple(sorted(cls.handlers, key=lambda header: header.__name__))

    def __init__(self, me: ProcessId, options: Options | None = None) -> None:
        self.me = me
        self.options = options or Options()
        self.views: dict[GroupId, View] = {}  # the view in force, per group
        self.others: dict[GroupId, tuple[ProcessId, ...]] = {}  # members without me, view order
        self.member_of: set[GroupId] = set()  # groups whose messages are delivered here
        self.early: list[Receive] = []  # packets of eras not begun here, as they came
        self.out = Output()

    # -- the one door ---------------------------------------------------------------------------

    def step(self, events: Iterable[Event]) -> Output:
        """Take a batch of events; return what must be done, valid until the next step."""
        self.out.clear()
        for event in events:
            self.handle(event)
        return self.out

    def handle(self, event: Event) -> None:
        """One event; its effects go to `self.out`. A peer's mistake becomes a fault there."""
        kind = type(event)
        if kind is Receive:
            self.receive(event)  # type: ignore[arg-type]
        elif kind is Multicast:
            self._multicast(event)  # type: ignore[arg-type]
        elif kind is Timer:
            self.on_timer(event.group, event.name)  # type: ignore[union-attr]
        elif kind is Consumed:
            self.on_consumed(event.group, event.frames)  # type: ignore[union-attr]
        elif kind is Crashed:
            if event.group in self.views:  # type: ignore[union-attr]
                self.on_crash(event.group, event.process)  # type: ignore[union-attr]
        elif kind is View:
            self.install(event)  # type: ignore[arg-type]
        elif kind is Flush:
            self.on_flush(event.group, event.union)  # type: ignore[union-attr]
        else:
            assert kind is Cut, f"no machine knows the event {event!r}"
            self.cut(event)  # type: ignore[arg-type]

    def _multicast(self, multicast: Multicast) -> None:
        view = self.views.get(multicast.group)
        if view is not None and self.me in view.senders:
            self.on_multicast(multicast.group, multicast.payload)
        else:  # asked for a moment before its last view came
            self.note("drop", multicast.group, self.me, 0, "not a member")

    def receive(self, packet: Receive) -> None:
        """A packet. It meets its handler only in the era and the view that it belongs to."""
        group = packet.group
        view = self.views.get(group)
        if view is None or packet.era != view.era:
            self._keep_if_early(packet)
            return
        handler = self.handlers.get(type(packet.header))
        try:
            if handler is None:
                raise PeerError(f"{type(packet.header).__name__} is no header of this protocol")
            if packet.src not in view.peers:
                self.note("drop", group, packet.src, 0, "sender not in the view")
                return
            handler(self, packet.src, group, packet.header, packet.payload)
        except PeerError as fault:
            self.out.faults.append((packet.src, str(fault)))

    def _keep_if_early(self, packet: Receive) -> None:
        # A packet of an older era is void: whatever it brought was settled by the flush.
        # One of a newer era overtook the view that begins it.
        if packet.group in self.views and packet.era < self.views[packet.group].era:
            self.note("drop", packet.group, packet.src, 0, "older era")
            return
        if len(self.early) >= self.options.max_held:
            # Whoever comes last need not be the one that filled it: an era that never begins is
            # easily named, and an honest process would be blamed for its first packet.
            most, _ = Counter(packet.src for packet in self.early).most_common(1)[0]
            reason = f"more than {self.options.max_held} packets of a view not installed here"
            self.out.faults.append((most, reason))
            if most == packet.src:
                return
            self.early = [packet for packet in self.early if packet.src != most]
        self.early.append(packet)

    # -- views ----------------------------------------------------------------------------------

    def install(self, view: View) -> None:
        """A view begins. Take what came too early for it."""
        self.put_in_force(view)
        self.take_early((view.group,))

    def cut(self, cut: Cut) -> None:
        """The eras of all these groups end, and new ones begin, before any packet is looked at."""
        for flush in cut.flushes:
            self.on_flush(flush.group, flush.union)
        for view in cut.views:
            self.put_in_force(view)
        self.take_early([view.group for view in cut.views])

    def put_in_force(self, view: View) -> None:
        """Remember the view, tell the application, start the numbers."""
        before = self.views.get(view.group)
        if before is None or view.era != before.era:
            self.out.eras.append((len(self.out.deliveries), view))
        self.views[view.group] = view
        self.others[view.group] = tuple(p for p in view.members if p != self.me)
        renewed = before is not None and view.number == before.number  # a new era, the same view
        if (self.me in view.members or view.group in self.member_of) and not renewed:
            self.out.deliveries.append(view)  # to a process that left: its last
        if self.me in view.members:
            self.member_of.add(view.group)
        else:
            self.member_of.discard(view.group)
        was_guest = before is not None and self.me in before.guests
        if was_guest != (self.me in view.guests):
            self.out.guest.append((view.group, not was_guest))
        self.on_view(view)

    def take_early(self, groups: Collection[GroupId]) -> None:
        """The packets that overtook the views: of all these groups in the order they came."""
        if self.early:
            packets, self.early = self.early, []
            for packet in packets:
                if packet.group in groups:
                    self.receive(packet)
                else:
                    self.early.append(packet)

    def forget_group(self, g: GroupId) -> None:
        """The group was closed here, and this machine goes on serving others."""
        raise AssertionError("a machine of scope group serves one group")

    @abstractmethod
    def on_view(self, view: View) -> None:
        """Start the numbers of this view. The first view of a group comes this way too."""

    @abstractmethod
    def unstable(self, g: GroupId) -> tuple[Kept, ...]:
        """Every frame held here, delivered or not, that some member may lack."""

    @abstractmethod
    def on_flush(self, g: GroupId, union: Sequence[Kept]) -> None:
        """Deliver, in this protocol's order, what it can of the union; forget the rest."""

    def report_mark(self, g: GroupId) -> int:
        """What a survivor reports of its numbers; the highest of all is `View.start`."""
        return 0

    def numbers_delivered(self, g: GroupId) -> int:
        """The last number delivered here, where frames are numbered."""
        return 0

    def frames_delivered(self, g: GroupId) -> LastFrames:
        """The last frame delivered here of each origin, if a new leader must know."""
        return ()

    @staticmethod
    def reach(union: Sequence[Kept], lowest: int) -> LastFrames:
        """Where frames are numbered: the last frames of their origins that all survivors deliver,
        if the one furthest behind has delivered all numbers up to `lowest`."""
        return ()

    def plausible(self, g: GroupId, senders: tuple[ProcessId, ...], frame: Kept) -> bool:
        """Can this be an unstable frame of the view of g that has these senders?"""
        return frame.origin in senders

    @staticmethod
    def better(one: Kept, other: Kept) -> Kept:
        """Two survivors report the same frame with different stamps: the one that counts."""
        return one

    @staticmethod
    def attested(frame: Kept, dead: Collection[ProcessId]) -> Kept:
        """At the leader: a frame of the union, once all members but the dead have reported."""
        return frame

    @staticmethod
    def stamped(kept: Kept) -> Kept:
        """A frame held here, as it is reported at the end of an era."""
        return kept

    def gives_way(self, g: GroupId, kept: Kept, end: FrameAt) -> bool:
        """An era ends with a frame that is held here: has it another body, that must be fetched?"""
        return False

    def drop_early(self, gone: Collection[ProcessId]) -> None:
        """These are out of the cluster. Packets of theirs that came too early are of eras that
        others may give to other views: where every side goes on, to a side of its own."""
        self.early = [packet for packet in self.early if packet.src not in gone]

    def gone_for_good(self, p: ProcessId) -> None:
        """p has left all groups and will never come back: forget what is kept of it."""

    def count_holders(self, g: GroupId, durability: int) -> None:
        """So many must hold a frame of g; from now on `held_at` says who does. 0: nobody need."""

    def held_at(self, g: GroupId, p: ProcessId, n: int) -> None:
        """Member p holds our frames in g up to n; where frames are numbered, all numbers up to n.
        It matters where a rule for sending needs it."""

    def locate(self, whereabouts: Mapping[ProcessId, Whereabouts]) -> None:
        """Where the nodes are. It matters where a group has subgroups."""

    def subgroups(self, members: tuple[ProcessId, ...]) -> Subgroups:
        """At the leader: the subgroups of a view with these members, where the protocol has any."""
        return ()

    @classmethod
    def subgroups_of(
        cls, members: tuple[ProcessId, ...], whereabouts: Mapping[ProcessId, Whereabouts]
    ) -> Subgroups:
        """The subgroups of a view with these members, where the protocol has any."""
        return ()

    # -- changes of configuration: see `ordercast.core.changing` ---------------------------------

    def stop(self, groups: Iterable[GroupId]) -> None:
        """A change of these groups is under way: nothing new begins in them."""

    def stopped(self) -> Iterable[GroupId]:
        """Groups that are stopped here."""
        return ()

    def report(self, g: GroupId) -> Held | None:
        """What this process has of the era of g that ends; None: it has no part in it."""
        return None

    @classmethod
    def hangs_on(cls, groups: Mapping[GroupId, Ending]) -> set[GroupId]:
        """At the coordinator: groups whose eras must end in the same change as these, as things
        stand at this moment."""
        return set()

    @classmethod
    def decide(cls, groups: Mapping[GroupId, Ending]) -> dict[GroupId, End]:
        """At the coordinator: where these eras end, from what everybody holds."""
        return dict(unite(cls, groups))

    @classmethod
    def nothing_held(cls) -> End:
        """The end of an era of which this process has nothing."""
        return FramesEnd()

    def check_ends(self, nexts: Sequence[NextEra]) -> None:
        """Can these eras end there, as far as this process knows? A `PeerError` if not."""

    def prepare(self, nexts: Sequence[NextEra]) -> None:
        """A change is planned: fetch what is missing up to the ends."""

    def unprepare(self, begun: Collection[GroupId] = ()) -> None:
        """What was prepared comes to nothing, but for these groups, which begin now."""

    def is_ready(self, g: GroupId, end: End) -> bool:
        """Is everything of g here, up to the end of its era?"""
        return True

    def change(self, number: int, nexts: Sequence[NextEra]) -> None:
        """Eras of groups end, and the next ones begin."""
        raise NotImplementedError

    def invariants(self) -> None:
        """What must always hold, checked by simulators and explorers after every step."""

    def pause(self) -> None:
        """Nothing is sent or delivered any more until the next cut: the report is made."""

    def resume(self) -> None:
        """The cut is over, whether or not this process has a group in it."""

    def on_crash(self, g: GroupId, p: ProcessId) -> None:
        """p of g has stopped. Whoever needs it, and nobody else, waits for the next view."""

    @abstractmethod
    def held_back(self) -> list[Waiting]:
        """Every frame that waits here, and the first things it waits for.

        Called when somebody asks why, and after every step while a trace at protocol level is
        written. It takes time for every frame that waits, whatever they wait for.
        """

    def waiting_frames(self) -> Iterable[WaitingFrame]:
        """The frames of `held_back`, in any order, without the reasons.

        A node asks ten times a second as long as something waits. A page with long reasons gives
        the frames without making them up.
        """
        return [waiting.frame for waiting in self.held_back()]

    def held_up(self) -> Iterable[Waiting]:
        """Every multicast of this process that may not leave yet, and what it waits for."""
        return ()

    def has_delivered(self, g: GroupId, q: ProcessId, n: int) -> bool:
        """Is another copy of frame n of q a repeat? Where frames are not relayed there is none."""
        return False

    def holdings(self, g: GroupId) -> Holdings:
        """How many frames of g are here, and for what reason."""
        held = sum(1 for frame in self.waiting_frames() if frame[0] == g)
        return Holdings(held, len(self.unstable(g)) - held)

    def numbers(self, g: GroupId) -> bool:
        """Is this process the sequencer of g?"""
        return False

    def tally(self) -> Tally:
        """What this process has numbered so far, where one process gives numbers."""
        return Tally()

    def take_load(self) -> Iterable[tuple[GroupId, ProcessId, int]]:
        """Frames that were numbered here since the last call, by group and sender."""
        return ()

    def begin_visit(self, g: GroupId) -> None:
        """This process sends to g as a guest from now on, where guests are in no view."""

    # -- what a protocol page writes ------------------------------------------------------------

    @abstractmethod
    def on_multicast(self, g: GroupId, m: bytes) -> None:
        """The application sends m to g."""

    @abstractmethod
    def on_timer(self, g: GroupId, name: str) -> None:
        """A delay asked for by `set_timer` is over."""

    @abstractmethod
    def on_consumed(self, g: GroupId, frames: int) -> None:
        """The application took `frames` more deliveries: what was consumed may be acknowledged."""

    # -- the verbs ------------------------------------------------------------------------------

    def send(self, p: ProcessId, g: GroupId, header: msgspec.Struct, m: bytes = b"") -> None:
        """send(p, m): one packet to one process."""
        self.out.transmits.append(((p,), g, self.views[g].era, header, m))

    def b_multicast(self, g: GroupId, header: msgspec.Struct, m: bytes = b"") -> None:
        """B-multicast(g, m): one packet to every *other* member. Nobody sends to itself."""
        if others := self.others[g]:
            self.out.transmits.append((others, g, self.views[g].era, header, m))

    def set_timer(self, g: GroupId, name: str, delay_ms: int) -> None:
        """Ask for `on_timer(g, name)` after the delay; a running one of that name is replaced."""
        self.out.timers.append((g, name, delay_ms))

    def note(self, kind: str, g: GroupId, sender: ProcessId, n: int, remark: str = "") -> None:
        """Something worth a line in a trace at protocol level."""
        self.out.notes.append((kind, g, sender, n, remark))

    # -- plain state ----------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """All but the effects of the last step."""
        return {name: value for name, value in self.__dict__.items() if name != "out"}

    def copy(self) -> Self:
        """An independent twin with no effects pending."""
        twin = super().copy()
        twin.out = Output()
        return twin
