"""fifo and causal: an observer that delivers b has delivered before it all that precedes b.

Each delivery of b by q reaches into the sequence of every sender s:

    fifo     reach(b)[s] = the number of b if s sent it, else nothing
    causal   reach(b)[s] = stamp(b)[s]

    inversion   q delivers the n-th send a of s after some b with reach(b)[s] >= n
    gap         q never delivers a, and delivers such a b where it owes a

Inversions need only the running maximum of reach per sender, so one comparison per delivery.
Gaps need the maximum over the stretch of the log in which a is owed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ordercast.pipeline.kernels.causality import Causality, chain
from ordercast.pipeline.kernels.findings import Evidence, Findings, TwoForms
from ordercast.pipeline.kernels.membership import OPEN, Span
from ordercast.pipeline.kernels.run import NONE, Ints, Run

Chosen = npt.NDArray[np.bool_]  # per message
Reach = npt.NDArray[np.int32]  # delivery x column of the sender


@dataclass(frozen=True)
class Absence:
    """A message that an observer never delivers, and where in its log it owes it."""

    message: int
    owed: list[Span]


class Order:
    """What precedes what: how far each message reaches into the sequence of each sender."""

    def __init__(self, run: Run, causality: Causality, *, causal: bool) -> None:
        self.run = run
        self.column = np.array([causality.column[s] for s in run.sender], dtype=np.int64)
        self.number = np.array(run.number, dtype=np.int32)
        self._causality = causality
        self._stamps = causality.stamps
        self._causal = causal

    def reach(self, messages: Ints) -> Reach:
        """Per message a row: how far it reaches into the sequence of each sender."""
        if self._causal:
            return self._stamps[messages]
        rows: Reach = np.zeros((len(messages), self._stamps.shape[1]), dtype=np.int32)
        rows[np.arange(len(messages)), self.column[messages]] = self.number[messages]
        return rows

    def chain(self, a: int, b: int) -> list[int]:
        """How a precedes b: the messages that carried the news, both included."""
        if self.run.sender[a] == self.run.sender[b]:
            return [a, b]
        return chain(self.run, self._causality, a, b)


def check(order: Order, in_scope: Chosen, absences: list[list[Absence]], limit: int) -> TwoForms:
    """Judge all observers on the messages `in_scope`; `absences` is per process."""
    found = TwoForms.empty(limit)
    for q, log in enumerate(order.run.logs):
        delivered = np.array(log.deliveries, dtype=np.int64)
        chosen = np.flatnonzero(in_scope[delivered])
        if not len(chosen):
            continue
        places = np.array(log.delivered_at, dtype=np.int64)[chosen]
        observer = _Observer(order, q, delivered[chosen], places)
        forms = found.binding(log.crashed)
        observer.check_inversions(forms)
        observer.check_gaps((a for a in absences[q] if in_scope[a.message]), forms)
    return found


class _Observer:
    """The deliveries of one process, in order, and how far each reaches."""

    def __init__(self, order: Order, q: int, messages: Ints, places: Ints) -> None:
        self._order = order
        self._q = q
        self._messages = messages
        self._places = places
        self._reach = order.reach(messages)
        self._from_here: Reach | None = None  # maximum of reach from each delivery to the last

    def check_inversions(self, forms: Iterable[Findings]) -> None:
        so_far = np.maximum.accumulate(self._reach, axis=0)[:-1]
        later = self._messages[1:]
        reached = so_far[np.arange(len(later)), self._order.column[later]]
        for row in np.flatnonzero(reached >= self._order.number[later]).tolist():
            for found in forms:
                found.violated(self._inversion, row + 1)

    def check_gaps(self, absences: Iterable[Absence], forms: Iterable[Findings]) -> None:
        run = self._order.run
        for absence in absences:
            row = self._first_reaching(absence)
            if row is None:
                continue
            for found in forms:
                if run.logs[self._q].lost:
                    found.doubt(self._lost_gap, row, absence.message)
                else:
                    found.violated(self._gap, row, absence.message)

    def _first_reaching(self, absence: Absence) -> int | None:
        """The first delivery where `absence` is owed that reaches it."""
        a = absence.message
        column, number = self._order.column[a], self._order.number[a]
        for span in absence.owed:
            first = int(np.searchsorted(self._places, span.first))
            last = len(self._places)
            if span.last != OPEN:
                last = int(np.searchsorted(self._places, span.last))
            elif first == last or self._suffix_maximum()[first, column] < number:
                continue
            rows = np.flatnonzero(self._reach[first:last, column] >= number)
            if len(rows):
                return first + int(rows[0])
        return None

    def _suffix_maximum(self) -> Reach:
        if self._from_here is None:
            self._from_here = np.maximum.accumulate(self._reach[::-1], axis=0)[::-1]
        return self._from_here

    def _inversion(self, row: int) -> Evidence:
        run, a = self._order.run, int(self._messages[row])
        reached = self._reach[:row, self._order.column[a]] >= self._order.number[a]
        b = int(self._messages[np.flatnonzero(reached)[-1]])
        return (
            f"{self._name} delivers {run.messages[b]} before {run.messages[a]}, "
            f"but {self._why(a, b)}",
            self._witness(a, b),
        )

    def _gap(self, row: int, a: int) -> Evidence:
        run = self._order.run
        b = int(self._messages[row])
        witness = self._witness(a, b)
        witness["missing"] = {"process": run.processes[self._q], "message": run.messages[a]}
        return self._gap_sentence(row, a), witness

    def _lost_gap(self, row: int, a: int) -> str:
        return f"{self._gap_sentence(row, a)}; records of {self._name} are lost"

    def _gap_sentence(self, row: int, a: int) -> str:
        run, b = self._order.run, int(self._messages[row])
        return (
            f"{self._name} delivers {run.messages[b]} and never {run.messages[a]}, "
            f"but {self._why(a, b)}"
        )

    @property
    def _name(self) -> str:
        return self._order.run.processes[self._q]

    def _why(self, a: int, b: int) -> str:
        run = self._order.run
        if run.sender[a] == run.sender[b]:
            sender, first, then = run.processes[run.sender[a]], run.messages[a], run.messages[b]
            return f"{sender} sent {first} before {then}"
        return f"the send of {run.messages[a]} happened before that of {run.messages[b]}"

    def _witness(self, a: int, b: int) -> dict[str, object]:
        run = self._order.run
        chain = self._order.chain(a, b)
        events = [event for m in chain for event in run.send_event(m)]
        for m, following in pairwise(chain):  # how the sender of one knew of the one before
            if run.sender[m] != run.sender[following]:
                events += run.delivery_event(run.sender[following], m)
        for m in (b, a):
            events += run.delivery_event(self._q, m)
        return {
            "process": self._name,
            "messages": [run.messages[a], run.messages[b]],
            "chain": [run.messages[m] for m in chain],
            "events": events,
        }


def sent_scope(run: Run, group: int | None = None) -> Chosen:
    """The messages with a send record, of one group or of all."""
    chosen: Chosen = np.array(run.sender, dtype=np.int64) != NONE
    if group is not None:
        chosen &= np.array(run.group_of, dtype=np.int64) == group
    return chosen
