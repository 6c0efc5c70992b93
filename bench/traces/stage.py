"""A place in a run where one fault is acted out, and what is claimed of it.

Acts follow each other: what is delivered in one act has reached everybody before the next one, so a
send in act 1 has the deliveries of act 0 in its past. Meanwhile those who take part send nothing
else. So a fault breaks what it is meant to break, at one message, and no more.
"""

from __future__ import annotations

from dataclasses import dataclass

from bench.traces.world import STEP, Extra, Group, Ints, World

SEND_APART = 20
ACTS = 2


@dataclass(frozen=True)
class Fault:
    """A planted fault: what it breaks, and who and what must stand in the witness."""

    name: str
    breaks: tuple[str, ...]  # without uniform forms and hybrids; the first is its very own
    messages: frozenset[str]  # what it is about
    missing: frozenset[tuple[str, str]]  # (process, message) that never comes
    processes: frozenset[str]  # where it shows
    group: str | None  # for faults of views
    chain: tuple[str, ...]  # how the first message happened before the last


class Stage:
    """What a fault may do, from place `first` on."""

    def __init__(self, world: World, number: int, first: int, people: list[int]) -> None:
        self.world = world
        self.number = number
        self.first = first
        self.people = people  # who may take part
        self._delays: dict[int, Ints] = {}
        self._groups = 0
        self._slots: dict[tuple[str, int, int], int] = {}

    def group(self, *members: int, declared: bool = True) -> int:
        """A new group; with `declared=False` only views will tell who is in it."""
        name = f"f{self.number}" + "abc"[self._groups]
        self._groups += 1
        return self.world.add_group(Group(name, declared=list(members) if declared else None))

    def send(self, sender: int, group: int, act: int = 0) -> int:
        """A new message; its number."""
        message = self.world.add_message(sender, group)
        time = (self.first + act * self.world.span) * STEP + self._next("send", 0, act) * SEND_APART
        self._add(Extra(sender, time, "send", message))
        return message

    def unsent(self, sender: int, group: int) -> int:
        """A message that is said to be of `sender`, who never sent it."""
        return self.world.add_message(sender, group)

    def deliver(self, q: int, *messages: int, act: int = 0) -> None:
        """q delivers these, in this order."""
        for message in messages:
            self._add(Extra(q, self._time(q, act), "deliver", message))

    def view(self, p: int, group: int, view: int, *members: int, act: int = 0) -> None:
        self._add(Extra(p, self._time(p, act), "view", -1, group, view, members))

    def send_after(self, sender: int, group: int, act: int = 0) -> int:
        """A send after what its sender delivered or installed in this act so far."""
        message = self.world.add_message(sender, group)
        self._add(Extra(sender, self._time(sender, act), "send", message))
        return message

    def _time(self, q: int, act: int) -> int:
        if q not in self._delays:
            self._delays[q] = self.world.delays(q)
        place = self.first + act * self.world.span
        return int(self._delays[q][place]) + self._next("deliver", q, act)

    def _next(self, what: str, q: int, act: int) -> int:
        slot = self._slots.get((what, q, act), 0) + 1
        self._slots[what, q, act] = slot
        return slot

    def _add(self, extra: Extra) -> None:
        self.world.extras.append(extra)
