"""Slow and lossy networks: by the kernel's netem, or by a relay of ours between the namespaces.

    with Network(["alice", "bob"]) as network, shaping(network) as shaped:
        shaped.shape(delay_ms=20, loss=0.05)     # everybody's packets
        shaped.cut(["alice"], ["bob"])           # this direction only
        shaped.mend()

`shaping` takes netem where the kernel has it. Both do the same; the relay also takes a quality for
one way alone, and needs tap devices, which every kernel with TUN has.
"""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from netlab.namespaces import SWITCH, Network, Refused

Names = Sequence[str] | None  # None: everybody


class Shaped(Protocol):
    """A network whose packets can be delayed and lost, while it is used."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

    def shape(self, *, delay_ms: float = 0.0, jitter_ms: float = 0.0, loss: float = 0.0) -> None:
        """All packets between members, each direction for itself."""

    def cut(self, frm: Names, to: Names) -> None:
        """Nothing comes through from these to those. The other direction stays."""

    def mend(self) -> None:
        """No direction is cut any more."""

    def lost(self) -> int:
        """Packets that were thrown away by chance so far."""


def shaping(network: Network) -> Shaped:
    """What this machine has; `Refused`, when entered, if it has neither."""
    return Netem(network) if netem_refusal() is None else Relay(network)


def shaping_refusal() -> str | None:
    """Why packets can be neither delayed nor lost here; None if they can."""
    netem, relay = netem_refusal(), relay_refusal()
    return None if netem is None or relay is None else f"{netem}; {relay}"


class _Closing:
    """A context that is left by `close`."""

    def close(self) -> None:
        raise NotImplementedError

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


# -- netem ----------------------------------------------------------------------------------------


@functools.cache
def netem_refusal() -> str | None:
    """Why the kernel cannot do it; None if it can."""
    try:
        with Network(["one"]) as network, Netem(network) as netem:
            netem.shape(delay_ms=1)
    except Refused as reason:
        return f"no netem here: {reason}"
    return None


class Netem(_Closing):
    """A queueing discipline at every member's interface; cuts are routes that swallow."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._cut: set[tuple[str, str]] = set()

    def __enter__(self) -> Self:
        return self

    def shape(self, *, delay_ms: float = 0.0, jitter_ms: float = 0.0, loss: float = 0.0) -> None:
        how = ["delay", f"{delay_ms + jitter_ms / 2}ms", f"{jitter_ms / 2}ms"]
        how += ["loss", f"{100 * loss}%", "limit", "100000"]
        for name in self._network.members:
            command = ("tc", "qdisc", "replace", "dev", "eth0", "root", "netem", *how)
            done = self._network.inside(name).run(*command)
            if done.returncode:
                raise Refused(f"tc: {done.stderr.strip()}")

    def cut(self, frm: Names, to: Names) -> None:
        members = self._network.members
        asked = {(a, b) for a in frm or members for b in to or members if a != b}
        for one, other in asked - self._cut:
            self._network.blackhole(one, other)
            self._cut.add((one, other))

    def mend(self) -> None:
        while self._cut:
            self._network.unblackhole(*self._cut.pop())

    def lost(self) -> int:
        drops = 0
        for name in self._network.members:
            asked = ("tc", "-s", "-j", "qdisc", "show", "dev", "eth0")
            told = self._network.inside(name).run(*asked)
            drops += sum(queue["drops"] for queue in json.loads(told.stdout))
        return drops

    def close(self) -> None:
        """The queues go with the namespaces."""


# -- the relay ------------------------------------------------------------------------------------


@functools.cache
def relay_refusal() -> str | None:
    """Why the relay cannot run; None if it can."""
    try:
        with Network(["one", "two"]) as network, Relay(network):
            return None
    except Refused as reason:
        return f"no relay here: {reason}"


class Relay(_Closing):
    """The relay's process, and the switch of each member that leads to it.

    Every cable goes to a bridge of its own; its other port is a tap device of the relay.
    """

    def __init__(self, network: Network, *, seed: int = 1) -> None:
        self._network = network
        self._seed = seed
        self._process: subprocess.Popen[bytes] | None = None
        self._made: list[str] = []  # ports that have a switch and a tap device of ours

    def __enter__(self) -> Self:
        try:
            for name in self._network.members:
                self._network.hub.ip(*self._lines(name))
                self._made.append(self._network.port(name))
            self._start()
            self._network.settle(*self._network.members)
        except BaseException:
            self.close()
            raise
        return self

    def shape(
        self,
        *,
        delay_ms: float = 0.0,
        jitter_ms: float = 0.0,
        loss: float = 0.0,
        frm: Names = None,
        to: Names = None,
    ) -> None:
        """The quality of all ways, or of those from `frm` to `to`."""
        quality = {"delay_ms": delay_ms, "jitter_ms": jitter_ms, "loss": loss}
        self._do("shape", frm=frm, to=to, **quality)

    def cut(self, frm: Names, to: Names) -> None:
        self._do("cut", frm=frm, to=to)

    def mend(self) -> None:
        self._do("mend")

    def counts(self) -> dict[str, dict[str, int]]:
        """Frames by way, "alice>bob", and by what became of them."""
        counts: dict[str, dict[str, int]] = self._do("counts")
        return counts

    def lost(self) -> int:
        return sum(counts.get("lost", 0) for counts in self.counts().values())

    def close(self) -> None:
        """End the relay; the cables go back to the common switch, and its own devices go."""
        if self._process is not None:
            assert self._process.stdin is not None and self._process.stdout is not None
            self._process.stdin.close()
            self._process.wait()
            self._process.stdout.close()
        self._network.heal()
        for port in self._made:
            self._network.hub.ip(f"link del tap{port}", f"link del {SWITCH}{port}")
        self._made.clear()

    def _lines(self, name: str) -> list[str]:
        port = self._network.port(name)
        return [
            f"link add {SWITCH}{port} type bridge",
            f"tuntap add dev tap{port} mode tap",
            f"link set tap{port} addrgenmode none",
            f"link set tap{port} master {SWITCH}{port} up",
            f"link set {SWITCH}{port} up",
            f"link set {port} master {SWITCH}{port}",
        ]

    def _start(self) -> None:
        network = self._network
        ports = [f"{n}=tap{network.port(n)}={network.mac(n)}" for n in network.members]
        script = str(Path(__file__).with_name("relay_process.py"))
        self._process = subprocess.Popen(
            [*network.hub.enter, sys.executable, script, str(self._seed), *ports],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._answer()

    def _do(self, order: str, **args: Any) -> Any:
        assert self._process is not None and self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": order, "args": args}).encode() + b"\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> Any:
        assert self._process is not None and self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise Refused("the relay ended; its standard error says why")
        answer = json.loads(line)
        if "error" in answer:
            raise ValueError(answer["error"])
        return answer["result"]
