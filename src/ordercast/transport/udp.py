"""The datagrams of one node: packed, paced and sent; received, checked and handed over.

All packets for one peer, or one audience, of one turn of the event loop share datagrams. How much
may be under way to a peer is bounded (`flow`), so a fast sender does not overrun a receiver.
Everything may still be lost, doubled or overtaken: what must arrive is the business of the stack.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Hashable, Iterable
from typing import Any, Protocol

from ordercast.core.ids import ProcessId
from ordercast.errors import FrameError, PeerError
from ordercast.transport.contract import Address
from ordercast.transport.datagram import (
    FRAGMENT,
    FRAMES,
    NUMBER,
    PROBE,
    SEEN,
    WANT,
    is_addressed,
    pack_audience,
    pack_datagram,
    pack_want,
    read_datagram,
    read_piece,
    read_seen,
    read_want,
)
from ordercast.transport.flow import Flow, check_seen
from ordercast.transport.injection import Injection
from ordercast.transport.outgoing import Queue, Repairs, To
from ordercast.transport.reassembly import Reassembly
from ordercast.transport.settings import IpMulticast, Udp
from ordercast.transport.sockets import multicast_socket, prepare_to_multicast, unicast_socket
from ordercast.wire.frame import Frame, Splitter

log = logging.getLogger("ordercast.transport.udp")

LARGEST = 65_536  # bytes; no datagram is larger
DRAIN = 256  # datagrams taken before the event loop may do something else
TICK_S = 0.005  # while something waits for a peer
PROBE_S = 0.01  # a peer that others wait for is asked after this
SILENCE_S = 0.2  # what a peer has not seen after this is taken for lost
ASK_AT_ONCE = 64  # pieces of one packet
LOGGED = 1024  # peers whose first fault is in the log


class DatagramHandler(Protocol):
    """The owner of an endpoint."""

    def on_datagrams(self, pid: ProcessId, frames: list[Frame]) -> None:
        """Frames of a peer: some may be missing, come twice, or late."""


class DatagramCounters:
    """What an endpoint has done so far."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "datagrams_in",
        "datagrams_lost_here",
        "datagrams_out",
        "datagrams_refused",
        "not_for_us",
        "sends_delayed",
    )

    def __init__(self) -> None:
        self.datagrams_in = 0  # of peers, for this node
        self.datagrams_out = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.datagrams_refused = 0  # malformed, or of nobody in the cluster
        self.not_for_us = 0  # heard in the multicast group, for others
        self.datagrams_lost_here = 0  # the queue was full, or the system refused to send
        self.sends_delayed = 0  # the system's buffer was full

    def as_dict(self) -> dict[str, int]:
        """Every total by name."""
        return {name: getattr(self, name) for name in self.__slots__}


class Peer:
    """Another node."""

    __slots__ = ("address", "flow", "reassembly", "session")

    def __init__(self, session: bytes, address: Address, flow: Flow, reassembly: Reassembly):
        self.session = session
        self.address = address
        self.flow = flow
        self.reassembly = reassembly


class DatagramEndpoint:
    """Sends to peers and audiences, and hears them."""

    def __init__(
        self,
        settings: Udp | IpMulticast,
        handler: DatagramHandler,
        *,
        name: str,
        session: bytes,
        max_frame: int,
    ) -> None:
        self.settings = settings
        self.counters = DatagramCounters()
        self._handler = handler
        self._session = session
        self._max_frame = max_frame
        self._me: ProcessId = -1
        self._peers: dict[ProcessId, Peer] = {}
        self._queues: dict[To, Queue] = {}  # of this turn, and what could not leave yet
        self._flush_is_due = False
        self._spared = 0  # repeats of packets that had not left yet
        self._repairs = Repairs(settings.repair_bytes)
        self._number = 0  # of the last datagram sent
        self._expired = 0  # packets of peers that are gone
        self._timeouts = 0
        self._sockets: list[socket.socket] = []
        self._group: Address | None = None
        self._share = 0  # bytes that all peers together may have under way to a node
        self._splitter = Splitter(max_frame)
        self._injection = Injection(settings, name) if Injection.is_asked_for(settings) else None
        self._logged: set[ProcessId | None] = set()
        self._tick: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()

    # -- opening and closing ----------------------------------------------------------------------

    def open(self, address: Address) -> None:
        """Take the port. `OSError` names the call that failed."""
        settings = self.settings
        sock = unicast_socket(address, settings.socket_buffer)
        self._sockets.append(sock)
        if isinstance(settings, IpMulticast):
            prepare_to_multicast(sock, settings, address[0])
            self._sockets.append(multicast_socket(settings, address[0]))
            self._group = settings.address
        # Half: the other nodes are taken to have buffers like ours, and a margin does no harm.
        self._share = sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) // 2
        for sock in self._sockets:
            self._loop.add_reader(sock, self._drain, sock)

    def introduce_as(self, me: ProcessId) -> None:
        """This node has a number now."""
        self._me = me

    def close(self) -> None:
        """Send what can be sent at once; then nothing more, either way."""
        if self._sockets:
            self._flush()
        if self._tick is not None:
            self._tick.cancel()
            self._tick = None
        for sock in self._sockets:
            self._loop.remove_reader(sock)
            sock.close()
        self._sockets.clear()
        self._queues.clear()

    # -- peers ------------------------------------------------------------------------------------

    def add_peer(self, pid: ProcessId, session: bytes, address: Address) -> None:
        """Datagrams of this node are welcome from now on."""
        settings = self.settings
        flow = Flow(self._share, self._loop.time())
        reassembly = Reassembly(self._max_frame, settings.reassembly_bytes)
        self._peers[pid] = Peer(session, address, flow, reassembly)
        self._share_out()

    def remove_peer(self, pid: ProcessId) -> None:
        """Nothing of this node counts any more."""
        peer = self._peers.pop(pid, None)
        if peer is not None:
            self._expired += peer.reassembly.expired
            self._timeouts += peer.flow.timeouts
            self._share_out()

    def _share_out(self) -> None:
        for peer in self._peers.values():
            peer.flow.set_limit(self._share // len(self._peers))

    # -- sending ----------------------------------------------------------------------------------

    def send(self, to: To, packet: bytes, content: Hashable = None) -> None:
        """Queue a packet; it leaves at the end of this turn. One that is gone gets nothing.

        Of two packets with the same `content` the second is a repeat of the first: it is dropped
        as long as the first waits here.
        """
        if not self._sockets:
            return
        if not self._flush_is_due:
            self._flush_is_due = True
            self._loop.call_soon(self._flush)
        if len(to) > 1 and self._group is not None and pack_audience(to) is not None:
            self._put(to, packet, content)
            return
        for pid in to:
            self._put((pid,), packet, content)

    def _put(self, to: To, packet: bytes, content: Hashable) -> None:
        queue = self._queue(to)
        if content is not None and self._waits(to, content):
            self._spared += 1
        elif queue.size > self.settings.queue_bytes:
            self.counters.datagrams_lost_here += 1
        else:
            queue.put(packet, content)

    def _waits(self, to: To, content: Hashable) -> bool:
        """Does it wait already for all of these?"""
        return any(
            content in queue.waiting and set(to) <= set(queue.to) for queue in self._queues.values()
        )

    def _queue(self, to: To) -> Queue:
        queue = self._queues.get(to)
        if queue is None:
            queue = self._queues[to] = Queue(to, self.settings.max_datagram, self._repairs)
        return queue

    def _flush(self) -> None:
        self._flush_is_due = False
        if self._sockets:
            self._pump(self._loop.time())

    def _pump(self, now: float) -> None:
        """Send what may be sent."""
        for to, queue in tuple(self._queues.items()):
            peers = [self._peers[pid] for pid in to if pid in self._peers]
            address = peers[0].address if len(to) == 1 and peers else self._group
            if not peers or address is None or self._send_queue(queue, peers, address, now):
                del self._queues[to]
        if self._queues:
            self._tick_soon()

    def _send_queue(self, queue: Queue, peers: list[Peer], address: Address, now: float) -> bool:
        """As much as the peers can take; True if that was all."""
        while (head := queue.head()) is not None:
            if any(peer.flow.is_full for peer in peers):
                return False
            kind, body = head
            size = self._send_now(kind, self._number + 1, queue.audience, body, address)
            if not size:
                return False
            self._number += 1
            queue.sent()
            for peer in peers:
                peer.flow.sent(self._number, size, now)
        return True

    def _send_now(
        self, kind: int, number: int, audience: bytes, body: bytes, address: Address
    ) -> int:
        """How many bytes left; 0 if they must wait."""
        data = pack_datagram(kind, self._me, self._session, number, audience, body)
        counters = self.counters
        try:
            self._sockets[0].sendto(data, address)
        except BlockingIOError:
            counters.sends_delayed += 1
            return 0
        except OSError as error:
            counters.datagrams_lost_here += 1
            self._log_once(self._me, f"cannot send {len(data)} bytes to {address[0]}: {error}")
        else:
            counters.datagrams_out += 1
            counters.bytes_out += len(data)
        return len(data)

    # -- receiving --------------------------------------------------------------------------------

    def _drain(self, sock: socket.socket) -> bool:
        """Take what has come, many datagrams in one go; False if there may be more."""
        arrived: dict[ProcessId, list[Frame]] = {}
        now = self._loop.time()
        empty = False
        for _ in range(DRAIN):
            try:
                data = sock.recv(LARGEST)
            except OSError:  # nothing more, or news of a datagram that reached nobody
                empty = True
                break
            for taken in (data,) if self._injection is None else self._injection.arrive(data):
                self._take(taken, arrived, now)
        for peer in self._peers.values():
            if peer.flow.owes_report:
                self._tell_seen(peer)
            if peer.reassembly.incomplete:
                self._tick_soon()
        if self._queues:
            self._pump(now)
        for pid, frames in arrived.items():
            self._handler.on_datagrams(pid, frames)
        return empty

    def _take(self, data: bytes, arrived: dict[ProcessId, list[Frame]], now: float) -> None:
        try:
            kind, sender, session, number, audience, body = read_datagram(data)
        except FrameError as fault:
            self.refuse(None, str(fault))
            return
        peer = self._peers.get(sender)
        if peer is None or peer.session != session:
            if (sender, session) != (self._me, self._session):  # else the echo of our own
                self.refuse(sender, f"a datagram that claims to be of process {sender}")
            return
        if audience and not is_addressed(audience, self._me):
            self.counters.not_for_us += 1
            return
        self.counters.datagrams_in += 1
        self.counters.bytes_in += len(data)
        try:
            self._read(peer, sender, kind, number, body, arrived, now)
        except PeerError as fault:
            self.refuse(sender, str(fault))

    def _read(
        self,
        peer: Peer,
        sender: ProcessId,
        kind: int,
        number: int,
        body: bytes,
        arrived: dict[ProcessId, list[Frame]],
        now: float,
    ) -> None:
        if kind == SEEN:
            seen = read_seen(body)
            check_seen(seen, self._number)
            peer.flow.seen(seen, now)
            return
        if kind == WANT:
            self._send_again(sender, *read_want(body))
            return
        if kind == PROBE:
            self._tell_seen(peer)
            return
        peer.flow.came(number, len(body))
        if kind == FRAGMENT:
            packet = peer.reassembly.add(*read_piece(body), now)
            if packet is None:
                return
            body = packet
        else:
            assert kind == FRAMES, kind
        frames = self._split(body)
        if sender in arrived:
            arrived[sender] += frames
        else:
            arrived[sender] = frames

    def _split(self, body: bytes) -> list[Frame]:
        splitter = self._splitter
        try:
            frames = splitter.feed(body)
        finally:
            if splitter.pending:
                self._splitter = Splitter(self._max_frame)
        if splitter.pending:
            raise FrameError(f"a datagram ends {splitter.pending} bytes into a frame")
        return frames

    def _tell_seen(self, peer: Peer) -> None:
        self._send_now(SEEN, 0, b"", NUMBER.pack(peer.flow.report()), peer.address)

    def _send_again(self, asker: ProcessId, packet_id: int, places: list[int]) -> None:
        if any(queue.cutting == packet_id for queue in self._queues.values()):
            return  # they have not left yet
        pieces = self._repairs.find(asker, packet_id, places)
        if pieces:
            self._queue((asker,)).put_again(pieces)

    # -- faults -----------------------------------------------------------------------------------

    def refuse(self, pid: ProcessId | None, reason: str) -> None:
        """A datagram, or a frame of one, that is dropped for what is wrong with it."""
        self.counters.datagrams_refused += 1
        self._log_once(pid, reason)

    def _log_once(self, pid: ProcessId | None, reason: str) -> None:
        if pid in self._logged:
            return
        if len(self._logged) >= LOGGED:
            self._logged.clear()
        self._logged.add(pid)
        log.warning("process %s: %s (further ones are only counted)", pid, reason)

    # -- time -------------------------------------------------------------------------------------

    def _tick_soon(self) -> None:
        if self._tick is None and self._sockets:
            self._tick = self._loop.call_later(TICK_S, self._on_tick)

    def _on_tick(self) -> None:
        self._tick = None
        # A process that had to wait for its turn finds old deadlines and new datagrams. Without
        # this line it would ask for what lies in its own buffer, and be sent all of it again.
        emptied = [self._drain(sock) for sock in tuple(self._sockets)]
        now = self._loop.time()
        settings = self.settings
        for peer in self._peers.values():
            if peer.flow.is_silent(now, PROBE_S):
                self._send_now(PROBE, 0, b"", b"", peer.address)
                peer.flow.give_up(now, SILENCE_S)
            reassembly = peer.reassembly
            if reassembly.incomplete and all(emptied):
                reassembly.expire(now, settings.reassembly_ms / 1000)
                self._ask(peer, reassembly.missing(now, settings.repair_ms / 1000, ASK_AT_ONCE))
            if reassembly.incomplete:
                self._tick_soon()
        if self._queues:
            self._pump(now)

    def _ask(self, peer: Peer, missing: Iterable[tuple[int, list[int]]]) -> None:
        for packet_id, places in missing:
            self._send_now(WANT, 0, b"", pack_want(packet_id, places), peer.address)

    # -- how it is --------------------------------------------------------------------------------

    def stats(self) -> dict[str, Any]:
        """Counts and limits; a limit stands beside what it limits."""
        settings, peers = self.settings, self._peers.values()
        return {
            "transport": settings.label,
            **self.counters.as_dict(),
            "lost_on_purpose": 0 if self._injection is None else self._injection.lost,
            "fragments_pending": sum(peer.reassembly.pending for peer in peers),
            "reassembly_used": max((peer.reassembly.used for peer in peers), default=0),
            "reassembly_bytes": settings.reassembly_bytes,
            "reassembly_expired": self._expired + sum(p.reassembly.expired for p in peers),
            "pieces_sent_again": self._repairs.resent,
            "repair_used": self._repairs.used,
            "repair_bytes": settings.repair_bytes,
            "repeats_spared": self._spared,
            "queued_bytes": max((queue.size for queue in self._queues.values()), default=0),
            "queue_bytes": settings.queue_bytes,
            "under_way": max((peer.flow.used for peer in peers), default=0),
            "max_under_way": min((peer.flow.limit for peer in peers), default=self._share),
            "silences": self._timeouts + sum(peer.flow.timeouts for peer in peers),
        }
