"""Faults in basic, reliable, FIFO and causal multicast."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ordercast.core.events import Kept, Receive
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import Options, on
from ordercast.protocols.basic import Basic, BasicData
from ordercast.protocols.fifo import Fifo
from ordercast.protocols.reliable import Reliable, ReliableData
from ordercast.protocols.vector import CausalVector, Place, Stamped


class BasicCalledReliable(Basic):
    """Promises agreement, and does nothing for it."""

    declaration = msgspec.structs.replace(Basic.declaration, promises=Reliable.declaration.promises)


class TrustingBasic(Basic):
    """B-multicast as the slide prints it: what arrives is delivered. Right on a FIFO link only."""

    declaration = msgspec.structs.replace(Basic.declaration, network="N2")

    @on(BasicData)
    def on_DATA(self, q: ProcessId, g: GroupId, data: BasicData, m: bytes) -> None:
        self.received[q].add(data.n)
        self.deliver(g, q, data.n, m)


class DeliversBeforeRelaying(Reliable):
    """Sends "with threads": the application has the message before a packet has left."""

    def __init__(self, me: ProcessId, options: Options | None = None) -> None:
        super().__init__(me, options)
        self.in_threads: list[tuple[ReliableData, bytes]] = []

    def on_multicast(self, g: GroupId, m: bytes) -> None:
        n = self.stability[g].next_number()
        self.msgReceived[self.me].add(n)
        self.deliver(g, self.me, n, m)
        self.start_thread(g, ReliableData(self.me, n, self.stability[g].own_stable()), m)

    @on(ReliableData)
    def on_DATA(self, src: ProcessId, g: GroupId, data: ReliableData, m: bytes) -> None:
        if self.msgReceived[data.origin].add(data.n):
            self.deliver(g, data.origin, data.n, m)
            self.start_thread(g, data, m)

    def start_thread(self, g: GroupId, data: ReliableData, m: bytes) -> None:
        self.in_threads.append((data, m))
        self.set_timer(g, "thread", 1)

    def on_timer(self, g: GroupId, name: str) -> None:
        super().on_timer(g, name)
        if name == "thread":
            for data, m in self.in_threads:
                self.b_multicast(g, data, m)
            self.in_threads = []


class AcceptsAnyLaterNumber(Fifo):
    """Takes n > R for "next in order"."""

    def hold_back(self, g: GroupId, frame: Kept) -> None:
        if frame.n > self.R[frame.origin]:
            self.R[frame.origin] = frame.n
            self.deliver(g, frame.origin, frame.n, frame.payload)


class WakesOnlyOnce(Fifo):
    """What a frame releases is delivered; what *that* releases is forgotten."""

    def hold_back(self, g: GroupId, frame: Kept) -> None:
        q = frame.origin
        if frame.n != self.R[q] + 1:
            self.held.hold((q, frame.n - 1), frame)
            return
        for ready in (frame, *self.held.release((q, frame.n))):
            self.R[q] = ready.n
            self.deliver(g, q, ready.n, ready.payload)


class FifoIgnoresEra(Fifo):
    """Reads a packet of the old view as if its number were of the new one."""

    def receive(self, packet: Receive) -> None:
        view = self.views.get(packet.group)
        era = packet.era if view is None else view.era
        super().receive(msgspec.structs.replace(packet, era=max(era, packet.era)))


class FifoWithoutFlush(Fifo):
    """Begins the next view without settling the old one."""

    def on_flush(self, g: GroupId, union: Sequence[Kept]) -> None:
        self.held.clear()


class CountsReceived(CausalVector):
    """V[k] counts what was received from k, held back or not."""

    def awaited(self, j: Place, Vj: tuple[int, ...]) -> tuple[Place, int] | None:
        if Vj[j] != self.V[j] + 1:
            return j, Vj[j] - 1
        for q, k in self.index.items():
            received = self.received[q].mark + len(self.received[q].early)
            if Vj[k] > max(self.V[k], received) and k != j:
                return k, Vj[k]
        return None


class TestsItsOwnCopy(CausalVector):
    """Applies the wait to every copy, its own too, after raising V[i]."""

    __test__ = False

    def on_multicast(self, g: GroupId, m: bytes) -> None:
        i = self.index[self.me]
        self.V[i] += 1
        n = self.stability[g].next_number()
        V = tuple(self.V)
        self.b_multicast(g, Stamped(V, self.stability[g].own_stable()), m)
        self.hold_back(g, Kept(self.me, n, V, m))


class StableWhenReceived(CausalVector):
    """Acknowledges what it still holds back; what all acknowledged is left out of a flush."""

    @on(Stamped)
    def on_STAMPED(self, pj: ProcessId, g: GroupId, stamped: Stamped, m: bytes) -> None:
        super().on_STAMPED(pj, g, stamped, m)
        n = stamped.V[self.index[pj]]
        if n not in self.stability[g].taken[pj]:
            self.stability[g].take(self, pj, n)

    def unstable(self, g: GroupId) -> tuple[Kept, ...]:
        return tuple(
            kept for kept in super().unstable(g) if kept.n > self.stability[g].stable[kept.origin]
        )
