"""What the coordinator answers to newcomers.

The coordinator is the first node of the node view: at first the one that began the cluster, later
the oldest one that lives. It gives a newcomer its number and its incarnation, tells all nodes to
expect it, and tells it who they are. The newcomer connects to them, and asks to join the node view
(see `ordercast.membership.cluster`). Until it is in, it is only expected.

Every node keeps what the next coordinator must know: the numbers and the incarnations that were
given so far.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from ordercast.core.ids import ProcessId, check_name
from ordercast.membership.nodes import NodeEntry
from ordercast.runtime.addresses import parse_address
from ordercast.runtime.control import Admitted, Apply, NodeDown, NodeUp, Redirect, Refused, encode
from ordercast.transport.tcp import Connection
from ordercast.wire.control import Hello

if TYPE_CHECKING:
    from ordercast.runtime.presence import Presence

log = logging.getLogger("ordercast.runtime.coordination")

GRACE_S = 1.0  # for those whom a coordinator that is gone had let in

SIDES = 1024  # where sides of a partition may each let nodes in, numbers tell who let them in


class Coordination:
    """Lets nodes in, while this one coordinates."""

    def __init__(self, presence: Presence, run: str, only: frozenset[str] | None) -> None:
        self._presence = presence
        self._run = run  # under which name the cluster records
        self._only = only  # names of a static list
        self._expected: dict[ProcessId, asyncio.TimerHandle] = {}  # not in the view yet

    # -- newcomers --------------------------------------------------------------------------------

    def consider(self, conn: Connection, hello: Hello, apply: Apply) -> None:
        """Let it in, send it to whom it must ask, or say why it cannot come in."""
        presence = self._presence
        stack = presence.engine.stack
        if stack.coordinates:
            refusal = self._objection(hello, apply)
            if refusal is None:
                self._admit(conn, hello, apply)
            else:
                log.info("refused %s: %s", hello.name, refusal.text)
                _refuse(conn, refusal)
        elif presence.nodeship.coordinates:
            _refuse(conn, Refused("joining", "the nodes of the cluster are changing: ask again"))
        else:  # without a view yet: to the one that let this node in
            conn.send(encode(Redirect(presence.nodeship.coordinator.address)))

    def _admit(self, conn: Connection, hello: Hello, apply: Apply) -> None:
        presence, directory = self._presence, self._presence.directory
        self._give_up_namesakes(hello.name)
        incarnation = max(directory.incarnations.get(hello.name, 0), apply.after) + 1
        node = NodeEntry(
            self._next_pid(), hello.name, incarnation, hello.advertise, apply.former,
            apply.sequencer, apply.site, apply.gateway,
        )  # fmt: skip
        presence.peers.tell_all(NodeUp(node))
        nodes = tuple(directory.live.values())
        named = {entry.name for entry in nodes}
        past = tuple(pair for pair in directory.incarnations.items() if pair[0] not in named)
        self.expect(node)
        presence.peers.bind(conn, node.pid)
        presence.peers.tell(node.pid, Admitted(node, presence.me.pid, nodes, self._run, past))
        log.info("%s may come in, from %s", node.identity, node.address)

    def _next_pid(self) -> ProcessId:
        """Above all that were ever given; and not one that another side may give, too."""
        highest = self._presence.directory.highest
        if self._presence.options.partition == "primary":
            return highest + 1
        return (highest // SIDES + 1) * SIDES + self._presence.me.pid % SIDES

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
            return Refused(
                "name",
                f"a node named {hello.name!r} is in the cluster, at {namesake.address}; "
                "names are unique: choose another one, or stop that node first",
            )
        if len(presence.directory.live) >= presence.options.max_nodes:
            return Refused("full", f"the cluster has max_nodes={presence.options.max_nodes} nodes")
        if self.starts >= presence.options.max_starts:
            limit = presence.options.max_starts
            return Refused("full", f"the cluster has let in max_starts={limit} nodes in its life")
        for option, mine in presence.options.shared().items():
            theirs = apply.shared.get(option)
            if theirs != mine:
                return Refused(
                    "config",
                    f"{option}={theirs!r} here, {option}={mine!r} at the coordinator: "
                    f"{option} must be the same on all nodes of a cluster",
                )
        return None

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
        """It was let in by one who died before it could say so: it is expected, and asks again."""
        return namesake.pid in self._expected and namesake.address == hello.advertise

    def _give_up_namesakes(self, name: str, but: NodeEntry | None = None) -> None:
        for node in tuple(self._presence.directory.live.values()):
            if node.name == name and node != but:
                self.give_up(node.pid)

    def is_in(self, pid: ProcessId) -> None:
        """The node view has it now."""
        self._forget(pid)

    def give_up(self, pid: ProcessId) -> None:
        """It did not come, or broke away before it was in."""
        if pid in self._expected:
            self._forget(pid)
            self._presence.directory.remove(pid)
            self._presence.peers.part(pid, "it did not come in")
            if self._presence.nodeship.coordinates:
                self.tell_expected(pid, "it did not come in")

    def take_over(self) -> None:
        """Who let them in is gone. One that has not connected here soon died with it: others on
        their way in would try to reach it in vain."""
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
        for pid in tuple(self._expected):
            self._forget(pid)

    @property
    def starts(self) -> int:
        """Nodes that were let in so far, as far as this one knows."""
        return sum(self._presence.directory.incarnations.values())


def _refuse(conn: Connection, refusal: Refused) -> None:
    conn.send(encode(refusal))
    conn.close("refused")
