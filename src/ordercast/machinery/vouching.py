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

from collections.abc import Callable, Collection, Iterable, Mapping

import msgspec

from ordercast.core.events import Kept, View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.machinery.blocks import is_numbered

VOUCHED = 1


def vouched(frame: Kept) -> Kept:
    """The frame with the word of a survivor."""
    b, _, *more = frame.stamp
    return msgspec.structs.replace(frame, stamp=(b, VOUCHED, *more))


def better(one: Kept, other: Kept) -> Kept:
    """Two survivors report the same frame: the one that somebody vouches for."""
    return max(one, other)


def attested(frame: Kept, dead: Collection[ProcessId]) -> Kept:
    """At the leader, which gives its word if the sender alone is dead."""
    if len(frame.stamp) < 2 or any(p != frame.origin for p in dead):
        return frame  # a stamp that a peer made up is seen through later
    return vouched(frame)


def has_word(stamp: tuple[int, ...]) -> bool:
    """Does the stamp begin with a block number and whether a survivor vouches?"""
    return is_numbered(stamp) and len(stamp) >= 2 and stamp[1] in (0, VOUCHED)


class Unvouched:
    """At a cut: the frames for which nobody vouches, and which may depend on one that is lost."""

    def __init__(
        self,
        before: Mapping[GroupId, View],
        after: Iterable[View],
        may_depend_on: Callable[[Kept, ProcessId], int],
    ) -> None:
        self._views = before
        self._staying = {view.group: frozenset(view.senders) for view in after}
        self._may_depend_on = may_depend_on  # the highest number of p that can have caused it

    def __call__(self, g: GroupId, frame: Kept, top: dict[ProcessId, int]) -> bool:
        """Can another member that is gone have sent something below it that we did not hear of?"""
        if frame.stamp[1] == VOUCHED:
            return False
        view = self._views[g]
        gone = set(view.members) - self._staying.get(g, frozenset())
        return any(self._may_depend_on(frame, p) > max(top.get(p, 0), view.start) for p in gone)
