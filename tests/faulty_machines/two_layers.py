"""Faults in the two-layered group (002), as it is printed and as one may read it."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from operator import le

import msgspec

from ordercast.core.events import Kept
from ordercast.core.ids import GroupId
from ordercast.protocols.two_layered.group import TwoLayered
from ordercast.protocols.two_layered.headers import Column, Vector
from ordercast.protocols.two_layered.layer import Id, Layer


class FifoLayer(Layer[msgspec.Struct]):
    """A message is accepted in the order of its sender alone, as section 2.2 says."""

    def awaited(self, u: Column, seq: int) -> Id | None:
        return None if seq == self.rsq[u] else (u, seq - 1)


class AcceptsBySenderAlone(TwoLayered):
    """Vectors move, and gateways forward, on acceptance: section 4 as printed."""

    @staticmethod
    def new_layer(size: int, me: Column, limit: int) -> Layer[msgspec.Struct]:
        return FifoLayer(size, me, limit)


class PreacknowledgedByTheRules(AcceptsBySenderAlone):
    """The same; what is pre-acknowledged is delivered, first what precedes by ordering rule 1."""

    def release(self, g: GroupId) -> None:
        while ready := [id for id in self.queue if self.reached[-2][id[0]] > id[1]]:
            first = next((id for id in ready if self.is_first(id)), None)
            if first is None:
                return
            rest = deque(id for id in self.queue if id != first)
            self.queue = deque((first,))
            super().release(g)
            self.queue = rest

    def forget(self, g: GroupId) -> None:
        return  # what it delivers out of turn is counted as if it came in turn

    def is_first(self, id: Id) -> bool:
        return not any(self.precedes(other, id) for other in self.queue if other != id)

    def precedes(self, one: Id, other: Id) -> bool:
        first, second = (self.local.store[u][seq][1] for u, seq in (one, other))
        return below(first.rsq, second.rsq) and below(first.RSQ, second.RSQ)


def below(one: Vector, other: Vector) -> bool:
    return one != other and all(map(le, one, other))


class LooseLayer(Layer[msgspec.Struct]):
    """The own entry of a vector may be any."""

    def check_own(self, u: Column, seq: int, vector: Vector) -> None:
        return


class CountsAfterwards(TwoLayered):
    """M.RSQ_i := GSQ, then GSQ := GSQ + 1: who depends on M does not wait for M."""

    @staticmethod
    def new_layer(size: int, me: Column, limit: int) -> Layer[msgspec.Struct]:
        return LooseLayer(size, me, limit)

    def with_GSQ(self, RSQ: Vector) -> Vector:
        assert self.main is not None
        return (*RSQ[: self.i], self.main.seq, *RSQ[self.i + 1 :])


class HandsRoundWhatWaits(TwoLayered):
    """At a view change, whoever has a message supplies it, accepted or not."""

    def unstable(self, g: GroupId) -> tuple[Kept, ...]:
        waiting = (
            Kept(message.sp, message.n, (sum(message.RSQ),), payload)
            for _, message, payload in self.local.waiting()
        )
        return (*super().unstable(g), *waiting)


class GatewaysNumbersDecide(TwoLayered):
    """At a view change, a message that was forwarded has its place by the gateway's number."""

    @staticmethod
    def better(one: Kept, other: Kept) -> Kept:
        return max(one, other)


class SubgroupsFlushAlone(TwoLayered):
    """At a view change each subgroup settles what its own members said, and the new gateway goes
    on with what comes: nobody asks what the old one had forwarded."""

    def on_flush(self, g: GroupId, union: Sequence[Kept]) -> None:
        inside = self.layout.subgroups[self.i]
        super().on_flush(g, [frame for frame in union if frame.origin in inside])


class NeverConfirmsAlone(TwoLayered):
    """Confirmations ride on messages only: a lost last message leaves no gap to see."""

    def tell(self, g: GroupId) -> None:
        return

    def speak_up(self, g: GroupId) -> None:
        return
