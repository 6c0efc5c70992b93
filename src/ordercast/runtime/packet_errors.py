"""Bugs in Ordercast that a packet of a peer reveals.

Whatever a peer sends, it must not end this node: its connection ends. But a machine that raises
anything other than a `PeerError` has a bug, too, so each such error is counted, and logged with its
traceback: once for each peer, kind of packet and kind of error.
"""

from __future__ import annotations

import logging

from ordercast.errors import PeerError

log = logging.getLogger("ordercast.runtime.packet_errors")

LOGGED = 1024  # different errors that are in the log


class PacketErrors:
    """Counts and logs such errors, for one node."""

    def __init__(self) -> None:
        self.count = 0
        self.last = ""
        self._logged: set[tuple[str, str, str]] = set()

    def reason_for(self, who: str, kind: str, error: Exception) -> str:
        """Why the connection of that peer ends."""
        if isinstance(error, PeerError):
            return str(error)
        name = type(error).__name__
        self.count += 1
        self.last = f"{name} while {kind} of {who} was handled"
        if (who, kind, name) not in self._logged:
            if len(self._logged) >= LOGGED:
                self._logged.clear()
            self._logged.add((who, kind, name))
            log.error(
                "%s: this is a bug in Ordercast that the peer revealed. Its connection is closed, "
                "and this node goes on. Please report it", self.last, exc_info=error,
            )  # fmt: skip
        return f"its {kind} could not be handled: {name}: {error}"

    def stats(self) -> dict[str, object]:
        """The number of errors, and the last one in words."""
        return {"count": self.count, "last": self.last}
