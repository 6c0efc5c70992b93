"""Limits the connections that belong to no node yet.

Every connection gets a place. If that is one too many, another connection must go:

    too many of one host       the one of that host that has waited longest
    too many of all hosts      the one that has waited longest of the host with the most
    too many bytes kept        the one of which most is kept

So a host that fills its places with silent connections drives out its own, and one that opens its
connection in a moment is never kept out by those that do not open theirs. Hosts of nodes in the
view are outside the total: whatever others do, they have their own places.

Nobody loses its place to a newcomer of its own host before it had it for `stay_s`, counted from
when it could be heard: the newcomer waits. Otherwise a host that connects again whenever it is
closed would drive out, in a moment, also those of its connections that do speak, and keep this
process busy with nothing else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Generic, Protocol, TypeVar

from ordercast.transport.contract import Address


class Caller(Protocol):
    """An accepted connection."""

    peer: Address


C = TypeVar("C", bound=Caller)


class Places(Generic[C]):
    """Connections in the order in which they came, by host."""

    def __init__(self, most: int, per_host: int, max_bytes: int, stay_s: float = 0.0) -> None:
        self.most = most  # of all hosts that have no node in the view, together
        self.per_host = per_host
        self.max_bytes = max_bytes  # kept of all of them, in both directions
        self.stay_s = stay_s
        self.kept = 0  # bytes
        self._reserved: frozenset[str] = frozenset()  # hosts of nodes in the view
        self._host_of: dict[C, str] = {}
        self._since: dict[C, float] = {}  # it has its place, could be heard, or proved something
        self._by_host: dict[str, dict[C, int]] = {}  # bytes kept of each, oldest first

    def reserve(self, hosts: Collection[str]) -> None:
        """Nodes of the view are at these hosts."""
        self._reserved = frozenset(hosts)

    def delay(self, host: str, now: float) -> float:
        """For how many seconds the next connection of this host must wait for its place."""
        other = self._in_the_way(host)
        if other is None or self._host_of[other] != host:
            return 0.0
        return min(self.stay_s, max(0.0, self._since[other] + self.stay_s - now))

    def take(self, conn: C, now: float = 0.0) -> C | None:
        """A place for this one; the connection that must go for it. The time of one that cannot be
        heard yet is `inf`; `renew` begins its stay."""
        host = conn.peer[0]
        other = self._in_the_way(host)
        self._host_of[conn] = host
        self._since[conn] = now
        self._by_host.setdefault(host, {})[conn] = 0
        return other

    def _in_the_way(self, host: str) -> C | None:
        """The one that must go if one more of this host comes."""
        here = self._by_host.get(host, {})
        if len(here) >= self.per_host:
            return next(iter(here))
        if host in self._reserved or len(self) < self.most:
            return None
        crowds = [held for name, held in self._by_host.items() if name not in self._reserved]
        if sum(map(len, crowds)) < self.most:
            return None
        most = max(map(len, crowds))
        return next(next(iter(held)) for held in crowds if len(held) == most)

    def renew(self, conn: C, now: float) -> None:
        """It can be heard, has shown a certificate, or proved the key: others go before it."""
        here = self._by_host[self._host_of[conn]]
        here[conn] = here.pop(conn)
        self._since[conn] = now

    def weigh(self, conn: C, size: int) -> C | None:
        """So many bytes are kept of this one now; the one that must go if that is too much."""
        here = self._by_host[self._host_of[conn]]
        self.kept += size - here[conn]
        here[conn] = size
        if self.kept <= self.max_bytes:
            return None
        return max(self, key=self._weight)

    def _weight(self, conn: C) -> int:
        return self._by_host[self._host_of[conn]][conn]

    def leave(self, conn: C) -> None:
        """It belongs to a node now, or is gone. May be called again."""
        host = self._host_of.pop(conn, None)
        if host is not None:
            del self._since[conn]
            here = self._by_host[host]
            self.kept -= here.pop(conn)
            if not here:
                del self._by_host[host]

    def __contains__(self, conn: C) -> bool:
        return conn in self._host_of

    def __iter__(self) -> Iterator[C]:
        return iter(self._host_of)

    def __len__(self) -> int:
        return len(self._host_of)
