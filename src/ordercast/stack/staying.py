"""A node's stays in groups with several sequencers: how it comes in, goes, and comes in again.

    QUIT          out with the next view;  then the sequencer says that this node may go
    ASK           at once;  if a stay in that group is not over, as soon as it is
    it has gone   the group is closed here when nobody needs what this node has of it

What the coordinator makes of such wishes is in `membership.directory`.
"""

from __future__ import annotations

from abc import abstractmethod

from ordercast.core.ids import GroupId
from ordercast.core.output import Output
from ordercast.membership.cluster import Cluster
from ordercast.membership.cluster_headers import Unwant, Want
from ordercast.membership.nodes import GroupEntry
from ordercast.protocols.sequencing.part import GroupPart
from ordercast.protocols.sequencing.service import SequencingService
from ordercast.stack.stack import Stack


class StayingStack(Stack, Cluster):
    """What a node wishes of groups that have several sequencers, and when it may."""

    delayed: set[GroupId]  # groups that are asked for when a former stay in them is over

    @abstractmethod
    def open_group(self, entry: GroupEntry) -> None:
        """Take part in a group, as a member, as a guest, or to lead it."""

    def _part(self, gid: GroupId) -> GroupPart | None:
        """What this node has of a group that has several sequencers."""
        protocol = self.protocols.get(gid)
        return protocol.parts.get(gid) if isinstance(protocol, SequencingService) else None

    def leads(self, gid: GroupId) -> bool:
        """Do others need this node in the group, whether or not it is in it itself?"""
        protocol = self.protocols.get(gid)
        if protocol is None or protocol.together is None:
            return self.pids[:1] == (self.me,)
        return protocol.numbers(gid) or protocol.keeps_for_others(gid)

    def is_heard(self, gid: GroupId) -> bool:
        """This node has had its last view, and nobody needs it: is its word on that there?"""
        protocol = self.protocols.get(gid)
        return self.network == "N2" or (protocol is not None and protocol.together is not None)

    def waits_to_be_let_in(self, gid: GroupId) -> bool:
        """Does it know the group, because it numbers it or did, and asked to be in?"""
        service = self.protocols.get(gid)
        return isinstance(service, SequencingService) and gid in service.wanted

    def wait_no_more(self, gid: GroupId) -> None:
        """It will not be let in: what comes after entries of that group need not wait for it."""
        service = self.protocols[gid]
        assert isinstance(service, SequencingService)
        service.wanted.pop(gid, None)
        service.progressed(gid)

    def stay_lasts(self, gid: GroupId) -> bool:
        """Until the sequencer knows that this node has had its last view. One that is let in before
        would be taken for one that has been there all the time, or miss that view for ever."""
        if self._part(gid) is None:
            return False
        return (gid in self.unwants and not self.is_out(gid)) or self.keeps_open(gid)

    def keeps_open(self, gid: GroupId) -> bool:
        """This node is out of the group: must it stay open here, since others need what it has, or
        the driver has not seen all of it?"""
        part, gate, view = self._part(gid), self.gates.get(gid), self.view(gid)
        if part is None or (view is not None and self.me in view.senders):
            return False
        return part.keeps_for_others(gid) or (gate is not None and gate.awaits(gid))

    def _press(self, wish: Want | Unwant) -> None:
        if isinstance(wish, Want):
            gid = wish.group.gid
            if self.stay_lasts(gid):
                self.delayed.add(gid)
                return
            self.unwants.pop(gid, None)
            if gid in self.delayed:
                self.delayed.discard(gid)
                self.open_group(wish.group)
            if not self.is_in(wish):  # first: it may be in before the end of the step
                self._note_wanted(gid, member=wish.part == "member")
        super()._press(wish)

    def _conclude(self, out: Output) -> None:
        for gid in tuple(self.delayed):
            want = self.wants.get(gid)
            if want is None or (gid not in self.unwants and self.is_in(want)):
                self.delayed.discard(gid)
            elif not self.stay_lasts(gid):
                self._press(want)
        super()._conclude(out)

    def _note_wanted(self, gid: GroupId, *, member: bool) -> None:
        service = self.protocols.get(gid)
        if isinstance(service, SequencingService):
            service.wanted[gid] = member
