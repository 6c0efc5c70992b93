"""All that the judge remembers of a run, as plain data: numbers stand for names."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

import msgspec

from ordercast.pipeline.streaming.live.idset import IdSet
from ordercast.pipeline.streaming.live.notices import Finding, Notice

EVERYTHING = -1  # the scope of all groups together; other scopes are numbers of groups
NOBODY = -1
FROM_THE_START = -1  # a membership that no event of the log opens
MOST_CHANGES = 256  # membership changes remembered per process and group, views per group


ORDERS = (
    "fifo.group", "fifo.global", "causal.group", "causal.global",
    "total.group", "total.global", "total.pairwise", "total.gapless",
)  # fmt: skip


class Limits(msgspec.Struct, frozen=True):
    """What may be remembered of one run. Reaching one is said, and the verdicts say so too."""

    messages: int = 200_000  # not yet delivered by everybody who owes them
    held_rows: int = 500_000  # deliveries whose send was not read yet, and what follows them
    findings: int = 1_000  # told per property
    overdue: int = 20  # told per process at a time; further ones are only counted


class HeldRow(msgspec.Struct, array_like=True):
    """A row that waits for its turn."""

    kind: str
    message: str
    group: str
    sender: str | None = None
    view: int = 0
    members: list[str] = []


class Trail(msgspec.Struct):
    """Messages along one log, by position."""

    at: list[int] = []
    numbers: list[int] = []
    dead: int = 0  # of them forgotten since the last tidying

    def add(self, at: int, number: int) -> None:
        self.at.append(at)
        self.numbers.append(number)

    def between(self, after: int, upto: int) -> list[int]:
        """Those at after < position <= upto."""
        if not self.at or self.at[-1] <= after:
            return []
        return self.numbers[bisect_right(self.at, after) : bisect_right(self.at, upto)]


class Passed(msgspec.Struct):
    """What a process has gone past, in one order and one scope, per sender."""

    clock: list[int] = []  # the highest position in the sender's log that it knows of
    by: list[str] = []  # the delivered message that says so
    compared: list[int] = []  # up to here the sender's messages were looked for
    epoch: int = 0  # of the process's membership when they were


class Change(msgspec.Struct, array_like=True):
    """Membership of a process in a group from one event of its log on."""

    at: int
    inside: bool
    since: int  # position of the event that opened the present membership
    installed: int | None  # the view that this event installed
    current: int | None  # the view that holds now
    highest: int  # of all views installed so far


class Stay(msgspec.Struct):
    """A process and a group."""

    style: str = ""  # "": no events of its own; "joins"; "views"
    changes: list[Change] = []
    begins_inside: bool = False  # the first event was a `leave`
    first_delivery: str = ""  # a message of the group that it delivered
    perhaps: list[tuple[str, int, str]] = []  # (property, missed, delivered): if it is a member
    last_view: int | None = None  # the view row before the next one, whatever lies between
    was_in_last_view: bool = False
    since_view: list[str] | None = None  # delivered since then; None: not known in full


class Top(msgspec.Struct, array_like=True):
    """The latest place, in one log, of a message that two processes have both delivered."""

    at: int = -1
    message: str = ""


class Walk(msgspec.Struct, array_like=True):
    """How far along one log another process was compared with it, in which epoch of its own."""

    at: int = -1
    epoch: int = -1


class Process(msgspec.Struct):
    """One log, and what its process knows."""

    name: str
    number: int
    last_index: int | None = None
    held: list[HeldRow] = []
    position: int = 0  # events judged so far
    ended: bool = False
    crashed: bool = False  # its own log says so
    noted: bool = False  # another process saw it die
    lost: bool = False
    blocked_ms: int = -1  # since when its next row waits for a send
    changed_at: list[int] = []  # positions of its membership events
    changes_before: int = 0  # forgotten ones
    fifo: dict[int, Passed] = {}  # by scope
    causal: dict[int, Passed] = {}
    sent: dict[int, Trail] = {}  # by scope
    delivered: dict[int, Trail] = {}  # by group
    tops: dict[int, dict[int, Top]] = {}  # by scope, then by the other process
    walks: dict[int, dict[int, Walk]] = {}  # by group, then by who was compared with this log
    stays: dict[int, Stay] = {}  # by group
    forgotten: IdSet = msgspec.field(default_factory=IdSet)  # delivered, and no longer remembered
    overdue_told: int = 0  # at present

    def epoch(self, position: int) -> int:
        """How many membership events it had before that position."""
        return self.changes_before + bisect_left(self.changed_at, position)

    def is_crashed(self) -> bool:
        return self.crashed or (self.noted and not self.ended)


class Stretch(msgspec.Struct):
    """A set of messages delivered between two views, and by whom."""

    messages: list[str]  # sorted
    processes: list[int]


class Group(msgspec.Struct):
    """One group."""

    name: str
    number: int
    declared: set[str] = set()
    views: dict[int, list[list[str]]] = {}  # every list recorded for a view
    views_forgotten: int | None = None  # up to this number
    first_with: dict[int, int] = {}  # view -> the first process that was read to install it
    stretches: dict[str, list[Stretch]] = {}  # "view>next view" -> the different sets


class Message(msgspec.Struct):
    """One message that somebody may still deliver, or that still matters for an order."""

    id: str
    number: int
    sender: int = NOBODY
    at: int = -1  # position of its send
    group: int = NOBODY
    view: int | None = None  # the sender's at the send, if the sender is in it
    clock: list[int] = []  # what happened before the send: a position per process
    group_clock: list[int] = []  # the same by messages of its group only
    since_ms: int = 0  # when it was first read
    got: dict[int, int] = {}  # who delivered it, at which position
    said: dict[int, str] = {}  # no send so far: whom each delivery names as the sender
    passed: list[tuple[int, int, str, int]] = []  # (q, position, b, p): see `pairs.tell_passed`
    overdue: list[int] = []  # at whom that was told
    debtors: int = 0  # how many owed it when it was last looked at


class Precedence(msgspec.Struct):
    """The union of all delivery orders in one scope, as a graph that is kept acyclic."""

    rank: dict[int, int] = {}  # message -> a place that respects every edge
    after: dict[int, dict[int, list[int]]] = {}  # message -> next -> who delivered them so
    before: dict[int, set[int]] = {}
    last: dict[int, int] = {}  # process -> its latest message
    next_rank: int = 0


class RunState(msgspec.Struct):
    """Everything about one run."""

    checks: set[str] = msgspec.field(default_factory=lambda: set(ORDERS))  # the rest is always
    processes: list[Process] = []
    groups: list[Group] = []
    process_numbers: dict[str, int] = {}
    group_numbers: dict[str, int] = {}
    messages: dict[int, Message] = {}  # in the order in which they were first read
    message_numbers: dict[str, int] = {}
    next_message: int = 0
    forgotten: IdSet = msgspec.field(default_factory=IdSet)  # sent, and no longer remembered
    upcoming: dict[str, int] = {}  # send read but held back -> its process
    waiting: dict[str, list[int]] = {}  # message -> processes whose next row needs its send
    graphs: dict[int, Precedence] = {}
    findings: dict[str, Finding] = {}
    told: dict[str, int] = {}  # findings per property
    notices: list[Notice] = []  # since the last time somebody took them
    doubts: dict[str, int] = {}  # what limits judging, and how often
    old: list[int] = []  # messages past the stability time that are still owed
    young_from: int = 0  # messages below this number were looked at
    latest_ns: int = 0  # the highest `time` read
    now_ms: int = 0

    def process(self, name: str) -> Process:
        number = self.process_numbers.get(name)
        if number is None:
            number = self.process_numbers[name] = len(self.processes)
            self.processes.append(Process(name, number))
        return self.processes[number]

    def group(self, name: str) -> Group:
        number = self.group_numbers.get(name)
        if number is None:
            number = self.group_numbers[name] = len(self.groups)
            self.groups.append(Group(name, number))
        return self.groups[number]

    def message(self, name: str) -> Message | None:
        number = self.message_numbers.get(name)
        return None if number is None else self.messages[number]

    def new_message(self, name: str) -> Message:
        number = self.next_message
        self.next_message += 1
        self.message_numbers[name] = number
        message = self.messages[number] = Message(name, number, since_ms=self.now_ms)
        return message

    def doubt(self, what: str) -> bool:
        """Count it; True the first time."""
        self.doubts[what] = self.doubts.get(what, 0) + 1
        return self.doubts[what] == 1

    def alive(self) -> Iterator[Process]:
        return (p for p in self.processes if not p.is_crashed() and not p.ended)
