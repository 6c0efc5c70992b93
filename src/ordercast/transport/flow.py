"""How much may be under way to one peer: UDP itself would drop what a receiver cannot keep.

send datagram k of c bytes     under way += c
the peer has seen k            under way -= what was sent up to k, lost or not
nothing was seen for a while   all of it is taken for lost; half as much may be under way
something was seen             a little more may be under way, up to the limit
the peer asks what was seen    never more than it says that it has sent
"""

from __future__ import annotations

from collections import deque

from ordercast.errors import PeerError

DATAGRAM_COST = 768  # bytes that a datagram takes in the receiver's buffer beside its content
REPORT_BYTES = 16 * 1024  # a receiver tells what it has seen after so much
LEAST_UNDER_WAY = 4 * REPORT_BYTES


class Flow:
    """Both directions between this process and one peer."""

    __slots__ = ("_under_way", "limit", "newest", "room", "since", "timeouts", "unreported", "used")

    def __init__(self, limit: int, now: float) -> None:
        self.limit = max(limit, LEAST_UNDER_WAY)
        self.room = self.limit  # how much may be under way at present
        self.used = 0  # how much is
        self.since = now  # when it became full, or the peer then told what it has seen
        self.timeouts = 0
        self.newest = 0  # highest number that came from the peer
        self.unreported = 0  # bytes that came since it was told
        self._under_way: deque[tuple[int, int]] = deque()  # (number, cost)

    def set_limit(self, limit: int) -> None:
        """The receiver's buffer is shared by more senders, or by fewer."""
        self.limit = max(limit, LEAST_UNDER_WAY)
        self.room = min(self.room, self.limit)

    @property
    def is_full(self) -> bool:
        """Must the next datagram wait?"""
        return self.used >= self.room

    def sent(self, number: int, size: int, now: float) -> None:
        """A datagram left."""
        cost = size + DATAGRAM_COST
        if self.used < self.room <= self.used + cost:
            self.since = now
        self._under_way.append((number, cost))
        self.used += cost

    def seen(self, number: int, now: float) -> None:
        """The peer has got what we sent up to this number, or will never get it."""
        under_way = self._under_way
        while under_way and under_way[0][0] <= number:
            self.used -= under_way.popleft()[1]
            self.since = now
            self.room = min(self.limit, self.room + DATAGRAM_COST)

    def is_silent(self, now: float, patience: float) -> bool:
        """Has a peer that others wait for told nothing for so long?"""
        return self.is_full and now - self.since >= patience

    def give_up(self, now: float, patience: float) -> None:
        """If the peer is silent for so long, what is under way counts as lost."""
        if not self.is_silent(now, patience):
            return
        self._under_way.clear()
        self.used = 0
        self.since = now
        self.room = max(LEAST_UNDER_WAY, self.room // 2)
        self.timeouts += 1

    def came(self, number: int, size: int) -> None:
        """A datagram of the peer."""
        self.newest = max(self.newest, number)
        self.unreported += size + DATAGRAM_COST

    def asked(self, last_sent: int) -> None:
        """The peer wants a report, and says which number it sent last; 0: it does not say.

        Somebody may have sent one datagram with number 2**64 - 1 in its name. Without its own word
        that number would be reported for ever, and the peer would never learn what has come.
        """
        if last_sent:
            self.newest = min(self.newest, last_sent)

    @property
    def owes_report(self) -> bool:
        """Is it time to tell what was seen?"""
        return self.unreported >= REPORT_BYTES

    def report(self) -> int:
        """The number to tell the peer."""
        self.unreported = 0
        return self.newest


def check_seen(number: int, last_sent: int) -> None:
    """A peer cannot have seen what was never sent."""
    if number > last_sent:
        raise PeerError(f"datagram {number} is called seen, but only {last_sent} were sent")
