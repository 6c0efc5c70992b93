"""validity and agreement: what had to be delivered and was not.

Absence can only be proved by a log that says it is complete. Elsewhere it is a doubt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice

import numpy as np

from ordercast.judge.kernels.findings import Evidence, Findings
from ordercast.judge.kernels.membership import Membership, alike
from ordercast.judge.kernels.missing_deliveries import MissingDeliveries
from ordercast.judge.kernels.run import NONE, Bools, Ints, Run
from ordercast.judge.kernels.sends import first_sends

Sentence = Callable[[Run, int, int], str]  # (run, process, message)

SOMEBODY, CORRECT, ENDED = 1, 2, 4  # who delivers a message, as bits
READ_AT_ONCE = 1 << 20  # deliveries
SHOWN_DELIVERIES = 4  # of a message that is missing elsewhere


def validity(
    run: Run, members: Membership, missing_deliveries: MissingDeliveries, limit: int
) -> Findings:
    """A correct process delivers what it sends; for an outsider, some member does."""
    found = Findings(limit)
    for p in np.flatnonzero(~run.crashed).tolist():
        for missing in missing_deliveries.missing[p]:
            span = members.open_span(p, missing.group)
            if span is not None:
                own = missing.messages[run.sender[missing.messages] == p]
                own = own[run.sent_row[own] >= span.first]
                proved = bool(run.ended[p] and not run.lost[p])
                _absent(run, p, own, np.full(len(own), proved), found, _own_message)
    for group, messages in _from_outside(run, members):
        _Outsiders(run, group, messages).check(members, missing_deliveries, found)
    return found


def _from_outside(run: Run, members: Membership) -> list[tuple[int, Ints]]:
    """By group, what correct processes sent to it while they were no members of it."""
    parts = []
    for p in np.flatnonzero(~run.crashed).tolist():
        rows, messages = first_sends(run, p)
        parts.append(messages[~members.inside(p, rows, run.group_of[messages])])
    outside = np.concatenate(parts) if parts else np.empty(0, np.int32)
    return alike(outside, run.group_of[outside])


class _Outsiders:
    """Messages to one group from outside of it, of which no member is seen yet to deliver them."""

    def __init__(self, run: Run, group: int, messages: Ints) -> None:
        self._run = run
        self._group = group
        self._messages = messages
        self._debtor = np.full(len(messages), NONE, np.int32)  # the first that owes it
        self._proved = run.ended[run.sender[messages]]  # all who owe it say that they ended

    def check(
        self, members: Membership, missing_deliveries: MissingDeliveries, found: Findings
    ) -> None:
        run = self._run
        for q in np.flatnonzero(~run.crashed).tolist():
            if len(self._messages) and members.open_span(q, self._group) is not None:
                self._ask(q, members, missing_deliveries)
        for q in np.unique(self._debtor[self._debtor != NONE]).tolist():
            here = self._debtor == q
            _absent(run, q, self._messages[here], self._proved[here], found, _nobody)

    def _ask(self, q: int, members: Membership, missing_deliveries: MissingDeliveries) -> None:
        owing = members.owed_live(q, self._group, self._messages)
        here = [one.messages for one in missing_deliveries.missing[q] if one.group == self._group]
        lacking = np.isin(self._messages, here[0]) if here else np.zeros(len(owing), np.bool_)
        self._debtor[owing & (self._debtor == NONE)] = q
        if not self._run.ended[q] or self._run.lost[q]:
            self._proved &= ~owing
        open_still = ~owing | lacking
        self._messages = self._messages[open_still]
        self._debtor, self._proved = self._debtor[open_still], self._proved[open_still]


def agreement(
    run: Run, members: Membership, missing_deliveries: MissingDeliveries, limit: int
) -> tuple[Findings, Findings]:
    """(agreement, agreement.uniform): what one delivers, all that owe it deliver."""
    plain, uniform = Findings(limit), Findings(limit)
    if not any(missing_deliveries.missing):
        return plain, uniform
    delivered = _delivered(run)
    for q in np.flatnonzero(~run.crashed).tolist():
        proved = bool(run.ended[q] and not run.lost[q])
        for missing in missing_deliveries.missing[q]:
            messages = missing.messages[delivered[missing.messages] != 0]
            messages = messages[members.owed_live(q, missing.group, messages)]
            _absent(run, q, messages, np.full(len(messages), proved), uniform, _not_everywhere)
            messages = messages[delivered[messages] & CORRECT != 0]
            triggered = delivered[messages] & ENDED != 0
            _absent(run, q, messages, triggered & proved, plain, _not_everywhere)
    return plain, uniform


def _delivered(run: Run) -> Ints:
    """uint8 per message: who delivers it, as bits."""
    found = np.zeros(run.message_count, np.uint8)
    for p in range(len(run.processes)):
        mark = SOMEBODY
        if not run.crashed[p]:
            mark |= CORRECT | (ENDED if run.ended[p] else 0)
        found[run.delivered[run.deliveries(p)]] |= np.uint8(mark)
    return found


def _absent(
    run: Run, q: int, messages: Ints, proved: Bools, found: Findings, sentence: Sentence
) -> None:
    found.violated_many(partial(_evidence, run, q, sentence), messages[proved])
    found.doubt_many(partial(_doubt, run, q, sentence), messages[~proved])


def _evidence(run: Run, q: int, sentence: Sentence, m: int) -> Evidence:
    deliveries = islice(_deliveries(run, m), SHOWN_DELIVERIES)
    witness: dict[str, object] = {
        "process": run.processes[q],
        "messages": [run.name(m)],
        "missing": {"process": run.processes[q], "message": run.name(m)},
        "events": [*run.send_event(m), *map(run.event, deliveries)],
    }
    return sentence(run, q, m), witness


def _deliveries(run: Run, m: int) -> Iterator[int]:
    """The rows of the first deliveries of a message, those that prove most first: of logs with an
    end, then of cut ones, then of crashed ones. Mostly the first few are found soon."""
    correct = ~run.crashed
    for by in (correct & run.ended, correct & ~run.ended, run.crashed):
        for first in range(0, len(run.delivered) if by.any() else 0, READ_AT_ONCE):
            here = slice(first, first + READ_AT_ONCE)
            rows = run.delivered_row[here][run.delivered[here] == m]
            yield from rows[by[np.searchsorted(run.start, rows, side="right") - 1]].tolist()


def _doubt(run: Run, q: int, sentence: Sentence, m: int) -> str:
    return f"{sentence(run, q, m)}; {_why_open(run, q)}"


def _why_open(run: Run, q: int) -> str:
    name = run.processes[q]
    if run.lost[q]:
        return f"records of {name} are lost"
    if run.ended[q]:
        return "the logs that would prove it have no end"
    return f"the log of {name} has no end"


def _own_message(run: Run, q: int, m: int) -> str:
    return f"{run.processes[q]} does not deliver its own {run.name(m)}"


def _nobody(run: Run, _: int, m: int) -> str:
    sender = run.processes[run.sender[m]]
    return f"no member delivers {run.name(m)}, sent by {sender} from outside the group"


def _not_everywhere(run: Run, q: int, m: int) -> str:
    some = run.processes[run.process_of(next(_deliveries(run, m)))]
    by = "" if run.sender[m] == NONE else f" of {run.processes[run.sender[m]]}"
    return f"{run.processes[q]} never delivers {run.name(m)}{by}, which {some} delivers"
