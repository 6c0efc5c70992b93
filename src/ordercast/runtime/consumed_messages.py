"""Which messages were taken since a place in the stream, whatever the order they came in.

A message is known by its sender and its number. Numbers go on for as long as the sender lives, so
in most orders there is one range for each sender.
"""

from __future__ import annotations

from bisect import bisect_right

from ordercast.core.ids import ProcessId

MAX_RANGES = 16_384  # beyond this a state is not given: what it holds cannot be said any more

Ranges = tuple[tuple[ProcessId, tuple[tuple[int, int], ...]], ...]
"""(sender, ((first number, last number), ...)), as it travels"""


class ConsumedMessages:
    """Messages by sender and number."""

    def __init__(self, ranges: Ranges = ()) -> None:
        self._firsts: dict[ProcessId, list[int]] = {}  # of each range, ascending ...
        self._lasts: dict[ProcessId, list[int]] = {}  # ... and where it ends
        for sender, spans in ranges:
            for first, last in spans:
                if last >= first:
                    self.add(sender, first, last - first + 1)

    def add(self, sender: ProcessId, first: int, count: int) -> None:
        """These messages of the sender were taken."""
        if not count:
            return
        firsts = self._firsts.setdefault(sender, [])
        lasts = self._lasts.setdefault(sender, [])
        last = first + count - 1
        begin = bisect_right(lasts, first - 2)  # the first range that touches this one
        end = bisect_right(firsts, last + 1)  # ... and the one after the last such
        if begin < end:
            first, last = min(first, firsts[begin]), max(last, lasts[end - 1])
        firsts[begin:end] = [first]
        lasts[begin:end] = [last]

    def has(self, sender: ProcessId, number: int) -> bool:
        """Was this message taken?"""
        firsts = self._firsts.get(sender)
        if firsts is None:
            return False
        place = bisect_right(firsts, number) - 1
        return place >= 0 and number <= self._lasts[sender][place]

    def covers(self, other: ConsumedMessages) -> bool:
        """Does this have all that the other has?"""
        return all(
            self._has_span(sender, *span) for sender, spans in other.plain() for span in spans
        )

    def _has_span(self, sender: ProcessId, first: int, last: int) -> bool:
        firsts = self._firsts.get(sender, [])
        place = bisect_right(firsts, first) - 1
        return place >= 0 and last <= self._lasts[sender][place]

    @property
    def messages(self) -> int:
        """The number of messages."""
        return sum(last - first + 1 for _, spans in self.plain() for first, last in spans)

    @property
    def overfull(self) -> bool:
        """Too many ranges to be sent."""
        return sum(map(len, self._firsts.values())) > MAX_RANGES

    def plain(self) -> Ranges:
        """As it travels."""
        return tuple(
            (sender, tuple(zip(firsts, self._lasts[sender], strict=True)))
            for sender, firsts in self._firsts.items()
        )
