"""A link between two processes: from lossy, duplicating and reordering (N0) to reliable FIFO (N2).

Source      000 to 004 all assume reliable channels; this is the textbook construction.
Guarantees  what is sent to a live peer arrives once, in the order of sending.
Needs       nothing (N0).
Costs       two integers in every header; one acknowledgement per `ack_every` packets or delay.

    send(m) to q             s := s + 1;  unacked[s] := m;  transmit <m, s, ack>
    receive(<m, s, ack>)     unacked := those above ack
                             if s = r + 1: r := s, deliver m, then what waited behind it
                             else if s > r: keep it; otherwise it is a repeat
    acknowledge r            with the next packet to q, or alone after a while; alone it also says
                             which packets lack below the highest that came
    no progress for a while  transmit again the oldest that is unacknowledged, what q lacks, and
                             what is above the highest that came to q

One link carries all groups that two processes share, so order between groups is kept too.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import msgspec

from ordercast.core.events import Receive
from ordercast.core.ids import GroupId
from ordercast.core.state import PlainState
from ordercast.errors import PeerError

LINK_GROUP: GroupId = 0  # packets of the links themselves belong to no group
MAX_LACKS = 64  # named in one acknowledgement: of more, the first


class Linked(msgspec.Struct, frozen=True, array_like=True):
    """Packet s of this link, carrying `header`; everything up to `ack` has arrived here."""

    s: int
    ack: int
    header: msgspec.Struct


class LinkAck(msgspec.Struct, frozen=True, array_like=True):
    """Everything up to `ack` has arrived here; of what was sent up to `top` these lack."""

    ack: int
    lacks: tuple[int, ...] = ()
    top: int = 0  # the highest that arrived, if any lack


Packet = tuple[GroupId, int, msgspec.Struct, bytes]
"""(group, era, header, payload), as it is transmitted"""


class Link(PlainState):
    """One side of the link to one peer."""

    def __init__(self, ack_every: int, window: int) -> None:
        self.s = 0  # packets sent
        self.unacked: dict[int, Packet] = {}  # sent, not acknowledged
        self.r = 0  # packets received in order
        self.ahead: dict[int, Receive] = {}  # received, a predecessor is missing
        self.owed = 0  # packets received since the last acknowledgement
        self.lacks: tuple[int, ...] = ()  # what the peer said that it lacks, ...
        self.top = 0  # ... and the highest that had come to it
        self.seen_unacked = 0  # the oldest unacknowledged packet when last looked at
        self.seen_s = 0  # packets sent when last looked at
        self.repeats = 0  # times it was transmitted again since the peer was last heard or sent to
        self.ack_every = ack_every
        self.window = window  # how far ahead a packet may come

    def wrap(self, group: GroupId, era: int, header: msgspec.Struct, payload: bytes) -> Packet:
        """send(m): number it, keep it, and let it carry our acknowledgement."""
        self.s += 1
        self.repeats = 0
        self.unacked[self.s] = (group, era, header, payload)
        return self._packet(self.s)

    def receive(self, packet: Receive) -> list[Receive]:
        """receive(<m, s, ack>): what may be handed up now, in order."""
        linked = packet.header
        assert isinstance(linked, Linked)
        self.acknowledged(linked.ack)
        self.repeats = 0
        self.owed += 1  # a repeat is acknowledged too: the first answer was lost
        if linked.s <= self.r:
            return []
        if linked.s > self.r + self.window:
            raise PeerError(f"packet {linked.s} lies more than {self.window} above {self.r}")
        group, era, payload = packet.group, packet.era, packet.payload
        self.ahead[linked.s] = Receive(packet.src, group, era, linked.header, payload)
        ready = []
        while (following := self.ahead.pop(self.r + 1, None)) is not None:
            self.r += 1
            ready.append(following)
        return ready

    def acknowledged(self, ack: int) -> None:
        """The peer has everything up to `ack`."""
        if ack > self.s:
            raise PeerError(f"packet {ack} is acknowledged, but only {self.s} were sent")
        while self.unacked and (oldest := next(iter(self.unacked))) <= ack:
            del self.unacked[oldest]
            self.repeats = 0

    def told(self, word: LinkAck) -> None:
        """An acknowledgement came alone."""
        if word.top > self.s or len(word.lacks) > MAX_LACKS:
            raise PeerError(f"{len(word.lacks)} packets up to {word.top} lack; {self.s} were sent")
        self.acknowledged(word.ack)
        self.lacks, self.top = word.lacks, word.top

    def acknowledge(self) -> LinkAck:
        """An acknowledgement that travels alone."""
        self.owed = 0
        if not self.ahead:
            return LinkAck(self.r)
        top = max(self.ahead)
        gaps = (s for s in range(self.r + 1, top) if s not in self.ahead)
        return LinkAck(self.r, tuple(islice(gaps, MAX_LACKS)), top)

    def must_acknowledge(self) -> bool:
        """Have enough packets come in for an answer of its own?"""
        return self.owed >= self.ack_every

    def stalled(self, most: int) -> list[Packet]:
        """What to transmit again, if the oldest unacknowledged packet did not move lately."""
        oldest = next(iter(self.unacked), 0)
        stuck = oldest == self.seen_unacked and oldest > 0
        sent, self.seen_s = self.seen_s, self.s
        self.seen_unacked = oldest
        if not stuck:
            return []
        self.repeats += 1
        return [self._packet(s) for s in islice(self._perhaps_lost(oldest, sent), most)]

    def _perhaps_lost(self, oldest: int, sent: int) -> Iterator[int]:
        """The peer's answer to the oldest brings news. Of the others, what was sent lately waits.

        The peer's word may be old: what it lacked may have come since, and is a repeat.
        """
        yield oldest
        yield from (s for s in self.lacks if s > oldest and s in self.unacked)
        unheard = range(max(oldest, self.top) + 1, sent + 1)
        yield from (s for s in unheard if s in self.unacked)

    def invariants(self) -> None:
        """What must always hold, checked by simulators and explorers after every step."""
        oldest = next(iter(self.unacked), self.s + 1)
        assert oldest + len(self.unacked) == self.s + 1, "what is not acknowledged is kept"
        assert self.s in self.unacked or not self.unacked, "only what was sent is kept"
        assert self.r + 1 not in self.ahead, "what is in turn was handed up"
        in_window = all(self.r < s <= self.r + self.window for s in self.ahead)
        assert in_window, "what waits came before one that is missing"
        assert self.top <= self.s and self.seen_s <= self.s, "the peer lacks only what was sent"

    def _packet(self, s: int) -> Packet:
        if not self.ahead:  # else the peer must learn what lacks, which no packet says
            self.owed = 0
        group, era, header, payload = self.unacked[s]
        return group, era, Linked(s, self.r, header), payload
