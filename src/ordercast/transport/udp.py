"""The datagrams of one node: packed, paced and sent; received, checked and handed over.

All packets for one peer, or one audience, of one turn of the event loop share datagrams. How much
may be under way to a peer is bounded (`flow`), so a fast sender does not overrun a receiver.
Everything may still be lost, doubled or overtaken: what must arrive is the business of the stack.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Hashable
from typing import Any

from ordercast.core.ids import ProcessId
from ordercast.errors import ConfigError
from ordercast.transport.contract import Address, DatagramCounters, DatagramHandler
from ordercast.transport.flow import Flow
from ordercast.transport.injection import Injection
from ordercast.transport.outgoing import To
from ordercast.transport.reassembly import Reassembly
from ordercast.transport.receiving import Receiver
from ordercast.transport.sending import Peer, Sender
from ordercast.transport.settings import IpMulticast, Udp
from ordercast.transport.sockets import multicast_socket, prepare_to_multicast, unicast_socket

TICK_S = 0.005  # while something waits for a peer
PROBE_S = 0.01  # a peer that others wait for is asked after this
SILENCE_S = 0.2  # what a peer has not seen after this is taken for lost
ASK_AT_ONCE = 64  # pieces of one packet


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
        self._max_frame = max_frame
        self._peers: dict[ProcessId, Peer] = {}
        self._injection = Injection(settings, name) if Injection.is_asked_for(settings) else None
        self._sender = Sender(settings, session, self._peers, self.counters)
        self._receiver = Receiver(
            handler, self._sender, self._peers, self.counters, max_frame, self._injection
        )
        self._sockets: list[socket.socket] = []
        self._share = 0  # bytes that all peers together may have under way to one node
        self._expired = 0  # packets of peers that are gone
        self._silences = 0  # of peers that are gone
        self._flush_is_due = False
        self._tick: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()

    # -- opening and closing ----------------------------------------------------------------------

    def open(self, address: Address) -> None:
        """Take the port. `OSError` names the call that failed, `ConfigError` a wrong interface."""
        settings = self.settings
        sock = unicast_socket(address, settings.socket_buffer)
        self._sockets.append(sock)
        group = None
        try:
            if isinstance(settings, IpMulticast):
                group = settings.address
                prepare_to_multicast(sock, settings, address[0])
                self._sockets.append(multicast_socket(settings, address[0]))
        except (OSError, ConfigError):
            self._sockets.pop().close()
            raise
        self._sender.open(sock, group)
        # Half: the other nodes are taken to have buffers like ours, and a margin does no harm.
        self._share = sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) // 2
        for sock in self._sockets:
            self._loop.add_reader(sock, self._drain, sock)

    def introduce_as(self, me: ProcessId) -> None:
        """This node has a number now."""
        self._sender.me = me

    def close(self) -> None:
        """Send what can be sent at once; then nothing more, either way."""
        self._sender.pump(self._loop.time())
        self._sender.close()
        if self._tick is not None:
            self._tick.cancel()
            self._tick = None
        for sock in self._sockets:
            self._loop.remove_reader(sock)
            sock.close()
        self._sockets.clear()

    # -- peers ------------------------------------------------------------------------------------

    def add_peer(self, pid: ProcessId, session: bytes, address: Address) -> None:
        """Datagrams of this node are welcome from now on."""
        flow = Flow(self._share, self._loop.time())
        reassembly = Reassembly(self._max_frame, self.settings.reassembly_bytes)
        self._peers[pid] = Peer(session, address, flow, reassembly)
        self._share_out()

    def remove_peer(self, pid: ProcessId) -> None:
        """Nothing of this node counts any more."""
        peer = self._peers.pop(pid, None)
        if peer is not None:
            self._receiver.gone(pid, peer.session)
            self._expired += peer.reassembly.expired
            self._silences += peer.flow.timeouts
            self._share_out()

    def _share_out(self) -> None:
        for peer in self._peers.values():
            peer.flow.set_limit(self._share // len(self._peers))

    # -- packets ----------------------------------------------------------------------------------

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
        self._sender.put(to, packet, content)

    def refuse(self, pid: ProcessId, reason: str) -> None:
        """The owner found a frame of this node to be wrong."""
        self._receiver.refuse(pid, reason)

    def _flush(self) -> None:
        self._flush_is_due = False
        self._sender.pump(self._loop.time())
        self._tick_if_needed()

    def _drain(self, sock: socket.socket) -> None:
        self._receiver.drain(sock, self._loop.time())
        self._tick_if_needed()

    # -- time -------------------------------------------------------------------------------------

    def _tick_if_needed(self) -> None:
        if self._tick is None and self._sockets and self._something_waits():
            self._tick = self._loop.call_later(TICK_S, self._on_tick)

    def _something_waits(self) -> bool:
        incomplete = any(peer.reassembly.incomplete for peer in self._peers.values())
        return incomplete or bool(self._sender.queues)

    def _on_tick(self) -> None:
        self._tick = None
        # A process that had to wait for its turn finds old deadlines and new datagrams. Without
        # this line it would ask for what lies in its own buffer, and be sent all of it again.
        now = self._loop.time()
        emptied = [self._receiver.drain(sock, now) for sock in tuple(self._sockets)]
        for peer in self._peers.values():
            if peer.flow.is_silent(now, PROBE_S):
                self._sender.probe(peer)
                peer.flow.give_up(now, SILENCE_S)
            if peer.reassembly.incomplete and all(emptied):
                self._see_to_pieces(peer, now)
        self._sender.pump(now)
        self._tick_if_needed()

    def _see_to_pieces(self, peer: Peer, now: float) -> None:
        settings = self.settings
        peer.reassembly.expire(now, settings.reassembly_ms / 1000)
        for wanted in peer.reassembly.missing(now, settings.repair_ms / 1000, ASK_AT_ONCE):
            self._sender.ask(peer, *wanted)

    # -- how it is --------------------------------------------------------------------------------

    def stats(self) -> dict[str, Any]:
        """Counts and limits; a limit stands beside what it limits."""
        settings, peers, repairs = self.settings, self._peers.values(), self._sender.repairs
        return {
            "transport": settings.label,
            **self.counters.as_dict(),
            "lost_on_purpose": 0 if self._injection is None else self._injection.lost,
            "fragments_pending": sum(peer.reassembly.pending for peer in peers),
            "reassembly_used": max((peer.reassembly.used for peer in peers), default=0),
            "reassembly_bytes": settings.reassembly_bytes,
            "reassembly_expired": self._expired + sum(p.reassembly.expired for p in peers),
            "pieces_sent_again": repairs.resent,
            "repair_used": repairs.used,
            "repair_bytes": settings.repair_bytes,
            "queued_bytes": max((q.size for q in self._sender.queues.values()), default=0),
            "queue_bytes": settings.queue_bytes,
            "under_way": max((peer.flow.used for peer in peers), default=0),
            "max_under_way": min((peer.flow.limit for peer in peers), default=self._share),
            "silences": self._silences + sum(peer.flow.timeouts for peer in peers),
        }
