"""How many bytes each peer makes this node hold back: what it brought, and what is not in turn yet.

    a large payload comes          it is charged to the peer that brought it
    it is delivered, or sent on    it is charged no longer: the windows of senders bound such ones
    much is charged to one peer    the stack is searched, and what it does not have any more goes
    too much is left               that is a fault of the peer

The machines have limits in frames of their own (`max_held`), each where it holds them. This one is
in bytes, over all groups and all machines, wherever they keep a payload and for whatever reason: a
view that is not installed, a gap, a predecessor in another group, a sequencer that is not named.

A payload is known by its identity. While it is held, no other object can have the same. One that
was dropped is charged until the next search, or until its identity comes again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

import msgspec

from ordercast.core.ids import ProcessId
from ordercast.core.state import PlainState
from ordercast.errors import PeerError

LARGE = 4096  # bytes of a payload; smaller ones are bounded by `max_held` well enough


class HoldBackQuota:
    """The bytes that one node holds back, by the peer that brought them."""

    def __init__(self, limit: int, state: Callable[[], object]) -> None:
        self.limit = limit  # for each peer
        self.searches = 0
        self._state = state
        self._charged: dict[int, tuple[ProcessId, int]] = {}  # identity -> (who brought it, size)
        self._used: dict[ProcessId, int] = {}
        self._search_at: dict[ProcessId, int] = {}  # what is left after a search is no reason ...
        # ... for the next one before as much again has come

    @property
    def most(self) -> int:
        """The largest account; what was dropped lately may be in it."""
        return max(self._used.values(), default=0)

    def came(self, peer: ProcessId, payload: bytes) -> None:
        """A payload of at least LARGE bytes."""
        self.went(payload)  # another one of the same identity was dropped
        size = len(payload)
        self._charged[id(payload)] = (peer, size)
        self._used[peer] = self._used.get(peer, 0) + size

    def went(self, payload: bytes) -> None:
        """It was delivered, or sent on. May be called again."""
        peer, size = self._charged.pop(id(payload), (None, 0))
        if peer is not None:
            self._used[peer] -= size
            if not self._used[peer]:
                del self._used[peer]

    def check(self, peer: ProcessId) -> None:
        """A `PeerError` if too much of what this one brought is held back."""
        if self._used.get(peer, 0) <= self._search_at.get(peer, self.limit // 2):
            return
        self._search()
        used = self._used.get(peer, 0)
        if used > self.limit:
            raise PeerError(
                f"{used} bytes of what it brought are held back, more than {self.limit} "
                "(option max_held_bytes)"
            )
        self._search_at[peer] = min(self.limit, used + self.limit // 2)

    def _search(self) -> None:
        self.searches += 1
        held = set(map(id, payloads_in(self._state())))
        self._charged = {key: owed for key, owed in self._charged.items() if key in held}
        self._used = {}
        for peer, size in self._charged.values():
            self._used[peer] = self._used.get(peer, 0) + size
        self._search_at = {}


def payloads_in(state: object) -> Iterator[bytes]:
    """Every large payload in plain state; one that is there twice may come twice."""
    seen: set[int] = set()
    left = [state]
    while left:
        part = left.pop()
        if isinstance(part, bytes):
            if len(part) >= LARGE:
                yield part
        elif isinstance(part, int | str) or id(part) in seen:
            continue
        elif isinstance(part, dict):
            seen.add(id(part))
            left += part.values()
        elif isinstance(part, list | tuple | set | frozenset | deque):
            seen.add(id(part))
            left += part
        elif isinstance(part, PlainState):
            seen.add(id(part))
            left += part.__dict__.values()
        elif isinstance(part, msgspec.Struct):
            seen.add(id(part))
            left += [getattr(part, name) for name in part.__struct_fields__]
