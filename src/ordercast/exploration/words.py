"""Steps, logs and waiting in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ordercast.core.events import Crashed
from ordercast.core.ids import ProcessId
from ordercast.core.waiting import IN_WORDS, Awaited, Waiting
from ordercast.exploration.process import Entry, Process, Processes
from ordercast.exploration.scenario import message_name
from ordercast.exploration.space import Action

FATES = {
    "arrive": "arrives",
    "repeat": "arrives, and will come again",
    "lose": "is lost",
    "gone": "is lost with its sender",
}
VERBS = {"send": "says", "deliver": "delivers", "fault": "blames", "error": "breaks:"}


def line(processes: Processes, action: Action) -> str:
    """A step."""
    kind, p, subject = action
    if kind == "crash":
        return f"p{p} crashes"
    if isinstance(subject, tuple):
        group, name = subject
        return f"timer {name} of g{group} fires at p{p}"
    assert subject is not None
    if kind == "say":
        group = processes.scenario.script[subject].group
        return f"p{p} multicasts {message_name(subject)} to g{group}"
    packet = processes.packets[subject].receive
    if isinstance(packet.header, Crashed):
        return f"p{p} learns that p{packet.src} of g{packet.group} crashed"
    body = f" {packet.payload.decode(errors='replace')}" if packet.payload else ""
    way = f"p{packet.src} -> p{p}"
    return f"packet g{packet.group} {packet.header}{body} {way} {FATES[kind]}"


def logged(p: ProcessId, entry: Entry) -> str:
    """A line of the log of p."""
    return f"p{p} {VERBS[entry.kind]} {entry.what}"


def held_back(processes: Iterable[Process]) -> Iterator[str]:
    """Every message that waits, and what it waits for."""
    for process in processes:
        if not process.crashed:
            for machine in process.machines:
                for waiting in machine.held_back():
                    yield _waits(process.p, waiting)


def _waits(p: ProcessId, waiting: Waiting) -> str:
    text = waiting.payload.decode(errors="replace") or f"frame {waiting.n}"
    awaited = " and ".join(map(_awaited, waiting.awaits)) or "its turn"
    return f"p{p} holds back {text} of p{waiting.sender}: it waits for {awaited}"


def _awaited(awaited: Awaited) -> str:
    return IN_WORDS[awaited.what].format(
        number=awaited.number, process=f"p{awaited.process}", group=f"g{awaited.group}"
    )
