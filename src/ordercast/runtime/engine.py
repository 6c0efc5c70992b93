"""Drives the stack: packets and timers in, packets, deliveries and timers out.

Effects are carried out in the order that `ordercast.core.output` prescribes. An effect may call
for another step (a broken peer must be excluded); such events wait until the effects of the
running step are done.

A packet may bring out an error in a machine. That ends the connection of its sender, not this node:
the effects of what was handled before it are carried out, and the sender is blamed (see decision
19). The same holds for all that follows from it: a timer that it armed, a step that its effects
call for, the loss of its connection. What this node does by itself, and what its application asks
for, fails loudly: its driver is told that this machine is not to be used any more.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from operator import length_hint
from typing import Protocol

import msgspec

from ordercast.core.events import Event, Multicast, Receive, Timer, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.output import Delivery, Output
from ordercast.errors import FrameError, NodeOut, PeerError
from ordercast.membership.agreement_headers import Heartbeat
from ordercast.membership.news import Installed, News
from ordercast.membership.node_view import NodeView
from ordercast.process.commands import Command
from ordercast.process.headers import CLUSTER_HEADERS, headers_of
from ordercast.process.process import CLUSTER_GROUP, Process
from ordercast.reliability.link import LINK_GROUP, LinkAck, Linked
from ordercast.runtime.held_back import Ages
from ordercast.runtime.hold_back_quota import LARGE, HoldBackQuota
from ordercast.trace.brought import Brought
from ordercast.trace.holds import Names
from ordercast.trace.watch import Observed, Watch
from ordercast.views.flush import FLUSH_HEADERS
from ordercast.views.groups import GroupEntry
from ordercast.wire.codec import ChannelCodec
from ordercast.wire.control import CLUSTER_CHANNEL, CONTROL_CHANNEL, LINK_CHANNEL
from ordercast.wire.frame import FIXED_SIZE, Frame

MAX_HELD_BYTES = 256 << 20  # held back of what one peer brought
MAX_LEFT = 4096  # groups that this node has left last, whose late packets can be read
MAX_UNUSED = 256  # groups that others opened here and that are closed, before they are looked for

Headers = tuple[type[msgspec.Struct], ...]
Caused = tuple[ProcessId | None, Sequence[Event | Command]]  # events, and which peer is behind them

LINKS = ChannelCodec((LinkAck,))  # what travels on LINK_CHANNEL
CLUSTER = ChannelCodec(CLUSTER_HEADERS)  # ... and on CLUSTER_CHANNEL


@lru_cache(maxsize=256)
def _codec(headers: Headers) -> ChannelCodec:
    return ChannelCodec(headers)


def _content(header: msgspec.Struct, payload: bytes) -> Hashable:
    """What a packet shares with its repeats alone: the kind of its header, and the very payload.

    Marks in the header may have moved on since. A machine keeps the payload of what it may repeat.
    """
    kind = type(header.header if isinstance(header, Linked) else header)
    return (kind, id(payload)) if payload else None


def _may_be_held(packet: Receive) -> bool:
    """Is it a frame of a group? What views need is bounded by what their members may keep."""
    return packet.group != CLUSTER_GROUP and type(packet.header) not in FLUSH_HEADERS


class Driver(Protocol):
    """Where the effects go."""

    def transmit(self, to: tuple[ProcessId, ...], packet: bytes, content: Hashable) -> None:
        """Send a packet to each of these nodes; equal contents tell a repeat."""

    def transmit_wide(self, to: tuple[ProcessId, ...], packet: bytes, content: Hashable) -> None:
        """The same from subgroup to subgroup: where that is far, it may wait for more."""

    def transmit_for_cluster(self, to: tuple[ProcessId, ...], packet: bytes) -> None:
        """The same for a packet of the cluster, which must not be lost on the way."""

    def meet(self, view: NodeView) -> None:
        """These are the nodes of the cluster. What is delivered next may be theirs."""

    def take_news(self, news: News) -> None:
        """How this node stands in the cluster, after all that was delivered before."""

    def deliver(self, delivery: Delivery) -> None:
        """A frame, in its place."""

    def install(self, view: View) -> None:
        """A view, in its place."""

    def stable(self, group: GroupId, frames: int) -> None:
        """So many frames of this node have been consumed by all."""

    def ordered(self, group: GroupId, frames: int) -> None:
        """So many frames that this node sent as a guest have their place."""

    def guest(self, group: GroupId, is_guest: bool) -> None:
        """This node is a guest of the group from now on, or no longer."""

    def fault(self, peer: ProcessId, reason: str) -> None:
        """A node broke the protocol."""

    def closed(self, group: GroupId) -> None:
        """This node is out of the group, and no view of it can come any more."""

    def conflict(self, group: GroupId, origin: ProcessId, n: int, relay: ProcessId) -> None:
        """These two have said different things of a frame."""

    def blame(self, peer: ProcessId, kind: str, error: Exception) -> None:
        """A packet of that node, of this kind, could not be handled."""

    def broken(self, error: Exception) -> BaseException:
        """A step failed half-way: a bug in Ordercast. There must be no other step. Returns the
        error to raise."""


class Effects:
    """The columns of an `Output` on their way to the driver: one that raised is not tried again."""

    __slots__ = (
        "conflicts", "deliveries", "faults", "guest", "met", "news", "notes", "ordered", "stable",
        "timers", "transmits",
    )  # fmt: skip

    def __init__(self, out: Output) -> None:
        self.transmits = iter(out.transmits)
        self.met = iter(out.news)
        self.deliveries = iter(out.deliveries)
        self.timers = iter(out.timers)
        self.stable = iter(out.stable)
        self.ordered = iter(out.ordered)
        self.guest = iter(out.guest)
        self.faults = iter(out.faults)
        self.conflicts = iter(out.conflicts)
        self.notes = iter(out.notes)
        self.news = iter(out.news)


def kind_of(event: Event | Command) -> str:
    """The word for what a peer brought."""
    if isinstance(event, Receive):
        header = event.header
        return type(header.header if isinstance(header, Linked) else header).__name__
    return f"timer {event.name!r}" if isinstance(event, Timer) else type(event).__name__


class Engine:
    """The machine of one node, with its timers and channels."""

    def __init__(
        self, stack: Process, driver: Driver, max_held_bytes: int = MAX_HELD_BYTES
    ) -> None:
        self.stack = stack
        self.hold_back_quota = HoldBackQuota(max_held_bytes, self.stack.state)
        self.steps = 0
        self.retransmits = 0  # packets sent again
        self.heartbeats = 0  # sent
        self._linked: Headers = () if stack.groups.network == "N2" else (Linked,)
        pages = stack.groups.pages.values()
        self._wide = frozenset(h for page in pages for h in page.wide_headers)
        self._driver = driver
        self._channels: dict[GroupId, ChannelCodec] = {}
        self._left: dict[GroupId, ChannelCodec] = {}  # once open; whoever is late is not at fault
        self._leaving: set[GroupId] = set()  # closed when nothing of them is left to be done
        self._timers: dict[tuple[GroupId, str], asyncio.TimerHandle] = {}
        self._armed_by: dict[tuple[GroupId, str], ProcessId] = {}  # whose packet set the timer
        self._cause: ProcessId | None = None  # whose packet, or timer, is being handled
        self._blamed: set[ProcessId] = set()  # of late: no more of their packets is handled
        self._waiting: deque[Caused] = deque()  # to be stepped when the running step is done
        self._stepping = False
        self._stopped = False
        self._loop = asyncio.get_running_loop()
        self.ages = Ages(self._loop, self.stack.waiting_frames)  # of the frames that wait
        self.brought: Brought | None = None  # header bytes of what is under way, for a trace
        self._watch: Watch | None = None  # at every step, for a trace at protocol level

    # -- groups -----------------------------------------------------------------------------------

    def open(self, entry: GroupEntry) -> None:
        """Packets of the group can be read from now on."""
        self._leaving.discard(entry.gid)
        self.stack.open_group(entry)
        self._channel(entry)

    def _channel(self, entry: GroupEntry) -> ChannelCodec:
        codec = _codec((*headers_of(self.stack.page(entry.protocol)), *self._linked))
        self._left.pop(entry.gid, None)
        if len(self._channels) >= 2 * len(self.stack.groups.machines) + MAX_UNUSED:
            self._close_unused()
        self._channels[entry.gid] = codec
        return codec

    def _close_unused(self) -> None:
        """The stack closes those groups by itself that this node only led. Should more packets of
        one of them come, its channel is opened again for as long as the group has a row."""
        for g in [g for g in self._channels if g not in self.stack.groups.machines]:
            self._close_channel(g)

    def _codec_of(self, g: GroupId) -> ChannelCodec | None:
        """The codec of an open group. The stack itself opens groups that this node is to lead."""
        codec = self._channels.get(g)
        if codec is None and (entry := self.stack.entry_of(g)) is not None:
            codec = self._channel(entry)
        return codec

    def leave(self, g: GroupId) -> None:
        """This node has had its last view of g, or wants none: it is closed as soon as no view of
        it can come any more."""
        self._leaving.add(g)
        if not self._stepping:
            self._close_left()

    def renumbered(self, g: GroupId) -> None:
        """The number that was opened for one group is another one's."""
        if g in self.stack.groups.machines:
            self._channels.pop(g, None)
        else:
            self._close_channel(g)

    def _close_left(self) -> None:
        for g in [g for g in self._leaving if self.stack.may_close(g)]:
            self._leaving.discard(g)
            self.stack.close(g)
            self._driver.closed(g)
            if g not in self.stack.groups.machines:  # else it is numbered here
                self._close_channel(g)

    def _close_channel(self, g: GroupId) -> None:
        """Packets of g that are still on their way are dropped."""
        if g in self._channels:
            self._left[g] = self._channels.pop(g)
            if len(self._left) > MAX_LEFT:
                del self._left[next(iter(self._left))]
        for key in [key for key in self._timers if key[0] == g]:
            self._timers.pop(key).cancel()
            self._armed_by.pop(key, None)

    # -- events in --------------------------------------------------------------------------------

    def multicast(self, g: GroupId, payload: bytes) -> None:
        """Send a frame."""
        self.step([Multicast(g, payload)])

    def receive(
        self, src: ProcessId, frames: list[Frame], on_control: Callable[[Frame], None]
    ) -> None:
        """Take the packets of one read. Control messages keep their place among them."""
        if self.brought is not None:
            self._weigh(self.brought, frames)
        events: list[Event] = []
        channels = self._channels
        for frame in frames:
            channel, tag, era, header, payload = frame
            codec = channels.get(channel)
            if codec is not None:
                events.append(Receive(src, channel, era, codec.decode(tag, header), payload))
            elif channel == CLUSTER_CHANNEL:
                packet = CLUSTER.decode(tag, header)
                events.append(Receive(src, CLUSTER_GROUP, era, packet, payload))
            elif channel == CONTROL_CHANNEL:
                if not self._took(src, events):
                    return
                events = []
                on_control(frame)
            else:
                if not self._took(src, events):  # they may be what opens the group
                    return
                events = self._of_group(src, frame)
        self._took(src, events)

    def _took(self, src: ProcessId, events: list[Event]) -> bool:
        """A step with packets of one peer; False if one could not be handled: hear it no more."""
        if not events:
            return True
        self._blamed.clear()
        for event in events:
            assert isinstance(event, Receive)
            if len(event.payload) >= LARGE and _may_be_held(event):
                self.hold_back_quota.came(src, event.payload)
        self.step(events, src)
        try:
            self.hold_back_quota.check(src)
        except PeerError as fault:
            self._blamed.add(src)
            self._driver.fault(src, str(fault))
        return src not in self._blamed

    def _of_group(self, src: ProcessId, frame: Frame) -> list[Event]:
        """A packet of a group that was not open a moment ago."""
        channel, tag, era, header, payload = frame
        codec = self._codec_of(channel)
        if codec is not None:
            return [Receive(src, channel, era, codec.decode(tag, header), payload)]
        if channel not in self._left and channel > self.stack.top_group:
            raise FrameError(f"a packet of group {channel}, in which this node is not")
        return []

    def receive_datagrams(
        self, src: ProcessId, frames: list[Frame], on_fault: Callable[[str], None]
    ) -> None:
        """Take packets that came without a connection. A bad one is dropped by itself."""
        if self.brought is not None:
            self._weigh(self.brought, frames)
        events: list[Event] = []
        for channel, tag, era, header, payload in frames:
            # A link carries all groups of a pair: what it brings for one that was left counts too.
            codec = self._codec_of(channel) or self._left.get(channel)
            try:
                if codec is not None:
                    events.append(Receive(src, channel, era, codec.decode(tag, header), payload))
                elif channel == LINK_CHANNEL:
                    events.append(Receive(src, LINK_GROUP, era, LINKS.decode(tag, header)))
                else:
                    raise FrameError(f"a packet of group {channel}, in which this node is not")
            except FrameError as fault:
                on_fault(str(fault))
        self._took(src, events)

    @staticmethod
    def _weigh(brought: Brought, frames: list[Frame]) -> None:
        for channel, _, _, header, payload in frames:
            if channel not in (CONTROL_CHANNEL, CLUSTER_CHANNEL):
                brought.came(payload, FIXED_SIZE + len(header))

    def step(self, events: Sequence[Event | Command], cause: ProcessId | None = None) -> None:
        """One step of the stack, and all its effects. `cause` is the peer that brought it about; if
        none is given, the one that is heard just now."""
        if self._stopped:
            return
        if events:
            self._waiting.append((self._cause if cause is None else cause, events))
        if self._stepping:
            return
        self._stepping = True
        try:
            while self._waiting and not self._stopped:
                self._step_once(*self._waiting.popleft())
            if not self._stopped:
                self.ages.wake()
            if self._leaving:
                self._close_left()
        except Exception as error:
            self._waiting.clear()
            outcome = self._driver.broken(error)
            if outcome is error:
                raise
            raise outcome from error
        finally:
            self._stepping = False

    def _step_once(self, cause: ProcessId | None, events: Sequence[Event | Command]) -> None:
        self.steps += 1
        if cause is not None:
            self._step_for(cause, events)
            return
        for out in self._outputs(events):
            self._carry_out(Effects(out))

    @property
    def cause(self) -> ProcessId | None:
        """The peer whose packet, control message or timer is being handled, if there is one."""
        return self._cause

    @contextmanager
    def on_behalf_of(self, peer: ProcessId | None) -> Iterator[None]:
        """All steps in here are brought about by that peer."""
        before, self._cause = self._cause, peer
        try:
            yield
        finally:
            self._cause = before

    def _outputs(self, events: Iterable[Event | Command]) -> Iterator[Output]:
        """The effects of these events; where they are watched, of one after the other."""
        if self._watch is None:
            yield self.stack.step(events)
            return
        for event in events:
            yield self._watch.step((event,))  # type: ignore[arg-type]
            self.ages.saw(self._watch.held)

    # -- what a peer brings about -----------------------------------------------------------------

    def _step_for(self, peer: ProcessId, events: Sequence[Event | Command]) -> None:
        """A step that cannot end this node. What comes after an event that raised is dropped."""
        coming = iter(events)
        before, self._cause = self._cause, peer
        try:
            for out in self._outputs(coming):
                self._carry_out_for(peer, out, events)
        except Exception as error:
            last = events[len(events) - length_hint(coming) - 1]
            self._blame(peer, kind_of(last), error)
            self._carry_out_for(peer, self._salvaged(peer), (last,))
        finally:
            self._cause = before

    def _salvaged(self, peer: ProcessId) -> Output:
        try:
            return self.stack.salvage()
        except Exception as error:  # its conclusion is what raised
            self._blame(peer, "packets", error)
            return self.stack.out

    def _carry_out_for(
        self, peer: ProcessId, out: Output, events: Sequence[Event | Command]
    ) -> None:
        """All effects but those that raise."""
        effects = Effects(out)
        while True:
            try:
                self._carry_out(effects)
                return
            except Exception as error:
                self._blame(peer, ", ".join(dict.fromkeys(map(kind_of, events))), error)

    def _blame(self, peer: ProcessId, kind: str, error: Exception) -> None:
        self._blamed.add(peer)
        self._driver.blame(peer, kind, error)

    def watch(self, names: Names, record: Callable[[Observed], None]) -> None:
        """From now on record what can be seen at every step."""
        self._watch = Watch(self.stack, names, record, self._overhead)

    def _overhead(self, packet: Receive) -> int:
        """Header bytes of a packet, as it was encoded by its sender."""
        g = packet.group
        if g == CLUSTER_GROUP:
            return CLUSTER.overhead(packet.header)
        codec = LINKS if g == LINK_GROUP else self._channels.get(g) or self._left.get(g)
        return 0 if codec is None else codec.overhead(packet.header)

    def stop(self) -> None:
        """No more steps; all timers are cancelled."""
        self._stopped = True
        self.ages.stop()
        for handle in self._timers.values():
            handle.cancel()
        self._timers.clear()
        self._armed_by.clear()

    # -- effects out ------------------------------------------------------------------------------

    def _carry_out(self, effects: Effects) -> None:
        driver = self._driver
        for to, g, era, header, payload in effects.transmits:
            if len(payload) >= LARGE:
                self.hold_back_quota.went(payload)
            codec = self._channels.get(g) or self._codec_of(g)
            if codec is not None:
                transmit = driver.transmit_wide if type(header) in self._wide else driver.transmit
                transmit(to, codec.encode(g, era, header, payload), _content(header, payload))
            elif g == CLUSTER_GROUP:
                if isinstance(header, Heartbeat):
                    self.heartbeats += len(to)
                packet = CLUSTER.encode(CLUSTER_CHANNEL, era, header, payload)
                driver.transmit_for_cluster(to, packet)
            elif self._linked:
                self._transmit_for_link(to, g, era, header, payload)
        for news in effects.met:
            if isinstance(news, Installed):
                driver.meet(news.view)
        for delivery in effects.deliveries:
            if type(delivery) is tuple:
                if len(delivery[4]) >= LARGE:
                    self.hold_back_quota.went(delivery[4])
                driver.deliver(delivery)
            else:
                assert isinstance(delivery, View)
                driver.install(delivery)
        for g, name, delay_ms in effects.timers:
            self._set_timer(g, name, delay_ms)
        for g, frames in effects.stable:
            driver.stable(g, frames)
        for g, frames in effects.ordered:
            driver.ordered(g, frames)
        for g, is_guest in effects.guest:
            driver.guest(g, is_guest)
        for peer, reason in effects.faults:
            driver.fault(peer, reason)
        for conflict in effects.conflicts:
            driver.conflict(*conflict)
        for note in effects.notes:
            if note[0] == "retransmit":
                self.retransmits += 1
        for news in effects.news:
            driver.take_news(news)  # type: ignore[arg-type]

    def _transmit_for_link(
        self,
        to: tuple[ProcessId, ...],
        g: GroupId,
        era: int,
        header: msgspec.Struct,
        payload: bytes,
    ) -> None:
        """A packet of a link, or a repeat for a group that was left, for which the peer waits."""
        if g == LINK_GROUP:
            self._driver.transmit(to, LINKS.encode(LINK_CHANNEL, 0, header, payload), None)
        elif g in self._left:
            packet = self._left[g].encode(g, era, header, payload)
            self._driver.transmit(to, packet, _content(header, payload))

    def _set_timer(self, g: GroupId, name: str, delay_ms: int) -> None:
        running = self._timers.pop((g, name), None)
        if running is not None:
            running.cancel()
        self._armed_by.pop((g, name), None)
        if delay_ms >= 0 and not self._stopped:
            # A tick of the cluster is this node's own, whoever set the first: one that fails must
            # not pass for a peer's fault, since no other follows, and this node would be mute.
            if self._cause is not None and g != CLUSTER_GROUP:
                self._armed_by[g, name] = self._cause
            self._timers[g, name] = self._loop.call_later(delay_ms / 1000, self._fire, g, name)

    def _fire(self, g: GroupId, name: str) -> None:
        del self._timers[g, name]
        peer = self._armed_by.pop((g, name), None)
        with suppress(NodeOut):  # the driver was told, and comes back with another machine
            # Only a node of the view can be excluded, and so end what its timer has left undone.
            self.step([Timer(g, name)], peer if peer in self.stack.in_view else None)
