"""The logs of one run, and what happened before what."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, wraps
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

from ordercast.trace.oracle.graphs import transitive_closure
from ordercast.trace.schema import Event

P = ParamSpec("P")
Result = TypeVar("Result")


class Place(NamedTuple):
    """One event of a run: the `position`-th one (from 0) of the log of `process`."""

    process: str
    position: int


class Run:
    """One run: a log per process, and the declared members of each group."""

    def __init__(self, events: Sequence[Event], *, quiescent: bool = False) -> None:
        self.quiescent = quiescent  # pretend that every cut log has `end`
        self.known: dict[Any, Any] = {}  # see `looked_up_once`
        self.kinds = {event.kind for event in events}
        self.declared: dict[str, set[str]] = {}  # group -> union of its declarations
        for event in events:
            if event.kind == "group" and event.group is not None:
                self.declared.setdefault(event.group, set()).update(event.members or ())
        rows = [event for event in events if event.kind != "group" and event.process is not None]
        names = {event.process for event in rows if event.process is not None}
        names.update(*self.declared.values())
        self.logs: dict[str, list[Event]] = {  # L_p: p's events by index; empty if only declared
            name: sorted((e for e in rows if e.process == name), key=lambda e: e.index or 0)
            for name in sorted(names)
        }

    # How a log stops.

    @cached_property
    def kinds_of(self) -> dict[str, set[str]]:
        """The kinds that occur in each log."""
        return {process: {event.kind for event in log} for process, log in self.logs.items()}

    def has(self, process: str, kind: str) -> bool:
        return kind in self.kinds_of[process]

    def crashed(self, process: str) -> bool:
        return self.has(process, "crash")

    def cut(self, process: str) -> bool:
        """A log without `crash` or `end` is cut; `quiescent` pretends that it has `end`."""
        stops = self.has(process, "crash") or self.has(process, "end")
        return not stops and not self.quiescent

    def has_end(self, process: str) -> bool:
        """The log says, or is taken to say, that nothing more would have been delivered."""
        return not self.crashed(process) and not self.cut(process)

    def lost(self, process: str) -> bool:
        return self.has(process, "lost")

    def incomplete(self, process: str) -> bool:
        """Crashed, cut, or with a `lost` record."""
        return self.crashed(process) or self.cut(process) or self.lost(process)

    def correct(self) -> list[str]:
        """The processes that did not crash, those with a cut log included."""
        return [process for process in self.logs if not self.crashed(process)]

    # Messages.

    @cached_property
    def sends(self) -> dict[str, Place]:
        """Where each message was sent; the first send counts."""
        first: dict[str, Place] = {}
        for process, log in self.logs.items():
            for position, event in enumerate(log):
                if event.kind == "send" and event.message is not None:
                    first.setdefault(event.message, Place(process, position))
        return first

    @cached_property
    def deliveries(self) -> dict[str, dict[str, int]]:
        """process -> message -> position of its first delivery, in the order of delivery."""
        first: dict[str, dict[str, int]] = {process: {} for process in self.logs}
        for process, log in self.logs.items():
            for position, event in enumerate(log):
                if event.kind == "deliver" and event.message is not None:
                    first[process].setdefault(event.message, position)
        return first

    @cached_property
    def delivered(self) -> list[str]:
        """Every message that somebody delivered."""
        return sorted({message for first in self.deliveries.values() for message in first})

    def event(self, place: Place) -> Event:
        return self.logs[place.process][place.position]

    @cached_property
    def groups(self) -> dict[str, str]:
        """group(m) of every message that was sent or delivered."""
        return {message: self._group_of(message) for message in {*self.sends, *self.delivered}}

    def group_of(self, message: str) -> str:
        return self.groups[message]

    def _group_of(self, message: str) -> str:
        """The group of its send; without one, the lowest of its first deliveries'."""
        if message in self.sends:
            return self.event(self.sends[message]).group or ""
        return min(
            self.logs[process][first[message]].group or ""
            for process, first in self.deliveries.items()
            if message in first
        )

    # Happened-before.

    @cached_property
    def before(self) -> dict[Place, set[Place]]:
        """The full relation, over all groups: place -> the places it happened before."""
        return transitive_closure(self.steps(set(self.sends)))

    def before_in(self, group: str) -> dict[Place, set[Place]]:
        """The relation in which only the messages of `group` lead from one log to another."""
        return transitive_closure(self.steps({m for m in self.sends if self.group_of(m) == group}))

    def steps(self, messages: set[str]) -> dict[Place, set[Place]]:
        """Program order in L_p, one step each; send(m) -> deliver_q(m) for m of `messages`."""
        next_places: dict[Place, set[Place]] = {}
        for process, log in self.logs.items():
            for position in range(len(log)):
                later = {Place(process, position + 1)} if position + 1 < len(log) else set()
                next_places[Place(process, position)] = later
        for message in messages:
            for process, first in self.deliveries.items():
                if message in first:
                    next_places[self.sends[message]].add(Place(process, first[message]))
        return next_places


def looked_up_once(
    find: Callable[Concatenate[Run, P], Result],
) -> Callable[Concatenate[Run, P], Result]:
    """A fact about a run that is asked for again and again. Nothing in a run ever changes."""

    @wraps(find)
    def look_up(run: Run, /, *args: P.args, **kwargs: P.kwargs) -> Result:
        key = (find, args, *sorted(kwargs.items()))
        if key not in run.known:
            run.known[key] = find(run, *args, **kwargs)
        known: Result = run.known[key]
        return known

    return look_up
