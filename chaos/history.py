"""What happened in a run, put together from the logs: messages, and stays in groups.

A *stay* is one uninterrupted membership of a process in a group: from its first view until it is
out, leaves, is killed, or the run ends. What it delivered in a view that was followed by another
one is *complete*: all others who went from the one to the other delivered the same. What it
delivered in its last view before it was killed or excluded is not: the others may not have got it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from chaos.logs import Entry, Log

View = tuple[int, tuple[str, ...]]  # number, members

RAISED = -1  # stands for the incarnation after a call that raised
FINAL: View = (-1, ())  # stands for the next view where the run ended in order


@dataclass(frozen=True)
class Sent:
    """A message, as its sender wrote it down."""

    message: str
    number: int  # its place among all messages of all processes
    group: str
    process: str  # "name.life"
    place: int  # its place in the log of its process
    moment: float
    crc: int
    incarnation: int  # of the sender before the call
    after: int | None  # ... and after it; None: the call did not return

    @property
    def sender(self) -> str:
        return self.process.split(".")[0]

    @property
    def done(self) -> bool:
        """Did the call return, and was it the same incarnation all the time?"""
        return self.after == self.incarnation


@dataclass(frozen=True)
class Got:
    """A delivery."""

    message: str
    sender: str
    crc: int
    moment: float
    place: int  # in the log of its process


@dataclass
class InView:
    """What a stay delivered in one of its views."""

    view: View
    moment: float
    got: list[Got] = field(default_factory=list)
    next: View | None = None  # the view that followed; None: none did


@dataclass
class Stay:
    """One uninterrupted membership."""

    process: str
    name: str
    group: str
    incarnation: int  # as the program saw it when it took the first view
    views: list[InView]
    end: str = "killed"  # or "out", "left", "final"

    @property
    def got(self) -> Iterable[Got]:
        return (got for part in self.views for got in part.got)


@dataclass
class History:
    """All of a run."""

    sent: dict[str, Sent]
    stays: list[Stay]
    homeless: list[str]  # deliveries outside of any view, as sentences
    logs: Sequence[Log]

    def of_group(self, group: str) -> list[Stay]:
        return [stay for stay in self.stays if stay.group == group]


def history_of(logs: Sequence[Log], settled: float | None, living: Iterable[str]) -> History:
    """From all logs, up to the moment when the run had settled.

    `living` are the processes that ran then; their stays are `final` if the run had settled at all.
    """
    until = float("inf") if settled is None else settled
    ends = dict.fromkeys(living, "killed" if settled is None else "final")
    history = History({}, [], [], logs)
    for log in logs:
        entries = [entry for entry in log.entries if entry[0] <= until]
        _take_sent(history.sent, log, entries)
        reader = _Reader(log, history.homeless)
        reader.read(entries)
        history.stays += reader.finished(ends.get(log.process, "killed"))
    return history


def _take_sent(sent: dict[str, Sent], log: Log, entries: list[Entry]) -> None:
    after = {entry[2]: entry[3] for entry in entries if entry[1] == "sent"}
    after |= {entry[2]: RAISED for entry in entries if entry[1] == "unsent"}
    for place, entry in enumerate(entries):
        if entry[1] == "send":
            moment, _, group, message, crc, incarnation = entry
            sent[message] = Sent(
                message, len(sent), group, log.process, place, moment, crc, incarnation,
                after.get(message),
            )  # fmt: skip


class _Reader:
    """Puts the stays of one process together."""

    def __init__(self, log: Log, homeless: list[str]) -> None:
        self._log = log
        self._open: dict[str, Stay] = {}
        self._done: list[Stay] = []
        self._homeless = homeless
        self._leaving: set[str] = set()  # groups that the program has asked to be out of
        self._closing = False

    def _leaves(self, group: str) -> bool:
        return self._closing or group in self._leaving

    def read(self, entries: list[Entry]) -> None:
        for place, entry in enumerate(entries):
            match entry[1:]:
                case ["view", group, number, members, joined, _, incarnation]:
                    view = (number, tuple(members))
                    self._view(group, InView(view, entry[0]), self._log.name in joined, incarnation)
                case ["got", group, sender, message, crc]:
                    self._got(group, Got(message, sender, crc, entry[0], place))
                case ["out", "Excluded", *_]:
                    for group in tuple(self._open):
                        self._end(group, "out")
                case ["leave", group]:
                    self._leaving.add(group)
                case ["closing"]:
                    self._closing = True

    def _view(self, group: str, view: InView, first: bool, incarnation: int) -> None:
        if self._is_told_again(group, view, incarnation):
            return
        if first:  # also after a NotPrimary that ended as an exclusion, and after a merge
            self._end(group, "left" if self._leaves(group) else "out")
            self._leaving.discard(group)
        stay = self._open.get(group)
        if stay is not None and self._leaves(group) and self._log.name not in view.view[1]:
            stay.views[-1].next = view.view  # the last view of one that leaves is without it
            self._end(group, "left")
        elif stay is None:
            self._open[group] = Stay(self._log.process, self._log.name, group, incarnation, [view])
        else:
            stay.views[-1].next = view.view
            stay.views.append(view)

    def _is_told_again(self, group: str, view: InView, incarnation: int) -> bool:
        """The sign that a node which was cut off has missed nothing: its view, once more."""
        stay = self._open.get(group)
        return (
            stay is not None
            and stay.views[-1].view == view.view
            and stay.incarnation == incarnation
        )

    def _got(self, group: str, got: Got) -> None:
        if group in self._open:
            self._open[group].views[-1].got.append(got)
        else:
            self._homeless.append(
                f"{self._log.process} delivered {got.message} in {group}, of which it had no view"
            )

    def _end(self, group: str, how: str) -> None:
        stay = self._open.pop(group, None)
        if stay is not None:
            stay.end = how
            self._done.append(stay)

    def finished(self, how: str) -> list[Stay]:
        """All stays; those that are open end in that way."""
        for group in tuple(self._open):
            self._end(group, "left" if self._leaves(group) else how)
        for stay in self._done:
            if stay.end == "final":
                stay.views[-1].next = FINAL
        return self._done
