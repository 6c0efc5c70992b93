"""Message ids that are only remembered as "seen", in little space.

Most systems number their messages, so an id is split into a text and the number at its end, and
numbers that follow each other are kept as one range: a million ids `alice/prices/1` ... take the
space of one. Ids without a number are kept one by one, the newest `MOST_TEXTS` of them.
"""

from __future__ import annotations

import re
from bisect import bisect_right

import msgspec

MOST_TEXTS = 50_000  # ids without a number that one set remembers
_NUMBERED = re.compile(r"(.*?)(0|[1-9][0-9]{0,17})\Z", re.DOTALL)


class IdSet(msgspec.Struct):
    """A set of ids that only grows; `forgotten` counts what it could not keep."""

    starts: dict[str, list[int]] = {}  # text before the number -> where each range starts ...
    stops: dict[str, list[int]] = {}  # ... and its last number
    texts: dict[str, None] = {}  # ids without a number, oldest first
    forgotten: int = 0

    def add(self, name: str) -> None:
        """Remember `name`."""
        match = _NUMBERED.match(name)
        if match is None:
            self.texts[name] = None
            if len(self.texts) > MOST_TEXTS:
                del self.texts[next(iter(self.texts))]
                self.forgotten += 1
            return
        self._add_number(match[1], int(match[2]))

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
        elif follows:
            stops[at - 1] = number
        elif precedes:
            starts[at] = number
        else:
            starts.insert(at, number)
            stops.insert(at, number)

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
        return len(self.texts) + sum(map(len, self.starts.values()))
