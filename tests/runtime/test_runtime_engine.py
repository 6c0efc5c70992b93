"""An engine on a network that loses packets: what its links need, also for groups it left."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable

from ordercast.core.changing import FramesEnd, NextEra
from ordercast.core.declaration import Network
from ordercast.core.events import View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.output import Delivery
from ordercast.core.protocol import Options
from ordercast.membership.agreement_table import Standing
from ordercast.membership.node_view import NodeEntry, NodeView, ViewId
from ordercast.membership.options import ClusterOptions
from ordercast.process.headers import headers_of
from ordercast.process.process import Process
from ordercast.protocols.fifo import Fifo, FifoData
from ordercast.protocols.registry import PROTOCOLS
from ordercast.reliability.link import LinkAck, Linked
from ordercast.runtime.engine import LINKS, Engine
from ordercast.views.groups import GroupEntry
from ordercast.views.headers import Row
from ordercast.wire.codec import ChannelCodec
from ordercast.wire.control import CONTROL_CHANNEL, LINK_CHANNEL
from ordercast.wire.frame import Splitter, pack

LEFT: GroupId = 5
KEPT: GroupId = 6

OPTIONS = Options(retry_ms=1, ack_delay_ms=1)


def stack(me: ProcessId, network: Network) -> Process:
    """Of a node in a cluster of two, where a third one leads."""
    entries = tuple(NodeEntry(pid, f"p{pid}", 1) for pid in (0, 1, 2))
    made = Process(
        entries[me], PROTOCOLS, cluster_options=ClusterOptions(), network=network,
        cluster_network="N2", options=OPTIONS,
    )  # fmt: skip
    pids = tuple(node.pid for node in entries)
    made.agreement.view = NodeView(ViewId(0, 0, 1), entries, pids, 1)
    made.agreement.standing = Standing.IN
    made.listens = frozenset(pids)
    return made


class Side:
    """An engine whose packets reach the other one, unless they are lost."""

    def __init__(self, me: ProcessId) -> None:
        self.me = me
        self.other: Side | None = None
        self.lost = 0
        self.loses: Callable[[], bool] = lambda: False
        self.delivered: list[tuple[GroupId, bytes]] = []
        self.faults: list[str] = []
        self.contents: list[Hashable] = []
        self.engine = Engine(stack(me, "N0"), self)

    def begin(self, *groups: GroupId) -> None:
        for g in groups:
            entry = GroupEntry(g, f"g{g}", "fifo", "fifo", 1)
            self.engine.open(entry)
            self.engine.stack.changes.directory.put(Row(entry, 1, 1, (1, 2), (), 1))
            self.engine.stack.begin(1, (NextEra(View(g, 1, (1, 2), 1), FramesEnd()),))

    def close(self, g: GroupId) -> None:
        self.engine.stack.groups.close(g)
        self.engine._close_channel(g)

    def transmit_wide(self, to: tuple[ProcessId, ...], packet: bytes, content: Hashable) -> None:
        self.transmit(to, packet, content)

    def transmit(self, to: tuple[ProcessId, ...], packet: bytes, content: Hashable) -> None:
        self.contents.append(content)
        if self.loses():
            self.lost += 1
        else:
            asyncio.get_running_loop().call_soon(self._arrive, packet)

    def _arrive(self, packet: bytes) -> None:
        assert self.other is not None
        frames = Splitter(1 << 20).feed(packet)
        self.other.engine.receive_datagrams(self.me, frames, self.other.faults.append)

    def deliver(self, delivery: Delivery) -> None:
        self.delivered.append((delivery[0], delivery[4]))

    def install(self, view: View) -> None:
        """Views are given."""

    def stable(self, group: GroupId, frames: int) -> None:
        """Not looked at."""

    def fault(self, peer: ProcessId, reason: str) -> None:
        self.faults.append(reason)

    def broken(self, error: Exception) -> None:
        raise error


def pair() -> tuple[Side, Side]:
    a, b = Side(1), Side(2)
    a.other, b.other = b, a
    return a, b


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.001)


async def test_a_link_goes_on_over_packets_of_a_group_that_the_receiver_left() -> None:
    a, b = pair()
    for side in (a, b):
        side.begin(LEFT, KEPT)
    b.close(LEFT)
    a.engine.multicast(LEFT, b"for nobody")
    a.engine.multicast(KEPT, b"behind it")
    await until(lambda: (KEPT, b"behind it") in b.delivered)
    assert not a.faults and not b.faults
    for side in (a, b):
        side.engine.stop()


async def test_a_link_repeats_packets_of_a_group_that_the_sender_left() -> None:
    a, b = pair()
    for side in (a, b):
        side.begin(LEFT, KEPT)
    a.loses = lambda: a.lost < 1
    a.engine.multicast(LEFT, b"lost at first")
    a.close(LEFT)
    a.engine.multicast(KEPT, b"behind it")
    await until(lambda: (KEPT, b"behind it") in b.delivered)
    assert b.delivered == [(LEFT, b"lost at first"), (KEPT, b"behind it")]
    assert a.engine.retransmits > 0
    for side in (a, b):
        side.engine.stop()


async def test_a_packet_that_cannot_be_read_is_dropped_by_itself() -> None:
    a, b = pair()
    a.begin(LEFT, KEPT)
    b.begin(KEPT)
    unknown, bad = pack(99, 0, 1, b"", b""), pack(KEPT, 250, 1, b"", b"")
    good: list[bytes] = []
    a.transmit = lambda to, packet, content: good.append(packet)  # type: ignore[method-assign]
    a.engine.multicast(KEPT, b"good")
    frames = Splitter(1 << 20).feed(b"".join((unknown, bad, *good)))
    b.engine.receive_datagrams(1, frames, b.faults.append)
    assert b.delivered == [(KEPT, b"good")]
    assert [fault.split(",")[0] for fault in b.faults] == [
        "a packet of group 99",
        "no header has the tag 250 on this channel",
    ]
    for side in (a, b):
        side.engine.stop()


async def test_a_control_message_keeps_its_place_among_the_packets_of_one_read() -> None:
    a, b = pair()
    for side in (a, b):
        side.begin(LEFT, KEPT)
    sent: list[bytes] = []
    a.transmit = lambda to, packet, content: sent.append(packet)  # type: ignore[method-assign]
    for text in (b"before", b"between", b"after"):
        a.engine.multicast(KEPT, text)
    control = pack(CONTROL_CHANNEL, 0, 0, b"", b"")
    frames = Splitter(1 << 20).feed(b"".join((sent[0], control, sent[1], control, sent[2])))
    assert len(frames) == 5
    seen: list[int] = []  # messages that were delivered when a control message was taken
    b.engine.receive(1, frames, lambda frame: seen.append(len(b.delivered)))
    assert seen == [1, 2]
    assert [text for _, text in b.delivered] == [b"before", b"between", b"after"]
    for side in (a, b):
        side.engine.stop()


async def test_a_timer_that_is_set_anew_or_not_wanted_does_not_go_off_as_it_was_set_before() -> (
    None
):
    side = Side(1)
    side.begin(KEPT)
    first, second = (_timer(side, 60_000) for _ in range(2))
    assert first.cancelled() and not second.cancelled()
    side.engine._set_timer(KEPT, "late", -1)
    assert second.cancelled() and (KEPT, "late") not in side.engine._timers
    side.engine.stop()


def _timer(side: Side, delay_ms: int) -> asyncio.TimerHandle:
    side.engine._set_timer(KEPT, "late", delay_ms)
    return side.engine._timers[KEPT, "late"]


async def test_a_repeat_has_the_content_of_the_first_and_acknowledgements_have_none() -> None:
    a, b = pair()
    for side in (a, b):
        side.begin(LEFT, KEPT)
    a.loses = lambda: a.lost < 1
    a.engine.multicast(KEPT, b"first")
    a.engine.multicast(KEPT, b"second")
    await until(lambda: len(b.delivered) == 2)
    first, second, *later = a.contents
    assert first != second
    assert first in later
    assert set(b.contents) == {None}
    for side in (a, b):
        side.engine.stop()


def test_the_headers_of_links_have_these_bytes() -> None:
    alone = LINKS.encode(LINK_CHANNEL, 0, LinkAck(7), b"")
    assert alone == bytes.fromhex("00000016 01 00 ffffffff 00000000 00000004 93079000")
    linked = ChannelCodec((FifoData, Linked)).encode_header(Linked(9, 7, FifoData(3, 2)))
    assert linked == (1, bytes.fromhex("93 09 07 92 00 c403 920302"))


async def test_a_link_has_the_tag_after_those_of_the_protocol_where_packets_may_be_lost() -> None:
    lossy, sure = Side(1), Side(1)
    sure.engine = Engine(stack(1, "N2"), sure)
    tags = []
    for side in (lossy, sure):
        side.begin(KEPT)
        sent: list[bytes] = []
        side.transmit = lambda to, packet, content, sent=sent: sent.append(packet)  # type: ignore
        side.engine.multicast(KEPT, b"x")
        [(_, tag, *_)] = Splitter(1 << 20).feed(sent[0])
        tags.append(tag)
        side.engine.stop()
    assert tags == [len(headers_of(Fifo)), headers_of(Fifo).index(FifoData)]
