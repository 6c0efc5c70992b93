"""Pulses: heartbeats that do not need the event loop. To which nodes they go, and what comes.

Two nodes give each other a key on their connection. While the event loop of one stands still, a
thread of it sends pulses to the other (`ordercast.transport.pulse`). A pulse counts as a heartbeat,
and as nothing else: the machine of the cluster is told `Heard`, and decides as before. After
`stall_ms` the thread sends no more, so that a node whose program will never go on is excluded. And
when the others need an answer of such a node to go on at all, they wait for it no longer than for a
silent one.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from time import monotonic
from typing import TYPE_CHECKING, Any

from ordercast.core.ids import ProcessId
from ordercast.errors import PeerError
from ordercast.process.commands import Heard
from ordercast.runtime.addresses import parse_address
from ordercast.runtime.control import PulseKey
from ordercast.runtime.peers import datagram_address
from ordercast.transport.connection import Connection
from ordercast.transport.pulse import BEATS, Beating, PulseEar, PulseThread, Target
from ordercast.wire.pulse import KEY_BYTES, Pulse, sender_of, unpack_pulse

if TYPE_CHECKING:
    from ordercast.runtime.presence import Presence

log = logging.getLogger("ordercast.runtime.pulses")

PROVED_SECONDS = 30.0  # a node that sent no pulse for this long after its key cannot reach us


class PulseSource:
    """The pulses of one other node: its key, and the newest pulse that came."""

    def __init__(self, conn: Connection, key: bytes) -> None:
        self.conn = conn  # on which the key was given
        self.key = key
        self.since = monotonic()
        self.number = 0  # of its newest pulse
        self.stood_ms = 0  # ... and what that said
        self.heard_at = 0.0  # ... and when it came


class Pulses:
    """The pulses of this node, while it is in the cluster."""

    def __init__(self, presence: Presence) -> None:
        options = presence.options
        self._presence = presence
        self._beating = Beating(
            presence.me.pid, options.heartbeat_ms / 1000, options.stall_ms / 1000
        )
        self._suspect_s = options.suspect_ms / 1000
        self._interval = self._beating.heartbeat_s / BEATS
        self._from: dict[ProcessId, PulseSource] = {}
        self._heard = 0  # pulses
        self._refused = 0  # datagrams that were no pulses of a peer
        self._loop = asyncio.get_running_loop()
        self._thread: PulseThread | None = None
        self._ear: PulseEar | None = None
        self._turns = self._loop.call_soon(self._turned)
        self._open()

    def _open(self) -> None:
        bound = parse_address("bind", self._presence.peers.address)
        try:
            self._ear = PulseEar(bound, self._on_datagram)
        except OSError as error:
            log.warning("cannot listen for pulses at %s: %s", bound[0], error)

    def stop(self) -> None:
        """Say nothing more, and hear nothing more."""
        self._turns.cancel()
        if self._thread is not None:
            self._thread.stop()
        if self._ear is not None:
            self._ear.close()
            self._ear = None

    # -- the event loop turns ---------------------------------------------------------------------

    def _turned(self) -> None:
        now = monotonic()
        stood = now - self._beating.turned_at
        stopped = self._beating.stopped_for(now)
        self._beating.turned_at = now
        if stood > self._suspect_s and self._thread is not None:
            self._warn_of_stall(stood, stopped)
        self._forget_gone()
        self._turns = self._loop.call_later(self._interval, self._turned)

    def _warn_of_stall(self, stood: float, stopped: float) -> None:
        """`stopped`: how long the thread stood still, too."""
        me, stall_s = self._presence.me.identity, self._beating.stall_s
        if stopped > self._suspect_s:
            log.warning(
                "the whole process of %s stood still for %.1f s and sent no heartbeats: it was "
                "stopped (SIGSTOP, a debugger), it got no processor time, or one call held the "
                "interpreter lock. The other nodes may have excluded it", me, stopped,
            )  # fmt: skip
        elif stood > stall_s:
            log.warning(
                "the event loop of %s stood still for %.1f s; a thread sent its heartbeats for the "
                "first %g s (stall_ms=%d) only. Use asyncio.to_thread for long work: the other "
                "nodes may have excluded this one", me, stood, stall_s, 1000 * stall_s,
            )  # fmt: skip
        else:
            log.warning(
                "the event loop of %s stood still for %.1f s; a thread sent its heartbeats. Use "
                "asyncio.to_thread for long work: all groups wait for this node", me, stood,
            )  # fmt: skip

    def _forget_gone(self) -> None:
        """Forget the nodes to which there is no connection any more."""
        bound = self._presence.peers.bound
        for pid in [pid for pid in self._from if pid not in bound]:
            del self._from[pid]
            self._aim({p: t for p, t in self._beating.targets.items() if p != pid})

    def give_key(self, pid: ProcessId) -> None:
        """There is a new connection to a node. That node gets its key at once: its program may
        block the event loop as soon as it is in the cluster."""
        conn = self._presence.peers.bound[pid]
        known = self._from.get(pid)
        if self._ear is not None and (known is None or known.conn is not conn):
            key = secrets.token_bytes(KEY_BYTES)
            self._from[pid] = PulseSource(conn, key)
            self._presence.peers.tell(pid, PulseKey(self._port, key))

    @property
    def _port(self) -> int:
        """The UDP port for others: the advertised one, if this node listens at the port of TCP."""
        assert self._ear is not None
        peers = self._presence.peers
        if self._ear.port == parse_address("bind", peers.address)[1]:
            return parse_address("advertise", peers.hello.advertise)[1]
        return self._ear.port

    # -- what others say --------------------------------------------------------------------------

    def take_key(self, pid: ProcessId, conn: Connection, message: PulseKey) -> None:
        """Another node wants pulses, at this port and with this key."""
        if not 0 < message.port < 65_536 or len(message.key) != KEY_BYTES:
            raise PeerError(
                f"a port for pulses must be 1 to 65535, and their key must have {KEY_BYTES} bytes"
            )
        target = Target((datagram_address(conn)[0], message.port), message.key)
        self._aim({**self._beating.targets, pid: target})

    def _aim(self, targets: dict[ProcessId, Target]) -> None:
        self._beating.targets = targets
        if targets and self._thread is None and self._beating.stall_s:
            self._thread = PulseThread(self._beating, self._loop)

    def _on_datagram(self, datagram: bytes) -> None:
        sender = sender_of(datagram)
        known = None if sender is None else self._from.get(sender)
        pulse = None if known is None else unpack_pulse(datagram, known.key)
        if known is None or pulse is None:
            self._refused += 1
        elif pulse.number > known.number:
            self._heard += 1
            known.number, known.stood_ms, known.heard_at = pulse.number, pulse.stood_ms, monotonic()
            if self._counts(pulse):
                self._presence.engine.step([Heard(pulse.sender)], pulse.sender)

    def _counts(self, pulse: Pulse) -> bool:
        """While groups change, nothing is delivered in them until all have answered. So an event
        loop that stands still is waited for no longer than a silent node."""
        is_late = pulse.stood_ms > 1000 * self._suspect_s
        return not (is_late and self._presence.engine.stack.is_changing)

    # -- how it is --------------------------------------------------------------------------------

    def standing_still(self) -> dict[str, float]:
        """Nodes whose event loop stands still now, and since how many seconds."""
        now, fresh = monotonic(), 2 * self._beating.heartbeat_s
        names = self._presence.directory.names
        return {
            names[pid]: round(known.stood_ms / 1000 + now - known.heard_at, 1)
            for pid, known in self._from.items()
            if known.stood_ms and now - known.heard_at < fresh and pid in names
        }

    def stats(self) -> dict[str, Any]:
        """For the status."""
        now, names = monotonic(), self._presence.directory.names
        unheard = [
            names[pid]
            for pid, known in self._from.items()
            if not known.number and now - known.since > PROVED_SECONDS and pid in names
        ]
        return {
            "port": None if self._ear is None else self._ear.port,
            "sent": self._beating.sent,
            "heard": self._heard,
            "refused": self._refused,
            "never_heard_from": unheard,
            "standing_still": self.standing_still(),
        }
