"""May this node start the cluster? Only if none of its seeds runs one.

Several nodes may ask themselves that at the same moment: each was given `bootstrap=True` and the
addresses of the others. Of nodes that know of each other, the one with the smallest address starts
the cluster, and the others wait for it and join. The address is what both know of each other, from
the first thing that they say on a connection.

Why no two of them start it. A node listens before it asks, and notes who connects. It starts the
cluster in the same step of the event loop in which it finds that nobody who would go before it has
connected since it asked. So of two nodes of which one asks the other, the one that is asked has
either started already, and says so; or it has noted the other one, and asks it before it decides.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Literal, NamedTuple

from ordercast.errors import PeerError
from ordercast.runtime.control import (
    Apply,
    Control,
    Refused,
    StatusReply,
    StatusRequest,
    encode,
)
from ordercast.runtime.join_timeouts import gave_way, nobody_knows
from ordercast.runtime.reasons import trouble_of
from ordercast.runtime.status_decoding import decode_status
from ordercast.transport.tcp import Connection
from ordercast.wire.control import Hello

if TYPE_CHECKING:
    from ordercast.runtime.presence import Presence

ASK_SECONDS = 2.0  # that a seed has to say whether it runs
PAUSE = 0.05  # seconds between two rounds, while another node starts the cluster
MAX_NOTED = 64  # nodes that connected meanwhile and are asked
ABSENT = ("refused", "unresolved")  # no node runs there; any other failure may be a cut network

State = Literal["running", "starting", "waiting", "absent", "unknown"]
STATES: dict[str, State] = {"running": "running", "starting": "starting", "joining": "waiting"}
"""The states in a status that matter here."""


class Asked(NamedTuple):
    """What is known of one address."""

    state: State
    why: str = ""  # it is not known
    advertised: str = ""  # the address as the node itself says it: the seed may be a name for it


class Founding:
    """The role of a node that starts the cluster unless somebody else has."""

    def __init__(self, presence: Presence) -> None:
        self._presence = presence
        self._noted: dict[str, None] = {}  # addresses of nodes that connected, in their order ...
        self._since_asked: set[str] = set()  # ... and of those that did since this round began
        self._answers: dict[Connection, asyncio.Future[bytes]] = {}

    async def running(
        self, seeds: tuple[str, ...], timeout: float, *, must_know: bool
    ) -> tuple[str, ...]:
        """The seeds that are in a cluster; empty: this node has to start it, at once.

        `must_know`: a seed that can be neither reached nor excluded is a `JoinTimeout`.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        while True:
            self._since_asked.clear()
            asked = tuple(dict.fromkeys((*seeds, *self._noted)))
            found = dict(zip(asked, await asyncio.gather(*map(self._ask, asked)), strict=True))
            running = tuple(a for a, answer in found.items() if answer.state == "running")
            if running:
                return running
            unknown = {a: found[a].why for a in seeds if found[a].state == "unknown"}
            if unknown and must_know:
                raise nobody_knows(self._presence, unknown, ASK_SECONDS)
            first = self._goes_before(found)
            if first is None:
                return ()
            if loop.time() >= deadline:
                raise gave_way(self._presence, first, timeout)
            await asyncio.sleep(PAUSE)

    def _goes_before(self, found: dict[str, Asked]) -> str | None:
        """The node that starts the cluster instead of this one, or may: it was asked too early.

        Not one that only waits for the cluster: it knocks again and again.
        """
        mine = self._presence.peers.hello.advertise
        starting = {answer.advertised for answer in found.values() if answer.state == "starting"}
        waiting = {answer.advertised for answer in found.values() if answer.state == "waiting"}
        return min((a for a in starting | (self._since_asked - waiting) if a < mine), default=None)

    async def _ask(self, address: str) -> Asked:
        try:
            conn = await self._presence.peers.dial(address, ASK_SECONDS)
        except (OSError, PeerError) as error:
            trouble, why = trouble_of(error)
            return Asked("absent") if trouble in ABSENT else Asked("unknown", why)
        try:
            return await self._ask_state(conn, address)
        except (OSError, PeerError) as error:
            return Asked("unknown", trouble_of(error)[1])
        finally:
            del self._answers[conn]
            conn.close("asked")

    async def _ask_state(self, conn: Connection, address: str) -> Asked:
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._answers[conn] = answer
        advertised = "" if conn.hello is None else conn.hello.advertise
        if advertised == self._presence.peers.hello.advertise:
            return Asked("absent")  # this is the node itself: one list may be given to all
        conn.send(encode(StatusRequest()))
        async with asyncio.timeout(ASK_SECONDS):
            status = decode_status(address, await answer)
        state = status["state"]
        if state == "out":
            return Asked("unknown", "it is out of its cluster, which may run elsewhere")
        return Asked(STATES.get(state, "absent"), advertised=advertised)

    # -- what others say --------------------------------------------------------------------------

    def note(self, hello: Hello) -> None:
        """Somebody connected: it may be about to start the cluster, too."""
        is_known = hello.advertise in self._noted
        if hello.advertise and (is_known or len(self._noted) < MAX_NOTED):
            self._noted[hello.advertise] = None
            self._since_asked.add(hello.advertise)

    def asks(self, conn: Connection) -> bool:
        """Is the other side of this connection asked?"""
        return conn in self._answers

    def handle(self, conn: Connection, message: Control, payload: bytes) -> None:
        """An answer; or somebody who wants to be let in."""
        if isinstance(message, Apply):
            conn.send(encode(Refused("joining", "it is about to start the cluster, or to join it")))
            conn.close("refused")
        elif isinstance(message, StatusReply):
            answer = self._answers[conn]
            if not answer.done():
                answer.set_result(payload)

    def closed(self, conn: Connection, reason: str) -> None:
        """A node that was asked closed the connection."""
        answer = self._answers.get(conn)
        if answer is not None and not answer.done():
            answer.set_exception(PeerError(reason))
