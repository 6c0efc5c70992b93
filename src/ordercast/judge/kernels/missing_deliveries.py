"""What a process never delivers, and where in its log it owes that.

Every pair of a member and a message of its group is either a delivery or missing, so both
together are as many as a complete run would have deliveries. Nothing is kept for a group of which
the process delivers everything.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ordercast.judge.kernels.membership import OPEN, Membership, Span
from ordercast.judge.kernels.run import NONE, Ints, Run


@dataclass(frozen=True, slots=True)
class Missing:
    """Messages of a group, ascending, that a process never delivers: owed or not."""

    group: int
    messages: Ints


@dataclass(frozen=True, slots=True)
class MissingInSpan:
    """Messages of a group, ascending, that a process never delivers and owes within a span."""

    group: int
    span: Span
    messages: Ints


class MissingDeliveries:
    """All missing deliveries of one run, by process."""

    def __init__(self, run: Run, members: Membership) -> None:
        self._run = run
        self._members = members

    @cached_property
    def missing(self) -> list[list[Missing]]:
        """What each never delivers of the groups of which it ever was a member."""
        delivered_by = np.full(self._run.message_count, NONE, np.int32)
        return [self._missing_at(q, delivered_by) for q in range(len(self._run.processes))]

    @cached_property
    def owed(self) -> list[list[MissingInSpan]]:
        """What each never delivers though it owes it at some delivery of its log.

        A span without any delivery is left out: no order can be broken there.
        """
        return [
            [
                MissingInSpan(one.group, span, messages)
                for one in missing
                for span, messages in self._members.owed(q, one.group, one.messages)
                if self._delivers_within(q, span)
            ]
            for q, missing in enumerate(self.missing)
        ]

    def _missing_at(self, q: int, delivered_by: Ints) -> list[Missing]:
        """`delivered_by`: room to mark messages with the process that delivers them."""
        run = self._run
        messages = run.delivered[run.deliveries(q)]
        counts = np.bincount(run.group_of[messages], minlength=len(run.groups))
        lacking = [g for g in self._members.joined(q) if counts[g] < len(run.messages_of(g))]
        if any(counts[g] for g in lacking):
            delivered_by[messages] = q
        found = []
        for g in lacking:
            lacked = run.messages_of(g)
            if counts[g]:
                lacked = lacked[delivered_by[lacked] != q]
            found.append(Missing(g, lacked))
        return found

    def _delivers_within(self, q: int, span: Span) -> bool:
        rows = self._run.delivered_row[self._run.deliveries(q)]
        last = len(rows) if span.last == OPEN else np.searchsorted(rows, span.last)
        return bool(np.searchsorted(rows, span.first) < last)
