"""wellformed, no_duplication, no_creation, membership: is each row possible at all?"""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

from ordercast.pipeline.kernels.causality import Causality
from ordercast.pipeline.kernels.findings import Evidence, Findings
from ordercast.pipeline.kernels.membership import Membership
from ordercast.pipeline.kernels.run import CRASH, END, NONE, Run
from ordercast.trace.schema import KINDS


def wellformed(run: Run, causality: Causality, limit: int) -> Findings:
    """Unique indexes, nothing after crash or end, one send per message, no causal cycle."""
    found = Findings(limit)
    for p in range(len(run.logs)):
        _check_indexes(run, p, found)
        _check_last_event(run, p, found)
    for m, p, position in run.repeated_sends:
        found.violated(_sent_twice, run, m, p, position)
    if causality.cyclic:
        found.violated(_cycle, run, causality)
    return found


def _check_indexes(run: Run, p: int, found: Findings) -> None:
    log = run.logs[p]
    for position in np.flatnonzero(np.diff(log.indexes) == 0).tolist():
        found.violated(_same_index, log.name, int(log.indexes[position]))


def _same_index(process: str, index: int) -> Evidence:
    return (
        f"{process} has two events with index {index}",
        {"process": process, "index": index},
    )


def _check_last_event(run: Run, p: int, found: Findings) -> None:
    log = run.logs[p]
    stops = np.flatnonzero((log.kinds == CRASH) | (log.kinds == END))
    if len(stops) and stops[0] + 1 < len(log.kinds):
        found.violated(_after_the_last, run, p, int(stops[0]))


def _after_the_last(run: Run, p: int, stop: int) -> Evidence:
    log = run.logs[p]
    kind, next_kind = KINDS[log.kinds[stop]], KINDS[log.kinds[stop + 1]]
    events = [run.event(p, stop, kind, NONE), run.event(p, stop + 1, next_kind, NONE)]
    return (
        f"{log.name} has a {next_kind} after its {kind}",
        {"process": log.name, "events": events},
    )


def _sent_twice(run: Run, m: int, p: int, position: int) -> Evidence:
    name = run.messages[m]
    events = [*run.send_event(m), run.event(p, position, "send", m)]
    return f"{name} is sent more than once", {"messages": [name], "events": events}


def _cycle(run: Run, causality: Causality) -> Evidence:
    """A delivery that happened before its own send lies on every cycle."""
    for q, log in enumerate(run.logs):
        for m, at in zip(log.deliveries, log.delivered_at, strict=True):
            if _delivered_before_sent(run, causality, q, m, at):
                return (
                    f"happened-before has a cycle: {log.name} delivers {run.messages[m]} before "
                    "the send of it can have happened",
                    _witness(run, q, m),
                )
    raise AssertionError("a cycle leads through a delivery that happened before its send")


def _delivered_before_sent(run: Run, causality: Causality, q: int, m: int, at: int) -> bool:
    if run.sender[m] == NONE:
        return False
    next_send = bisect_left(run.logs[q].sent_at, at) + 1
    return causality.reaches(q, next_send, m)


def _witness(run: Run, q: int, m: int) -> dict[str, object]:
    return {
        "process": run.processes[q],
        "messages": [run.messages[m]],
        "events": [*run.send_event(m), *run.delivery_event(q, m)],
    }


def no_duplication(run: Run, limit: int) -> Findings:
    """No process delivers a message twice."""
    found = Findings(limit)
    for q, log in enumerate(run.logs):
        for m, position in log.repeats:
            found.violated(_repeat, run, q, m, position)
    return found


def _repeat(run: Run, q: int, m: int, position: int) -> Evidence:
    witness = _witness(run, q, m)
    witness["events"] = [
        *run.send_event(m), *run.delivery_event(q, m), run.event(q, position, "deliver", m),
    ]  # fmt: skip
    return f"{run.processes[q]} delivers {run.messages[m]} more than once", witness


def no_creation(run: Run, causality: Causality, limit: int) -> Findings:
    """What is delivered was sent, to that group, and not after its delivery."""
    found = Findings(limit)
    by_name = {name: p for p, name in enumerate(run.processes)}
    all_complete = all(log.complete for log in run.logs)
    for q, log in enumerate(run.logs):
        for place, m in enumerate(log.deliveries):
            if run.sender[m] == NONE:
                sender = log.named_sender[place]
                p = None if sender is None else by_name.get(sender)
                known = all_complete if sender is None else p is not None and run.logs[p].complete
                _unsent(run, q, m, sender, known, found)
            elif log.delivered_in[place] != run.group_of[m]:
                told = run.groups[log.delivered_in[place]]
                found.violated(_other_group, run, q, m, told)
            elif _delivered_before_sent(run, causality, q, m, log.delivered_at[place]):
                found.violated(_too_early, run, q, m)
    return found


def _unsent(run: Run, q: int, m: int, sender: str | None, known: bool, found: Findings) -> None:
    what = f"{run.processes[q]} delivers {run.messages[m]}, which {sender or 'nobody'}"
    if known:
        has = "has sent" if sender is None else "has not sent"
        found.violated(lambda: (f"{what} {has}", _witness(run, q, m)))
    elif sender is None:
        found.doubt(lambda: f"{what} is known to have sent; some logs are incomplete")
    else:
        found.doubt(lambda: f"{what} is not known to have sent; its log is incomplete or absent")


def _other_group(run: Run, q: int, m: int, told: str) -> Evidence:
    sent = run.groups[run.group_of[m]]
    return (
        f"{run.processes[q]} delivers {run.messages[m]} in group {told}, it was sent to {sent}",
        {**_witness(run, q, m), "groups": [sent, told]},
    )


def _too_early(run: Run, q: int, m: int) -> Evidence:
    return (
        f"{run.processes[q]} delivers {run.messages[m]} before {run.processes[run.sender[m]]} "
        "sends it",
        _witness(run, q, m),
    )


def membership(run: Run, members: Membership, limit: int) -> Findings:
    """A process delivers only while it is a member."""
    found = Findings(limit)
    for q, log in enumerate(run.logs):
        for m, at in zip(log.deliveries, log.delivered_at, strict=True):
            if members.span_at(q, run.group_of[m], at) is None:
                found.violated(_outside, run, q, m)
    return found


def _outside(run: Run, q: int, m: int) -> Evidence:
    return (
        f"{run.processes[q]} delivers {run.messages[m]} while it is no member of "
        f"{run.groups[run.group_of[m]]}",
        _witness(run, q, m),
    )
