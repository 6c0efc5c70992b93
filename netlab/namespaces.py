"""Networks of their own: namespaces, cables and switches, made and removed here.

Every member gets a network namespace with one interface, `eth0`. Its cable (a veth pair) ends at a
bridge in one more namespace, the hub, so nothing of the machine's own network is touched.

    with Network(["alice", "bob", "carol"]) as network:
        network.enter("alice")                        # a command line's beginning: "run it there"
        network.partition(["alice", "bob"], ["carol"])
        network.heal()

A namespace lives as long as a process is in it. The first is a holder that ends when its input
ends: also if whoever made it is killed, nothing stays behind. Whoever is not root gets the
namespaces inside a user namespace; where that is refused too, `refusal()` says in which words.
"""

from __future__ import annotations

import functools
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from itertools import chain
from types import TracebackType
from typing import Self

NET = "10.77.0"
MAX_MEMBERS = 250  # that fit one /24
COMMAND_SECONDS = 20.0
SWITCH = "b0"  # the bridge of all who are not partitioned

_HOLDER = ("sh", "-c", "echo ready; read line")
_AS_USER = ("--user", "--map-root-user")
_MAKE_SOCKET = """\
import socket, sys
one = socket.socket(socket.AF_INET, int(sys.argv[1]))
one.bind((sys.argv[2], 0))
with socket.socket(fileno=int(sys.argv[3])) as channel:
    socket.send_fds(channel, [b"s"], [one.fileno()])
"""


class Refused(Exception):
    """This machine does not let us make namespaces, or what goes into them."""


class Namespace:
    """A network namespace, held by a process of ours."""

    def __init__(self, outer: Namespace | None = None, *, as_user: bool = False) -> None:
        """Inside the user namespace of `outer`, or with one of its own if `as_user`."""
        self._as_user: bool = as_user if outer is None else outer._as_user
        flags = _AS_USER if as_user and outer is None else ()
        command = [*(outer.enter if outer else ()), "unshare", *flags, "--net", "--", *_HOLDER]
        try:
            self._holder = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
        except OSError as reason:
            raise Refused(f"{command[0]}: {reason}") from None
        assert self._holder.stdout is not None and self._holder.stderr is not None
        if self._holder.stdout.readline() != b"ready\n":
            words = self._holder.stderr.read().decode().strip()
            self.close()
            raise Refused(words or "unshare ended without a word")

    @property
    def pid(self) -> int:
        """Of the process that holds it."""
        return self._holder.pid

    @property
    def enter(self) -> list[str]:
        """The beginning of a command line that runs a program in here. It keeps its process id."""
        user = ("--user", "--preserve-credentials") if self._as_user else ()
        return ["nsenter", "--target", str(self.pid), *user, "--net"]

    def run(self, *command: str, text: str = "") -> subprocess.CompletedProcess[str]:
        """Run a program to its end."""
        return subprocess.run(
            [*self.enter, *command],
            input=text,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
        )

    def ip(self, *lines: str) -> None:
        """Carry out commands of `ip`; `Refused` with its words if one fails."""
        done = self.run("ip", "-batch", "-", text="\n".join(lines) + "\n")
        if done.returncode:
            raise Refused(f"ip: {done.stderr.strip()}")

    def close(self) -> None:
        """Let go. The kernel removes it when nobody else is in it."""
        self._holder.kill()
        self._holder.wait()
        for pipe in (self._holder.stdin, self._holder.stdout, self._holder.stderr):
            assert pipe is not None
            pipe.close()


def outermost() -> Namespace:
    """A first namespace: as root if that is allowed, else as a user."""
    try:
        return Namespace()
    except Refused as as_root:
        try:
            return Namespace(as_user=True)
        except Refused as as_user:
            raise Refused(f"as root: {as_root}; in a user namespace: {as_user}") from None


@functools.cache
def refusal() -> str | None:
    """Why no network can be made here; None if one can."""
    try:
        with Network(["one", "two"]):
            return None
    except Refused as reason:
        return f"no network namespaces here: {reason}"


class Network:
    """One namespace for each member, and a hub with their switch."""

    def __init__(self, members: Iterable[str]) -> None:
        self.members = tuple(members)
        if not 0 < len(self.members) <= MAX_MEMBERS or len(set(self.members)) < len(self.members):
            raise ValueError(f"1 to {MAX_MEMBERS} members of different names, not {self.members}")
        self.hub: Namespace
        self._place = {name: place for place, name in enumerate(self.members, 1)}
        self._inside: dict[str, Namespace] = {}
        self._sides = 0  # bridges for sides that were made
        self._open = ExitStack()

    def __enter__(self) -> Self:
        try:
            self._build()
        except BaseException:
            self._open.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._open.close()

    # -- where a member is ------------------------------------------------------------------------

    def address(self, name: str) -> str:
        """The member's IPv4 address."""
        return f"{NET}.{self._place[name]}"

    def mac(self, name: str) -> str:
        """The member's Ethernet address."""
        return f"02:00:0a:4d:00:{self._place[name]:02x}"

    def port(self, name: str) -> str:
        """The hub's end of the member's cable."""
        return f"p{self._place[name]}"

    def inside(self, name: str) -> Namespace:
        """The member's namespace."""
        return self._inside[name]

    def enter(self, name: str) -> list[str]:
        """The beginning of a command line that runs a program where the member is."""
        return self._inside[name].enter

    def socket(self, name: str, kind: socket.SocketKind) -> socket.socket:
        """A socket that is the member's, bound to its address, for use in this very process."""
        ours, theirs = socket.socketpair()
        with ours, theirs:
            theirs.set_inheritable(True)
            maker = [sys.executable, "-c", _MAKE_SOCKET, str(int(kind)), self.address(name)]
            subprocess.run(
                [*self.enter(name), *maker, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                check=True,
                timeout=COMMAND_SECONDS,
            )
            _, (descriptor, *_), _, _ = socket.recv_fds(ours, 1, 1)
        return socket.socket(fileno=descriptor)

    # -- what goes wrong, and is mended -----------------------------------------------------------

    def unplug(self, *names: str) -> None:
        """Pull the cables out at the switch: their ends lose the carrier."""
        self.hub.ip(*(f"link set {self.port(name)} down" for name in names))

    def plug(self, *names: str) -> None:
        """Put the cables back."""
        self.hub.ip(*(f"link set {self.port(name)} up" for name in names))
        self.settle(*names)

    def partition(self, *sides: Sequence[str]) -> None:
        """Each side gets a switch of its own; nobody's carrier is lost, packets just vanish.

        Members that are in no side stay where they are.
        """
        lines = []
        for number, side in enumerate(sides, 1):
            if number > self._sides:
                lines += [f"link add side{number} type bridge", f"link set side{number} up"]
            lines += [f"link set {self.port(name)} master side{number}" for name in side]
        self.hub.ip(*lines)
        self._sides = max(self._sides, len(sides))
        self.settle(*chain.from_iterable(sides))

    def heal(self) -> None:
        """All cables at one switch again."""
        self.hub.ip(*(f"link set {self.port(name)} master {SWITCH}" for name in self.members))
        self.settle(*self.members)

    def blackhole(self, frm: str, to: str) -> None:
        """One way only: a route of the one swallows what is for the other."""
        self.inside(frm).ip(f"route add blackhole {self.address(to)}/32")

    def unblackhole(self, frm: str, to: str) -> None:
        """Take that route away."""
        self.inside(frm).ip(f"route del blackhole {self.address(to)}/32")

    def settle(self, *names: str) -> None:
        """Wait until packets of these members pass: a port that was down takes up to a second."""
        deadline = time.monotonic() + COMMAND_SECONDS
        waiting = list(names)
        while waiting := [name for name in waiting if not self._passes(name)]:
            if time.monotonic() > deadline:
                raise Refused(f"the links of {', '.join(waiting)} do not come up")
            time.sleep(0.01)

    def _passes(self, name: str) -> bool:
        ends = (self.hub, self.port(name)), (self.inside(name), "eth0")
        seen = [where.run("ip", "-d", "-j", "link", "show", link) for where, link in ends]
        port, interface = (json.loads(one.stdout)[0] for one in seen)
        slave = port["linkinfo"].get("info_slave_data", {})
        up: bool = port["operstate"] == interface["operstate"] == "UP"
        return up and slave.get("state") == "forwarding"

    # -- making it --------------------------------------------------------------------------------

    def _build(self) -> None:
        self.hub = outermost()
        self._open.callback(self.hub.close)
        self.hub.ip("link set lo up", f"link add {SWITCH} type bridge", f"link set {SWITCH} up")
        for name in self.members:
            self._inside[name] = Namespace(self.hub)
            self._open.callback(self._inside[name].close)
            self.hub.ip(
                f"link add {self.port(name)} type veth "
                f"peer name eth0 address {self.mac(name)} netns {self._inside[name].pid}",
                f"link set {self.port(name)} addrgenmode none",
                f"link set {self.port(name)} master {SWITCH} up",
            )
        for name in self.members:
            self._inside[name].ip(*self._interface(name))
        self.settle(*self.members)

    def _interface(self, name: str) -> Iterable[str]:
        yield "link set lo up"
        yield "link set eth0 addrgenmode none"
        yield f"address add {self.address(name)}/24 dev eth0"
        yield "link set eth0 up"
        yield "route add 224.0.0.0/4 dev eth0"
        # Asking for Ethernet addresses takes both directions: a cut of one would become one of two.
        for other in self.members:
            if other != name:
                mac = self.mac(other)
                yield f"neighbour add {self.address(other)} lladdr {mac} dev eth0 nud permanent"
