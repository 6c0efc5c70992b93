"""What a witness knows beyond its events, in a line or two under the diagram.

The chain that leads from one message to another, the cycle with the process that holds each edge,
the difference between two sets or two lists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ordercast.judge.report.markup import Markup, element, joined
from ordercast.judge.report.names import Names

MOST_LISTED = 40  # messages or members in a row

Witness = Mapping[str, Any]
Steps = Sequence[tuple[str, str]]  # a message, and what stands at the arrow to the next one


def written_out(witness: Witness, names: Names) -> Markup:
    """All of it; nothing where the diagram says enough."""
    return joined(
        _chain(witness, names),
        _cycle(witness, names),
        _round(witness, names),
        _only(witness, names),
        _lists(witness, names),
    )


def _chain(witness: Witness, names: Names) -> Markup:
    """How the earlier message came to be known to the sender of the later one."""
    chain: Sequence[str] = witness.get("chain") or ()
    if len(chain) < 3:
        return Markup()
    steps = [(message, "before") for message in chain[:-1]]
    return _steps("Sent one after the other:", steps, chain[-1], names)


def _cycle(witness: Witness, names: Names) -> Markup:
    """Messages in a ring; each arrow says who delivered them in that order."""
    cycle: Sequence[Witness] = witness.get("cycle") or ()
    if not cycle:
        return Markup()
    words = "A cycle; each arrow names the process that delivers in that order:"
    steps = [(step["before"], names.label(step["process"])) for step in cycle]
    return _steps(words, steps, cycle[0]["before"], names)


def _round(witness: Witness, names: Names) -> Markup:
    """Messages each of which was delivered before the next was sent, and so before itself."""
    steps: Sequence[Witness] = witness.get("round") or ()
    if not steps:
        return Markup()
    words = (
        "A cycle; each arrow names the process that delivers the first message before it sends "
        "the second:"
    )
    told = [(step["delivers"], names.label(step["process"])) for step in steps]
    return _steps(words, told, steps[-1]["sends"], names)


def _steps(words: str, steps: Steps, last: str, names: Names) -> Markup:
    parts: list[str] = []
    for message, arrow in steps[:MOST_LISTED]:
        parts += [_chip(names.label(message)), element("span", f"— {arrow} →", class_="step"), " "]
    if len(steps) > MOST_LISTED:
        parts.append(f"… {len(steps) - MOST_LISTED} more … ")
    told = element("span", words, class_="soft")
    return element("p", told, *parts, _chip(names.label(last)), class_="steps")


def _only(witness: Witness, names: Names) -> Markup:
    """What one of two processes delivered and the other did not."""
    only: Mapping[str, Sequence[str]] = witness.get("only") or {}
    rows = [
        _row(f"only {names.label(process)}", _chips(messages, set(), names))
        for process, messages in only.items()
    ]
    named = sum(map(len, only.values()))
    if witness.get("differing", 0) > named:
        rows.append(_row("in all", f"{witness['differing']:,} messages, {named} of them named"))
    return element("dl", *rows) if rows else Markup()


def _lists(witness: Witness, names: Names) -> Markup:
    """Two lists of members, with who recorded each; marked is what differs."""
    lists: Sequence[Sequence[str]] = witness.get("lists") or ()
    who = [event["process"] for event in witness.get("events") or ()]
    who = who if len(who) == len(lists) else [f"list {k}" for k, _ in enumerate(lists, start=1)]
    rows = [
        _row(names.label(name), _chips(members, _in_place(members, lists), names))
        for name, members in zip(who, lists, strict=True)
    ]
    return element("dl", *rows) if rows else Markup()


def _row(term: str, told: str) -> Markup:
    return joined(element("dt", term), element("dd", told))


def _in_place(members: Sequence[str], lists: Sequence[Sequence[str]]) -> set[str]:
    """The members that other lists have too; in the same place, if only the order differs."""
    others = [other for other in lists if other is not members]
    if all(set(other) == set(members) for other in others):
        return {a for other in others for a, b in zip(members, other, strict=False) if a == b}
    return {name for other in others for name in other}


def _chips(items: Sequence[str], elsewhere: set[str], names: Names) -> Markup:
    """In a row; marked are those that are not `elsewhere`."""
    if not items:
        return element("span", "nothing", class_="soft")
    chips = [
        _chip(names.label(item), "chip" if item in elsewhere else "chip odd")
        for item in items[:MOST_LISTED]
    ]
    more = f"… and {len(items) - MOST_LISTED} more" if len(items) > MOST_LISTED else ""
    return joined(*[piece for chip in chips for piece in (chip, " ")], more)


def _chip(text: str, class_: str = "chip") -> Markup:
    return element("code", text, class_=class_)
