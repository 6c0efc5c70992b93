"""What one node knows of its cluster, and what it asks of its groups."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import msgspec

from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.output import Output
from ordercast.core.protocol import OrderingProtocol
from ordercast.core.state import PlainState
from ordercast.errors import PeerError
from ordercast.membership.cluster_headers import (
    CLUSTER_GROUP,
    NOBODY_SOUGHT,
    Attempt,
    GroupReport,
    Heartbeat,
    NextGroupView,
    Nodes,
    PrepareView,
    Want,
)
from ordercast.membership.detector import detector
from ordercast.membership.ending import Ending, Frames
from ordercast.membership.flapping import Flapping
from ordercast.membership.nodes import Ballot, GroupEntry, NodeEntry, NodeView, deciding
from ordercast.membership.standing import (
    Blocked,
    ClusterOptions,
    Dissolved,
    Installed,
    Out,
)

MERGE_STRIDE = 1 << 20  # numbers of views where sides may go on alone: see `next_view_number`


class Knowledge(PlainState, ABC):
    """The state that all parts of the cluster machine share."""

    def __init__(self, node: NodeEntry, options: ClusterOptions) -> None:
        self.node = node
        self.me = node.pid
        self.cluster_options = options
        self.node_view: NodeView | None = None  # in force here
        self.pids: tuple[ProcessId, ...] = ()  # its nodes, in order
        self.in_view: frozenset[ProcessId] = frozenset()  # the same, to look up
        self.installed: Attempt | None = None  # the attempt that made it, or a view before it
        self.held = 0  # a majority is known to have had this view
        self.ballots: list[Ballot] = []  # the view that is known to be in force, and those since
        self.departed: set[ProcessId] = set()  # said good-bye: they do not count in votes
        self.detector = detector(options.detector, options.timeout_ticks)
        self.flapping = Flapping()
        self.blocked: Blocked | None = None  # this side is no majority
        self.out_of_it = False  # the others went on without this node
        self.contacts: tuple[ProcessId, ...] = ()  # while this node is not in
        self.going = False  # this node wants to leave
        self.retired = False  # it has said good-bye: it votes no more
        self.gone: set[ProcessId] = set()  # nodes that were excluded; their numbers are not reused
        self.lost: dict[ProcessId, NodeEntry] = {}  # excluded; they may live beyond a partition
        self.wants: dict[GroupId, Want] = {}  # groups this node wants to be in
        self.unwants: dict[GroupId, int] = {}  # groups to be out of, and the count when it was said
        self.quits = 0  # how often this node wanted to be out of a group
        self.ticks = 0
        # the end of a view
        self.followed: Attempt | None = None  # no lower attempt counts here any more
        self.stopped = False  # between END and INSTALL nothing is sent or delivered
        self.stopped_for = 0  # ticks
        self.unanswered_for = 0  # ticks since this node told of a suspicion, and nothing followed
        self.union: Frames = {}  # what has come of it for the attempt that is followed
        self.preparing: PrepareView | None = None  # its union is on the way
        self.prepared: PrepareView | None = None  # READY was said
        self.prepared_union: Frames = {}  # what is delivered with it
        # as the coordinator
        self.ending: Ending | None = None
        self.refused: tuple[ProcessId, ...] = ()  # these were too few: no use to try again
        self.joiners: dict[ProcessId, tuple[NodeEntry, int]] = {}  # and since which tick they ask
        self.wanted: dict[tuple[GroupId, ProcessId], tuple[Want, int]] = {}  # with a former side
        self.acks: set[ProcessId] = set()  # who has the view announced last
        self.complaints: dict[tuple[ProcessId, ProcessId], int] = {}  # who does not hear whom
        self.unstick_at = 0  # tick from which another word of one that is stuck is heard
        self.offered_to = NOBODY_SOUGHT  # the side that was asked whether this one may come
        self.host_until = 0  # tick until which this side does not go over to another
        self.first_number = 0  # views of groups that are made here have higher numbers
        self.top_group: GroupId = 0  # no group has a higher number, as far as is known here

    # -- what a subclass knows of groups ----------------------------------------------------------

    @property
    @abstractmethod
    def effects(self) -> Output:
        """Where effects go."""

    @abstractmethod
    def page(self, protocol: str) -> type[OrderingProtocol]:
        """The protocol of that name; a `PeerError` if it is not built in."""

    @abstractmethod
    def stop_groups(self) -> None:
        """Nothing is sent or delivered in any group until `begin_groups`."""

    @abstractmethod
    def finish_groups(self, eras: Sequence[tuple[GroupId, int]]) -> None:
        """Begin those of these eras for which all is ready here."""

    @abstractmethod
    def report_groups(self) -> tuple[tuple[GroupReport, ...], Frames]:
        """Every group that is open here and has a view, and what is unstable in them."""

    @abstractmethod
    def awaited_groups(self) -> tuple[GroupId, ...]:
        """Groups that are open here, and this node is not in them: it may be about to be let in."""

    @abstractmethod
    def begin_groups(self, views: Sequence[NextGroupView], union: Frames) -> None:
        """Deliver the union, begin the views, go on sending."""

    @abstractmethod
    def change_group(
        self, want: Want | None, gid: GroupId, *, joined: tuple[ProcessId, ...] = (),
        guests: tuple[ProcessId, ...] = (), left: tuple[ProcessId, ...] = (),
    ) -> None:  # fmt: skip
        """At the coordinator: lead a change of one group; make it if it is new."""

    @abstractmethod
    def never_let_in(self, gid: GroupId, pid: ProcessId) -> bool:
        """At the coordinator: is it outside that group, and nothing under way that lets it in?"""

    @abstractmethod
    def give_up(self, gid: GroupId) -> None:
        """This node wanted to be in that group, and wants no more; and it was never let in."""

    @abstractmethod
    def is_in(self, want: Want) -> bool:
        """Is what this node wants so already?"""

    @abstractmethod
    def is_out(self, gid: GroupId) -> bool:
        """Is this node out of the group?"""

    @abstractmethod
    def stay_lasts(self, gid: GroupId) -> bool:
        """Must a stay of this node in that group end before it may be let in again?"""

    @abstractmethod
    def owes_nothing(self) -> bool:
        """Do all others have what this node has numbered for them?"""

    @abstractmethod
    def release_node(self, pid: ProcessId) -> None:
        """At the coordinator: it left in order; no change of a group waits for it."""

    @abstractmethod
    def forget_node(self, pid: ProcessId) -> None:
        """It is gone for good."""

    @abstractmethod
    def repeat_wishes(self) -> None:
        """Ask the coordinator again for what is not so yet."""

    @abstractmethod
    def _adopt(self, nodes: Nodes) -> None:
        """A view that was announced begins here."""

    @abstractmethod
    def _note_held(self) -> None:
        """At the coordinator: does a majority have the view?"""

    @abstractmethod
    def _alive(self) -> tuple[ProcessId, ...]:
        """The nodes of the view that are not suspected."""

    # -- facts ------------------------------------------------------------------------------------

    @property
    def coordinates(self) -> bool:
        """Is this the first node of the view, and in charge?"""
        first = bool(self.pids) and self.pids[0] == self.me
        return first and not self.stopped and not self.retired

    @property
    def stride(self) -> int:
        """Of the numbers of group views."""
        return MERGE_STRIDE if self.cluster_options.partition == "merge" else 1

    def acting(self) -> ProcessId:
        """The first node that is not suspected: it ends the view if need be."""
        return next(p for p in self.pids if p == self.me or p not in self.detector.suspected)

    def _check_group(self, entry: GroupEntry, guests: tuple[ProcessId, ...]) -> None:
        """A `PeerError` if there cannot be such a group here."""
        if self.page(entry.protocol).declaration.closed and guests:
            raise PeerError(f"group {entry.gid} with guests {guests}, which it cannot have")

    def _heartbeat(self, *, sought: ProcessId = NOBODY_SOUGHT) -> Heartbeat:
        assert self.node_view is not None
        confirmed = self.ballots[0].number if self.coordinates else 0
        view = self.node_view
        return Heartbeat(view.number, view.coordinator, len(view.nodes), sought, confirmed)

    def _ballot(self) -> Ballot:
        assert self.node_view is not None
        return ballot_of(self.node_view)

    def _count_from_now_on(self) -> None:
        """The view in force is known to a majority: those before it count no more."""
        assert self.node_view is not None
        self.ballots = deciding(self.ballots, self.node_view.number)

    # -- what all parts do ------------------------------------------------------------------------

    def _put_in_force(self, view: NodeView) -> None:
        before = () if self.node_view is None else self.node_view.nodes
        self.node_view = view
        self.pids = view.pids
        self.in_view = frozenset(view.pids)
        self.contacts = ()
        excluded = [n for n in before if n.pid not in view.pids and n.pid not in self.departed]
        names = {node.name for node in view.nodes}
        if self.installed is not None and self.installed.number == view.number:
            self.lost.update((node.pid, node) for node in excluded)
            for node in excluded:
                self.flapping.excluded(node.name)
        else:
            excluded = []
        self.lost = {p: node for p, node in self.lost.items() if node.name not in names}
        counting = {p for ballot in self.ballots for p in ballot.nodes}
        self.departed &= counting.union(view.pids)
        for pid in view.pids:
            self.joiners.pop(pid, None)
        self.detector.watch(p for p in view.pids if p != self.me)
        for p in self.gone.intersection(view.pids):  # another side let it in under its old number
            self.detector.told(p)
        self.effects.news.append(Installed(view, tuple(node.pid for node in excluded)))

    def _leave_for_good(self, news: Out | Dissolved) -> None:
        self.out_of_it = True
        self.stopped = True
        self.ending = None
        self.stop_groups()
        self.effects.news.append(news)

    def _tell(
        self, to: tuple[ProcessId, ...], header: msgspec.Struct, payload: bytes = b""
    ) -> None:
        self.effects.transmits.append((to, CLUSTER_GROUP, 0, header, payload))


def ballot_of(view: NodeView) -> Ballot:
    return Ballot(view.number, view.coordinator, view.pids)
