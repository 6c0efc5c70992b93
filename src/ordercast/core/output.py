"""What a machine wants done, as columns.

A driver handles one `Output` in this order, because later lines rely on earlier ones:

1. `transmits` are handed to the channel. A relay must be on its way before the application can
   see the message: otherwise a process may deliver, crash, and leave nobody who has it.
2. `deliveries` are handed to the application, messages and views in one order.
3. everything else.

The columns belong to the machine and are valid until its next step.
"""

from __future__ import annotations

import msgspec

from ordercast.core.events import View
from ordercast.core.ids import GroupId, ProcessId

Transmit = tuple[tuple[ProcessId, ...], GroupId, int, msgspec.Struct, bytes]
"""(destinations, group, era, header, payload)"""

Delivery = tuple[GroupId, ProcessId, int, int, bytes]
"""(group, sender, the sender's frame number n, the sequencer's number or 0, payload)"""

TimerRequest = tuple[GroupId, str, int]
"""(group, name, delay in ms); replaces a running timer of that name, a negative delay cancels it"""

Word = tuple[ProcessId, GroupId, int, type[msgspec.Struct]]
"""(destination, group, era, kind of header): of several in one step only the last counts"""

Conflict = tuple[GroupId, ProcessId, int, ProcessId]
"""(group, origin, n, relay): the two have said different things of frame n of the origin"""

Note = tuple[str, GroupId, ProcessId, int, str]
"""(kind, group, sender, n, remark): hold, retransmit, nack, ... for traces at protocol level"""


class Output:
    """The effects of one step."""

    __slots__ = (
        "conflicts", "deliveries", "eras", "faults", "guest", "news", "notes", "ordered", "stable",
        "timers", "transmits", "words",
    )  # fmt: skip

    def __init__(self) -> None:
        self.transmits: list[Transmit] = []
        self.deliveries: list[Delivery | View] = []
        self.timers: list[TimerRequest] = []
        self.stable: list[tuple[GroupId, int]] = []  # own frames up to n: delivered by all
        self.guest: list[tuple[GroupId, bool]] = []  # from now on, or no longer, a guest of g
        self.ordered: list[tuple[GroupId, int]] = []  # a guest's frames up to n have their place
        self.faults: list[tuple[ProcessId, str]] = []  # a peer broke the protocol
        self.conflicts: list[Conflict] = []  # one of two peers lies, and nobody knows which
        self.notes: list[Note] = []
        self.news: list[msgspec.Struct] = []  # of the cluster: see `membership.news`
        self.words: dict[Word, int] = {}  # where in `transmits` each stands
        self.eras: list[tuple[int, View]] = []  # a new era, and how many deliveries came before

    def send_word(self, p: ProcessId, g: GroupId, era: int, header: msgspec.Struct) -> None:
        """Tell p how things stand. A later word of the same kind, in the same step, replaces it."""
        word = (p, g, era, type(header))
        packet = ((p,), g, era, header, b"")
        if word in self.words:
            self.transmits[self.words[word]] = packet
        else:
            self.words[word] = len(self.transmits)
            self.transmits.append(packet)

    def clear(self) -> None:
        """Forget the previous step."""
        if self.transmits:
            self.transmits = []
        if self.deliveries:
            self.deliveries = []
        if self.timers:
            self.timers = []
        if self.stable:
            self.stable = []
        if self.eras:
            self.eras = []
        if self.news:
            self.news = []
        if self.notes or self.faults or self.words or self.guest or self.ordered:  # rare
            self.guest, self.ordered, self.faults, self.notes, self.words = [], [], [], [], {}
            self.conflicts = []
