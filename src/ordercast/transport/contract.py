"""Limits, counters and callbacks of connections and of datagram endpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

from ordercast.core.ids import ProcessId
from ordercast.errors import ConfigError
from ordercast.wire.control import Hello
from ordercast.wire.frame import FIXED_SIZE, Frame

if TYPE_CHECKING:
    from ordercast.transport.connection import Connection

Address = tuple[str, int]

KiB = 1024
MiB = 1024 * KiB


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of one connection. Reaching one is visible: a callback, a count or a reason."""

    max_frame: int = 16 * MiB  # bytes of one frame, in either direction
    hello_timeout_s: float = 5.0  # a peer that has not said Hello by then is closed
    max_unknown: int = 512  # accepted connections without a Hello; the oldest makes way
    max_unknown_per_host: int = 384  # of those, from one host
    unknown_stay_s: float = 1.0  # none of them makes way for its own host before
    max_stranger_frame: int = 384 * KiB  # bytes of one frame of a peer that was not let in
    max_stranger_bytes: int = 16 * MiB  # kept of all such peers, in both directions
    high_water: int = 1 * MiB  # bytes buffered: `on_congested`
    low_water: int = 256 * KiB  # bytes buffered: `on_writable` again
    max_buffered: int = 256 * MiB  # bytes buffered: the peer is given up
    close_timeout_s: float = 2.0  # what is still buffered after `close` is dropped after this

    def __post_init__(self) -> None:
        if self.max_frame <= FIXED_SIZE:
            raise ConfigError(f"max_frame={self.max_frame} must exceed {FIXED_SIZE} bytes")
        if not 0 <= self.low_water <= self.high_water <= self.max_buffered:
            raise ConfigError(
                f"low_water={self.low_water}, high_water={self.high_water}, "
                f"max_buffered={self.max_buffered}: each must be at least the one before it"
            )


class Counters:
    """Totals over the connections that share this object."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "congested",
        "faults",
        "frames_in",
        "frames_out",
        "hello_timeouts",
        "opened",
        "reads",
        "refused",
        "turned_away",
        "writes",
    )

    def __init__(self) -> None:
        self.opened = 0  # connections with a Hello from both sides
        self.refused = 0  # answered with a Refuse, by this side or the other
        self.turned_away = 0  # closed because others needed the place: it was nobody's
        self.hello_timeouts = 0
        self.faults = 0  # closed for bytes that are not frames of ours
        self.congested = 0  # times that high_water was reached
        self.reads = 0  # pieces of the stream handed over by the event loop
        self.writes = 0  # pieces handed to the event loop: at most one per connection and turn
        self.frames_in = 0
        self.frames_out = 0
        self.bytes_in = 0
        self.bytes_out = 0

    def as_dict(self) -> dict[str, int]:
        """Every total by name."""
        return {name: getattr(self, name) for name in self.__slots__}


class DatagramCounters:
    """What an endpoint of datagrams has done so far."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "datagrams_in",
        "datagrams_late",
        "datagrams_lost_here",
        "datagrams_out",
        "datagrams_refused",
        "not_for_us",
        "receive_errors",
        "repeats_spared",
        "sends_delayed",
    )

    def __init__(self) -> None:
        self.datagrams_in = 0  # of peers, for this node
        self.datagrams_out = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.datagrams_refused = 0  # malformed, or of nobody in the cluster
        self.datagrams_late = 0  # of a node that is gone
        self.not_for_us = 0  # heard in the multicast group, for others
        self.datagrams_lost_here = 0  # the queue was full, or the system refused to send
        self.receive_errors = 0  # the system refused to hand over what came
        self.sends_delayed = 0  # the system's buffer was full
        self.repeats_spared = 0  # packets sent again before they had left

    def as_dict(self) -> dict[str, int]:
        """Every total by name."""
        return {name: getattr(self, name) for name in self.__slots__}


class DatagramHandler(Protocol):
    """The owner of an endpoint of datagrams."""

    def on_datagrams(self, pid: ProcessId, frames: list[Frame]) -> None:
        """Frames of a peer: some may be missing, come twice, or late."""


class ConnectionHandler(Protocol):
    """The owner of connections. Every call comes from the event loop, one at a time.

    A `PeerError` raised by `on_hello` or `on_frames` closes that connection with its text as the
    reason, and is counted.
    """

    def on_hello(self, conn: Connection, hello: Hello) -> None:
        """The peer said who it is, and it fits. An accepting side may `conn.refuse` it here."""

    def on_frames(self, conn: Connection, frames: list[Frame]) -> None:
        """At least one frame, in the order in which they left: see `backlog`."""

    def on_congested(self, conn: Connection) -> None:
        """The peer reads too slowly: `high_water` bytes are buffered."""

    def on_writable(self, conn: Connection) -> None:
        """After `on_congested`: `low_water` was reached, and nothing is left in the backlog."""

    def on_closed(self, conn: Connection, reason: str) -> None:
        """The last call, once for every connection that was accepted or had its `on_hello`.

        `conn.hello` is None if an accepted one never got so far.
        """
