"""The ways in which a random trace is spoiled, one small function each."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from msgspec import Struct
from msgspec.structs import replace

from ordercast.trace.schema import Event


class Draft(Struct):
    """A trace being made: logs in order, indexes not yet given."""

    logs: dict[str, list[Event]]
    declarations: list[Event]

    def places(self, *kinds: str) -> list[tuple[list[Event], int]]:
        """Every event of these kinds (of all, if none is named), as its log and position."""
        return [
            (log, position)
            for log in self.logs.values()
            for position, event in enumerate(log)
            if not kinds or event.kind in kinds
        ]

    def groups(self) -> list[str]:
        named = {e.group for log in self.logs.values() for e in log if e.group is not None}
        return sorted(named | {e.group for e in self.declarations if e.group is not None}) or ["g"]

    def messages(self) -> list[str]:
        found = {e.message for log in self.logs.values() for e in log if e.message is not None}
        return sorted(found) or ["m0"]


Mutation = Callable[[Draft, Random], None]


def _pick(draft: Draft, rng: Random, *kinds: str) -> tuple[list[Event], int] | None:
    places = draft.places(*kinds)
    return rng.choice(places) if places else None


def _insert(draft: Draft, rng: Random, event: Event) -> None:
    """Put the event somewhere into the log of its process, before a final crash or end."""
    assert event.process is not None
    log = draft.logs[event.process]
    last = len(log) - 1 if log and log[-1].kind in ("crash", "end") else len(log)
    log.insert(rng.randint(0, max(last, 0)), event)


def _somebody(draft: Draft, rng: Random) -> str:
    return rng.choice(sorted(draft.logs))


# Deliveries.


def swap_neighbours(draft: Draft, rng: Random) -> None:
    """Two deliveries that follow each other change places."""
    log = draft.logs[_somebody(draft, rng)]
    at = [i for i, event in enumerate(log) if event.kind == "deliver"]
    if len(at) >= 2:
        which = rng.randrange(len(at) - 1)
        i, j = at[which], at[which + 1]
        log[i], log[j] = log[j], log[i]


def shuffle_deliveries(draft: Draft, rng: Random) -> None:
    """One log delivers its messages in any order."""
    log = draft.logs[_somebody(draft, rng)]
    at = [i for i, event in enumerate(log) if event.kind == "deliver"]
    for i, event in zip(at, rng.sample([log[i] for i in at], len(at)), strict=True):
        log[i] = event


def drop_a_delivery(draft: Draft, rng: Random) -> None:
    if place := _pick(draft, rng, "deliver"):
        del place[0][place[1]]


def drop_deliveries_of_a_message(draft: Draft, rng: Random) -> None:
    """Nobody delivers it."""
    message = rng.choice(draft.messages())
    for log in draft.logs.values():
        log[:] = [e for e in log if not (e.kind == "deliver" and e.message == message)]


def repeat_a_delivery(draft: Draft, rng: Random) -> None:
    if place := _pick(draft, rng, "deliver"):
        _insert(draft, rng, place[0][place[1]])


def deliver_elsewhere(draft: Draft, rng: Random) -> None:
    """Some process, a member or not, delivers some message once more or for the first time."""
    message, group = rng.choice(draft.messages()), rng.choice(draft.groups())
    _insert(draft, rng, Event(_somebody(draft, rng), 0, "deliver", message, group))


def deliver_the_unknown(draft: Draft, rng: Random) -> None:
    """A message that nobody sent, with a sender known, unknown or not named."""
    sender = rng.choice((None, _somebody(draft, rng), "nobody"))
    group = rng.choice(draft.groups())
    for process in rng.sample(sorted(draft.logs), rng.randint(1, len(draft.logs))):
        _insert(draft, rng, Event(process, 0, "deliver", "x", group, sender=sender))


def deliver_in_another_group(draft: Draft, rng: Random) -> None:
    if place := _pick(draft, rng, "deliver"):
        log, i = place
        log[i] = replace(log[i], group=rng.choice(draft.groups()))


def move_an_event(draft: Draft, rng: Random) -> None:
    if place := _pick(draft, rng, "send", "deliver", "view", "join", "leave"):
        log, i = place
        _insert(draft, rng, log.pop(i))


def delay_a_delivery(draft: Draft, rng: Random) -> None:
    """It comes after everything else that its process delivers."""
    if place := _pick(draft, rng, "deliver"):
        log, i = place
        late = log.pop(i)
        last = max((j for j, event in enumerate(log) if event.kind == "deliver"), default=i - 1)
        log.insert(last + 1, late)


def turn_a_ring(draft: Draft, rng: Random) -> None:
    """Three processes deliver a then b, b then c, c then a: no two of them disagree."""
    if len(draft.logs) < 3:
        return
    names = rng.sample(sorted(draft.logs), 3)
    groups = [rng.choice(draft.groups()) for _ in names]
    for i, process in enumerate(names):
        j = (i + 1) % 3
        log = draft.logs[process]
        before_the_last = max(len(log) - 1, 0)
        log[before_the_last:before_the_last] = [
            Event(process, 0, "send", f"ring{i}", groups[i]),
            Event(process, 0, "deliver", f"ring{i}", groups[i], sender=process),
            Event(process, 0, "deliver", f"ring{j}", groups[j], sender=names[j]),
        ]


# Sends.


def drop_a_send(draft: Draft, rng: Random) -> None:
    if place := _pick(draft, rng, "send"):
        del place[0][place[1]]


def repeat_a_send(draft: Draft, rng: Random) -> None:
    if place := _pick(draft, rng, "send"):
        log, i = place
        _insert(draft, rng, replace(log[i], group=rng.choice(draft.groups())))


def send_from_outside(draft: Draft, rng: Random) -> None:
    """A message of some process, member or not, that few or none deliver."""
    sender, group = _somebody(draft, rng), rng.choice(draft.groups())
    _insert(draft, rng, Event(sender, 0, "send", "y", group))
    for process in rng.sample(sorted(draft.logs), rng.randint(0, 2)):
        _insert(draft, rng, Event(process, 0, "deliver", "y", group, sender=sender))


def send_by_another(draft: Draft, rng: Random) -> None:
    """One message sent by two processes, usually."""
    if place := _pick(draft, rng, "send"):
        log, i = place
        _insert(draft, rng, replace(log[i], process=_somebody(draft, rng)))


def forget_senders(draft: Draft, rng: Random) -> None:
    """The optional column `sender` is absent."""
    for log, i in draft.places("deliver"):
        log[i] = replace(log[i], sender=None)


# How logs stop.


def crash_early(draft: Draft, rng: Random) -> None:
    process = _somebody(draft, rng)
    log = draft.logs[process]
    del log[rng.randint(0, len(log)) :]
    log.append(Event(process, 0, "crash"))


def crash_at_the_end(draft: Draft, rng: Random) -> None:
    if place := _pick(draft, rng, "end"):
        log, i = place
        log[i] = replace(log[i], kind="crash")


def disorder_before_a_crash(draft: Draft, rng: Random) -> None:
    """Only a process that crashed sees another order."""
    process = _somebody(draft, rng)
    log = draft.logs[process]
    at = [i for i, event in enumerate(log) if event.kind == "deliver"]
    for i, event in zip(at, rng.sample([log[i] for i in at], len(at)), strict=True):
        log[i] = event
    if log and log[-1].kind == "end":
        log[-1] = replace(log[-1], kind="crash")


def cut_early(draft: Draft, rng: Random) -> None:
    log = draft.logs[_somebody(draft, rng)]
    del log[rng.randint(0, len(log)) :]


def cut_at_the_end(draft: Draft, rng: Random) -> None:
    for log in draft.logs.values():
        if log and log[-1].kind == "end" and rng.random() < 0.6:
            del log[-1]


def lose_records(draft: Draft, rng: Random) -> None:
    """A `lost` record in one log in place of a delivery, if there is any."""
    process = _somebody(draft, rng)
    log = draft.logs[process]
    at = [i for i, event in enumerate(log) if event.kind == "deliver"]
    if at:
        log[rng.choice(at)] = Event(process, 0, "lost")
    else:
        _insert(draft, rng, Event(process, 0, "lost"))


def lose_records_between_views(draft: Draft, rng: Random) -> None:
    """A `lost` record in place of a delivery that has a view before and after it."""
    places = [
        (log, i)
        for log, i in draft.places("deliver")
        if any(e.kind == "view" and e.group == log[i].group for e in log[:i])
        and any(e.kind == "view" and e.group == log[i].group for e in log[i:])
    ]
    if places:
        log, i = rng.choice(places)
        log[i] = replace(log[i], kind="lost", message=None, group=None, sender=None)


def lose_records_beside_a_gap(draft: Draft, rng: Random) -> None:
    """One log lacks a delivery, and a `lost` record elsewhere in it may be why."""
    if place := _pick(draft, rng, "deliver"):
        log, i = place
        process = log.pop(i).process
        _insert(draft, rng, Event(process, 0, "lost"))


def go_on_after_the_end(draft: Draft, rng: Random) -> None:
    if place := _pick(draft, rng, "crash", "end"):
        log, i = place
        _insert(draft, rng, log.pop(i))


def crash_and_end(draft: Draft, rng: Random) -> None:
    process = _somebody(draft, rng)
    draft.logs[process] += [Event(process, 0, "crash"), Event(process, 0, "end")]


# Membership and views.


def join_or_leave(draft: Draft, rng: Random) -> None:
    kind, group = rng.choice(("join", "leave")), rng.choice(draft.groups())
    _insert(draft, rng, Event(_somebody(draft, rng), 0, kind, group=group))


def drop_a_membership_event(draft: Draft, rng: Random) -> None:
    if place := _pick(draft, rng, "view", "join", "leave"):
        del place[0][place[1]]


def leave_and_come_back(draft: Draft, rng: Random) -> None:
    """A member by joins is away for a while, and delivers in between or not."""
    process, group = _somebody(draft, rng), rng.choice(draft.groups())
    log = draft.logs[process]
    last = len(log) - 1 if log and log[-1].kind in ("crash", "end") else len(log)
    first, second = sorted(rng.randint(0, max(last, 0)) for _ in range(2))
    log.insert(second, Event(process, 0, "join", group=group))
    log.insert(first, Event(process, 0, "leave", group=group))


def change_a_view(draft: Draft, rng: Random) -> None:
    """Another list or another number."""
    if place := _pick(draft, rng, "view"):
        log, i = place
        members = list(log[i].members or ())
        rng.shuffle(members)
        shorter = tuple(members[:-1])
        view = (log[i].view or 0) + rng.choice((-1, 1))
        log[i] = rng.choice(
            (replace(log[i], members=tuple(members)), replace(log[i], members=shorter),
             replace(log[i], view=view)),
        )  # fmt: skip


def install_a_view(draft: Draft, rng: Random) -> None:
    """One process alone, with a list that may name a stranger or leave itself out."""
    members = rng.sample([*sorted(draft.logs), "stranger"], rng.randint(1, len(draft.logs)))
    event = Event(
        _somebody(draft, rng), 0, "view", group=rng.choice(draft.groups()),
        view=rng.randint(1, 4), members=tuple(members),
    )  # fmt: skip
    _insert(draft, rng, event)


def forget_views(draft: Draft, rng: Random) -> None:
    """One log says nothing of views."""
    log = draft.logs[_somebody(draft, rng)]
    log[:] = [event for event in log if event.kind != "view"]


def declare(draft: Draft, rng: Random) -> None:
    """One more declaration, which may name somebody without a log."""
    members = rng.sample([*sorted(draft.logs), "absent"], rng.randint(0, 2))
    group = rng.choice(draft.groups())
    draft.declarations.append(Event(None, None, "group", group=group, members=tuple(members)))


def forget_declarations(draft: Draft, rng: Random) -> None:
    draft.declarations.clear()


# Whole kinds, and noise.


def forget_a_kind(draft: Draft, rng: Random) -> None:
    """All sends, or all deliveries, or all views are gone: something becomes n/a."""
    gone = rng.choice(("send", "deliver", "view"))
    for log in draft.logs.values():
        log[:] = [event for event in log if event.kind != gone]


def add_noise(draft: Draft, rng: Random) -> None:
    """Kinds that are counted and mean nothing."""
    for _ in range(rng.randint(1, 5)):
        kind, message = rng.choice(("receive", "forward", "ack")), rng.choice(draft.messages())
        _insert(draft, rng, Event(_somebody(draft, rng), 0, kind, message, draft.groups()[0]))


MUTATIONS: tuple[Mutation, ...] = (
    swap_neighbours, shuffle_deliveries, drop_a_delivery, drop_deliveries_of_a_message,
    repeat_a_delivery, deliver_elsewhere, deliver_the_unknown, deliver_in_another_group,
    move_an_event, delay_a_delivery, turn_a_ring, drop_a_send, repeat_a_send, send_from_outside,
    send_by_another, forget_senders,
    crash_early, crash_at_the_end, disorder_before_a_crash, cut_early, cut_at_the_end, lose_records,
    lose_records_between_views, lose_records_beside_a_gap, go_on_after_the_end, crash_and_end,
    join_or_leave, leave_and_come_back, drop_a_membership_event, change_a_view, install_a_view,
    forget_views, declare, forget_declarations, forget_a_kind, add_noise,
)  # fmt: skip
