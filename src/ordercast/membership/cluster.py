"""The nodes of a cluster: who lives, who is in, and who coordinates.

Source      the group membership that 003 assumes below TOTAL; the flush is PROTOCOLS 11.1; the
            vote is dynamic voting (Jajodia and Mutchler 1990) with every view that was prepared.
Guarantees  all nodes that install a view of one number install the same list; the numbers only
            rise. Survivors of a view deliver the same messages in all their groups before the next
            one begins. With `primary` no two sides go on at once.
Needs       reliable FIFO links between nodes that can reach each other; heartbeats may be lost.
Costs       n - 1 heartbeats per node and tick. An exclusion: five packets per node, plus the
            unstable frames of all groups twice. A join or a leave of a node: two per node.

    tick                       HEARTBEAT to all;  suspect who was silent for too long
    p is suspected             the first node not suspected ends the view; others tell it
    end of the view            attempt := a number above all seen;  END(attempt, nodes) to the nodes
    END at p                   stop all groups;  send what is unstable in them, and REPORT
    all have reported          not enough for a majority: NO PRIMARY to all
                               else send the union, and PREPARE(attempt, views)
    PREPARE at p               when the union is here: READY
    all are ready              INSTALL to all
    INSTALL at p               deliver the union;  begin the node view and all views of groups

A coordinator may die at any point. Its successor starts again with a higher attempt; what belongs
to a lower one is ignored. If some have installed and others are only ready, the reports tell, and
those who are ready finish first. A node that comes or goes in order changes no group: the
coordinator announces the next view and counts who has it, because it counts in votes.

A group changes alone when somebody joins or leaves it: the coordinator leads that change
(`change_group`). Who wants to be in a group asks the coordinator again and again until it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

import msgspec

from ordercast.core.events import Kept, Receive
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.output import Output
from ordercast.core.protocol import OrderingProtocol
from ordercast.core.state import PlainState
from ordercast.errors import PeerError
from ordercast.membership.cluster_headers import (
    CLUSTER_GROUP,
    Attempt,
    Depart,
    EndView,
    GroupReport,
    Heartbeat,
    InstallView,
    Join,
    NextGroupView,
    NodeReport,
    Nodes,
    NodesAck,
    NoPrimary,
    Offer,
    Overruled,
    PrepareView,
    Sighted,
    Stuck,
    Suspect,
    UnstableFrame,
    Unwant,
    ViewReady,
    Want,
    Welcome,
)
from ordercast.membership.detector import detector
from ordercast.membership.ending import Ending, Finish, Frames, Minority, NextViews, Without
from ordercast.membership.flapping import Flapping
from ordercast.membership.nodes import Ballot, NodeEntry, NodeView
from ordercast.membership.standing import (
    Ask,
    Blocked,
    Broken,
    ClusterOptions,
    Command,
    Dissolved,
    Found,
    GetIn,
    GoAway,
    Installed,
    Out,
    Quit,
    Resumed,
)

SEEK_EVERY = 4  # ticks between two words to nodes that were lost
GATHER_TICKS = 4  # so long the coordinator waits for the rest of a side that comes back
PATIENCE = 3  # timeouts that an attempt may take; a node that is silent is suspected before
HEARD_LATELY = 2  # ticks
HOST_TICKS = 40  # so long a side that was offered company stays
LEAP = 256  # a coordinator that is gone may have made so many views that nobody else saw
VIEWS_PER_TERM = 1 << 16  # of one group under one coordinator, before numbers could meet
MERGE_STRIDE = 1 << 20  # numbers of views where sides may go on alone: see `next_view_number`


class Cluster(PlainState, ABC):
    """The cluster as one of its nodes knows it. What concerns groups is left to a subclass."""

    def __init__(self, node: NodeEntry, options: ClusterOptions) -> None:
        self.node = node
        self.me = node.pid
        self.cluster_options = options
        self.node_view: NodeView | None = None  # in force here
        self.installed: Attempt | None = None  # the attempt that made it, or a view before it
        self.ballots: list[Ballot] = []  # the view that is known to be in force, and those since
        self.departed: set[ProcessId] = set()  # said good-bye, and are still in the view
        self.detector = detector(options.detector, options.timeout_ticks)
        self.flapping = Flapping()
        self.blocked: Blocked | None = None  # this side is no majority
        self.out_of_it = False  # the others went on without this node
        self.contacts: tuple[ProcessId, ...] = ()  # while this node is not in
        self.going = False  # this node wants to leave
        self.lost: dict[ProcessId, NodeEntry] = {}  # excluded; they may live beyond a partition
        self.wants: dict[GroupId, Want] = {}  # groups this node wants to be in
        self.unwants: set[GroupId] = set()  # groups this node wants to be out of
        self.ticks = 0
        # the end of a view
        self.followed: Attempt | None = None  # no lower attempt counts here any more
        self.stopped = False  # between END and INSTALL nothing is sent or delivered
        self.stopped_for = 0  # ticks
        self.union: Frames = {}  # what has come of it for the attempt that is followed
        self.prepared: PrepareView | None = None  # ready, or waiting for frames
        self.prepared_union: Frames = {}  # what is delivered with it
        self.ready = False  # READY was said for what is prepared
        # as the coordinator
        self.ending: Ending | None = None
        self.refused: tuple[ProcessId, ...] = ()  # these were too few: no use to try again
        self.joiners: dict[ProcessId, tuple[NodeEntry, int]] = {}  # and since which tick they ask
        self.wanted: dict[tuple[GroupId, ProcessId], tuple[Want, int]] = {}  # with a former side
        self.acks: set[ProcessId] = set()  # who has the view announced last
        self.complaints: dict[tuple[ProcessId, ProcessId], int] = {}  # who does not hear whom
        self.unstick_at = 0  # tick from which another word of one that is stuck is heard
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
    def begin_groups(
        self, views: Sequence[NextGroupView], union: Frames, leader: ProcessId
    ) -> None:
        """Deliver the union, begin the views, go on sending."""

    @abstractmethod
    def change_group(
        self, want: Want | None, gid: GroupId, *, joined: tuple[ProcessId, ...] = (),
        guests: tuple[ProcessId, ...] = (), left: tuple[ProcessId, ...] = (),
    ) -> None:  # fmt: skip
        """At the coordinator: lead a change of one group; make it if it is new."""

    @abstractmethod
    def is_in(self, want: Want) -> bool:
        """Is what this node wants so already?"""

    @abstractmethod
    def is_out(self, gid: GroupId) -> bool:
        """Is this node out of the group?"""

    @abstractmethod
    def forget_node(self, pid: ProcessId) -> None:
        """It is gone for good."""

    # -- facts ------------------------------------------------------------------------------------

    @property
    def pids(self) -> tuple[ProcessId, ...]:
        """The nodes of the view, in order."""
        return () if self.node_view is None else self.node_view.pids

    @property
    def coordinates(self) -> bool:
        """Is this the first node of the view, and in charge?"""
        return bool(self.pids) and self.pids[0] == self.me and not self.stopped

    @property
    def stride(self) -> int:
        """Of the numbers of group views."""
        return MERGE_STRIDE if self.cluster_options.partition == "merge" else 1

    def acting(self) -> ProcessId:
        """The first node that is not suspected: it ends the view if need be."""
        return next(p for p in self.pids if p == self.me or p not in self.detector.suspected)

    # -- the driver speaks ------------------------------------------------------------------------

    def command(self, command: Command) -> None:
        """One wish of the driver, or one thing it saw."""
        if isinstance(command, Found):
            self.installed = None
            self._put_in_force(NodeView(1, (self.node,)))
            self.ballots = [self._ballot()]
            self._start_ticking()
        elif isinstance(command, GetIn):
            self.contacts = command.contacts
            self._ask_to_join()
            self._start_ticking()
        elif isinstance(command, Ask):
            want = Want(command.group, command.part, command.former)
            self.wants[command.group.gid] = want
            self.unwants.discard(command.group.gid)
            self.top_group = max(self.top_group, command.group.gid)
            self._press(want)
        elif isinstance(command, Quit):
            self.wants.pop(command.gid, None)
            self.unwants.add(command.gid)
            self._press(Unwant(command.gid))
        elif isinstance(command, GoAway):
            self.going = True
            self._say_goodbye()
        else:
            assert isinstance(command, Broken)
            self.detector.broken(command.pid)
            self._pursue()

    def _start_ticking(self) -> None:
        self.effects.timers.append((CLUSTER_GROUP, "tick", self.cluster_options.heartbeat_ms))

    def tick(self) -> None:
        """One heartbeat."""
        if self.out_of_it:
            return
        self._start_ticking()
        self.ticks += 1
        self.flapping.tick()
        if self.node_view is None:
            self._ask_to_join()
            return
        self._send_heartbeats()
        if self.blocked is not None:
            for p in tuple(self.detector.suspected):
                if self.detector.silent_for(p) == 0:  # it was heard since the last tick
                    self.detector.trust(p)
        self.detector.tick()
        if self.ending is not None:
            self.ending.age += 1
            if self.ending.age > PATIENCE * self.cluster_options.timeout_ticks:
                self.ending = None  # something was lost on the way; again, with another number
        self.stopped_for = self.stopped_for + 1 if self.stopped else 0
        self._pursue()
        self._repeat_wishes()
        if self.coordinates:
            self._admit_joiners()
            self._admit_wanted()

    # -- heartbeats -------------------------------------------------------------------------------

    def _send_heartbeats(self) -> None:
        assert self.node_view is not None
        others = tuple(p for p in self.pids if p != self.me)
        if others:
            self._tell(others, self._heartbeat(yours=True))
        if self.lost and self.coordinates and self.ticks % SEEK_EVERY == 0:
            self._tell(tuple(self.lost), self._heartbeat(yours=False))

    def _heartbeat(self, *, yours: bool) -> Heartbeat:
        assert self.node_view is not None
        confirmed = self.ballots[0].number if self.coordinates else 0
        view = self.node_view
        return Heartbeat(view.number, view.coordinator, len(view.nodes), yours, confirmed)

    def _on_heartbeat(self, q: ProcessId, beat: Heartbeat) -> None:
        view = self.node_view
        if view is None:
            return
        if beat.yours:
            if q not in self.pids:  # we never heard of it, or went on without it
                self._tell((q,), self._heartbeat(yours=False))
            elif q == view.coordinator and not self.stopped:
                if beat.view > view.number:  # its announcement came while we were stopped
                    self._tell((q,), Join(self.node))
                elif beat.confirmed == view.number:
                    self.ballots = self.ballots[-1:]
            return
        if self.cluster_options.partition == "primary":
            if beat.view >= view.number:
                self._leave_for_good(Out(beat.view, q))
        elif q in self.pids:  # it goes on without us: then we go on without it
            self.detector.told(q)
            self._pursue()
        else:
            self._sighted(beat.coordinator, beat.size)

    def _leave_for_good(self, news: Out | Dissolved) -> None:
        self.out_of_it = True
        self.stopped = True
        self.ending = None
        self.stop_groups()
        self.effects.news.append(news)

    # -- two sides meet ---------------------------------------------------------------------------

    def _sighted(self, coordinator: ProcessId, size: int) -> None:
        """The larger side stays; of equal ones that with the older coordinator."""
        if not self.coordinates:
            if self.pids and not self.stopped:
                self._tell((self.pids[0],), Sighted(coordinator, size))
            return
        if (size, -coordinator) < (len(self.pids), -self.me):
            self._tell((coordinator,), self._heartbeat(yours=False))  # it may not know of us
        elif self.ticks >= self.host_until:
            self._tell((coordinator,), Offer())

    def _on_offer(self, q: ProcessId) -> None:
        if self.coordinates and q not in self.pids:
            self.host_until = self.ticks + HOST_TICKS
            self._tell((q,), Welcome())

    def _on_welcome(self, q: ProcessId) -> None:
        if self.coordinates and q not in self.pids and self.ticks >= self.host_until:
            self._end_view(self._alive(), into=q)

    # -- nodes come and go in order ---------------------------------------------------------------

    def _ask_to_join(self) -> None:
        if self.contacts:
            to = self.contacts[self.ticks % len(self.contacts)]
            self._tell((to,), Join(self.node))

    def _on_join(self, node: NodeEntry) -> None:
        if not self.coordinates:
            if self.pids and self.pids[0] not in (self.me, node.pid):
                self._tell((self.pids[0],), Join(node))
            return
        if node.pid in self.pids:
            assert self.node_view is not None
            self._tell((node.pid,), Nodes(self.node_view, tuple(self.ballots)))
            return
        self.joiners.setdefault(node.pid, (node, self.ticks))
        self._admit_joiners()

    def _admit_joiners(self) -> None:
        assert self.node_view is not None
        names = {node.name for node, _ in self.joiners.values()}
        ready = [
            node
            for node, since in self.joiners.values()
            if self.ticks - since >= GATHER_TICKS or names.issuperset(node.former)
        ]
        ready = [n for n in ready if n.former or self.flapping.may_enter(n.name)]
        for node in ready:
            del self.joiners[node.pid]
        if ready:
            self._announce(self.node_view.with_nodes(ready))

    def _announce(self, view: NodeView) -> None:
        """The next view, by which no group changes. It counts in votes once a majority has it."""
        told = tuple(dict.fromkeys(p for p in (*self.pids, *view.pids) if p != self.me))
        self._put_in_force(view)
        self.ballots.append(self._ballot())
        self.acks = {self.me}
        if told:
            self._tell(told, Nodes(view, tuple(self.ballots)))
        self._confirm()

    def _on_nodes(self, q: ProcessId, nodes: Nodes) -> None:
        view, now = nodes.view, self.node_view
        if self.stopped or self.out_of_it or (now is not None and view.number <= now.number):
            return
        if self.me not in view.pids:
            if self.going:
                self._leave_for_good(Out(view.number, q))
            return
        if now is not None and q != now.coordinator:
            return  # it asked two sides, and the other one let it in, too
        self._put_in_force(view)
        self.ballots = list(dict.fromkeys((*self.ballots, *nodes.ballots)))
        self._tell((q,), NodesAck(view.number))
        self._repeat_wishes()

    def _on_ack(self, q: ProcessId, ack: NodesAck) -> None:
        if self.coordinates and self.node_view is not None and ack.number == self.node_view.number:
            self.acks.add(q)
            self._confirm()

    def _confirm(self) -> None:
        if all(ballot.won_by(self.acks) for ballot in self.ballots[:-1]):
            self.ballots = self.ballots[-1:]

    def _say_goodbye(self) -> None:
        if self.node_view is None or self.out_of_it:
            return
        others = tuple(p for p in self.pids if p != self.me)
        if not others:
            self._leave_for_good(Out(self.node_view.number, self.me))
        else:  # the coordinator's successor must lead its groups: all are told
            self._tell(others if self.pids[0] == self.me else (self.pids[0],), Depart())

    def _on_depart(self, q: ProcessId) -> None:
        if q not in self.pids or self.stopped:
            return
        if self.coordinates:
            assert self.node_view is not None
            self._announce(self.node_view.without((q,)))
        elif q == self.pids[0]:
            self.departed.add(q)
            self.detector.told(q)
            self._pursue()

    # -- groups -----------------------------------------------------------------------------------

    def _press(self, wish: Want | Unwant) -> None:
        """Ask the coordinator, which may be this node."""
        if not self.pids or self.stopped:
            return
        if self.coordinates:
            self._on_wish(self.me, wish)
        else:
            self._tell((self.pids[0],), wish)

    def _repeat_wishes(self) -> None:
        for want in tuple(self.wants.values()):
            if self.is_in(want):
                del self.wants[want.group.gid]
            else:
                self._press(want)
        for gid in tuple(self.unwants):
            if self.is_out(gid):
                self.unwants.discard(gid)
            else:
                self._press(Unwant(gid))
        if self.going:
            self._say_goodbye()

    def _on_wish(self, q: ProcessId, wish: Want | Unwant) -> None:
        if not self.coordinates or q not in self.pids:
            return
        if isinstance(wish, Unwant):
            self.change_group(None, wish.gid, left=(q,))
            return
        self.top_group = max(self.top_group, wish.group.gid)
        if wish.former:
            self.wanted.setdefault((wish.group.gid, q), (wish, self.ticks))
            self._admit_wanted()
        elif wish.part == "member":
            self.change_group(wish, wish.group.gid, joined=(q,))
        else:
            self.change_group(wish, wish.group.gid, guests=(q,))

    def _admit_wanted(self) -> None:
        """Those who come back with a side come into a group together."""
        names = {} if self.node_view is None else {n.pid: n.name for n in self.node_view.nodes}
        for gid in dict.fromkeys(gid for gid, _ in self.wanted):
            asking = {q: ask for (g, q), ask in self.wanted.items() if g == gid}
            here = {names[q] for q in asking if q in names}
            patient = any(self.ticks - since >= GATHER_TICKS for _, since in asking.values())
            if patient or all(here.issuperset(want.former) for want, _ in asking.values()):
                for q in asking:
                    del self.wanted[gid, q]
                joined = tuple(sorted(q for q in asking if q in names))
                self.change_group(next(iter(asking.values()))[0], gid, joined=joined)

    # -- somebody is suspected --------------------------------------------------------------------

    def _alive(self) -> tuple[ProcessId, ...]:
        return tuple(p for p in self.pids if p not in self.detector.suspected)

    def _pursue(self) -> None:
        """End the view if that is this node's task; else tell whose it is."""
        if self.node_view is None or self.out_of_it:
            return
        acting = self.acting()
        suspected = [p for p in self.pids if p in self.detector.suspected]
        if acting == self.me:
            if suspected or self.stopped:
                self._try(self._alive())
            return
        for p in suspected:
            self._tell((acting,), Suspect(p))
        if self.stopped_for > PATIENCE * self.cluster_options.timeout_ticks:
            self._tell((acting,), Stuck())

    def _try(self, nodes: tuple[ProcessId, ...]) -> None:
        if self.blocked is not None and self.refused == nodes:
            return  # they were too few, and still are
        if self.ending is None or self.ending.nodes != nodes:
            self._end_view(nodes)

    def _on_suspect(self, q: ProcessId, p: ProcessId) -> None:
        """q does not hear p. If p is heard here, one of the two must go, in the end: the younger.

        At once would be wrong: p may have died a moment ago, and q is only the first to say so.
        """
        if p == self.me or p not in self.pids or q not in self.pids or self.acting() != self.me:
            return
        if self.detector.silent_for(p) > HEARD_LATELY:
            self.detector.told(p)
        else:
            count = self.complaints[q, p] = self.complaints.get((q, p), 0) + 1
            if count <= self.cluster_options.timeout_ticks:
                return
            self.detector.told(max(p, q, key=self.pids.index))
        self._pursue()

    def _on_stuck(self, q: ProcessId) -> None:
        if q not in self.pids or self.acting() != self.me or self.ending is not None:
            return
        if self.ticks >= self.unstick_at:
            self.unstick_at = self.ticks + self.cluster_options.timeout_ticks
            self.refused = ()
            self._try(self._alive())

    # -- the end of a view: its coordinator -------------------------------------------------------

    def _end_view(
        self,
        nodes: tuple[ProcessId, ...],
        finish: Finish | None = None,
        into: ProcessId | None = None,
    ) -> None:
        eras = () if finish is None else finish.eras
        view = None if finish is None else finish.view
        self._finish(eras, view)
        nodes = tuple(p for p in nodes if p in self.pids)
        highest = max(self._numbers_seen()) + (1 if self.pids[0] == self.me else LEAP)
        attempt = Attempt(highest, self.pids.index(self.me), self.me)
        self.ending = Ending(attempt, nodes, into=into, leap=self.pids[0] != self.me)
        end = EndView(attempt, nodes, eras, view)
        others = tuple(p for p in nodes if p != self.me)
        if others:
            self._tell(others, end)
        self._follow(self.me, end)

    def _finish(self, eras: Sequence[tuple[GroupId, int]], view: Attempt | None) -> None:
        """Somebody has begun what is only ready here."""
        if self.prepared is not None and self.ready and view == self.prepared.attempt:
            self._install()
        if eras:
            self.finish_groups(eras)

    def _numbers_seen(self) -> Iterable[int]:
        yield 0 if self.node_view is None else self.node_view.number
        yield 0 if self.followed is None else self.followed.number
        yield from (ballot.number for ballot in self.ballots)

    def _on_report(self, p: ProcessId, report: NodeReport) -> None:
        if self.ending is not None and report.attempt == self.ending.attempt:
            self.top_group = max(self.top_group, report.top_group)
            self.ending.reported(p, report)
            self._go_on_when_complete()

    def _on_unstable(self, p: ProcessId, header: UnstableFrame, payload: bytes) -> None:
        ending = self.ending
        if ending is not None and header.attempt == ending.attempt and ending.next is None:
            ending.frame(p, header, payload)
            self._go_on_when_complete()
        elif header.attempt == self.followed and p == header.attempt.coordinator:
            kept = Kept(header.origin, header.n, header.stamp, payload)
            self.union[header.gid, header.origin, header.n] = kept
            self._say_ready()

    def _go_on_when_complete(self) -> None:
        ending = self.ending
        if ending is None or ending.next is not None or not ending.complete():
            return
        voting = self.cluster_options.partition == "primary"
        found = ending.resolve(voting=voting, stride=self.stride, leap=LEAP, pages=self.page)
        if isinstance(found, Finish):
            self._end_view(ending.nodes, found, ending.into)
        elif isinstance(found, Without):
            for p in found.nodes - {self.me}:
                self.detector.told(p)
            if self.me in found.nodes:  # another must lead: it will hear nothing from us
                self._leave_for_good(Out(ending.attempt.number, self.me))
            else:
                self._end_view(tuple(p for p in ending.nodes if p not in found.nodes))
        elif isinstance(found, Minority):
            self._refuse(ending, found)
        else:
            self._prepare(ending, found)

    def _refuse(self, ending: Ending, minority: Minority) -> None:
        self.ending = None
        self.refused = ending.nodes
        word = NoPrimary(ending.attempt, minority.ballot.number, minority.missing)
        others = tuple(p for p in ending.nodes if p != self.me)
        if others:
            self._tell(others, word)
        self._on_no_primary(word)

    def _prepare(self, ending: Ending, found: NextViews) -> None:
        ending.next = found
        ending.unready = set(ending.nodes)
        for p in ending.nodes:
            if p != self.me:
                prepare, frames = self._prepare_for(p, ending, found)
                self._tell((p,), prepare)
                for (gid, origin, n), kept in frames.items():
                    header = UnstableFrame(ending.attempt, gid, origin, n, kept.stamp)
                    self._tell((p,), header, kept.payload)
        prepare, self.union = self._prepare_for(self.me, ending, found)
        self._on_prepare(self.me, prepare)

    def _prepare_for(
        self, p: ProcessId, ending: Ending, found: NextViews
    ) -> tuple[PrepareView, Frames]:
        # The coordinator leads all groups, also those in which it is not.
        groups = tuple(
            view for gid, view in found.groups.items() if p in found.told[gid] or p == self.me
        )
        frames = {key: kept for key, kept in found.union.items() if p in found.takers[key[0]]}
        view = found.view
        into = -1 if ending.into is None else ending.into
        return PrepareView(ending.attempt, view, groups, len(frames), into), frames

    def _on_ready(self, p: ProcessId, ready: ViewReady) -> None:
        ending = self.ending
        if ending is None or ending.next is None or ready.attempt != ending.attempt:
            return
        ending.unready.discard(p)
        if not ending.unready:
            others = tuple(p for p in ending.nodes if p != self.me)
            if others:
                self._tell(others, InstallView(ending.attempt))
            self._install()

    def _on_overruled(self, word: Overruled) -> None:
        """Others follow a higher attempt: if it fails, ours must be higher still."""
        if self.ending is not None and word.attempt == self.ending.attempt:
            if self.followed is None or word.followed.number > self.followed.number:
                self.followed = word.followed
            self.ending = None

    # -- the end of a view: a node ----------------------------------------------------------------

    def _on_end(self, q: ProcessId, end: EndView) -> None:
        if self.me not in end.nodes or self.out_of_it or q != end.attempt.coordinator:
            return
        number = 0 if self.node_view is None else self.node_view.number
        if end.attempt.number <= number or (self.pids and q not in self.pids):
            return
        if not end.attempt.beats(self.followed):
            if self.followed is not None and end.attempt != self.followed:
                self._tell((q,), Overruled(end.attempt, self.followed))
            return
        self.ending = None
        self._follow(q, end)

    def _follow(self, q: ProcessId, end: EndView) -> None:
        self._finish(end.finish, end.finish_view)
        self.followed = end.attempt
        self.stopped = True
        self.stop_groups()
        groups, frames = self.report_groups()
        prepared = self.prepared if self.ready else None
        report = NodeReport(
            end.attempt,
            self.installed,
            self.node_view or NodeView(0, (self.node,)),
            tuple(self.ballots),
            tuple(sorted(self.departed)),
            None if prepared is None else prepared.attempt,
            groups,
            len(frames),
            self.top_group,
        )
        self.union = {}
        if q == self.me:
            assert self.ending is not None
            self.ending.frames[self.me] = frames
            self._on_report(self.me, report)
            return
        self._tell((q,), report)
        for (gid, origin, n), kept in frames.items():
            header = UnstableFrame(end.attempt, gid, origin, n, kept.stamp)
            self._tell((q,), header, kept.payload)

    def _on_no_primary(self, word: NoPrimary) -> None:
        if word.attempt != self.followed:
            return
        blocked = Blocked(word.view, word.missing)
        if self.blocked != blocked:
            self.blocked = blocked
            self.effects.news.append(blocked)

    def _on_prepare(self, q: ProcessId, prepare: PrepareView) -> None:
        if prepare.attempt != self.followed or q != prepare.attempt.coordinator:
            return
        if self.prepared is None or self.prepared.attempt != prepare.attempt:
            self.prepared, self.ready = prepare, False
            self._say_ready()

    def _say_ready(self) -> None:
        prepare = self.prepared
        if prepare is None or self.ready or prepare.attempt != self.followed:
            return
        if len(self.union) < prepare.frames:
            return
        self.ready = True
        self.prepared_union, self.union = self.union, {}
        self.ballots.append(_ballot_of(prepare.view))
        ready = ViewReady(prepare.attempt)
        if prepare.attempt.coordinator == self.me:
            self._on_ready(self.me, ready)
        else:
            self._tell((prepare.attempt.coordinator,), ready)

    def _on_install(self, q: ProcessId, install: InstallView) -> None:
        prepared = self.prepared
        if prepared is None or not self.ready or install.attempt != self.followed:
            return
        if prepared.attempt == install.attempt and q == install.attempt.coordinator:
            self._install()

    def _install(self) -> None:
        prepare, union = self.prepared, self.prepared_union
        assert prepare is not None and self.ready, "only what is ready begins"
        self.prepared, self.prepared_union, self.ready = None, {}, False
        self.ending, self.stopped, self.stopped_for = None, False, 0
        self.complaints = {}
        self.installed = prepare.attempt
        was_blocked, self.blocked, self.refused = self.blocked, None, ()
        if was_blocked is not None:
            self.effects.news.append(Resumed())
        before = self.pids
        if before[:1] != (self.me,) == prepare.view.pids[:1]:
            # A group may have been known only to those who are gone.
            self.first_number = prepare.view.number * VIEWS_PER_TERM
        self._put_in_force(prepare.view)
        self.ballots = [self._ballot()]
        self.begin_groups(prepare.groups, union, prepare.view.coordinator)
        gone = tuple(p for p in before if p not in self.pids)
        for p in gone:
            self.forget_node(p)
        if gone and self.coordinates:  # they may live, and wait
            self._tell(gone, self._heartbeat(yours=False))
        if prepare.into >= 0:
            names = tuple(node.name for node in prepare.view.nodes)
            self._leave_for_good(Dissolved(prepare.into, names))
        else:
            self._repeat_wishes()

    def _put_in_force(self, view: NodeView) -> None:
        before = () if self.node_view is None else self.node_view.nodes
        self.node_view = view
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
        self.departed &= set(view.pids)
        for pid in view.pids:
            self.joiners.pop(pid, None)
        self.detector.watch(p for p in view.pids if p != self.me)
        self.effects.news.append(Installed(view, tuple(node.pid for node in excluded)))

    def _ballot(self) -> Ballot:
        assert self.node_view is not None
        return _ballot_of(self.node_view)

    # -- packets ----------------------------------------------------------------------------------

    def receive_cluster(self, packet: Receive) -> None:
        """One packet of the cluster."""
        if self.out_of_it:
            return
        q, header = packet.src, packet.header
        self.detector.heard(q)
        if isinstance(header, Heartbeat):
            self._on_heartbeat(q, header)
        elif isinstance(header, Suspect):
            self._on_suspect(q, header.pid)
        elif isinstance(header, Stuck):
            self._on_stuck(q)
        elif isinstance(header, Sighted):
            self._sighted(header.coordinator, header.size)
        elif isinstance(header, Offer):
            self._on_offer(q)
        elif isinstance(header, Welcome):
            self._on_welcome(q)
        elif isinstance(header, Join):
            self._on_join(header.node)
        elif isinstance(header, Depart):
            self._on_depart(q)
        elif isinstance(header, Nodes):
            self._on_nodes(q, header)
        elif isinstance(header, NodesAck):
            self._on_ack(q, header)
        elif isinstance(header, Want | Unwant):
            self._on_wish(q, header)
        else:
            self._receive_ending(q, header, packet.payload)

    def _receive_ending(self, q: ProcessId, header: msgspec.Struct, payload: bytes) -> None:
        if isinstance(header, EndView):
            self._on_end(q, header)
        elif isinstance(header, NodeReport):
            self._on_report(q, header)
        elif isinstance(header, UnstableFrame):
            self._on_unstable(q, header, payload)
        elif isinstance(header, PrepareView):
            self._on_prepare(q, header)
        elif isinstance(header, ViewReady):
            self._on_ready(q, header)
        elif isinstance(header, InstallView):
            self._on_install(q, header)
        elif isinstance(header, NoPrimary):
            self._on_no_primary(header)
        elif isinstance(header, Overruled):
            self._on_overruled(header)
        else:
            raise PeerError(f"{type(header).__name__} is no packet of the cluster")

    def _tell(
        self, to: tuple[ProcessId, ...], header: msgspec.Struct, payload: bytes = b""
    ) -> None:
        self.effects.transmits.append((to, CLUSTER_GROUP, 0, header, payload))


def _ballot_of(view: NodeView) -> Ballot:
    return Ballot(view.number, view.coordinator, view.pids)
