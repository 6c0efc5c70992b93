"""Small traces as text, for tests and examples.

One line per process, its events separated by semicolons; one line per declaration:

    group g: p,q
    p: send a g; deliver a g; end
    q: view 1 g p,q; deliver a g from p; leave g; lost; crash

A line `p:` alone makes no row. Events are numbered 1, 2, 3, ... in each log.
"""

from __future__ import annotations

from ordercast.trace.schema import KINDS, Event


def trace(text: str, *, run: str = "") -> list[Event]:
    """The events that the text describes; a ValueError names what cannot be read."""
    events: list[Event] = []
    for line in filter(None, map(str.strip, text.splitlines())):
        name, _, rest = line.partition(":")
        items = [item.split() for item in rest.split(";") if item.strip()]
        if name.startswith("group "):
            members = _names(items[0][0]) if items else ()
            group = name.split()[1]
            events.append(Event(None, None, "group", group=group, members=members, run=run))
        else:
            events += [_event(name, i, words, run) for i, words in enumerate(items, start=1)]
    return events


def _event(process: str, index: int, words: list[str], run: str) -> Event:
    match words:
        case ["view", number, group, *members]:
            listed = _names(members[0]) if members else ()
            return Event(
                process, index, "view", group=group, view=int(number), members=listed, run=run
            )
        case ["deliver", message, group, "from", sender]:
            return Event(process, index, "deliver", message, group, run=run, sender=sender)
        case ["join" | "leave" as kind, group]:
            return Event(process, index, kind, group=group, run=run)
        case ["crash" | "end" | "lost" as kind]:
            return Event(process, index, kind, run=run)
        case [kind, message, group] if kind in KINDS:
            return Event(process, index, kind, message, group, run=run)
    raise ValueError(f"{process}: cannot read {' '.join(words)!r}")


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))
