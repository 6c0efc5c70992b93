"""Two nodes say different things of one message: one of them lies, and which one nobody can tell.

So no connection ends, and both are named: in the log, once for each two of them, and in `stats()`.
"""

from __future__ import annotations

import logging

log = logging.getLogger("ordercast.runtime.conflicts")

LOGGED = 1024  # pairs of nodes that are in the log


class Conflicts:
    """Counts the contradictions that one node has met."""

    def __init__(self) -> None:
        self.count = 0
        self.last = ""
        self._logged: set[tuple[str, str]] = set()

    def note(self, origin: str, relay: str, group: str, n: int) -> None:
        """The relay brought another body of frame n of the origin than the origin itself."""
        self.count += 1
        self.last = f"{origin} and {relay} say different things of frame {n} of {origin} in {group}"
        if (origin, relay) not in self._logged:
            if len(self._logged) >= LOGGED:
                self._logged.clear()
            self._logged.add((origin, relay))
            log.warning("%s: one of the two lies", self.last)

    def stats(self) -> dict[str, object]:
        """The number of contradictions, and the last one in words."""
        return {"count": self.count, "last": self.last}
