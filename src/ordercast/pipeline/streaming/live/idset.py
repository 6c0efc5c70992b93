"""Message ids that are only remembered as "seen", in little space.

Most systems number their messages, so an id is split into a text and the number at its end, and
numbers that follow each other are kept as one range: a million ids `alice/prices/1` ... take the
space of one. Ids without a number are kept one by one. `MOST_KEPT` ranges and such ids are kept.
"""

from __future__ import annotations

import re
from bisect import bisect_right

import msgspec

MOST_KEPT = 50_000  # ranges, and ids without a number, that one set remembers
_NUMBERED = re.compile(r"(.*?)(0|[1-9][0-9]{0,17})\Z", re.DOTALL)


class IdSet(msgspec.Struct):
    """A set of ids that only grows; `forgotten` counts what it could not keep."""

    starts: dict[str, list[int]] = {}  # text before the number -> where each range starts ...
    stops: dict[str, list[int]] = {}  # ... and its last number
    texts: dict[str, None] = {}  # ids without a number, oldest first
    ranges: int = 0
    forgotten: int = 0

    def add(self, name: str) -> None:
        """Remember `name`."""
        match = _NUMBERED.match(name)
        if match is None:
            self.texts[name] = None
        else:
            self._add_number(match[1], int(match[2]))
        if len(self) > MOST_KEPT:
            self._forget_one()

    def _forget_one(self) -> None:
        """The oldest id without a number; if there is none, the lowest range of the oldest text."""
        self.forgotten += 1
        if self.texts:
            del self.texts[next(iter(self.texts))]
            return
        text = next(iter(self.starts))
        del self.starts[text][0], self.stops[text][0]
        self.ranges -= 1
        if not self.starts[text]:
            del self.starts[text], self.stops[text]

    def _add_number(self, text: str, number: int) -> None:
        starts = self.starts.setdefault(text, [])
        stops = self.stops.setdefault(text, [])
        at = bisect_right(starts, number)
        if at and number <= stops[at - 1]:
            return
        follows = at > 0 and stops[at - 1] == number - 1
        precedes = at < len(starts) and starts[at] == number + 1
        if follows and precedes:
            stops[at - 1] = stops.pop(at)
            del starts[at]
            self.ranges -= 1
        elif follows:
            stops[at - 1] = number
        elif precedes:
            starts[at] = number
        else:
            starts.insert(at, number)
            stops.insert(at, number)
            self.ranges += 1

    def __contains__(self, name: str) -> bool:
        match = _NUMBERED.match(name)
        if match is None:
            return name in self.texts
        starts = self.starts.get(match[1])
        if starts is None:
            return False
        at = bisect_right(starts, int(match[2]))
        return at > 0 and int(match[2]) <= self.stops[match[1]][at - 1]

    def __len__(self) -> int:
        """How many things are kept: ranges, and ids without a number."""
        return len(self.texts) + self.ranges
