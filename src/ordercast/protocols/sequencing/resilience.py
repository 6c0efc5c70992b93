"""How many members must hold a frame before it is *safe*, group by group."""

from __future__ import annotations

from ordercast.core.durability import MAJORITY, Durability
from ordercast.core.events import View
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.state import PlainState


class Resilience(PlainState):
    """k of each group for which one was asked. Without one, a causal order needs one holder beside
    the sequencer, a total order none."""

    def __init__(self, me: ProcessId, *, causal: bool) -> None:
        self.me = me
        self.causal = causal
        self.asked: dict[GroupId, Durability] = {}  # of groups that said one

    def others_needed(self, view: View) -> int:
        """How many members beside the sequencer must hold a frame before it is safe."""
        durability = self.asked.get(view.group)
        if durability == MAJORITY:
            return len(view.members) // 2 + 1 - (view.leader in view.members)
        if durability is None:
            return 1 if self.causal else 0
        return durability

    def others_awaited(self, view: View) -> int:
        """How many a sequencer waits for: also a frame that is delivered without it is at two nodes
        before its author is answered, or it is named elsewhere; not with `resilience=0`."""
        needed = self.others_needed(view)
        return needed if self.asked.get(view.group) == 0 else max(needed, 1)

    def commits_only(self, g: GroupId) -> bool:
        """With a resilience of two or more a member cannot see by itself that enough have it."""
        durability = self.asked.get(g)
        return durability is not None and (durability == MAJORITY or durability > 1)

    def is_witness(self, view: View, origin: ProcessId) -> bool:
        """Must this member say at once that it has a frame of `origin`? Those do whose word makes
        it safe."""
        needed = self.others_needed(view)
        durability = self.asked.get(view.group)
        if not needed and origin in view.members:  # else its author would have nobody to ask
            return False
        others = [p for p in view.members if p != view.leader]
        return self.me in others[: max(needed, 1)] or durability == MAJORITY
