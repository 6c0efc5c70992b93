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

from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import on
from ordercast.errors import PeerError
from ordercast.machinery.subgroups import Layout
from ordercast.protocols.two_layered.confirming import MAX_BACKOFF, ConfirmingProtocol
from ordercast.protocols.two_layered.headers import (
    Column,
    Found,
    GlobalFound,
    GlobalLost,
    Lost,
)
from ordercast.protocols.two_layered.layer import Layer, M

MAX_COPIES = 1024  # sent in one `gap_ms`; who asked for more asks again

LOCAL, GLOBAL = "gap", "global gap"  # timers


class RecoveringProtocol(ConfirmingProtocol):
    """The part of a two-layered group that needs no reliable network."""

    def stand(self, layout: Layout, i: Column, u: Column) -> None:
        super().stand(layout, i, u)
        self.tries = {LOCAL: 0, GLOBAL: 0}  # requests in vain
        self.rsq_then: dict[str, list[int]] = {}  # accepted when the last request was made
        self.copies = 0  # sent since the timer for them started

    def watch(self, g: GroupId) -> None:
        super().watch(g)
        self.watch_gaps(g)

    def watch_gaps(self, g: GroupId) -> None:
        """A message that is only late comes before the timer ends."""
        if LOCAL not in self.running and not self.local.complete():
            self.start_timer(g, LOCAL, self.patience(LOCAL))
        if self.main and GLOBAL not in self.running and not self.main.complete():
            self.start_timer(g, GLOBAL, self.patience(GLOBAL))

    def patience(self, layer: str) -> int:
        """Milliseconds until the next request. Members wait differently: not all ask at once."""
        gap_ms, size = self.options.gap_ms, len(self.local.rsq)
        own_share = gap_ms * self.u // (2 * size)
        return own_share + gap_ms * min(1 << self.tries[layer], MAX_BACKOFF)

    def on_timer(self, g: GroupId, name: str) -> None:
        super().on_timer(g, name)
        if not self.layout.subgroups:
            return
        if name == "copies":
            self.copies = 0
        elif name == LOCAL:
            for u, to, numbers in self.requests(g, LOCAL, self.local):
                self.to((self.layout.subgroups[self.i][to],), g, Lost(u, numbers))
            self.watch_gaps(g)
        elif name == GLOBAL and self.main is not None:
            for i, to, numbers in self.requests(g, GLOBAL, self.main):
                self.to((self.layout.gateways[to],), g, GlobalLost(i, numbers))
            self.watch_gaps(g)

    def requests(
        self, g: GroupId, name: str, layer: Layer[M]
    ) -> Iterator[tuple[Column, Column, tuple[int, ...]]]:
        """(whose messages, whom to ask, which)"""
        moved = self.rsq_then.get(name) != layer.rsq
        self.rsq_then[name] = layer.rsq[:]
        self.tries[name] = tries = 0 if moved else self.tries[name] + 1
        for u, numbers in layer.lost():
            holders = layer.holders(u, numbers[0])
            to = holders[tries % len(holders)]
            last = layer.top[u] if to == u else layer.ack[to][u]
            wanted = tuple(n for n in numbers if n < last)[: self.options.fetch_batch]
            self.note("nack", g, self.me, 0, f"{len(wanted)} of column {u} from {to}")
            yield u, to, wanted

    @on(Lost)
    def on_LOST(self, p: ProcessId, g: GroupId, lost: Lost, m: bytes) -> None:
        self.column_of(p)
        for _, message, payload in self.stored(g, self.local, lost.u, lost.numbers):
            self.to((p,), g, Found(lost.u, message), payload)

    @on(GlobalLost)
    def on_GLOBAL_LOST(self, p: ProcessId, g: GroupId, lost: GlobalLost, m: bytes) -> None:
        _, main = self.subgroup_of(p)
        for _, message, payload in self.stored(g, main, lost.i, lost.numbers):
            self.to((p,), g, GlobalFound(lost.i, message), payload)

    def stored(
        self, g: GroupId, layer: Layer[M], column: Column, numbers: tuple[int, ...]
    ) -> Iterator[tuple[object, M, bytes]]:
        """Of these messages what is here, as far as the limit allows."""
        if not 0 <= column < len(layer.store):
            raise PeerError(f"there is no column {column}")
        here = [n for n in numbers[: self.options.fetch_batch] if n in layer.store[column]]
        for number in here[: MAX_COPIES - self.copies]:
            self.note("retransmit", g, self.me, 0, f"number {number} of column {column}")
            self.copies += 1
            yield layer.store[column][number]
        if self.copies:
            self.start_timer(g, "copies", self.options.gap_ms)
