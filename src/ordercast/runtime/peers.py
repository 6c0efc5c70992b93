"""The connections of one node: one to every other node of the cluster.

Of two nodes the newer one connects, so each pair has one connection. A connection is *bound* once
both sides know whose it is; only then may packets of groups flow on it. A node may connect before
the coordinator's word about it has come: its connection waits, unbound.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from errno import EADDRINUSE
from functools import partial
from ipaddress import ip_address
from typing import Protocol

import msgspec

from ordercast.core.ids import ProcessId
from ordercast.errors import PeerError
from ordercast.membership.node_view import NodeEntry
from ordercast.runtime.addresses import Address, parse_address
from ordercast.runtime.control import Control, Goodbye, Welcome, decode, encode
from ordercast.transport.places import Places
from ordercast.transport.security import NONE, Security
from ordercast.transport.tcp import (
    Connection,
    Counters,
    Limits,
    Listener,
    connect,
    listen,
    show_address,
)
from ordercast.transport.udp import DatagramEndpoint
from ordercast.wire.control import CONTROL_CHANNEL, Hello
from ordercast.wire.frame import Frame

log = logging.getLogger("ordercast.runtime.peers")

LOGGED = 1024  # peers whose first fault is in the log
ATTEMPTS = 10  # to find a port that is free for TCP and for UDP


def datagram_address(conn: Connection) -> Address:
    """The address of the other side for datagrams: its advertised port, at a numeric host.

    A name is not looked up: the connection has found the host already.
    """
    assert conn.hello is not None
    try:
        host, port = parse_address("advertise", conn.hello.advertise)
    except ValueError as reason:
        raise PeerError(str(reason)) from None
    try:
        ip_address(host)
    except ValueError:
        host = conn.peer[0]
    return host, port


class Owner(Protocol):
    """The node, as its connections see it."""

    def node_of(self, hello: Hello) -> NodeEntry | None:
        """The node of that identity, if it is known and may connect to this one."""

    def on_bound(self, pid: ProcessId) -> None:
        """There is a connection to that node."""

    def may_replace(self, pid: ProcessId) -> bool:
        """May another connection of that node take the place of the one there is?"""

    def on_stranger(self, hello: Hello) -> None:
        """A node connected that is not known here, or not yet."""

    def on_packets(self, pid: ProcessId, frames: list[Frame], conn: Connection) -> None:
        """Packets and control messages of a bound connection."""

    def on_control(self, conn: Connection, pid: ProcessId | None, frame: Frame) -> None:
        """A control message; the connection may be unbound."""

    def as_fault(self, conn: Connection, kind: str, error: Exception) -> Exception:
        """An error that came up while a message of the other side was handled, as its fault."""

    def on_fault(self, pid: ProcessId, reason: str) -> None:
        """A node broke the protocol: its connection is about to be closed."""

    def on_lost(self, pid: ProcessId, reason: str) -> None:
        """A bound connection broke, and the other side had not said good-bye."""

    def on_unbound_closed(self, conn: Connection, reason: str) -> None:
        """A connection that never was bound is gone."""


class Peers:
    """Listens, connects, and knows which connection is whose."""

    def __init__(
        self,
        owner: Owner,
        hello: Hello,
        limits: Limits,
        max_nodes: int,
        patience: float,
        security: Security = NONE,
    ) -> None:
        """A connection that is not bound within `patience` seconds is closed."""
        self.hello = hello
        self.counters = Counters()
        self.peer_faults = 0
        self.bound: dict[ProcessId, Connection] = {}
        self._owner = owner
        self._patience = patience
        self.limits = limits
        self.security = security
        self.waiting: Places[Connection] = Places(  # of those who said Hello, and are in no view
            max_nodes, max(limits.max_unknown_per_host, max_nodes // 4), limits.max_stranger_bytes
        )
        self._pid_of: dict[Connection, ProcessId] = {}
        self._when_unbound: list[Callable[[ProcessId], None]] = []
        self._unbound: set[Connection] = set()
        self._parting: set[Connection] = set()  # good-bye was said, by either side
        self._awaited: dict[str, tuple[ProcessId, asyncio.Future[None]]] = {}  # by identity
        self._logged: set[str] = set()  # peers whose first fault is in the log
        self._listener: Listener | None = None
        self.datagrams: DatagramEndpoint | None = None  # what carries packets, if not connections

    # -- opening ----------------------------------------------------------------------------------

    async def listen(self, address: Address) -> None:
        """Take the port; with datagrams, the same number for both."""
        for attempt in range(1, ATTEMPTS + 1):
            listener = self._listener = await listen(
                *address, hello=self.hello, handler=self, limits=self.limits,
                counters=self.counters, security=self.security,
            )  # fmt: skip
            try:
                if self.datagrams is not None:
                    self.datagrams.open(listener.address)
                break
            except OSError as error:  # port 0: the number that TCP found may be taken for UDP
                listener.close()
                if address[1] or error.errno != EADDRINUSE or attempt == ATTEMPTS:
                    raise
        self.hello = listener.hello

    @property
    def address(self) -> str:
        """Where this node listens; the actual port after port 0 was asked for."""
        assert self._listener is not None
        return show_address(self._listener.address)

    def introduce_as(self, incarnation: int) -> None:
        """This node was admitted: its next Hellos say so."""
        assert self._listener is not None
        self.hello = msgspec.structs.replace(self.hello, incarnation=incarnation)
        self._listener.hello = self.hello

    async def dial(self, address: str, timeout: float, *, as_stranger: bool = False) -> Connection:
        """A connection whose other side has said Hello. `OSError` or `PeerError` otherwise.

        The address may be a peer's word.
        """
        try:
            host, port = parse_address("address", address)
        except ValueError as reason:
            raise PeerError(str(reason)) from None
        if not self.security.may_speak_to(host):
            raise PeerError(f"{address} is not on this machine, and nothing would be encrypted")
        hello = msgspec.structs.replace(self.hello, incarnation=0) if as_stranger else self.hello
        conn = await connect(
            host, port,
            hello=hello, handler=self, limits=self.limits, counters=self.counters,
            timeout=timeout, security=self.security,
        )  # fmt: skip
        if conn not in self._pid_of:
            self._unbound.add(conn)
        return conn

    async def answers(self, node: NodeEntry, timeout: float) -> bool:
        """Does that node answer at its address? All later nodes must reach it there."""
        try:
            called = await self.dial(node.address, timeout, as_stranger=True)
        except (OSError, PeerError):
            return False
        called.close("it is there")
        return called.hello is not None and str(called.hello.identity) == node.identity

    async def dial_node(self, node: NodeEntry, timeout: float) -> None:
        """Connect to a node and wait until it knows us: its Welcome binds the connection."""
        welcome: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._awaited[node.identity] = (node.pid, welcome)
        try:
            conn = await self.dial(node.address, timeout)
            if conn.hello is None or str(conn.hello.identity) != node.identity:
                conn.abort("another node answers at this address")
                raise PeerError(f"{node.address} is not the address of {node.identity} any more")
            async with asyncio.timeout(timeout):
                await welcome
        finally:
            del self._awaited[node.identity]
            if not welcome.cancel() and not welcome.cancelled():
                welcome.exception()  # told while it was dialled, and nobody looked

    def bind(self, conn: Connection, pid: ProcessId) -> None:
        """This connection is that node's."""
        self._unbound.discard(conn)
        conn.take_large_frames()
        before = self.bound.get(pid)
        self.bound[pid] = conn
        if before is not None and before is not conn:  # nothing came on it any more
            self._parting.add(before)
            before.abort("another connection of this node took its place")
        self._pid_of[conn] = pid
        if self.datagrams is not None and conn.hello is not None:
            self.datagrams.add_peer(pid, conn.hello.session, datagram_address(conn))
        # Not at once: the other side must hear first that the connection is bound.
        asyncio.get_running_loop().call_soon(self._told_bound, conn, pid)

    def _told_bound(self, conn: Connection, pid: ProcessId) -> None:
        if self.bound.get(pid) is conn:
            self._owner.on_bound(pid)

    def is_in(self, pid: ProcessId) -> None:
        """The node view has this node: it is no stranger any more."""
        conn = self.bound.get(pid)
        if conn is not None:
            conn.leave_place()

    def keep_places_for(self, nodes: Iterable[NodeEntry]) -> None:
        """Let these nodes connect, however many strangers come."""
        hosts = {conn.peer[0] for node in nodes if (conn := self.bound.get(node.pid)) is not None}
        hosts.update(node.address.rpartition(":")[0].strip("[]") for node in nodes)
        self.waiting.reserve(hosts)
        if self._listener is not None:
            self._listener.places.reserve(hosts)

    def bind_waiting(self, node: NodeEntry) -> None:
        """The coordinator's word about a node has come: bind the connection that waits for it."""
        for conn in tuple(self._unbound):
            hello = conn.hello
            if hello is not None and str(hello.identity) == node.identity:
                self._welcome(conn, node)

    def _welcome(self, conn: Connection, node: NodeEntry) -> None:
        self.bind(conn, node.pid)
        conn.send(encode(Welcome()))

    # -- sending ----------------------------------------------------------------------------------

    def transmit(self, to: tuple[ProcessId, ...], packet: bytes) -> None:
        """The same packet to each; one that is gone gets nothing."""
        bound = self.bound
        for pid in to:
            conn = bound.get(pid)
            if conn is not None:
                conn.send(packet)

    def transmit_soon(self, pid: ProcessId, packet: bytes, seconds: float, enough: int) -> None:
        """A packet that may wait for others, as `Connection.send_within` has it."""
        conn = self.bound.get(pid)
        if conn is not None:
            conn.send_within(packet, seconds, enough)

    def tell(self, pid: ProcessId, message: Control) -> None:
        """A control message to one node."""
        self.transmit((pid,), encode(message))

    def tell_all(self, message: Control) -> None:
        """A control message to every node."""
        self.transmit(tuple(self.bound), encode(message))

    # -- closing ----------------------------------------------------------------------------------

    def part(self, pid: ProcessId, reason: str, last: Control | None = None) -> None:
        """Close a connection from this side; that is no loss."""
        self._stop_awaiting(pid, reason)
        conn = self._unbind(pid)
        if conn is not None:
            self._parting.add(conn)
            if last is not None:
                conn.send(encode(last))
            conn.close(reason)

    def _stop_awaiting(self, pid: ProcessId, reason: str) -> None:
        """Its Welcome will not come."""
        for awaited, welcome in self._awaited.values():
            if awaited == pid and not welcome.done():
                welcome.set_exception(PeerError(reason))

    def _stop_awaiting_on(self, conn: Connection, reason: str) -> None:
        """The other side hung up, perhaps because it was busy: it may be dialled again."""
        if not conn.accepted and conn.hello is not None:
            pid, _ = self._awaited.get(str(conn.hello.identity), (None, None))
            if pid is not None:
                self._stop_awaiting(pid, reason)

    def when_unbound(self, told: Callable[[ProcessId], None]) -> None:
        """Call this whenever there is no connection to a node any more."""
        self._when_unbound.append(told)

    def _unbind(self, pid: ProcessId) -> Connection | None:
        if self.datagrams is not None:
            self.datagrams.remove_peer(pid)
        conn = self.bound.pop(pid, None)
        if conn is not None:
            for told in self._when_unbound:
                told(pid)
        return conn

    def fault(self, pid: ProcessId, reason: str) -> None:
        """A node broke the protocol: close its connection, which then counts as lost."""
        conn = self.bound.get(pid)
        if conn is not None and not conn.reason:
            self._count_fault(conn, reason)
            conn.abort(reason)

    def close(self, reason: str, *, goodbye: bool) -> None:
        """Close everything."""
        if self._listener is not None:
            self._listener.close()
        for conn in (*self.bound.values(), *self._unbound):
            self._parting.add(conn)
            if goodbye:
                conn.send(encode(Goodbye()))
            conn.close(reason)
        if self.datagrams is not None:
            self.datagrams.close()
        self.bound.clear()

    async def closed(self, timeout: float) -> None:
        """Wait until what `close` began is done."""
        waiting = [asyncio.ensure_future(conn.closed()) for conn in (*self._pid_of, *self._unbound)]
        if waiting:
            _, late = await asyncio.wait(waiting, timeout=timeout)
            for task in late:
                task.cancel()

    # -- what connections call --------------------------------------------------------------------

    def on_hello(self, conn: Connection, hello: Hello) -> None:
        if conn.accepted:
            self._charged(conn, "Hello", partial(self._greeted, conn, hello))

    def _charged(self, conn: Connection, kind: str, call: Callable[[], None]) -> None:
        try:
            call()
        except PeerError:
            raise
        except Exception as error:
            raise self._owner.as_fault(conn, kind, error) from None

    def _greeted(self, conn: Connection, hello: Hello) -> None:
        node = self._owner.node_of(hello) if hello.incarnation else None
        if node is not None and node.pid in self.bound and not self._owner.may_replace(node.pid):
            conn.refuse("name", f"{node.identity} is connected already")
        elif node is not None:
            self._welcome(conn, node)
        else:
            self._unbound.add(conn)
            conn.wait_in(self.waiting)
            self._owner.on_stranger(hello)
            loop = asyncio.get_running_loop()
            loop.call_later(self._patience, self._close_stranger, conn)

    def _close_stranger(self, conn: Connection) -> None:
        if conn in self._unbound:
            conn.close(f"it was not let in within {self._patience:g} s")

    @property
    def unbound(self) -> int:
        """Connections that are nobody's yet."""
        return len(self._unbound)

    def on_frames(self, conn: Connection, frames: list[Frame]) -> None:
        pid = self._pid_of.get(conn)
        if pid is not None:
            self._owner.on_packets(pid, frames, conn)
            return
        for place, frame in enumerate(frames):
            if frame[0] != CONTROL_CHANNEL:
                raise PeerError("a packet from a node that was not let in")
            self.on_control(conn, frame)
            if conn in self._pid_of:  # it was let in by this very message
                self.on_frames(conn, frames[place + 1 :])
                return

    def on_control(self, conn: Connection, frame: Frame) -> None:
        """Note a good-bye; what follows from a message is decided by the owner."""
        message = decode(frame)
        if isinstance(message, Goodbye):
            self._parting.add(conn)
            self._hear_no_more(conn)
        self._owner.on_control(conn, self._pid_of.get(conn), frame)

    def _hear_no_more(self, conn: Connection) -> None:
        # A datagram of its that comes after its good-bye would be taken for the first of a new
        # link: what the stack knew of a node that is gone is forgotten.
        pid = self._pid_of.get(conn)
        if self.datagrams is not None and pid is not None:
            self.datagrams.remove_peer(pid)

    def asks(self, conn: Connection) -> bool:
        """Is a Welcome awaited on this connection?"""
        return (
            conn.hello is not None
            and not conn.accepted
            and (str(conn.hello.identity) in self._awaited)
        )

    def welcomed(self, conn: Connection) -> None:
        """The other side knows us. At once: packets may follow in the same read."""
        assert conn.hello is not None
        pid, welcome = self._awaited[str(conn.hello.identity)]
        self.bind(conn, pid)
        if not welcome.done():
            welcome.set_result(None)

    def on_congested(self, conn: Connection) -> None:
        """The windows bound what can wait here; the counters show it."""

    def on_writable(self, conn: Connection) -> None:
        """Nothing was stopped, so nothing goes on."""

    def on_closed(self, conn: Connection, reason: str) -> None:
        if conn.fault is not None:
            self._count_fault(conn, reason)
        self._unbound.discard(conn)
        pid = self._pid_of.pop(conn, None)
        parting = conn in self._parting
        self._parting.discard(conn)
        if pid is None:
            self._stop_awaiting_on(conn, reason)
            self._owner.on_unbound_closed(conn, reason)
            return
        if self.bound.get(pid) is conn:
            self._unbind(pid)
        if not parting:
            self._owner.on_lost(pid, reason)

    def _count_fault(self, conn: Connection, reason: str) -> None:
        self.peer_faults += 1
        if conn in self._pid_of:
            self._owner.on_fault(self._pid_of[conn], reason)
        who = str(conn.hello.identity) if conn.hello is not None else conn.peer[0]
        if who not in self._logged:
            if len(self._logged) >= LOGGED:
                self._logged.clear()
            self._logged.add(who)
            log.warning("%s at %s broke the protocol: %s", who, show_address(conn.peer), reason)
