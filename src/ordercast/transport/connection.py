"""One TCP connection: the opening, then frames both ways.

The side that connects sends its Hello at once. The side that accepts answers with its own Hello
or with a Refuse, and nothing else is sent before. So the refusal is the last thing on the wire
and never meets frames on their way, and a stranger learns nothing about the cluster. With a key,
both sides prove it first (`ordercast.transport.greeting`).

All frames of one turn of the event loop leave in one write. Frames that may wait longer leave with
those of a later turn. If the kernel does not take all of them, the rest waits in a backlog, in
which packets of the cluster overtake data (`ordercast.transport.backlog`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

from ordercast.errors import FrameError, PeerError
from ordercast.transport.backlog import Backlog
from ordercast.transport.contract import Address, ConnectionHandler, Counters, Limits
from ordercast.transport.greeting import Greeting
from ordercast.transport.places import Places
from ordercast.transport.tls import fault_of
from ordercast.wire.control import Hello, Opening, Refuse, objection
from ordercast.wire.frame import Splitter
from ordercast.wire.opening import MAX_OPENING, pack_opening, split_opening

LARGE_FRAME = 4096  # bytes, on average, from which on handing frames over one by one is cheaper


class Connection(asyncio.Protocol):
    """One peer. Made by `listen` and `connect` of `ordercast.transport.tcp`."""

    def __init__(
        self,
        mine: Hello,
        handler: ConnectionHandler,
        limits: Limits,
        counters: Counters,
        places: Places[Connection] | None = None,
        key: bytes = b"",
    ) -> None:
        self.mine = mine
        self.handler = handler
        self.limits = limits
        self.counters = counters
        self.accepted = places is not None
        self.peer: Address = ("", 0)
        self.hello: Hello | None = None  # of the peer
        self.refusal: Refuse | None = None  # said by either side
        self.fault: PeerError | None = None  # what the peer did wrong
        self.reason = ""  # why it was closed; empty while it is open
        self._places = places  # where it is counted while it is nobody's
        self._greeting = Greeting(key, "accepts" if self.accepted else "connects")
        self._loop = asyncio.get_running_loop()
        self._stop_handshake: Callable[[], object] | None = None  # while TLS is not there yet
        self._transport: asyncio.Transport | None = None
        self._opening = b""  # of the peer, as far as it came: at most MAX_OPENING bytes
        self._splitter = Splitter(limits.max_frame)
        self._queue: list[bytes] = []  # of this turn, and what may wait longer
        self._queued_bytes = 0
        self._backlog = Backlog()  # what left the queue, and the transport does not take yet
        self._congested = False  # since `on_congested`, until `on_writable`
        self._flush_is_due = False  # at the end of this turn
        self._gathering: asyncio.TimerHandle | None = None  # of what may wait
        self._deadline: asyncio.TimerHandle | None = None  # of the Hello, later of the closing
        self._opened: asyncio.Future[None] = self._loop.create_future()
        self._ended: asyncio.Future[None] = self._loop.create_future()

    # -- sending --------------------------------------------------------------------------------

    def send(self, frame: bytes) -> None:
        """Queue a frame; it leaves at the end of this turn. After `close` it is dropped."""
        assert len(frame) <= self.limits.max_frame, f"{len(frame)} bytes: the peer would refuse it"
        if self.reason:
            return
        if not self._flush_is_due:
            self._flush_is_due = True
            self._loop.call_soon(self._flush)
        self._put(frame)

    def send_within(self, frame: bytes, seconds: float, enough: int) -> None:
        """Queue a frame that may wait. It leaves with the next that may not, as soon as `enough`
        bytes are queued, or after these seconds. It overtakes none that was queued before.
        """
        if self._queued_bytes + len(frame) >= enough:
            self.send(frame)
        elif not self.reason:
            if not self._flush_is_due and self._gathering is None:
                self._gathering = self._loop.call_later(seconds, self._flush)
            self._put(frame)

    def _put(self, frame: bytes) -> None:
        self._queue.append(frame)
        self._queued_bytes += len(frame)

    @property
    def buffered(self) -> int:
        """Bytes that the kernel has not taken yet."""
        if self._transport is None:
            return self._queued_bytes
        waiting = self._queued_bytes + self._backlog.size
        return waiting + self._transport.get_write_buffer_size()

    def _flush(self) -> None:
        self._flush_is_due = False
        self._stop_gathering()
        queue = self._queue
        if not queue or self._transport is None:
            return
        counters = self.counters
        counters.writes += 1
        counters.frames_out += len(queue)
        counters.bytes_out += self._queued_bytes
        if self._backlog or self._queued_bytes > self.limits.high_water or not self._takes_more:
            for frame in queue:
                self._backlog.put(frame)
            self._drain()
        elif self._queued_bytes >= LARGE_FRAME * len(queue):
            self._transport.writelines(queue)  # large frames are not copied together
        else:
            self._transport.write(b"".join(queue))
        self._queue = []
        self._queued_bytes = 0
        self._weigh()
        if self.buffered > self.limits.max_buffered:
            self.abort(f"the peer does not read: more than {self.limits.max_buffered} bytes wait")

    @property
    def _takes_more(self) -> bool:
        assert self._transport is not None
        return self._transport.get_write_buffer_size() <= self.limits.high_water

    def _drain(self, *, all_of_it: bool = False) -> None:
        """Hand on what waits until the transport holds `high_water` bytes; or all of it."""
        assert self._transport is not None
        while self._backlog and (all_of_it or self._takes_more):
            if self._transport.is_closing():
                return  # a write has failed: `connection_lost` follows
            self._transport.write(self._backlog.take())

    # -- closing --------------------------------------------------------------------------------

    def close(self, reason: str) -> None:
        """Send what is queued, then close. The first reason stays."""
        if self.reason:
            return
        self.reason = reason
        self._flush()
        if self._transport is not None:
            self._drain(all_of_it=True)
            self._transport.close()
            self._set_deadline(self.limits.close_timeout_s, self._transport.abort)

    def abort(self, reason: str) -> None:
        """Close at once and drop what is queued."""
        self.reason = self.reason or reason
        self._drop_queue()
        if self._ended.done():
            return
        if self._transport is not None:
            self._transport.abort()
        elif self._stop_handshake is not None:
            self._stop_handshake()

    def refuse(self, reason: str, text: str) -> None:
        """Inside `on_hello` of an accepted connection: answer with a Refuse instead of a Hello."""
        assert self.accepted, "only the side that accepts may refuse"
        self.refusal = Refuse(reason, text)
        self.counters.refused += 1
        self._drop_queue()
        self._say(self.refusal)
        self.close(f"refused: {text}")

    async def opened(self) -> None:
        """Wait until the peer has said Hello, or the connection is gone."""
        await asyncio.shield(self._opened)

    async def closed(self) -> str:
        """Wait until the connection is gone; the reason."""
        await asyncio.shield(self._ended)
        return self.reason

    def _stop_gathering(self) -> None:
        if self._gathering is not None:
            self._gathering.cancel()
            self._gathering = None

    def _drop_queue(self) -> None:
        self._stop_gathering()
        self._queue.clear()
        self._queued_bytes = 0
        self._backlog.clear()

    def _set_deadline(self, seconds: float, then: Callable[[], None]) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self._loop.call_later(seconds, then)

    # -- before it is open ----------------------------------------------------------------------

    def take_place(self) -> None:
        """Take a place among accepted connections without a Hello; another one may have to go."""
        assert self._places is not None
        self._drive_out(self._places.take(self, self._loop.time()))

    def may_begin(self, stop: Callable[[], object]) -> bool:
        """Is its place still its own? If it is needed before it is connected, `stop` is called."""
        self._stop_handshake = stop
        return not self.reason

    def wait_in(self, places: Places[Connection]) -> None:
        """Inside `on_hello`: it said who it is, and is nobody's yet. Little is kept of it."""
        self._places = places
        self._splitter.max_frame = min(self.limits.max_stranger_frame, self.limits.max_frame)
        self._drive_out(places.take(self, self._loop.time()))

    def take_large_frames(self) -> None:
        """It was let in, and may send large frames, although it still has its place."""
        self._splitter.max_frame = self.limits.max_frame

    def leave_place(self) -> None:
        """It belongs to a node from now on, or is gone."""
        if self._places is not None:
            self._places.leave(self)
            self._places = None
            self.take_large_frames()

    def _weigh(self) -> None:
        """Tell how much is kept of one that is nobody's yet."""
        if self._places is not None and self in self._places:
            kept = self._splitter.pending + self.buffered
            self._drive_out(self._places.weigh(self, kept))

    @staticmethod
    def _drive_out(other: Connection | None) -> None:
        if other is not None:
            other.counters.turned_away += 1
            waits = "was not let in" if other.hello is not None else "had not said hello"
            other.leave_place()
            other.abort(f"it {waits}, and its place was needed")

    def never_made(self, error: Exception | None = None) -> None:
        """It ended before it began, because TLS with the other side failed. Else: no effect."""
        if self._transport is None and not self._ended.done():
            if error is not None:
                self._count_fault(PeerError(f"TLS failed: {fault_of(error)}"))
            self.connection_lost(None)

    # -- what the event loop calls --------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one by behaviour only
        self._transport.set_write_buffer_limits(self.limits.high_water, self.limits.low_water)
        host, port = (transport.get_extra_info("peername") or self.peer)[:2]
        self.peer = (host, port)
        self._set_deadline(self.limits.hello_timeout_s, self._hello_late)
        self._stop_handshake = None
        if self.reason:  # its place was needed while TLS began
            self._transport.abort()
        elif not self.accepted:
            self._say(self._greeting.first(self.mine))
        elif self._places is not None and transport.get_extra_info("ssl_object") is not None:
            self._places.renew(self, self._loop.time())  # it has shown a certificate

    def data_received(self, data: bytes) -> None:
        if self.reason:
            return
        self.counters.reads += 1
        self.counters.bytes_in += len(data)
        try:
            while data and self.hello is None and not self.reason:
                data = self._open(data)
            if data and not self.reason:
                frames = self._splitter.feed(data)
                if frames:
                    self.counters.frames_in += len(frames)
                    self.handler.on_frames(self, frames)
                self._weigh()
        except PeerError as fault:
            self._give_up(fault)

    def eof_received(self) -> None:
        # A peer that only stopped sending, and does not read either, would keep us for ever.
        self.close(self._ended_by_peer(None))

    def pause_writing(self) -> None:
        if not self.reason and not self._congested:
            self._congested = True
            self.counters.congested += 1
            self.handler.on_congested(self)

    def resume_writing(self) -> None:
        # Not at once: asyncio calls this while it writes, and if a write that begins in between
        # fails, it ends the connection twice.
        self._loop.call_soon(self._go_on_writing)

    def _go_on_writing(self) -> None:
        if self.reason:
            return
        self._drain()
        if not self._backlog and self._congested:
            self._congested = False
            self.handler.on_writable(self)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._drop_queue()
        self.leave_place()
        self.reason = self.reason or self._ended_by_peer(exc)
        self._splitter = Splitter(self.limits.max_frame)  # whoever knows this connection still
        self._ended.set_result(None)  # ... keeps no half of a frame by it
        if not self._opened.done():
            self._opened.set_result(None)
        if self.accepted or self.hello is not None:
            self.handler.on_closed(self, self.reason)

    # -- the opening ----------------------------------------------------------------------------

    def _open(self, data: bytes) -> bytes:
        """Take the peer's opening; what follows it."""
        kept = len(self._opening)
        self._opening += data[: MAX_OPENING - kept]
        found = split_opening(self._opening)
        if found is None:
            return b""
        message, end = found
        self._opening = b""
        if isinstance(message, Refuse):
            self._take_refusal(message)
        elif isinstance(message, Hello):
            self._take_hello(message)
        else:
            self._say(self._greeting.answer(message, self.mine))
            if self._greeting.trusts and self._places is not None:
                self._places.renew(self, self._loop.time())
        return data[end - kept :]

    def _say(self, message: Opening) -> None:
        self.send(pack_opening(message))

    def _take_hello(self, hello: Hello) -> None:
        self._greeting.check(hello)
        refuse = objection(self.mine, hello)
        if refuse is not None:
            if not self.accepted:
                raise PeerError(f"its hello does not fit, and it did not say so: {refuse.text}")
            self.refuse(refuse.reason, refuse.text)
            return
        self.hello = hello
        self.leave_place()
        if self._deadline is not None:
            self._deadline.cancel()
        if self.accepted:
            self._say(self._greeting.signed(self.mine))
        self.handler.on_hello(self, hello)
        if not self.reason:
            self.counters.opened += 1
        if not self._opened.done():
            self._opened.set_result(None)

    def _take_refusal(self, refuse: Refuse) -> None:
        if self.accepted:
            raise FrameError("it sent a Refuse, and only the side that accepts may")
        if not self._greeting.trusts:
            raise PeerError("it refused before it proved that it has the key")
        self.refusal = refuse
        self.counters.refused += 1
        self.close(f"refused by the peer: {refuse.text}")

    def _hello_late(self) -> None:
        self.counters.hello_timeouts += 1
        self.abort(f"no hello within {self.limits.hello_timeout_s:g} s")

    def _give_up(self, fault: PeerError) -> None:
        self._count_fault(fault)
        self.abort(self.reason)

    def _count_fault(self, fault: PeerError) -> None:
        # The traceback would keep what was read alive, for as long as someone keeps the connection.
        self.fault = fault.with_traceback(None)
        self.fault.__context__ = None
        self.counters.faults += 1
        self.reason = self.reason or f"{type(fault).__name__}: {fault}"

    def _ended_by_peer(self, exc: Exception | None) -> str:
        if exc is not None:
            return f"the connection broke: {fault_of(exc)}"
        if self._splitter.pending:
            return "closed by the peer in the middle of a frame"
        if self.hello is not None:
            return "closed by the peer"
        if not self._greeting.trusts:
            return "closed by the peer before it proved the key: it may have another one, or none"
        hint = "" if self.accepted else ": it may want a key, or another certificate"
        return f"closed by the peer before its hello{hint}"
