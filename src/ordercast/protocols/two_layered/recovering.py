"""Losses in a two-layered group, found by numbers and by what others have, and made good.

    number above rsq[u] from u          those between are lost: a gap
    m.rsq[w] or a word above rsq[w]     those between are lost: others have them
    still lost after a while            ask one who has accepted it; in vain: the next one, in the
                                        end the sender
    asked for what is stored            send it again, unchanged

Both layers do the same, each by itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from ordercast.core.protocol import Options
from ordercast.core.state import PlainState
from ordercast.errors import PeerError
from ordercast.protocols.two_layered.headers import Column
from ordercast.protocols.two_layered.layer import Layer, M

MAX_BACKOFF = 32  # requests in vain slow down to so many periods
MAX_COPIES = 1024  # sent in one `gap_ms`; who asked for more asks again

LOCAL, GLOBAL = "gap", "global gap"  # timers, one for each layer


class Recovery(PlainState):
    """What one process asks for in one view, and how much it has sent again. It sends nothing."""

    def __init__(self, u: Column, size: int, options: Options) -> None:
        self.options = options
        self.own_share = options.gap_ms * u // (2 * size) if size else 0
        # ... of u in a subgroup of this size: members wait differently, so not all ask at once
        self.tries = {LOCAL: 0, GLOBAL: 0}  # requests in vain
        self.rsq_then: dict[str, list[int]] = {}  # accepted when the last request was made
        self.copies = 0  # sent since the timer for them started

    def patience(self, layer: str) -> int:
        """Milliseconds until the next request. A message that is only late comes before."""
        return self.own_share + self.options.gap_ms * min(1 << self.tries[layer], MAX_BACKOFF)

    def requests(
        self, name: str, layer: Layer[M]
    ) -> Iterator[tuple[Column, Column, tuple[int, ...]]]:
        """(whose messages, whom to ask, which)"""
        moved = self.rsq_then.get(name) != layer.rsq
        self.rsq_then[name] = layer.rsq[:]
        self.tries[name] = tries = 0 if moved else self.tries[name] + 1
        for u, numbers in layer.lost():
            holders = layer.holders(u, numbers[0])
            to = holders[tries % len(holders)]
            last = layer.top[u] if to == u else layer.ack[to][u]
            yield u, to, tuple(n for n in numbers if n < last)[: self.options.fetch_batch]

    def stored(
        self, layer: Layer[M], column: Column, numbers: tuple[int, ...]
    ) -> Iterator[tuple[int, M, bytes]]:
        """Of these messages what is here, with its number, as far as the limit allows."""
        if not 0 <= column < len(layer.store):
            raise PeerError(f"there is no column {column}")
        here = [n for n in numbers[: self.options.fetch_batch] if n in layer.store[column]]
        for number in here[: MAX_COPIES - self.copies]:
            self.copies += 1
            _, message, payload = layer.store[column][number]
            yield number, message, payload
