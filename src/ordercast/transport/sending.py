"""The sending half of an endpoint: queues, pacing, and the call that sends."""

from __future__ import annotations

import logging
import socket
from collections.abc import Hashable

from ordercast.core.ids import ProcessId
from ordercast.transport.contract import Address, DatagramCounters
from ordercast.transport.datagram import (
    NUMBER,
    PROBE,
    SEEN,
    WANT,
    pack_audience,
    pack_datagram,
    pack_want,
)
from ordercast.transport.flow import Flow
from ordercast.transport.outgoing import Queue, Repairs, To
from ordercast.transport.reassembly import Reassembly
from ordercast.transport.settings import IpMulticast, Udp

log = logging.getLogger("ordercast.transport.udp")


class Peer:
    """Another node, as datagrams know it."""

    __slots__ = ("address", "flow", "reassembly", "session")

    def __init__(
        self, session: bytes, address: Address, flow: Flow, reassembly: Reassembly
    ) -> None:
        self.session = session  # stands in its datagrams
        self.address = address
        self.flow = flow
        self.reassembly = reassembly


class Sender:
    """Packets in, datagrams out, as many as the receivers can take."""

    def __init__(
        self,
        settings: Udp | IpMulticast,
        session: bytes,
        peers: dict[ProcessId, Peer],
        counters: DatagramCounters,
    ) -> None:
        self.me: ProcessId = -1
        self.session = session
        self.number = 0  # of the last datagram sent
        self.queues: dict[To, Queue] = {}  # of this turn, and what could not leave yet
        self.repairs = Repairs(settings.repair_bytes)
        self._settings = settings
        self._peers = peers
        self._counters = counters
        self._socket: socket.socket | None = None
        self._group: Address | None = None
        self._refused_once = False  # the system's first refusal to send is in the log

    def open(self, sock: socket.socket, group: Address | None) -> None:
        """Send through this socket; what is for several, to that multicast group."""
        self._socket = sock
        self._group = group

    def close(self) -> None:
        """Nothing leaves any more."""
        self._socket = None
        self.queues.clear()

    # -- packets ----------------------------------------------------------------------------------

    def put(self, to: To, packet: bytes, content: Hashable) -> None:
        """Queue a packet: once for all of them where there is a multicast group."""
        if len(to) > 1 and self._group is not None and pack_audience(to) is not None:
            self._put(to, packet, content)
            return
        for pid in to:
            self._put((pid,), packet, content)

    def _put(self, to: To, packet: bytes, content: Hashable) -> None:
        queue = self._queue(to)
        if content is not None and self._waits(to, content):
            self._counters.repeats_spared += 1
        elif queue.size > self._settings.queue_bytes:
            self._counters.datagrams_lost_here += 1
        else:
            queue.put(packet, content)

    def _waits(self, to: To, content: Hashable) -> bool:
        """Does it wait already for all of these, by themselves or in a larger audience?"""
        queue = self.queues.get(to)
        if queue is not None and content in queue.waiting:
            return True
        return self._group is not None and any(
            content in queue.waiting and set(to) <= set(queue.to) for queue in self.queues.values()
        )

    def _queue(self, to: To) -> Queue:
        queue = self.queues.get(to)
        if queue is None:
            queue = self.queues[to] = Queue(to, self._settings.max_datagram, self.repairs)
        return queue

    def send_again(self, asker: ProcessId, packet_id: int, places: list[int]) -> None:
        """Pieces that a peer misses leave before everything else that waits for it."""
        if any(queue.cutting == packet_id for queue in self.queues.values()):
            return  # they have not left yet
        pieces = self.repairs.find(asker, packet_id, places)
        if pieces:
            self._queue((asker,)).put_again(pieces)

    # -- datagrams --------------------------------------------------------------------------------

    def pump(self, now: float) -> None:
        """Send what may be sent."""
        for to, queue in tuple(self.queues.items()):
            peers = [self._peers[pid] for pid in to if pid in self._peers]
            address = peers[0].address if len(to) == 1 and peers else self._group
            if not peers or address is None or self._empty(queue, peers, address, now):
                del self.queues[to]

    def _empty(self, queue: Queue, peers: list[Peer], address: Address, now: float) -> bool:
        """As much as the peers can take; True if that was all."""
        while (head := queue.head()) is not None:
            if any(peer.flow.is_full for peer in peers):
                return False
            kind, body = head
            size = self._send_now(kind, self.number + 1, queue.audience, body, address)
            if not size:
                return False
            self.number += 1
            queue.sent()
            for peer in peers:
                peer.flow.sent(self.number, size, now)
        return True

    def tell_seen(self, peer: Peer) -> None:
        """What has come from the peer: it may send more."""
        self._send_now(SEEN, 0, b"", NUMBER.pack(peer.flow.report()), peer.address)

    def probe(self, peer: Peer) -> None:
        """Ask a peer what it has seen; it cannot be more than was sent."""
        self._send_now(PROBE, self.number, b"", b"", peer.address)

    def ask(self, peer: Peer, packet_id: int, places: list[int]) -> None:
        """Ask a peer for pieces."""
        self._send_now(WANT, 0, b"", pack_want(packet_id, places), peer.address)

    def _send_now(
        self, kind: int, number: int, audience: bytes, body: bytes, address: Address
    ) -> int:
        """How many bytes left, or are lost; 0 if they must wait."""
        if self._socket is None:
            return 0
        data = pack_datagram(kind, self.me, self.session, number, audience, body)
        counters = self._counters
        try:
            self._socket.sendto(data, address)
        except BlockingIOError:
            counters.sends_delayed += 1
            return 0
        except OSError as error:
            counters.datagrams_lost_here += 1
            if not self._refused_once:
                self._refused_once = True
                log.warning("cannot send %d bytes to %s:%d: %s", len(data), *address, error)
        else:
            counters.datagrams_out += 1
            counters.bytes_out += len(data)
        return len(data)
