"""What the coordinator answers to newcomers.

The coordinator is the first voter of the node view: at first the node that began the cluster, later
the oldest one that lives and votes. It gives a newcomer its number and its incarnation, tells all
nodes to expect it, and tells it who they are. The newcomer connects to them, and asks to join the
node view (see `ordercast.membership.cluster`). Until it is in, it is only expected.

Every node keeps what the next coordinator must know: the numbers and the incarnations that were
given so far.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from ordercast.core.ids import ProcessId, check_name
from ordercast.membership.node_view import NodeEntry
from ordercast.runtime.addresses import parse_address
from ordercast.runtime.control import Admitted, Apply, NodeDown, NodeUp, Redirect, Refused, encode
from ordercast.runtime.lost_majority import why_nobody_gets_in
from ordercast.transport.tcp import Connection
from ordercast.wire.control import Hello

if TYPE_CHECKING:
    from ordercast.runtime.presence import Presence

log = logging.getLogger("ordercast.runtime.coordination")

COMING_S = 1.0  # a node that was let in and is not in the view after this is called ...
CALL_S = 2.0  # ... and has so long to answer
FRESH_S = 5.0  # a node that answered a call within this still has its name

GRACE_S = 1.0  # for newcomers that a former coordinator had let in

MAX_UNSEEN = 1 << 20  # starts of a node that this cluster may not know of

SIDES = 1024  # where sides of a partition may each let nodes in, numbers tell who let them in
SHARE_STEP = 31


class Coordination:
    """Lets nodes in, while this one coordinates."""

    def __init__(self, presence: Presence, run: str, only: frozenset[str] | None) -> None:
        self._presence = presence
        self._run = run  # under which name the cluster records
        self._only = only  # names of a static list
        self._expected: dict[ProcessId, asyncio.TimerHandle] = {}  # not in the view yet
        self._calls: dict[ProcessId, asyncio.Task[None]] = {}  # to nodes: are they there?
        self._answered: dict[ProcessId, float] = {}  # when a holder of a name last did

    # -- newcomers --------------------------------------------------------------------------------

    def consider(self, conn: Connection, hello: Hello, apply: Apply) -> None:
        """Let it in, send it to the coordinator, or say why it cannot come in."""
        presence = self._presence
        stack = presence.engine.stack
        missing = presence.cluster_membership.missing_names()
        if missing and not stack.awaits_voter(hello.name):
            _refuse(conn, Refused("not_primary", why_nobody_gets_in(presence, missing, hello.name)))
        elif missing and not stack.agreement.leads:
            leader = presence.directory.live[stack.agreement.acting()]
            conn.send(encode(Redirect(leader.address)))
        elif missing or stack.coordinates:
            refusal = self._objection(hello, apply)
            if refusal is None:
                self._admit(conn, hello, apply)
            else:
                log.info("refused %s: %s", hello.name, refusal.text)
                _refuse(conn, refusal)
        elif presence.cluster_membership.coordinates:
            _refuse(conn, Refused("changing", "the nodes of the cluster are changing: ask again"))
        else:  # without a view yet: to the one that let this node in
            conn.send(encode(Redirect(presence.cluster_membership.coordinator.address)))

    def _admit(self, conn: Connection, hello: Hello, apply: Apply) -> None:
        presence, directory = self._presence, self._presence.directory
        self._give_up_namesakes(hello.name)
        incarnation = max(directory.last_incarnation(hello.name), apply.after) + 1
        node = NodeEntry(
            self._next_pid(), hello.name, incarnation, hello.advertise, apply.former,
            apply.sequencer, apply.site, apply.gateway, apply.voter, apply.remembers,
        )  # fmt: skip
        presence.peers.tell_all(NodeUp(node))
        nodes = self._reachable()
        past, floor = directory.past, directory.floor
        self.expect(node)
        presence.peers.bind(conn, node.pid)
        answer = Admitted(node, presence.me.pid, nodes, self._run, past, floor)
        presence.peers.tell(node.pid, answer)
        asyncio.get_running_loop().call_later(COMING_S, self._see_if_it_comes, node)
        log.info("%s was let in, at %s", node.identity, node.address)

    def _reachable(self) -> tuple[NodeEntry, ...]:
        """Nodes to which a newcomer must connect: not those whose next life it may be."""
        stack, live = self._presence.engine.stack, self._presence.directory.live
        lost = () if stack.blocked is None else stack.agreement.suspected
        return tuple(node for node in live.values() if node.pid not in lost)

    def _next_pid(self) -> ProcessId:
        """Above all that were ever given; and not one that another side may give, too."""
        highest = self._presence.directory.highest
        if self._presence.options.partition == "primary":
            return highest + 1
        return (highest // SIDES + 1) * SIDES + _share(self._presence.me.pid)

    def _objection(self, hello: Hello, apply: Apply) -> Refused | None:
        presence = self._presence
        try:
            parse_address("advertise", hello.advertise)
        except ValueError as reason:
            return Refused("address", str(reason))
        if apply.site:
            try:
                check_name("site", apply.site)
            except ValueError as reason:
                return Refused("site", str(reason))
        if self._only is not None and hello.name not in self._only:
            listed = ", ".join(sorted(self._only))
            return Refused("members", f"{hello.name!r} is not in the member list ({listed})")
        namesake = presence.directory.named(hello.name)
        if namesake is not None and not self._is_another_try(namesake, hello):
            taken = self._taken(namesake, hello)
            if taken is not None:
                return taken
        if not 0 <= apply.after <= presence.directory.last_incarnation(hello.name) + MAX_UNSEEN:
            return Refused(
                "incarnation", f"{hello.name!r} cannot have been started {apply.after} times"
            )
        if len(presence.directory.live) >= presence.options.max_nodes:
            # A node that was let in and does not come goes again. What a stranger can do for a
            # while must not end a node that asks.
            kind = "joining" if self._expected else "full"
            return Refused(
                kind, f"the cluster is full: it has max_nodes={presence.options.max_nodes} nodes"
            )
        for option, mine in presence.options.shared().items():
            theirs = apply.shared.get(option)
            if theirs != mine:
                return Refused(
                    "config",
                    f"{option}={theirs!r} at {hello.name!r}, {option}={mine!r} at the coordinator: "
                    f"{option} must be the same on all nodes of a cluster",
                )
        return None

    def _taken(self, holder: NodeEntry, hello: Hello) -> Refused | None:
        """The name is in use. A holder that is dead or leaving will not have it for long; if the
        cluster waits for the holder to come back, this may be it."""
        name, pid = holder.name, holder.pid
        presence = self._presence
        if pid in self._expected:
            self._see_if_it_comes(holder)
            said = f"a node named {name!r} was let in a moment ago, from {holder.address}"
            return Refused("joining", f"{said}, and is not there yet: ask again")
        if presence.engine.stack.may_recover_with(name):
            return None
        if self._seems_lost(holder, hello):
            said = f"a node named {name!r}, at {holder.address}, is lost"
            return Refused("joining", f"{said} and will be excluded: ask again")
        if pid != presence.me.pid and not self._has_answered(holder):
            said = f"a node named {name!r}, at {holder.address}, is asked whether it still runs"
            return Refused("joining", f"{said}: ask again")
        return Refused(
            "name",
            f"a node named {name!r} is in the cluster, at {holder.address}; "
            "names are unique: choose another one, or stop that node first",
        )

    def _seems_lost(self, holder: NodeEntry, hello: Hello) -> bool:
        """There is no connection to it, nothing is heard of it, or a next life has its address."""
        presence, pid = self._presence, holder.pid
        if pid == presence.me.pid:
            return False
        suspected = presence.engine.stack.agreement.detector.suspected
        there = pid in presence.peers.bound and pid not in suspected
        return not there or holder.address == hello.advertise

    def _has_answered(self, holder: NodeEntry) -> bool:
        """A refusal ends the one that asks, so the holder is called first: it may have left, or
        died, and its last packets may be lost on the way here."""
        now = asyncio.get_running_loop().time()
        if now - self._answered.get(holder.pid, -FRESH_S) < FRESH_S:
            return True
        if holder.pid not in self._calls:
            self._calls[holder.pid] = asyncio.ensure_future(self._call_holder(holder))
        return False

    async def _call_holder(self, holder: NodeEntry) -> None:
        live = self._presence.directory.live
        try:
            if await self._presence.peers.answers(holder, CALL_S):
                self._answered = {pid: at for pid, at in self._answered.items() if pid in live}
                self._answered[holder.pid] = asyncio.get_running_loop().time()
        finally:
            del self._calls[holder.pid]

    def _see_if_it_comes(self, node: NodeEntry) -> None:
        """Call a node that was let in. If it is not there, it loses its name and its place, and
        others on their way in need not try to reach it."""
        if node.pid in self._expected and node.pid not in self._calls:
            self._calls[node.pid] = asyncio.ensure_future(self._call(node))

    async def _call(self, node: NodeEntry) -> None:
        try:
            if not await self._presence.peers.answers(node, CALL_S):
                log.info("%s was let in, and is not at %s", node.identity, node.address)
                self.give_up(node.pid)
        finally:
            del self._calls[node.pid]

    # -- those who may come in and have not yet ---------------------------------------------------

    def expect(self, node: NodeEntry) -> None:
        """It will connect, and join."""
        presence = self._presence
        self._give_up_namesakes(node.name, but=node)
        before = presence.directory.live.get(node.pid)
        if before is not None and before != node:  # let in by one who died before all knew
            presence.peers.part(node.pid, "its number was given to another")
        presence.directory.add(node)
        presence.peers.bind_waiting(node)
        loop = asyncio.get_running_loop()
        self._forget(node.pid)
        patience = 2 * presence.options.join_timeout
        self._expected[node.pid] = loop.call_later(patience, self.give_up, node.pid)

    def _is_another_try(self, namesake: NodeEntry, hello: Hello) -> bool:
        """A coordinator let it in, and died before it could say so: it asks again."""
        return namesake.pid in self._expected and namesake.address == hello.advertise

    def _give_up_namesakes(self, name: str, but: NodeEntry | None = None) -> None:
        for node in tuple(self._presence.directory.live.values()):
            if node.name == name and node != but:
                self.give_up(node.pid)

    def is_expected(self, pid: ProcessId) -> bool:
        """May it come in, and is in no view yet?"""
        return pid in self._expected

    def is_in(self, pid: ProcessId) -> None:
        """The node view has it now."""
        self._forget(pid)

    def give_up(self, pid: ProcessId) -> None:
        """It did not come, or broke away before it was in."""
        if pid in self._expected:
            self._forget(pid)
            self._presence.directory.give_up(pid)
            self._presence.peers.part(pid, "it did not come in")
            if self._presence.cluster_membership.coordinates:
                self.tell_expected(pid, "it did not come in")

    def take_over(self) -> None:
        """The former coordinator let them in. One that does not connect here soon has died with it:
        others on their way in would try to reach it in vain."""
        expected = tuple(self._expected)
        asyncio.get_running_loop().call_later(GRACE_S, self._give_up_unseen, expected)

    def _give_up_unseen(self, expected: tuple[ProcessId, ...]) -> None:
        for pid in expected:
            if pid in self._expected and pid not in self._presence.peers.bound:
                self.give_up(pid)

    def tell_expected(self, gone: ProcessId, reason: str) -> None:
        """Those who are on their way in need not connect to this one."""
        for pid in self._expected:
            self._presence.peers.tell(pid, NodeDown(gone, reason))

    def _forget(self, pid: ProcessId) -> None:
        timer = self._expected.pop(pid, None)
        if timer is not None:
            timer.cancel()

    def stop(self) -> None:
        """Nobody is expected any more."""
        for call in self._calls.values():
            call.cancel()
        for pid in tuple(self._expected):
            self._forget(pid)

    @property
    def starts(self) -> int:
        """Nodes that were let in so far, as far as this one knows."""
        return sum(self._presence.directory.incarnations.values())


def _share(pid: ProcessId) -> int:
    """The share of numbers that this node gives, where every side lets nodes in. Nodes that one
    let in have different shares, and so have nodes that two sides let in meanwhile."""
    return (pid // SIDES + SHARE_STEP * (pid % SIDES)) % SIDES


def _refuse(conn: Connection, refusal: Refused) -> None:
    conn.send(encode(refusal))
    conn.close("refused")
