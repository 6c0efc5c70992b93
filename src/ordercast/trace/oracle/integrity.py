"""wellformed, no_duplication, no_creation, membership, validity, agreement."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from ordercast.trace.oracle.findings import Findings
from ordercast.trace.oracle.graphs import shortest_cycle
from ordercast.trace.oracle.logs import Place, Run
from ordercast.trace.oracle.membership import interval_at, owes_live
from ordercast.trace.schema import Judgement


def wellformed(run: Run) -> Judgement:
    """Unique (process, index), nothing after crash/end, unique message per send, -> acyclic."""
    found = Findings("wellformed")
    _unique_indexes(run, found)
    _nothing_after_the_last_event(run, found)
    _unique_sends(run, found)
    _acyclic(run, found)
    return found.judgement()


def _unique_indexes(run: Run, found: Findings) -> None:
    for process, log in run.logs.items():
        for index, rows in Counter(event.index for event in log).items():
            if rows > 1:
                found.violated(
                    f"{process} has {rows} events with index {index}.",
                    process=process, index=index,
                )  # fmt: skip


def _nothing_after_the_last_event(run: Run, found: Findings) -> None:
    for process, log in run.logs.items():
        for event, following in pairwise(log):
            if event.kind in ("crash", "end"):
                found.violated(
                    f"{process} has a `{following.kind}` after its `{event.kind}`.",
                    process=process, first=event.index, second=following.index,
                )  # fmt: skip


def _senders(run: Run) -> dict[str, list[str]]:
    """message -> the process of each of its sends."""
    senders: dict[str, list[str]] = {}
    for process, log in run.logs.items():
        for event in log:
            if event.kind == "send" and event.message is not None:
                senders.setdefault(event.message, []).append(process)
    return senders


def _unique_sends(run: Run, found: Findings) -> None:
    for message, processes in _senders(run).items():
        if len(processes) > 1:
            found.violated(
                f"{message} was sent {len(processes)} times, by {', '.join(processes)}.",
                message=message, processes=processes,
            )  # fmt: skip


def _acyclic(run: Run, found: Findings) -> None:
    cycle = shortest_cycle(run.steps(set(run.sends)))
    if cycle is not None:
        events = [[place.process, run.event(place).index] for place in cycle]
        said = ", then ".join(f"{process}'s event {index}" for process, index in events)
        found.violated(
            f"An event happened before itself: {said}, then the first again.", cycle=events
        )


def unspecified(run: Run) -> bool:
    """wellformed is violated in a way that leaves the other verdicts without a meaning.

    One message sent by two processes, both `crash` and `end` in one log, or equal indexes.
    """
    return (
        any(len(set(processes)) > 1 for processes in _senders(run).values())
        or any(run.has(p, "crash") and run.has(p, "end") for p in run.logs)
        or any(len({e.index for e in log}) < len(log) for log in run.logs.values())
    )


def no_duplication(run: Run) -> Judgement:
    """No process delivers a message twice."""
    found = Findings("no_duplication")
    for process, log in run.logs.items():
        delivered = Counter(event.message for event in log if event.kind == "deliver")
        for message, times in delivered.items():
            if times > 1:
                indexes = [e.index for e in log if e.kind == "deliver" and e.message == message]
                found.violated(
                    f"{process} delivered {message} {times} times.",
                    process=process, message=message, indexes=indexes,
                )  # fmt: skip
    return found.judgement()


def no_creation(run: Run) -> Judgement:
    """Each delivered m has a send (same group) that the delivery did not happen before.

    No send record: violated if the named sender's log is complete; inconclusive if it is
    incomplete or absent, or if no sender is named and any log is incomplete.
    """
    found = Findings("no_creation")
    for process, first in run.deliveries.items():
        for message, position in first.items():
            if message in run.sends:
                _has_a_fitting_send(run, Place(process, position), message, found)
            else:
                _was_never_sent(run, Place(process, position), message, found)
    return found.judgement()


def _has_a_fitting_send(run: Run, delivery: Place, m: str, found: Findings) -> None:
    send = run.sends[m]
    here, there = run.event(delivery).group, run.event(send).group
    if here != there:
        found.violated(
            f"{delivery.process} delivered {m} in {here}; it was sent to {there}.",
            process=delivery.process, message=m, delivered_in=here, sent_to=there,
        )  # fmt: skip
    if send in run.before[delivery]:
        found.violated(
            f"The delivery of {m} at {delivery.process} happened before its send.",
            process=delivery.process, message=m, sender=send.process,
        )  # fmt: skip


def _was_never_sent(run: Run, delivery: Place, m: str, found: Findings) -> None:
    sender = run.event(delivery).sender
    if sender is None:
        certain = not any(run.incomplete(process) for process in run.logs)
    else:
        certain = sender in run.logs and not run.incomplete(sender)
    found.missing(
        certain, f"{delivery.process} delivered {m}, of which there is no send.",
        process=delivery.process, message=m, sender=sender,
    )  # fmt: skip


def membership(run: Run) -> Judgement:
    """Delivered only inside an interval."""
    found = Findings("membership")
    for process, first in run.deliveries.items():
        for message, position in first.items():
            group = run.group_of(message)
            if interval_at(run, process, group, position) is None:
                found.violated(
                    f"{process} delivered {message} of {group} while it was no member.",
                    process=process, message=message, group=group,
                )  # fmt: skip
    return found.judgement()


def validity(run: Run) -> Judgement:
    """A correct process that sends m delivers it, if it stays a member to the end.

    If it is no member (open group), some correct q with owes_live(q, m) delivers m, if there is
    any.
    """
    found = Findings("validity")
    for message, send in run.sends.items():
        if run.crashed(send.process):
            continue
        interval = interval_at(run, send.process, run.group_of(message), send.position)
        if interval is None:
            _some_member_delivers(run, message, found)
        elif interval.stop is None and message not in run.deliveries[send.process]:
            found.missing(
                run.has_end(send.process) and not run.lost(send.process),
                f"{send.process} sent {message} and never delivered it.",
                process=send.process, missing=message,
            )  # fmt: skip
    return found.judgement()


def _some_member_delivers(run: Run, m: str, found: Findings) -> None:
    """Violated only if the sender and every such q have `end` (and no q has `lost`)."""
    sender = run.sends[m].process
    bound = [q for q in run.correct() if owes_live(run, q, m)]
    if not bound or any(m in run.deliveries[q] for q in bound):
        return
    certain = run.has_end(sender) and all(run.has_end(q) and not run.lost(q) for q in bound)
    found.missing(
        certain, f"{sender}, no member, sent {m}, and none of {', '.join(bound)} delivered it.",
        process=sender, missing=m, members=bound,
    )  # fmt: skip


def agreement(run: Run, *, uniform: bool) -> Judgement:
    """A non-crashed process delivered m => every non-crashed q with owes_live(q, m) delivers m.

    Uniform: any process delivered m. A missing delivery is violated if q has `end` and no `lost`
    and, for the plain form, one of those who delivered m has `end` too; else inconclusive.
    """
    found = Findings("agreement.uniform" if uniform else "agreement")
    observers = list(run.logs) if uniform else run.correct()
    for m in run.delivered:
        triggers = [p for p in observers if m in run.deliveries[p]]
        if not triggers:
            continue
        believed = uniform or any(run.has_end(p) for p in triggers)
        witness = next((p for p in triggers if run.has_end(p)), triggers[0])
        for q in run.correct():
            if m not in run.deliveries[q] and owes_live(run, q, m):
                found.missing(
                    believed and run.has_end(q) and not run.lost(q),
                    f"{witness} delivered {m}, {q} never did.",
                    process=q, missing=m, delivered_by=witness,
                )  # fmt: skip
    return found.judgement()
