"""Faults in orders that span groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from ordercast.core.events import Kept
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.protocol import Options
from ordercast.machinery.send_rule import SendRule
from ordercast.machinery.stability import Stability
from ordercast.protocols.block_total import BlockTotal
from ordercast.protocols.cbcast import Cbcast, Entry, Vectors, entries
from ordercast.protocols.global_fifo import GlobalFifo, Place
from ordercast.protocols.sequencer_pb import SequencerPB


class TellsOnlyItsOwnGroups(Cbcast):
    """A message tells of the groups that its sender is in, and of no others."""

    def changed_since_last(self, g: GroupId) -> tuple[int, ...]:
        told = entries(super().changed_since_last(g))
        return tuple(x for entry in told if entry[0] in self.member_of for x in entry)


class AClockPerGroup(Cbcast):
    """The vector of the group alone is tested: right in one group, as the slide says."""

    def changed_since_last(self, g: GroupId) -> tuple[int, ...]:
        told = entries(super().changed_since_last(g))
        return tuple(x for entry in told if entry[0] == g for x in entry)


class ClaimsWhatItHasNotDelivered(Cbcast):
    """Takes the maximum of what a message names for its own groups, too."""

    def awaited(self, g: GroupId, frame: Kept, missing: list[Entry]) -> Entry | None:
        for h, k, number in missing:
            if h != g and number > self.VV[h][k]:
                self.set_entry(h, k, number)
        return super().awaited(g, frame, missing)


class NoSendRule(SendRule):
    """Every frame may leave at once."""

    def exposed(self, sent: Mapping[GroupId, Stability], g: GroupId) -> list[GroupId]:
        return []


class SendsWithoutWaiting(Cbcast):
    """Sends to one group while nobody else holds what it sent to another."""

    def __init__(self, me: ProcessId, options: Options | None = None) -> None:
        super().__init__(me, options)
        self.send_rule = NoSendRule(self.options.resilience)


class DeliversWithoutTheLost(Cbcast):
    """Of each sender the contiguous part of the union, though its cause may be lost."""

    def depends_on_lost(self, g: GroupId, frame: Kept, last: dict[ProcessId, int]) -> bool:
        return False


class FlushesThePrefixAlone(DeliversWithoutTheLost):
    """... and what is lost is waited for."""

    def without_lost(self, frame: Kept, last: Vectors) -> list[Entry]:
        return [entry for entry in entries(frame.stamp) if entry[0] in last]


class SequencersCalledPairwise(SequencerPB):
    """A sequencer for each group, and a total order over all of them is promised."""

    declaration = msgspec.structs.replace(
        SequencerPB.declaration, promises=BlockTotal.declaration.promises
    )


class FifoInEachGroup(GlobalFifo):
    """Tests the number in the message's own group alone."""

    def awaited(self, g: GroupId, frame: Kept) -> Iterator[Place]:
        return (place for place in super().awaited(g, frame) if place[1] == g)
