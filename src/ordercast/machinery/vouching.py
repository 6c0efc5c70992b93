"""Causal Blocks: which frames of the dead may be delivered when headers name no causes.

Two members die at once: q had delivered a message of p that nobody else got, and then sent another
one to us. Its block number does not say so. If we deliver it, we miss its cause for ever.

So a held frame travels through the flush with a word: does a survivor vouch for it? One that sent
or delivered it had everything before it. A frame without that word is delivered only if no other
member that is gone can have sent something below it that we have not heard of. With one member gone
there is no other, and nothing is lost that somebody holds.

One that leaves is gone, too, for those who see only the views. But it has reported all that it
sent. The leader knows who is dead: if that is the sender alone, the leader gives its word.

    stamp = (b, vouched, what else the page needs)
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection

import msgspec

from ordercast.core.events import Kept
from ordercast.core.ids import GroupId, ProcessId
from ordercast.machinery.silence import SpeakingProtocol

VOUCHED = 1


def vouched(frame: Kept) -> Kept:
    """The frame with the word of a survivor."""
    b, _, *more = frame.stamp
    return msgspec.structs.replace(frame, stamp=(b, VOUCHED, *more))


class VouchingProtocol(SpeakingProtocol):
    """A protocol whose stamps begin with the block number and whether a survivor vouches."""

    @abstractmethod
    def may_depend_on(self, frame: Kept, p: ProcessId) -> int:
        """The highest number of p that can have caused this frame."""

    def hand_over(self, g: GroupId, frame: Kept) -> None:
        super().hand_over(g, vouched(frame))

    @staticmethod
    def better(one: Kept, other: Kept) -> Kept:
        return max(one, other)

    @staticmethod
    def attested(frame: Kept, dead: Collection[ProcessId]) -> Kept:
        if len(frame.stamp) < 2 or any(p != frame.origin for p in dead):
            return frame  # a stamp that a peer made up is seen through later
        return vouched(frame)

    def well_stamped(self, g: GroupId, senders: tuple[ProcessId, ...], frame: Kept) -> bool:
        return (
            super().well_stamped(g, senders, frame)
            and len(frame.stamp) >= 2
            and frame.stamp[1] in (0, VOUCHED)
        )

    def lost(self, g: GroupId, frame: Kept, top: dict[ProcessId, int]) -> bool:
        if frame.stamp[1] == VOUCHED:
            return False
        view = self.views[g]
        gone = set(view.members) - self.staying.get(g, frozenset())
        return any(self.may_depend_on(frame, p) > max(top.get(p, 0), view.start) for p in gone)
