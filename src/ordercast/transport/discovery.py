"""Finding a cluster by UDP multicast: a newcomer asks a group, nodes of clusters answer it.

    Node("alice", bootstrap=True, discover=Discovery("239.192.7.7:7701"))    is found
    Node("bob", discover=Discovery("239.192.7.7:7701"))                      finds, then is found

Nobody is trusted for an answer. It only says where to knock; who is let in, and who is believed, is
decided on the connection. This is the newcomer's side; `answering` is the other.
"""

from __future__ import annotations

import asyncio
import errno
import secrets
import socket
from collections.abc import Mapping
from typing import Annotated

import msgspec

from ordercast.errors import ConfigError, FrameError
from ordercast.transport.contract import Address
from ordercast.transport.settings import IpMulticast
from ordercast.transport.sockets import prepare_to_multicast, unicast_socket
from ordercast.wire.discovery import (
    NONCE_BYTES,
    QUESTION_BYTES,
    Answer,
    Question,
    Unproved,
    pack_datagram,
    unpack_datagram,
)

SOCKET_BUFFER = 65_536
READ_AT_ONCE = 32  # datagrams; then the rest of the program has its turn
FIRST_PAUSE_S = 0.1  # before the question is repeated; it doubles ...
LONGEST_PAUSE_S = 1.0  # ... up to this
COLLECT_S = 0.1  # how long more answers are taken after the first
MAX_FOUND = 64  # nodes; further answers are dropped
MAX_OTHERS = 8  # other clusters that are remembered to be named


class Discovery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The IPv4 multicast group at which a node looks for its cluster, and is found."""

    group: Annotated[
        str, 'IPv4 multicast group and port, as "239.192.7.7:7701". The same at all nodes.'
    ]
    interface: Annotated[
        str,
        "Address (not name) of the network interface. "
        "Without it, the one that the node is bound to.",
    ] = ""
    ttl: Annotated[int, "Number of networks that a question may cross, its own included."] = 1

    def __post_init__(self) -> None:
        self.carrier  # noqa: B018  checks it

    @property
    def carrier(self) -> IpMulticast:
        """The group as sockets know it."""
        return IpMulticast(self.group, self.interface, self.ttl, socket_buffer=SOCKET_BUFFER)

    def interface_of(self, bound_to: str) -> str:
        """The address of the interface, for a node that is bound to that host."""
        if not self.interface and ":" in bound_to:
            raise ConfigError(
                f"bind={bound_to!r} with Discovery({self.group!r}): multicast is for IPv4 only; "
                "give Discovery(..., interface='address') of an IPv4 interface"
            )
        return self.interface or bound_to


def as_discovery(choice: object) -> Discovery | None:
    """What was chosen, checked; also in the form that JSON makes of it."""
    if choice is None or isinstance(choice, Discovery):
        return choice
    if isinstance(choice, Mapping):
        return msgspec.convert(choice, Discovery)
    raise TypeError(f"discover={choice!r}: write Discovery('239.x.y.z:port')")


class Search:
    """One search for the nodes of a cluster, and what came of it."""

    def __init__(self, settings: Discovery, bound_to: str, cluster: str, key: bytes) -> None:
        self.settings = settings
        self.interface = settings.interface_of(bound_to)
        self.found: dict[str, str] = {}  # address to name, in the order of their answers
        self.others: set[str] = set()  # clusters that nobody asked for
        self.asked = 0  # times
        self.refused = 0  # answers that were malformed, or to another question
        self.unproved = 0  # answers without proof of the key
        self.trouble = ""  # why the last question could not be sent
        self._question = Question(secrets.token_bytes(NONCE_BYTES), cluster)
        self._key = key
        self._first = asyncio.Event()  # an answer has come

    async def run(self, timeout: float) -> None:
        """Ask until somebody answers, and a little longer for the others; or until the timeout."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        pause = FIRST_PAUSE_S
        sock = self._open()
        loop.add_reader(sock, self._drain, sock)
        try:
            while not self.found and loop.time() < deadline:
                self._ask(sock)
                await self._wait(min(pause, deadline - loop.time()))
                pause = min(2 * pause, LONGEST_PAUSE_S)
            if self.found:
                await asyncio.sleep(COLLECT_S)
        finally:
            loop.remove_reader(sock)
            sock.close()

    def where(self) -> str:
        """What was asked, for people."""
        return f"multicast group {self.settings.group} on interface {self.interface}"

    def why_nobody(self) -> str:
        """Why nothing was found, as far as one can know."""
        told = [f"asked {self.asked} times, no node of cluster {self._question.cluster!r} answered"]
        if self.trouble:
            told.append(f"the last question was not sent: {self.trouble}")
        if self.others:
            told.append(f"nodes of other clusters did: {', '.join(map(repr, sorted(self.others)))}")
        if self.unproved:
            told.append(f"{self.unproved} answers came without proof of the key")
        if self.refused:
            told.append(f"{self.refused} answers were malformed")
        return ", ".join(told)

    def _open(self) -> socket.socket:
        try:
            sock = unicast_socket((self.interface, 0), SOCKET_BUFFER)
        except OSError as error:
            if error.errno == errno.EADDRNOTAVAIL:
                raise ConfigError(
                    f"interface={self.interface!r} is no address of this machine"
                ) from error
            raise
        prepare_to_multicast(sock, self.settings.carrier, self.interface)
        return sock

    def _ask(self, sock: socket.socket) -> None:
        self.asked += 1
        try:
            sock.sendto(pack_datagram(self._question, self._key), self.settings.carrier.address)
            self.trouble = ""
        except OSError as error:  # the network may be on its way up
            self.trouble = str(error)

    async def _wait(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._first.wait()
        except TimeoutError:
            return

    def _drain(self, sock: socket.socket) -> None:
        for data, _ in read_waiting(sock):
            try:
                self._take(unpack_datagram(data, Answer, self._key))
            except Unproved:
                self.unproved += 1
            except FrameError:
                self.refused += 1

    def _take(self, answer: Answer) -> None:
        if answer.nonce != self._question.nonce:
            raise FrameError("an answer to another question")
        if answer.cluster != self._question.cluster:
            if len(self.others) < MAX_OTHERS:
                self.others.add(answer.cluster)
        elif len(self.found) < MAX_FOUND:
            self.found.setdefault(answer.address, answer.name)
            self._first.set()


def read_waiting(sock: socket.socket) -> list[tuple[bytes, Address]]:
    """The datagrams that have come, a bounded number; one that is too long shows by its length."""
    datagrams: list[tuple[bytes, Address]] = []
    for _ in range(READ_AT_ONCE):
        try:
            datagrams.append(sock.recvfrom(QUESTION_BYTES + 1))
        except OSError:  # no more; or a peer's port was closed, which does not concern us
            break
    return datagrams
