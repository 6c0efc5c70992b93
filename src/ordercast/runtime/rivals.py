"""Finds a second cluster of the same name; both sides log a warning.

Two clusters of one name never become one by themselves, and each looks healthy. They meet where a
node of one connects to a node of the other: it looks for a node that was lost and has been started
again as a cluster of its own, or one of its seeds is such a node. The node that finds the other
cluster also connects to it once, so that the other side can log it, too.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from ordercast.core.ids import Identity, check_name
from ordercast.core.numbers import MAX_COUNT
from ordercast.errors import OrdercastError
from ordercast.membership.node_view import NodeEntry
from ordercast.membership.sides import MAX_LOST
from ordercast.runtime.addresses import parse_address
from ordercast.runtime.foreign_text import printable
from ordercast.runtime.status import query_status
from ordercast.transport.tcp import show_address
from ordercast.views.plausible import MAX_PROCESS
from ordercast.wire.control import Hello

if TYPE_CHECKING:
    from ordercast.runtime.presence import Presence

log = logging.getLogger("ordercast.runtime.rivals")

LOOK_S = 5.0  # seconds between two questions to seeds outside this cluster, and to known rivals
SETTLE_S = 1.0  # an unknown node may be a newcomer of which the coordinator's word is under way
ASK_S = 2.0  # seconds that a node has to answer
MAX_ASKED = 8  # at a time
MAX_MET = 64  # unknown nodes that are waited for; the addresses of which something is remembered
TELL_AGAIN_S = 60.0  # between two warnings of a second cluster that stays


class Described(msgspec.Struct):
    """A node in the status of another one."""

    pid: Annotated[int, msgspec.Meta(ge=0, le=MAX_PROCESS)]
    name: str
    incarnation: Annotated[int, msgspec.Meta(ge=1, le=MAX_COUNT)]
    address: str

    @property
    def entry(self) -> NodeEntry:
        """`ValueError` if its name or its address is none."""
        name = check_name("node", self.name)
        address = show_address(parse_address("address", self.address))
        return NodeEntry(self.pid, name, self.incarnation, address)


class Rival(msgspec.Struct, frozen=True):
    """Another cluster of the same name."""

    coordinator: str
    address: str
    nodes: int


class Rivals:
    """The other clusters that this node knows of."""

    def __init__(self, presence: Presence, seeds: tuple[str, ...]) -> None:
        self._presence = presence
        self._seeds = seeds
        self._known: dict[str, Rival] = {}  # by the address that was asked
        self._told: dict[str, float] = {}  # by the address of a coordinator: when
        self._asked: dict[str, float] = {}  # by address: when
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._loop = asyncio.get_running_loop()
        self._timers: set[asyncio.TimerHandle] = set()

    def start(self) -> None:
        """Look now and then, from the moment at which this node is in a cluster."""
        self._later(LOOK_S, self._look)

    def _later(self, seconds: float, call: Any, *args: object) -> None:
        def fire() -> None:
            self._timers.discard(timer)
            call(*args)

        timer = self._loop.call_later(seconds, fire)
        self._timers.add(timer)

    def _look(self) -> None:
        for address in dict.fromkeys((*self._seeds, *self._known)):
            self.suspect(address)
        self._later(LOOK_S, self._look)

    def met(self, hello: Hello) -> None:
        """A node connected that says it is in a cluster of this name, and is not in this one."""
        if hello.advertise and len(self._timers) < MAX_MET:
            self._later(SETTLE_S, self._ask_if_unknown, hello)

    def _ask_if_unknown(self, hello: Hello) -> None:
        if str(hello.identity) not in self._presence.directory.identities.values():
            self.suspect(hello.advertise)

    def suspect(self, address: str) -> None:
        """Somebody who is not in this cluster may be at this address."""
        now = self._loop.time()
        too_soon = now - self._asked.get(address, -LOOK_S) < LOOK_S / 2
        if too_soon or address in self._asking:
            return
        if len(self._asking) >= MAX_ASKED or self._is_own(address):
            return
        if len(self._asked) >= MAX_MET:
            self._asked.clear()
        self._asked[address] = now
        self._asking[address] = asyncio.ensure_future(self._ask(address))

    def _is_own(self, address: str) -> bool:
        presence = self._presence
        if presence.error is not None or not presence.in_cluster:
            return True  # it is in no cluster: nothing is beside it
        own = (presence.peers.hello.advertise, presence.peers.address)
        return address in own or any(n.address == address for n in presence.directory.live.values())

    async def _ask(self, address: str) -> None:
        try:
            rival = await self._rival_at(address)
            if rival is None:
                self._known.pop(address, None)
                return
            is_new = address not in self._known
            if is_new and len(self._known) >= MAX_ASKED:
                return
            self._known[address] = rival
            self._tell(rival)
            if is_new:
                await self._knock(address)
        finally:
            del self._asking[address]

    async def _rival_at(self, address: str) -> Rival | None:
        security = self._presence.peers.security
        try:
            status = await query_status(
                address, cluster=self._presence.peers.hello.cluster, timeout=ASK_S,
                tls=security.tls, key=security.key or None, insecure=security.insecure,
            )  # fmt: skip
            if status["state"] == "running" and status["run"] == self._presence.run:
                self._meet_side(status)
            return self._other(status)
        except (OSError, OrdercastError, ValueError, TypeError, KeyError):
            return None  # no node answered, or its answer makes no sense

    def _other(self, status: dict[str, Any]) -> Rival | None:
        """The cluster of a node that answered, if it is not this one.

        Sides of one cluster that was cut record under one name, or count the same nodes as theirs.
        """
        presence = self._presence
        if status["state"] != "running" or status["run"] == presence.run:
            return None
        theirs = {f"{n['name']}#{n['incarnation']}": str(n["address"]) for n in status["nodes"]}
        ours = {node.identity: node.address for node in presence.directory.live.values()}
        if theirs.items() & ours.items():
            return None
        coordinator = str(status["coordinator"])
        address = show_address(parse_address("address", theirs[coordinator]))
        name, _, incarnation = coordinator.rpartition("#")
        identity = Identity(check_name("node", name), int(incarnation))
        return Rival(str(identity), address, len(theirs))

    def _meet_side(self, status: dict[str, Any]) -> None:
        """Where every side of a partition goes on, two sides may have no node in common, and none
        that the other has met: who knew both is gone. Then they meet here."""
        presence = self._presence
        known = {*presence.directory.live, *presence.engine.stack.lost}
        described = msgspec.convert(status["nodes"][:MAX_LOST], list[Described])
        nodes = [node.entry for node in described]
        if presence.options.partition == "merge" and any(node.pid not in known for node in nodes):
            log.info("%s is on another side of this cluster", printable(status["name"]))
            presence.cluster_membership.meet(tuple(nodes))
        for node in nodes:
            here = presence.directory.live.get(node.pid)
            if here is not None and here.identity != node.identity:
                log.error(
                    "%s and %s, on another side of this cluster, have the same number: restart one "
                    "of them, or the sides may not become one", here.identity, node.identity,
                )  # fmt: skip

    def _tell(self, rival: Rival) -> None:
        now = self._loop.time()
        told = self._told.get(rival.address)
        if told is not None and now - told < TELL_AGAIN_S:
            return
        if len(self._told) >= MAX_MET:
            self._told.clear()
        self._told[rival.address] = now
        mine, peers = self._presence.cluster_membership.coordinator, self._presence.peers
        log.warning(
            "two clusters are named %r: %s at %s coordinates this one (nodes: %d), %s at %s "
            "coordinates the other (nodes: %d). They never become one by themselves: stop the "
            "nodes of one of them and start them again, with seeds=[%r] to keep this one or with "
            "seeds=[%r] to keep the other",
            peers.hello.cluster, mine.identity, mine.address,
            len(self._presence.directory.live), rival.coordinator, rival.address, rival.nodes,
            mine.address, rival.address,
        )  # fmt: skip

    async def _knock(self, address: str) -> None:
        """Let the other side see that this node is in a cluster, too."""
        try:
            conn = await self._presence.peers.dial(address, ASK_S)
        except (OSError, OrdercastError):
            return
        await asyncio.sleep(SETTLE_S / 4)
        conn.close("it is in another cluster")

    def stats(self) -> list[dict[str, Any]]:
        """The other clusters, each once."""
        rivals = {rival.address: rival for rival in self._known.values()}
        return [msgspec.to_builtins(rival) for rival in rivals.values()]

    def stop(self) -> None:
        """Ask nobody any more."""
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        for task in self._asking.values():
            task.cancel()
