"""Everything inside one incarnation of a node: connects its parts with each other.

One turn of the event loop. Multicasts of the application fill open frames; deliveries that it
takes are counted. At the end of the turn, once: the open frames are sealed and sent, and the stack
is told what was consumed. A send is on disk before its frame leaves; other records follow soon.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Hashable, Iterable
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any

from ordercast import errors
from ordercast.core.events import Consumed, Event
from ordercast.core.events import View as CoreView
from ordercast.core.ids import GroupId, ProcessId
from ordercast.core.output import Delivery
from ordercast.errors import GroupClosed, MachineFailed, NodeOut, NotPrimary, PeerError
from ordercast.membership.news import Dissolved, News
from ordercast.membership.node_view import NodeEntry, NodeView
from ordercast.process.process import Process
from ordercast.protocols.registry import PROTOCOLS
from ordercast.runtime.administration import ADMINISTRATIVE, Administration
from ordercast.runtime.admission import Admission
from ordercast.runtime.bodies import Bodies
from ordercast.runtime.cluster_membership import ClusterMembership
from ordercast.runtime.conflicts import Conflicts
from ordercast.runtime.control import (
    Admitted,
    Control,
    Dialback,
    NotReading,
    PulseKey,
    StatusReply,
    StatusRequest,
    Welcome,
    decode,
    encode,
)
from ordercast.runtime.control_table import Speaker, Standing, Verdict, admit, who
from ordercast.runtime.coordination import Coordination
from ordercast.runtime.dialback import ReturnCalls
from ordercast.runtime.engine import Engine
from ordercast.runtime.founding import Founding
from ordercast.runtime.held_back import PresenceNames
from ordercast.runtime.lifetime import Lifetime, Outage
from ordercast.runtime.membership import Membership
from ordercast.runtime.node_directory import NodeDirectory
from ordercast.runtime.node_discovery import answerer_of, find_seeds
from ordercast.runtime.options import NodeOptions, TraceLevel
from ordercast.runtime.own_groups import OwnGroups
from ordercast.runtime.packet_errors import PacketErrors
from ordercast.runtime.peers import Peers
from ordercast.runtime.plausible import check_admitted
from ordercast.runtime.pulses import Pulses
from ordercast.runtime.rivals import Rivals
from ordercast.runtime.slow_readers import SlowReaders
from ordercast.runtime.stalls import Stalls
from ordercast.runtime.states import ABOUT_STATE, States
from ordercast.runtime.status import status_json
from ordercast.runtime.window import NodeWindow
from ordercast.trace.brought import Brought
from ordercast.trace.recorder import Recorder
from ordercast.trace.watch import Observed
from ordercast.transport.answering import Answerer
from ordercast.transport.security import NONE, Security
from ordercast.transport.tcp import Connection
from ordercast.transport.udp import DatagramEndpoint
from ordercast.wire.control import CLUSTER_CHANNEL, CONTROL_CHANNEL, Hello
from ordercast.wire.frame import Frame

log = logging.getLogger("ordercast.runtime.presence")

FIRST_PID: ProcessId = 0

FLUSH_SECONDS = 0.02  # so long a recorded delivery may wait for the disk; a send never does


class Presence:
    """One incarnation of a node: all that is not its public surface."""

    me: NodeEntry
    engine: Engine
    cluster_membership: ClusterMembership
    coordination: Coordination
    pulses: Pulses

    def __init__(
        self,
        hello: Hello,
        options: NodeOptions,
        trace: Path | None,
        run: str | None,
        lifetime: Lifetime,
        *,
        trace_level: TraceLevel = "application",
        security: Security = NONE,
        only: frozenset[str] | None = None,
        after: int = 0,
        former: tuple[str, ...] = (),
        seeds: tuple[str, ...] = (),
    ) -> None:
        """`only` are the names of a static list. `after` is the last incarnation of this node, and
        `former` the names of the side of a partition with which it comes over. At `seeds`, a second
        cluster of the same name may be found.
        """
        self.options = options
        self.only = only
        self.after = after
        self.former = former
        self.lifetime = lifetime  # what it shares with the Presences before and after it
        self.directory = NodeDirectory()
        self.peers = Peers(
            self, hello, options.for_connections(), options.max_nodes, options.join_timeout,
            security,
        )  # fmt: skip
        if not isinstance(options.transport, str):
            self.peers.datagrams = DatagramEndpoint(
                options.transport, self, name=hello.name, session=hello.session,
                max_frame=self.peers.limits.max_frame,
            )  # fmt: skip
        self.recorder: Recorder | None = None
        self.window = NodeWindow(options.node_window_bytes, options.reply_reserve)
        self.groups = OwnGroups(self)
        self.error: BaseException | None = None  # why this node ended by itself
        self.over_to: Dissolved | None = None  # it goes over to another side of a partition
        self.blocked: NotPrimary | None = None  # this node is cut off
        self.in_cluster = False
        self.bodies = Bodies(options.codec)
        self.stalls = Stalls()
        self.packet_errors = PacketErrors()
        self.conflicts = Conflicts()
        self.return_calls = ReturnCalls()
        self.administration = Administration(self)
        self.states = States(self)
        self.slow_readers = SlowReaders(self)
        self._takers: list[Membership] = []  # whose messages the application took in this turn
        self._trace = trace
        self._trace_level = trace_level
        self._run = run
        self._admission: Admission | None = None
        self._founding: Founding | None = None
        self.rivals = Rivals(self, seeds)
        self.answerer: Answerer | None = None  # by which newcomers find this node
        self._turn_is_due = False
        self._flush_timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()

    # -- getting in -------------------------------------------------------------------------------

    async def running(self, seeds: tuple[str, ...], *, must_know: bool) -> tuple[str, ...]:
        """The seeds that are in a cluster; empty: `found` one at once. See `founding`."""
        self._founding = self._founding or Founding(self)
        timeout = self.options.join_timeout
        running = await self._founding.running(seeds, timeout, must_know=must_know)
        if running:
            self._founding = None
        return running

    def found(self, name: str, run: str) -> None:
        """This node is the cluster."""
        self._founding = None
        self.answerer = answerer_of(self)
        address, options = self.peers.hello.advertise, self.options
        me = NodeEntry(
            FIRST_PID, name, 1, address,
            sequencer=options.sequencer, site=options.site, gateway=options.gateway,
            voter=options.voter,
        )  # fmt: skip
        self._become(me, me, self._run or run)
        self.cluster_membership.found()

    async def follow(self, seeds: tuple[str, ...], ask_seconds: float | None = None) -> None:
        """Ask the seeds to let this node in; `JoinTimeout` says what was waited for in vain.

        Whoever calls this looks at `error` then: the node may be out again already.

        Without seeds, those that discovery finds are asked. After `ask_seconds` (if not given,
        `join_timeout`) no seed is asked again.
        """
        self._admission = Admission(self)
        self.answerer = answerer_of(self)
        timeout = self.options.join_timeout
        deadline = self._loop.time() + timeout
        if not seeds and self.options.discover is not None:
            seeds = await find_seeds(self, self.options.discover, timeout)
            timeout = max(0.5, round(deadline - self._loop.time(), 1))
        answer = await self._admission.ask(seeds, min(timeout, ask_seconds or timeout))
        await self.cluster_membership.get_in(answer, deadline)

    def admitted(self, conn: Connection, answer: Admitted) -> None:
        """The coordinator lets us come in."""
        check_admitted(answer, self.peers.hello, self.after)
        coordinator = next(node for node in answer.nodes if node.pid == answer.leader)
        for name, incarnation in answer.past:
            self.directory.remember(name, incarnation)
        self.directory.floor = max(self.directory.floor, answer.floor)
        for node in answer.nodes:
            self.directory.add(node)
        self.peers.bind(conn, coordinator.pid)
        self._become(answer.me, coordinator, self._run or answer.run)
        self._admission = None

    def _become(self, me: NodeEntry, coordinator: NodeEntry, run: str) -> None:
        self.me = me
        self.directory.add(me)
        self.peers.introduce_as(me.incarnation)
        if self.peers.datagrams is not None:
            self.peers.datagrams.introduce_as(me.pid)
        stack = Process(
            me, PROTOCOLS,
            cluster_options=self.options.for_cluster(self.only),
            network="N2" if self.peers.datagrams is None else "N0",
            cluster_network="N2",
            options=self.options.for_stack(),
        )  # fmt: skip
        self.engine = Engine(stack, self, self.options.max_held_bytes)
        self.coordination = Coordination(self, run, self.only)
        self.cluster_membership = ClusterMembership(self, coordinator)
        self._run = run
        self.in_cluster = True
        self.pulses = Pulses(self)
        for pid in tuple(self.peers.bound):
            self.cluster_membership.bound(pid)
            self.pulses.give_key(pid)
        self.rivals.start()

    def start_recording(self) -> None:
        """Before the first group is joined."""
        if self._trace is not None:
            assert self._run is not None
            self.recorder = Recorder(self._trace, run=self._run, process=self.me.identity)
            self.engine.brought = Brought(self.me.pid)
            if self._trace_level == "protocol":
                self.engine.watch(PresenceNames(self), self._observe)

    def _observe(self, row: Observed) -> None:
        if self.recorder is not None:
            self.recorder.protocol_event(
                row.kind, row.group, row.sender, row.first, row.count, row.note, row.overhead
            )
            self.wake()

    # -- the turn ---------------------------------------------------------------------------------

    def wake(self) -> None:
        """There is something to do at the end of this turn."""
        if not self._turn_is_due:
            self._turn_is_due = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._turn_is_due = False
        with suppress(NodeOut):  # the machine failed: `broken` was told
            self._end_turn()
        if self.recorder is not None and self._flush_timer is None:
            self._flush_timer = self._loop.call_later(FLUSH_SECONDS, self._flush_records)

    def _end_turn(self) -> None:
        self.groups.end_turn()
        if self._takers:
            takers, self._takers = self._takers, []
            consumed: list[Event] = [
                Consumed(member.group.gid, member.take_consumed())
                for member in takers
                if self.groups.memberships.get(member.group.gid) is member
            ]
            self.engine.step(consumed)

    def _flush_records(self) -> None:
        self._flush_timer = None
        if self.recorder is not None:
            self.recorder.flush()

    def on_consumed(self, member: Membership) -> None:
        """The application took a frame of this group, the first in this turn."""
        self._takers.append(member)
        self.wake()

    # -- effects of the stack ---------------------------------------------------------------------

    def transmit(self, to: tuple[ProcessId, ...], packet: bytes, content: Hashable) -> None:
        """Send a packet."""
        if self.peers.datagrams is not None:
            self.peers.datagrams.send(to, packet, content)
        else:
            self.peers.transmit(to, packet)

    def transmit_wide(self, to: tuple[ProcessId, ...], packet: bytes, content: Hashable) -> None:
        """Send a packet, to other sites together with what follows it soon."""
        options = self.options
        if not options.wide_batch_ms or self.peers.datagrams is not None:
            self.transmit(to, packet, content)
            return
        for pid in to:
            if self.directory.is_elsewhere(pid, self.me.site):
                self.peers.transmit_soon(
                    pid, packet, options.wide_batch_ms / 1000, options.wide_batch_bytes
                )
            else:
                self.peers.transmit((pid,), packet)

    def transmit_for_cluster(self, to: tuple[ProcessId, ...], packet: bytes) -> None:
        """Send a packet of the cluster: always on a connection."""
        self.peers.transmit(to, packet)

    def meet(self, view: NodeView) -> None:
        """The nodes of the view in force."""
        for node in view.nodes:
            self.directory.meet(node)
            self.peers.is_in(node.pid)
        self.peers.keep_places_for((*view.nodes, *self.engine.stack.lost.values()))

    def take_news(self, news: News) -> None:
        """The machine has news: this node is in, cut off, or out."""
        self.cluster_membership.take(news)

    def deliver(self, delivery: Delivery) -> None:
        """A frame for one of our groups."""
        member = self.groups.memberships.get(delivery[0])
        if member is not None:
            member.deliver(delivery)

    def install(self, view: CoreView) -> None:
        """A view of one of our groups."""
        member = self.groups.memberships.get(view.group)
        if member is not None:
            member.install(view)

    def stable(self, group: GroupId, frames: int) -> None:
        """Frames of ours that all have consumed."""
        sending = self.groups.memberships.get(group) or self.groups.guest_sessions.get(group)
        if sending is not None:
            sending.stable(frames)

    def ordered(self, group: GroupId, frames: int) -> None:
        """Frames that we sent as a guest have their place."""
        session = self.groups.guest_sessions.get(group)
        if session is not None:
            session.ordered(frames)

    def guest(self, group: GroupId, is_guest: bool) -> None:
        """We are a guest from now on, or no longer."""
        session = self.groups.guest_sessions.get(group)
        if session is not None:
            session.admit(is_guest)

    def closed(self, group: GroupId) -> None:
        """We are out of a group, for good: also if we never were in it."""
        sending = self.groups.memberships.get(group) or self.groups.guest_sessions.get(group)
        if sending is not None and not sending.gone.done():
            sending.gone.set_result(None)

    def fault(self, peer: ProcessId, reason: str) -> None:
        """A node broke the protocol."""
        self.peers.fault(peer, reason)

    def blame(self, peer: ProcessId, kind: str, error: Exception) -> None:
        """A packet of that node could not be handled: close its connection."""
        who = self.directory.identities.get(peer, f"process {peer}")
        self.peers.fault(peer, self.packet_errors.reason_for(who, kind, error))

    def conflict(self, group: GroupId, origin: ProcessId, n: int, relay: ProcessId) -> None:
        """Two nodes have said different things of a frame."""
        names = self.directory.identities
        one, other = (names.get(p, f"process {p}") for p in (origin, relay))
        self.conflicts.note(one, other, self.groups.names.get(group, f"group {group}"), n)

    def broken(self, error: Exception) -> BaseException:
        """The stack failed in the middle of a step: what it now believes is not what happened. The
        next incarnation has another one, if there are others to come back to."""
        others = any(pid != self.me.pid for pid in self.engine.stack.pids)
        if others and self.options.rejoin and self.lifetime.may_outlive_failure():
            outcome: Exception = MachineFailed(error)
            log.error(
                "the state machine of %s failed, and it comes back with a new one. This is a bug "
                "of Ordercast: please report it", self.me.identity, exc_info=error,
            )  # fmt: skip
        else:
            outcome = error
            log.error(
                "%s ends: its state machine failed. This is a bug in Ordercast: please report it",
                self.me.identity, exc_info=error,
            )  # fmt: skip
        self.fail(outcome)
        return outcome

    def charged(self, peer: ProcessId | None, kind: str, call: Callable[[], None]) -> None:
        """Do what a peer brought about, now or in a later turn: what it brings out is its fault.
        Without a peer it is this node's own."""
        if not self._goes_on:
            return
        try:
            with self.engine.on_behalf_of(peer):
                call()
        except Exception as error:
            if peer is not None:
                self.blame(peer, kind, error)
            elif self._goes_on:  # else the engine has told
                self.broken(error)

    @property
    def _goes_on(self) -> bool:
        return self.in_cluster and self.error is None

    def later(self, kind: str, call: Callable[[], None], seconds: float = 0.0) -> None:
        """Do it in a later turn of the loop, on behalf of whoever is heard now."""
        charged = partial(self.charged, self.engine.cause, kind, call)
        if seconds:
            self._loop.call_later(seconds, charged)
        else:
            self._loop.call_soon(charged)

    # -- what connections tell --------------------------------------------------------------------

    def node_of(self, hello: Hello) -> NodeEntry | None:
        """The newer node of that identity: one that is in, or was lost.

        Of two nodes the newer one connects. An older one looks for whoever was here before.
        """
        lost: Iterable[NodeEntry] = self.engine.stack.lost.values() if self.in_cluster else ()
        for node in (*self.directory.live.values(), *lost):
            if (node.name, node.incarnation) == (hello.name, hello.incarnation):
                return node if node.pid > self.me.pid else None
        return None

    def on_bound(self, pid: ProcessId) -> None:
        """There is a connection to a node."""
        if self.in_cluster:
            self.charged(pid, "connection", partial(self._bound, pid))

    def _bound(self, pid: ProcessId) -> None:
        self.cluster_membership.bound(pid)
        if pid in self.peers.bound:  # else the machine wants no connection to it
            self.pulses.give_key(pid)

    def may_replace(self, pid: ProcessId) -> bool:
        """May another connection of that node take the place of the one there is?"""
        stack = self.engine.stack
        return pid not in stack.pids or pid in stack.agreement.detector.suspected

    def on_packets(self, pid: ProcessId, frames: list[Frame], conn: Connection) -> None:
        """Packets of a node of the cluster; of one that is not in our view, only the cluster's."""
        if pid not in self.directory.live:
            frames = [frame for frame in frames if frame[0] in (CONTROL_CHANNEL, CLUSTER_CHANNEL)]
        try:
            self.engine.receive(pid, frames, lambda frame: self.peers.on_control(conn, frame))
        except PeerError:
            raise
        except Exception as error:
            raise self.as_fault(conn, "packets", error) from None

    def on_datagrams(self, pid: ProcessId, frames: list[Frame]) -> None:
        """Packets of a node of the cluster that came without a connection."""
        endpoint = self.peers.datagrams
        assert endpoint is not None
        if self.in_cluster and self.error is None and pid in self.directory.live:
            self.engine.receive_datagrams(pid, frames, partial(endpoint.refuse, pid))

    def on_control(self, conn: Connection, pid: ProcessId | None, frame: Frame) -> None:
        """A control message: whatever it brings out ends its connection, not this node."""
        message: Control = decode(frame)
        heard = self.engine.on_behalf_of(pid) if self.in_cluster else nullcontext()
        try:
            with heard:
                self._obey(conn, pid, message, frame[4])
        except PeerError:
            raise
        except Exception as error:
            raise self.as_fault(conn, type(message).__name__, error) from None

    def as_fault(self, conn: Connection, kind: str, error: Exception) -> Exception:
        """An error that came up while a peer was heard, as its fault; not if this node ended."""
        if self.error is not None:
            return error
        who = str(conn.hello.identity) if conn.hello is not None else conn.peer[0]
        return PeerError(self.packet_errors.reason_for(who, kind, error))

    def _obey(
        self, conn: Connection, pid: ProcessId | None, message: Control, payload: bytes
    ) -> None:
        """Handle a control message, if `control_table` allows its sender to send it."""
        standing, speaker = self._standing, self._speaker(conn, pid)
        verdict = admit(message, standing, speaker)
        if verdict is Verdict.TAKEN:
            self._hand_over(conn, pid, message, payload)
        elif verdict is Verdict.KEPT:
            assert pid is not None, "only of nodes that were let in"
            self.cluster_membership.keep(pid, message)
        elif verdict is Verdict.REFUSED:
            raise PeerError(f"{type(message).__name__} must not come from {who(speaker)}")

    @property
    def _standing(self) -> Standing:
        if self._founding is not None:
            return Standing.FOUNDING
        if self._admission is not None:
            return Standing.JOINING
        return Standing.IN if self.in_cluster and self.error is None else Standing.ENDED

    def _speaker(self, conn: Connection, pid: ProcessId | None) -> Speaker:
        if pid is not None:
            return self.cluster_membership.speaker(pid)
        asks = (self._founding or self._admission or self.peers).asks(conn)
        return Speaker.ASKED if asks else Speaker.STRANGER

    def _hand_over(
        self, conn: Connection, pid: ProcessId | None, message: Control, payload: bytes
    ) -> None:
        """A message that its sender may say."""
        if isinstance(message, StatusRequest):
            conn.send(encode(StatusReply(), status_json(self)))
        elif isinstance(message, Dialback):
            self.return_calls.answer(conn, message)
        elif isinstance(message, ADMINISTRATIVE):
            self.administration.answer(conn, message)
        elif self._founding is not None:
            self._founding.handle(conn, message, payload)
        elif self._admission is not None:
            self._admission.handle(conn, message)
        elif isinstance(message, Welcome):
            self.peers.welcomed(conn)
        elif pid is None:
            self.cluster_membership.consider(conn, message)
        elif isinstance(message, PulseKey):
            self.pulses.take_key(pid, conn, message)
        elif isinstance(message, NotReading):
            self.slow_readers.take(pid, message)
        elif isinstance(message, ABOUT_STATE):
            self.states.handle(pid, message, payload)
        else:
            self.cluster_membership.handle(pid, message)

    def on_fault(self, pid: ProcessId, reason: str) -> None:
        """A node broke the protocol."""
        if self.in_cluster and self.error is None:
            self.cluster_membership.accuse(pid, reason)

    def on_lost(self, pid: ProcessId, reason: str) -> None:
        """The connection to a node broke."""
        if self.in_cluster and self.error is None:
            who = self.directory.identities.get(pid, f"process {pid}")
            log.info("the connection to %s broke: %s", who, reason)
            self.charged(pid, "lost connection", partial(self.cluster_membership.lost, pid))

    def on_unbound_closed(self, conn: Connection, reason: str) -> None:
        """A connection that was nobody's is gone."""
        role = self._founding or self._admission
        if role is not None:
            role.closed(conn, reason)

    def on_stranger(self, hello: Hello) -> None:
        """A node connected that is not in this cluster, or not yet."""
        if self._founding is not None:
            self._founding.note(hello)
        elif self.in_cluster and hello.incarnation:
            self.rivals.met(hello)

    # -- partitions -------------------------------------------------------------------------------

    def block(self, error: NotPrimary) -> None:
        """This node is cut off: nothing can be sent, and the streams say so."""
        if not self.options.rejoin:
            self.fail(error)
            return
        log.warning("%s is out: %s", self.me.identity, error)
        self.groups.seal_frames()  # what was accepted is sent if the others come back
        self.blocked = error
        for sending in self.groups.senders():
            sending.block(error)
        self.lifetime.go_out(Outage.CUT_OFF, error, lambda: None)

    def resume(self) -> None:
        """Enough of the others are back."""
        before, self.blocked = self.blocked, None
        if before is not None:
            log.warning(
                "%s goes on as it was: it hears enough nodes again, or an operator declared the "
                "missing ones to be gone",
                self.me.identity,
            )
            for sending in self.groups.senders():
                sending.unblock(before)
            self.lifetime.come_back(Outage.CUT_OFF)

    def dissolve(self, news: Dissolved) -> None:
        """The views of this side have ended in order: this node goes over to the other one."""
        self.over_to = news
        for member in self.groups.memberships.values():
            if member.view is not None:
                member.dissolve()
        self.fail(errors.Dissolved())

    # -- the end ----------------------------------------------------------------------------------

    def fail(self, error: BaseException) -> None:
        """This one is out, for good. Its owner learns it, and decides whether another follows."""
        if self.error is None:
            self.error = error
            self.stop(error)
            self.peers.close(str(error), goodbye=False)
            self.lifetime.ended(self)

    def stop(self, reason: BaseException) -> None:
        """Nothing is sent or delivered any more; whoever waits is told. The streams stay."""
        self.stalls.stop()
        self.rivals.stop()
        self.slow_readers.stop()
        self.return_calls.stop()
        self.administration.stop()
        self.states.stop(reason)
        if self.answerer is not None:
            self.answerer.close()
        if self.in_cluster:
            self.engine.stop()
            self.pulses.stop()
            self.coordination.stop()
            self.cluster_membership.stop(reason)
        for sending in self.groups.senders():
            sending.close(reason)
        for member in self.groups.memberships.values():
            member.barrier.open()
        if self.recorder is not None:
            self.recorder.flush()

    def abandon(self) -> None:
        """The node was dropped without being closed."""
        if not self._loop.is_closed():
            reason = GroupClosed("the node was dropped without being closed")
            self._loop.call_soon_threadsafe(self.fail, reason)

    @property
    def run(self) -> str | None:
        """Under which name this cluster records."""
        return self._run

    @property
    def state(self) -> str:
        """One word for the status: starting, joining, running, out, ended."""
        if self.in_cluster:
            return "running" if self.error is None else "ended"
        if self.lifetime.out_since is not None:
            return "out"
        return "joining" if self._founding is None else "starting"

    def facts(self) -> dict[str, Any]:
        """What is asked most: which node this is."""
        return {
            "name": self.me.name,
            "incarnation": self.me.incarnation,
            "address": self.peers.hello.advertise,
            "leads": self.cluster_membership.coordinates,
            "coordinator": self.cluster_membership.coordinator.identity,
            "run": self._run,
        }
