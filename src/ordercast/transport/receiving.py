"""The receiving half of an endpoint: nothing that arrives is believed before it is checked."""

from __future__ import annotations

import logging
import socket
from collections import OrderedDict

from ordercast.core.ids import ProcessId
from ordercast.errors import FrameError, PeerError
from ordercast.transport.contract import DatagramCounters, DatagramHandler
from ordercast.transport.datagram import (
    FRAGMENT,
    PROBE,
    SEEN,
    WANT,
    is_addressed,
    read_datagram,
    read_piece,
    read_seen,
    read_want,
)
from ordercast.transport.flow import check_seen
from ordercast.transport.injection import Injection
from ordercast.transport.sending import Peer, Sender
from ordercast.wire.frame import Frame, Splitter

log = logging.getLogger("ordercast.transport.udp")

LARGEST = 65_536  # bytes; no datagram is larger
DRAIN = 256  # datagrams taken before the event loop may do something else
LOGGED = 1024  # peers whose first fault is in the log
REMEMBERED = 1024  # peers that are gone

FramesByPeer = dict[ProcessId, list[Frame]]


class Receiver:
    """Datagrams in, frames out."""

    def __init__(
        self,
        handler: DatagramHandler,
        sender: Sender,
        peers: dict[ProcessId, Peer],
        counters: DatagramCounters,
        max_frame: int,
        injection: Injection | None,
    ) -> None:
        self._handler = handler
        self._sender = sender
        self._peers = peers
        self._counters = counters
        self._max_frame = max_frame
        self._injection = injection
        self._splitter = Splitter(max_frame)
        self._logged: set[ProcessId | None] = set()
        self._former: OrderedDict[ProcessId, bytes] = OrderedDict()  # sessions of the latest gone

    def drain(self, sock: socket.socket, now: float) -> bool:
        """Take what has come, many datagrams in one go; False if there may be more."""
        received: FramesByPeer = {}
        empty = False
        for _ in range(DRAIN):
            try:
                data = sock.recv(LARGEST)
            except BlockingIOError:
                empty = True
                break
            except OSError:  # a datagram of ours was not delivered, or the socket broke
                self._counters.receive_errors += 1
                break  # if more has come, the system says so again
            for taken in (data,) if self._injection is None else self._injection.arrive(data):
                self._take(taken, received, now)
        for peer in self._peers.values():
            if peer.flow.owes_report:
                self._sender.tell_seen(peer)
        self._sender.pump(now)
        for pid, frames in received.items():
            self._handler.on_datagrams(pid, frames)
        return empty

    def gone(self, pid: ProcessId, session: bytes) -> None:
        """Datagrams of this peer that are still under way are no fault, and too late."""
        self._former[pid] = session
        if len(self._former) > REMEMBERED:
            self._former.popitem(last=False)

    def refuse(self, pid: ProcessId | None, reason: str) -> None:
        """A datagram, or a frame of one, that is dropped for what is wrong with it."""
        self._counters.datagrams_refused += 1
        if pid not in self._logged:
            if len(self._logged) >= LOGGED:
                self._logged.clear()
            self._logged.add(pid)
            sender = "an unknown sender" if pid is None else f"process {pid}"
            log.warning(
                "dropped a datagram of %s: %s (further ones are only counted)", sender, reason
            )

    def _take(self, data: bytes, received: FramesByPeer, now: float) -> None:
        try:
            kind, pid, session, number, audience, body = read_datagram(data)
        except FrameError as fault:
            self.refuse(None, str(fault))
            return
        sender, counters = self._sender, self._counters
        if not is_addressed(audience, sender.me):
            counters.not_for_us += 1
            return
        peer = self._peers.get(pid)
        if peer is None or peer.session != session:
            if self._former.get(pid) == session:
                counters.datagrams_late += 1
            else:
                self.refuse(pid, "a datagram with another session, or of a node that is not in")
            return
        counters.datagrams_in += 1
        counters.bytes_in += len(data)
        try:
            frames = self._read(peer, pid, kind, number, body, now)
        except PeerError as fault:
            self.refuse(pid, str(fault))
            return
        if frames:
            received.setdefault(pid, []).extend(frames)

    def _read(
        self, peer: Peer, pid: ProcessId, kind: int, number: int, body: bytes, now: float
    ) -> list[Frame]:
        """The frames that are complete with this datagram."""
        if kind == SEEN:
            seen = read_seen(body)
            check_seen(seen, self._sender.number)
            peer.flow.seen(seen, now)
            return []
        if kind == PROBE:
            peer.flow.asked(number)
            self._sender.tell_seen(peer)
            return []
        if kind == WANT:
            self._sender.send_again(pid, *read_want(body))
            return []
        peer.flow.came(number, len(body))
        if kind == FRAGMENT:
            packet = peer.reassembly.add(*read_piece(body), now)
            return [] if packet is None else self._split(packet)
        return self._split(body)

    def _split(self, body: bytes) -> list[Frame]:
        splitter = self._splitter
        frames = splitter.feed(body)
        if splitter.pending:
            self._splitter = Splitter(self._max_frame)
            raise FrameError(f"a datagram ends {splitter.pending} bytes into a frame")
        return frames
