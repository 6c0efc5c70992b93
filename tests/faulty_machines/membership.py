"""Faults in the flush that a leader runs."""

from __future__ import annotations

from typing import ClassVar

from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.output import Output
from ordercast.core.protocol import OrderingProtocol
from ordercast.membership.led import LedMembership
from ordercast.stack.stack import Stack


class SendsDuringTheFlush(LedMembership):
    """Goes on sending in the old view after it has reported what it holds."""

    @property
    def blocked(self) -> bool:
        return False

    @blocked.setter
    def blocked(self, _: bool) -> None:
        pass


class WaitsForNobody(LedMembership):
    """As the leader: installs the next view on the reports that are here already."""

    def _install_when_all_reported(self, out: Output) -> None:
        came = {p: len(frames) for p, frames in self.reported.items()}
        self.expected = {p: came[p] if n is None else n for p, n in self.expected.items()}
        super()._install_when_all_reported(out)


class StackOnFaultyMembership(Stack):
    """A stack with a membership of another kind."""

    membership: ClassVar[type[LedMembership]]

    def open(
        self, g: GroupId, protocol: type[OrderingProtocol], leader: ProcessId | None = None
    ) -> None:
        super().open(g, protocol, leader)
        self.memberships[g] = self.membership(self.me, self.protocols[g])


class StackThatSendsDuringTheFlush(StackOnFaultyMembership):
    """Over `SendsDuringTheFlush`."""

    membership = SendsDuringTheFlush


class StackThatWaitsForNobody(StackOnFaultyMembership):
    """Over `WaitsForNobody`."""

    membership = WaitsForNobody
