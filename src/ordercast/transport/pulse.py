"""A thread that sends heartbeats (pulses) for its node while the event loop is blocked.

It has a socket of its own and shares nothing with the connections, so it never writes into the
middle of a frame, and needs nothing of what TLS keeps. What both sides touch is one object,
`Beating`: the loop writes it, the thread reads it, and each field is replaced as a whole.

The thread does not outlive its node: it ends when it is told to, or when the loop is closed. A
process that was forked has no such thread, and so never speaks for its parent.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Mapping
from time import monotonic
from typing import NamedTuple

from ordercast.core.ids import ProcessId
from ordercast.transport.contract import Address
from ordercast.wire.pulse import SIZE, Pulse, pack_pulse

BEATS = 2  # looks at the event loop in one heartbeat interval
PROOF_EVERY = 40  # looks: so often a pulse is sent in any case, to see whether it arrives
READ_AT_ONCE = 1024  # datagrams in one turn of the loop


class Target(NamedTuple):
    """Another node, as pulses reach it."""

    address: Address
    key: bytes


class Pause(NamedTuple):
    """How regularly the thread looks at the event loop."""

    turned_at: float = 0.0  # the turn of the loop that the thread saw last
    looked_at: float = 0.0  # when the thread looked last
    longest: float = 0.0  # seconds between two looks, since that turn


class Beating:
    """What the thread must know of its node."""

    def __init__(self, me: ProcessId, heartbeat_s: float, stall_s: float) -> None:
        self.me = me
        self.heartbeat_s = heartbeat_s
        self.stall_s = stall_s  # no pulses are sent for a loop that has stood still for longer
        self.targets: Mapping[ProcessId, Target] = {}
        self.turned_at = monotonic()  # when the event loop turned last
        self.pause = Pause()  # of the thread itself
        self.sent = 0  # datagrams
        self.stopped = threading.Event()
        self._looks = 0
        self._number = 0  # of the newest pulse

    def look(self, now: float) -> Pulse | None:
        """The pulse that is to be sent now, if one is."""
        self._looks += 1
        before, turned_at = self.pause, self.turned_at
        longest = before.longest if before.turned_at == turned_at else 0.0
        self.pause = Pause(turned_at, now, max(longest, now - before.looked_at))
        stood = now - turned_at
        is_late = self.heartbeat_s < stood <= self.stall_s
        if not is_late and (stood > self.stall_s or self._looks % PROOF_EVERY != 1):
            return None
        self._number += 1
        return Pulse(self.me, self._number, int(1000 * stood) if is_late else 0)

    def stopped_for(self, now: float) -> float:
        """The longest time for which the thread stood still, too, since the event loop turned. A
        process that is stopped, or gets no processor, sends no pulses."""
        pause = self.pause
        longest = pause.longest if pause.turned_at == self.turned_at else 0.0
        return max(longest, now - pause.looked_at)


class PulseThread:
    """Runs from its first target to `stop`."""

    def __init__(self, beating: Beating, loop: asyncio.AbstractEventLoop) -> None:
        self._beating = beating
        beating.pause = Pause(looked_at=monotonic())
        self._thread = threading.Thread(
            target=_beat, args=(beating, loop), name="ordercast-pulse", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """No pulse leaves after the one that may be under way."""
        self._beating.stopped.set()


def _beat(beating: Beating, loop: asyncio.AbstractEventLoop) -> None:
    sockets: dict[int, socket.socket] = {}
    try:
        while not beating.stopped.wait(beating.heartbeat_s / BEATS) and not loop.is_closed():
            pulse = beating.look(monotonic())
            if pulse is not None:
                _send(beating, pulse, sockets)
    finally:
        for sock in sockets.values():
            sock.close()


def _send(beating: Beating, pulse: Pulse, sockets: dict[int, socket.socket]) -> None:
    for address, key in beating.targets.values():
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        try:
            if family not in sockets:
                sockets[family] = socket.socket(family, socket.SOCK_DGRAM)
                sockets[family].setblocking(False)
            sockets[family].sendto(pack_pulse(pulse, key), address)
            beating.sent += 1
        except OSError:  # no way there now; the next one may arrive
            continue


class PulseEar:
    """The port at which a node hears pulses."""

    def __init__(self, address: Address, heard: Callable[[bytes], None]) -> None:
        """At the number that TCP listens at, or at any other if that is taken. `OSError`."""
        self._heard = heard
        self._loop = asyncio.get_running_loop()
        self._socket = _bound(address)
        self.port: int = self._socket.getsockname()[1]
        self._loop.add_reader(self._socket, self._read)

    def close(self) -> None:
        """Hear no more."""
        self._loop.remove_reader(self._socket)
        self._socket.close()

    def _read(self) -> None:
        for _ in range(READ_AT_ONCE):
            try:
                datagram = self._socket.recv(SIZE + 1)
            except OSError:  # mostly: there is no more
                return
            self._heard(datagram)


def _bound(address: Address) -> socket.socket:
    host, port = address
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for wanted in (port, 0):
        sock = socket.socket(family, socket.SOCK_DGRAM)
        try:
            sock.setblocking(False)
            sock.bind((host, wanted))
            return sock
        except OSError:
            sock.close()
            if not wanted:
                raise
    raise AssertionError("port 0 is bound, or refused")
