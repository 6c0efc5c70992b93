"""The packets of the cluster: who lives, who is in, and how a node view ends."""

from __future__ import annotations

from typing import Literal

import msgspec

from ordercast.core.ids import GroupId, ProcessId
from ordercast.membership.nodes import Ballot, GroupEntry, NodeEntry, NodeView
from ordercast.membership.placing_headers import PLACING_HEADERS

CLUSTER_GROUP: GroupId = -1  # packets of the cluster belong to no group

NOBODY_SOUGHT: ProcessId = -1

Part = Literal["member", "guest"]


class Attempt(msgspec.Struct, frozen=True, array_like=True):
    """One try to install node view `number`. Of two with one number the older node's counts."""

    number: int
    rank: int  # place of the coordinator in the view that ends: a lower one is older
    coordinator: ProcessId

    def beats(self, other: Attempt | None) -> bool:
        """Is this one to be followed rather than the other?"""
        return other is None or (self.number, -self.rank) > (other.number, -other.rank)


class Heartbeat(msgspec.Struct, frozen=True, array_like=True):
    """I live. In my view, `view`, there are so many nodes. You are one of them, or I look for one
    that is not: it may have been restarted at its address, and not be meant any more."""

    view: int
    coordinator: ProcessId
    size: int
    sought: ProcessId = NOBODY_SOUGHT
    confirmed: int = 0  # from the coordinator: this view is known to a majority


class Suspect(msgspec.Struct, frozen=True, array_like=True):
    """To the coordinator: I hear nothing from that node."""

    pid: ProcessId


class Stuck(msgspec.Struct, frozen=True, array_like=True):
    """To the coordinator: I stopped for a view that does not come."""


class Sighted(msgspec.Struct, frozen=True, array_like=True):
    """To the coordinator: there is another side, with so many nodes."""

    coordinator: ProcessId
    size: int


class Offer(msgspec.Struct, frozen=True, array_like=True):
    """To the coordinator of another side: we would come over to you."""


class Welcome(msgspec.Struct, frozen=True, array_like=True):
    """Come. We shall be here."""


class Join(msgspec.Struct, frozen=True, array_like=True):
    """Take this node into the cluster. Whoever does not coordinate passes it on."""

    node: NodeEntry


class Depart(msgspec.Struct, frozen=True, array_like=True):
    """I am in no group any more, and go for good. Count me no more; but I may have voted."""

    ballots: tuple[Ballot, ...] = ()  # so whoever goes on without me must win these, too


class Nodes(msgspec.Struct, frozen=True, array_like=True, repr_omit_defaults=True):
    """From the coordinator: nodes came or went in order. No group changes by it."""

    view: NodeView
    ballots: tuple[Ballot, ...]  # the views that decide a vote until this one is confirmed
    installed: Attempt | None  # the last attempt before it: views since then were announced
    lost: tuple[NodeEntry, ...] = ()  # excluded before; they may live, and be looked for


class NodesAck(msgspec.Struct, frozen=True, array_like=True):
    """I have that view; from the coordinator: a majority has it."""

    number: int


class Want(msgspec.Struct, frozen=True, array_like=True):
    """To the coordinator, until it is so: I want to be in that group."""

    group: GroupEntry
    part: Part
    former: tuple[str, ...] = ()  # nodes of our former side that were in it, and will ask too


class Unwant(msgspec.Struct, frozen=True, array_like=True):
    """To the coordinator, until it is so: I want to be out of that group. From it: you are, and
    nothing is under way that lets you in."""

    gid: GroupId
    quits: int = 0  # how often it wanted that, of any group: a late answer is to another wish


class EndView(msgspec.Struct, frozen=True, array_like=True):
    """The node view is to end: stop, and report. First finish what is ready of these eras."""

    attempt: Attempt
    nodes: tuple[ProcessId, ...]  # of the next view
    finish: tuple[tuple[GroupId, int], ...] = ()  # eras of groups that somebody has begun
    finish_view: Attempt | None = None  # a node view that somebody has installed


class GroupReport(msgspec.Struct, frozen=True, array_like=True):
    """One group, as it stands at the reporter."""

    entry: GroupEntry
    number: int  # of its view
    era: int
    members: tuple[ProcessId, ...]
    guests: tuple[ProcessId, ...]
    delivers: bool  # the reporter is a member
    mark: int  # of its numbers, where the protocol needs it
    progress: int  # last number delivered, where the protocol numbers
    last: tuple[tuple[ProcessId, int], ...]  # last frame delivered of each origin, there too
    ready: int = 0  # the era for which it has everything and waits for the word; 0: none
    numbers: bool = False  # the reporter is its sequencer


class NodeReport(msgspec.Struct, frozen=True, array_like=True):
    """What the reporter has. Its unstable frames come in packets of their own."""

    attempt: Attempt
    installed: Attempt | None  # what made its view, if that took an attempt
    view: NodeView
    ballots: tuple[Ballot, ...]  # its view as it counts in a vote, and those prepared since
    departed: tuple[ProcessId, ...]  # said good-bye: they do not count
    ready: Attempt | None  # a node view that it has prepared
    groups: tuple[GroupReport, ...]
    frames: int
    top_group: GroupId  # no group has a higher number, as far as it knows
    awaited: tuple[GroupId, ...] = ()  # open there, and it is not in them: it may be let in


class UnstableFrame(msgspec.Struct, frozen=True, array_like=True):
    """One unstable frame of a group, to the coordinator; or one of the union, from it."""

    attempt: Attempt
    gid: GroupId
    origin: ProcessId
    n: int
    stamp: tuple[int, ...]


class NextGroupView(msgspec.Struct, frozen=True, array_like=True):
    """A view of a group that begins with the node view."""

    entry: GroupEntry
    number: int
    members: tuple[ProcessId, ...]
    guests: tuple[ProcessId, ...]
    era: int
    start: int
    last: tuple[tuple[ProcessId, int], ...]
    leader: ProcessId  # numbers its views, and its messages where it has a sequencer

    @property
    def senders(self) -> tuple[ProcessId, ...]:
        """Members and guests; nobody if the group ends."""
        return (*self.members, *self.guests)


class PrepareView(msgspec.Struct, frozen=True, array_like=True):
    """The next node view, and the views of your groups. Say when the union is here."""

    attempt: Attempt
    view: NodeView
    groups: tuple[NextGroupView, ...]
    frames: int
    into: ProcessId = -1  # this is the last view of this side: all go over to that node's


class ViewReady(msgspec.Struct, frozen=True, array_like=True):
    """The union is here."""

    attempt: Attempt


class InstallView(msgspec.Struct, frozen=True, array_like=True):
    """All have the union: deliver it, and begin the views."""

    attempt: Attempt


class NoPrimary(msgspec.Struct, frozen=True, array_like=True):
    """This side must not go on: these nodes of the last view are missing."""

    attempt: Attempt
    view: int
    missing: tuple[ProcessId, ...]


class Overruled(msgspec.Struct, frozen=True, array_like=True):
    """To a coordinator: another attempt is followed here."""

    attempt: Attempt
    followed: Attempt


CLUSTER_HEADERS: tuple[type[msgspec.Struct], ...] = (
    Heartbeat, Suspect, Stuck, Sighted, Offer, Welcome, Join, Depart, Nodes, NodesAck, Want, Unwant,
    EndView, NodeReport, UnstableFrame, PrepareView, ViewReady, InstallView, NoPrimary, Overruled,
    *PLACING_HEADERS,
)  # fmt: skip

UNLINKED = (Heartbeat, Offer, Welcome)  # may be lost: they are said again
