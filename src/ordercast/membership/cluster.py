"""The nodes of a cluster: who lives, who is in, and who coordinates.

Source      the group membership and the flush that 003 assumes below TOTAL; the vote is dynamic
            voting (Jajodia and Mutchler 1990) with every view that was prepared.
Guarantees  the numbers of node views only rise. Survivors of a view deliver the same messages in
            all their groups before the next one begins. With `primary` no two sides go on at once,
            and all nodes that install a view of one number install the same list.
Needs       reliable FIFO links between nodes that can reach each other; heartbeats may be lost.
Costs       n - 1 heartbeats per node and tick. An exclusion: seven packets per node, plus the
            unstable frames of all groups twice. A join or a leave of a node: two per node.

    tick                       HEARTBEAT to all;  suspect who was silent for too long
    p is suspected             the first node not suspected ends the view; others tell it
    end of the view            attempt := a number above all seen;  END(attempt, nodes) to the nodes
    END at p                   stop all groups;  send what is unstable in them, and REPORT
    all have reported          not enough for a majority: NO PRIMARY to all
                               else send the union, and PREPARE(attempt, views)
    PREPARE at p               when the union is here: READY
    all are ready              INSTALL to all
    INSTALL at p               deliver the union;  begin the node view and all views of groups;  ACK
    a majority has it          who is not in it is told, and comes back as another

A coordinator may die at any point. Its successor starts again with a higher attempt; what belongs
to a lower one is ignored. If some have installed and others are only ready, the reports tell, and
those who are ready finish first. A node that comes or goes in order changes no group: the
coordinator announces the next view and counts who has it, because it counts in votes.

A group changes alone when somebody joins or leaves it: the coordinator leads that change
(`change_group`). Who wants to be in a group asks the coordinator again and again until it is.

Who can install what another has installed no more (it got ready for a third view since, and keeps
only the last one) votes for the next view, is not in it, and comes back when one that is tells it.

Limits      `vetting.MAX_VIEW` bounds the numbers of node views.
"""

from __future__ import annotations

import msgspec

from ordercast.core.events import Receive
from ordercast.core.ids import ProcessId
from ordercast.errors import PeerError
from ordercast.membership.cluster_headers import (
    CLUSTER_GROUP,
    Depart,
    EndView,
    Heartbeat,
    InstallView,
    Join,
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
from ordercast.membership.nodes import NodeView
from ordercast.membership.standing import (
    Ask,
    Broken,
    Command,
    Found,
    GetIn,
    GoAway,
    Quit,
)
from ordercast.membership.suspicion import PATIENCE
from ordercast.membership.vetting import vet
from ordercast.membership.wishes import Wishes


class Cluster(Wishes):
    """The cluster as one of its nodes knows it. What concerns groups is left to a subclass."""

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
            if not self.stay_lasts(command.group.gid):
                self.unwants.pop(command.group.gid, None)
            self.top_group = max(self.top_group, command.group.gid)
            self._press(want)
        elif isinstance(command, Quit):
            self.wants.pop(command.gid, None)
            self.quits += 1
            self.unwants[command.gid] = self.quits
            self._press(Unwant(command.gid, self.quits))
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
        late = PATIENCE * self.cluster_options.timeout_ticks
        if self.blocked is not None or self.stopped_for > late:
            for p in self.detector.suspected - self.departed:
                if self.detector.silent_for(p) == 0:  # it was heard since the last tick
                    self.detector.trust(p)
        self.detector.tick()
        if self.ending is not None:
            self.ending.age += 1
            if self.ending.age > PATIENCE * self.cluster_options.timeout_ticks:
                self.ending = None  # something was lost on the way; again, with another number
        self.stopped_for = self.stopped_for + 1 if self.stopped else 0
        self.count_unanswered()
        self._pursue()
        self.repeat_wishes()
        if self.coordinates:
            self._admit_joiners()
            self._admit_wanted()

    # -- packets ----------------------------------------------------------------------------------

    def receive_cluster(self, packet: Receive) -> None:
        """One packet of the cluster."""
        if self.out_of_it:
            return
        q, header = packet.src, packet.header
        vet(header)
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
            self._on_depart(q, header)
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
