"""wellformed, no_duplication, no_creation, membership: is each row possible at all?"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ordercast.judge.kernels.causal_knots import CausalKnots, Step
from ordercast.judge.kernels.causality import Causality
from ordercast.judge.kernels.findings import Evidence, Findings
from ordercast.judge.kernels.membership import Membership
from ordercast.judge.kernels.run import CRASH, END, NONE, Bools, Ints, Run
from ordercast.trace.schema import KINDS


def wellformed(run: Run, causality: Causality, limit: int) -> Findings:
    """Unique indexes, nothing after crash or end, one send per message, no causal cycle.

    Of `causality` it asks only whether there is a cycle.
    """
    found = Findings(limit)
    found.violated_many(partial(_same_index, run), _same_indexes(run))
    found.violated_many(partial(_after_the_last, run), _stops_before_the_last(run))
    found.violated_many(partial(_sent_twice, run), run.repeated_sends)
    if causality.cyclic:
        found.violated_many(partial(_cycle, run), CausalKnots(run).rounds())
    return found


def _same_indexes(run: Run) -> Ints:
    """The rows whose index is that of the row before, in the same log."""
    rows = np.flatnonzero(run.index[1:] == run.index[:-1]) + 1
    return rows[~np.isin(rows, run.start)]


def _same_index(run: Run, row: int) -> Evidence:
    process, index = run.processes[run.process_of(row)], int(run.index[row])
    return (
        f"{process} has two events with index {index}",
        {"process": process, "index": index},
    )


def _stops_before_the_last(run: Run) -> Ints:
    """The rows of the first crash or end of each log that has something after it."""
    stops = np.flatnonzero((run.kind == CRASH) | (run.kind == END))
    process = np.searchsorted(run.start, stops, side="right") - 1
    process, first = np.unique(process, return_index=True)
    return stops[first][stops[first] + 1 < run.start[process + 1]]


def _after_the_last(run: Run, stop: int) -> Evidence:
    process = run.processes[run.process_of(stop)]
    kind, next_kind = KINDS[run.kind[stop]], KINDS[run.kind[stop + 1]]
    return (
        f"{process} has a {next_kind} after its {kind}",
        {"process": process, "events": [run.event(stop), run.event(stop + 1)]},
    )


def _sent_twice(run: Run, row: int) -> Evidence:
    m = int(run.message[row])
    events = [*run.send_event(m), run.event(row)]
    return (
        f"{run.name(m)} is sent more than once",
        {"messages": [run.name(m)], "events": events},
    )


def _cycle(run: Run, steps: list[Step]) -> Evidence:
    told = "; ".join(
        f"{run.processes[s.process]} delivers {run.name(s.delivers)} before it sends "
        f"{run.name(s.sends)}"
        for s in steps
    )
    events = [
        event
        for s in steps
        for event in (*run.delivery_event(s.process, s.delivers), *run.send_event(s.sends))
    ]
    witness: dict[str, object] = {
        "processes": [run.processes[s.process] for s in steps],
        "messages": [run.name(s.delivers) for s in steps],
        "round": [
            {
                "process": run.processes[s.process],
                "delivers": run.name(s.delivers),
                "sends": run.name(s.sends),
            }
            for s in steps
        ],
        "events": events,
    }
    return f"happened-before has a cycle: {told}", witness


def no_duplication(run: Run, limit: int) -> Findings:
    """No process delivers a message twice."""
    found = Findings(limit)
    found.violated_many(partial(_repeat, run), run.repeats)
    return found


def _repeat(run: Run, row: int) -> Evidence:
    q, m = run.process_of(row), int(run.message[row])
    witness = _witness(run, q, m)
    witness["events"] = [*run.send_event(m), *run.delivery_event(q, m), run.event(row)]
    return f"{run.processes[q]} delivers {run.name(m)} more than once", witness


def no_creation(run: Run, causality: Causality, limit: int) -> Findings:
    """What is delivered was sent, to that group, and not after its delivery.

    Of `causality` it asks only whether there is a cycle: without one, nothing is delivered before
    it is sent.
    """
    found = Findings(limit)
    if (run.sender == NONE).any():
        unsent = _places(run, lambda here: run.sender[run.delivered[here]] == NONE)
        proved = _surely_unsent(run, unsent)
        found.violated_many(partial(_unsent, run), unsent[proved])
        found.doubt_many(partial(_perhaps_unsent, run), unsent[~proved])
    elsewhere = _in_another_group(run)
    found.violated_many(partial(_other_group, run), elsewhere)
    if causality.cyclic:
        early = CausalKnots(run).too_early
        found.violated_many(partial(_too_early, run), early[~np.isin(early, elsewhere)])
    return found


def _places(run: Run, chosen: Callable[[slice], Bools]) -> Ints:
    """Places in the columns by delivery, chosen process by process."""
    parts = [np.empty(0, np.int64)]
    for q in range(len(run.processes)):
        here = run.deliveries(q)
        parts.append(np.flatnonzero(chosen(here)) + here.start)
    return np.concatenate(parts)


def _surely_unsent(run: Run, places: Ints) -> Bools:
    """Is the log of the named sender complete; where nobody is named, is every log?"""
    complete = dict(zip(run.processes, run.complete.tolist(), strict=True))
    proof = [*(complete.get(name, False) for name in run.names), bool(run.complete.all())]
    named = run.named_sender[run.delivered_row[places]]  # NONE: the last of them
    return np.asarray(np.array(proof, np.bool_)[named])


def _in_another_group(run: Run) -> Ints:
    """The deliveries in a group to which the message was not sent."""
    if len(run.groups) < 2:
        return np.empty(0, np.int64)
    places = _places(
        run, lambda here: run.group[run.delivered_row[here]] != run.group_of[run.delivered[here]]
    )
    return np.asarray(places[run.sender[run.delivered[places]] != NONE])


def _unsent(run: Run, place: int) -> Evidence:
    q, m = _observed(run, place)
    sender = _named_sender(run, place)
    who = "nobody has sent" if sender is None else f"{sender} has not sent"
    return f"{run.processes[q]} delivers {run.name(m)}, which {who}", _witness(run, q, m)


def _perhaps_unsent(run: Run, place: int) -> str:
    q, m = _observed(run, place)
    sender = _named_sender(run, place)
    what = f"{run.processes[q]} delivers {run.name(m)}, which {sender or 'nobody'}"
    if sender is None:
        return f"{what} is known to have sent; some logs are incomplete"
    return f"{what} is not known to have sent; its log is incomplete or absent"


def _other_group(run: Run, place: int) -> Evidence:
    q, m = _observed(run, place)
    sent, told = run.groups[run.group_of[m]], run.groups[run.group[run.delivered_row[place]]]
    return (
        f"{run.processes[q]} delivers {run.name(m)} in group {told}, it was sent to {sent}",
        {**_witness(run, q, m), "groups": [sent, told]},
    )


def _too_early(run: Run, place: int) -> Evidence:
    q, m = _observed(run, place)
    return (
        f"{run.processes[q]} delivers {run.name(m)} before {run.processes[run.sender[m]]} sends it",
        _witness(run, q, m),
    )


def membership(run: Run, members: Membership, limit: int) -> Findings:
    """A process delivers only while it is a member."""
    found = Findings(limit)
    for q in range(len(run.processes)):
        here = run.deliveries(q)
        groups = run.group_of[run.delivered[here]]
        outside = np.flatnonzero(~members.inside(q, run.delivered_row[here], groups))
        found.violated_many(partial(_outside, run), outside + here.start)
    return found


def _outside(run: Run, place: int) -> Evidence:
    q, m = _observed(run, place)
    return (
        f"{run.processes[q]} delivers {run.name(m)} while it is no member of "
        f"{run.groups[run.group_of[m]]}",
        _witness(run, q, m),
    )


def _observed(run: Run, place: int) -> tuple[int, int]:
    """Who delivers what."""
    return run.process_of(int(run.delivered_row[place])), int(run.delivered[place])


def _named_sender(run: Run, place: int) -> str | None:
    name = int(run.named_sender[run.delivered_row[place]])
    return None if name == NONE else run.names[name]


def _witness(run: Run, q: int, m: int) -> dict[str, object]:
    return {
        "process": run.processes[q],
        "messages": [run.name(m)],
        "events": [*run.send_event(m), *run.delivery_event(q, m)],
    }
