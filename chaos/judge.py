"""The outside judge: what the programs wrote, against what a group promises.

It shares no code with ordercast: not the verifier, not the oracle, not the readers of traces. It
knows the logs of the programs, the plan, and what was done to the processes (`Outcome`).

An exclusion is legal at any time, also of a node that nothing was done to: a busy machine looks
like a dead one. What must hold nevertheless is said by each check below.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from chaos.causality import causality
from chaos.history import FINAL, History, InView, Stay, View, history_of
from chaos.logs import Log
from chaos.outcome import Outcome
from chaos.plan import Plan
from chaos.promises import Promises, promises_of

MAX_SENTENCES = 3  # per property: the first ones say enough


@dataclass(frozen=True)
class Finding:
    """A property that does not hold, with a witness."""

    property: str
    sentence: str


@dataclass(frozen=True)
class Case:
    """All that a check may look at."""

    plan: Plan
    outcome: Outcome
    history: History
    promises: Mapping[str, Promises]  # by group


def judge(plan: Plan, outcome: Outcome, logs: list[Log]) -> list[Finding]:
    """Everything that is wrong with a run, the first few of each kind."""
    history = history_of(logs, outcome.settled, outcome.living)
    promises = {group.name: promises_of(group.join) for group in plan.groups}
    case = Case(plan, outcome, history, promises)
    found: list[Finding] = []
    for name, check in CHECKS.items():
        sentences = check(case)
        found += [Finding(name, s) for s, _ in zip(sentences, range(MAX_SENTENCES), strict=False)]
    return found


def deliveries(logs: Iterable[Log]) -> int:
    """Messages that were delivered in all."""
    return sum(1 for log in logs for _ in log.of_kind("got"))


# -- nobody hangs, nobody ends --------------------------------------------------------------------


def recovery(case: Case) -> Iterator[str]:
    """When all faults are over, all who live are soon in their groups, and hear each other."""
    if case.outcome.settled is None:
        why = f" ({case.outcome.given_up})" if case.outcome.given_up else ""
        yield f"it did not come up again{why}; wanted: {case.outcome.wanted}"


def no_failure(case: Case) -> Iterator[str]:
    """Nothing is raised that an application need not expect."""
    for log in case.history.logs:
        for entry in log.of_kind("failed"):
            yield f"{log.process}, {entry[2]}: {entry[3].strip().splitlines()[-1]}"


def no_end(case: Case) -> Iterator[str]:
    """No process ends by itself, and each ends when it is asked to."""
    for process, status in case.outcome.ended.items():
        yield f"{process} ended by itself with status {status}"
    for process in case.outcome.unclosed:
        yield f"{process} was asked to close, and did not end"


# -- messages -------------------------------------------------------------------------------------


def no_creation(case: Case) -> Iterator[str]:
    """What is delivered was sent: by that sender, to that group, before, with that body."""
    sent = case.history.sent
    for stay in case.history.stays:
        for got in stay.got:
            m = sent.get(got.message)
            if m is None:
                yield f"{stay.process} delivered {got.message}, which nobody sent"
            elif (m.sender, m.group, m.crc) != (got.sender, stay.group, got.crc):
                yield f"{stay.process} delivered {got} in {stay.group}; sent was {m}"
            elif m.moment > got.moment:
                yield f"{stay.process} delivered {got.message} before it was sent"


def no_duplication(case: Case) -> Iterator[str]:
    """A stay delivers no message twice."""
    for stay in case.history.stays:
        for message, times in Counter(got.message for got in stay.got).items():
            if times > 1:
                yield f"{stay.process} delivered {message} {times} times in {stay.group}"


def membership(case: Case) -> Iterator[str]:
    """Deliveries and views belong to a stay: a process gets views that it is in, numbers rise."""
    yield from case.history.homeless
    for stay in case.history.stays:
        for part in stay.views:
            if stay.name not in part.view[1]:
                yield f"{stay.process} got view {part.view} of {stay.group}, and is not in it"
        numbers = [part.view[0] for part in stay.views]
        if any(a >= b for a, b in pairwise(numbers)):
            yield f"{stay.process} got views {numbers} of {stay.group} in that order"


def one_history(case: Case) -> Iterator[str]:
    """A view's number has one list of members; whoever goes on from a view goes on to the same.

    A sequencer numbers views among the messages, where nobody is excluded. Like a message, such a
    view may be unknown to the others if the only one who had it is killed or excluded.
    """
    leavers = _leavers(case.history.logs)
    for group in case.promises:
        members: dict[int, tuple[tuple[str, ...], str]] = {}
        after: dict[View, tuple[View, str]] = {}
        for stay in case.history.of_group(group):
            for part in stay.views:
                number, names = part.view
                other, who = members.setdefault(number, (names, stay.process))
                if other != names:
                    yield f"view {number} of {group}: {who} has {other}, {stay.process} has {names}"
                if part.next is None or part.next == FINAL or case.plan.merges:
                    continue
                gone = {*names} - {*part.next[1]}
                if stay.end in ("killed", "out") and gone <= leavers:
                    continue
                follows, who = after.setdefault(part.view, (part.next, stay.process))
                if follows != part.next:
                    yield (
                        f"after view {number} of {group} {who} has {follows}, "
                        f"{stay.process} has {part.next}"
                    )


def _leavers(logs: Iterable[Log]) -> set[str]:
    """Names that have left anything in order, or wanted to."""
    return {log.name for log in logs if any(log.of_kind("leave", "closing"))}


def agreement(case: Case) -> Iterator[str]:
    """All who go from one view to the next deliver the same between them; in order, if it is total.

    The end of a run that has settled counts as a next view.
    """
    for group, promise in case.promises.items():
        for (view, _), parts in _passages(case.history.of_group(group)).items():
            first, one = parts[0]
            for other, two in parts[1:]:
                difference = _difference(one, two, in_order=promise.total)
                if difference:
                    who = f"{first.process} and {other.process}"
                    yield f"{group}, view {view[0]}: {who} {difference}"


def _passages(stays: Iterable[Stay]) -> dict[tuple[View, View], list[tuple[Stay, InView]]]:
    passages: dict[tuple[View, View], list[tuple[Stay, InView]]] = defaultdict(list)
    for stay in stays:
        for part in stay.views:
            if part.next is not None:
                passages[part.view, part.next].append((stay, part))
    return passages


def _difference(one: InView, two: InView, *, in_order: bool) -> str:
    a, b = [got.message for got in one.got], [got.message for got in two.got]
    if only := set(a) ^ set(b):
        side = "the first" if next(iter(sorted(only))) in a else "the second"
        return f"differ in {len(only)} messages, {min(only)} is only at {side}"
    if in_order and a != b:
        at = next(i for i, (x, y) in enumerate(zip(a, b, strict=True)) if x != y)
        return f"have another order: at {at} {a[at]} and {b[at]}"
    return ""


def uniformity(case: Case) -> Iterator[str]:
    """Where it was asked for: what anybody delivered, also one who is gone, all survivors deliver.

    Promised while more than half of the view goes on. The order must be the survivors' too.
    """
    for group, promise in case.promises.items():
        if not promise.uniform or case.plan.merges:
            continue
        stays = case.history.of_group(group)
        for (view, _), parts in _passages(stays).items():
            if 2 * len({stay.name for stay, _ in parts}) <= len(view[1]):
                continue
            survivor = [got.message for got in parts[0][1].got]
            for stay in stays:
                last = stay.views[-1]
                if stay.end in ("killed", "out") and last.view == view and last.next is None:
                    yield from _undone(group, stay, last, survivor, in_order=promise.total)


def _undone(
    group: str, stay: Stay, last: InView, survivor: list[str], *, in_order: bool
) -> Iterator[str]:
    got = [one.message for one in last.got]
    if lost := set(got) - set(survivor):
        where = f"{group}, view {last.view[0]}"
        yield f"{stay.process} delivered {min(lost)} in {where}; no survivor did"
    elif in_order and got != survivor[: len(got)]:
        yield f"{stay.process} delivered in another order than the survivors of {group}"


def nothing_lost(case: Case) -> Iterator[str]:
    """Whoever stays in a group from before it speaks until the end delivers its own words."""
    for stay in case.history.stays:
        if stay.end != "final":
            continue
        heard = {got.message for got in stay.got}
        for sent in case.history.sent.values():
            if (
                sent.process == stay.process
                and sent.group == stay.group
                and sent.done
                and sent.moment > stay.views[0].moment
                and sent.message not in heard
            ):
                yield f"{stay.process} never delivered its own {sent.message} in {stay.group}"


# -- order ----------------------------------------------------------------------------------------


def fifo(case: Case) -> Iterator[str]:
    """Messages of a sender come in its order, and none is left out of an incarnation's."""
    for stay in case.history.stays:
        if not case.promises[stay.group].fifo:
            continue
        last: dict[str, int] = {}  # by sender's process: place of the newest in its log
        for got in stay.got:
            sent = case.history.sent.get(got.message)
            if sent is None:
                continue
            before = last.get(sent.process, -1)
            if sent.place < before:
                yield f"{stay.process} delivered {got.message} in {stay.group} after a later one"
            last[sent.process] = max(before, sent.place)
        yield from _gaps(case, stay)


def _gaps(case: Case, stay: Stay) -> Iterator[str]:
    """Left out: sent between two that were delivered, all three by one incarnation."""
    heard = {got.message for got in stay.got}
    spans: dict[tuple[str, int], tuple[int, int]] = {}
    for message in heard:
        sent = case.history.sent.get(message)
        if sent is not None and sent.done:
            key = (sent.process, sent.incarnation)
            low, high = spans.get(key, (sent.place, sent.place))
            spans[key] = (min(low, sent.place), max(high, sent.place))
    for sent in case.history.sent.values():
        low, high = spans.get((sent.process, sent.incarnation), (0, 0))
        if (
            sent.group == stay.group
            and sent.done
            and low < sent.place < high
            and sent.message not in heard
        ):
            yield f"{stay.process} left out {sent.message} in {stay.group}"


def causal(case: Case) -> Iterator[str]:
    """Nothing is delivered before, or without, what its sender had sent or delivered before it."""
    return causality(case.history, case.promises)


def total_across(case: Case) -> Iterator[str]:
    """Two who are never interrupted deliver what both get in one order, also of several groups."""
    groups = {group for group, promise in case.promises.items() if promise.total_across}
    protocols = {case.promises[group].protocol for group in groups}
    for protocol in sorted(protocols):
        inside = {group for group in groups if case.promises[group].protocol == protocol}
        orders = _uninterrupted(case.history, inside)
        names = sorted(orders)
        for number, one in enumerate(names):
            for two in names[number + 1 :]:
                a = [m for m in orders[one] if m in orders[two]]
                b = [m for m in orders[two] if m in orders[one]]
                if a != b:
                    at = next(i for i, (x, y) in enumerate(zip(a, b, strict=True)) if x != y)
                    yield f"{one} and {two}: {a[at]} and {b[at]} in {', '.join(sorted(inside))}"


def _uninterrupted(history: History, groups: set[str]) -> dict[str, dict[str, None]]:
    """By process that had one stay in each of its groups, to the end: messages in its order."""
    stays: dict[str, list[Stay]] = defaultdict(list)
    for stay in history.stays:
        if stay.group in groups:
            stays[stay.process].append(stay)
    return {
        process: dict.fromkeys(
            got.message
            for got in sorted((g for stay in own for g in stay.got), key=lambda got: got.place)
        )
        for process, own in stays.items()
        if all(stay.end == "final" for stay in own)
        and len({stay.group for stay in own}) == len(own)
    }


CHECKS: dict[str, Callable[[Case], Iterator[str]]] = {
    "recovery": recovery,
    "no failure": no_failure,
    "no end": no_end,
    "no creation": no_creation,
    "no duplication": no_duplication,
    "membership": membership,
    "one history": one_history,
    "agreement": agreement,
    "uniformity": uniformity,
    "nothing lost": nothing_lost,
    "fifo": fifo,
    "causal": causal,
    "total across groups": total_across,
}
