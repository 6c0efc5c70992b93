"""One layer of a two-layered group: those who broadcast to each other, each with a column.

A subgroup is such a layer, with its gateway in column 0. The gateways are another one. What a
message of either carries is a number of its sender, and a vector of the numbers expected next.

    m from u with number seq   accept it once  seq = rsq[u]  and  rsq[w] >= m.rsq[w] for w != u;
                               then rsq[u] := seq + 1
    m.rsq, from u              ack[u] := m.rsq;  all numbers below m.rsq[w] exist, and u has them
    rsq[w] <= number < top[w]  and it is not here: it is lost

A message is stored until its owner says that it may be forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import ge, le, lt
from typing import Generic, TypeVar

import msgspec

from ordercast.core.holdback import HoldBackQueue
from ordercast.core.state import PlainState
from ordercast.errors import PeerError
from ordercast.protocols.two_layered.headers import Column, Vector

M = TypeVar("M", bound=msgspec.Struct)

Id = tuple[Column, int]  # (sender, its number)


class Layer(PlainState, Generic[M]):
    """What one process knows of one layer in one era."""

    def __init__(self, size: int, me: Column, limit: int) -> None:
        self.me = me
        self.limit = limit  # how far above what is expected a number may lie
        self.rsq = [1] * size  # the number expected next from each; of mine, the next I give
        self.top = [1] * size  # all numbers below this one exist
        self.ack: list[Vector] = [(1,) * size] * size  # ack[u]: what u expects next, as it said
        self.store: list[dict[int, tuple[Vector, M, bytes]]] = [{} for _ in range(size)]
        self.low: Vector = (1,) * size  # all numbers below this one are forgotten
        self.held: HoldBackQueue[Id, Id] = HoldBackQueue()  # under what is awaited

    # -- sending and accepting --------------------------------------------------------------------

    @property
    def seq(self) -> int:
        """The next number of this process."""
        return self.rsq[self.me]

    def count(self) -> int:
        """m.seq := seq;  seq := seq + 1"""
        seq = self.rsq[self.me]
        self.rsq[self.me] = self.top[self.me] = seq + 1
        return seq

    def keep(self, seq: int, vector: Vector, message: M, payload: bytes) -> None:
        """A message of this process: store it."""
        self.store[self.me][seq] = (vector, message, payload)

    def arrive(self, u: Column, seq: int, vector: Vector, message: M, payload: bytes) -> list[Id]:
        """A message of u has come: what can be accepted now, in order."""
        self.learn(u, vector)
        self.check_own(u, seq, vector)
        if seq < self.rsq[u] or seq in self.store[u]:
            return []
        self.store[u][seq] = (vector, message, payload)
        return self._accept([(u, seq)])

    def check_own(self, u: Column, seq: int, vector: Vector) -> None:
        """m.rsq[u] is the number after m.seq."""
        if vector[u] != seq + 1:
            raise PeerError(f"after number {seq} of column {u} comes {seq + 1}, not {vector[u]}")

    def _accept(self, ready: list[Id]) -> list[Id]:
        accepted = []
        for u, seq in ready:  # grows while accepting one message releases others
            awaited = self.awaited(u, seq)
            if awaited is not None:
                self.held.hold(awaited, (u, seq))
                continue
            self.rsq[u] = seq + 1
            accepted.append((u, seq))
            ready += self.held.release((u, seq))
        return accepted

    def awaited(self, u: Column, seq: int) -> Id | None:
        """What a message waits for first: seq = rsq[u] and rsq[w] >= m.rsq[w] for w != u."""
        if seq != self.rsq[u]:
            return u, seq - 1
        return next(self.awaited_of_others(u, seq), None)

    def awaited_of_others(self, u: Column, seq: int) -> Iterator[Id]:
        """Of each other sender the last message that this one comes after, if it is not here."""
        vector = self.store[u][seq][0]
        if sum(map(lt, self.rsq, vector)) > 1:  # its own entry is above, too
            for w, number in enumerate(vector):
                if number > self.rsq[w] and w != u:
                    yield w, number - 1

    # -- what others say --------------------------------------------------------------------------

    def learn(self, u: Column, vector: Vector) -> None:
        """ack[u] := m.rsq, and the numbers below it exist. A PeerError if they cannot."""
        if len(vector) != len(self.rsq):
            raise PeerError(f"a vector of {len(vector)} entries in a layer of {len(self.rsq)}")
        if vector[u] > self.top[u]:
            self.top[u] = self._checked(u, vector[u])
        if not all(map(ge, self.top, vector)):
            self.top = [
                self._checked(w, number) if number > known else known
                for w, (number, known) in enumerate(zip(vector, self.top, strict=True))
            ]
        if vector != self.ack[u]:
            old = self.ack[u]
            self.ack[u] = vector if all(map(ge, vector, old)) else tuple(map(max, vector, old))

    def _checked(self, w: Column, end: int) -> int:
        """Can there be numbers below this one?"""
        most = self.rsq[w] + (0 if w == self.me else self.limit)
        if end > most:
            raise PeerError(f"number {end - 1} of column {w} is named, far above {most}")
        return end

    # -- what must always hold --------------------------------------------------------------------

    def invariants(self) -> None:
        """What must always hold."""
        assert all(map(le, self.low, self.rsq)), "only what was accepted is forgotten"
        assert all(map(le, self.rsq, self.top)), "only what exists was accepted"
        for u, messages in enumerate(self.store):
            low, end, rsq = self.low[u], self.top[u], self.rsq[u]
            assert all(low <= seq < end for seq in messages), "what all have taken is forgotten"
            accepted = range(low, rsq)
            assert all(seq in messages for seq in accepted), "what some member may lack is kept"
            waits = rsq in messages and self.awaited(u, rsq) is None
            assert not waits, "what waits for nothing was accepted"
        said = all(all(map(le, ack, self.top)) for ack in self.ack)
        assert said, "what others say that they accepted exists"

    # -- losses -----------------------------------------------------------------------------------

    def complete(self) -> bool:
        """Is everything accepted that is known to exist?"""
        return self.rsq == self.top

    def lost(self) -> Iterator[tuple[Column, list[int]]]:
        """What exists and is not here, of each sender."""
        for w, (first, end) in enumerate(zip(self.rsq, self.top, strict=True)):
            if first < end:
                here = self.store[w]
                numbers = [number for number in range(first, end) if number not in here]
                if numbers:
                    yield w, numbers

    def holders(self, w: Column, number: int) -> list[Column]:
        """Who can be asked for it: those who say that they accepted it, then its sender."""
        size = len(self.rsq)
        others = [(self.me + step) % size for step in range(1, size)]  # not all ask the same one
        return [*(v for v in others if v != w and self.ack[v][w] > number), w]

    # -- the store --------------------------------------------------------------------------------

    def forget(self, ends: Vector) -> None:
        """Of each sender, the messages below this number are everywhere."""
        if ends != self.low:
            for u, (low, end) in enumerate(zip(self.low, ends, strict=True)):
                for number in range(low, end):
                    self.store[u].pop(number, None)
            self.low = ends

    def accepted(self) -> Iterator[tuple[M, bytes]]:
        """What was accepted and is stored."""
        for u, messages in enumerate(self.store):
            for number, (_, message, payload) in messages.items():
                if number < self.rsq[u]:
                    yield message, payload

    def waiting(self) -> Iterator[tuple[Id, M, bytes]]:
        """What is held back."""
        for _, (u, seq) in self.held:
            _, message, payload = self.store[u][seq]
            yield (u, seq), message, payload
