"""Parts of a protocol: what a part may do, and what it is told.

A part keeps no reference to its machine, since the state of a machine is plain data. So a method of
a part that has effects is given the machine as its first argument, and sees its verbs alone.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from ordercast.core.events import View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.output import Output
from ordercast.core.protocol import Options
from ordercast.core.state import PlainState


class Verbs(Protocol):
    """A machine, as its parts see it."""

    me: ProcessId
    options: Options
    others: dict[GroupId, tuple[ProcessId, ...]]  # members without me, view order
    out: Output

    def send(self, p: ProcessId, g: GroupId, header: msgspec.Struct, m: bytes = b"") -> None:
        """send(p, m): one packet to one process."""

    def b_multicast(self, g: GroupId, header: msgspec.Struct, m: bytes = b"") -> None:
        """B-multicast(g, m): one packet to every other member."""

    def set_timer(self, g: GroupId, name: str, delay_ms: int) -> None:
        """Ask for `on_timer(g, name)` after the delay."""

    def note(self, kind: str, g: GroupId, sender: ProcessId, n: int, remark: str = "") -> None:
        """Something worth a line in a trace at protocol level."""


class Part(PlainState):
    """A part that lives as long as its machine, which serves all groups of a domain."""

    def begin(self, machine: Verbs, view: View) -> None:
        """A view begins, in which this process is a sender."""

    def forget_group(self, g: GroupId) -> None:
        """This process is out of g."""

    def on_timer(self, machine: Verbs, g: GroupId, name: str) -> None:
        """A delay is over. The timer may be one of another part."""

    def highest_number(self) -> int:
        """The highest number known here, if those of the next era must lie above it."""
        return 0
