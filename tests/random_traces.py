"""Random small traces, good and spoiled, to compare judges with.

A run is first made to keep its promise (no order, FIFO, causal or total order, with or without
joins, views and crashes), then most runs are spoiled by a few of `random_mutations.MUTATIONS`.
The same `random.Random` gives the same traces.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import msgspec

from ordercast.trace.schema import Event
from random_mutations import MUTATIONS, Draft

PROCESSES = ("p", "q", "r", "s", "t", "u", "v", "w")
GROUPS = ("g", "h", "i")
ORDERS = ("none", "fifo", "causal", "total")


def random_traces(rng: Random, count: int) -> Iterator[list[Event]]:
    """`count` traces of one run each; the runs are named t0, t1, ..."""
    for number in range(count):
        yield random_trace(rng, run=f"t{number}")


def random_trace(
    rng: Random, *, run: str = "", order: str | None = None, mutations: int | None = None
) -> list[Event]:
    """One run of 2 to 5 processes, 1 to 3 overlapping groups and at most 12 messages.

    One in twenty is larger: up to 8 processes and 20 messages.
    `order` is one of ORDERS: what the run promises over all groups. `mutations` says how often it
    is spoiled; with 0 it keeps its promise. Both are drawn if not given.
    """
    draft = random_draft(rng, order or rng.choice((*ORDERS, "total", "total")))
    if mutations is None:
        mutations = rng.choice((0, 1, 1, 1, 2, 2, 3, 4))
    for _ in range(mutations):
        rng.choice(MUTATIONS)(draft, rng)
    return _rows(draft, rng, run, equal_indexes=mutations > 0 and rng.random() < 0.02)


def random_draft(rng: Random, order: str) -> Draft:
    """A run that keeps its promise, not yet spoiled and not yet numbered."""
    return _World(rng, order).run()


class _World:
    """One run with a global clock: whoever is a member when m is sent gets m."""

    def __init__(self, rng: Random, order: str) -> None:
        self.rng = rng
        self.order = order
        large = rng.random() < 0.05
        self.most_messages, self.most_steps = (20, 60) if large else (12, 30)
        names = PROCESSES[: rng.randint(4, 8) if large else rng.randint(2, 5)]
        self.logs: dict[str, list[Event]] = {p: [] for p in names}
        self.alive = set(names)
        self.members: dict[str, list[str]] = {}  # group -> who gets its messages now
        self.views: dict[str, int] = {}  # group with views -> number of the present one
        self.excluded: set[tuple[str, str]] = set()  # (process, group): read so in a view
        self.inbox: dict[str, list[str]] = {p: [] for p in names}  # sent, not yet delivered here
        self.known: dict[str, set[str]] = {p: set() for p in names}  # sent or delivered here
        self.sent: dict[str, Event] = {}
        self.needs: dict[str, set[str]] = {}  # message -> those to be delivered before it
        self.declarations: list[Event] = []
        for g in GROUPS[: rng.randint(1, 3)]:
            self._found(g)

    def _found(self, g: str) -> None:
        """Give the group its first members, as a declaration, as a view, or not at all."""
        members = [p for p in self.logs if self.rng.random() < 0.8] or [min(self.logs)]
        self.members[g] = members
        style = self.rng.choice(("declared", "declared", "views", "views", "joins"))
        if style == "declared":
            self.declarations.append(Event(None, None, "group", group=g, members=tuple(members)))
        if style == "views":
            self._install(g, members)
        if style == "joins":
            for p in members:
                self._log(p, "join", group=g)

    def run(self) -> Draft:
        actions = [self._send, self._send, self._send, self._deliver, self._deliver, self._deliver]
        if self.rng.random() < 0.5:
            actions += [self._change_membership]
        if self.rng.random() < 0.4:
            actions += [self._crash]
        for _ in range(self.rng.randint(6, self.most_steps)):
            self.rng.choice(actions)()
        for p in sorted(self.alive):
            self._drain(p)
            self._log(p, "end")
        return Draft(self.logs, self.declarations)

    def _log(self, p: str, kind: str, **columns: object) -> None:
        self.logs[p].append(
            msgspec.convert({"process": p, "index": 0, "kind": kind, **columns}, Event)
        )

    def _send(self) -> None:
        if len(self.sent) == self.most_messages or not self.alive:
            return
        p, g = self.rng.choice(sorted(self.alive)), self.rng.choice(sorted(self.members))
        if p not in self.members[g] and self.rng.random() < 0.7:
            return
        m = f"m{len(self.sent)}"
        self._log(p, "send", message=m, group=g)
        self.sent[m] = self.logs[p][-1]
        self.needs[m] = {
            "none": set(),
            "fifo": {a for a, send in self.sent.items() if send.process == p},
            "causal": set(self.known[p]),
            "total": set(self.sent),
        }[self.order] - {m}
        self.known[p] |= {m}
        for q in self.members[g]:
            self.inbox[q].append(m)

    def _deliver(self) -> None:
        waiting = [p for p in sorted(self.alive) if self.inbox[p]]
        if waiting:
            self._deliver_one(self.rng.choice(waiting))

    def _deliver_one(self, p: str) -> None:
        ready = [m for m in self.inbox[p] if not self.needs[m] & set(self.inbox[p])]
        m = self.rng.choice(ready)
        self.inbox[p].remove(m)
        self.known[p] |= {m} | self.needs[m]
        send = self.sent[m]
        self._log(p, "deliver", message=m, group=send.group, sender=send.process)

    def _drain(self, p: str) -> None:
        while self.inbox[p]:
            self._deliver_one(p)

    def _crash(self) -> None:
        if len(self.alive) > 1 and self.rng.random() < 0.3:
            p = self.rng.choice(sorted(self.alive))
            self.alive.remove(p)
            self._log(p, "crash")

    def _change_membership(self) -> None:
        """Somebody joins or leaves a group, or those who crashed are left out of its next view."""
        g, p = self.rng.choice(sorted(self.members)), self.rng.choice(sorted(self.alive))
        after = [q for q in self.members[g] if q != p and q in self.alive]
        joins = p not in self.members[g]
        if (p, g) in self.excluded:  # coming back at once would be a vsync difference
            return
        if joins or (g in self.views and self.rng.random() < 0.3):
            after.append(p)
        if g in self.views:
            self._install(g, after)
        elif joins:
            self.members[g].append(p)
            self._log(p, "join", group=g)
        else:
            self.members[g].remove(p)
            self.inbox[p] = [m for m in self.inbox[p] if self.sent[m].group != g]
            self._log(p, "leave", group=g)

    def _install(self, g: str, members: list[str]) -> None:
        """The next view: everybody delivers what was sent in the last one, then goes on."""
        before, self.members[g] = self.members[g], members
        self.views[g] = self.views.get(g, 0) + 1
        for p in sorted(self.alive & {*before, *members}):
            self._drain(p)
            if p not in members and self.rng.random() < 0.5:
                self._log(p, "leave", group=g)
            else:
                self.excluded |= {(p, g)} - {(member, g) for member in members}
                self._log(p, "view", group=g, view=self.views[g], members=members)


def _rows(draft: Draft, rng: Random, run: str, *, equal_indexes: bool) -> list[Event]:
    """Number the events of each log, with holes; the order of the rows means nothing."""
    rows = [msgspec.structs.replace(event, run=run) for event in draft.declarations]
    with_time = rng.random() < 0.5
    steps = (0, 1, 2, 7) if equal_indexes else (1, 1, 1, 2, 7)
    for log in draft.logs.values():
        index = rng.choice((0, 1, 10))
        for event in log:
            time = 1000 * len(rows) if with_time else None
            rows.append(msgspec.structs.replace(event, index=index, run=run, time=time))
            index += rng.choice(steps)
    rng.shuffle(rows)
    return rows
