"""Real nodes in real processes, each in a namespace of its own, and what can be done to them.

with Network(["a", "b", "c"]) as network:
    async with LiveCluster(network, trace=folder, order="total") as cluster:
        moment = await cluster.kill("c")
        await cluster.agree(["a", "b"])
        await cluster.talk(20)
        print(await cluster.recoveries(moment, without=["c"]))
kept(folder)                                   # the Spark verdict on what all of them recorded
"""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from netlab.namespaces import Network
from ordercast import Node
from ordercast.runtime.options import NodeOptions
from ordercast.runtime.processes import WorkerProcess

PATIENCE = 30.0  # seconds that anything may take on a busy machine; a guard, no measurement
PORT = 7700


@dataclass(frozen=True)
class Recovery:
    """How long one member was without the service, in seconds since the moment it broke."""

    member: str
    view: float  # until its first view without the dead
    message: float  # until the next message that it delivered in that view


def off_loopback() -> dict[str, Any]:
    """What a node needs that speaks in the clear to other machines."""
    known = (*NodeOptions.__struct_fields__, *inspect.signature(Node).parameters)
    return {"insecure": True} if "insecure" in known else {}


def python_path() -> str:
    """For programs in namespaces: as here, and the folder of these tests can be imported."""
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    path = os.environ.get("PYTHONPATH")
    return f"{folder}{os.pathsep}{path}" if path else folder


class LiveCluster:
    """The members of a network, one node each, all in one group."""

    def __init__(
        self,
        network: Network,
        *,
        trace: Path,
        group: str = "main",
        order: str | None = None,
        protocol: str | None = None,
        delivery_level: str | None = None,
        later: Iterable[str] = (),
        each: Mapping[str, Mapping[str, Any]] | None = None,
        **options: Any,
    ) -> None:
        """The first member starts the cluster, the others have all addresses as seeds.

        Those of `later` are not started yet. `each` has the options of single members.
        """
        self.network = network
        self.group = group
        self.workers: dict[str, WorkerProcess] = {}  # those whose process was started, by name
        self._how = {"order": order, "protocol": protocol, "delivery_level": delivery_level}
        self._later = frozenset(later)
        self._options = {**off_loopback(), "trace": str(trace), **options}
        self._each = each or {}
        self._frozen: set[str] = set()
        self._dead: set[str] = set()

    @property
    def alive(self) -> tuple[str, ...]:
        """Members whose processes run and are not frozen."""
        gone = self._dead | self._frozen
        return tuple(name for name in self.workers if name not in gone)

    async def __aenter__(self) -> Self:
        members = [name for name in self.network.members if name not in self._later]
        first, *others = members
        try:
            await self.start(first, bootstrap=True)
            await asyncio.gather(*(self.start(name) for name in others))
            for name in members:
                await self.join(name)
            await self.agree(members)
        except BaseException:
            await self.aclose()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the nodes in order, the first one last; what does not answer is killed."""
        for name in tuple(self._frozen):
            self.thaw(name)
        first, *others = self.network.members
        living = [self.workers[name] for name in others if name in self.alive]
        await asyncio.gather(*(worker.close() for worker in living))
        if first in self.alive:
            await self.workers[first].close()
        for name, worker in self.workers.items():
            if name in self._dead:
                await worker.close()

    # -- members ----------------------------------------------------------------------------------

    async def start(self, name: str, *, bootstrap: bool = False) -> None:
        """Start the member's process and node. A name that was killed may start again."""
        address = f"{self.network.address(name)}:{PORT}"
        others = [n for n in self.network.members if n != name]
        seeds = [f"{self.network.address(other)}:{PORT}" for other in others]
        place: dict[str, Any] = {"bootstrap": True} if bootstrap else {"seeds": seeds}
        path = f"PYTHONPATH={python_path()}"
        if name in self.workers:
            await self.workers[name].close()
        worker = WorkerProcess(name, launcher=[*self.network.enter(name), "env", path])
        self.workers[name] = worker
        self._dead.discard(name)
        options = {**self._options, **self._each.get(name, {})}
        await worker.start(consume=False, bind=address, **place, **options)
        await worker.run("live.journal:keep")

    async def join(self, name: str) -> None:
        """Have a started member join the group."""
        await self.workers[name].do("join", group=self.group, **self._how)

    async def close(self, name: str) -> None:
        """Have a member leave in order."""
        self._dead.add(name)
        await self.workers[name].close()

    async def kill(self, name: str) -> float:
        """kill -9; the moment of it."""
        moment = time.monotonic()
        self._dead.add(name)
        self._frozen.discard(name)
        await self.workers[name].kill()
        return moment

    def freeze(self, name: str) -> float:
        """SIGSTOP: its connections stay, it says nothing. The moment of it."""
        moment = time.monotonic()
        os.kill(self.workers[name].pid, signal.SIGSTOP)
        self._frozen.add(name)
        return moment

    def thaw(self, name: str) -> float:
        """SIGCONT; the moment before it: what it does then may be done when we go on."""
        moment = time.monotonic()
        os.kill(self.workers[name].pid, signal.SIGCONT)
        self._frozen.discard(name)
        return moment

    # -- what they do -----------------------------------------------------------------------------

    async def agree(self, members: Iterable[str]) -> None:
        """Wait until each of `members` has a view with exactly these members."""
        wanted = sorted(members)
        await self._all(wanted, PATIENCE, "wait_members", group=self.group, members=wanted)

    async def send(
        self, name: str, count: int, *, per_second: float | None = None, size: int = 100
    ) -> None:
        """Have a member multicast; returns when its last message has its place."""
        how = {"count": count, "per_second": per_second, "size": size}
        await self.workers[name].do("send", group=self.group, **how)

    async def talk(
        self, count: int, *, among: Sequence[str] | None = None, within: float = PATIENCE
    ) -> None:
        """Each of `among`, or all alive, multicasts, and all of them get everything."""
        names = self.alive if among is None else among
        before = {name: await self.delivered(name) for name in names}
        async with asyncio.timeout(within):
            await asyncio.gather(*(self.send(name, count) for name in names))
        await asyncio.gather(
            *(self.heard(name, before[name] + count * len(names), within=within) for name in names)
        )

    async def delivered(self, name: str) -> int:
        """Messages that a member has delivered so far."""
        report = await self.workers[name].do("report")
        return int(report["delivered"].get(self.group, 0))

    async def heard(self, name: str, count: int, *, within: float = PATIENCE) -> None:
        """Wait until a member has delivered so many messages in all."""
        await self._all([name], within, "wait", group=self.group, count=count)
        got = await self.delivered(name)
        assert got >= count, f"{name} ended after {got} of {count} messages"

    async def ended(self, name: str, *, within: float = PATIENCE) -> str:
        """Wait until a member's stream ends by itself; the kind of its error."""
        async with asyncio.timeout(within):
            kind: str = (await self.workers[name].do("wait_ended"))["kind"]
            return kind

    async def saw(
        self, name: str, what: str, *, after: float = 0.0, kind: str = "event"
    ) -> list[Any]:
        """Wait until a member's stream gave an event of that class, or raised it ("error")."""
        asked = {"kind": kind, "what": what, "after": after}
        async with asyncio.timeout(PATIENCE):
            entry: list[Any] = await self.workers[name].run("live.journal:wait_for", **asked)
            return entry

    async def journal(self, name: str, *, after: float = 0.0) -> list[list[Any]]:
        """What a member's stream gave since a moment: see `live.journal.read`."""
        entries: list[list[Any]] = await self.workers[name].run("live.journal:read", after=after)
        return entries

    async def knows(self, name: str, other: str) -> None:
        """Wait until a member has heard of another node, which need not be in the view yet."""
        async with asyncio.timeout(PATIENCE):
            await self.workers[name].run("live.journal:wait_for_node", name=other)

    async def stats(self, name: str) -> dict[str, Any]:
        """The node's own figures."""
        stats: dict[str, Any] = (await self.workers[name].do("report"))["stats"]
        return stats

    async def recoveries(self, moment: float, without: Iterable[str]) -> list[Recovery]:
        """For each who is alive: from the moment to a view without these, and to a message in it.

        Whoever has not got so far is left out: wait with `agree` and `talk` first.
        """
        found: list[Recovery] = []
        for name in self.alive:
            entries = await self.journal(name, after=moment)
            found += _recovery(name, entries, moment, set(without))
        return found

    async def _all(
        self, names: Iterable[str], within: float, command: str, **args: Any
    ) -> list[Any]:
        async with asyncio.timeout(within):
            return await asyncio.gather(*(self.workers[n].do(command, **args) for n in names))


def _recovery(
    name: str, entries: list[list[Any]], moment: float, gone: set[str]
) -> Iterator[Recovery]:
    views = [i for i, e in enumerate(entries) if e[1] == "view" and not gone & set(e[4])]
    for view in views[:1]:
        messages = [e for e in entries[view:] if e[1] == "messages"]
        for message in messages[:1]:
            yield Recovery(name, entries[view][0] - moment, message[0] - moment)
