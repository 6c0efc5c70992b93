"""Causal order, by what the programs wrote: the past of a message is a set of bits.

The past of a message is what its sender had sent and delivered before it, in the same incarnation,
and the past of all that. Groups of one protocol count together where that is promised.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from chaos.history import History, Sent, Stay, View
from chaos.logs import Entry, Log
from chaos.promises import Promises


def causality(history: History, promises: Mapping[str, Promises]) -> Iterator[str]:
    """A sentence for each delivery that came before, or without, something of its past."""
    for groups in _domains(promises):
        past = _pasts(history, groups)
        yield from _too_early(history, groups, past)
        yield from _left_out(history, groups, past)


def _domains(promises: Mapping[str, Promises]) -> list[set[str]]:
    domains: dict[str, set[str]] = {}
    for group, promise in promises.items():
        if promise.causal:
            key = promise.protocol if promise.causal_across else f"{promise.protocol} {group}"
            domains.setdefault(key, set()).add(group)
    return list(domains.values())


@dataclass
class _Sender:
    """What is before the next message of a process."""

    incarnation: int | None = None  # of the stays that it reads now; None: not known
    heard: int = 0  # bits
    said: dict[int, int] = field(default_factory=dict)  # by incarnation: bits


def _pasts(history: History, groups: set[str]) -> dict[str, int]:
    """By message: the bits of its past. By the one clock of the machine, causes come first."""
    entries = sorted(
        ((entry[0], place, log, entry) for log in history.logs for place, entry in _numbered(log)),
        key=lambda one: (one[0], one[2].process, one[1]),
    )
    senders = {log.process: _Sender() for log in history.logs}
    past: dict[str, int] = {}
    for _, _, log, entry in entries:
        _take(history, groups, senders[log.process], past, log, entry)
    return past


def _numbered(log: Log) -> Iterator[tuple[int, Entry]]:
    wanted = ("up", "out", "view", "got", "send")
    return ((place, entry) for place, entry in enumerate(log.entries) if entry[1] in wanted)


def _take(
    history: History,
    groups: set[str],
    sender: _Sender,
    past: dict[str, int],
    log: Log,
    entry: Entry,
) -> None:
    match entry[1:]:
        case ["up", incarnation]:
            sender.incarnation = incarnation
        case ["out", "Excluded", *_]:
            sender.incarnation, sender.heard = None, 0
        case ["view", _, _, _, joined, _, incarnation] if log.name in joined:
            if sender.incarnation != incarnation:
                sender.incarnation, sender.heard = incarnation, 0
        case ["got", group, _, message, _] if group in groups and message in history.sent:
            sender.heard |= past.get(message, 0) | _bit(history.sent[message])
        case ["send", group, message, _, incarnation] if group in groups:
            sent = history.sent.get(message)
            if sent is not None:
                past[message] = _before(sender, sent)
                if sent.done:
                    sender.said[incarnation] = past[message] | _bit(sent)


def _before(sender: _Sender, sent: Sent) -> int:
    """The bits of what its incarnation had sent and heard before.

    A call during which the node was out, or went over to the other side of a partition, may have
    sent the message as the next incarnation: nothing is known then.
    """
    if sent.after not in (sent.incarnation, None):
        return 0
    heard = sender.heard if sender.incarnation == sent.incarnation else 0
    return heard | sender.said.get(sent.incarnation, 0)


def _bit(sent: Sent) -> int:
    return 1 << sent.number


def _too_early(history: History, groups: set[str], past: dict[str, int]) -> Iterator[str]:
    """Delivered by one incarnation, the cause after the effect."""
    names = {sent.number: sent.message for sent in history.sent.values()}
    for process, deliveries in _streams(history, groups).items():
        later = 0
        for message in reversed(deliveries):
            wrong = past.get(message, 0) & later
            if wrong:
                cause = names[(wrong & -wrong).bit_length() - 1]
                yield f"{process} delivered {message} before {cause}, on which it depends"
            later |= _bit(history.sent[message])


def _streams(history: History, groups: set[str]) -> dict[str, list[str]]:
    """By process and incarnation, as far as the program knew it: messages in order."""
    streams: dict[str, list[tuple[int, str]]] = {}
    for stay in history.stays:
        if stay.group in groups:
            stream = streams.setdefault(f"{stay.process}#{stay.incarnation}", [])
            stream += [(got.place, got.message) for got in stay.got if got.message in history.sent]
    return {key: [message for _, message in sorted(stream)] for key, stream in streams.items()}


def _left_out(history: History, groups: set[str], past: dict[str, int]) -> Iterator[str]:
    """Never delivered, though somebody delivered the cause in a view that this stay was in."""
    names = {sent.number: sent.message for sent in history.sent.values()}
    in_view = _delivered_in(history, groups)
    for stay in history.stays:
        if stay.group not in groups:
            continue
        due, heard = 0, 0
        for part in stay.views:
            due |= in_view.get((stay.group, part.view), 0)
            for got in part.got:
                missing = past.get(got.message, 0) & due & ~heard
                if missing and not _comes_later(history, stay, missing, names):
                    cause = names[(missing & -missing).bit_length() - 1]
                    yield (
                        f"{stay.process} delivered {got.message} in {stay.group} without {cause}, "
                        "on which it depends"
                    )
                if got.message in history.sent:
                    heard |= _bit(history.sent[got.message])


def _comes_later(history: History, stay: Stay, missing: int, names: dict[int, str]) -> bool:
    """Then it is told by `_too_early`, once."""
    cause = names[(missing & -missing).bit_length() - 1]
    return any(got.message == cause for got in stay.got)


def _delivered_in(history: History, groups: set[str]) -> dict[tuple[str, View], int]:
    """By group and view: the bits of all that anybody delivered in it."""
    found: dict[tuple[str, View], int] = {}
    for stay in history.stays:
        if stay.group in groups:
            for part in stay.views:
                bits = found.get((stay.group, part.view), 0)
                for got in part.got:
                    if got.message in history.sent:
                        bits |= _bit(history.sent[got.message])
                found[stay.group, part.view] = bits
    return found
