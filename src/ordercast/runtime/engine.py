"""Drives the stack: packets and timers in, packets, deliveries and timers out.

Effects are carried out in the order that `ordercast.core.output` prescribes. An effect may call
for another step (a broken peer must be excluded); such events wait until the effects of the
running step are done.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from typing import Protocol

import msgspec

from ordercast.core.events import Event, Multicast, Receive, Timer, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.output import Delivery, Output
from ordercast.errors import FrameError
from ordercast.membership.cluster_headers import CLUSTER_GROUP, CLUSTER_HEADERS, Heartbeat
from ordercast.membership.nodes import GroupEntry, NodeView
from ordercast.membership.standing import Command, Installed, News
from ordercast.reliability.gate import GATE_HEADERS
from ordercast.reliability.link import LINK_GROUP, LinkAck, Linked
from ordercast.runtime.held import Ages
from ordercast.stack.clustered import ClusteredStack
from ordercast.stack.stack import headers_of
from ordercast.trace.brought import Brought
from ordercast.trace.holds import Names
from ordercast.trace.watch import Observed, Watch
from ordercast.wire.codec import ChannelCodec
from ordercast.wire.control import CLUSTER_CHANNEL, CONTROL_CHANNEL, LINK_CHANNEL
from ordercast.wire.frame import FIXED_SIZE, Frame

LAST_WORD_S = 5.0  # seconds that a group stays open after its last view: packets may be lost

Headers = tuple[type[msgspec.Struct], ...]

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

    def broken(self, error: Exception) -> None:
        """A step failed half-way: an error of ours. There must not be another."""


class Engine:
    """The stack of one node, with its timers and channels."""

    def __init__(self, stack: ClusteredStack, driver: Driver) -> None:
        self.stack = stack
        self.steps = 0
        self.retransmits = 0  # packets sent again
        self.heartbeats = 0  # sent
        self._linked: Headers = () if stack.network == "N2" else (Linked,)
        self._wide = frozenset(h for page in stack.pages.values() for h in page.wide_headers)
        self._driver = driver
        self._channels: dict[GroupId, ChannelCodec] = {}
        self._left: dict[GroupId, ChannelCodec] = {}  # once open: late packets are no fault
        self._needed: set[GroupId] = set()  # left, but others need what is here of it
        self._leaving: dict[GroupId, asyncio.TimerHandle] = {}  # closed soon
        self._timers: dict[tuple[GroupId, str], asyncio.TimerHandle] = {}
        self._waiting: list[Event | Command] = []  # to be stepped when the running step is done
        self._gone: dict[ProcessId, GroupId] = {}  # to be forgotten -> a group that has it still
        self._stepping = False
        self._stopped = False
        self._loop = asyncio.get_running_loop()
        self.ages = Ages(self._loop, self.stack.waiting_frames)  # of the frames that wait
        self.brought: Brought | None = None  # header bytes of what is under way, for a trace
        self._watch: Watch | None = None  # at every step, for a trace at protocol level

    # -- groups -----------------------------------------------------------------------------------

    def open(self, entry: GroupEntry) -> None:
        """Packets of the group can be read from now on."""
        self._needed.discard(entry.gid)
        if entry.gid in self._leaving:
            self.close(entry.gid)
        self.stack.open_group(entry)
        self._channel(entry)

    def _channel(self, entry: GroupEntry) -> ChannelCodec:
        words = GATE_HEADERS if entry.durability else ()
        codec = _codec((*headers_of(self.stack.page(entry.protocol)), *self._linked, *words))
        self._channels[entry.gid] = codec
        self._left.pop(entry.gid, None)
        return codec

    def _codec_of(self, g: GroupId) -> ChannelCodec | None:
        """Of a group that is open: the stack opens those by itself that this node is to lead."""
        codec = self._channels.get(g)
        if codec is None and (entry := self.stack.entry_of(g)) is not None:
            codec = self._channel(entry)
        return codec

    def leave(self, g: GroupId) -> None:
        """This node has had its last view of g; its last word on it may be lost."""
        if self.stack.leads(g):
            self._needed.add(g)
            return
        self._needed.discard(g)
        if self.stack.is_heard(g):
            self.close(g)
        elif g in self._channels and g not in self._leaving:
            self._leaving[g] = self._loop.call_later(LAST_WORD_S, self.close, g)

    def close(self, g: GroupId) -> None:
        """Packets of g that are still on their way are dropped."""
        if g in self._leaving:
            self._leaving.pop(g).cancel()
        if g in self._channels and not self.stack.leads(g):
            self._left[g] = self._channels.pop(g)
            self.stack.close(g)
            for key in [key for key in self._timers if key[0] == g]:
                self._timers.pop(key).cancel()

    def forget(self, p: ProcessId) -> None:
        """p will never come back: drop what is kept of it, as soon as no view has it."""
        self._gone[p] = 0
        if not self._stepping:
            self._forget_gone()

    def _forget_gone(self) -> None:
        for p, g in tuple(self._gone.items()):
            if self._has(g, p):
                continue
            for other in self.stack.protocols:
                if self._has(other, p):
                    self._gone[p] = other
                    break
            else:
                del self._gone[p]
                self.stack.gone_for_good(p)

    def _has(self, g: GroupId, p: ProcessId) -> bool:
        view = self.stack.view(g)
        return view is not None and p in view.senders

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
                if events:
                    self.step(events)
                    events = []
                on_control(frame)
            else:
                if events:  # they may be what opens the group
                    self.step(events)
                    events = []
                events += self._of_group(src, frame)
        if events:
            self.step(events)

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
        if events:
            self.step(events)

    @staticmethod
    def _weigh(brought: Brought, frames: list[Frame]) -> None:
        for channel, _, _, header, payload in frames:
            if channel not in (CONTROL_CHANNEL, CLUSTER_CHANNEL):
                brought.came(payload, FIXED_SIZE + len(header))

    def step(self, events: Sequence[Event | Command]) -> None:
        """One step of the stack, and all its effects."""
        if self._stopped:
            return
        if self._stepping:
            self._waiting += events
            return
        self._stepping = True
        try:
            while events and not self._stopped:
                self.steps += 1
                if self._watch is None:
                    self._carry_out(self.stack.step(events))
                else:
                    self._step_watched(self._watch, events)
                events, self._waiting = self._waiting, []
            if not self._stopped:
                self.ages.wake()
            if self._gone:
                self._forget_gone()
            for g in [g for g in self._needed if not self.stack.leads(g)]:
                self.leave(g)
        except Exception as error:
            self._driver.broken(error)
            raise
        finally:
            self._stepping = False

    def watch(self, names: Names, record: Callable[[Observed], None]) -> None:
        """From now on record what can be seen at every step."""
        self._watch = Watch(self.stack, names, record, self._overhead)

    def _overhead(self, packet: Receive) -> int:
        """Header bytes of a packet, as it was encoded by its sender."""
        g = packet.group
        if g == CLUSTER_GROUP:
            return CLUSTER.overhead(packet.header)
        codec = LINKS if g == LINK_GROUP else self._channels.get(g) or self._left[g]
        return codec.overhead(packet.header)

    def _step_watched(self, watch: Watch, events: Sequence[Event | Command]) -> None:
        """One event after the other, so that each effect has its cause."""
        for event in events:
            self._carry_out(watch.step((event,)))  # type: ignore[arg-type]
            self.ages.saw(watch.held)

    def stop(self) -> None:
        """No more steps; all timers are cancelled."""
        self._stopped = True
        self.ages.stop()
        for handle in (*self._timers.values(), *self._leaving.values()):
            handle.cancel()
        self._timers.clear()
        self._leaving.clear()

    # -- effects out ------------------------------------------------------------------------------

    def _carry_out(self, out: Output) -> None:
        driver = self._driver
        for to, g, era, header, payload in out.transmits:
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
        for news in out.news:
            if isinstance(news, Installed):
                driver.meet(news.view)
        for delivery in out.deliveries:
            if type(delivery) is tuple:
                driver.deliver(delivery)
            else:
                assert isinstance(delivery, View)
                driver.install(delivery)
        for g, name, delay_ms in out.timers:
            self._set_timer(g, name, delay_ms)
        for g, frames in out.stable:
            driver.stable(g, frames)
        for g, frames in out.ordered:
            driver.ordered(g, frames)
        for g, is_guest in out.guest:
            driver.guest(g, is_guest)
        for peer, reason in out.faults:
            driver.fault(peer, reason)
        for note in out.notes:
            if note[0] == "retransmit":
                self.retransmits += 1
        for news in out.news:
            driver.take_news(news)  # type: ignore[arg-type]

    def _transmit_for_link(
        self,
        to: tuple[ProcessId, ...],
        g: GroupId,
        era: int,
        header: msgspec.Struct,
        payload: bytes,
    ) -> None:
        """Of a link itself, or sent again for a group that was left: the peer's link waits."""
        if g == LINK_GROUP:
            self._driver.transmit(to, LINKS.encode(LINK_CHANNEL, 0, header, payload), None)
        elif g in self._left:
            packet = self._left[g].encode(g, era, header, payload)
            self._driver.transmit(to, packet, _content(header, payload))

    def _set_timer(self, g: GroupId, name: str, delay_ms: int) -> None:
        running = self._timers.pop((g, name), None)
        if running is not None:
            running.cancel()
        if delay_ms >= 0 and not self._stopped:
            self._timers[g, name] = self._loop.call_later(delay_ms / 1000, self._fire, g, name)

    def _fire(self, g: GroupId, name: str) -> None:
        del self._timers[g, name]
        self.step([Timer(g, name)])
